"""Members: which series, pods and GPUs stand behind each labelset of a rule.

Owns grouping (`by`), what is expected of a task, and reducing over the members of a group. The
roster of a table is renewed only when its set of series, or what is expected, changes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import is_

import numpy as np
from numpy.typing import NDArray

from watchdog.core.columns import Bools, Floats, Ints
from watchdog.core.conditions.kinds import By
from watchdog.core.labels import GPU, NODE, POD, Labels
from watchdog.core.series import Table
from watchdog.core.tasks import TaskState

ROSTERS_KEPT = 32


@dataclass(frozen=True, slots=True)
class Partition:
    """Which consecutive rows belong together.

    starts: where each non-empty group begins; filled: its number; size: groups in all, empty ones too.
    """

    starts: Ints
    filled: Ints
    size: int

    @classmethod
    def of(cls, codes: Ints, size: int) -> "Partition":
        """Cut sorted group numbers into groups."""
        if not codes.size:
            return cls(np.zeros(0, np.int64), np.zeros(0, np.int64), size)
        starts = np.concatenate(([0], np.flatnonzero(codes[1:] != codes[:-1]) + 1))
        return cls(starts, codes[starts], size)

    def fold(self, fold: np.ufunc, values: NDArray[np.generic], empty: float) -> NDArray[np.generic]:
        """Fold rows (R, T) into groups (size, T); `empty` where a group has no row."""
        if self.alone(values.shape[0]):
            return values
        found = np.full((self.size, values.shape[1]), empty, values.dtype)
        if self.starts.size == values.shape[0]:
            found[self.filled] = values
        elif self.starts.size:
            if values.shape[1] == 1:
                found[self.filled, 0] = fold.reduceat(values[:, 0], self.starts)
            else:
                found[self.filled] = fold.reduceat(values, self.starts, axis=0)
        return found

    def alone(self, rows: int) -> bool:
        """Whether each of so many rows is a group of its own."""
        return self.starts.size == rows == self.size

    def count(self, marked: Bools) -> Ints:
        """Count marked rows per group and slot."""
        return self.fold(np.add, marked.astype(np.int64), 0).astype(np.int64, copy=False)

    def latest(self, times: Ints) -> Ints:
        """Return the largest time per group and slot, 0 where there is no row."""
        return self.fold(np.maximum, times, 0).astype(np.int64, copy=False)

    def across(self, values: Floats, use: Bools, how: str) -> Floats:
        """Reduce the used rows of each group: avg, min, max, sum or median; NaN where none is used."""
        if self.alone(values.shape[0]):
            return np.where(use, values, np.nan)
        count = self.count(use)
        with np.errstate(all="ignore"):
            if how in ("avg", "sum"):
                found = self.fold(np.add, np.where(use, values, 0.0), 0).astype(np.float64)
                found = found / count if how == "avg" else found
            elif how in ("min", "max"):
                away = np.inf if how == "min" else -np.inf
                fold = np.minimum if how == "min" else np.maximum
                found = self.fold(fold, np.where(use, values, away), 0).astype(np.float64)
            else:
                found = self._median(np.where(use, values, np.inf), count)
        return np.where(count > 0, found, np.nan)

    def _median(self, values: Floats, count: Ints) -> Floats:
        """Return the middle of each group's `count` smallest rows."""
        found = np.full(count.shape, np.nan)
        if self.starts.size:
            ranked, slots = self._ranked(values), np.arange(values.shape[1])
            used = np.maximum(count[self.filled], 1)
            low, high = self.starts[:, None] + (used - 1) // 2, self.starts[:, None] + used // 2
            found[self.filled] = (ranked[low, slots] + ranked[high, slots]) / 2
        return found

    def _ranked(self, values: Floats) -> Floats:
        """Return the rows (R, T) with those of each group in order, slot by slot."""
        groups, rows = self.starts.size, values.shape[0]
        each = rows // groups
        if each * groups == rows and (self.starts == np.arange(groups) * each).all():
            return np.sort(values.reshape(groups, each, -1), axis=1).reshape(values.shape)
        codes = np.repeat(np.arange(groups), np.diff(np.append(self.starts, rows)))
        ranked = np.empty_like(values)
        for slot in range(values.shape[1]):
            ranked[:, slot] = values[np.lexsort((values[:, slot], codes)), slot]
        return ranked


@dataclass(frozen=True, slots=True, kw_only=True)
class Roster:
    """Who stands behind what, for some tasks of one table. Rows are sorted by task, then group.

    rows: table rows, ascending (storage order); order: puts them into roster order; straight: it is the same.
    row_task: (R,) place in the tasks given; row_expected: (R,); both in roster order.
    labels: the G labelsets, grouped by task; group_task: (G,).
    expected: (G,) members expected, with or without a series. has_expected, has_rows: per task.
    ghosts: (group, task, place in `TaskState.expected`) of the expected members without a series.
    whole: every series is expected, and every expected member has one.
    """

    rows: Ints
    order: Ints
    straight: bool
    row_task: Ints
    row_expected: Bools
    by_group: Partition
    by_task: Partition
    task_groups: Partition  # groups into tasks
    labels: tuple[Labels, ...]
    group_task: Ints
    expected: Ints
    has_expected: Bools
    has_rows: Bools
    ghosts: tuple[tuple[int, int, int], ...]
    whole: bool

    def members(self, group: int) -> slice:
        """Return where the rows of a group lie, in roster order."""
        place = int(np.searchsorted(self.by_group.filled, group))
        starts = self.by_group.starts
        if place == starts.size or self.by_group.filled[place] != group:
            return slice(0, 0)
        end = int(starts[place + 1]) if place + 1 < starts.size else self.rows.size
        return slice(int(starts[place]), end)


@dataclass(frozen=True, slots=True)
class _Kept:
    states: tuple[TaskState, ...]
    roster: Roster


def roster(table: Table, states: Sequence[TaskState], by: By, keys: tuple[str, ...]) -> Roster:
    """Return the roster of these tasks, from the table's cache if it still holds. keys: the tasks'."""
    key = (by, keys)
    kept = table.cache.get(key)
    if isinstance(kept, _Kept) and _all_alike(kept.states, states):
        made = kept.roster
    else:
        made = _Builder(table, states, by).build()
    if len(table.cache) >= ROSTERS_KEPT:
        table.cache.clear()
    table.cache[key] = _Kept(tuple(states), made)
    return made


def _all_alike(old: Sequence[TaskState], new: Sequence[TaskState]) -> bool:
    return all(map(is_, old, new)) or all(map(_alike, old, new))


def _alike(old: TaskState, new: TaskState) -> bool:
    """Whether nothing that a roster depends on differs."""
    if old is new:
        return True
    same = old.expected is new.expected or (
        len(old.expected) == len(new.expected)
        and all(
            a.labels is b.labels or a.labels == b.labels
            for a, b in zip(old.expected, new.expected, strict=True)
        )
    )
    return same and old.nodes == new.nodes and old.task.name == new.task.name


class _Builder:
    """Groups rows and expected members; plain loops, run only on renewal."""

    def __init__(self, table: Table, states: Sequence[TaskState], by: By) -> None:
        self.table, self.states, self.by = table, states, by
        self.groups: dict[tuple[int, str, str], int] = {}
        self.known: dict[Labels, Labels] = {}  # labels that exist already, so that no copy is kept

    def build(self) -> Roster:
        place = {state.task.key: number for number, state in enumerate(self.states)}
        of_code = np.array([place.get(name, -1) for name in self.table.task_names] or [-1], np.int64)
        task_of = of_code[self.table.tasks]
        rows = np.flatnonzero(task_of >= 0)
        tasks = task_of[rows]
        own = [self.table.labels[row] for row in rows.tolist()]
        self.known = {labels: labels for labels in own} if self.by is By.GPU else {}
        found = [self._group(task, labels) for task, labels in zip(tasks.tolist(), own, strict=True)]
        marked, ghosts = self._expected(tasks, own)
        return self._assemble(rows, np.array(found, np.int64), tasks, marked, ghosts)

    def _group(self, task: int, labels: Labels) -> int:
        pod, gpu = labels.get(POD, ""), labels.get(GPU, "")
        first, second = {
            By.TASK: ("", ""),
            By.POD: (pod, ""),
            By.GPU: (pod, gpu),
            By.NODE: (self.states[task].nodes.get(pod, "") or labels.get(NODE, ""), ""),
        }[self.by]
        return self.groups.setdefault((task, first, second), len(self.groups))

    def _expected(
        self, tasks: Ints, own: Sequence[Labels]
    ) -> tuple[NDArray[np.bool_], list[tuple[int, int, int]]]:
        """Mark the rows that are expected; list the expected members that have no row."""
        marked = np.zeros(len(own), np.bool_)
        ghosts: list[tuple[int, int, int]] = []
        edges = np.searchsorted(np.sort(tasks), np.arange(len(self.states) + 1))
        by_task = np.argsort(tasks, kind="stable")
        for task, state in enumerate(self.states):
            rows = by_task[edges[task] : edges[task + 1]].tolist()
            with_gpu = any(GPU in own[row] for row in rows) if rows else self.by is By.GPU
            index: dict[tuple[str, str], list[int]] = {}
            for row in rows:
                pod, gpu = own[row].get(POD, ""), own[row].get(GPU, "")
                index.setdefault((pod, ""), []).append(row)
                if gpu:
                    index.setdefault((pod, gpu), []).append(row)
            for number, member in expected_members(state, with_gpu=with_gpu):
                rows_there = index.get((member.get(POD, ""), member.get(GPU, "")))
                if rows_there is None:
                    ghosts.append((self._group(task, member), task, number))
                else:
                    marked[rows_there] = True
        return marked, ghosts

    def _assemble(
        self, rows: Ints, found: Ints, tasks: Ints, marked: Bools, ghosts: list[tuple[int, int, int]]
    ) -> Roster:
        count = len(self.states)
        has_rows = np.bincount(tasks, minlength=count) > 0
        has_expected = np.array([bool(state.expected) for state in self.states], np.bool_)
        haunted_tasks = {task for _, task, _ in ghosts}
        for task in range(count):  # a task without anything still has one labelset: its own
            if not has_rows[task] and task not in haunted_tasks:
                self.groups[task, "", ""] = len(self.groups)
        keys = sorted(self.groups)
        rank = np.empty(len(keys), np.int64)
        for position, key in enumerate(keys):
            rank[self.groups[key]] = position
        codes = rank[found] if found.size else found
        order = np.argsort(codes, kind="stable")
        haunted = [(int(rank[group]), task, number) for group, task, number in ghosts]
        expected = np.bincount(codes[marked], minlength=len(keys)).astype(np.int64)
        for group, _, _ in haunted:
            expected[group] += 1
        group_task = np.array([key[0] for key in keys], np.int64)
        return Roster(
            rows=rows,
            order=order,
            straight=bool((order == np.arange(order.size)).all()),
            row_task=tasks[order],
            row_expected=marked[order],
            by_group=Partition.of(codes[order], len(keys)),
            by_task=Partition.of(tasks[order], count),
            task_groups=Partition.of(group_task, count),
            labels=tuple(self._labels(key) for key in keys),
            group_task=group_task,
            expected=expected,
            has_expected=has_expected,
            has_rows=has_rows,
            ghosts=tuple(haunted),
            whole=not haunted and bool(marked.all() and has_rows.all() and has_expected.all()),
        )

    def _labels(self, key: tuple[int, str, str]) -> Labels:
        task, first, second = key
        more = dict(zip(self.by.label_names, (first, second), strict=False))
        made = self.states[task].task.identity.plus(more)
        return self.known.get(made, made)


def expected_members(state: TaskState, *, with_gpu: bool) -> Iterable[tuple[int, Labels]]:
    """Return (place, labels) of the members to expect of a metric that has, or has not, one series a GPU.

    A pod that never showed a GPU (a launcher) is not expected in a metric of GPUs.
    """
    if with_gpu and any(GPU in seen.labels for seen in state.expected):
        return [
            (number, seen.labels.only((POD, GPU)))
            for number, seen in enumerate(state.expected)
            if GPU in seen.labels
        ]
    pods: dict[str, tuple[int, Labels]] = {}
    for number, seen in enumerate(state.expected):
        pod = seen.labels.get(POD, "")
        pods.setdefault(pod, (number, Labels({POD: pod})))
    return list(pods.values())
