"""What a task offers: every metric its source knows of, asked now, with unit and newest values.

Serves the running daemon, and the verb alone when there is none. Keeps nothing.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

import numpy as np

from watchdog.core.evaluation import needs
from watchdog.core.rules import Rule
from watchdog.core.series import COUNTED
from watchdog.core.tasks import Task
from watchdog.engine.showing import moment_of
from watchdog.engine.views_asked import MetricsView, OfferView
from watchdog.errors import SourceError
from watchdog.ports import Clock, MetricAnswer, Source

BACK = timedelta(minutes=15)
AT_ONCE = 4
MOST = 200  # metrics asked for


async def offered(
    source: Source, task: Task, rules: Sequence[Rule], clock: Clock, timezone: str
) -> MetricsView:
    """Ask a source for every metric of a task that it, or a rule, knows by name."""
    now = clock.now()
    units = {info.name: info.unit for info in source.metric_infos()}
    readers = _readers(rules)
    names = list(dict.fromkeys((*units, *readers)))[:MOST]
    turns = asyncio.Semaphore(AT_ONCE)

    async def ask(name: str) -> OfferView:
        async with turns:
            try:
                answer = await source.metric(task, name, since=now - BACK, now=now)
            except SourceError as error:
                return _offer(name, units.get(name, ""), readers, None, str(error))
            return _offer(name, units.get(name, ""), readers, answer, "")

    metrics = await asyncio.gather(*map(ask, names))
    return MetricsView(source=source.name, task=task.name, at=now, timezone=timezone, metrics=tuple(metrics))


def _readers(rules: Iterable[Rule]) -> dict[str, list[str]]:
    """Which rules read which metric."""
    found: dict[str, list[str]] = {}
    for rule in rules:
        for metric, _ in sorted(needs(rule)):
            if not metric.startswith(COUNTED):
                found.setdefault(metric, []).append(rule.name)
    return found


def _offer(
    name: str, unit: str, readers: Mapping[str, Sequence[str]], answer: MetricAnswer | None, error: str
) -> OfferView:
    series = () if answer is None else tuple(one for one in answer.series if one.times.size)
    newest = [(int(one.times.max()), float(one.values[int(one.times.argmax())])) for one in series]
    values = np.array([value for _, value in newest if np.isfinite(value)])
    return OfferView(
        metric=name,
        unit=unit,
        series=len(series),
        newest=moment_of(max((time for time, _ in newest), default=0)),
        low=float(values.min()) if values.size else None,
        mean=float(values.mean()) if values.size else None,
        high=float(values.max()) if values.size else None,
        remarks=() if answer is None else answer.remarks,
        error=error,
        rules=tuple(readers.get(name, ())),
    )
