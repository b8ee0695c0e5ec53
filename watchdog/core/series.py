"""Series: points by labels, and the columnar store that rules read.

Owns which series a point belongs to, how long points are kept, and what was consumed. Takes whole
answers with overlap, in any order. Knows nothing of sources, rules or clocks.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from watchdog.core.columns import BLOCK_ROWS, FEW_SLOTS, Bools, Columns, Ints
from watchdog.core.durations import MINUTE_NS, SECOND_NS, duration_ns
from watchdog.core.labels import TASK, Interned, Labels
from watchdog.core.points import Curves, SeriesPoints
from watchdog.core.register import Register

__all__ = [
    "COUNTED",
    "KEEP",
    "MARGIN_NS",
    "MOST_SERIES",
    "IntakeReport",
    "SeriesPoints",
    "SeriesStore",
    "Table",
]

KEEP = timedelta(hours=1)  # of a metric nobody said anything about
MARGIN_NS = 2 * MINUTE_NS  # kept beyond the retention: windows end a little before the newest point
COUNT_MARGIN_NS = 15 * MINUTE_NS  # the same for counts, whose lines arrive late
FAR_NS = 24 * 60 * MINUTE_NS  # a point this far in the future is no measurement and is not kept
MOST_SERIES = 200_000  # of one metric of a source; more is a mistake, not a fleet
COUNTED = "log:"  # prefix of metrics that count: points of one second add up


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeReport:
    """What became of one answer's points."""

    points: int = 0  # given
    added: int = 0  # new to the store
    late: int = 0  # of the added ones: older than their series' newest
    rewritten: int = 0  # a known time with another value: the newest answer wins
    duplicates: int = 0
    not_finite: int = 0  # NaN or infinite: dropped
    expired: int = 0  # older than the retention, or of the far future: dropped
    new_series: tuple[Labels, ...] = ()


class Table(Register):
    """All series of one (source, metric).

    answered: task → when its last answer came (ns). cut: tasks of which that answer was not whole. far: when,
    of tasks whose last answer showed nothing but the far future.
    """

    def __init__(self, metric: str, interned: Interned | None = None) -> None:
        super().__init__(Columns(adds=metric.startswith(COUNTED)), interned or Interned())
        self.refused = 0  # series of the newest answer that there was no room for
        self.answered: dict[str, int] = {}
        self.cut: set[str] = set()
        self.far: dict[str, int] = {}
        self.keep_ns = duration_ns(KEEP)
        self._newest: dict[str, int] = {}
        self._by_task: tuple[tuple[int, int], dict[str, int]] = ((-1, 0), {})  # as of a shape and intake
        self._intakes = 0

    def end(self, slots: Ints) -> Ints:
        """Return the newest time up to each slot over all series, 0 = none: int64 (T,)."""
        known = self.cache.get("end")
        key = (self.shape, self._intakes, slots.tobytes())
        if isinstance(known, tuple) and known[0] == key:
            found: Ints = known[1]
            return found
        found = self._end(slots)
        self.cache["end"] = (key, found)
        return found

    def _end(self, slots: Ints) -> Ints:
        newest = self.columns.newest
        found = np.zeros(slots.size, np.int64)
        if slots.size <= FEW_SLOTS:
            for place, slot in enumerate(slots.tolist()):
                found[place] = newest[newest <= slot].max(initial=0)
                for _, span in self.columns.spans(np.flatnonzero(newest > slot), BLOCK_ROWS, 1):
                    found[place] = span.times.max(where=span.times <= slot, initial=found[place])
            return found
        for _, span in self.columns.spans(np.arange(self.columns.rows), BLOCK_ROWS, 1):
            for grid in range(span.counts.size):
                own = span.times[grid, : span.counts[grid]]
                before = np.searchsorted(own, slots, side="right")
                found = np.maximum(found, np.where(before > 0, own[np.maximum(before - 1, 0)], 0))
        return found

    def intake(
        self, series: Sequence[SeriesPoints], at_ns: int, tasks: Collection[str], cut: Collection[str] = ()
    ) -> IntakeReport:
        """Take in one answer; see `SeriesStore.intake`."""
        for task in tasks:
            self.answered[task] = at_ns
            self.far.pop(task, None)
        self.cut = (self.cut - set(tasks)) | set(cut)
        if not series:
            return IntakeReport()
        self._intakes += 1
        curves = Curves.of(series)
        times, values, lengths = curves.times, curves.values, np.diff(curves.starts)
        self.far |= _only_far(curves, far_ns := at_ns + FAR_NS, int(times.max(initial=0)))
        if self.columns.adds:
            times = times - times % SECOND_NS
        finite = np.isfinite(values)
        oldest = self._oldest(times if finite.all() else times[finite], at_ns)
        usable = finite & (times > oldest) & (times <= far_ns)
        known = len(self.labels)
        if usable.all():  # as almost always: nothing has to be picked out
            useful = lengths > 0
        else:
            owner = np.repeat(np.arange(lengths.size), lengths)
            useful = np.bincount(owner[usable], minlength=lengths.size) > 0
        rows = self.resolve(curves, useful, at_ns, MOST_SERIES)
        self.refused = int(np.count_nonzero(useful & (rows < 0)))
        of_points = np.repeat(rows, lengths)
        if self.refused:
            useful, usable = useful & (rows >= 0), usable & (of_points >= 0)
        if not usable.all():
            of_points, times, values = of_points[usable], times[usable], values[usable]
        done = self.columns.insert(of_points, times, values, oldest)
        self._note_answer(rows[useful], at_ns)
        return IntakeReport(
            points=finite.size,
            added=done.added,
            late=done.late,
            rewritten=done.rewritten,
            duplicates=done.duplicates,
            not_finite=finite.size - int(np.count_nonzero(finite)),
            expired=int(np.count_nonzero(finite)) - int(np.count_nonzero(usable)),
            new_series=tuple(self.labels[known:]),
        )

    def forget(self, gone: Bools) -> None:
        """Drop the marked rows."""
        keep = ~gone
        self.columns.keep_rows(keep)
        self.renumber(keep)

    def forget_task(self, task: str) -> None:
        """Drop all rows of a task, and that it ever answered."""
        code = self._codes.get(task, -1)
        if (self.tasks == code).any():
            self.forget(self.tasks == code)
        self.answered.pop(task, None)
        self.cut.discard(task)
        self._began.pop(task, None)
        self._newest.pop(task, None)

    def ahead_ns(self, task: str) -> int:
        """Return how far the newest point lay in the future when the task last answered."""
        return self.far.get(task, self._newest.get(task, 0)) - self.answered.get(task, 0)

    def newest(self, task: str = "") -> int:
        """Return the time of the newest point, or of one task's; 0 = none."""
        own = self.columns.newest
        if not task:
            return int(own.max(initial=0))
        return max(self._newest_of_tasks().get(task, 0), self.far.get(task, 0))

    def in_time(self, ahead_ns: int, oldest_ns: int = 0) -> set[str]:
        """Return the tasks that answered, and whose newest point is no older, nor further in the future.

        ahead_ns: counted from when the answer came.
        """
        newest, ever, answered = self._newest_of_tasks(), self._newest, self.answered
        if newest.keys() >= answered.keys() and not self.far and answered:
            least, most = min(newest.values()), max(ever.values(), default=0)
            if least >= oldest_ns and most - min(answered.values()) <= ahead_ns:
                return set(answered)  # all of them, as almost always
        found = {
            task
            for task, at_ns in answered.items()
            if ever.get(task, 0) - at_ns <= ahead_ns and newest.get(task, 0) >= oldest_ns
        }
        return found - self.far.keys() if self.far else found

    def _newest_of_tasks(self) -> Mapping[str, int]:
        """Return the time of the newest stored point of each task."""
        if self._by_task[0] != (self.shape, self._intakes):
            newest = np.zeros(len(self.task_names), np.int64)
            np.maximum.at(newest, self.tasks, self.columns.newest)
            made = dict(zip(self.task_names, newest.tolist(), strict=True))
            self._by_task = (self.shape, self._intakes), made
        return self._by_task[1]

    def _oldest(self, times: Ints, at_ns: int) -> int:
        """The time up to which points are not kept. Follows the data: an outage drops nothing."""
        newest = max(int(times.max(initial=0)), int(self.columns.newest.max(initial=0)))
        margin = COUNT_MARGIN_NS if self.columns.adds else MARGIN_NS
        return min(at_ns, newest) - self.keep_ns - margin

    def _note_answer(self, rows: Ints, at_ns: int) -> None:
        here = np.zeros(self.columns.rows, np.bool_)
        here[rows] = True  # one may be given twice: as many as there are need not be all
        if here.all():
            found = self._newest_of_tasks()
        else:
            newest = np.zeros(len(self.task_names), np.int64)
            np.maximum.at(newest, self.tasks[rows], self.columns.newest[rows])
            found = dict(zip(self.task_names, newest.tolist(), strict=True))
        ever = self._newest
        for task, time_ns in found.items():
            if time_ns:
                self.answered[task] = at_ns
                if time_ns > ever.get(task, 0):
                    ever[task] = time_ns


class SeriesStore:
    """Everything rules may read of metrics, in memory; one `Table` for each (source, metric)."""

    def __init__(self) -> None:
        self._tables: dict[tuple[str, str], Table] = {}
        self._interned = Interned()

    def keep(self, source: str, metric: str, duration: timedelta) -> None:
        """Say how far back windows of this metric reach; what is older goes when room is needed."""
        self._open(source, metric).keep_ns = duration_ns(duration)

    def intake(
        self,
        source: str,
        metric: str,
        series: Sequence[SeriesPoints],
        at_ns: int,
        *,
        tasks: Collection[str] = (),
        cut: Collection[str] = (),
    ) -> IntakeReport:
        """Take in one answer, or many of one (source, metric) at once, which is cheaper.

        Overlap, duplicates, unsorted and late points are fine; of one series and time the newest
        answer wins (points of `log:` metrics add up instead, per second). at_ns: when it came.
        tasks: keys of the tasks that answered; needed where an answer may hold no series at all,
        since "answered without data" (NODATA) and "not asked yet" (ERROR) are told apart by it.
        cut: those of which the source has more than it showed: nothing is judged by it (THIN).
        """
        return self._open(source, metric).intake(series, at_ns, tasks, cut)

    def table(self, source: str, metric: str) -> Table:
        """Return the columns of one metric (empty if nothing ever came)."""
        return self._tables.get((source, metric)) or Table(metric)

    def mark(self) -> None:
        """Say that every point now here was consumed: `changes` looks at newer ones only."""
        for table in self._tables.values():
            np.maximum(table.columns.mark, table.columns.newest, out=table.columns.mark)

    def forget(self, *, before_ns: int = 0, task: str = "") -> int:
        """Drop series that ended: newest point before a time, or all of one task. Returns how many."""
        dropped = 0
        for table in self._tables.values():
            rows = table.columns.rows
            if task:
                table.forget_task(task)
            gone = table.columns.newest < before_ns
            if gone.any():
                table.forget(gone)
            dropped += rows - table.columns.rows
        if dropped:
            self._intern_anew()
        return dropped

    def forget_outlived(self, age: timedelta) -> int:
        """Drop series whose task has had newer data of the metric for so long, or a window. Returns how many.

        A source that gives nothing at all drops nothing: it is the data that moves on, not the clock.
        """
        dropped = 0
        for table in self._tables.values():
            newest = table.columns.newest
            latest = np.zeros(len(table.task_names), np.int64)
            np.maximum.at(latest, table.tasks, newest)
            gone = newest < latest[table.tasks] - max(duration_ns(age), table.keep_ns)
            if gone.any():
                table.forget(gone)
                dropped += int(gone.sum())
        if dropped:
            self._intern_anew()
        return dropped

    def forget_metric(self, metric: str) -> None:
        """Drop every series of a metric, of all sources, and that any task ever answered."""
        for key in [key for key in self._tables if key[1] == metric]:
            fresh = Table(metric, self._interned)
            fresh.keep_ns = self._tables[key].keep_ns
            self._tables[key] = fresh

    def newest(self, source: str, metric: str, task: str = "") -> int:
        """Return the time of the newest point of a metric, or of one task's; 0 = none."""
        return self.table(source, metric).newest(task)

    def latest(self, source: str, metric: str) -> tuple[tuple[Labels, int], ...]:
        """Return every series with the time of its newest point."""
        table = self.table(source, metric)
        return tuple(zip(table.labels, table.columns.newest.tolist(), strict=True))

    def points(self, source: str, metric: str, labels: Labels) -> SeriesPoints:
        """Return a copy of what is stored of one series (empty if it is unknown)."""
        table = self.table(source, metric)
        row = table.row(labels)
        if row is None:
            return SeriesPoints(labels=labels, times=np.zeros(0, np.int64), values=np.zeros(0))
        _, span = next(table.columns.spans(np.array([row]), 1, 1))
        count = int(span.counts[0])
        return SeriesPoints(
            labels=table.labels[row], times=span.times[0, :count].copy(), values=span.values[0, :count].copy()
        )

    def metrics(self) -> tuple[tuple[str, str], ...]:
        """Return every (source, metric) that is known."""
        return tuple(self._tables)

    @property
    def nbytes(self) -> int:
        """Bytes held by points."""
        return sum(table.columns.nbytes for table in self._tables.values())

    def _intern_anew(self) -> None:
        self._interned.keep(one for table in self._tables.values() for one in table.labels)

    def _open(self, source: str, metric: str) -> Table:
        key = (source, metric)
        if key not in self._tables:
            self._tables[key] = Table(metric, self._interned)
        return self._tables[key]


def _only_far(series: Curves, far_ns: int, newest_ns: int) -> dict[str, int]:
    nearest: dict[str, int] = {}
    for item in (one for one in series if one.times.size) if newest_ns > far_ns else ():
        task = item.labels.get(TASK, "")
        nearest[task] = int(item.times.min(initial=nearest.get(task, newest_ns)))
    return {task: time_ns for task, time_ns in nearest.items() if time_ns > far_ns}
