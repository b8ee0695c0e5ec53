"""Sparklines: the course of a metric in one short line of text."""

import math
from collections.abc import Sequence
from itertools import pairwise

BARS = "▁▂▃▄▅▆▇█"
GAP = "·"
WIDTH = 40


def sparkline(values: Sequence[float | None], *, ratio: bool = False, width: int = WIDTH) -> str:
    """Draw values, oldest first; None, NaN and infinities are gaps.

    Ratios within 0–1 are drawn on that fixed scale, so that idle looks idle and full looks full;
    everything else between its own minimum and maximum. More than `width` values are averaged.
    Empty when there is no value at all.
    """
    points = [value if value is not None and math.isfinite(value) else None for value in values]
    points = _squeeze(points, width)
    known = [value for value in points if value is not None]
    if not known:
        return ""
    low, high = min(known), max(known)
    if ratio and low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    return "".join(GAP if value is None else _bar(value, low, high) for value in points)


def _squeeze(points: list[float | None], width: int) -> list[float | None]:
    if len(points) <= width:
        return points
    edges = [round(index * len(points) / width) for index in range(width + 1)]
    return [_mean(points[start:end]) for start, end in pairwise(edges)]


def _mean(points: list[float | None]) -> float | None:
    known = [value for value in points if value is not None]
    return sum(value / len(known) for value in known) if known else None


def _bar(value: float, low: float, high: float) -> str:
    if not high > low:
        return BARS[3]
    # Halved first: the span of two huge values must not overflow.
    part = (value / 2 - low / 2) / (high / 2 - low / 2)
    return BARS[min(len(BARS) - 1, max(0, int(part * len(BARS))))]
