"""What an edited rule file changes, by name."""

from dataclasses import replace
from datetime import timedelta

from watchdog.core.conditions.kinds import Absent, By
from watchdog.core.differences import differences
from watchdog.core.rules import Rule
from watchdog.core.ruleset import ChannelSpec, Ruleset, Secret, SourceSpec, WatchEntry

RULE = Rule(name="gone", condition=Absent(metric="gpu"))
OTHER = Rule(name="gone-gpu", condition=Absent(metric="gpu", by=By.GPU))
BEFORE = Ruleset(
    sources=(SourceSpec(name="a", kind="alaya", options={"api_key": Secret("one")}),),
    watch=(WatchEntry(source="a", id="1"), WatchEntry(source="a", name="pre-*")),
    channels=(ChannelSpec(name="team", url=Secret("x://one")),),
    rules=(RULE, OTHER),
    digest="before",
)


def test_other_order_and_another_digest_are_no_difference() -> None:
    after = replace(BEFORE, rules=(OTHER, RULE), watch=BEFORE.watch[::-1], digest="after")
    assert differences(BEFORE, after).empty


def test_rules_that_came_went_and_changed_are_named() -> None:
    raised = replace(RULE, hold=timedelta(minutes=5))
    found = differences(BEFORE, replace(BEFORE, rules=(raised, replace(OTHER, name="new"))))
    assert (found.rules.added, found.rules.removed, found.rules.changed) == (
        ("new",),
        ("gone-gpu",),
        ("gone",),
    )
    assert found.channels.empty
    assert not found.empty


def test_a_secret_with_another_value_is_a_change() -> None:
    source = replace(BEFORE.sources[0], options={"api_key": Secret("two")})
    channel = replace(BEFORE.channels[0], url=Secret("x://two"))
    found = differences(BEFORE, replace(BEFORE, sources=(source,), channels=(channel,)))
    assert found.sources.changed == ("a",)
    assert found.channels.changed == ("team",)


def test_watch_entries_go_by_id_or_glob() -> None:
    found = differences(BEFORE, replace(BEFORE, watch=(WatchEntry(source="a", id="1", name="llama"),)))
    assert (found.watch.changed, found.watch.removed) == (("a/1",), ("a/pre-*",))


def test_single_values_are_named_too() -> None:
    after = replace(BEFORE, interval=timedelta(seconds=30), auto_reload=True)
    assert differences(BEFORE, after).settings == ("interval", "auto_reload")
