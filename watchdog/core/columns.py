"""Columns: the points of many series as matrices, one row a series, sorted by time.

Owns storage only: inserting (late points, rewrites), making room, measuring spacing, and giving
out row ranges. Knows rows by number; which series a row is, is `series`. Rows live in blocks of
`BLOCK_ROWS`, so that growing or compacting never copies everything at once.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

BLOCK_ROWS = 2048
EMPTY = np.iinfo(np.int64).max  # the time in a spare cell: later than any bound
FEW_SLOTS = 16  # up to here whole rows are compared with a slot, beyond it each row is searched
TAIL = 16  # stored points whose gaps decide a spacing
FEW_POINTS = 4  # fewer tell nothing new about a spacing that is known

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A range of rows, for reading only (views where possible).

    times: int64 ns, shape (r, c), ascending; spare cells hold `EMPTY`. values: float64, same shape.
    counts, spacing, widest: int64, shape (r,): points stored; median gap (> 0) and widest gap in ns.
    At least one cell of each row is spare.
    """

    times: Ints
    values: Floats
    counts: Ints
    spacing: Ints
    widest: Ints


@dataclass(slots=True, kw_only=True)
class Inserted:
    """What became of the points of one insert."""

    added: int = 0
    late: int = 0  # of the added ones: older than the newest point already there
    rewritten: int = 0
    duplicates: int = 0


@dataclass(slots=True)
class _Block:
    times: Ints
    values: Floats


def row_starts(rows: Ints) -> Ints:
    """Return where each run of equal numbers begins, in a sorted array."""
    if not rows.size:
        return np.zeros(0, np.int64)
    return np.concatenate(([0], np.flatnonzero(rows[1:] != rows[:-1]) + 1))


class Columns:
    """The matrices of one (source, metric).

    counts, newest, spacing, widest, mark: int64, one entry a row; `newest` and `mark` in ns.
    adds: points of one series with the same time are summed (counts) instead of replaced.
    """

    def __init__(self, *, adds: bool = False) -> None:
        self.adds = adds
        self.rows = 0
        self._blocks: list[_Block] = []
        self._meta: Ints = np.zeros((5, 0), np.int64)

    @property
    def counts(self) -> Ints:
        """Points stored, per row."""
        return self._meta[0, : self.rows]

    @property
    def newest(self) -> Ints:
        """Time of the newest point, per row; 0 = none."""
        return self._meta[1, : self.rows]

    @property
    def spacing(self) -> Ints:
        """Median gap between points of recent answers, per row; 0 = unknown."""
        return self._meta[2, : self.rows]

    @property
    def widest(self) -> Ints:
        """An upper bound of the gaps between stored points, per row."""
        return self._meta[3, : self.rows]

    @property
    def mark(self) -> Ints:
        """Up to where points were consumed, per row."""
        return self._meta[4, : self.rows]

    @property
    def nbytes(self) -> int:
        """Bytes held by the matrices."""
        return self._meta.nbytes + sum(block.times.nbytes + block.values.nbytes for block in self._blocks)

    def add_row(self, mark_ns: int) -> int:
        """Add an empty row and return its number."""
        row = self.rows
        if row >= self._meta.shape[1]:
            grown = np.zeros((5, max(8, row + row // 2)), np.int64)
            grown[:, :row] = self._meta[:, :row]
            self._meta = grown
        self._meta[:, row] = (0, 0, 0, 0, mark_ns)
        self.rows += 1
        return row

    def spans(self, rows: Ints, at_most: int, usual_ns: int) -> Iterator[tuple[slice, Span]]:
        """Yield ranges of `rows` (ascending) of at most `at_most` rows, with their place in `rows`.

        usual_ns: the spacing of rows that have shown none yet.
        """
        edges = np.searchsorted(rows, np.arange(len(self._blocks) + 1) * BLOCK_ROWS)
        for number, block in enumerate(self._blocks):
            for first in range(int(edges[number]), int(edges[number + 1]), at_most):
                place = slice(first, min(first + at_most, int(edges[number + 1])))
                yield place, self._span(block, rows[place], number * BLOCK_ROWS, usual_ns)

    def _span(self, block: _Block, rows: Ints, base: int, usual_ns: int) -> Span:
        whole = int(rows[-1] - rows[0]) + 1 == rows.size
        local: slice | Ints = slice(int(rows[0]) - base, int(rows[-1]) - base + 1) if whole else rows - base
        meta: slice | Ints = slice(int(rows[0]), int(rows[-1]) + 1) if whole else rows
        return Span(
            times=block.times[local],
            values=block.values[local],
            counts=self.counts[meta],
            spacing=np.where(self.spacing[meta] > 0, self.spacing[meta], usual_ns),
            widest=self.widest[meta],
        )

    def insert(self, rows: Ints, times: Ints, values: Floats, oldest_ns: int) -> Inserted:
        """Store points in any order; of one row and time the last given wins (or they add up).

        Points up to `oldest_ns` are dropped when room is needed, but the newest of a row never,
        nor the last one before: it tells how far the first kept point reaches back.
        """
        done = Inserted()
        self._match_blocks()
        rows, times, values = self._tidy(rows, times, values, done)
        new = times > self.newest[rows]
        if not new.all():
            self._settle(rows[~new], times[~new], values[~new], oldest_ns, done)
            rows, times, values = rows[new], times[new], values[new]
        for number, part in self._by_block(rows):
            self._append(number, rows[part], times[part], values[part], oldest_ns)
        done.added += rows.size
        return done

    def keep_rows(self, keep: Bools) -> None:
        """Drop all other rows; the kept ones are numbered anew, in order."""
        self._match_blocks()
        old, self._blocks = self._blocks, []
        wide = max((block.times.shape[1] for block in old), default=0)
        rest = _Block(np.zeros((0, wide), np.int64), np.zeros((0, wide)))
        for number, block in enumerate(old):
            part = keep[number * BLOCK_ROWS : (number + 1) * BLOCK_ROWS]
            extra = wide - block.times.shape[1]
            times = np.pad(block.times[: part.size][part], ((0, 0), (0, extra)), constant_values=EMPTY)
            values = np.pad(block.values[: part.size][part], ((0, 0), (0, extra)))
            rest = _Block(np.concatenate((rest.times, times)), np.concatenate((rest.values, values)))
            if rest.times.shape[0] >= BLOCK_ROWS:
                self._blocks.append(_Block(rest.times[:BLOCK_ROWS].copy(), rest.values[:BLOCK_ROWS].copy()))
                rest = _Block(rest.times[BLOCK_ROWS:], rest.values[BLOCK_ROWS:])
        if rest.times.shape[0]:
            self._blocks.append(rest)
        self._meta = self._meta[:, : self.rows][:, keep]
        self.rows = int(keep.sum())

    def _match_blocks(self) -> None:
        """Give every row its place in a block."""
        for number in range(-(-self.rows // BLOCK_ROWS)):
            wanted = min(self.rows - number * BLOCK_ROWS, BLOCK_ROWS)
            if number == len(self._blocks):
                self._blocks.append(_Block(np.zeros((0, 4), np.int64), np.zeros((0, 4))))
            block = self._blocks[number]
            have = block.times.shape[0]
            if have < wanted:
                room = min(BLOCK_ROWS, max(wanted, have + have // 2)) - have
                block.times = np.pad(block.times, ((0, room), (0, 0)), constant_values=EMPTY)
                block.values = np.pad(block.values, ((0, room), (0, 0)))

    def _by_block(self, rows: Ints) -> Iterator[tuple[int, slice]]:
        edges = np.searchsorted(rows, np.arange(len(self._blocks) + 1) * BLOCK_ROWS)
        for number in range(len(self._blocks)):
            if edges[number] < edges[number + 1]:
                yield number, slice(int(edges[number]), int(edges[number + 1]))

    def _tidy(self, rows: Ints, times: Ints, values: Floats, done: Inserted) -> tuple[Ints, Ints, Floats]:
        """Sort by (row, time) and leave one point for each."""
        same_row = rows[1:] == rows[:-1]
        rising = (rows[1:] > rows[:-1]) | (same_row & (times[1:] > times[:-1]))
        if rising.all():
            return rows, times, values
        order = np.lexsort((times, rows))  # stable: the last given stays last
        rows, times, values = rows[order], times[order], values[order]
        differs = (rows[1:] != rows[:-1]) | (times[1:] != times[:-1])
        last = np.concatenate((differs, [True]))
        if last.all():
            return rows, times, values
        if self.adds:
            first = np.concatenate(([0], np.flatnonzero(differs) + 1))
            sums: Floats = np.add.reduceat(values, first)
            return rows[last], times[last], sums
        done.duplicates += int(last.size - last.sum())
        return rows[last], times[last], values[last]

    def _settle(self, rows: Ints, times: Ints, values: Floats, oldest_ns: int, done: Inserted) -> None:
        """Take in points that are not newer than what their row has."""
        for number, part in self._by_block(rows):
            block = self._blocks[number]
            local, when, value = rows[part] - number * BLOCK_ROWS, times[part], values[part]
            place = _find(block.times, local, self.counts[rows[part]], when)
            there = block.times[local, place] == when
            hit = (local[there], place[there])
            if self.adds:
                block.values[hit] += value[there]
                done.added += int(there.sum())
            else:
                changed = int((block.values[hit] != value[there]).sum())
                block.values[hit] = value[there]
                done.rewritten += changed
                done.duplicates += int(there.sum()) - changed
            if not there.all():
                missing = ~there
                self._merge(number, rows[part][missing], when[missing], value[missing], oldest_ns)
                done.late += int(missing.sum())
                done.added += int(missing.sum())

    def _merge(self, number: int, rows: Ints, times: Ints, values: Floats, oldest_ns: int) -> None:
        """Insert late points between the stored ones of their rows."""
        starts = row_starts(rows)
        touched = rows[starts]
        self._make_room(number, touched, np.diff(np.append(starts, rows.size)), oldest_ns)
        block, local = self._blocks[number], touched - number * BLOCK_ROWS
        stored = np.arange(block.times.shape[1]) < self.counts[touched][:, None]
        rows = np.concatenate((np.repeat(touched, self.counts[touched]), rows))
        times = np.concatenate((block.times[local][stored], times))
        values = np.concatenate((block.values[local][stored], values))
        order = np.lexsort((times, rows))
        rows, times, values = rows[order], times[order], values[order]
        starts = row_starts(rows)
        lengths = np.diff(np.append(starts, rows.size))
        place = np.arange(rows.size) - np.repeat(starts, lengths)
        block.times[local] = EMPTY
        block.times[rows - number * BLOCK_ROWS, place] = times
        block.values[rows - number * BLOCK_ROWS, place] = values
        self.counts[touched] = lengths
        self.newest[touched] = times[starts + lengths - 1]
        self.widest[touched] = _widest(block.times[local])
        self._measure(number, touched, lengths)

    def _append(self, number: int, rows: Ints, times: Ints, values: Floats, oldest_ns: int) -> None:
        starts = row_starts(rows)
        touched = rows[starts]
        lengths = np.diff(np.append(starts, rows.size))
        counts = self.counts[touched]
        if int((counts + lengths).max()) >= self._blocks[number].times.shape[1]:
            self._make_room(number, touched, lengths, oldest_ns)
            counts = self.counts[touched]
        block, local = self._blocks[number], rows - number * BLOCK_ROWS
        place = np.repeat(counts - starts, lengths) + np.arange(rows.size)
        block.times[local, place] = times
        block.values[local, place] = values
        before = np.concatenate((times[:1], times[:-1]))
        before[starts] = self.newest[touched]
        gaps = np.where(before > 0, times - before, 0)
        self.counts[touched] = counts + lengths
        self.newest[touched] = times[starts + lengths - 1]
        self.widest[touched] = np.maximum(self.widest[touched], np.maximum.reduceat(gaps, starts))
        usual = self.spacing[rows]
        odd = (gaps > 0) & (np.abs(gaps - usual) * 4 > usual)
        if odd.any():
            again = np.logical_or.reduceat(odd, starts)
            self._measure(number, touched[again], lengths[again])

    def _make_room(self, number: int, rows: Ints, incoming: Ints, oldest_ns: int) -> None:
        """Drop what is too old in the block; widen it if that does not leave enough."""
        block = self._blocks[number]
        own = slice(number * BLOCK_ROWS, min((number + 1) * BLOCK_ROWS, self.rows))
        size, wide = own.stop - own.start, block.times.shape[1]
        counts = self.counts[own]
        passed = np.count_nonzero(block.times[:size] <= oldest_ns, axis=1)
        first = np.maximum(np.minimum(passed, counts) - 1, 0)
        left = counts - first
        future = left.copy()
        future[rows - own.start] += incoming
        need = int(future.max()) + 1
        target = need + need // 8 + 4 if wide - need < need // 10 else wide
        take = np.minimum(np.arange(target) + first[:, None], wide - 1)
        spare = np.arange(target) >= left[:, None]
        times = np.full((block.times.shape[0], target), EMPTY, np.int64)
        values = np.zeros((block.times.shape[0], target))
        times[:size] = np.where(spare, EMPTY, np.take_along_axis(block.times[:size], take, axis=1))
        values[:size] = np.where(spare, 0.0, np.take_along_axis(block.values[:size], take, axis=1))
        self._blocks[number] = _Block(times, values)
        self.counts[own] = left
        self.widest[own] = _widest(times[:size])

    def _measure(self, number: int, rows: Ints, answered: Ints) -> None:
        """Renew the spacing of rows: median gap of the answer's points, or of the last stored ones.

        A few points may lie around a hole: they can make a known spacing narrower, not wider.
        """
        block, local = self._blocks[number], rows - number * BLOCK_ROWS
        counts = self.counts[rows]
        tail = np.minimum(np.where(answered >= 4, np.minimum(answered, TAIL), TAIL), counts)
        place = counts[:, None] - TAIL + np.arange(TAIL)
        gaps = np.diff(block.times[local[:, None], np.maximum(place, 0)], axis=1)
        gaps[place[:, :-1] < (counts - tail)[:, None]] = EMPTY
        gaps.sort(axis=1)
        middle = gaps[np.arange(rows.size), np.maximum(tail - 2, 0) // 2]
        known = self.spacing[rows]
        middle = np.where((tail < FEW_POINTS) & (known > 0), np.minimum(known, middle), middle)
        self.spacing[rows] = np.where(tail >= 2, middle, known)


def _find(times: Ints, local: Ints, counts: Ints, wanted: Ints) -> Ints:
    """Return for each (row, time) the place of the first stored time that is not earlier."""
    low = np.zeros(local.size, np.int64)
    high = counts.copy()
    for _ in range(int(times.shape[1]).bit_length()):
        middle = (low + high) // 2
        earlier = (middle < high) & (times[local, middle] < wanted)
        low = np.where(earlier, middle + 1, low)
        high = np.where(earlier, high, middle)
    return low


def _widest(times: Ints) -> Ints:
    gaps = np.diff(times, axis=1)
    gaps[times[:, 1:] == EMPTY] = 0
    widest: Ints = gaps.max(axis=1, initial=0)
    return widest
