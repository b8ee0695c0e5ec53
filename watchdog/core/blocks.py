"""Blocks: the matrices of some thousand series, of which those measured at the same times share them.

The GPUs of a pod and the pods of a task are mostly measured together. A block keeps such times once, as
a *grid*: that nearly halves the memory, and what depends on times alone is computed once a grid. Owns
parting and uniting grids, and making room; which points come in is decided by `columns`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

BLOCK_ROWS = 16_384
EMPTY = np.iinfo(np.int64).max  # the time in a spare cell: later than any bound
TAIL = 16  # stored points whose gaps decide a spacing
FEW_POINTS = 4  # fewer tell nothing new about a spacing that is known
COUNT, NEWEST, SPACING, WIDEST = range(4)  # what is kept about a grid

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(slots=True)
class Block:
    """Some rows. Those of one grid have the same times, counts and spacing.

    values: (room for rows, c), column by column in memory: what arrives at once, and what a window adds up,
    lies side by side. of: each row's grid, (size,). times: (g, c). about: (4, g).
    """

    values: Floats
    of: Ints
    times: Ints
    about: Ints
    moved: bool = False  # room was made: grids that differed may be alike now
    _led: tuple[Ints, Ints] | None = None  # `of` and, for it, the first row of each grid

    @classmethod
    def empty(cls, wide: int = 4) -> "Block":
        """Return a block without rows."""
        return cls(
            by_column((0, wide)),
            np.zeros(0, np.int64),
            np.full((1, wide), EMPTY, np.int64),
            np.zeros((4, 1), np.int64),
        )

    def grow(self, size: int) -> None:
        """Give rows their place, with a grid that has no point."""
        fresh = size - self.of.size
        if fresh <= 0:
            return
        if size > self.values.shape[0]:
            room = min(BLOCK_ROWS, max(size, self.of.size + self.of.size // 2)) - self.values.shape[0]
            grown = by_column((self.values.shape[0] + room, self.values.shape[1]))
            grown[: self.of.size] = self.values[: self.of.size]
            self.values = grown
        bare = np.flatnonzero(self.about[COUNT] == 0)
        if not bare.size:
            self.times = np.pad(self.times, ((0, 1), (0, 0)), constant_values=EMPTY)
            self.about = np.pad(self.about, ((0, 0), (0, 1)))
        grid = int(bare[0]) if bare.size else self.times.shape[0] - 1
        self.of = np.concatenate((self.of, np.full(fresh, grid, np.int64)))

    def regroup(self, local: Ints, starts: Ints, times: Ints) -> Ints:
        """Part the rows of a grid that are given different times: afterwards a grid gets points as a whole.

        local: the rows that get points, ascending; those of row n begin at starts[n] of `times`.
        Returns one row of each grid that gets any, as a place in `local`.
        """
        if local.size == self.of.size and times.size == local.size:
            first = self._first_rows()
            if (
                first.min() >= 0
                and (times == (times[first] if first.size == 1 else times[first][self.of])).all()
            ):
                return first
        given = times[:, None]
        if times.size > local.size:
            lengths = np.diff(np.append(starts, times.size))
            given = np.full((local.size, int(lengths.max())), EMPTY, np.int64)
            given[np.repeat(np.arange(local.size), lengths), within(starts, lengths)] = times
        grids = self.of[local]
        leader = self._leaders(grids)
        alike = (given == given[leader[grids]]).all(axis=1)
        members = np.bincount(self.of, minlength=leader.size)
        touched = np.bincount(grids[alike], minlength=leader.size)
        stays = alike & (touched == members)[grids]
        if not stays.all():
            self._part(local, grids, given, np.flatnonzero(~stays))
            leader = self._leaders(self.of[local])
        return leader[leader >= 0]

    def _first_rows(self) -> Ints:
        """Return the first row of each grid, -1 = it has none: (g,)."""
        if self._led is None or self._led[0] is not self.of:
            self._led = self.of, self._leaders(self.of)
        return self._led[1]

    def _leaders(self, grids: Ints) -> Ints:
        """Return where each grid first stands in `grids`, -1 = nowhere: (g,)."""
        leader = np.full(self.times.shape[0], -1, np.int64)
        leader[grids[::-1]] = np.arange(grids.size - 1, -1, -1)
        return leader

    def _part(self, local: Ints, grids: Ints, given: Ints, leaving: Ints) -> None:
        """Give the leaving rows (places in `local`) new grids, one for all of the same grid and points."""
        known: dict[tuple[int, bytes], int] = {}
        origin = list(range(self.times.shape[0]))
        for place, grid in zip(leaving.tolist(), grids[leaving].tolist(), strict=True):
            new = known.setdefault((grid, given[place].tobytes()), len(origin))
            if new == len(origin):
                origin.append(grid)
            self.of[local[place]] = new
        used, self.of = np.unique(self.of, return_inverse=True)
        kept = np.array(origin, np.int64)[used]
        self.times, self.about = self.times[kept], self.about[:, kept]

    def unite(self) -> None:
        """Let rows share a grid again once their times are alike."""
        self.moved = False
        known: dict[tuple[bytes, bytes], int] = {}
        about = np.ascontiguousarray(self.about.T)
        place = [
            known.setdefault((times.tobytes(), own.tobytes()), len(known))
            for times, own in zip(self.times, about, strict=True)
        ]
        if len(known) < len(place):
            numbers = np.array(place, np.int64)
            first = np.unique(numbers, return_index=True)[1]
            self.of, self.times, self.about = numbers[self.of], self.times[first], self.about[:, first]

    def make_room(self, grids: Ints, incoming: Ints, oldest_ns: int) -> None:
        """Drop what is too old in the block; make it wider or narrower if it is far from what is needed."""
        wide = self.times.shape[1]
        counts = self.about[COUNT]
        passed = np.count_nonzero(self.times <= oldest_ns, axis=1)
        first = np.maximum(np.minimum(passed, counts) - 1, 0)
        left = counts - first
        future = left.copy()
        future[grids] += incoming
        need = int(future.max()) + 1
        fits = need + need // 10 <= wide <= 4 * need + TAIL
        target = wide if fits else need + need // 8 + 4
        if fits and (first == first[0]).all():
            self._shift(int(first[0]))
        else:
            self._copy(first, target)
        self.moved = True
        self.about[COUNT] = left
        self.about[WIDEST] = widest(self.times)

    def _shift(self, by: int) -> None:
        """Drop the first points of every row, in place: column by column, as they lie in memory."""
        kept = self.times.shape[1] - by
        for column in range(kept):
            self.values[:, column] = self.values[:, column + by]
        self.times[:, :kept] = self.times[:, by:].copy()
        self.times[:, kept:] = EMPTY

    def _copy(self, first: Ints, target: int) -> None:
        """Drop the first points of each grid, and change the width."""
        wide = self.times.shape[1]
        times = np.full((self.times.shape[0], target), EMPTY, np.int64)
        values = by_column((self.values.shape[0], target))
        rows = first[self.of]
        for shift in set(first.tolist()):  # few: rows of a block are about as old
            kept = min(target, wide - shift)
            times[first == shift, :kept] = self.times[first == shift, shift : shift + kept]
            own = np.flatnonzero(rows == shift)
            part = slice(0, own.size) if own.size == rows.size else own
            values[part, :kept] = self.values[part, shift : shift + kept]
        self.times, self.values = times, values

    def put(self, rows: Ints, place: Ints, values: Floats) -> None:
        """Write one value in each of some rows, given in order, at its place."""
        first, end = int(rows[0]), int(rows[-1]) + 1
        if end - first == rows.size and (place == place[0]).all():
            self.values[first:end, place[0]] = values  # they lie side by side
        else:
            self.values[rows, place] = values

    def locate(self, rows: Ints, times: Ints) -> tuple[Ints, Bools]:
        """Return of each point the place of the first stored time not before it, and whether it is the same.

        rows: ascending, each with some points.
        """
        starts = row_starts(rows)
        each = rows.size // starts.size
        if each * starts.size == rows.size and (starts == np.arange(starts.size) * each).all():
            given, grids = times.reshape(-1, each), self.of[rows[starts]]
            leader = self._leaders(grids)
            if (given == given[leader[grids]]).all():  # rows of one grid were given the same times
                used = np.flatnonzero(leader >= 0)
                place, there = self._look_up(np.repeat(used, each), given[leader[used]].reshape(-1))
                rank = np.zeros(leader.size, np.int64)
                rank[used] = np.arange(used.size)
                back = rank[grids]
                return place.reshape(-1, each)[back].reshape(-1), there.reshape(-1, each)[back].reshape(-1)
        return self._look_up(self.of[rows], times)

    def _look_up(self, grids: Ints, wanted: Ints) -> tuple[Ints, Bools]:
        """Do the same for points of grids, by bisection."""
        low, high = np.zeros(grids.size, np.int64), self.about[COUNT, grids]
        for _ in range(int(self.times.shape[1]).bit_length()):
            middle = (low + high) // 2
            earlier = (middle < high) & (self.times[grids, middle] < wanted)
            low, high = np.where(earlier, middle + 1, low), np.where(earlier, high, middle)
        return low, self.times[grids, low] == wanted

    def measure(self, grids: Ints, answered: Ints) -> None:
        """Renew the spacing of grids: median gap of the answer's points, or of the last stored ones.

        A few points may lie around a hole: they can make a known spacing narrower, not wider.
        """
        counts = self.about[COUNT, grids]
        tail = np.minimum(np.where(answered >= 4, np.minimum(answered, TAIL), TAIL), counts)
        place = counts[:, None] - TAIL + np.arange(TAIL)
        gaps = np.diff(self.times[grids[:, None], np.maximum(place, 0)], axis=1)
        gaps[place[:, :-1] < (counts - tail)[:, None]] = EMPTY
        gaps.sort(axis=1)
        middle = gaps[np.arange(grids.size), np.maximum(tail - 2, 0) // 2]
        known = self.about[SPACING, grids]
        middle = np.where((tail < FEW_POINTS) & (known > 0), np.minimum(known, middle), middle)
        self.about[SPACING, grids] = np.where(tail >= 2, middle, known)


def by_column(shape: tuple[int, int]) -> Floats:
    """Return zeros that lie column by column in memory."""
    return np.zeros(shape, order="F")


def row_starts(rows: Ints) -> Ints:
    """Return where each run of equal numbers begins, in a sorted array."""
    if not rows.size:
        return np.zeros(0, np.int64)
    return np.concatenate(([0], np.flatnonzero(rows[1:] != rows[:-1]) + 1))


def within(starts: Ints, lengths: Ints) -> Ints:
    """Return the place of each element within its run."""
    place: Ints = np.arange(int(lengths.sum())) - np.repeat(starts, lengths)
    return place


def picked(starts: Ints, lengths: Ints) -> Ints:
    """Return the places of the elements of some runs."""
    return np.repeat(starts, lengths) + within(np.cumsum(lengths) - lengths, lengths)


def widest(times: Ints) -> Ints:
    """Return the widest gap between stored times, per grid; 0 = there is none."""
    gaps = np.diff(times, axis=1)
    gaps[times[:, 1:] == EMPTY] = 0
    found: Ints = gaps.max(axis=1, initial=0)
    return found
