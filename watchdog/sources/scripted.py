"""A source that plays a script: what `watchdog test` runs rules against.

Answers as a real cloud would at the asker's moment: only what is visible by then, with the
script's faults. Time is the Clock's.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np

from watchdog.core.conditions.kinds import Capability
from watchdog.core.durations import duration_ns, to_ns
from watchdog.core.health import Failure
from watchdog.core.labels import NODE, POD
from watchdog.core.logs import LogPage, LogQuery
from watchdog.core.script import Fault, Script, ScriptedSeries, ScriptedStatus, ScriptedTask
from watchdog.core.series import SeriesPoints
from watchdog.core.tasks import Status, Task, TaskObservation
from watchdog.errors import SourceError
from watchdog.ports import Clock, MetricAnswer, MetricInfo, TaskListing

RATIOS = ("gpu", "vram", "cpu", "memory")


class ScriptedSource:
    """Implements the Source port over a `Script`.

    true_now: the world's wall clock, which a jump of the machine's own clock does not move.
    """

    def __init__(self, script: Script, clock: Clock, true_now: Callable[[], datetime]) -> None:
        self.name = script.source
        self.all_metrics = False
        missing = {Capability.LIST: not script.listing, Capability.STATUS: not script.status_calls}
        self.capabilities = frozenset(one for one in Capability if not missing.get(one, False))
        self._script = script
        self._clock = clock
        self._true_now = true_now
        self._nodes: dict[str, dict[str, str]] = {}
        for series in script.series:
            labels = series.points.labels
            if POD in labels and NODE in labels:
                self._nodes.setdefault(series.task, {})[labels[POD]] = labels[NODE]
        self._tasks = {scripted.task.key: scripted for scripted in script.tasks}
        self.asked: dict[str, int] = {}  # questions by kind, for tests of how often is asked

    def metric_infos(self) -> tuple[MetricInfo, ...]:
        """The four ratios, and what the script names."""
        ratios = tuple(MetricInfo(name=name, unit="ratio", per=("pod", "gpu")) for name in RATIOS)
        return ratios + tuple(MetricInfo(name=name, unit=unit) for name, unit in self._script.units)

    async def list_tasks(self) -> TaskListing:
        """The tasks that exist now."""
        fault = await self._endure(Capability.LIST, "")
        now = self._true_now()
        rows = []
        for scripted in self._script.tasks:
            status = self._status(scripted, now)
            if status is not None and status.listed:
                rows.append(self._observation(scripted, status))
        if fault is not None and fault.partial_list:
            rows = [row for row in rows if row.task.key != fault.task]
            return TaskListing(tasks=tuple(rows), complete=False)
        return TaskListing(tasks=tuple(rows))

    async def status(self, task: Task) -> TaskObservation:
        """One task's status; a task that the list has no longer has vanished."""
        await self._endure(Capability.STATUS, task.key)
        scripted = self._known(task)
        status = self._status(scripted, self._true_now())
        if status is None:
            raise SourceError(Failure.NOT_FOUND, task.key)
        observation = self._observation(scripted, status)
        # Under its old id a task is gone, as far as this cloud tells.
        gone = self._script.listing and (not status.listed or task.id != observation.task.id)
        return TaskObservation(task=task, status=Status.VANISHED) if gone else observation

    async def metric(self, task: Task, metric: str, *, since: datetime, now: datetime) -> MetricAnswer:
        """The visible points newer than `since`. The asker's `now` is not trusted (it may have jumped)."""
        await self._endure(Capability.METRICS, task.key, metric)
        wanted = [s for s in self._script.series if s.task == task.key and s.metric == metric]
        return MetricAnswer(series=tuple(self._visible(series, since) for series in wanted))

    async def logs(self, task: Task, query: LogQuery) -> LogPage:
        """One page of visible rows, oldest first."""
        await self._endure(Capability.LOGS, task.key)
        now = self._true_now()
        rows = sorted(
            (
                row.line
                for row in self._script.lines
                if row.task == task.key
                and row.visible <= now
                and query.start_ns <= row.line.time_ns <= query.end_ns
                and query.pod in ("", row.line.pod)
                and query.contains in row.line.text
            ),
            key=lambda line: line.time_ns,
        )
        limit = min(query.limit, self._script.page)
        return LogPage(lines=tuple(rows[:limit]), full=len(rows) >= limit)

    async def close(self) -> None:
        """Nothing to give back."""

    def _visible(self, series: ScriptedSeries, since: datetime) -> SeriesPoints:
        times = series.points.times
        newest = to_ns(self._true_now()) - duration_ns(series.lag)
        first, last = np.searchsorted(times, [to_ns(since) + 1, newest + 1])
        return SeriesPoints(
            labels=series.points.labels, times=times[first:last], values=series.points.values[first:last]
        )

    async def _endure(self, capability: Capability, task: str, metric: str = "") -> Fault | None:
        """Suffer the fault of the hour, if any; returns one that only bends the answer."""
        self.asked[capability] = self.asked.get(capability, 0) + 1
        began = self._true_now()
        for fault in self._script.faults:
            if not (fault.begin <= began < fault.end) or fault.capability not in (None, capability):
                continue
            if fault.partial_list:
                return fault
            if fault.task not in ("", task) or fault.metric not in ("", metric):
                continue
            if fault.takes > timedelta():
                await self._clock.sleep(fault.takes)
            if fault.failure is not None:
                raise SourceError(fault.failure, fault.detail, retry_after=fault.retry_after)
        return None

    def _known(self, task: Task) -> ScriptedTask:
        if task.key not in self._tasks:
            raise SourceError(Failure.NOT_FOUND, task.key)
        return self._tasks[task.key]

    @staticmethod
    def _status(scripted: ScriptedTask, now: datetime) -> ScriptedStatus | None:
        past = [status for status in scripted.statuses if status.at <= now]
        return past[-1] if past else None

    def _observation(self, scripted: ScriptedTask, status: ScriptedStatus) -> TaskObservation:
        ids = [past.new_id for past in scripted.statuses if past.at <= status.at and past.new_id]
        return TaskObservation(
            task=replace(scripted.task, id=ids[-1]) if ids else scripted.task,
            status=status.status,
            status_text=status.text or status.status.value,
            reason=status.reason,
            nodes=self._nodes.get(scripted.task.key, {}),
        )
