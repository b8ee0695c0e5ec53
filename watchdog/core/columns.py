"""Columns: the points of many series as matrices, one row a series, sorted by time.

Owns storage only: inserting (late points, rewrites) and giving out row ranges. Knows rows by number;
which series a row is, is `series`. Rows live in blocks of `BLOCK_ROWS`, so that growing or compacting
never copies everything at once; within a block, equal times are kept once (`blocks`).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from watchdog.core import blocks
from watchdog.core.blocks import COUNT, NEWEST, SPACING, WIDEST, Block, picked, row_starts, widest, within

BLOCK_ROWS = blocks.BLOCK_ROWS
EMPTY = blocks.EMPTY
FEW_SLOTS = 16  # up to here whole grids are compared with a slot, beyond it each grid is searched

Ints = blocks.Ints
Floats = blocks.Floats
Bools = blocks.Bools


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A range of rows, for reading only (views where possible).

    values: float64, shape (r, c). of: the grid of each row, int64 (r,).
    times: int64 ns, shape (g, c), ascending; spare cells hold `EMPTY`.
    counts, spacing, widest: int64, shape (g,): points stored; median gap (> 0) and widest gap in ns.
    At least one cell of each row is spare.
    """

    times: Ints
    values: Floats
    of: Ints
    counts: Ints
    spacing: Ints
    widest: Ints

    def apart(self) -> "Span":
        """Return the same with a grid of its own for each row: g = r."""
        return Span(
            times=self.times[self.of],
            values=self.values,
            of=np.arange(self.of.size),
            counts=self.counts[self.of],
            spacing=self.spacing[self.of],
            widest=self.widest[self.of],
        )


@dataclass(slots=True, kw_only=True)
class Inserted:
    """What became of the points of one insert."""

    added: int = 0
    late: int = 0  # of the added ones: older than the newest point already there
    rewritten: int = 0
    duplicates: int = 0


class Columns:
    """The matrices of one (source, metric).

    counts, newest, spacing, widest, mark: int64, one entry a row; `newest` and `mark` in ns.
    adds: points of one series with the same time are summed (counts) instead of replaced.
    """

    def __init__(self, *, adds: bool = False) -> None:
        self.adds = adds
        self.rows = 0
        self._blocks: list[Block] = []
        self._meta: Ints = np.zeros((5, 0), np.int64)

    @property
    def counts(self) -> Ints:
        """Points stored, per row."""
        return self._meta[COUNT, : self.rows]

    @property
    def newest(self) -> Ints:
        """Time of the newest point, per row; 0 = none."""
        return self._meta[NEWEST, : self.rows]

    @property
    def spacing(self) -> Ints:
        """Median gap between points of recent answers, per row; 0 = unknown."""
        return self._meta[SPACING, : self.rows]

    @property
    def widest(self) -> Ints:
        """An upper bound of the gaps between stored points, per row."""
        return self._meta[WIDEST, : self.rows]

    @property
    def mark(self) -> Ints:
        """Up to where points were consumed, per row."""
        return self._meta[4, : self.rows]

    @property
    def nbytes(self) -> int:
        """Bytes held by the matrices."""
        return self._meta.nbytes + sum(
            one.values.nbytes + one.of.nbytes + one.times.nbytes + one.about.nbytes for one in self._blocks
        )

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
                yield place, _span(block, rows[place] - number * BLOCK_ROWS, usual_ns)

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
        for block in self._blocks:
            if block.moved:
                block.unite()
        return done

    def keep_rows(self, keep: Bools) -> None:
        """Drop all other rows; the kept ones are numbered anew, in order."""
        self._match_blocks()
        old, self._blocks = self._blocks, []
        wide = max((block.times.shape[1] for block in old), default=0)
        times, values = np.zeros((0, wide), np.int64), np.zeros((0, wide))
        about = np.zeros((4, 0), np.int64)
        for number, block in enumerate(old):
            own = np.flatnonzero(keep[number * BLOCK_ROWS : (number + 1) * BLOCK_ROWS])
            extra = ((0, 0), (0, wide - block.times.shape[1]))
            times = np.concatenate((times, np.pad(block.times[block.of[own]], extra, constant_values=EMPTY)))
            values = np.concatenate((values, np.pad(block.values[own], extra)))
            about = np.concatenate((about, block.about[:, block.of[own]]), axis=1)
            while values.shape[0] >= BLOCK_ROWS or (block is old[-1] and values.shape[0]):
                size = min(BLOCK_ROWS, values.shape[0])
                made = Block(
                    values[:size].copy(order="F"),
                    np.arange(size),
                    times[:size].copy(),
                    about[:, :size].copy(),
                )
                made.unite()
                self._blocks.append(made)
                times, values, about = times[size:], values[size:], about[:, size:]
        self._meta = self._meta[:, : self.rows][:, keep]
        self.rows = int(keep.sum())

    def _match_blocks(self) -> None:
        """Give every row its place in a block."""
        for number in range(-(-self.rows // BLOCK_ROWS)):
            if number == len(self._blocks):
                self._blocks.append(Block.empty())
            self._blocks[number].grow(min(self.rows - number * BLOCK_ROWS, BLOCK_ROWS))

    def _by_block(self, rows: Ints) -> Iterator[tuple[int, slice]]:
        edges = np.searchsorted(rows, np.arange(len(self._blocks) + 1) * BLOCK_ROWS)
        for number in range(len(self._blocks)):
            if edges[number] < edges[number + 1]:
                yield number, slice(int(edges[number]), int(edges[number + 1]))

    def _publish(self, number: int, *, times_only: bool = False) -> None:
        """Let rows know what changed of their grids. times_only: nothing but count and newest time."""
        block, base = self._blocks[number], number * BLOCK_ROWS
        what = slice(COUNT, NEWEST + 1) if times_only else slice(0, 4)
        np.take(block.about[what], block.of, axis=1, out=self._meta[what, base : base + block.of.size])

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
            place, there = block.locate(local, when)
            missing = ~there
            if missing.any():
                late = (local[missing], when[missing], value[missing])
                local, place, value = local[there], place[there], value[there]
            if self.adds:
                block.values[local, place] += value
                done.added += value.size
            else:
                other = block.values[local, place] != value
                changed = int(np.count_nonzero(other))
                if changed:
                    block.values[local[other], place[other]] = value[other]
                done.rewritten += changed
                done.duplicates += value.size - changed
            if missing.any():
                self._merge(number, *late, oldest_ns)
                done.late += late[0].size
                done.added += late[0].size

    def _merge(self, number: int, rows: Ints, times: Ints, values: Floats, oldest_ns: int) -> None:
        """Insert late points between the stored ones of their rows (numbered within the block)."""
        block = self._blocks[number]
        starts = row_starts(rows)
        touched = rows[starts]
        leader = block.regroup(touched, starts, times)
        grids = block.of[touched[leader]]
        block.make_room(grids, np.diff(np.append(starts, rows.size))[leader], oldest_ns)
        counts = block.about[COUNT, block.of[touched]]
        stored = np.arange(block.times.shape[1]) < counts[:, None]
        rows = np.concatenate((np.repeat(touched, counts), rows))
        times = np.concatenate((block.times[block.of[touched]][stored], times))
        values = np.concatenate((block.values[touched][stored], values))
        order = np.lexsort((times, rows))
        rows, times, values = rows[order], times[order], values[order]
        starts = row_starts(rows)
        lengths = np.diff(np.append(starts, rows.size))
        block.values[rows, within(starts, lengths)] = values
        chosen = picked(starts[leader], lengths[leader])
        block.times[np.repeat(grids, lengths[leader]), within(starts, lengths)[chosen]] = times[chosen]
        block.about[COUNT, grids] = lengths[leader]
        block.about[NEWEST, grids] = times[starts + lengths - 1][leader]
        block.about[WIDEST, grids] = widest(block.times[grids])
        block.measure(grids, lengths[leader])
        self._publish(number)

    def _append(self, number: int, rows: Ints, times: Ints, values: Floats, oldest_ns: int) -> None:
        """Add points that are newer than what their rows have."""
        block, rows = self._blocks[number], rows - number * BLOCK_ROWS
        starts = row_starts(rows)
        touched = rows[starts]
        leader = block.regroup(touched, starts, times)
        single = touched.size == rows.size
        lengths = np.broadcast_to(1, starts.shape) if single else np.diff(np.append(starts, rows.size))
        grids, given = block.of[touched[leader]], lengths[leader]
        if int((block.about[COUNT, grids] + given).max()) >= block.times.shape[1]:
            block.make_room(grids, given, oldest_ns)
        counts = block.about[COUNT]
        place = counts[block.of[touched]]
        if single:
            block.put(rows, place, values)
        else:
            block.values[rows, np.repeat(place, lengths) + within(starts, lengths)] = values
        # From here on only times, once a grid.
        times = times[picked(starts[leader], given)]
        starts = np.cumsum(given) - given
        owner = np.repeat(grids, given)
        block.times[owner, counts[owner] + within(starts, given)] = times
        before = np.concatenate((times[:1], times[:-1]))
        before[starts] = block.about[NEWEST, grids]
        gaps = np.where(before > 0, times - before, 0)
        broadest = np.maximum.reduceat(gaps, starts)
        odd = (gaps > 0) & (np.abs(gaps - block.about[SPACING, owner]) * 4 > block.about[SPACING, owner])
        block.about[COUNT, grids] += given
        block.about[NEWEST, grids] = times[starts + given - 1]
        again = np.logical_or.reduceat(odd, starts)
        if again.any():
            block.measure(grids[again], given[again])
        wider = broadest > block.about[WIDEST, grids]
        block.about[WIDEST, grids[wider]] = broadest[wider]
        self._publish(number, times_only=not (again.any() or wider.any() or block.moved))


def _span(block: Block, local: Ints, usual_ns: int) -> Span:
    """Return some rows of a block; of many grids, only those that are needed."""
    whole = int(local[-1] - local[0]) + 1 == local.size
    rows: slice | Ints = slice(int(local[0]), int(local[-1]) + 1) if whole else local
    of, times, about = block.of[rows], block.times, block.about
    if of.size < times.shape[0]:
        used, of = np.unique(of, return_inverse=True)
        times, about = times[used], about[:, used]
    return Span(
        times=times,
        values=block.values[rows],
        of=of,
        counts=about[COUNT],
        spacing=np.where(about[SPACING] > 0, about[SPACING], usual_ns),
        widest=about[WIDEST],
    )
