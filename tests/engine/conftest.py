"""The live engine on a virtual clock, from a scenario written as text, with a hook into each life."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest

from watchdog.config.build import Knowledge
from watchdog.core.conditions.kinds import Capability
from watchdog.core.durations import to_ns
from watchdog.core.logs import LogLine, LogPage, LogQuery
from watchdog.core.notifications import Answer, ChannelLimits, DeliveryResult, Message
from watchdog.core.rules import Rule
from watchdog.core.ruleset import ChannelSpec, Ruleset, Secret, SourceSpec, WatchEntry
from watchdog.core.series import SeriesPoints
from watchdog.core.tasks import Status, Task, TaskObservation
from watchdog.engine.engine import Engine, Parts
from watchdog.engine.looks import renderer
from watchdog.ports import MetricAnswer, MetricInfo, Store, TaskListing
from watchdog.replay.files import prepare
from watchdog.replay.play import Play
from watchdog.replay.virtual import VirtualWorld
from watchdog.replay.world import Sent
from watchdog.sources.registry import SOURCE_KINDS
from watchdog.store.memory import MemoryState
from watchdog.text.patterns import Re2Engine


@dataclass
class Performance:
    """What came of a play."""

    sent: tuple[Sent, ...]
    engine: Engine

    def about(self, rule: str) -> list[tuple[float, str]]:
        """(minute, kind) of each message of a rule."""
        return [
            (message.at.total_seconds() / 60, str(message.kind))
            for message in self.sent
            if message.rule == rule
        ]

    def text(self, rule: str) -> str:
        """Everything that was said of a rule."""
        return "\n".join(message.text for message in self.sent if message.rule == rule)


Perform = Callable[..., Performance]


@pytest.fixture
def perform(tmp_path: Path) -> Iterator[Perform]:
    """Play a scenario's text; `on_life` gets each new engine, `change` may alter the ruleset."""
    knowledge = Knowledge(engine=Re2Engine(), kinds=SOURCE_KINDS)
    states: list[MemoryState] = []

    def played(
        text: str,
        on_life: Callable[[Engine], None] | None = None,
        change: Callable[[Ruleset], Ruleset] = replace,
    ) -> Performance:
        path = tmp_path / "scenario.yaml"
        path.write_text(text, encoding="utf-8")
        prepared = prepare(path, knowledge)
        states.append(MemoryState())
        play = Play(
            scenario=prepared.scenario,
            ruleset=change(prepared.ruleset),
            rulesets=prepared.rulesets,
            open_store=states[-1].open,
            patterns=knowledge.engine,
            compile_template=None,
            on_life=on_life,
        )
        sent = play.run()
        assert play.engine is not None
        return Performance(sent, play.engine)

    yield played
    for state in states:
        state.discard()


T0 = datetime(2026, 11, 30, 2, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
T = TypeVar("T")


class Cloud:
    """A source in virtual time: it answers at once unless `script` says otherwise for a question.

    Questions are "list", "status/1", "gpu/1" and "logs/1/<filter>". A script is awaited before the answer: it
    may sleep, or raise. asked: (minute, question) in order. lines: of all tasks; status: by task id.
    """

    name = "src"
    all_metrics = False

    def __init__(self, clock: VirtualWorld) -> None:
        self.clock = clock
        self.capabilities = frozenset(Capability)
        self.asked: list[tuple[float, str]] = []
        self.script: dict[str, Callable[[], Awaitable[None]]] = {}
        self.series: dict[tuple[str, str], list[SeriesPoints]] = {}  # (task id, metric)
        self.lines: list[LogLine] = []
        self.rows: list[TaskObservation] = []
        self.complete = True
        self.remarks: tuple[str, ...] = ()
        self.closed = False
        self.page = 500

    def task(self, number: str = "1", name: str = "") -> Task:
        """Watched by id, or by name."""
        return Task(key=f"src/{name or number}", source="src", id=number, name=name or f"run-{number}")

    def minutes(self, question: str) -> list[float]:
        """When a question was asked."""
        return [minute for minute, asked in self.asked if asked == question]

    def put(
        self, metric: str, minutes: Sequence[float], values: float | Sequence[float], **labels: str
    ) -> None:
        """Let task 1 have these points, by minute."""
        task = self.task(labels.pop("id", "1"), labels.pop("name", ""))
        times = np.array([to_ns(T0) + round(minute * 60e9) for minute in minutes], np.int64)
        own = SeriesPoints(
            labels=task.identity.plus(labels),
            times=times,
            values=np.broadcast_to(np.asarray(values, np.float64), times.shape).copy(),
        )
        self.series.setdefault((task.id, metric), []).append(own)

    def line(self, minute: float, text: str, pod: str = "pod-0") -> None:
        self.lines.append(LogLine(to_ns(T0) + round(minute * 60e9), pod, text))

    async def _asked(self, question: str) -> None:
        self.asked.append((self.clock.monotonic() / MINUTE, question))
        if question in self.script:
            await self.script[question]()

    def metric_infos(self) -> tuple[MetricInfo, ...]:
        return (MetricInfo(name="gpu", unit="ratio"), MetricInfo(name="vram", unit="ratio"))

    async def list_tasks(self) -> TaskListing:
        await self._asked("list")
        return TaskListing(tasks=tuple(self.rows), complete=self.complete)

    async def status(self, task: Task) -> TaskObservation:
        await self._asked(f"status/{task.id}")
        known = [row for row in self.rows if row.task.id == task.id]
        return known[0] if known else TaskObservation(task=task, status=Status.RUNNING, status_text="Running")

    async def metric(self, task: Task, metric: str, *, since: datetime, now: datetime) -> MetricAnswer:
        await self._asked(f"{metric}/{task.id}")
        first, last = to_ns(since), to_ns(self.clock.true_now())
        found = []
        for own in self.series.get((task.id, metric), []):
            wanted = (own.times > first) & (own.times <= last)
            found.append(replace(own, times=own.times[wanted], values=own.values[wanted]))
        return MetricAnswer(series=tuple(found), remarks=self.remarks)

    async def logs(self, task: Task, query: LogQuery) -> LogPage:
        await self._asked(f"logs/{task.id}/{query.contains}")
        now = to_ns(self.clock.true_now())
        rows = sorted(
            (
                line
                for line in self.lines
                if query.start_ns <= line.time_ns <= min(query.end_ns, now) and query.contains in line.text
            ),
            key=lambda line: line.time_ns,
        )
        limit = min(query.limit, self.page)
        return LogPage(lines=tuple(rows[:limit]), full=len(rows) >= limit, remarks=self.remarks)

    async def close(self) -> None:
        self.closed = True


class Chat:
    """A channel that notes what it was sent, by minute. `answers` are given first, then OK."""

    def __init__(self, clock: VirtualWorld, name: str = "chat") -> None:
        self.clock, self.name, self.limits = clock, name, ChannelLimits(body=100_000)
        self.sent: list[tuple[float, Message]] = []
        self.answers: list[DeliveryResult] = []
        self.takes = timedelta()
        self.raises: Exception | None = None
        self.tries: list[float] = []
        self.closed = False

    async def send(self, message: Message) -> DeliveryResult:
        self.tries.append(self.clock.monotonic() / MINUTE)
        await self.clock.sleep(self.takes)
        if self.raises is not None:
            raise self.raises
        result = self.answers.pop(0) if self.answers else DeliveryResult(answer=Answer.OK)
        if result.answer is Answer.OK:
            self.sent.append((self.clock.monotonic() / MINUTE, message))
        return result

    async def close(self) -> None:
        self.closed = True

    @property
    def titles(self) -> list[str]:
        return [message.title for _, message in self.sent]


async def inline(call: Callable[[], T]) -> T:
    return call()


class Bench:
    """One engine's surroundings in virtual time: a cloud, a chat, a state that outlives engines."""

    def __init__(self) -> None:
        self.world = VirtualWorld(start=T0)
        self.cloud = Cloud(self.world)
        self.chat = Chat(self.world)
        self.state = MemoryState()
        self.watch: tuple[WatchEntry, ...] = (WatchEntry(source="src", id="1", name="run-1"),)
        self.rules: tuple[Rule, ...] = ()
        self.poll = self.interval = MINUTE
        self.patterns = Re2Engine()
        self.engines: list[Engine] = []

    def ruleset(self) -> Ruleset:
        return Ruleset(
            sources=(SourceSpec(name="src", kind="test", poll=self.poll),),
            watch=self.watch,
            channels=(ChannelSpec(name="chat", url=Secret("x:")),),
            rules=self.rules,
            interval=self.interval,
        )

    def engine(self, store: Store | None = None) -> Engine:
        ruleset = self.ruleset()
        made = Engine(
            parts=Parts(
                ruleset=ruleset,
                sources={"src": self.cloud},
                notifiers={"chat": self.chat},
                store=self.state.open() if store is None else store,
                clock=self.world,
                patterns=self.patterns,
                render=renderer(ruleset, None),
                run_blocking=inline,
                jitter=lambda: 0.5,
            )
        )
        self.engines.append(made)
        return made

    async def live(self, minutes: float, engine: Engine | None = None) -> Engine:
        """Let an engine (a new one) run for so long, and stop it."""
        engine = engine or self.engine()
        life = asyncio.ensure_future(engine.run())
        timer = asyncio.ensure_future(self.world.sleep(minutes * MINUTE))
        await asyncio.wait([life, timer], return_when=asyncio.FIRST_COMPLETED)
        timer.cancel()
        life.cancel()
        await asyncio.gather(life, return_exceptions=True)
        await engine.stop()
        return engine

    def run(self, main: Callable[[], Coroutine[object, object, T]]) -> T:
        """Run in virtual time."""
        return self.world.run(main)

    @property
    def now(self) -> float:
        """Minutes since T0."""
        return self.world.monotonic() / MINUTE


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.state.discard()


@pytest.fixture(scope="session")
def new_bench() -> Callable[[], Bench]:
    """For tests that compare several, and for properties, which need a fresh one for every example."""
    return Bench
