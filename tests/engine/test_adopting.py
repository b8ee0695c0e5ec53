"""Other rules, sources and channels between two slots: what goes on undisturbed, what starts, what ends."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from watchdog.core.alerts import NoticeKind
from watchdog.core.conditions.kinds import (
    Aggregate,
    Capability,
    Comparison,
    LogCount,
    LogEvent,
    LogMatch,
    Threshold,
)
from watchdog.core.health import Failure, ProbeKey
from watchdog.core.logs import LogPage, LogQuery
from watchdog.core.notifications import Answer, DeliveryResult, MessageKind
from watchdog.core.rules import Rule, Severity
from watchdog.core.ruleset import ChannelSpec, Ruleset, Secret, SourceSpec, WatchEntry
from watchdog.core.tasks import Task
from watchdog.engine.engine import Engine
from watchdog.engine.looks import renderer
from watchdog.errors import SourceError
from watchdog.ports import MetricAnswer, Notifier, Source
from watchdog.text.patterns import Re2Engine

MINUTE = timedelta(minutes=1)
REFUSED = DeliveryResult(answer=Answer.RETRY, code="503")
PATTERNS = Re2Engine()


def low(name: str = "low", metric: str = "gpu", window: float = 0, hold: float = 0, **more: object) -> Rule:
    condition = Threshold(
        metric=metric,
        aggregate=Aggregate.AVG if window else Aggregate.LAST,
        window=window * MINUTE if window else None,
        comparison=Comparison(above=False, threshold=0.2),
    )
    return Rule(name=name, condition=condition, hold=hold * MINUTE, **more)  # type: ignore[arg-type]


def errors(name: str = "errors", pattern: str = "ERROR", prefilter: str = "", **more: object) -> Rule:
    lines = LogMatch(match=(PATTERNS.compile(pattern),), prefilter=prefilter)
    return Rule(name=name, condition=LogEvent(lines=lines), **more)  # type: ignore[arg-type]


def put(bench: Any, metric: str, minutes: range, values: object, **labels: str) -> None:
    """Let the watched task have these points, by minute."""
    bench.cloud.put(metric, minutes, values, **{"task": "src/1", **labels})


def channel(name: str, url: str = "x:", **more: Any) -> ChannelSpec:
    return ChannelSpec(name=name, url=Secret(url), **more)


async def adopt(
    engine: Engine,
    ruleset: Ruleset,
    notifiers: dict[str, Notifier] | None = None,
    sources: dict[str, Source] | None = None,
) -> None:
    """Reload as the daemon does: what is not given stays the same object."""
    parts = engine.parts
    await engine.adopt(
        replace(
            parts,
            ruleset=ruleset,
            notifiers=parts.notifiers if notifiers is None else notifiers,
            sources=parts.sources if sources is None else sources,
            render=renderer(ruleset, None),
        )
    )


def play(bench: Any, minutes: float, *steps: tuple[float, Callable[[Engine], Any]]) -> Engine:
    """Let an engine live for so long; each step happens half a second after its minute's slot."""

    async def main() -> Engine:
        engine = bench.engine()
        life = asyncio.ensure_future(bench.live(minutes, engine))
        for minute, step in steps:
            await bench.world.sleep(minute * MINUTE + timedelta(seconds=0.5) - bench.world.monotonic())
            result = step(engine)
            if asyncio.iscoroutine(result):
                await result
        return await life

    found: Engine = bench.run(main)
    return found


def kinds(chat: Any, word: str = "") -> list[tuple[float, str]]:
    """(minute, kind) of what a channel accepted, of messages with a word in their title."""
    return [(round(at), str(message.kind)) for at, message in chat.sent if word in message.title]


# --- what stays


def test_a_source_and_a_channel_that_stay_are_neither_closed_nor_asked_more_often(bench: Any) -> None:
    put(bench, "gpu", range(-10, 60), 0.9)
    bench.rules = (low(),)

    async def same(engine: Engine) -> None:
        collectors = engine.crew.collectors
        await adopt(engine, replace(engine.parts.ruleset, rules=(low(), low("other"))))
        assert engine.crew.collectors[0] is collectors[0]

    play(bench, 10.2, *((at, same) for at in (3, 3.2, 3.4, 5)))
    assert bench.cloud.minutes("gpu/1") == list(range(11))
    assert (bench.cloud.closed, bench.chat.closed) == (True, True)  # at the end, by `stop`


def test_an_alert_that_is_pending_keeps_its_clock_over_an_unrelated_edit(bench: Any) -> None:
    put(bench, "gpu", range(-10, 60), 0.05)
    bench.rules = (low(hold=10),)
    edited = low(hold=10, description="in other words", severity=Severity.CRITICAL)
    play(bench, 15.2, (5, lambda e: adopt(e, replace(e.parts.ruleset, rules=(edited, low("new", hold=60))))))
    assert kinds(bench.chat, "low") == [(10, "first")]
    assert bench.chat.sent[0][1].severity is Severity.CRITICAL
    assert "in other words" in bench.chat.sent[0][1].body


# --- channels


def test_what_waits_for_a_removed_channel_is_given_up_and_told_elsewhere(bench: Any, new_bench: Any) -> None:
    other = type(bench.chat)(bench.world, "mail")
    bench.chat.answers = [REFUSED] * 99
    put(bench, "gpu", range(-10, 60), 0.05)
    bench.rules = (low(),)

    async def swap(engine: Engine) -> None:
        ruleset = replace(engine.parts.ruleset, channels=(channel("mail"),))
        await adopt(engine, ruleset, {"mail": other})

    engine = play(bench, 12.2, (4, swap))
    (at, notice), *_ = [(at, one) for at, one in other.sent if "chat" in one.title]
    assert round(at) == 5
    assert "was removed with 1 undelivered" in notice.title
    reader = bench.state.reader()
    dead = reader.undelivered(limit=9)
    assert [row.notification.channel for row in dead] == ["chat"]
    assert dead[0].last_result is not None
    assert "removed" in dead[0].last_result.detail
    assert not engine.relay.rows
    # The new channel also hears of the incident itself, which goes on.
    assert [kind for _, kind in kinds(other, "low")] == ["first"]
    assert bench.chat.closed


def test_rows_of_a_channel_that_was_removed_while_we_were_down_are_reported_at_the_start(bench: Any) -> None:
    bench.chat.answers = [REFUSED] * 99
    put(bench, "gpu", range(-10, 60), 0.05)
    bench.rules = (low(),)
    play(bench, 3.2)
    other = type(bench.chat)(bench.world, "mail")

    async def again() -> None:
        engine = bench.engine()
        ruleset = replace(engine.parts.ruleset, channels=(channel("mail"),))
        second = type(engine)(parts=replace(engine.parts, ruleset=ruleset, notifiers={"mail": other}))
        await bench.live(5, second)

    bench.run(again)
    assert [one.title for _, one in other.sent if "was removed" in one.title]


def test_a_channel_with_a_new_address_gets_at_once_what_waited_for_it(bench: Any) -> None:
    fresh = type(bench.chat)(bench.world)
    bench.chat.answers = [REFUSED] * 99
    put(bench, "gpu", range(-10, 60), 0.05)
    bench.rules = (low(),)

    async def swap(engine: Engine) -> None:
        ruleset = replace(engine.parts.ruleset, channels=(channel("chat", "y:"),))
        await adopt(engine, ruleset, {"chat": fresh})

    play(bench, 12.2, (6.1, swap))
    assert kinds(fresh, "low") == [(6, "first")]
    assert bench.chat.closed


def test_a_message_in_flight_ends_on_the_channel_it_began_with_and_is_not_sent_twice(bench: Any) -> None:
    fresh = type(bench.chat)(bench.world)
    bench.chat.takes = 3 * MINUTE
    put(bench, "gpu", range(-10, 60), 0.05)
    bench.rules = (low(),)

    async def swap(engine: Engine) -> None:
        await adopt(engine, replace(engine.parts.ruleset, channels=(channel("chat", "y:"),)), {"chat": fresh})

    engine = play(bench, 8.2, (1, swap))
    assert kinds(bench.chat, "low") == [(3, "first")]
    assert kinds(fresh, "low") == []
    assert not engine.relay.rows


def test_a_removed_channel_that_refuses_what_was_in_flight_is_reported(bench: Any) -> None:
    other = type(bench.chat)(bench.world, "mail")
    bench.chat.takes, bench.chat.answers = 3 * MINUTE, [REFUSED] * 9
    put(bench, "gpu", range(-10, 60), 0.05)
    bench.rules = (low(),)

    async def swap(engine: Engine) -> None:
        await adopt(engine, replace(engine.parts.ruleset, channels=(channel("mail"),)), {"mail": other})

    engine = play(bench, 8.2, (1, swap))
    assert len(bench.chat.tries) == 1
    assert [round(at) for at, one in other.sent if "was removed" in one.title] == [3]
    assert not engine.relay.rows


def test_a_new_channel_is_told_of_what_is_open_and_then_of_its_end_and_others_hear_nothing(
    bench: Any,
) -> None:
    other = type(bench.chat)(bench.world, "mail")
    put(bench, "gpu", range(-10, 20), 0.05)
    put(bench, "gpu", range(20, 60), 0.9)
    bench.rules = (low(),)

    async def swap(engine: Engine) -> None:
        both = (channel("chat"), channel("mail"))
        notifiers: dict[str, Notifier] = {"chat": bench.chat, "mail": other}
        await adopt(engine, replace(engine.parts.ruleset, channels=both), notifiers)

    play(bench, 30.2, (5, swap))
    assert kinds(bench.chat, "low") == [(0, "first"), (20, "closed")]
    assert kinds(other, "low") == [(6, "first"), (20, "closed")]
    first, last = [one for _, one in other.sent if "low" in one.title]
    assert first.incident == last.incident


def test_a_channel_said_to_be_broken_has_to_prove_otherwise_after_a_restart(bench: Any) -> None:
    bench.chat.answers = [REFUSED] * 8
    put(bench, "gpu", range(-10, 60), 0.05)
    bench.rules = (low(),)
    mail = type(bench.chat)(bench.world, "mail")

    def both(engine: Engine) -> Engine:
        ruleset = replace(engine.parts.ruleset, channels=(channel("chat"), channel("mail")))
        notifiers = {"chat": bench.chat, "mail": mail}
        return type(engine)(parts=replace(engine.parts, ruleset=ruleset, notifiers=notifiers))

    async def lives() -> Engine:
        await bench.live(2.2, both(bench.engine()))
        return await bench.live(15, both(bench.engine()))

    engine = bench.run(lives)
    said = [one.title for _, one in mail.sent if "channel chat" in one.title]
    assert any("takes no messages" in title for title in said)
    assert any("takes messages again" in title for title in said)
    assert not [one for one in engine.world.book.open.values() if one.notice is NoticeKind.CHANNEL_BROKEN]


# --- sources


def blind(bench: Any) -> None:
    """Metrics and list fail from the beginning."""

    async def fail() -> None:
        raise SourceError(Failure.SERVER_ERROR)

    for question in ("gpu/1", "list", "status/1"):
        bench.cloud.script[question] = fail


class Turns:
    """Notes how many questions are open at a time, over several sources."""

    def __init__(self) -> None:
        self.open = self.most = 0

    def of(self, ask: Callable[..., Any]) -> Callable[..., Any]:
        async def asked(task: Task, query: LogQuery) -> LogPage:
            self.open += 1
            self.most = max(self.most, self.open)
            try:
                page: LogPage = await ask(task, query)
                return page
            finally:
                self.open -= 1

        return asked


def without_source(engine: Engine) -> Ruleset:
    return replace(engine.parts.ruleset, sources=(), watch=())


def test_a_removed_source_is_left_its_tasks_end_and_its_blindness_is_no_news_any_more(bench: Any) -> None:
    blind(bench)
    bench.rules = (low(),)
    engine = play(bench, 20.2, (8, lambda e: adopt(e, without_source(e), sources={})))
    assert bench.cloud.closed
    assert max(minute for minute, _ in bench.cloud.asked) <= 8
    about = [(round(at), message.title) for at, message in bench.chat.sent if "cannot read" in message.title]
    assert [at for at, _ in about] == [2, 9]
    assert "no longer watched" in about[-1][1]
    assert not engine.world.states
    assert not engine.world.health.states


def test_a_source_that_was_blind_and_is_gone_at_a_restart_is_said_once(bench: Any) -> None:
    blind(bench)
    bench.watch = (WatchEntry(source="src", name="run-*"), *bench.watch)
    bench.rules = (low(),)
    play(bench, 5.2)

    async def again() -> Engine:
        engine = bench.engine()
        ruleset = without_source(engine)
        other = type(engine)(parts=replace(engine.parts, ruleset=ruleset, sources={}))
        return await bench.live(20, other)

    bench.run(again)
    about = [message.title for _, message in bench.chat.sent if "cannot read" in message.title]
    assert len(about) == 2  # when it began, and when the source was gone
    bench.cloud.script.clear()
    put(bench, "gpu", range(-10, 90), 0.9)
    before = len(bench.chat.sent)
    engine = play(bench, bench.now + 10)
    assert not [one for _, one in bench.chat.sent[before:] if "read" in one.title]
    assert all(not state.blind for state in engine.world.health.states.values())


def test_a_source_with_other_options_is_another_one_and_the_log_is_read_on_without_a_double(
    bench: Any,
) -> None:
    second = type(bench.cloud)(bench.world)
    second.lines = bench.cloud.lines
    bench.rules = (errors(),)
    for minute in range(1, 20):
        bench.cloud.line(minute + 0.3, f"ERROR number {'abcdefghijklmnopqrstuvwxyz'[minute]}{minute * 'x'}")

    async def slow() -> None:
        await bench.world.sleep(timedelta(seconds=1.5))

    async def swap(engine: Engine) -> None:
        spec = SourceSpec(name="src", kind="test", options={"zone": "UTC"})
        await adopt(engine, replace(engine.parts.ruleset, sources=(spec,)), sources={"src": second})

    turns = Turns()
    for cloud in (bench.cloud, second):
        cloud.logs = turns.of(cloud.logs)
    bench.cloud.script["logs/1/"] = slow  # still reading when it is replaced
    play(bench, 25.2, (5, swap), (11, swap))
    assert bench.cloud.closed
    assert second.minutes("logs/1/")
    assert turns.most == 1
    (incident,) = {message.incident for _, message in bench.chat.sent if "errors" in message.title}
    assert bench.state.reader().incident(incident).count == 19


@pytest.mark.parametrize(("takes", "removed"), [(1, 3), (12, 3.24)])  # in flight; arrived, not taken yet
def test_a_late_answer_of_a_removed_source_is_nobodys(bench: Any, takes: float, removed: float) -> None:
    async def slow() -> None:
        await bench.world.sleep(timedelta(seconds=takes))

    bench.cloud.script |= {"list": slow, "gpu/1": slow, "status/1": slow}
    bench.watch = (WatchEntry(source="src", name="run-*"), *bench.watch)
    bench.rules = (low(),)
    engine = play(bench, 8.2, (removed, lambda e: adopt(e, without_source(e), sources={})))
    assert engine.slots >= 8
    assert not engine.world.listings


def test_a_late_answer_of_the_source_before_is_not_taken_for_one_of_the_new(bench: Any) -> None:
    second = type(bench.cloud)(bench.world)
    put(bench, "gpu", range(-10, 3), 0.9)
    put(bench, "gpu", range(3, 60), 0.05)
    second.put("gpu", range(-10, 60), 0.9, task="src/1")
    bench.rules = (low(),)

    async def slow() -> None:
        await bench.world.sleep(timedelta(seconds=1))

    async def slow_now() -> None:
        bench.cloud.script["gpu/1"] = slow

    async def swap(engine: Engine) -> None:
        spec = SourceSpec(name="src", kind="test", options={"zone": "UTC"})
        await adopt(engine, replace(engine.parts.ruleset, sources=(spec,)), sources={"src": second})

    bench.interval = bench.poll = timedelta(seconds=2)  # slots wait half a second for answers
    play(bench, 8.2, (2.5, lambda _: slow_now()), (3.005, swap))
    assert kinds(bench.chat, "low") == []


# --- rules


def test_a_longer_window_has_the_past_fetched_that_it_needs(bench: Any) -> None:
    asked: list[timedelta] = []
    answer = bench.cloud.metric

    async def metric(task: Task, metric: str, *, since: datetime, now: datetime) -> MetricAnswer:
        asked.append(now - since)
        found: MetricAnswer = await answer(task, metric, since=since, now=now)
        return found

    bench.cloud.metric = metric
    put(bench, "gpu", range(-600, 60), 0.05)
    bench.rules = (low(),)
    longer = (low(), low("long", window=360))
    play(bench, 12.2, (4, lambda e: adopt(e, replace(e.parts.ruleset, rules=longer))))
    assert max(asked[1:5]) < timedelta(minutes=30)
    assert [span >= timedelta(hours=6) for span in asked[5:]] == [True, True] + [False] * (len(asked) - 7)
    assert kinds(bench.chat, "long") == [(5, "first")]


@pytest.mark.parametrize(("interval", "slots"), [(10, 26), (300, 6)])
def test_another_interval_takes_hold_without_an_outage(bench: Any, interval: int, slots: int) -> None:
    put(bench, "gpu", range(-10, 60), 0.9)
    bench.rules = (low(),)
    changed = timedelta(seconds=interval)
    engine = play(bench, 10.1, (5.8, lambda e: adopt(e, replace(e.parts.ruleset, interval=changed))))
    assert engine.missed == 0
    assert slots <= engine.slots <= slots + 8
    assert engine.schedule.interval == changed
    assert bench.chat.sent == []


def test_a_metric_that_nobody_asks_for_any_more_is_not_blind_any_more(bench: Any) -> None:
    async def fail() -> None:
        raise SourceError(Failure.UNSUPPORTED)

    bench.cloud.script["vram/1"] = fail
    put(bench, "gpu", range(-10, 60), 0.9)
    bench.rules = (low(), low("memory", metric="vram"))
    engine = play(bench, 20.2, (8, lambda e: adopt(e, replace(e.parts.ruleset, rules=(low(),)))))
    key = ProbeKey(source="src", capability=Capability.METRICS, task="src/1", item="vram")
    assert key not in engine.world.health.states
    assert [one for one in engine.world.book.open.values() if one.notice is NoticeKind.SOURCE_BLIND] == []
    said = [message.kind for _, message in bench.chat.sent if "cannot read" in message.title]
    assert said == [MessageKind.FIRST, MessageKind.CLOSED]


def test_an_edited_pattern_takes_hold(bench: Any) -> None:
    bench.cloud.line(2.5, "FATAL before")
    bench.cloud.line(6.5, "ERROR after")
    bench.cloud.line(7.5, "FATAL after")
    bench.rules = (errors(),)
    edited = (errors(pattern="FATAL"),)
    play(bench, 12.2, (5, lambda e: adopt(e, replace(e.parts.ruleset, rules=edited))))
    (message,) = [message for _, message in bench.chat.sent if "errors" in message.title]
    assert "FATAL after" in message.body


def test_a_counting_rule_with_other_patterns_forgets_over_a_restart_too(bench: Any) -> None:
    def burst(pattern: str) -> Rule:
        lines = LogMatch(match=(PATTERNS.compile(pattern),))
        comparison = Comparison(above=True, threshold=5)
        return Rule(name="burst", condition=LogCount(lines=lines, within=30 * MINUTE, comparison=comparison))

    for second in range(0, 100, 10):
        bench.cloud.line(1 + second / 60, f"WARN {second}")
    bench.rules = (replace(burst("WARN"), hold=timedelta(hours=5)),)
    play(bench, 5.2)
    bench.rules = (burst("WARN|OTHER"),)
    play(bench, 12)
    assert kinds(bench.chat, "burst") == []


def test_lines_read_for_a_stream_that_was_dropped_meanwhile_are_read_again_by_its_heir(bench: Any) -> None:
    bench.rules = (errors(),)
    for minute in range(1, 20):
        bench.cloud.line(minute + 0.3, f"ERROR {'abcdefghijklmnopqrstuvwxyz'[minute]}{minute * 'y'}")
    answer = bench.cloud.logs

    async def slow(task: Task, query: LogQuery) -> LogPage:
        page: LogPage = await answer(task, query)
        await bench.world.sleep(timedelta(seconds=2))
        return page

    bench.cloud.logs = slow
    narrow, wide = (errors(prefilter="ERROR"),), (errors(),)
    play(
        bench,
        25.2,
        *(
            (at, lambda e, rules=rules: adopt(e, replace(e.parts.ruleset, rules=rules)))
            for at, rules in ((4, narrow), (7, wide), (7.02, narrow), (12, wide))
        ),
    )
    (incident,) = {message.incident for _, message in bench.chat.sent if "errors" in message.title}
    assert bench.state.reader().incident(incident).count == 19


def test_a_hundred_reloads_under_load_lose_nothing_and_double_nothing(new_bench: Callable[[], Any]) -> None:
    """H7: the same training run, with and without a reload every few seconds."""

    def stage() -> Any:
        bench = new_bench()
        for pod in range(3):
            values = [0.9] * 15 + [0.05] * 20 + [0.9] * 40
            put(bench, "gpu", range(-5, 70), values, pod=f"pod-{pod}")
            flips = [0.9 if minute % 8 < 4 else 0.1 for minute in range(-5, 70)]
            put(bench, "vram", range(-5, 70), flips, pod=f"pod-{pod}")
        for minute in range(60):
            kind = "abcdefghij"[minute % 10] * (minute // 10 + 1)
            bench.cloud.line(minute + 0.37, f"ERROR of kind {kind}")
        bench.chat.answers = [REFUSED, DeliveryResult(answer=Answer.OK), REFUSED, REFUSED]
        bench.rules = rules
        return bench

    rules = (low("idle", hold=5), low("flat", metric="vram"), errors(), errors("fatal", "FATAL"))
    edits = (
        rules,
        rules[::-1],
        (*rules, low("more", window=30)),
        tuple(replace(rule, description="said anew") for rule in rules),
        (rules[0], replace(rules[1], repeat=timedelta(hours=9)), *rules[2:]),
    )
    calm, busy = stage(), stage()
    play(calm, 60.1)
    steps = [
        (0.5 + 0.59 * n, lambda e, rules=edits[n % 5]: adopt(e, replace(e.parts.ruleset, rules=rules)))
        for n in range(100)
    ]
    engine = play(busy, 60.1, *steps)

    def told(bench: Any) -> list[tuple[int, str, str]]:
        return sorted(
            (round(at), message.title.split(" · ")[1], str(message.kind))
            for at, message in bench.chat.sent
            if "more" not in message.title
        )

    assert told(busy) == told(calm)
    assert len(told(calm)) > 8
    assert engine.missed == 0
    counts = [
        sum(one.count for one in bench.state.reader().incidents(limit=99) if one.rule == "errors")
        for bench in (calm, busy)
    ]
    assert counts == [60, 60]
    calm.state.discard()
    busy.state.discard()
