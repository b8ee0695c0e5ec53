"""Windows: every series reduced over time, for one slot or ten thousand, by the same function.

A window is (end − length, end], cut at the row's floor (its attempt's start). A point at t covers
(t − c, t] with c = min(gap to the point before, 2 × spacing); a row's first point covers one
spacing. Knows spans and numbers; nothing of rules, tasks or outcomes.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from watchdog.core.columns import FEW_SLOTS, Bools, Floats, Ints, Span
from watchdog.core.conditions.kinds import Aggregate

HOUR_NS = 3_600_000_000_000
CELLS = 1 << 20  # how many cells a gathered piece may have


@dataclass(frozen=True, slots=True, kw_only=True)
class Frames:
    """Where the windows of a span lie, in points. All int64, shape (r, T).

    first, last: the points first … last − 1 are inside. low, high: bounds in ns.
    newest: time of the newest point up to `high`, 0 = none.
    """

    first: Ints
    last: Ints
    low: Ints
    high: Ints
    newest: Ints


def frames(span: Span, ends: Ints, length_ns: int, floors: Ints) -> Frames:
    """Find the windows. ends: (1, T) or (r, T), ascending along T; floors: (r,), exclusive, 0 = none."""
    last = _until(span, ends)
    newest = np.where(last > 0, np.take_along_axis(span.times, np.maximum(last - 1, 0), axis=1), 0)
    first = _until(span, ends - length_ns)
    if floors.any():
        first = np.maximum(first, _until(span, floors[:, None]))
    return Frames(
        first=np.minimum(first, last),
        last=last,
        low=np.maximum(ends - length_ns, floors[:, None]),
        high=np.broadcast_to(ends, last.shape),
        newest=newest,
    )


def reduce(span: Span, at: Frames, how: Aggregate | str) -> Floats:
    """Reduce each window to one value, float64 (r, T); NaN where it holds too few points.

    how: an `Aggregate` (slope is per hour, stddev that of the population, p95 interpolated) or "sum".
    """
    inside = at.last - at.first
    with np.errstate(all="ignore"):
        if how == Aggregate.LAST:
            found = np.take_along_axis(span.values, np.maximum(at.last - 1, 0), axis=1)
        elif how in _SEGMENTS:
            found = _segments(span, at, _SEGMENTS[how])
            if how == Aggregate.AVG:
                found /= inside
        else:
            found = _gathered(span, at, _GATHERED[Aggregate(how)])
    return np.where(inside > 0, found, np.nan)


def covered_ns(span: Span, at: Frames) -> Ints:
    """Return how much of each window is covered, int64 ns (r, T)."""
    reach, _ = _reach(span, at)
    total = np.where(at.last > at.first, at.newest - np.maximum(at.low, reach), 0)
    holed = np.flatnonzero(span.widest > 2 * span.spacing)
    if holed.size:
        excess = np.diff(span.times[holed], axis=1) - 2 * span.spacing[holed, None]
        spare = np.arange(1, span.times.shape[1]) >= span.counts[holed, None]
        excess[spare] = 0
        total[holed] -= _between(np.maximum(excess, 0), at.first[holed], at.last[holed] - 1)
    return total


def share(span: Span, at: Frames, beyond: Bools) -> Floats:
    """Return the share of covered time spent at points marked in `beyond` (r, c); NaN if none is covered."""
    weight: Ints = np.zeros(span.times.shape, np.int64)
    weight[:, 1:] = np.minimum(np.diff(span.times, axis=1), 2 * span.spacing[:, None])
    weight[:, 0] = span.spacing
    weight[~beyond | (np.arange(weight.shape[1]) >= span.counts[:, None])] = 0
    reach, head = _reach(span, at)
    marked = np.take_along_axis(beyond, head, axis=1)
    inside = _between(weight, at.first, at.last) - np.where(marked, np.maximum(at.low - reach, 0), 0)
    whole = covered_ns(span, at)
    with np.errstate(all="ignore"):
        return np.where(whole > 0, inside / whole, np.nan)


def _reach(span: Span, at: Frames) -> tuple[Ints, Ints]:
    """Return from when the first point of each window covers, and which point that is."""
    head = np.minimum(at.first, np.maximum(at.last - 1, 0))
    begin = np.take_along_axis(span.times, head, axis=1)
    before = np.take_along_axis(span.times, np.maximum(head - 1, 0), axis=1)
    most = 2 * span.spacing[:, None]
    reach = begin - np.where(head > 0, np.minimum(begin - before, most), span.spacing[:, None])
    return reach, head


def _between(amounts: Ints, first: Ints, last: Ints) -> Ints:
    """Sum amounts[:, first … last − 1] per row and slot, exactly; 0 where last <= first."""
    sums = np.zeros((amounts.shape[0], amounts.shape[1] + 1), np.int64)
    np.cumsum(amounts, axis=1, out=sums[:, 1:])
    last = np.maximum(last, first)
    found: Ints = np.take_along_axis(sums, last, axis=1) - np.take_along_axis(sums, first, axis=1)
    return found


def _until(span: Span, bounds: Ints) -> Ints:
    """Count the points up to each bound: bounds (1, T) or (r, T) → int64 (r, T)."""
    rows, slots = span.times.shape[0], bounds.shape[1]
    found = np.empty((rows, slots), np.int64)
    if slots <= FEW_SLOTS:
        for slot in range(slots):
            found[:, slot] = _until_one(span.times, bounds[:, slot])
        return found
    if bounds.shape[0] == 1 and bool((span.times == span.times[0]).all()):
        found[:] = np.searchsorted(span.times[0, : span.counts[0]], bounds[0], side="right")
        return found
    for row in range(rows):
        own = bounds[0 if bounds.shape[0] == 1 else row]
        found[row] = np.searchsorted(span.times[row, : span.counts[row]], own, side="right")
    return found


def _until_one(times: Ints, bound: Ints) -> Ints:
    """Count the points of each row up to one bound (1,) or (r,), guessing that rows are alike."""
    guess = int(np.searchsorted(times[0], bound[0], side="right"))
    right = times[:, guess] > bound
    if guess:
        right &= times[:, guess - 1] <= bound
    found = np.full(times.shape[0], guess, np.int64)
    if not right.all():
        other = ~right
        own = bound if bound.size == 1 else bound[other]
        found[other] = np.count_nonzero(times[other] <= own[:, None], axis=1)
    return found


_SEGMENTS: dict[str, np.ufunc] = {
    Aggregate.AVG: np.add,
    "sum": np.add,
    Aggregate.MIN: np.minimum,
    Aggregate.MAX: np.maximum,
}


def _segments(span: Span, at: Frames, fold: np.ufunc) -> Floats:
    """Fold the cells of each window in place; what stands in an empty window is meaningless."""
    flat = span.values.reshape(-1)
    base = np.arange(span.values.shape[0])[:, None] * span.values.shape[1]
    bounds = np.stack((base + at.first, base + at.last), axis=-1)
    folded: Floats = fold.reduceat(flat, bounds.reshape(-1))[::2].reshape(at.first.shape)
    return folded


Reduction = Callable[[Floats, Floats, Bools, Ints], Floats]


def _gathered(span: Span, at: Frames, fold: Reduction) -> Floats:
    """Copy each window out, side by side, and fold the copies; in pieces, to bound memory."""
    found = np.full(at.first.shape, np.nan)
    rows, wide = span.values.shape
    width = int((at.last - at.first).max(initial=0))
    if not width:
        return found
    step = max(1, CELLS // (rows * width))
    base = np.arange(rows)[:, None, None] * wide
    times, values = span.times.reshape(-1), span.values.reshape(-1)
    for begin in range(0, at.first.shape[1], step):
        part = slice(begin, begin + step)
        place = at.first[:, part, None] + np.arange(width)
        inside = place < at.last[:, part, None]
        cells = base + np.minimum(place, wide - 1)
        hours = (times[cells] - at.high[:, part, None]) / HOUR_NS
        found[:, part] = fold(values[cells], hours, inside, inside.sum(axis=2))
    return found


def _quantile(q: float) -> Reduction:
    def fold(values: Floats, _hours: Floats, inside: Bools, count: Ints) -> Floats:
        ranked = np.sort(np.where(inside, values, np.inf), axis=2)
        place = np.maximum(count - 1, 0) * q
        low = np.floor(place).astype(np.int64)
        high = np.minimum(low + 1, np.maximum(count - 1, 0))
        below = np.take_along_axis(ranked, low[..., None], axis=2)[..., 0]
        above = np.take_along_axis(ranked, high[..., None], axis=2)[..., 0]
        return np.where(place > low, below + (above - below) * (place - low), below)

    return fold


def _total(cells: Floats) -> Floats:
    """Sum one by one: unlike `sum`, the last bit does not depend on how many zeros follow."""
    total: Floats = np.cumsum(cells, axis=2)[..., -1]
    return total


def _centred(cells: Floats, inside: Bools, count: Ints) -> Floats:
    mean = _total(np.where(inside, cells, 0.0)) / count
    return np.where(inside, cells - mean[..., None], 0.0)


def _stddev(values: Floats, _hours: Floats, inside: Bools, count: Ints) -> Floats:
    apart = _centred(values, inside, count)
    spread: Floats = np.sqrt(_total(apart * apart) / count)
    return spread


def _slope(values: Floats, hours: Floats, inside: Bools, count: Ints) -> Floats:
    x, y = _centred(hours, inside, count), _centred(values, inside, count)
    squares = _total(x * x)
    return np.where(squares > 0, _total(x * y) / squares, np.nan)


_GATHERED: dict[Aggregate, Reduction] = {
    Aggregate.MEDIAN: _quantile(0.5),
    Aggregate.P95: _quantile(0.95),
    Aggregate.STDDEV: _stddev,
    Aggregate.SLOPE: _slope,
}
