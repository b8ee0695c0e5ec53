"""Whatever happens, in whatever order: never silent, never a lie, never a nag.

Random scenarios (see `conftest`) are played by the live engine; an oracle that knows only the script
says what may and what must have been told.
"""

import logging
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from watchdog.config.build import Knowledge
from watchdog.core.alerts import CloseReason, Incident
from watchdog.core.moments import Tick
from watchdog.core.notifications import MessageKind
from watchdog.engine.engine import Engine
from watchdog.replay.files import Prepared, prepare
from watchdog.replay.play import Play
from watchdog.replay.world import Sent
from watchdog.store.memory import MemoryState
from watchdog.text.patterns import Re2Engine
from watchdog.text.templates import compile_template

KNOWLEDGE = Knowledge(engine=Re2Engine(), kinds={})
MINUTE = timedelta(minutes=1)
FRESH = 7  # minutes: a point older than this cannot have been the newest one
BEGINNINGS = (MessageKind.FIRST, MessageKind.COMBINED)
ENDINGS = (MessageKind.CLOSED, MessageKind.COMBINED)
TASK_RULES = {"low0": 0, "low5": 5, "low10": 10, "keep": 5}
LONGEST = 110
UNSTORED = 99


def mins(offset: timedelta) -> float:
    return offset / MINUTE


def when(text: str) -> float:
    """Minutes of a time of the script."""
    unit = {"s": 1 / 60, "m": 1, "h": 60}[text[-1]]
    return float(text[:-1]) * unit


@dataclass
class Told:
    """What came of a performance. opened, closed: minutes by incident; known: by task, since when watched."""

    case: Any
    sent: tuple[Sent, ...] = ()
    incidents: dict[str, Incident] = field(default_factory=dict)
    opened: dict[str, float] = field(default_factory=dict)
    closed: dict[str, float] = field(default_factory=dict)
    known: dict[str, float] = field(default_factory=dict)
    slots: list[list[tuple[timedelta, int]]] = field(default_factory=list)  # by life: monotonic, missed
    engine: Engine | None = None

    def of(self, rule: str) -> list[Sent]:
        return [message for message in self.sent if message.rule == rule]


def perform(case: Any, path: Path) -> Told:
    path.write_text(case.text, encoding="utf-8")
    prepared: Prepared = prepare(path, KNOWLEDGE)
    state = MemoryState()
    told = Told(case)
    play = Play(
        scenario=prepared.scenario,
        ruleset=prepared.ruleset,
        rulesets=prepared.rulesets,
        open_store=state.open,
        patterns=KNOWLEDGE.engine,
        compile_template=compile_template,
    )

    def on_slot(engine: Engine, tick: Tick) -> None:
        now = mins(play.offset())
        told.slots[-1].append((engine.parts.clock.monotonic(), tick.missed))
        for state in engine.world.states.values():
            told.known.setdefault(state.task.name, now)
        for incident in engine.world.incidents.values():
            told.incidents[incident.id] = incident
        here = {incident.id for incident in engine.world.book.open.values()}
        for one in here - told.opened.keys():
            told.opened[one] = now
        for one in told.opened.keys() - here - told.closed.keys():
            told.closed[one] = now

    def on_life(engine: Engine) -> None:
        told.engine = engine
        told.slots.append([])
        engine.on_slot = on_slot

    play.on_life = on_life
    logging.disable(logging.CRITICAL)
    try:
        told.sent = play.run()
        told.incidents |= {one.id: one for one in state.reader().incidents(limit=10_000)}
        if not any("jump" in row for row in case.part("events")):  # the slot of a crash tells nobody its time
            start = prepared.scenario.start
            told.opened = {key: mins(one.opened_at - start) for key, one in told.incidents.items()}
            told.closed = {
                key: mins(one.closed_at - start) for key, one in told.incidents.items() if one.closed_at
            }
    finally:
        logging.disable(logging.NOTSET)
        state.discard()
    return told


class Truth:
    """What the script says, without any of the engine's code."""

    def __init__(self, case: Any) -> None:
        self.case = case
        self.pods: dict[tuple[str, str], list[tuple[float, float, str]]] = {}
        self.lag: dict[tuple[str, str], float] = {}
        for row in case.part("series"):
            begin, stretches = -30.0, []
            for part in row["values"].split(", "):
                value, _, until = part.partition(" until ")
                end = when(until) if until else 1e9
                stretches.append((begin, end, value))
                begin = end
            self.pods[row["task"], row["pod"]] = stretches
            self.lag[row["task"], row["pod"]] = when(row.get("lag", "0s"))

    def value(self, task: str, pod: str, minute: float) -> str:
        """low, high, none, or both where it swings."""
        for begin, end, value in self.pods[task, pod]:
            if begin <= minute < end:
                return {"95%": "high", "5%": "low", "none": "none"}.get(value, "both")
        return "none"

    def seen(self, task: str, pod: str, begin: float, end: float) -> set[str]:
        """What the points in (begin, end] that are visible at `end` say."""
        last = end - self.lag[task, pod]
        points = range(int(begin) + 1, int(last + 1e-6) + 1)
        return {self.value(task, pod, minute) for minute in points if begin < minute <= last + 1e-6} - {
            "none"
        }

    def pods_of(self, task: str) -> list[str]:
        return [pod for own, pod in self.pods if own == task]

    def all_low(self, task: str, begin: float, end: float) -> bool:
        """Whether no point in (begin, end] shows any GPU of the task above the level."""
        return all(self.seen(task, pod, begin, end) <= {"low"} for pod in self.pods_of(task))

    def steady(self, task: str, value: str, begin: float, end: float) -> bool:
        """Whether every pod has this value at every minute of [begin, end]."""
        return all(
            self.value(task, pod, minute) == value
            for pod in self.pods_of(task)
            for minute in range(int(begin), int(end) + 1)
        )

    def statuses(self, task: str) -> list[tuple[float, str, bool]]:
        first = next(row["status"] for row in self.case.part("tasks") if row["name"] == task)
        rows = [row for row in self.case.part("statuses") if row["task"] == task]
        found = [(when(row["at"]), row["status"], row.get("listed", True)) for row in rows]
        return [(-1e9, first, True), *sorted(found, key=lambda one: one[0])]

    def always_running(self, task: str) -> bool:
        return all(status == "running" and listed for _, status, listed in self.statuses(task))

    def troubles(self) -> list[tuple[float, float]]:
        """Spans in which anything but metrics, lines and statuses happens."""
        spans = [(when(row["from"]), when(row["until"])) for row in self.case.part("faults")]
        keys = ("restart", "kill", "down", "stall", "suspend", "disk_full")
        for row in self.case.part("events"):
            lasts = sum(when(row[key]) for key in keys if key in row)
            spans.append((when(row["at"]), when(row["at"]) + lasts + 1))
        return spans

    def clock_is_right(self) -> bool:
        jumps = [row["jump"] for row in self.case.part("events") if "jump" in row]
        return not any(abs(when(jump.strip("-"))) > 2 for jump in jumps)

    def calm(self, begin: float, end: float) -> bool:
        return not any(begin <= until and since <= end for since, until in self.troubles())


def allowance(case: Any, channel: str) -> int:
    """How many messages may come twice."""
    deadly = ("kill", "crash", "restart")
    deaths = sum(any(key in row for key in deadly) for row in case.part("events"))
    if any("disk_full" in row for row in case.part("events")) and deaths:
        return UNSTORED  # what was not stored is done again, as another incident
    answers = [row for row in case.part("answers") if row["channel"] == channel]
    unknown = sum(row.get("times", 1) for row in answers if row["answer"] == "unknown")
    return deaths + unknown


def works(case: Any, channel: str) -> bool:
    """Whether a channel never refuses for good what it was sent."""
    bad = ("permanent", "too long")
    return not any(row["answer"] in bad and row["channel"] == channel for row in case.part("answers"))


# --- what must hold


def told_once(told: Told) -> Iterator[str]:
    # An incident's id is made of the wall clock's time: when that is shown again, to the second, an hour
    # after it was set back, two incidents can have the same.
    if any(row.get("jump", "").startswith("-1h") for row in told.case.part("events")):
        return
    groups: dict[tuple[str, str], list[Sent]] = defaultdict(list)
    for message in told.sent:
        groups[message.incident, message.channel].append(message)
    for (incident, channel), messages in groups.items():
        spare = allowance(told.case, channel)
        kinds = [message.kind for message in messages]
        first = sum(kind in BEGINNINGS for kind in kinds)
        ends = sum(kind in ENDINGS for kind in kinds)
        who = f"{incident} {messages[0].rule} on {channel}: {[(str(m.kind), mins(m.at)) for m in messages]}"
        if not first:
            yield f"told without a beginning: {who}"
        if kinds[0] not in BEGINNINGS:
            yield f"does not begin with the beginning: {who}"
        if first > 1 + spare or ends > 1 + spare:
            yield f"told more than once: {who}"
        if ends and kinds[-1] not in ENDINGS and not spare:
            yield f"goes on after its end: {who}"
        one = told.incidents.get(incident)
        aloud = (
            one is not None and not one.open and not one.event and one.close_reason is not CloseReason.QUIET
        )
        if aloud and not ends and works(told.case, channel) and spare < UNSTORED:
            yield f"its end was never told: {who}"


def reminders_wait(told: Told) -> Iterator[str]:
    repeat = when(told.case.tree["defaults"]["repeat"])
    last: dict[tuple[str, str], tuple[float, str]] = {}
    for message in told.sent:
        key = (message.incident, message.channel)
        now = mins(message.at)
        before, title = last.get(key, (-1e9, ""))
        # The same one may come again, or all that was decided on a full disk.
        again = allowance(told.case, message.channel) > (0 if message.title == title else 10)
        if message.kind is MessageKind.REMINDER and now - before < repeat - 0.1 and not again:
            yield f"reminder after {now - before:.1f} min: {message.title}"
        last[key] = now, message.title


def every_error_is_told(told: Told) -> Iterator[str]:
    rules = {row["name"] for row in told.case.part("rules")}
    if "err" not in rules:
        return
    texts: dict[str, str] = defaultdict(str)
    for message in told.sent:
        texts[message.channel] += message.text
    unread = ("watchdog/log lines unread", "watchdog/first read of a log")
    said = any(message.rule in unread for message in told.sent)
    for channel, options in told.case.tree["channels"].items():
        if "max_bytes" in options or "min_severity" in options or not works(told.case, channel):
            continue
        for row in told.case.part("logs"):
            if when(row["at"]) <= told.known.get(row["task"], 1e9):
                continue  # printed before a list named the task: only what happens from then on is told
            word = row["text"].split()[1]
            if row["text"].startswith("ERROR") and word not in texts[channel] and not said:
                yield f"{channel} was not told of {row}"


def recovered_is_true(told: Told, truth: Truth) -> Iterator[str]:
    if not truth.clock_is_right():
        return  # an hour behind, it comes to pass over old points as if they were new
    for key, one in told.incidents.items():
        if one.close_reason is not CloseReason.RECOVERED or one.notice is not None or key not in told.closed:
            continue
        end, task = told.closed[key], one.labels.get("task_name", "")
        who = f"{one.rule} of {task} {key}, open {told.opened.get(key)}..{end:.2f}"
        window = 5 if one.rule == "gpus" else 0
        if one.rule in (*TASK_RULES, "grows", "pods", "gpus"):
            if truth.all_low(task, end - window - FRESH, end):
                yield f"recovered, but no data shows it: {who}"
        elif one.rule in ("absent", "pod-gone"):
            pods = {member.labels.get("pod", "") for member in one.members}
            if not any(truth.seen(task, pod, end - FRESH - 1, end) for pod in pods):
                yield f"recovered, but nothing came: {who}"
        elif one.rule == "waits":
            status = [status for since, status, _ in truth.statuses(task) if since <= end][-1]
            if status in ("queued", "failed", "succeeded"):
                yield f"recovered, but is {status}: {who}"


def fired_is_true(told: Told, truth: Truth) -> Iterator[str]:
    for key, one in told.incidents.items():
        if one.rule not in TASK_RULES or key not in told.opened:
            continue
        begin, task = told.opened[key], one.labels.get("task_name", "")
        start = begin - max(TASK_RULES[one.rule] - 2, 0)
        if all(truth.seen(task, pod, start - 2, begin) == {"high"} for pod in truth.pods_of(task)):
            yield f"fired, but all was well: {one.rule} of {task} at {begin:.2f}"


def outage_changes_nothing(told: Told, truth: Truth) -> Iterator[str]:
    faults = told.case.part("faults")
    if any("takes" in row for row in faults):
        return
    for row in faults:
        if "capability" in row or "task" in row or "partial_list" in row:
            continue
        begin, end = when(row["from"]), when(row["until"])
        for key, one in told.incidents.items():
            if one.notice is not None or one.event:
                continue
            for what, moments in (("opened", told.opened), ("closed", told.closed)):
                if begin < moments.get(key, -1e9) < end:
                    yield f"{one.rule} {what} at {moments[key]:.2f} in the outage {begin}..{end}"
        others = [span for span in truth.troubles() if span != (begin, end)]
        alone = len(others) == len(truth.troubles()) - 1 and not any(
            since <= end + 20 and begin - 20 <= until for since, until in others
        )
        blind = [
            one
            for key, one in told.incidents.items()
            if one.rule == "watchdog/source blind" and begin <= told.opened.get(key, -1e9) <= end
        ]
        if alone and len(blind) > 1:
            yield f"{len(blind)} messages about one outage {begin}..{end}: {[dict(b.params) for b in blind]}"


def the_end_is_right(told: Told, truth: Truth) -> Iterator[str]:
    engine = told.engine
    assert engine is not None
    for row in engine.relay.rows.values():
        yield f"still waiting at the end: {row}"
    open_now = {(one.rule, one.labels.get("task_name", "")) for one in engine.world.book.open.values()}
    for rule, _ in open_now:
        if rule in ("watchdog/channel broken", "watchdog/state not stored", "watchdog/source blind"):
            holes = any("none" in row["values"] for row in told.case.part("series"))
            stale = holes or not truth.clock_is_right()
            if rule != "watchdog/source blind" or not stale:
                said = [dict(one.params) for one in engine.world.book.open.values()]
                yield f"still said at the end: {rule} {said}"
    rules = {row["name"] for row in told.case.part("rules")}
    for task in {row["name"] for row in told.case.part("tasks")}:
        if not (truth.always_running(task) and truth.clock_is_right()):
            continue
        for rule in rules & TASK_RULES.keys():
            if truth.steady(task, "low", LONGEST - 40, LONGEST) and (rule, task) not in open_now:
                yield f"{rule} of {task} is true at the end and does not fire"
            if truth.steady(task, "high", LONGEST - 40, LONGEST) and (rule, task) in open_now:
                yield f"{rule} of {task} is false at the end and fires"


def what_is_true_fires(told: Told, truth: Truth) -> Iterator[str]:
    rules = {row["name"] for row in told.case.part("rules")}
    for task in {row["name"] for row in told.case.part("tasks")}:
        if not (truth.always_running(task) and truth.clock_is_right()):
            continue
        for rule in rules & TASK_RULES.keys():
            hold = TASK_RULES[rule]
            for begin in range(20, LONGEST - 30):
                end = begin + hold + 4
                if truth.steady(task, "low", begin, end + 3) and truth.calm(begin - 40, end + 2):
                    spans = [
                        (told.opened[key], told.closed.get(key, 1e9))
                        for key, one in told.incidents.items()
                        if one.rule == rule and one.labels.get("task_name") == task and key in told.opened
                    ]
                    if not any(since <= end <= until for since, until in spans):
                        yield f"{rule} of {task} is true from {begin} on and does not fire by {end}: {spans}"
                        break


def no_slot_is_skipped(told: Told) -> Iterator[str]:
    for life in told.slots:
        passed = (life[-1][0] - life[0][0]) / MINUTE if life else 0
        counted = sum(1 + missed for _, missed in life[1:])
        if abs(passed - counted) > 1.1:
            yield f"{passed:.1f} intervals passed, {counted} were counted"


def messages_fit(told: Told) -> Iterator[str]:
    for message in told.sent:
        options = told.case.tree["channels"][message.channel]
        if len(message.body.encode()) > options.get("max_bytes", 6000) or len(message.title.encode()) > 200:
            yield f"too long: {message.title}"
        if message.incident not in message.body:
            yield f"does not name its incident: {message.text}"


def violations(told: Told) -> list[str]:
    truth = Truth(told.case)
    return [
        *told_once(told),
        *reminders_wait(told),
        *every_error_is_told(told),
        *recovered_is_true(told, truth),
        *fired_is_true(told, truth),
        *outage_changes_nothing(told, truth),
        *the_end_is_right(told, truth),
        *what_is_true_fires(told, truth),
        *no_slot_is_skipped(told),
        *messages_fit(told),
    ]


SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture)


@pytest.mark.timeout(900)
@settings(max_examples=30, deadline=None, suppress_health_check=SLOW)
@given(data=st.data())
def test_whatever_happens(data: st.DataObject, cases: Any, tmp_path: Any) -> None:
    case = data.draw(cases)
    found = violations(perform(case, tmp_path / "random.yaml"))
    assert not found, "\n".join(found)


@settings(max_examples=4, deadline=None, suppress_health_check=SLOW)
@given(data=st.data())
def test_twice_the_same_is_twice_the_same(data: st.DataObject, cases: Any, tmp_path: Path) -> None:
    case = data.draw(cases)
    first, second = (perform(case, tmp_path / "random.yaml") for _ in range(2))
    assert first.sent == second.sent


@settings(max_examples=4, deadline=None, suppress_health_check=SLOW)
@given(data=st.data(), minute=st.integers(-3, 60), how=st.sampled_from(("restart", "kill")))
def test_a_restart_between_two_slots_is_no_news(
    data: st.DataObject, calm_cases: Any, minute: int, how: str, tmp_path: Path
) -> None:
    case = data.draw(calm_cases)
    event = {"at": f"{minute}m", how: "0s"}
    restarted = type(case)({**case.tree, "events": [event]})
    plain, other = (perform(one, tmp_path / "random.yaml") for one in (case, restarted))
    # What comes and goes is forgotten by a start: how much patience it deserves is learnt anew.
    assume(not any(one.returns for told in (plain, other) for one in told.incidents.values()))
    end = (LONGEST - 5) * MINUTE  # slots lie a little later after a restart: the last ones may fall off
    for rule in TASK_RULES:
        before, after = (
            sorted((m.task, m.channel, m.kind) for m in told.of(rule) if m.at < end)
            for told in (plain, other)
        )
        assert before == after, rule
