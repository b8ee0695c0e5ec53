"""A small laboratory for evaluation tests: tasks, points and streams by the minute."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from watchdog.core.conditions.kinds import Capability
from watchdog.core.durations import MINUTE_NS, to_ns
from watchdog.core.evaluation import View, evaluate, occurrences
from watchdog.core.health import ProbeKey, Standing
from watchdog.core.labels import Labels
from watchdog.core.logs import StreamKey, StreamState
from watchdog.core.outcomes import Evaluation, Occurrence, Outcome
from watchdog.core.rules import Rule
from watchdog.core.series import SeriesPoints, SeriesStore
from watchdog.core.tasks import Seen, Status, StatusChange, Task, TaskState

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


class Lab:
    """Minutes are counted from `START`; the source is `src`, the task `src/1` unless said otherwise."""

    def __init__(self) -> None:
        self.store = SeriesStore()
        self.tasks: dict[str, TaskState] = {}
        self.streams: dict[str, tuple[StreamState, ...]] = {}
        self.standings: dict[tuple[Capability, str], Standing] = {}
        self.poll = {"src": timedelta(seconds=60)}
        self.units: dict[tuple[str, str], str] = {}
        self.steps: dict[tuple[str, str], timedelta] = {}
        self.task()

    @staticmethod
    def at(minute: float) -> datetime:
        return START + timedelta(minutes=minute)

    @staticmethod
    def ns(minute: float) -> int:
        return to_ns(START) + round(minute * MINUTE_NS)

    def task(self, key: str = "src/1", *, status: Status = Status.RUNNING, **more: object) -> TaskState:
        source, number = key.split("/")
        task = Task(key=key, source=source, id=number, name=f"run-{number}")
        self.tasks[key] = TaskState(task=task, status=status, **more)
        return self.tasks[key]

    def change(self, key: str = "src/1", **more: object) -> TaskState:
        self.tasks[key] = replace(self.tasks[key], **more)
        return self.tasks[key]

    def expect(self, members: Iterable[dict[str, str]], key: str = "src/1", *, seen: float = 0) -> None:
        moment = self.at(seen)
        expected = tuple(Seen(labels=Labels(one), first=moment, last=moment) for one in members)
        self.change(key, expected=expected)

    def labels(self, key: str = "src/1", **more: str) -> Labels:
        return self.tasks[key].task.identity.plus(more)

    def series(
        self, minutes: Sequence[float], values: Sequence[float] | float, key: str = "src/1", **more: str
    ) -> SeriesPoints:
        return SeriesPoints(
            labels=self.labels(key, **more),
            times=np.array([self.ns(minute) for minute in minutes], np.int64),
            values=np.broadcast_to(np.asarray(values, np.float64), (len(minutes),)).copy(),
        )

    def put(
        self,
        metric: str,
        minutes: Sequence[float],
        values: Sequence[float] | float,
        key: str = "src/1",
        *,
        when: float | None = None,
        **more: str,
    ) -> None:
        """Take in points of one series, as if answered at the last of them (or at `when`)."""
        at_ns = self.ns(max(minutes) if when is None else when)
        self.store.keep("src", metric, timedelta(hours=6))
        self.store.intake("src", metric, [self.series(minutes, values, key, **more)], at_ns)

    def stream(
        self,
        key: str = "src/1",
        *,
        arrived: dict[str, float],
        newest: dict[str, float] | None = None,
        prefilter: str = "",
    ) -> None:
        state = StreamState(
            key=StreamKey(task=key, prefilter=prefilter),
            cursor_ns=0,
            arrived_ns={pod: self.ns(minute) for pod, minute in arrived.items()},
            newest_ns={pod: self.ns(minute) for pod, minute in (newest or arrived).items()},
        )
        self.streams[key] = (*self.streams.get(key, ()), state)

    def standing(self, key: ProbeKey) -> Standing:
        return self.standings.get((key.capability, key.task), Standing.GOOD)

    def view(self, changes: tuple[StatusChange, ...] = ()) -> View:
        return View(
            series=self.store,
            tasks=self.tasks,
            standing=self.standing,
            streams=self.streams,
            poll=self.poll,
            changes=changes,
            units=self.units,
            steps=self.steps,
        )

    def evaluate(self, rule: Rule, *minutes: float) -> Evaluation:
        return evaluate(rule, self.view(), np.array([self.ns(minute) for minute in minutes], np.int64))

    def judge(self, rule: Rule, minute: float) -> dict[str, Outcome]:
        """One slot's verdicts by "pod/gpu", "pod", the node, or "" for the task."""
        found = self.evaluate(rule, minute)
        return {
            name(labels): Outcome(int(code))
            for labels, code in zip(found.labels, found.outcome[:, 0], strict=True)
        }

    def happened(
        self, rule: Rule, minute: float, changes: tuple[StatusChange, ...] = ()
    ) -> tuple[Occurrence, ...]:
        return occurrences(rule, self.view(changes), self.ns(minute), timedelta(seconds=60))


def name(labels: Labels) -> str:
    """What distinguishes a labelset within its task."""
    parts = [labels[key] for key in ("node", "pod", "gpu") if key in labels]
    return "/".join(parts)


@pytest.fixture
def lab() -> Lab:
    return Lab()


@pytest.fixture(scope="session")
def new_lab() -> Callable[[], Lab]:
    """For property tests, which need a fresh one for every example."""
    return Lab
