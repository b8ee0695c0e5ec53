"""Intake: what arrived becomes part of the world, in the right order and with the right doubts."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import pytest

from watchdog.core.alerts import CloseReason, NoticeKind
from watchdog.core.conditions.kinds import (
    Across,
    Aggregate,
    Capability,
    Comparison,
    LogEvent,
    LogMatch,
    Threshold,
)
from watchdog.core.durations import to_ns
from watchdog.core.health import Failure, Probe, ProbeKey, Standing
from watchdog.core.labels import Labels
from watchdog.core.logs import LogLine, StreamKey, StreamState
from watchdog.core.moments import Moment, Tick
from watchdog.core.rules import Rule
from watchdog.core.ruleset import WatchEntry
from watchdog.core.series import SeriesPoints
from watchdog.core.tasks import Status, Task, TaskObservation, TaskState
from watchdog.engine.inbox import LinesArrived, ListingArrived, PointsArrived, StatusArrived
from watchdog.engine.intake import Arrivals
from watchdog.ports import MetricAnswer, TaskListing

MINUTE = timedelta(minutes=1)


def low(metric: str = "gpu") -> Rule:
    condition = Threshold(
        metric=metric,
        aggregate=Aggregate.LAST,
        window=None,
        comparison=Comparison(above=False, threshold=0.1),
        across=Across.AVG,
    )
    return Rule(name=f"low-{metric}", condition=condition)


class Lab:
    """An engine's intake, slot by slot, without an engine around it."""

    def __init__(self, bench) -> None:  # type: ignore[no-untyped-def]
        self.bench = bench
        bench.rules = (low(), low("vram"))
        self.make()

    def make(self) -> None:
        self.engine = self.bench.engine()
        self.world, self.inbox = self.engine.world, self.engine.world.inbox
        self.world.tasks_changed()
        self.minute = 0

    def at(self, minute: float) -> datetime:
        return self.bench.world.start + minute * MINUTE

    def take(self, minutes: int = 1) -> Arrivals:
        """Take in what is in the inbox, at the next slot."""
        self.minute += minutes
        moment = Moment(at=self.at(self.minute), watched=self.minute * MINUTE)
        tick = Tick(moment=moment, elapsed=minutes * MINUTE, run=moment.watched, interval=MINUTE)
        self.world.now = tick.at
        return self.engine.runner.intake.take(self.inbox.drain(), tick)

    def listing(self, *rows: TaskObservation, complete: bool = True) -> None:
        self.inbox.listings.append(
            ListingArrived(
                source="src", listing=TaskListing(tasks=rows, complete=complete), at=self.at(self.minute)
            )
        )
        self.probe(Capability.LIST)

    def row(self, number: str, name: str, status: Status = Status.RUNNING, text: str = "") -> TaskObservation:
        task = Task(key=f"src/{name}", source="src", id=number, name=name)
        return TaskObservation(task=task, status=status, status_text=text or status.value)

    def status(self, status: Status, text: str = "", task: Task | None = None) -> None:
        task = task or self.only().task
        seen = TaskObservation(task=task, status=status, status_text=text or status.value)
        self.inbox.statuses.append(StatusArrived(observation=seen, at=self.at(self.minute)))
        self.probe(Capability.STATUS, task.key)

    def points(self, metric: str, minutes: Sequence[float], task: Task | None = None, **labels: str) -> None:
        task = task or self.only().task
        times = np.array([to_ns(self.at(minute)) for minute in minutes], np.int64)
        series = SeriesPoints(labels=task.identity.plus(labels), times=times, values=np.full(times.size, 0.5))
        answer = MetricAnswer(series=(series,) if minutes else ())
        self.inbox.points.append(
            PointsArrived(task=task, metric=metric, answer=answer, at=self.at(self.minute + 1))
        )
        self.probe(Capability.METRICS, task.key, metric)

    def lines(self, *texts: str, remarks: tuple[str, ...] = (), arrived: float | None = None) -> StreamState:
        task = self.only().task
        when = to_ns(self.at(self.minute + 1 if arrived is None else arrived))
        state = StreamState(
            key=StreamKey(task=task.key),
            cursor_ns=when,
            lines=len(texts),
            arrived_ns={"pod-0": when} if texts else {},
        )
        self.inbox.lines.append(
            LinesArrived(
                task=task,
                state=state,
                lines=tuple(LogLine(when, "pod-0", text) for text in texts),
                remarks=remarks,
            )
        )
        self.probe(Capability.LOGS, task.key)
        return state

    def probe(
        self, capability: Capability, task: str = "", item: str = "", failure: Failure | None = None
    ) -> None:
        key = ProbeKey(source="src", capability=capability, task=task, item=item)
        self.inbox.probes.append(Probe(key=key, at=self.at(self.minute + 1), failure=failure))

    def only(self) -> TaskState:
        (state,) = self.world.states.values()
        return state

    def standing(self, metric: str) -> Standing:
        return self.world.standing(
            ProbeKey(source="src", capability=Capability.METRICS, task=self.only().task.key, item=metric)
        )

    def detail(self, metric: str) -> tuple[Failure | None, str]:
        key = ProbeKey(source="src", capability=Capability.METRICS, task=self.only().task.key, item=metric)
        state = self.world.health.states[key]
        return state.failure, state.detail


@pytest.fixture
def lab(bench) -> Lab:  # type: ignore[no-untyped-def]
    made = Lab(bench)
    made.take()
    return made


@pytest.fixture
def by_name(bench) -> Lab:  # type: ignore[no-untyped-def]
    bench.watch = (WatchEntry(source="src", name="llama*"),)
    bench.cloud.capabilities = frozenset(Capability) - {Capability.STATUS}
    return Lab(bench)


# --- which tasks


def test_a_task_watched_by_id_is_there_without_any_list(lab: Lab) -> None:
    assert lab.only().task.key == "src/1"
    assert lab.only().status is Status.UNKNOWN


def test_a_task_found_by_name_is_followed_to_a_new_id(by_name: Lab) -> None:
    by_name.listing(by_name.row("7", "llama"), by_name.row("8", "other"))
    by_name.take()
    assert (by_name.only().task.key, by_name.only().task.id) == ("src/llama", "7")
    by_name.listing(by_name.row("7", "llama", Status.FAILED))
    found = by_name.take()
    assert [(change.before, change.after) for change in found.changes] == [(Status.RUNNING, Status.FAILED)]
    by_name.listing(by_name.row("9", "llama"))
    found = by_name.take()
    state = by_name.only()
    assert (state.task.key, state.task.id, state.attempt) == ("src/llama", "9", 2)
    assert [(change.before, change.after) for change in found.changes] == [(Status.FAILED, Status.RUNNING)]
    assert found.dropped_tasks == []


def test_an_answer_about_an_attempt_that_is_over_changes_nothing(lab: Lab) -> None:
    old = replace(lab.only().task, id="0")
    lab.status(Status.FAILED, task=old)
    assert lab.take().changes == []
    assert lab.only().status is Status.UNKNOWN


def test_vanishing_needs_two_whole_lists(by_name: Lab) -> None:
    rows = [by_name.row(str(n), f"other-{n}") for n in range(3)]
    by_name.listing(by_name.row("7", "llama"), *rows)
    by_name.take()
    by_name.listing(*rows, complete=False)
    by_name.listing(*rows, complete=False)
    assert by_name.take().changes == []
    by_name.listing(*rows)
    assert by_name.take().changes == []
    by_name.listing(*rows)
    (change,) = by_name.take().changes
    assert change.after is Status.VANISHED


def test_a_list_that_shrank_suspiciously_counts_for_nothing(by_name: Lab) -> None:
    rows = [by_name.row(str(n), f"other-{n}") for n in range(8)]
    by_name.listing(by_name.row("17", "llama"), *rows)
    by_name.take()
    by_name.listing(rows[0])
    by_name.take()
    by_name.listing(rows[0])
    assert by_name.take().changes == []
    by_name.listing(rows[0])
    (change,) = by_name.take().changes
    assert change.after is Status.VANISHED


def test_a_task_that_no_entry_names_any_more_is_dropped_with_all_that_is_known_of_it(lab: Lab) -> None:
    lab.points("gpu", [1], pod="pod-0")
    lab.lines("ERROR")
    lab.take()
    lab.world.remember("unrelated")
    assert any("src/1" in fact for fact in lab.world.memory) is False
    lab.points("gpu", [2], pod="pod-0")
    lab.inbox.points[-1] = replace(
        lab.inbox.points[-1], answer=replace(lab.inbox.points[-1].answer, remarks=("suspect: 8000 % in gpu",))
    )
    found = lab.take()
    list(lab.engine.runner.selfwatch.notices({}, found, tick_at(lab)))
    assert any(fact.endswith("src/1") for fact in lab.world.memory)
    lab.world.memory_changes()
    lab.world.ruleset = replace(lab.world.ruleset, watch=())
    found = lab.take()
    assert found.dropped_tasks == ["src/1"]
    world = lab.world
    assert (world.states, world.streams, world.readers) == ({}, {}, {})
    assert world.series.newest("src", "gpu", "src/1") == 0
    assert not [key for key in world.health.states if key.task]
    assert not any(fact.endswith("src/1") for fact in world.memory)
    _, dropped = world.memory_changes()
    assert len(dropped) == 1


def tick_at(lab: Lab) -> Tick:
    moment = Moment(at=lab.at(lab.minute), watched=lab.minute * MINUTE)
    return Tick(moment=moment, elapsed=MINUTE, run=moment.watched, interval=MINUTE)


def test_an_unknown_status_word_is_said_once_for_ever(lab: Lab) -> None:
    lab.status(Status.UNKNOWN, "Hibernating")
    (notice,) = lab.take().notices
    assert (notice.kind, notice.params["status"]) == (NoticeKind.UNKNOWN_STATUS, "Hibernating")
    added, _ = lab.world.memory_changes()
    assert len(added) == 1, "a restart remembers"
    lab.status(Status.RUNNING)
    lab.take()
    lab.status(Status.UNKNOWN, "Hibernating")
    assert lab.take().notices == []
    lab.status(Status.UNKNOWN, "Dreaming")
    assert len(lab.take().notices) == 1


# --- points


def test_points_and_probes_of_one_slot_become_one_probe_each(lab: Lab) -> None:
    lab.points("gpu", [1, 2], pod="pod-0")
    lab.probe(Capability.METRICS, "src/1", "gpu", Failure.TIMEOUT)
    lab.points("gpu", [2], pod="pod-0")
    lab.take()
    key = ProbeKey(source="src", capability=Capability.METRICS, task="src/1", item="gpu")
    assert lab.world.health.states[key].failures == 1, "a failure of any part counts, and once"


def test_probes_of_tasks_that_are_not_watched_leave_no_trace(lab: Lab) -> None:
    lab.probe(Capability.METRICS, "src/2", "gpu", Failure.FORBIDDEN)
    lab.take()
    assert not [key for key in lab.world.health.states if key.task == "src/2"]


@pytest.mark.parametrize(
    ("logged", "diagnosis"),
    [
        (True, "the metrics path is broken: the task runs and logs"),
        (False, "wedged or blind: the task is said to run, but neither metrics nor logs come"),
    ],
)
def test_a_stale_newest_point_is_a_failure_and_says_what_it_means(
    lab: Lab, logged: bool, diagnosis: str
) -> None:
    lab.status(Status.RUNNING)
    lab.points("gpu", [1], pod="pod-0")
    lab.points("vram", [1], pod="pod-0")
    lab.lines("step 1")
    lab.take()
    assert lab.standing("gpu") is Standing.GOOD
    for minute in range(2, 9):
        lab.points("gpu", [1], pod="pod-0")
        lab.points("vram", [minute], pod="pod-0")
        if logged:
            lab.lines(f"step {minute}")
        lab.take()
    assert lab.detail("gpu") == (Failure.STALE, f"{diagnosis}: gpu: 8m old (02:01:00Z)")
    assert lab.standing("gpu") is Standing.FAILING
    assert lab.standing("vram") is Standing.GOOD


def test_a_task_that_does_not_run_has_no_stale_points(lab: Lab) -> None:
    lab.status(Status.QUEUED)
    for _ in range(9):
        lab.points("gpu", [1], pod="pod-0")
        lab.take()
    assert lab.standing("gpu") is Standing.GOOD


def test_points_from_the_future_are_a_clock_that_is_wrong(lab: Lab) -> None:
    lab.status(Status.RUNNING)
    lab.points("gpu", [30], pod="pod-0")
    lab.take()
    failure, detail = lab.detail("gpu")
    assert failure is Failure.CLOCK_SKEW
    assert detail == "gpu: 28m in the future (02:30:00Z)"


def test_an_answer_without_series_is_an_answer(lab: Lab) -> None:
    lab.points("gpu", [])
    lab.take()
    assert lab.standing("gpu") is Standing.GOOD


# --- members


def test_members_are_noted_and_those_of_an_ended_task_retire_in_silence(lab: Lab) -> None:
    lab.status(Status.RUNNING)
    for pod in ("pod-0", "pod-1"):
        for gpu in ("0", "1"):
            lab.points("gpu", [1], pod=pod, gpu=gpu)
    lab.take()
    assert {member.labels for member in lab.only().expected} == {
        *(Labels.of(pod=pod) for pod in ("pod-0", "pod-1")),
        *(Labels.of(pod=pod, gpu=gpu) for pod in ("pod-0", "pod-1") for gpu in ("0", "1")),
    }
    lab.status(Status.SUCCEEDED)
    found = lab.take()
    assert lab.only().expected == ()
    assert found.notices == []


def test_pods_that_others_replace_retire_with_one_quiet_note(lab: Lab) -> None:
    lab.status(Status.RUNNING)
    for minute in range(1, 5):
        lab.points("gpu", [minute], pod="old-0", gpu="0")
        lab.take()
    said = []
    for minute in range(5, 14):
        lab.points("gpu", [minute], pod="new-0", gpu="0")
        said += lab.take().notices
    (notice,) = said
    assert (notice.kind, notice.params["pods"]) == (NoticeKind.SET_RETIRED, "old-0")
    assert {member.labels["pod"] for member in lab.only().expected} == {"new-0"}


def test_nobody_is_missed_while_metrics_cannot_be_read(lab: Lab) -> None:
    lab.status(Status.RUNNING)
    lab.points("gpu", [1], pod="pod-0", gpu="0")
    lab.points("vram", [1], pod="pod-0", gpu="0")
    lab.take()
    for _ in range(20):
        lab.probe(Capability.METRICS, "src/1", "gpu", Failure.TIMEOUT)
        lab.probe(Capability.METRICS, "src/1", "vram", Failure.TIMEOUT)
        lab.take()
    assert {member.missing for member in lab.only().expected} == {timedelta()}


# --- lines


def test_lines_are_handed_on_with_the_stream_that_has_consumed_them(lab: Lab) -> None:
    state = lab.lines("one", "two")
    found = lab.take()
    ((task, key, lines),) = found.lines
    assert (task.key, key, [line.text for line in lines]) == ("src/1", state.key, ["one", "two"])
    assert found.streams == {state.key: state} == lab.world.streams


def test_what_a_source_says_of_dropped_rows_is_told_once(lab: Lab) -> None:
    told = []
    for count in (3, 5):
        lab.lines("text", remarks=(f"{count} log rows have no readable time; dropped",))
        found = lab.take()
        told += list(lab.engine.runner.selfwatch.notices({}, found, tick_at(lab)))
    remarks = [notice for notice in told if notice.kind is NoticeKind.SOURCE_REMARK]
    assert [notice.params["remark"] for notice in remarks] == ["3 log rows have no readable time; dropped"]


def test_lines_of_a_task_that_is_not_watched_any_more_are_dropped(lab: Lab) -> None:
    lab.lines("one")
    lab.world.ruleset = replace(lab.world.ruleset, watch=())
    found = lab.take()
    assert (found.lines, found.streams) == ([], {})


def test_incidents_of_a_task_that_is_not_watched_any_more_close_as_such(
    lab: Lab, is_open: Callable[[Lab], None]
) -> None:
    is_open(lab)
    lab.world.ruleset = replace(lab.world.ruleset, watch=())
    found = lab.take()
    closed = [incident for step in found.steps for incident in step.incidents]
    assert [incident.close_reason for incident in closed] == [CloseReason.UNWATCHED]


@pytest.fixture
def is_open() -> Callable[[Lab], None]:
    """Have an incident open about the task."""

    def opened(lab: Lab) -> None:
        rule = Rule(
            name="errors", condition=LogEvent(lines=LogMatch(match=(lab.bench.patterns.compile("ERROR"),)))
        )
        lab.bench.rules = (rule,)
        lab.make()
        lab.take()
        lab.lines("ERROR here")
        lab.minute += 1
        lab.engine.runner.run(lab.inbox.drain(), tick_at(lab), ())
        assert lab.world.book.open

    return opened
