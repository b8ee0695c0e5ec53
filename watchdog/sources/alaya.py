"""The source `alaya`: answers the Source port from Alaya NeW Cloud's API.

Owns what must be remembered between calls: the newest task list, pods seen in metrics, what
pod-basic said of them. Knows no HTTP, no JSON shape and no secret.
"""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from dataclasses import replace as changed
from datetime import datetime, timedelta

import numpy as np

from watchdog.core.conditions.kinds import Capability
from watchdog.core.durations import to_ns
from watchdog.core.health import Failure
from watchdog.core.labels import POD
from watchdog.core.logs import LogPage, LogQuery
from watchdog.core.points import Curves
from watchdog.core.ruleset import SourceSpec
from watchdog.core.series import SeriesPoints
from watchdog.core.tasks import Status, Task, TaskObservation
from watchdog.errors import SourceError
from watchdog.ports import Clock, MetricAnswer, MetricInfo, TaskListing
from watchdog.sources.alaya_api import PAGE_SIZE, AlayaApi, Endpoint
from watchdog.sources.alaya_options import ALAYA_METRICS, read_settings
from watchdog.sources.alaya_tasks import ListPage, PodBasic, read_list_page, read_pod
from watchdog.sources.alaya_wire import read_logs, read_metrics
from watchdog.sources.answers import failure
from watchdog.sources.naive_times import write_naive

PERIODS = (
    (timedelta(minutes=15), "15m"),
    (timedelta(hours=1), "1h"),
    (timedelta(hours=6), "6h"),
    (timedelta(hours=24), "24h"),
    (timedelta(days=3), "3d"),
    (timedelta(days=7), "7d"),
    (timedelta(days=30), "30d"),
)
MOST_PAGES = 100
TASKS_REMEMBERED = 2000
PODS_ASKED = 4  # pod-basic calls per status query
POD_DATA_AGE = timedelta(minutes=10)
ASK_AGAIN = timedelta(minutes=5)  # after pod data could not be had
NOT_LISTED = "not in the task list"


@dataclass(slots=True)
class _Known:
    """What earlier answers told of one task; `*_at` are monotonic."""

    pods: tuple[str, ...] = ()  # of the newest metrics answer with data
    coming: list[asyncio.Event] = field(default_factory=list)  # metrics answers on their way
    basics: dict[str, tuple[timedelta, PodBasic]] = field(default_factory=dict)
    namespace: str = ""
    ask_namespace_at: timedelta | None = None  # not before
    ask_pods_at: timedelta | None = None


class AlayaSource:
    """One `alaya` entry of the rule file."""

    all_metrics = True
    capabilities = frozenset({Capability.METRICS, Capability.LOGS, Capability.STATUS, Capability.LIST})

    def __init__(self, spec: SourceSpec, clock: Clock) -> None:
        """Raise ValueError, naming the option, if `spec` cannot be used."""
        self._settings = read_settings(spec)
        self.name = spec.name
        self._clock = clock
        self._api = AlayaApi(self._settings, clock)
        self._known: dict[str, _Known] = {}
        self._listing: tuple[timedelta, TaskListing] | None = None
        self._list_failure: tuple[timedelta, SourceError] | None = None
        self._list_request: asyncio.Task[TaskListing] | None = None

    @property
    def prefixes(self) -> Mapping[Endpoint, str]:
        """The prefix under which each call has answered, for `check --probe`."""
        return self._api.prefixes

    def metric_infos(self) -> tuple[MetricInfo, ...]:
        """Return the four ratios that are documented; there are no others."""
        return ALAYA_METRICS

    async def metric(self, task: Task, metric: str, *, since: datetime, now: datetime) -> MetricAnswer:
        """Return points newer than `since`, asking for the smallest period that covers it."""
        _supported(metric)
        params = (("type", metric), ("period", period_covering(now - since)))
        with self._coming(task):
            data = await self._api.metrics(task.id, params)
            answer = read_metrics(data, task=task, metric=metric, since=since)
            self._learn_pods(task, answer)
        return answer

    async def history(self, task: Task, metric: str, start: datetime, end: datetime) -> MetricAnswer:
        """Return every point from `start` to `end`, by the documented times in the source's zone."""
        _supported(metric)
        zone = self._settings.zone
        last = max(end, start + timedelta(seconds=1))
        params = (
            ("type", metric),
            ("startTime", write_naive(start, zone)),
            ("endTime", write_naive(last, zone)),
        )
        data = await self._api.metrics(task.id, params)
        answer = read_metrics(data, task=task, metric=metric, since=start - timedelta(seconds=1))
        kept = (_until(series, to_ns(end)) for series in answer.series)
        return changed(answer, series=tuple(series for series in kept if len(series.times)))

    async def logs(self, task: Task, query: LogQuery) -> LogPage:
        """Return one page of lines from the task's namespace."""
        namespace = await self._namespace(task)
        data = await self._api.logs(task.id, namespace, query)
        return read_logs(data, query)

    async def list_tasks(self) -> TaskListing:
        """Ask for the whole list; callers at the same time share one request."""
        if self._list_request is None or self._list_request.done():
            self._list_request = asyncio.create_task(self._fetch_list())
            self._list_request.add_done_callback(_seen)
        return await asyncio.shield(self._list_request)

    async def status(self, task: Task) -> TaskObservation:
        """Answer from a list that is younger than one poll.

        A task that is absent from a complete list is told as VANISHED. Whether any list ever had it (a
        sub-account's may leave tasks out) is remembered elsewhere, over restarts too.
        """
        listing = await self._recent_list()
        known = self._knowledge(task.id)
        for observation in listing.tasks:
            if observation.task.id == task.id:
                nodes, restarts = await self._pod_facts(task, observation.status, known)
                return changed(observation, task=task, nodes=nodes, restarts=restarts)
        if not listing.complete:
            raise failure(Failure.MALFORMED, "the task list came incomplete, without this task")
        return TaskObservation(task=task, status=Status.VANISHED, status_text=NOT_LISTED)

    async def probe(self) -> str:
        """Ask the list once and say in words where it answered; raises `SourceError`."""
        listing = await self.list_tasks()
        prefix = self._api.prefixes.get(Endpoint.LIST, "")
        more = "" if listing.complete else " or more"
        return f"task list answers under {prefix}: {len(listing.tasks)}{more} tasks"

    async def close(self) -> None:
        """Give back connections."""
        if self._list_request is not None:
            self._list_request.cancel()
            await asyncio.gather(self._list_request, return_exceptions=True)
        await self._api.close()

    # --- the list

    async def _recent_list(self) -> TaskListing:
        now = self._clock.monotonic()
        poll = self._settings.poll
        if self._listing is not None and now - self._listing[0] <= poll * 0.9:
            return self._listing[1]
        failed = self._list_failure
        if failed is not None and now - failed[0] <= poll * 0.5:
            raise changed_error(failed[1])
        return await self.list_tasks()

    async def _fetch_list(self) -> TaskListing:
        try:
            listing = await self._all_pages()
        except SourceError as error:
            self._list_failure = (self._clock.monotonic(), error)
            raise
        self._list_failure = None
        self._listing = (self._clock.monotonic(), listing)
        return listing

    async def _all_pages(self) -> TaskListing:
        found: dict[str, TaskObservation] = {}
        total: int | None = None
        whole = True
        for number in range(1, MOST_PAGES + 1):
            page = await self._page(number)
            whole = whole and page.unreadable == 0 and not _shrunk(total, page.total)
            before, total = len(found), page.total
            found.update((observation.task.id, observation) for observation in page.tasks)
            last = page.rows < PAGE_SIZE if total is None else len(found) >= total
            if last:
                return TaskListing(tasks=tuple(found.values()), complete=whole)
            if len(found) == before:  # a repeated or an empty page: more exist, unseen
                break
        return TaskListing(tasks=tuple(found.values()), complete=False)

    async def _page(self, number: int) -> ListPage:
        data = await self._api.task_list(number)
        return read_list_page(data, source=self.name, zone=self._settings.zone)

    # --- pods and namespace

    def _knowledge(self, task_id: str) -> _Known:
        known = self._known.get(task_id)
        if known is None:
            if len(self._known) >= TASKS_REMEMBERED:
                del self._known[next(iter(self._known))]
            known = self._known[task_id] = _Known()
        return known

    def _learn_pods(self, task: Task, answer: MetricAnswer) -> None:
        pods = {labels.get(POD, "") for labels in Curves.of(answer.series).labels} - {""}
        if pods:
            self._knowledge(task.id).pods = tuple(sorted(pods))

    @contextmanager
    def _coming(self, task: Task) -> Iterator[None]:
        """Let who needs the name of a pod wait for the answer that is on its way."""
        coming, told = self._knowledge(task.id).coming, asyncio.Event()
        coming.append(told)
        try:
            yield
        finally:
            coming.remove(told)
            told.set()

    async def _namespace(self, task: Task) -> str:
        """The task's own, else what pod-basic says, else the configured one (asked again later)."""
        known = self._knowledge(task.id)
        if task.namespace or known.namespace:
            return task.namespace or known.namespace
        now = self._clock.monotonic()
        if known.ask_namespace_at is None or now >= known.ask_namespace_at:
            known.ask_namespace_at = now + ASK_AGAIN
            known.namespace = await self._find_namespace(task, known)
        return known.namespace or self._settings.namespace

    async def _find_namespace(self, task: Task, known: _Known) -> str:
        try:
            while known.coming and not known.pods:
                await known.coming[0].wait()
            if not known.pods:  # nobody asks for metrics of this task: learn a pod's name once
                now = self._clock.now()
                await self.metric(task, "cpu", since=now - PERIODS[0][0], now=now)
            for pod in known.pods[:1]:
                return (await self._pod_basic(task, pod, known)).namespace
        except SourceError:
            return ""
        return ""

    async def _pod_basic(self, task: Task, pod: str, known: _Known) -> PodBasic:
        basic = read_pod(await self._api.pod_basic(task.id, pod))
        known.basics[pod] = (self._clock.monotonic(), basic)
        return basic

    async def _pod_facts(
        self, task: Task, status: Status, known: _Known
    ) -> tuple[Mapping[str, str], int | None]:
        """Return pod → node and the sum of restarts; a few pods are asked each time, failures wait."""
        now = self._clock.monotonic()
        if status.counts_as_running and (known.ask_pods_at is None or now >= known.ask_pods_at):
            stale = [pod for pod in known.pods if _age(known, pod, now) > POD_DATA_AGE][:PODS_ASKED]
            asked = (self._pod_basic(task, pod, known) for pod in stale)
            answers = await asyncio.gather(*asked, return_exceptions=True)
            _raise_unexpected(answers)
            if any(isinstance(answer, SourceError) for answer in answers):
                known.ask_pods_at = now + ASK_AGAIN
        known.basics = {pod: known.basics[pod] for pod in known.pods if pod in known.basics}
        basics = {pod: basic for pod, (_, basic) in known.basics.items()}
        restarts = [basic.restarts for basic in basics.values() if basic.restarts is not None]
        complete = bool(known.pods) and len(restarts) == len(known.pods)
        nodes = {pod: basic.node for pod, basic in basics.items() if basic.node}
        return nodes, sum(restarts) if complete else None


def period_covering(span: timedelta) -> str:
    """Return the smallest documented period that reaches back over `span`; at most 30 days."""
    return next((word for length, word in PERIODS if span <= length), PERIODS[-1][1])


def _supported(metric: str) -> None:
    names = [info.name for info in ALAYA_METRICS]
    if metric not in names:
        raise failure(Failure.UNSUPPORTED, f"metric {metric!r}: Alaya has {', '.join(names)}")


def _until(series: SeriesPoints, end_ns: int) -> SeriesPoints:
    count = int(np.searchsorted(series.times, end_ns, side="right"))
    return changed(series, times=series.times[:count], values=series.values[:count])


def _shrunk(before: int | None, after: int | None) -> bool:
    """Whether rows may have moved up past the page boundary, unseen."""
    return before is not None and (after is None or after < before)


def _age(known: _Known, pod: str, now: timedelta) -> timedelta:
    return now - known.basics[pod][0] if pod in known.basics else timedelta.max


def _seen(request: asyncio.Task[TaskListing]) -> None:
    if not request.cancelled():
        request.exception()  # whoever asked may have been cancelled meanwhile


def _raise_unexpected(answers: list[PodBasic | BaseException]) -> None:
    for answer in answers:
        if isinstance(answer, BaseException) and not isinstance(answer, SourceError):
            raise answer


def changed_error(error: SourceError) -> SourceError:
    """Return the error anew, so that raising it again does not grow its traceback."""
    return failure(error.failure, error.detail, retry_after=error.retry_after)
