"""The source `siflow`: answers the Source port from SiFlow, through the vendor's SDK in a process of its own.

Owns what must be remembered between calls: names of tasks by id, their pods, the tail of each log. Knows no
process, no SDK object and no secret.
"""

import asyncio
from dataclasses import dataclass, field
from dataclasses import replace as changed
from datetime import datetime, timedelta
from functools import partial

from watchdog.core.conditions.kinds import Capability
from watchdog.core.durations import to_ns
from watchdog.core.health import Failure
from watchdog.core.logs import LogPage, LogQuery, ReadKind
from watchdog.core.ruleset import SourceSpec
from watchdog.core.tasks import Status, Task, TaskObservation
from watchdog.errors import SourceError
from watchdog.ports import Clock, MetricAnswer, MetricInfo, TaskListing
from watchdog.sources.answers import failure
from watchdog.sources.siflow_api import PAGE_SIZE, SiflowApi
from watchdog.sources.siflow_catalogue import CUSTOM_STEP, METHOD_OF, Dimension, documented, native, unit_text
from watchdog.sources.siflow_gather import MetricGatherer, Subject
from watchdog.sources.siflow_logs import LogTail
from watchdog.sources.siflow_options import read_settings
from watchdog.sources.siflow_tasks import Roster, observe, read_roster, unique
from watchdog.sources.siflow_wire import TaskRow

MOST_PAGES = 50
TASKS_REMEMBERED = 2000
STALE_PODS = timedelta(minutes=10)  # how old a list of pods may be used when a new one cannot be had
COMPARED = timedelta(minutes=10)
NOT_FOUND = "no task has this id"


@dataclass(slots=True)
class _Known:
    """What earlier answers told of one task; times are monotonic."""

    name: str = ""
    roster: Roster | None = None
    roster_at: timedelta = timedelta()
    roster_asked: "asyncio.Task[Roster] | None" = None
    tail: LogTail | None = None
    read_at: timedelta | None = None
    reading: asyncio.Lock = field(default_factory=asyncio.Lock)


class SiflowSource:
    """One `siflow` entry of the rule file. Starts nothing before it is asked something."""

    all_metrics = False
    capabilities = frozenset({Capability.METRICS, Capability.LOGS, Capability.STATUS, Capability.LIST})

    def __init__(self, spec: SourceSpec, clock: Clock) -> None:
        """Raise ValueError, naming the option, if `spec` cannot be used."""
        self._settings = read_settings(spec)
        self.name = spec.name
        self._clock = clock
        self._api = SiflowApi(self._settings, clock)
        self._gatherer = MetricGatherer(self._api, self._settings.detail, self._settings.zone)
        self._known: dict[str, _Known] = {}
        self._list_request: asyncio.Task[TaskListing] | None = None

    @property
    def worker_pids(self) -> tuple[int, ...]:
        """The SDK's processes that live, for whoever has to look after them."""
        return self._api.link.pids

    def metric_infos(self) -> tuple[MetricInfo, ...]:
        """Return the documented metrics and those that were asked for, with the units that answers named."""
        found = {info.name: info for info in documented()}
        for name, unit in self._gatherer.units.items():
            found[name] = changed(found.get(name, MetricInfo(name=name)), unit=unit_text(unit))
        found |= {name: MetricInfo(name=name, step=CUSTOM_STEP) for name in sorted(self._gatherer.custom)}
        return tuple(found.values())

    async def metric(self, task: Task, metric: str, *, since: datetime, now: datetime) -> MetricAnswer:
        """Return points newer than `since`; what is asked about a task at once shares its calls."""
        return await self._gatherer.ask(self._subject(task), metric, since, now)

    async def exposed(self, task: Task) -> tuple[str, ...]:
        """Return the names of the metrics that a task exposes itself; none if the SDK tells none."""
        if METHOD_OF[Dimension.CUSTOM] not in (await self._api.link.ready()).features:
            return ()
        entries = await self._api.custom(await self._name(task))
        return tuple(sorted({entry.metric for entry in entries if entry.metric}))

    async def history(self, task: Task, metric: str, start: datetime, end: datetime) -> MetricAnswer:
        """Return every point from `start` to `end`, at the step that the server chooses."""
        return await self._gatherer.between(self._subject(task), metric, start, end)

    async def logs(self, task: Task, query: LogQuery) -> LogPage:
        """Return one page of lines; the newest lines are asked for once a poll."""
        known = self._knowledge(task.id)
        async with known.reading:
            if known.tail is None:
                known.tail = LogTail(limit=self._settings.log_lines, zone=self._settings.zone)
            now = self._clock.monotonic()
            due = known.read_at is None or now - known.read_at > self._settings.poll * 0.5
            if due and query.kind is ReadKind.HEAD:
                rows = await self._api.logs(task.id)
                known.read_at = now
                known.tail.take(rows, query, to_ns(self._clock.now()))
            return known.tail.serve(query)

    async def list_tasks(self) -> TaskListing:
        """Ask for the whole list; callers at the same time share one request."""
        if self._list_request is None or self._list_request.done():
            self._list_request = asyncio.create_task(self._fetch_list())
            self._list_request.add_done_callback(_seen)
        return await asyncio.shield(self._list_request)

    async def status(self, task: Task) -> TaskObservation:
        """Ask about the task itself, and for its pods; a task that the cloud no longer has is VANISHED."""
        try:
            row = await self._api.get(task.id)
        except SourceError as error:
            if error.failure is not Failure.NOT_FOUND:
                raise
            return TaskObservation(task=task, status=Status.VANISHED, status_text=NOT_FOUND)
        self._learn(row)
        try:
            roster = await self._roster(task)
        except SourceError:
            roster = None  # the status is known without its pods
        found = observe(row, source=self.name, zone=self._settings.zone, task=task, roster=roster)
        if found is None:
            raise failure(Failure.MALFORMED, "the task came without its id")
        return found

    async def probe(self) -> str:
        """Start the SDK and say in words what it is; raises `SourceError`."""
        welcome = await self._api.link.ready()
        version = welcome.sdk or "of unknown version"
        return f"SiFlow SDK {version} on Python {welcome.python}, {len(welcome.features)} of its calls known"

    async def close(self) -> None:
        """End the SDK's process."""
        if self._list_request is not None:
            self._list_request.cancel()
            await asyncio.gather(self._list_request, return_exceptions=True)
        await self._gatherer.close()
        await self._api.close()

    # --- the list

    async def _fetch_list(self) -> TaskListing:
        rows: dict[str, TaskRow] = {}
        complete = False
        for number in range(1, MOST_PAGES + 1):
            page = await self._api.list_page(number)
            before = len(rows)
            rows = {**unique(page.rows), **rows}
            if len(page.rows) < PAGE_SIZE:
                complete = True
                break
            if not page.paged or len(rows) == before:  # a full page may not be the last: more exist, unseen
                break
        for row in rows.values():
            self._learn(row)
        found = (observe(row, source=self.name, zone=self._settings.zone) for row in rows.values())
        return TaskListing(tasks=tuple(one for one in found if one is not None), complete=complete)

    # --- what is known of a task

    def _knowledge(self, task_id: str) -> _Known:
        known = self._known.get(task_id)
        if known is None:
            if len(self._known) >= TASKS_REMEMBERED:
                del self._known[next(iter(self._known))]
            known = self._known[task_id] = _Known()
        return known

    def _learn(self, row: TaskRow) -> None:
        if row.uuid and row.name:
            self._knowledge(row.uuid).name = row.name

    def _subject(self, task: Task) -> Subject:
        return Subject(task=task, name=partial(self._name, task), roster=partial(self._roster, task))

    async def _name(self, task: Task) -> str:
        """The task's name in the cloud, which metrics are asked by; the watch entry may call it otherwise."""
        known = self._knowledge(task.id)
        if not known.name:
            self._learn(await self._api.get(task.id))
        return known.name or task.name

    async def _roster(self, task: Task) -> Roster:
        """The task's pods, asked for once a poll; older ones serve while they cannot be had."""
        known = self._knowledge(task.id)
        age = self._clock.monotonic() - known.roster_at
        if known.roster is not None and age <= self._settings.poll * 0.9:
            return known.roster
        if known.roster_asked is None or known.roster_asked.done():
            known.roster_asked = asyncio.create_task(self._fetch_roster(task, known))
            known.roster_asked.add_done_callback(_seen)
        try:
            return await asyncio.shield(known.roster_asked)
        except SourceError:
            if known.roster is None or age > STALE_PODS:
                raise
            return known.roster

    async def _fetch_roster(self, task: Task, known: _Known) -> Roster:
        try:
            roster = read_roster(await self._api.pods(task.id), self._settings.zone)
        except SourceError as error:
            if error.failure is not Failure.UNSUPPORTED:
                raise
            roster = await self._compared_pods(task)
        known.roster, known.roster_at = roster, self._clock.monotonic()
        return roster

    async def _compared_pods(self, task: Task) -> Roster:
        """An SDK that cannot list pods may still compare them, which names them."""
        now = self._clock.now()
        window = (now - COMPARED, now)
        place = Dimension.ALL_PODS
        if METHOD_OF[place] not in (await self._api.link.ready()).features:
            return Roster(known=False)
        answer = await self._api.metrics(place, await self._name(task), (native("gpu"),), window)
        labels = [series.labels for metric in answer.metrics for series in metric.series]
        nodes = {label.pod: label.node for label in labels if label.pod and label.node}
        return Roster(
            alive=tuple(dict.fromkeys(label.pod for label in labels if label.pod)), nodes=nodes, known=False
        )


def _seen(request: "asyncio.Task[TaskListing] | asyncio.Task[Roster]") -> None:
    if not request.cancelled():
        request.exception()  # whoever asked may have been cancelled meanwhile
