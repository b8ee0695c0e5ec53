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
from watchdog.core.durations import format_duration
from watchdog.core.health import BLIND_AFTER, Failure, Probe, ProbeKey
from watchdog.core.pacing import Pace
from watchdog.core.tasks import Task
from watchdog.engine.inbox import Inbox, ListingArrived, PointsArrived, StatusArrived
from watchdog.engine.log_reader import LogReader
from watchdog.errors import SourceError
from watchdog.ports import Clock, Source

log = logging.getLogger(__name__)

SHORTEST_SLEEP = timedelta(milliseconds=10)
CLOSING = timedelta(seconds=2)
HANGING = timedelta(minutes=5)  # a question unanswered for so long, and for …
HANGING_POLLS = 5  # … so many polls, is failing
UNFORESEEN = "a source failed in an unforeseen way source=%s asked=%s task=%s item=%s"


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


Question = Callable[[], Awaitable[None]]


@dataclass(slots=True, kw_only=True)
class _Asking:
    """A question in flight. complained: when its silence was last reported."""

    task: asyncio.Task[None]
    began: timedelta
    complained: timedelta


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
    _slow: set[ProbeKey] = field(default_factory=set)  # the last answer took longer than a poll
    _paces: dict[ProbeKey, Pace] = field(default_factory=dict)
    _asking: dict[ProbeKey, _Asking] = field(default_factory=dict)
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
        self._paces = {key: pace for key, pace in self._paces.items() if key in questions}
        self._slow &= questions.keys()
        for key, question in questions.items():
            if key not in self._asking and self._pace(key, now).due <= now:
                self._start(key, question, now)
        self._report_hanging(now)

    async def settled(self, grace: timedelta) -> None:
        """Wait for the questions that have just been asked, but no longer than `grace`.

        What has been in flight for longer than that is waited for by nobody: see `late_questions`.
        """
        now = self.clock.monotonic()
        recent = [asking.task for asking in self._asking.values() if now - asking.began < grace]
        if not recent:
            return
        patience = asyncio.ensure_future(self.clock.sleep(grace))
        answers = asyncio.ensure_future(asyncio.wait(recent))
        try:
            await asyncio.wait([patience, answers], return_when=asyncio.FIRST_COMPLETED)
        finally:
            patience.cancel()
            answers.cancel()

    def late_questions(self) -> tuple[ProbeKey, ...]:
        """Questions whose newest answer took longer than a poll, or is taking that long.

        What goes on failing, however late, is told as failing: that is one message, not two.
        """
        now = self.clock.monotonic()
        failures = {key: pace.failures for key, pace in self._paces.items()}
        overdue = {key for key, asking in self._asking.items() if now - asking.began > self.poll}
        overdue = {key for key in overdue if not failures.get(key)}
        return tuple(sorted(key for key in self._slow | overdue if failures.get(key, 0) < BLIND_AFTER))

    async def close(self) -> None:
        """Wait shortly for what is in flight (requests are not cancelled midway), then disconnect."""
        await self.settled(CLOSING)
        await self.source.close()

    def _next_due(self, now: timedelta) -> timedelta:
        waiting = [pace.due for key, pace in self._paces.items() if key not in self._asking]
        return min([*waiting, now + self.poll])

    def _pace(self, key: ProbeKey, now: timedelta) -> Pace:
        return self._paces.setdefault(key, Pace(poll=self.poll, due=now, origin=self._origin(now)))

    def _origin(self, now: timedelta) -> timedelta:
        """Where the grid of polls begins: with the first question, which is where slots begin too."""
        if self._grid is None:
            self._grid = now
        return self._grid

    def _start(self, key: ProbeKey, question: Question, now: timedelta) -> None:
        task = asyncio.ensure_future(self._ask(key, question))
        self._asking[key] = _Asking(task=task, began=now, complained=now)
        task.add_done_callback(lambda _: self._asking.pop(key, None))

    def _report_hanging(self, now: timedelta) -> None:
        """A question that is never answered says nothing of now: it counts as a failure at each poll."""
        for key, asking in self._asking.items():
            silent_for = now - asking.began
            if silent_for >= max(HANGING, HANGING_POLLS * self.poll) and now - asking.complained >= self.poll:
                asking.complained = now
                detail = f"no answer for {format_duration(timedelta(seconds=silent_for.seconds))}"
                self._report(key, Failure.TIMEOUT, detail)

    def _report(self, key: ProbeKey, failure: Failure | None, detail: str) -> None:
        if failure is not None:
            self.failed[key.capability, failure] += 1
        self.inbox.probes.append(Probe(key=key, at=self.clock.now(), failure=failure, detail=detail))

    def _questions(self, wishes: Wishes) -> Mapping[ProbeKey, Question]:
        found: dict[ProbeKey, Question] = {}

        def add(question: Question, capability: Capability, task: str = "", item: str = "") -> None:
            key = ProbeKey(source=self.source.name, capability=capability, task=task, item=item)
            found[key] = question

        if wishes.list_tasks:
            add(self._list, Capability.LIST)
        for task in wishes.statuses:
            add(partial(self._status, task), Capability.STATUS, task.key)
        for wish in wishes.metrics:
            add(partial(self._metric, wish), Capability.METRICS, wish.task.key, wish.metric)
        for reader in wishes.streams:
            add(partial(self._logs, reader), Capability.LOGS, reader.key.task, reader.key.prefilter)
        return found

    async def _ask(self, key: ProbeKey, question: Question) -> None:
        """Ask one question; its failure becomes a probe and a slower pace, never an exception."""
        began = self.clock.monotonic()
        failure, detail, retry_after = None, "", None
        try:
            await question()
        except SourceError as error:
            failure, detail, retry_after = error.failure, error.detail, error.retry_after
        except Exception as error:  # supervisor site: an adapter's bug must not stop the others
            first = not self._pace(key, began).failures
            log.log(logging.ERROR if first else logging.DEBUG, UNFORESEEN, *_named(key), exc_info=first)
            failure, detail = Failure.MALFORMED, type(error).__name__
        self.asked[key.capability] += 1
        self._report(key, failure, detail)
        now = self.clock.monotonic()
        pace = self._pace(key, now)
        self._paces[key] = (
            pace.answered(now) if failure is None else pace.failed(now, self.jitter(), retry_after)
        )
        if failure is None:  # one that failed was neither quick nor slow
            (self._slow.add if now - began > self.poll else self._slow.discard)(key)

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


def _named(key: ProbeKey) -> tuple[str, str, str, str]:
    return key.source, str(key.capability), key.task, key.item
