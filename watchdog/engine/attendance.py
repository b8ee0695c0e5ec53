"""Attendance: which pods and GPUs gave data lately, without a look at every series in every slot.

Numbers the members that stand behind the series of each table when its set of series changes; a
slot only compares times. Knows nothing of who is expected: that is `core.expecting`.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from watchdog.core.columns import Bools, Ints
from watchdog.core.labels import GPU, POD, TASK, Labels
from watchdog.core.series import COUNTED, SeriesStore, Table

NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class _Numbered:
    """The members behind one table's rows: number `numbers[i]` has the rows from place `starts[i]` on.

    shape, size: of the table when they were numbered.
    """

    table: Table
    shape: int
    size: int
    rows: Ints
    starts: Ints
    numbers: Ints

    @classmethod
    def of(cls, table: Table, rows: list[int], numbers: list[int]) -> "_Numbered":
        order = np.argsort(numbers, kind="stable")
        own, starts = np.unique(np.array(numbers, np.int64)[order], return_index=True)
        return cls(table, table.shape, len(table.labels), np.array(rows, np.int64)[order], starts, own)

    def newest(self) -> Ints:
        """Return the time of each member's newest point."""
        found: Ints = np.maximum.reduceat(self.table.columns.newest[self.rows], self.starts)
        return found


class Attendance:
    """Members are `{pod}` and `{pod, gpu}` (or `{gpu}`), each with the newest time of any metric."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._tables: dict[tuple[str, str], _Numbered] = {}
        self._numbers: dict[tuple[str, Labels], int] = {}
        self._behind: dict[Labels, tuple[int, ...]] = {}  # a series' labels → its members
        self._members: list[Labels] = []
        self._task_names: dict[str, int] = {}
        self._task_of: list[int] = []
        self._codes: Ints = np.zeros(0, np.int64)  # the same as an array
        self._own: dict[str, list[int]] = {}  # task → its members
        self._times: Ints | None = None  # of each member's newest point; made when first needed
        self._here: Bools = np.zeros(0, np.bool_)

    def look(self, series: SeriesStore, after_ns: Mapping[str, int], until_ns: int) -> Collection[str]:
        """Look anew. Returns the tasks of which others are here than at the last look.

        after_ns: by task; who is here has a point after it, and none after `until_ns`.
        """
        begun = self._renumber(series)
        self._times = None
        before = np.zeros(len(self._members), np.bool_)
        before[: self._here.size] = self._here
        self._here = self._who_is_here(after_ns, until_ns)
        if begun:
            return self._task_names.keys()
        names = list(self._task_names)
        return {names[code] for code in set(self._tasks_of()[self._here != before].tolist())}

    def _who_is_here(self, after_ns: Mapping[str, int], until_ns: int) -> Bools:
        last = max(after_ns.values(), default=NEVER) if self._task_names.keys() <= after_ns.keys() else NEVER
        newest = [known.table.columns.newest for known in self._tables.values()]
        if all(own.min(initial=NEVER) > last and own.max(initial=0) <= until_ns for own in newest):
            here = np.zeros(len(self._members), np.bool_)  # some may have no series any more
            for known in self._tables.values():
                here[known.numbers] = True  # everybody else, in every metric, as almost always
            return here
        after = np.array([after_ns.get(task, NEVER) for task in self._task_names], np.int64)
        return (self._newest() > after[self._tasks_of()]) & (self._newest() <= until_ns)

    def _newest(self) -> Ints:
        """Return the time of each member's newest point, as of the newest look."""
        if self._times is None:
            self._times = np.zeros(len(self._members), np.int64)
            for known in self._tables.values():
                if known.numbers.size:
                    self._times[known.numbers] = np.maximum(self._times[known.numbers], known.newest())
        return self._times

    def newest(self, task: str) -> dict[Labels, int]:
        """Return every known member of a task with the time of its newest point, ns."""
        own = self._own.get(task, [])
        return {self._members[n]: time for n, time in zip(own, self._newest()[own].tolist(), strict=True)}

    def here(self, task: str) -> dict[Labels, int]:
        """Return the members of a task that gave data lately, with the time of the newest point, ns."""
        own = [n for n in self._own.get(task, []) if self._here[n]]
        return {self._members[n]: time for n, time in zip(own, self._newest()[own].tolist(), strict=True)}

    def _renumber(self, series: SeriesStore) -> bool:
        """Number the rows of tables that have other series than before. Returns whether all began anew."""
        tables = {key: series.table(*key) for key in series.metrics() if not key[1].startswith(COUNTED)}
        begun = any(
            key not in tables or tables[key] is not known.table or known.table.columns.rows < known.size
            for key, known in self._tables.items()
        )
        if begun:  # series were dropped: so are the numbers that nobody needs any more
            self._forget()
        for key, table in tables.items():
            known = self._tables.get(key)
            if known is None or known.shape != table.shape:
                self._tables[key] = self._number(table)
        return begun

    def _number(self, table: Table) -> _Numbered:
        rows: list[int] = []
        numbers: list[int] = []
        for row, labels in enumerate(table.labels):
            behind = self._behind.get(labels)
            if behind is None:
                behind = self._behind[labels] = self._members_of(labels)
            for number in behind:
                rows.append(row)
                numbers.append(number)
        return _Numbered.of(table, rows, numbers)

    def _tasks_of(self) -> Ints:
        """Return the place of each member's task in the names."""
        if self._codes.size != len(self._task_of):
            self._codes = np.array(self._task_of, np.int64)
        return self._codes

    def _members_of(self, labels: Labels) -> tuple[int, ...]:
        task = labels.get(TASK, "")
        parts = (labels.only((POD, GPU)), labels.only((POD,)))
        return tuple(self._number_of(task, part) for part in dict.fromkeys(parts) if part)

    def _number_of(self, task: str, member: Labels) -> int:
        number = self._numbers.get((task, member))
        if number is None:
            number = self._numbers[task, member] = len(self._members)
            self._members.append(member)
            self._task_of.append(self._task_names.setdefault(task, len(self._task_names)))
            self._own.setdefault(task, []).append(number)
        return number
