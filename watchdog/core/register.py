"""Register: which row of a table a series is, by its labels.

A series keeps its row when its task is renamed, when its pod's node becomes known, and when a source
leaves out the pod of a GPU for a while. Owns labels and rows only; points are `series`.
"""

from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import repeat

import numpy as np

from watchdog.core.columns import Bools, Columns, Ints
from watchdog.core.durations import MINUTE_NS
from watchdog.core.labels import GPU, NODE, POD, TASK, TASK_NAME, Interned, Labels, labels_id
from watchdog.core.points import Curves, SeriesPoints

SAME_GPU_NS = 5 * MINUTE_NS  # a nameless pod is the one that had this GPU within this time


class Register:
    """The series of one table, one row each.

    labels: per row, its labels as last given. task_names: of the tasks that have one.
    shape: changes whenever rows or labels do. cache: for readers; emptied whenever `shape` changes.
    """

    def __init__(self, columns: Columns, interned: Interned) -> None:
        self.columns = columns
        self.labels: list[Labels] = []
        self.task_names: list[str] = []
        self.shape = 0
        self.cache: dict[object, object] = {}
        self._interned = interned
        self._alias: dict[int, int] = {}  # code of the labels as given → row
        self._given = _Given()
        self._first: Labels | None = None  # of the newest answer
        self._rows: dict[int, int] = {}  # identity → row
        self._codes: dict[str, int] = {}
        self._task_codes: list[int] = []
        self._tasks: Ints = np.zeros(0, np.int64)
        self._began: dict[str, int] = {}  # task → when its first answer came: older points are baseline
        self._podless: dict[tuple[str, str], set[Labels]] = {}  # (task, gpu) → aliases that name no pod
        self._held: dict[tuple[str, str], list[int]] = {}  # (task, gpu) → rows that name a pod
        self._held_at = 0  # the shape `_held` was made for

    @property
    def tasks(self) -> Ints:
        """Per row, the place of its task in `task_names`."""
        if self._tasks.size != len(self._task_codes):
            self._tasks = np.array(self._task_codes, np.int64)
        return self._tasks

    def rows_of(self, task: str) -> Ints:
        """Return the rows of one task, ascending."""
        return np.flatnonzero(self.tasks == self._codes.get(task, -1))

    def row(self, labels: Labels) -> int | None:
        """Return the row of a series, if it is known."""
        return self._rows.get(_identity(labels))

    def renumber(self, keep: Bools) -> None:
        """Forget the rows that are not kept; the others are numbered anew, in order."""
        numbers = np.cumsum(keep) - 1
        self._alias = {given: int(numbers[row]) for given, row in self._alias.items() if keep[row]}
        self._rows = {identity: int(numbers[row]) for identity, row in self._rows.items() if keep[row]}
        self.labels = [labels for row, labels in enumerate(self.labels) if keep[row]]
        self._recode(self.tasks[keep])
        podless = {
            key: {labels for labels in given if labels.code in self._alias}
            for key, given in self._podless.items()
        }
        self._podless = {key: given for key, given in podless.items() if given}
        self._changed()

    def _recode(self, tasks: Ints) -> None:
        """Take these for the rows' tasks; those that have no row any more lose their place."""
        left, places = np.unique(tasks, return_inverse=True)
        self.task_names = [self.task_names[code] for code in left.tolist()]
        self._codes = {task: code for code, task in enumerate(self.task_names)}
        self._tasks = places.astype(np.int64)
        self._task_codes = self._tasks.tolist()

    def resolve(self, series: Curves, useful: Bools, at_ns: int, most: int) -> Ints:
        """Find or make the row of each series that has a usable point; -1 for the others, or without room.

        most: rows in all.
        """
        if self._given.are(series.labels):
            return self._given.rows
        first, self._first = self._first, series.labels[0] if series.labels else None
        # Labels are kept only of a source that keeps them itself, as it gives the same object again.
        kept = series.labels if first is not None and self._first is first else ()
        codes = [labels.code for labels in series.labels]
        if codes == self._given.codes:  # the same series in the same order as in an answer before
            self._given = replace(self._given, labels=kept)
            return self._given.rows
        rows = np.fromiter(map(self._alias.get, codes, repeat(-1)), np.int64, len(codes))
        missing = np.flatnonzero((rows < 0) & useful).tolist()[: max(0, most - len(self.labels))]
        if missing:
            self._name(series, rows, missing, useful, at_ns)
        elif rows.size and (rows >= 0).all():
            # The codes of our own labels: the given ones would keep a number alive for each series.
            own = [self.labels[row].code for row in rows.tolist()]
            if own == codes:
                rows.flags.writeable = False
                self._given = _Given(own, rows, kept)
        return rows

    def _name(self, series: Curves, rows: Ints, missing: list[int], useful: Bools, at_ns: int) -> None:
        """Find or make the rows of series whose labels were never given like this."""
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
        self._alias[labels.code] = row
        return row

    def _adopt(self, item: SeriesPoints, identity: int) -> int | None:
        """A series that had no pod until now gets one, if it can be no other."""
        given = self._podless.get(_gpu_key(item.labels))
        row = self._alias.get(next(iter(given)).code) if given else None
        if row is None or self.columns.newest[row] < int(item.times.min()) - SAME_GPU_NS:
            return None
        for labels in given or ():
            self._rows.pop(_identity(labels), None)
        self._rows[identity] = row
        self._forget_podless(_gpu_key(item.labels))
        return row

    def _forget_podless(self, key: tuple[str, str]) -> None:
        """A pod has this GPU now: a series without a pod must be looked at each time."""
        self._given = _Given()
        for given in self._podless.pop(key, ()):
            self._alias.pop(given.code, None)

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
            self._alias[item.labels.code] = row
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
        labels = self._interned.of(labels)
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

    def _changed(self) -> None:
        self.shape += 1
        self.cache.clear()
        self._given = _Given()


@dataclass(frozen=True, slots=True)
class _Given:
    """The series of an answer that were all known: their codes, rows (read only), and perhaps labels."""

    codes: list[int] = field(default_factory=list)
    rows: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    labels: tuple[Labels, ...] = ()

    def are(self, labels: tuple[Labels, ...]) -> bool:
        """Whether these are the same objects in the same order; comparing them is a matter of pointers."""
        return (
            bool(labels)
            and len(labels) == len(self.labels)
            and labels[0] is self.labels[0]
            and labels == self.labels
        )


def _identity(labels: Labels) -> int:
    """What makes it the same series: a task may be renamed, and a pod has one node."""
    volatile = (TASK_NAME, NODE) if POD in labels else (TASK_NAME,)
    lasting = Labels((name, value) for name, value in labels.items() if name not in volatile)
    return int(labels_id(lasting), 16)


def _gpu_key(labels: Labels) -> tuple[str, str]:
    return labels.get(TASK, ""), labels.get(GPU, "")
