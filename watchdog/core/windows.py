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
STRETCH = 512  # points added up one after the other: a longer sum would lose digits
FEW_EDGES = 16  # columns that are inside some windows only
CELLS = 1 << 20  # how many cells a gathered piece may have


@dataclass(frozen=True, slots=True, kw_only=True)
class Frames:
    """Where the windows of a span lie, in points: once a grid, or once a row where the rows differ.

    span: the series; its `of` says which frame is a row's. All else int64, shape (f, T).
    first, last: the points first … last − 1 are inside. low, high: bounds in ns.
    newest: time of the newest point up to `high`, 0 = none.
    """

    span: Span
    first: Ints
    last: Ints
    low: Ints
    high: Ints
    newest: Ints


def frames(span: Span, ends: Ints, length_ns: int, floors: Ints) -> Frames:
    """Find the windows. ends: (1, T) or (r, T), ascending along T; floors: (r,), exclusive, 0 = none."""
    cut = _is_cut(span, int(ends.min()) - length_ns, floors)
    if cut or ends.shape[0] > 1:
        span = span.apart()
    last = _until(span, ends)
    newest = np.where(last > 0, _at(span.times, np.maximum(last - 1, 0)), 0)
    first, low = _until(span, ends - length_ns), ends - length_ns
    if cut:
        first, low = np.maximum(first, _until(span, floors[:, None])), np.maximum(low, floors[:, None])
    return Frames(
        span=span,
        first=np.minimum(first, last),
        last=last,
        low=np.broadcast_to(low, last.shape),
        high=np.broadcast_to(ends, last.shape),
        newest=newest,
    )


def _is_cut(span: Span, low_ns: int, floors: Ints) -> bool:
    """Whether a floor cuts any window: it lies within, and not before all that the row's points cover."""
    if not floors.size or int(floors.max()) <= low_ns:
        return False
    return bool((floors > (span.times[:, 0] - 2 * span.spacing)[span.of]).any())


def reduce(at: Frames, how: Aggregate | str) -> Floats:
    """Reduce each window to one value, float64 (r, T); NaN where it holds too few points.

    how: an `Aggregate` (slope is per hour, stddev that of the population, p95 interpolated) or "sum".
    """
    span, of = at.span, at.span.of
    inside = _of_rows(at.last - at.first, of)
    with np.errstate(all="ignore"):
        if how == Aggregate.LAST:
            found = _newest(span, np.maximum(at.last - 1, 0))
        elif how in _SEGMENTS:
            found = _segments(at, _SEGMENTS[how])
            if how == Aggregate.AVG:
                found /= inside
        else:
            found = _gathered(at, _GATHERED[Aggregate(how)])
    return found if (inside > 0).all() else np.where(inside > 0, found, np.nan)


def newest_ns(at: Frames) -> Ints:
    """Return the time of each row's newest point up to the window's end, 0 = none: int64 ns (r, T)."""
    return _of_rows(at.newest, at.span.of)


def _of_rows(framed: Ints, of: Ints) -> Ints:
    """Return for each row what was computed of its frame (f, T); read only where all have the same."""
    if framed.shape[0] == 1:
        return np.broadcast_to(framed, (of.size, framed.shape[1]))
    return framed[of]


def _at(times: Ints, place: Ints) -> Ints:
    """Return the times of each frame at some places: (f, c), (f, T) → (f, T)."""
    found: Ints = times[np.arange(times.shape[0])[:, None], place]
    return found


def covered_ns(at: Frames) -> Ints:
    """Return how much of each window is covered, int64 ns (r, T)."""
    return _of_rows(_covered(at), at.span.of)


def _covered(at: Frames) -> Ints:
    """Return the same once a frame: (f, T)."""
    span = at.span
    reach, _ = _reach(at)
    total: Ints = np.where(at.last > at.first, at.newest - np.maximum(at.low, reach), 0)
    holed = np.flatnonzero(span.widest > 2 * span.spacing)
    if holed.size:
        excess = np.diff(span.times[holed], axis=1) - 2 * span.spacing[holed, None]
        spare = np.arange(1, span.times.shape[1]) >= span.counts[holed, None]
        excess[spare] = 0
        total[holed] -= _between(np.maximum(excess, 0), at.first[holed], at.last[holed] - 1)
    return total


def share(at: Frames, beyond: Bools) -> Floats:
    """Return the share of covered time spent at points marked in `beyond` (r, c); NaN if none is covered."""
    span, of = at.span, at.span.of
    weight: Ints = np.zeros(span.times.shape, np.int64)
    weight[:, 1:] = np.minimum(np.diff(span.times, axis=1), 2 * span.spacing[:, None])
    weight[:, 0] = span.spacing
    weight[np.arange(weight.shape[1]) >= span.counts[:, None]] = 0
    reach, head = _reach(at)
    marked = np.take_along_axis(beyond, head[of], axis=1)
    inside = _between(np.where(beyond, weight[of], 0), at.first[of], at.last[of])
    inside -= np.where(marked, np.maximum(at.low - reach, 0)[of], 0)
    whole = covered_ns(at)
    with np.errstate(all="ignore"):
        return np.where(whole > 0, inside / whole, np.nan)


def _reach(at: Frames) -> tuple[Ints, Ints]:
    """Return from when the first point of each window covers, and which point that is: (f, T)."""
    span = at.span
    head = np.minimum(at.first, np.maximum(at.last - 1, 0))
    begin, before = _at(span.times, head), _at(span.times, np.maximum(head - 1, 0))
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
    """Count the points of each grid up to each bound: bounds (1, T) or (g, T) → int64 (g, T)."""
    rows, slots = span.times.shape[0], bounds.shape[1]
    found = np.empty((rows, slots), np.int64)
    if slots <= FEW_SLOTS:
        for slot in range(slots):
            found[:, slot] = _until_one(span.times, bounds[:, slot])
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


def _newest(span: Span, place: Ints) -> Floats:
    """Return the value at one place of each grid and slot: place (f, T) → (r, T)."""
    if place.shape[0] == 1:
        return span.values[:, place[0]]
    found: Floats = np.take_along_axis(span.values, place[span.of], axis=1)
    return found


def _segments(at: Frames, fold: np.ufunc) -> Floats:
    """Fold the cells of each window; what stands in an empty window is meaningless."""
    values, of, slots = at.span.values, at.span.of, at.first.shape[1]
    if slots <= FEW_SLOTS:
        found = [_columns(values, at.first[:, t], at.last[:, t], of, fold) for t in range(slots)]
        whole = [one for one in found if one is not None]
        if len(whole) == slots:
            return np.stack(whole, axis=1)
    base = np.arange(values.shape[0])[:, None] * values.shape[1]
    bounds = np.stack((base + at.first[of], base + at.last[of]), axis=-1)
    cells = np.ascontiguousarray(values).reshape(-1)
    folded: Floats = fold.reduceat(cells, bounds.reshape(-1))[::2].reshape(of.size, slots)
    return folded


def _columns(values: Floats, first: Ints, last: Ints, of: Ints, fold: np.ufunc) -> Floats | None:
    """Fold one window of each row, column by column, as they lie in memory: three times as fast.

    first, last: (f,). Returns (r,); None if the windows lie so far apart that it would not pay.
    """
    filled = last > first
    if not filled.any():
        return np.zeros(values.shape[0])
    begins, ends = first[filled], last[filled]
    low, high = int(begins.max()), int(ends.min())
    edges = (*range(int(begins.min()), low), *range(high, int(ends.max())))
    if high <= low or len(edges) > FEW_EDGES:
        return None
    total: Floats = fold.reduce(values[:, low : min(high, low + STRETCH)], axis=1)
    for begin in range(low + STRETCH, high, STRETCH):
        total = fold(total, fold.reduce(values[:, begin : min(high, begin + STRETCH)], axis=1))
    for column in edges:
        inside = ((first <= column) & (column < last))[of]
        total = np.where(inside, fold(total, values[:, column]), total)
    return total


Reduction = Callable[[Floats, Floats, Bools, Ints], Floats]


def _gathered(at: Frames, fold: Reduction) -> Floats:
    """Copy each window out, side by side, and fold the copies; in pieces, to bound memory."""
    span = at.span
    first, last, high = at.first[span.of], at.last[span.of], at.high[span.of]
    found = np.full(first.shape, np.nan)
    rows, wide = span.values.shape
    width = int((last - first).max(initial=0))
    if not width:
        return found
    step = max(1, CELLS // (rows * width))
    base = np.arange(rows)[:, None, None] * wide
    times, values = span.times[span.of].reshape(-1), span.values.reshape(-1)
    for begin in range(0, first.shape[1], step):
        part = slice(begin, begin + step)
        place = first[:, part, None] + np.arange(width)
        inside = place < last[:, part, None]
        cells = base + np.minimum(place, wide - 1)
        hours = (times[cells] - high[:, part, None]) / HOUR_NS
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
