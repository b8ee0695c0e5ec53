"""One collector a source: asks what is due, at the source's own pace, and fills the inbox.

Each question (list, status of a task, one metric of a task, one log stream) has its own pace and
its own backoff, so that a 403 on one task slows nothing else. Decides nothing.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from watchdog.core.conditions.kinds import Capability
from watchdog.core.health import Failure, Probe, ProbeKey
from watchdog.core.pacing import Pace
from watchdog.core.tasks import Task
from watchdog.engine.inbox import Inbox, ListingArrived, PointsArrived, StatusArrived
from watchdog.engine.log_reader import LogReader
from watchdog.errors import SourceError
from watchdog.ports import Clock, Source

log = logging.getLogger(__name__)

SHORTEST_SLEEP = timedelta(milliseconds=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricWish:
    """One (task, metric) that rules need, and from when on points are wanted."""

    task: Task
    metric: str
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What a source is to be asked, as of now. Made anew before each round."""

    list_tasks: bool = False
    statuses: tuple[Task, ...] = ()
    metrics: tuple[MetricWish, ...] = ()
    streams: tuple[LogReader, ...] = ()


@dataclass(slots=True, kw_only=True)
class Collector:
    """Asks one source. A question in flight is not asked again; a slow one delays no other."""

    source: Source
    poll: timedelta
    clock: Clock
    inbox: Inbox
    wishes: Callable[[], Wishes]
    jitter: Callable[[], float]
    asked: Counter[Capability] = field(default_factory=Counter)
    failed: Counter[tuple[Capability, Failure]] = field(default_factory=Counter)
    slow: set[str] = field(default_factory=set)  # questions whose last answer took longer than a poll
    _paces: dict[str, Pace] = field(default_factory=dict)
    _asking: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _began: dict[str, timedelta] = field(default_factory=dict)
    _grid: timedelta | None = None

    async def run(self) -> None:
        """Poll for ever. Ends only by cancellation."""
        while True:
            self.start_due()
            now = self.clock.monotonic()
            await self.clock.sleep(max(self._next_due(now) - now, SHORTEST_SLEEP))

    def start_due(self) -> None:
        """Start asking every question that is due."""
        now = self.clock.monotonic()
        questions = self._questions(self.wishes())
        self._paces = {name: pace for name, pace in self._paces.items() if name in questions}
        for name, question in questions.items():
            if name not in self._asking and self._pace(name, now).due <= now:
                self._start(name, question)

    async def settled(self, grace: timedelta) -> None:
        """Wait until every question in flight is answered, but no longer than `grace`."""
        if not self._asking:
            return
        patience = asyncio.ensure_future(self.clock.sleep(grace))
        answers = asyncio.ensure_future(asyncio.wait(list(self._asking.values())))
        await asyncio.wait([patience, answers], return_when=asyncio.FIRST_COMPLETED)
        patience.cancel()
        answers.cancel()

    def late_questions(self) -> tuple[str, ...]:
        """Questions whose newest answer took longer than a poll, or is taking that long."""
        now = self.clock.monotonic()
        overdue = {name for name, began in self._began.items() if now - began > self.poll}
        return tuple(sorted(self.slow | overdue))

    async def close(self) -> None:
        """Wait shortly for what is in flight (requests are not cancelled midway), then disconnect."""
        await self.settled(timedelta(seconds=2))
        await self.source.close()

    def _next_due(self, now: timedelta) -> timedelta:
        waiting = [pace.due for name, pace in self._paces.items() if name not in self._asking]
        return min([*waiting, now + self.poll])

    def _pace(self, name: str, now: timedelta) -> Pace:
        return self._paces.setdefault(name, Pace(poll=self.poll, due=now, origin=self._origin(now)))

    def _origin(self, now: timedelta) -> timedelta:
        """Where the grid of polls begins: with the first question, which is where slots begin too."""
        if self._grid is None:
            self._grid = now
        return self._grid

    def _start(self, name: str, question: Callable[[], Awaitable[None]]) -> None:
        task = asyncio.ensure_future(question())
        self._asking[name] = task
        self._began[name] = self.clock.monotonic()
        task.add_done_callback(lambda _: self._answered(name))

    def _answered(self, name: str) -> None:
        self._asking.pop(name, None)
        self._began.pop(name, None)

    def _questions(self, wishes: Wishes) -> Mapping[str, Callable[[], Awaitable[None]]]:
        source = self.source.name
        found: dict[str, Callable[[], Awaitable[None]]] = {}

        def add(
            name: str, answer: Callable[[], Awaitable[None]], capability: Capability, task: str = ""
        ) -> None:
            key = ProbeKey(source=source, capability=capability, task=task)
            found[name] = partial(self._ask, name, answer, key)

        if wishes.list_tasks:
            add("list", self._list, Capability.LIST)
        for task in wishes.statuses:
            add(f"status/{task.key}", partial(self._status, task), Capability.STATUS, task.key)
        for wish in wishes.metrics:
            name = f"metric/{wish.task.key}/{wish.metric}"
            add(name, partial(self._metric, wish), Capability.METRICS, wish.task.key)
        for reader in wishes.streams:
            name = f"logs/{reader.key.task}/{reader.key.pod}/{reader.key.prefilter}"
            add(name, partial(self._logs, reader), Capability.LOGS, reader.key.task)
        return found

    async def _ask(self, name: str, answer: Callable[[], Awaitable[None]], key: ProbeKey) -> None:
        """Ask one question; its failure becomes a probe and a slower pace, never an exception."""
        began = self.clock.monotonic()
        retry_after = None
        try:
            await answer()
            failure, detail = None, ""
        except SourceError as error:
            failure, detail, retry_after = error.failure, error.detail, error.retry_after
        except Exception as error:  # supervisor site: an adapter's bug must not stop the others
            log.exception("a source failed in an unforeseen way source=%s question=%s", key.source, name)
            failure, detail = Failure.MALFORMED, type(error).__name__
        self.asked[key.capability] += 1
        if failure is not None:
            self.failed[key.capability, failure] += 1
        self.inbox.probes.append(Probe(key=key, at=self.clock.now(), failure=failure, detail=detail))
        now = self.clock.monotonic()
        pace = self._pace(name, now)
        self._paces[name] = (
            pace.answered(now) if failure is None else pace.failed(now, self.jitter(), retry_after)
        )
        (self.slow.add if now - began > self.poll else self.slow.discard)(name)

    async def _list(self) -> None:
        listing = await self.source.list_tasks()
        self.inbox.listings.append(
            ListingArrived(source=self.source.name, listing=listing, at=self.clock.now())
        )

    async def _status(self, task: Task) -> None:
        observation = await self.source.status(task)
        self.inbox.statuses.append(StatusArrived(observation=observation, at=self.clock.now()))

    async def _metric(self, wish: MetricWish) -> None:
        now = self.clock.now()
        answer = await self.source.metric(wish.task, wish.metric, since=wish.since, now=now)
        self.inbox.points.append(
            PointsArrived(task=wish.task, metric=wish.metric, answer=answer, at=self.clock.now())
        )

    async def _logs(self, reader: LogReader) -> None:
        await reader.read(self.source, self.clock)
