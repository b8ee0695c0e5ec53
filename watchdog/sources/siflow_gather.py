"""Many questions about one task's metrics, answered with few calls.

The collector asks for one metric at a time, but for all of a task's in one go; what comes together goes into
one batch: up to 60 metrics in a query, a query for each pod where cards are wanted. Owns what must be
remembered of counters. Reads no clock.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as changed
from datetime import datetime, timedelta, tzinfo

from watchdog.core.health import Failure
from watchdog.core.labels import NODE
from watchdog.core.tasks import Task
from watchdog.errors import SourceError
from watchdog.ports import MetricAnswer
from watchdog.sources.answers import failure
from watchdog.sources.siflow_api import MOST_METRICS, SiflowApi
from watchdog.sources.siflow_catalogue import COUNTED, KNOWN, METHOD_OF, Detail, Dimension, Offer, native
from watchdog.sources.siflow_metrics import Counted, Found, Question, read_custom, read_metric
from watchdog.sources.siflow_tasks import Roster
from watchdog.sources.siflow_wire import MetricSet

NODES_SHOWN = 10  # by a comparison of nodes, at most
LONG = timedelta(minutes=20)  # what looks back further is asked apart
COUNTERS_REMEMBERED = 5000
# Failures that a second try at once may mend; waiting for a time-out was long enough.
AGAIN = frozenset({Failure.UNREACHABLE, Failure.SERVER_ERROR, Failure.NOT_JSON, Failure.MALFORMED})
_OF_A_POD = frozenset({Dimension.POD, Dimension.NODE, Dimension.RESOURCE})
_ONE_METRIC = frozenset({Dimension.ALL_PODS, Dimension.ALL_NODES, Dimension.RESOURCE})

Window = tuple[datetime, datetime]
Answers = dict[str, MetricAnswer | SourceError]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A task, and how to learn its name in the cloud and its pods when they are needed."""

    task: Task
    name: Callable[[], Awaitable[str]]
    roster: Callable[[], Awaitable[Roster]]


@dataclass(slots=True)
class _Batch:
    """Questions that came together."""

    subject: Subject
    now: datetime
    since: dict[str, datetime] = field(default_factory=dict)
    answers: dict[str, "asyncio.Future[MetricAnswer]"] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """One query. `pod`: whom it is about, "" = the task."""

    dimension: Dimension
    subject: str
    metrics: tuple[str, ...]
    pod: str = ""


@dataclass(slots=True)
class _Brought:
    """What the calls of one group brought, by the cloud's name of the metric."""

    found: dict[str, list[Found]] = field(default_factory=dict)
    errors: dict[str, list[SourceError]] = field(default_factory=dict)
    missing: dict[str, list[SourceError]] = field(default_factory=dict)  # pods that the cloud does not know
    asked: dict[str, int] = field(default_factory=dict)


class MetricGatherer:
    """Answers questions about metrics for one source."""

    def __init__(self, api: SiflowApi, detail: Detail, zone: tzinfo) -> None:
        self._api = api
        self._detail = detail
        self._zone = zone
        self._open: dict[str, _Batch] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._counted: dict[tuple[str, str, str], Counted] = {}
        self.units: dict[str, str] = {}  # of native metrics, as answers tell
        self.custom: set[str] = set()  # names of metrics that tasks expose, as far as they were asked for

    async def ask(self, subject: Subject, metric: str, since: datetime, now: datetime) -> MetricAnswer:
        """Return points newer than `since`; questions about a task that come at once share their calls."""
        batch = self._open.get(subject.task.key)
        if batch is None:
            batch = self._open[subject.task.key] = _Batch(subject, now)
            run = asyncio.create_task(self._run(batch))
            self._running.add(run)
            run.add_done_callback(self._running.discard)
        batch.since[metric] = min(since, batch.since.get(metric, since))
        batch.now = max(now, batch.now)
        if metric not in batch.answers:
            batch.answers[metric] = asyncio.get_running_loop().create_future()
            batch.answers[metric].add_done_callback(_seen)
        return await asyncio.shield(batch.answers[metric])

    async def between(self, subject: Subject, metric: str, start: datetime, end: datetime) -> MetricAnswer:
        """Return points of a stretch of the past."""
        answers = await self._group(subject, {metric: start}, (start, end), await self._api.offer())
        answer = answers[metric]
        if isinstance(answer, SourceError):
            raise answer
        return answer

    async def close(self) -> None:
        """Give up what is being asked."""
        for run in tuple(self._running):
            run.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    # --- batches

    async def _run(self, batch: _Batch) -> None:
        await asyncio.sleep(0)  # the collector starts all questions that are due before any of them goes on
        self._open.pop(batch.subject.task.key, None)
        try:
            offer = await self._api.offer()
            early = {metric for metric, since in batch.since.items() if batch.now - since > LONG}
            for names in (batch.since.keys() - early, early):
                wanted = {metric: batch.since[metric] for metric in names}
                if wanted:
                    window = (min(wanted.values()), batch.now)
                    self._deliver(batch, await self._group(batch.subject, wanted, window, offer))
        except SourceError as error:
            self._deliver(batch, dict.fromkeys(batch.answers, error))
        except asyncio.CancelledError:
            closed = failure(Failure.UNREACHABLE, "this source was closed")
            self._deliver(batch, dict.fromkeys(batch.answers, closed))
            raise
        except Exception as error:  # noqa: BLE001 - a bug of ours: whoever asked is to know
            for answer in batch.answers.values():
                if not answer.done():
                    answer.set_exception(error)

    @staticmethod
    def _deliver(batch: _Batch, answers: Mapping[str, MetricAnswer | SourceError]) -> None:
        for metric, given in answers.items():
            answer = batch.answers[metric]
            if answer.done():
                continue
            if isinstance(given, SourceError):
                answer.set_exception(failure(given.failure, given.detail, retry_after=given.retry_after))
            else:
                answer.set_result(given)

    async def _group(
        self, subject: Subject, wanted: Mapping[str, datetime], window: Window, offer: Offer
    ) -> Answers:
        """Ask for several metrics over one window."""
        answers: Answers = {}
        places: dict[Dimension, list[str]] = {}
        for name in dict.fromkeys(map(native, wanted)):
            place = self._place(name, offer)
            if place is not None:
                places.setdefault(place, []).append(name)
        name, roster = await subject.name(), await subject.roster()
        calls = [
            call
            for place, names in places.items()
            if place is not Dimension.CUSTOM
            for call in _calls(place, names, name, roster, offer)
        ]
        brought = await self._bring(calls, window, roster)
        if Dimension.CUSTOM in places:
            custom = [metric for metric in wanted if metric in places[Dimension.CUSTOM]]
            answers |= await self._custom(subject.task, name, {metric: wanted[metric] for metric in custom})
        for metric, since in wanted.items():
            if metric not in answers:
                answers[metric] = self._answer(subject.task, metric, since, brought, roster, offer)
        return answers

    def _place(self, metric: str, offer: Offer) -> Dimension | None:
        place = offer.place(metric, self._detail)
        if place is None and metric not in KNOWN and METHOD_OF[Dimension.CUSTOM] in offer.features:
            return Dimension.CUSTOM
        return place

    # --- calls

    async def _bring(self, calls: Sequence[_Call], window: Window, roster: Roster) -> _Brought:
        brought = _Brought()
        for call in calls:
            for metric in call.metrics:
                brought.asked[metric] = brought.asked.get(metric, 0) + 1
        results = await asyncio.gather(*(self._twice(call, window) for call in calls), return_exceptions=True)
        for call, result in zip(calls, results, strict=True):
            if isinstance(result, SourceError):
                gone = bool(call.pod) and result.failure is Failure.NOT_FOUND
                for metric in call.metrics:
                    (brought.missing if gone else brought.errors).setdefault(metric, []).append(result)
            elif isinstance(result, BaseException):
                raise result
            else:
                _sort(call, result, roster, brought)
        return brought

    async def _twice(self, call: _Call, window: Window) -> MetricSet:
        try:
            return await self._api.metrics(call.dimension, call.subject, call.metrics, window)
        except SourceError as error:
            if error.failure not in AGAIN:
                raise
        return await self._api.metrics(call.dimension, call.subject, call.metrics, window)

    async def _custom(self, task: Task, name: str, wanted: Mapping[str, datetime]) -> Answers:
        try:
            entries = await self._api.custom(name)
        except SourceError as error:
            return dict.fromkeys(wanted, error)
        self.custom |= wanted.keys() & {entry.metric for entry in entries}
        return {
            metric: read_custom(
                Question(task=task, metric=metric, unit="", since=since, zone=self._zone), entries
            )
            for metric, since in wanted.items()
        }

    # --- answers

    def _answer(
        self, task: Task, metric: str, since: datetime, brought: _Brought, roster: Roster, offer: Offer
    ) -> MetricAnswer | SourceError:
        name = native(metric)
        found, errors = brought.found.get(name, []), brought.errors.get(name, [])
        if self._place(name, offer) is None:
            return failure(Failure.UNSUPPORTED, f"metric {metric!r}: neither this cloud nor this SDK has it")
        missing = brought.missing.get(name, [])
        if not found and (errors or missing):
            return (errors or missing)[0]
        counted = self._counter(task, name) if name in COUNTED else None
        question = Question(
            task=task,
            metric=metric,
            unit=offer.unit(name),
            since=since,
            zone=self._zone,
            pods=roster.alive,
            nodes=roster.nodes,
            counted=counted,
        )
        try:
            answer = read_metric(question, found)
        except SourceError as error:
            return error
        self._learn(name, found)
        if counted is not None:
            counted.learn({*(one.pod for one in found), *roster.alive}, answer.series)
        remarks = (*answer.remarks, *_node_cap(self._place(name, offer), answer, roster))
        if errors:
            said = f"some pods could not be asked: {len(errors)} of {brought.asked[name]}, {errors[0]}"
            return changed(answer, remarks=(*remarks, said), complete=False)
        return changed(answer, remarks=remarks)

    def _counter(self, task: Task, metric: str) -> Counted:
        key = (task.key, task.id, metric)
        if key not in self._counted and len(self._counted) >= COUNTERS_REMEMBERED:
            del self._counted[next(iter(self._counted))]
        return self._counted.setdefault(key, Counted())

    def _learn(self, metric: str, found: Iterable[Found]) -> None:
        unit = next((one.row.unit for one in found if one.row is not None and one.row.unit), "")
        if unit:
            self.units[metric] = unit


def _calls(place: Dimension, metrics: Sequence[str], name: str, roster: Roster, offer: Offer) -> list[_Call]:
    """Return the queries for some metrics that are asked in one place."""
    if roster.known and not roster.alive:
        return []  # it waits, or has ended
    if place is Dimension.ALL_PODS and 0 < len(roster.alive) < len(metrics):
        listed = offer.listed.get(Dimension.POD, dict.fromkeys(metrics, ""))
        if METHOD_OF[Dimension.POD] in offer.features and all(metric in listed for metric in metrics):
            place = Dimension.POD  # fewer calls
    subjects = [(pod, pod) for pod in roster.alive] if place in _OF_A_POD else [(name, "")]
    size = 1 if place in _ONE_METRIC else MOST_METRICS
    return [
        _Call(dimension=place, subject=subject, metrics=tuple(metrics[first : first + size]), pod=pod)
        for subject, pod in subjects
        for first in range(0, len(metrics), size)
    ]


def _sort(call: _Call, result: MetricSet, roster: Roster, brought: _Brought) -> None:
    """Put the parts of an answer where they belong; they come in the order asked, but are named too."""
    node = (result.node or "") if call.dimension is Dimension.NODE else ""
    by_name = {row.metric: row for row in result.metrics if row.metric}
    if len(call.metrics) == 1 and len(result.metrics) == 1:
        by_name.setdefault(call.metrics[0], result.metrics[0])
    for metric in call.metrics:
        one = Found(
            row=by_name.get(metric),
            pod=call.pod,
            node=node or roster.nodes.get(call.pod, ""),
            warnings=tuple(result.warnings),
        )
        brought.found.setdefault(metric, []).append(one)


def _node_cap(place: Dimension | None, answer: MetricAnswer, roster: Roster) -> tuple[str, ...]:
    if place is not Dimension.ALL_NODES:
        return ()
    shown = {series.labels.get(NODE, "") for series in answer.series}
    known = len(set(roster.nodes.values()))
    if len(shown) < NODES_SHOWN or 0 < known <= NODES_SHOWN:
        return ()
    of = f" of {known}" if known else ""
    return (f"only {len(shown)}{of} nodes are compared: the source shows no more; detail: gpu asks each",)


def _seen(answer: "asyncio.Future[MetricAnswer]") -> None:
    if not answer.cancelled():
        answer.exception()  # whoever asked may have been cancelled meanwhile
