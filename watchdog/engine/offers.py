"""What a task offers: every metric its source knows of, asked now, with unit and newest values.

Serves the running daemon, and the verb alone when there is none. Keeps nothing.
"""

import asyncio
from collections.abc import Collection, Iterable, Sequence
from datetime import timedelta

import numpy as np

from watchdog.core.evaluation import needs
from watchdog.core.health import Failure
from watchdog.core.labels import GPU, NODE, POD
from watchdog.core.rules import Rule
from watchdog.core.series import COUNTED
from watchdog.core.tasks import Task
from watchdog.engine.showing import beyond_task, moment_of
from watchdog.engine.views_asked import MetricsView, OfferView
from watchdog.errors import SourceError
from watchdog.ports import Clock, Exposing, MetricAnswer, MetricInfo, Source

BACK = timedelta(minutes=15)
AT_ONCE = 4
MOST = 200  # metrics asked for


async def offered(
    source: Source, task: Task, rules: Sequence[Rule], clock: Clock, timezone: str
) -> MetricsView:
    """Ask a source for every metric of a task that it, a rule or the task itself knows by name.

    Units are what the source knows of them afterwards: some are named by answers only.
    """
    now = clock.now()
    readers = _readers(rules)
    turns = asyncio.Semaphore(AT_ONCE)

    async def ask(name: str) -> MetricAnswer | SourceError:
        async with turns:
            try:
                return await source.metric(task, name, since=now - BACK, now=now)
            except SourceError as error:
                return error

    known = (info.name for info in source.metric_infos())
    names = list(dict.fromkeys((*known, *readers, *await _exposed(source, task))))[:MOST]
    answers = dict(zip(names, await asyncio.gather(*map(ask, names)), strict=True))
    infos = {info.name: info for info in source.metric_infos()}
    absent = [name for name, answer in answers.items() if _unknown(answer) and name not in readers]
    if len(absent) == len(answers):
        absent = []  # then it is no peculiarity of a few
    metrics = (
        _offer(infos.get(name, MetricInfo(name=name, per=())), readers.get(name, ()), answer)
        for name, answer in answers.items()
        if name not in absent
    )
    return MetricsView(
        source=source.name,
        task=task.name,
        at=now,
        timezone=timezone,
        metrics=tuple(metrics),
        not_offered=tuple(absent),
    )


async def _exposed(source: Source, task: Task) -> tuple[str, ...]:
    """What the task exposes itself; where that cannot be had, asking for the others says why."""
    if not isinstance(source, Exposing):
        return ()
    try:
        return await source.exposed(task)
    except SourceError:
        return ()


def _unknown(answer: MetricAnswer | SourceError) -> bool:
    return isinstance(answer, SourceError) and answer.failure is Failure.UNSUPPORTED


async def any_task(source: Source, wanted: str) -> Task:
    """Return a task that need not be watched, by its id, or by its name as the source's list has it.

    Of several with one name, one that has not ended. What the list does not know is taken for an id.
    """
    try:
        listed = (await source.list_tasks()).tasks
    except SourceError:
        listed = ()
    found = [one for one in listed if wanted in (one.task.id, one.task.name)]
    found.sort(key=lambda one: (one.task.id != wanted, one.status.ended))
    plain = Task(key=f"{source.name}/{wanted}", source=source.name, id=wanted, name=wanted)
    return found[0].task if found else plain


def _readers(rules: Iterable[Rule]) -> dict[str, list[str]]:
    """Which rules read which metric."""
    found: dict[str, list[str]] = {}
    for rule in rules:
        for metric, _ in sorted(needs(rule)):
            if not metric.startswith(COUNTED):
                found.setdefault(metric, []).append(rule.name)
    return found


def _offer(info: MetricInfo, readers: Sequence[str], answer: MetricAnswer | SourceError) -> OfferView:
    error = str(answer) if isinstance(answer, SourceError) else ""
    healthy = MetricAnswer(series=()) if isinstance(answer, SourceError) else answer
    series = tuple(one for one in healthy.series if one.times.size)
    newest = [(int(one.times.max()), float(one.values[int(one.times.argmax())])) for one in series]
    values = np.array([value for _, value in newest if np.isfinite(value)])
    return OfferView(
        metric=info.name,
        unit=info.unit,
        per=_coarse_first({name for one in series for name in beyond_task(one.labels)} or set(info.per)),
        series=len(series),
        newest=moment_of(max((time for time, _ in newest), default=0)),
        low=float(values.min()) if values.size else None,
        mean=float(values.mean()) if values.size else None,
        high=float(values.max()) if values.size else None,
        remarks=healthy.remarks,
        error=error,
        rules=tuple(readers),
    )


def _coarse_first(names: Collection[str]) -> tuple[str, ...]:
    known = [name for name in (NODE, POD, GPU) if name in names]
    return (*known, *sorted(set(names) - set(known)))
