"""Series: points by labels, and the columnar store that rules read.

Owns which series a point belongs to, how long points are kept, and what was consumed. Takes whole
answers with overlap, in any order. Knows nothing of sources, rules or clocks.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from watchdog.core.columns import BLOCK_ROWS, FEW_SLOTS, Bools, Columns, Floats, Ints
from watchdog.core.durations import MINUTE_NS, SECOND_NS, duration_ns
from watchdog.core.labels import GPU, NODE, POD, TASK, TASK_NAME, Labels, labels_id

KEEP = timedelta(hours=1)  # of a metric nobody said anything about
SAME_GPU_NS = 5 * MINUTE_NS  # a nameless pod is the one that had this GPU within this time
MARGIN_NS = 2 * MINUTE_NS  # kept beyond the retention: windows end a little before the newest point
COUNT_MARGIN_NS = 15 * MINUTE_NS  # the same for counts, whose lines arrive late
FAR_NS = 24 * 60 * MINUTE_NS  # a point this far in the future is no measurement and is not kept
MOST_SERIES = 200_000  # of one metric of a source; more is a mistake, not a fleet
COUNTED = "log:"  # prefix of metrics that count: points of one second add up


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesPoints:
    """Points of one series. times: int64 ns, shape (n,), ascending; values: float64, shape (n,)."""

    labels: Labels  # task identity plus pod, gpu, node
    times: NDArray[np.int64]
    values: NDArray[np.float64]


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


class Table:
    """All series of one (source, metric).

    labels: per row, its labels as last given.
    answered: task → when its last answer came (ns). cut: tasks of which that answer was not whole. far: when,
    of tasks whose last answer showed nothing but the far future.
    shape: changes whenever rows or labels do. cache: for readers; emptied whenever `shape` changes.
    """

    def __init__(self, metric: str, interned: dict[Labels, Labels] | None = None) -> None:
        self._interned = {} if interned is None else interned  # equal labels of all tables are one object
        self.columns = Columns(adds=metric.startswith(COUNTED))
        self.labels: list[Labels] = []
        self.task_names: list[str] = []
        self.refused = 0  # series of the newest answer that there was no room for
        self.answered: dict[str, int] = {}
        self.cut: set[str] = set()
        self.far: dict[str, int] = {}
        self.keep_ns = duration_ns(KEEP)
        self.shape = 0
        self.cache: dict[object, object] = {}
        self._alias: dict[Labels, int] = {}  # as given → row
        self._rows: dict[int, int] = {}  # identity → row
        self._codes: dict[str, int] = {}
        self._task_codes: list[int] = []
        self._tasks: Ints = np.zeros(0, np.int64)
        self._began: dict[str, int] = {}  # task → when its first answer came: older points are baseline
        self._podless: dict[tuple[str, str], set[Labels]] = {}  # (task, gpu) → aliases that name no pod
        self._held: dict[tuple[str, str], list[int]] = {}  # (task, gpu) → rows that name a pod
        self._held_at = 0  # the shape `_held` was made for
        self._newest: dict[str, int] = {}
        self._intakes = 0

    @property
    def tasks(self) -> Ints:
        """Per row, the place of its task in `task_names`."""
        if self._tasks.size != len(self._task_codes):
            self._tasks = np.array(self._task_codes, np.int64)
        return self._tasks

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
        lengths = np.array([item.times.size for item in series], np.int64)
        times: Ints = np.concatenate([item.times for item in series]).astype(np.int64, copy=False)
        self.far |= _only_far(series, far_ns := at_ns + FAR_NS, int(times.max(initial=0)))
        values: Floats = np.concatenate([item.values for item in series]).astype(np.float64, copy=False)
        if self.columns.adds:
            times = times - times % SECOND_NS
        finite = np.isfinite(values)
        oldest = self._oldest(times[finite], at_ns)
        usable = finite & (times > oldest) & (times <= far_ns)
        owner = np.repeat(np.arange(lengths.size), lengths)
        useful = np.bincount(owner[usable], minlength=lengths.size) > 0
        known = len(self.labels)
        rows = self._resolve(series, useful, at_ns)
        self.refused = int((useful & (rows < 0)).sum())
        if self.refused:
            useful, usable = useful & (rows >= 0), usable & (rows[owner] >= 0)
        done = self.columns.insert(rows[owner[usable]], times[usable], values[usable], oldest)
        self._note_answer(rows[useful], at_ns)
        return IntakeReport(
            points=times.size,
            added=done.added,
            late=done.late,
            rewritten=done.rewritten,
            duplicates=done.duplicates,
            not_finite=int(times.size - finite.sum()),
            expired=int(finite.sum() - usable.sum()),
            new_series=tuple(self.labels[known:]),
        )

    def forget(self, gone: Bools) -> None:
        """Drop the marked rows."""
        keep = ~gone
        numbers = np.cumsum(keep) - 1
        self.columns.keep_rows(keep)

        self._alias = {given: int(numbers[row]) for given, row in self._alias.items() if keep[row]}
        self._rows = {identity: int(numbers[row]) for identity, row in self._rows.items() if keep[row]}
        self.labels = [labels for row, labels in enumerate(self.labels) if keep[row]]
        self._tasks = self.tasks[keep]
        self._task_codes = self._tasks.tolist()
        self._podless = {
            key: known for key, given in self._podless.items() if (known := given & self._alias.keys())
        }
        self._changed()

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

    def rows_of(self, task: str) -> Ints:
        """Return the rows of one task, ascending."""
        return np.flatnonzero(self.tasks == self._codes.get(task, -1))

    def row(self, labels: Labels) -> int | None:
        """Return the row of a series, if it is known."""
        return self._rows.get(_identity(labels))

    def _oldest(self, times: Ints, at_ns: int) -> int:
        """The time up to which points are not kept. Follows the data: an outage drops nothing."""
        newest = max(int(times.max(initial=0)), int(self.columns.newest.max(initial=0)))
        margin = COUNT_MARGIN_NS if self.columns.adds else MARGIN_NS
        return min(at_ns, newest) - self.keep_ns - margin

    def _changed(self) -> None:
        self.shape += 1
        self.cache.clear()

    def _note_answer(self, rows: Ints, at_ns: int) -> None:
        codes = self.tasks[rows]
        newest = np.zeros(len(self.task_names), np.int64)
        np.maximum.at(newest, codes, self.columns.newest[rows])
        for code in np.unique(codes).tolist():
            task = self.task_names[code]
            self.answered[task] = at_ns
            self._newest[task] = max(self._newest.get(task, 0), int(newest[code]))

    def _resolve(self, series: Sequence[SeriesPoints], useful: Bools, at_ns: int) -> Ints:
        """Find or make the row of each series that has a usable point; -1 for the others, or without room."""
        alias = self._alias
        rows = np.array([alias.get(item.labels, -1) for item in series], np.int64)
        missing = np.flatnonzero((rows < 0) & useful).tolist()[: max(0, MOST_SERIES - len(self.labels))]
        if not missing:
            return rows
        nameless = [n for n in missing if GPU in series[n].labels and POD not in series[n].labels]
        named = [n for n in missing if n not in set(nameless)] if nameless else missing
        pods = Counter(_gpu_key(labels) for labels in {series[n].labels for n in named})
        for n in named:
            rows[n] = self._named(series[n], at_ns, alone=pods[_gpu_key(series[n].labels)] == 1)
        seen: dict[int, int] = {}  # row → newest time in this answer
        if nameless:
            for n in np.flatnonzero((rows >= 0) & useful).tolist():
                seen[int(rows[n])] = max(seen.get(int(rows[n]), 0), int(series[n].times.max()))
        for n in nameless:
            rows[n] = self._nameless(series[n], at_ns, seen)
        return rows

    def _named(self, item: SeriesPoints, at_ns: int, *, alone: bool) -> int:
        """The row of a series with a pod (or without a GPU)."""
        labels = item.labels
        identity = _identity(labels)
        row = self._rows.get(identity)
        if row is None and alone and POD in labels and GPU in labels:
            row = self._adopt(item, identity)
        if row is None:
            row = self._add(labels, identity, at_ns)
        elif self.labels[row] != labels:
            self.labels[row] = labels
            self._changed()
        self._alias[self.labels[row]] = row
        return row

    def _adopt(self, item: SeriesPoints, identity: int) -> int | None:
        """A series that had no pod until now gets one, if it can be no other."""
        given = self._podless.get(_gpu_key(item.labels))
        row = self._alias.get(next(iter(given))) if given else None
        if row is None or self.columns.newest[row] < int(item.times.min()) - SAME_GPU_NS:
            return None
        for labels in given or ():
            self._rows.pop(_identity(labels), None)
        self._rows[identity] = row
        self._forget_podless(_gpu_key(item.labels))
        return row

    def _forget_podless(self, key: tuple[str, str]) -> None:
        """A pod has this GPU now: a series without a pod must be looked at each time."""
        for given in self._podless.pop(key, ()):
            self._alias.pop(given, None)

    def _nameless(self, item: SeriesPoints, at_ns: int, seen: dict[int, int]) -> int:
        """The row of a series with a GPU and no pod: the pod that had this GPU, if it is one."""
        key = _gpu_key(item.labels)
        since = int(item.times.min()) - SAME_GPU_NS
        newest = self.columns.newest
        holders = self._holders().get(key, ())
        near = [row for row in holders if max(int(newest[row]), seen.get(row, 0)) >= since]
        if len(near) == 1:
            return near[0]
        identity = _identity(item.labels)
        row = self._rows.get(identity)
        if row is None:
            row = self._add(item.labels, identity, at_ns)
        if not holders:
            self._alias[item.labels] = row
            self._podless.setdefault(key, set()).add(item.labels)
        return row

    def _holders(self) -> dict[tuple[str, str], list[int]]:
        """Return which rows with a pod each (task, gpu) has; made when first needed."""
        if self._held_at != self.shape:
            self._held, self._held_at = {}, self.shape
            for row, labels in enumerate(self.labels):
                if POD in labels and GPU in labels:
                    self._held.setdefault(_gpu_key(labels), []).append(row)
        return self._held

    def _add(self, labels: Labels, identity: int, at_ns: int) -> int:
        labels = self._interned.setdefault(labels, labels)
        task = labels.get(TASK, "")
        if task not in self._codes:
            self._codes[task] = len(self.task_names)
            self.task_names.append(task)
        row = self.columns.add_row(self._began.setdefault(task, at_ns))
        self.labels.append(labels)
        self._task_codes.append(self._codes[task])
        self._rows[identity] = row
        if POD in labels and GPU in labels and self._podless:
            self._forget_podless(_gpu_key(labels))
        self._changed()
        return row


class SeriesStore:
    """Everything rules may read of metrics, in memory; one `Table` for each (source, metric)."""

    def __init__(self) -> None:
        self._tables: dict[tuple[str, str], Table] = {}
        self._interned: dict[Labels, Labels] = {}

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
        table = self.table(source, metric)
        own = table.columns.newest
        return int((own[table.rows_of(task)] if task else own).max(initial=table.far.get(task, 0)))

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
        self._interned.clear()
        self._interned.update((one, one) for table in self._tables.values() for one in table.labels)

    def _open(self, source: str, metric: str) -> Table:
        key = (source, metric)
        if key not in self._tables:
            self._tables[key] = Table(metric, self._interned)
        return self._tables[key]


def _only_far(series: Sequence[SeriesPoints], far_ns: int, newest_ns: int) -> dict[str, int]:
    nearest: dict[str, int] = {}
    for item in (one for one in series if newest_ns > far_ns and one.times.size):
        task = item.labels.get(TASK, "")
        nearest[task] = int(item.times.min(initial=nearest.get(task, newest_ns)))
    return {task: time_ns for task, time_ns in nearest.items() if time_ns > far_ns}


def _identity(labels: Labels) -> int:
    """What makes it the same series: a task may be renamed, and a pod has one node."""
    volatile = (TASK_NAME, NODE) if POD in labels else (TASK_NAME,)
    lasting = Labels((name, value) for name, value in labels.items() if name not in volatile)
    return int(labels_id(lasting), 16)


def _gpu_key(labels: Labels) -> tuple[str, str]:
    return labels.get(TASK, ""), labels.get(GPU, "")
