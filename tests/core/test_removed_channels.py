"""A channel that is removed, and one that begins to be for an open incident."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from watchdog.core.alerts import Change, Incident, NoticeKind
from watchdog.core.backoff import INCIDENTS_NAMED, channel_removed, channel_removed_notice
from watchdog.core.incidents import Book, apply
from watchdog.core.labels import Labels
from watchdog.core.moments import Moment, Tick
from watchdog.core.notices import advance_notices
from watchdog.core.notifications import Answer, Delivery, DeliveryState, MessageKind, Notification
from watchdog.core.planning import newly_due
from watchdog.core.rendering import ChannelLook, render
from watchdog.core.rules import Severity
from watchdog.core.ruleset import ChannelSpec, Secret

T = datetime(2026, 9, 17, 2, 0, tzinfo=UTC)
TEAM = ChannelSpec(name="team", url=Secret("x://"))
MINUTE = timedelta(minutes=1)
ONCALL = ChannelSpec(name="oncall", url=Secret("y://"), min_severity=Severity.CRITICAL)


def incident(id_: str = "abc", **changes: object) -> Incident:
    plain = Incident(
        id=id_,
        rule="idle",
        labels=Labels.of(task="a/1", task_name="llama"),
        severity=Severity.WARNING,
        event=False,
        opened_at=T,
        since=T,
        updated_at=T,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def row(about: Incident, attempts: int = 0) -> Delivery:
    told = Notification(channel="mail", kind=MessageKind.FIRST, incident=about, decided_at=T)
    return Delivery(id=7, notification=told, created=timedelta(), not_before=timedelta(), attempts=attempts)


def test_a_row_of_a_removed_channel_is_given_up_with_the_reason() -> None:
    decision = channel_removed(row(incident(), attempts=2))
    assert decision.gave_up
    assert (decision.delivery.state, decision.delivery.attempts) == (DeliveryState.DEAD, 3)
    assert decision.delivery.last_result is not None
    assert decision.delivery.last_result.answer is Answer.PERMANENT


def test_all_that_a_channel_was_still_to_be_told_is_one_notice_as_severe_as_the_worst() -> None:
    rows = [row(incident(f"i{n}")) for n in range(INCIDENTS_NAMED + 2)]
    rows.append(row(incident("bad", severity=Severity.CRITICAL)))
    notice = channel_removed_notice("mail", rows)
    assert notice is not None
    assert (notice.kind, notice.severity) == (NoticeKind.UNDELIVERED, Severity.CRITICAL)
    assert notice.params["messages"] == str(INCIDENTS_NAMED + 3)
    assert notice.params["incidents"].endswith("(+3)")


def test_what_was_in_flight_when_its_channel_was_removed_is_told_too_and_nothing_is_told_twice() -> None:
    book = Book()
    changes = []
    for minute, ids in enumerate((("i1", "i2"), ("i3",), ("i3",))):
        notice = channel_removed_notice("mail", [row(incident(id_)) for id_ in ids])
        assert notice is not None
        at = timedelta(minutes=minute)
        tick = Tick(moment=Moment(at=T + at, watched=at), elapsed=MINUTE, run=at, interval=MINUTE)
        step = advance_notices([notice], book, tick)
        book = apply(book, step)
        changes.append([one.change for one in step.transitions])
    (said,) = book.open.values()
    assert changes == [[Change.OPENED], [Change.GREW], []]
    assert (said.params["messages"], said.params["incidents"]) == ("3", "i1, i2, i3")


def test_what_was_to_be_said_about_channels_needs_no_report() -> None:
    about = incident(notice=NoticeKind.CHANNEL_BROKEN)
    assert channel_removed_notice("mail", [row(about)]) is None


def test_the_report_names_channel_and_incidents_in_both_languages() -> None:
    notice = channel_removed_notice("mail", [row(incident("abc")), row(incident("def"))])
    assert notice is not None
    about = incident("xyz", rule="watchdog/undelivered", notice=notice.kind, params=notice.params, event=True)
    for language in ("en", "zh"):
        told = Notification(channel="team", kind=MessageKind.FIRST, incident=about, decided_at=T)
        message = render(told, ChannelLook(language=language))
        assert "mail" in message.title
        assert "2" in message.title
        assert "abc, def" in message.body
        assert "check --probe" not in message.body


def test_a_new_channel_begins_to_be_for_what_is_open() -> None:
    one = incident("one")
    assert newly_due([one], {"one": ()}, (TEAM,)) == (("one", "team"),)
    assert newly_due([one], {"one": ("team",)}, (TEAM,)) == ()


def test_only_what_lasts_was_open_before_and_is_for_the_channel_counts() -> None:
    ended, event = incident("ended", closed_at=T), incident("event", event=True)
    fresh, mild = incident("fresh"), incident("mild")
    before: dict[str, tuple[str, ...]] = {"ended": (), "event": (), "mild": ()}
    assert newly_due([ended, event, fresh, mild], before, (ONCALL,)) == ()
    worse = replace(mild, severity=Severity.CRITICAL)
    assert newly_due([worse], before, (ONCALL,)) == (("mild", "oncall"),)
