"""The parts of `watchdog init`: kinds of source by their tables, answers about tasks, channels."""

import io
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest

from watchdog.cli.asking import Asker, NobodyToAskError
from watchdog.cli.init import offered
from watchdog.cli.init_channel import VARIABLE, advice, from_web_address, from_words, remarks, show_examples
from watchdog.cli.init_cloud import Look, SourceDraft, ask_options, complete, reach
from watchdog.cli.init_tasks import by_options, live, resolve, short, show, unfitting
from watchdog.cli.output import Output
from watchdog.clock import SystemClock
from watchdog.config.secrets import SecretBook
from watchdog.core.conditions.kinds import Capability
from watchdog.core.notifications import Answer, DeliveryResult
from watchdog.core.ruleset import Secret, SourceSpec, WatchEntry
from watchdog.core.script import Script
from watchdog.core.tasks import Status, Task, TaskObservation
from watchdog.errors import ConfigError
from watchdog.ports import Clock, MetricInfo, Source, TaskListing
from watchdog.sources.options import OptionReader, OptionType, SourceOption
from watchdog.sources.registry import SourceKind
from watchdog.sources.scripted import ScriptedSource

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)

OPTIONS = (
    SourceOption(name="region", type=OptionType.TEXT, doc="Where it runs."),
    SourceOption(name="speed", type=OptionType.NUMBER, doc="How fast.", default="2", ask=True),
    SourceOption(name="mode", type=OptionType.CHOICE, doc="How.", default="a", choices=("a", "b")),
    SourceOption(name="token", type=OptionType.SECRET, doc="The token of the account."),
)


def build(spec: SourceSpec, clock: Clock) -> Source:
    reader = OptionReader(OPTIONS, spec.options)
    if not reader.text("region"):
        raise ValueError("region is missing")
    if reader.text("region") == "moon":
        raise ValueError("region: there is nothing on the moon")
    if not reader.secret("token"):
        raise ValueError("token is missing: set it in the environment")
    reader.number("speed")
    return ScriptedSource(Script(source=spec.name), clock, lambda: NOW)


@pytest.fixture
def draft() -> SourceDraft:
    """A kind of source that `init` has never heard of."""
    kind = SourceKind(name="other-cloud", build=build, options=OPTIONS)
    return SourceDraft(kind=kind, names={}, book=SecretBook())


@pytest.fixture
def asker(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Asker]:
    """A person whose answers, shown and hidden, are known beforehand; `asked` fails on one too many."""

    def make(*answers: str) -> Asker:
        left: Iterator[str] = iter(answers)
        monkeypatch.setattr("builtins.input", lambda _: next(left))
        monkeypatch.setattr("getpass.getpass", lambda _: next(left))
        return Asker(output=Output(stream=io.StringIO(), terminal=False, colour=False), interactive=True)

    return make


@pytest.fixture
def nobody() -> Asker:
    return Asker(output=Output(stream=io.StringIO(), terminal=False, colour=False), interactive=False)


def said(asker: Asker) -> str:
    assert isinstance(asker.output.stream, io.StringIO)
    return asker.output.stream.getvalue()


def observation(number: int, name: str, status: Status = Status.RUNNING, hours: int = 1) -> TaskObservation:
    task = Task(key=f"alaya/id-{number}", source="alaya", id=f"id-{number}", name=name)
    return TaskObservation(task=task, status=status, started=NOW - timedelta(hours=hours))


def look(*tasks: TaskObservation) -> Look:
    return Look(listing=TaskListing(tasks=tasks), error=None, capabilities=frozenset())


THREE = look(
    observation(1, "old-run", hours=9),
    observation(2, "new-run", hours=1),
    observation(3, "done-run", Status.SUCCEEDED),
)
BLIND = Look(listing=None, error=None, capabilities=frozenset())


def test_a_new_kind_is_asked_for_what_its_own_table_and_adapter_want(
    draft: SourceDraft, asker: Callable[..., Asker]
) -> None:
    person = asker("", "moon", "earth", "s3cr3t-token")

    ask_options(draft, person)
    complete(draft, person, SystemClock())

    assert draft.options == {"region": "earth"}
    assert draft.typed == {"JOB_WATCHDOG_OTHER_CLOUD_TOKEN": "s3cr3t-token"}
    assert draft.spec().options == {"region": "earth", "token": Secret("s3cr3t-token")}
    assert "there is nothing on the moon" in said(person)
    assert "s3cr3t" not in said(person)


def test_what_holds_now_is_the_default_and_the_tables_default_is_not_written(
    draft: SourceDraft, asker: Callable[..., Asker]
) -> None:
    ask_options(draft, asker("5"))
    assert draft.options == {"speed": "5"}
    ask_options(draft, asker(""))
    assert draft.options == {"speed": "5"}
    ask_options(draft, asker("2"))
    assert draft.options == {}


def test_an_option_that_was_given_is_asked_for_again_when_settings_change(
    draft: SourceDraft, asker: Callable[..., Asker]
) -> None:
    draft.options["region"] = "earth"

    ask_options(draft, asker("mars", ""))

    assert draft.options == {"region": "mars"}


def test_a_secret_that_is_set_outside_is_not_asked_for(
    draft: SourceDraft, asker: Callable[..., Asker]
) -> None:
    draft.names = {"JOB_WATCHDOG_OTHER_CLOUD_TOKEN": "set-outside"}
    draft.options["region"] = "earth"
    person = asker()

    complete(draft, person, SystemClock())

    assert draft.typed == {}
    assert "token: taken from JOB_WATCHDOG_OTHER_CLOUD_TOKEN" in said(person)


def test_a_kind_without_a_task_list_leads_straight_to_an_id(
    draft: SourceDraft, asker: Callable[..., Asker], nobody: Asker
) -> None:
    draft.kind = SourceKind(
        name="other",
        options=(),
        build=lambda spec, clock: ScriptedSource(Script(source=spec.name, listing=False), clock, lambda: NOW),
    )
    person = asker()

    found = reach(draft, person, SystemClock(), list_needed=True)

    assert found.listing is None
    assert "this kind of source has none" in said(person)
    assert reach(draft, nobody, SystemClock(), list_needed=False).listing is None
    assert said(nobody) == ""
    with pytest.raises(ConfigError, match="this kind of source has none"):
        reach(draft, nobody, SystemClock(), list_needed=True)


def test_only_rules_that_a_source_can_answer_for_are_written() -> None:
    knows_gpu = SourceKind(
        name="other", build=build, options=(), metrics=(MetricInfo(name="gpu", unit="ratio"),)
    )
    anything = SourceKind(name="other", build=build, options=())
    names = ("gpu-idle", "log-silence", "vram-nearly-full", "task-state")

    assert offered(names, knows_gpu, frozenset(Capability)) == ("gpu-idle", "log-silence", "task-state")
    assert offered(names, anything, frozenset({Capability.METRICS})) == ("gpu-idle", "vram-nearly-full")


def test_where_nobody_can_be_asked_defaults_hold_and_other_questions_are_errors(nobody: Asker) -> None:
    assert nobody.text("Zone", "UTC") == "UTC"
    assert nobody.word("Language", ("en", "zh"), "zh") == "zh"
    for question in (lambda: nobody.text("Id"), lambda: nobody.hidden("Key")):
        with pytest.raises(NobodyToAskError):
            question()


def test_live_tasks_stand_newest_first_and_ended_ones_are_counted(nobody: Asker) -> None:
    show(THREE, nobody, NOW)

    assert [one.task.name for one in live(THREE)] == ["new-run", "old-run"]
    assert "2 tasks run or wait (1 ended ones are not shown):" in said(nobody)
    assert "   1  new-run  running        1h   id-2\n" in said(nobody)
    assert "done-run" not in said(nobody)


def test_a_name_from_outside_cannot_steer_the_terminal(nobody: Asker) -> None:
    show(look(observation(1, "run\x1b[31m")), nobody, NOW)

    assert "run\\x1b[31m" in said(nobody)


@pytest.mark.parametrize(
    ("answer", "entries"),
    [
        ("1", [WatchEntry(source="alaya", id="id-2", name="new-run")]),
        (
            "2, 1",
            [
                WatchEntry(source="alaya", id="id-1", name="old-run"),
                WatchEntry(source="alaya", id="id-2", name="new-run"),
            ],
        ),
        ("1 1", [WatchEntry(source="alaya", id="id-2", name="new-run")]),
        ("id-3", [WatchEntry(source="alaya", id="id-3", name="done-run")]),
        ("old-run", [WatchEntry(source="alaya", name="old-run")]),
        ("*-run", [WatchEntry(source="alaya", name="*-run")]),
        ("id-99", [WatchEntry(source="alaya", id="id-99")]),
    ],
)
def test_an_answer_is_a_number_a_name_a_glob_or_an_id(answer: str, entries: list[WatchEntry]) -> None:
    assert list(resolve(answer, "alaya", THREE).entries) == entries


def test_a_name_that_looks_like_a_glob_or_like_two_words_is_taken_whole() -> None:
    tasks = look(observation(1, "run[1]"), observation(2, "my run, again"))

    assert resolve("run[1]", "alaya", tasks).entries[0].id == "id-1"
    assert resolve("my run, again", "alaya", tasks).entries == (
        WatchEntry(source="alaya", name="my run, again"),
    )


def test_only_what_the_list_has_is_known_to_exist() -> None:
    assert resolve("1", "alaya", THREE).listed
    assert resolve("*-run", "alaya", THREE).listed
    assert not resolve("1 id-99", "alaya", THREE).listed
    assert not resolve("id-1", "alaya", BLIND).listed
    assert not by_options(["id-1"], [], "alaya", BLIND).listed
    assert by_options(["id-1"], ["x*"], "alaya", THREE).listed


def test_a_number_of_the_command_line_is_an_id() -> None:
    chosen = by_options(["1"], [], "alaya", THREE)

    assert chosen.entries == (WatchEntry(source="alaya", id="1"),)
    assert [task.id for task in chosen.tasks] == ["1"]


def test_globs_that_nothing_live_fits_are_told_apart() -> None:
    assert unfitting(by_options([], ["new-*", "done-*", "sft-*"], "alaya", THREE)) == ["done-*", "sft-*"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-3, "0s"), (40, "40s"), (719, "11m"), (3600, "1h"), (90_000, "1d"), (400_000, "4d")],
)
def test_an_age_is_shown_by_its_largest_unit(seconds: int, text: str) -> None:
    assert short(timedelta(seconds=seconds)) == text


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("https://oapi.dingtalk.com/robot/send?access_token=abc123", "dingtalk://abc123"),
        ("https://open.feishu.cn/open-apis/bot/v2/hook/a-b-c", "feishu://a-b-c"),
        ("https://oapi.dingtalk.com/robot/send", "https://oapi.dingtalk.com/robot/send"),
        ("https://example.com/hook/abc", "https://example.com/hook/abc"),
        ("https://[broken", "https://[broken"),
    ],
)
def test_a_robots_web_address_becomes_the_url_of_its_service(address: str, url: str) -> None:
    assert from_web_address(address) == url


def test_a_channel_is_the_terminal_a_variable_or_a_url(monkeypatch: pytest.MonkeyPatch) -> None:
    book, names = SecretBook(), {"CHAT": "json://localhost/a-room", VARIABLE: "json://localhost/taken"}

    console = from_words("console", names, book)
    variable = from_words("env:CHAT", names, book)
    typed = from_words("json://localhost/typed-room", names, book)
    same = from_words("json://localhost/taken", names, book)

    assert (console.shown, console.typed) == ("console://", False)
    assert (variable.shown, variable.typed, variable.url) == ("${CHAT}", False, "json://localhost/a-room")
    assert (typed.shown, typed.typed) == ("${TEAM_CHAT_URL_2}", True)
    assert same.shown == "${TEAM_CHAT_URL}"
    assert "typed-room" not in book.redact("refused: json://localhost/typed-room") + repr(typed)


def test_what_to_do_about_a_refusal_depends_on_the_service() -> None:
    refused = DeliveryResult(answer=Answer.PERMANENT)
    book = SecretBook()

    assert "keyword" in advice(from_words("dingtalk://abc", {}, book), refused)
    assert "app password" in advice(from_words("mailtos://a:b@c.d", {}, book), refused)
    assert "firewall" in advice(from_words("json://h/x", {}, book), DeliveryResult(answer=Answer.RETRY))
    assert "look there" in advice(from_words("json://h/x", {}, book), DeliveryResult(answer=Answer.UNKNOWN))


HOOKS = {  # what stands where an example of a robot's address has dots
    "https://hooks.slack.com/services/": "T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ",
    "https://oapi.dingtalk.com/": f"robot/send?access_token={'0123456789abcdef' * 4}",
    "https://open.feishu.cn/": "open-apis/bot/v2/hook/9f7d3a1e-1234-4a5b-8c9d-0123456789ab",
    "https://open.larksuite.com/": "open-apis/bot/v2/hook/9f7d3a1e-1234-4a5b-8c9d-0123456789ab",
    "https://qyapi.weixin.qq.com/": "cgi-bin/webhook/send?key=693a91f6-7abc-4bc4-97a0-0ec2sifa5aaa",
}


def test_each_example_of_a_channel_is_one_that_is_taken(nobody: Asker) -> None:
    show_examples(nobody)

    urls = [url + HOOKS.get(url, "") for url in re.findall(r"[a-z]+://[^\s,;…]+", said(nobody))]
    drafts = [from_words(url, {}, SecretBook()) for url in urls]
    assert len(urls) == 10
    assert [remarks(draft) for draft in drafts] == [([], [])] * 10
    assert {"dingtalk", "feishu"} <= {str(draft.url).partition("://")[0] for draft in drafts}
    assert max(map(len, said(nobody).splitlines()[:-1])) <= 100
