"""A fleet: many GPUs of many tasks, watched by the engine's own slot function, stored in real SQLite."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import process_time

import numpy as np

from watchdog.core.conditions.kinds import Absent, Aggregate, By, Capability, Comparison, Peers, Threshold
from watchdog.core.durations import to_ns
from watchdog.core.evaluation import evaluate
from watchdog.core.health import Failure, Probe, ProbeKey
from watchdog.core.labels import Labels
from watchdog.core.planning import PlanInput, plan
from watchdog.core.points import Curves, SeriesPoints
from watchdog.core.rules import Rule
from watchdog.core.ruleset import ChannelSpec, Ruleset, Secret, SourceSpec, WatchEntry
from watchdog.core.schedule import Reading, Schedule
from watchdog.core.tasks import Status, Task, TaskObservation
from watchdog.engine.inbox import Inbox, ListingArrived, PointsArrived
from watchdog.engine.intake import Arrivals
from watchdog.engine.slot import SlotRunner
from watchdog.engine.world import World
from watchdog.ports import MetricAnswer, MetricInfo, PlanCommit, SlotCommit, TaskListing
from watchdog.store.sqlite import SqliteStore
from watchdog.text.patterns import Re2Engine

T0 = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
MINUTE_NS = 60_000_000_000
NUMBERS = itertools.count()  # of state files
RUNNING = frozenset({Status.RUNNING})
FOUR = (  # the rules of a common benchmark: an average, a maximum, who is absent, who lags behind
    Rule(
        name="gpu-low",
        condition=Threshold(
            metric="gpu",
            aggregate=Aggregate.AVG,
            window=timedelta(hours=1),
            comparison=Comparison(above=False, threshold=0.1),
            by=By.GPU,
        ),
        hold=timedelta(minutes=30),
        while_status=RUNNING,
    ),
    Rule(
        name="vram-high",
        condition=Threshold(
            metric="vram",
            aggregate=Aggregate.MAX,
            window=timedelta(minutes=5),
            comparison=Comparison(above=True, threshold=0.95),
            by=By.GPU,
        ),
        while_status=RUNNING,
    ),
    Rule(
        name="absent",
        condition=Absent(metric="gpu", by=By.POD),
        hold=timedelta(minutes=5),
        while_status=RUNNING,
    ),
    Rule(
        name="straggler",
        condition=Peers(metric="gpu", aggregate=Aggregate.LAST, window=None, above=False, ratio=0.5),
        hold=timedelta(minutes=10),
        while_status=RUNNING,
    ),
)


TEAM = ChannelSpec(name="team", url=Secret("x://"))


def above_zero() -> Rule:
    """A rule that is true of every GPU."""
    condition = Threshold(
        metric="gpu",
        aggregate=Aggregate.LAST,
        window=None,
        comparison=Comparison(above=True, threshold=0.0),
        by=By.GPU,
    )
    return Rule(name="all", condition=condition, while_status=RUNNING)


class Cloud:
    """What the world asks of a source: the answers are put into the inbox by hand."""

    name = "s"
    all_metrics = False
    capabilities = frozenset({Capability.METRICS, Capability.LIST})

    def metric_infos(self) -> tuple[MetricInfo, ...]:
        return (MetricInfo(name="gpu", unit="ratio"), MetricInfo(name="vram", unit="ratio"))


class Fleet:
    """`gpus` GPUs, 8 a pod and `per_task` a task; one in a hundred idles, one in a hundred is full."""

    start = T0

    def __init__(
        self,
        folder: Path,
        gpus: int,
        *,
        per_task: int = 80,
        per_pod: int = 8,
        rules: Sequence[Rule] = FOUR,
        metrics: Sequence[str] = ("gpu", "vram"),
        points: int = 60,
        columns: bool = True,
        watch: Sequence[WatchEntry] = (),
    ) -> None:
        self.gpus, self.metrics, self.points, self.columns = gpus, metrics, points, columns
        count = -(-gpus // per_task)
        self.tasks = [Task(key=f"s/{n}", source="s", id=str(n), name=f"t{n}") for n in range(count)]
        self.labels = [
            tuple(
                self.tasks[n].identity.plus({"pod": f"p{gpu // per_pod}", "gpu": str(gpu % per_pod)})
                for gpu in range(n * per_task, min((n + 1) * per_task, gpus))
            )
            for n in range(count)
        ]
        ruleset = Ruleset(
            sources=(SourceSpec(name="s", kind="scripted"),),
            watch=tuple(watch)
            or tuple(WatchEntry(source="s", id=task.id, name=task.name) for task in self.tasks),
            channels=(),
            rules=tuple(rules),
        )
        inbox = Inbox()
        self.world = World(ruleset=ruleset, sources={"s": Cloud()}, inbox=inbox, literals=lambda _: ((), ()))
        self.runner = SlotRunner(world=self.world, patterns=Re2Engine())
        self.store = SqliteStore.open(folder / f"{next(NUMBERS)}.db", started=T0)
        self.schedule = Schedule(interval=MINUTE)
        self.minute = 0
        self.mark = 0
        self.status = Status.RUNNING
        self.failure: Failure | None = None  # of every question about metrics
        self.random = np.random.default_rng(1)
        self.commit = SlotCommit(moment=self.schedule.moment(Reading(at=T0, monotonic=timedelta())))

    def values(self, metric: str, first: int, count: int, points: int) -> np.ndarray:
        odd = np.arange(first, first + count) % 100
        noise = self.random.random((count, points))
        if metric == "gpu":
            return np.where(odd == 7, 0.03, 0.9)[:, None] + noise * 0.01
        return np.where(odd == 9, 0.96, 0.8)[:, None] + noise * 0.03

    def answers(self, points: int) -> list[PointsArrived]:
        """One answer for each task and metric: its newest points."""
        at = T0 + self.minute * MINUTE
        times = to_ns(at) + np.arange(1 - points, 1) * MINUTE_NS
        found = []
        for metric in self.metrics:
            first = 0
            for task, labels in zip(self.tasks, self.labels, strict=True):
                rows = self.values(metric, first, len(labels), points)
                answer = MetricAnswer(series=self.answer(labels, times, rows))
                found.append(PointsArrived(task=task, metric=metric, answer=answer, at=at))
                first += len(labels)
        return found

    def answer(
        self, labels: tuple[Labels, ...], times: np.ndarray, rows: np.ndarray
    ) -> Sequence[SeriesPoints]:
        """As columns with the labels of the answer before, or series by series with new ones."""
        if not self.columns:
            return tuple(
                SeriesPoints(labels=Labels(own), times=times, values=row)
                for own, row in zip(labels, rows, strict=True)
            )
        starts = np.arange(len(labels) + 1) * times.size
        return Curves(
            labels=labels, starts=starts, times=np.tile(times, len(labels)), values=rows.reshape(-1)
        )

    def inbox(self, points: int) -> Inbox:
        at = T0 + self.minute * MINUTE
        rows = tuple(
            TaskObservation(task=task, status=self.status, started=T0 - timedelta(days=1))
            for task in self.tasks
        )
        keys = [ProbeKey(source="s", capability=Capability.LIST)]
        keys += [
            ProbeKey(source="s", capability=Capability.METRICS, task=task.key, item=metric)
            for metric in self.metrics
            for task in self.tasks
        ]
        return Inbox(
            probes=[Probe(key=key, at=at, failure=self.failure if key.task else None) for key in keys],
            listings=[ListingArrived(source="s", listing=TaskListing(tasks=rows), at=at)],
            points=[] if self.failure else self.answers(points),
        )

    def rename_pods(self) -> None:
        """Let other pods take over, each of one role."""
        self.labels = [
            tuple(one.plus({"pod": f"new-{one['pod']}"}) for one in labels) for labels in self.labels
        ]

    def evaluated(self, slots: np.ndarray) -> float:
        """Judge the first rule at many slots; returns the CPU seconds."""
        view = self.runner.view(Arrivals())
        began = process_time()
        evaluate(self.world.ruleset.rules[0], view, slots)
        return process_time() - began

    def plan(self) -> None:
        """Store what is to be told of the newest slot (T2), if anything is."""
        incidents = {one.id: one for one in self.commit.incidents}
        numbered = tuple(replace(one, seq=self.mark + n + 1) for n, one in enumerate(self.commit.transitions))
        decision = plan(
            PlanInput(mark=self.mark, transitions=numbered, incidents=incidents, channels=(TEAM,), ledger={}),
            self.commit.moment,
        )
        self.mark = decision.mark
        if decision.deliveries:
            self.store.commit_plan(PlanCommit(mark=decision.mark, deliveries=decision.deliveries))

    def slot(self, points: int = 1) -> float:
        """Run the next slot with so many points of each series; returns its CPU seconds, T1 included."""
        inbox = self.inbox(points if self.minute else self.points)
        reading = Reading(at=T0 + self.minute * MINUTE, monotonic=self.minute * MINUTE)
        self.schedule, tick, _ = self.schedule.step(reading)
        began = process_time()
        self.commit = self.runner.run(inbox, tick, [])
        self.store.commit_slot(self.commit)
        took = process_time() - began
        self.minute += 1
        return took
