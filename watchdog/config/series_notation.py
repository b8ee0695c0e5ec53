"""The notation of a series in a scenario file: `95% until 0m, 5% until 30m, none until 32m, 95%`.

Segments follow one another; each holds until its time (the last one to the end). A segment is a
value, a ramp (`50..98`), a cycle of values (`4.1|4.3|3.9`) or `none`. Pure text to points.
"""

import re
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from watchdog.core.durations import parse_duration

_NUMBER = r"-?\d+(?:\.\d+)?(?:e-?\d+)?%?"
_SEGMENT = re.compile(
    rf"\s*(?:(?P<none>none)|(?P<low>{_NUMBER})\.\.(?P<high>{_NUMBER})|(?P<cycle>{_NUMBER}(?:\|{_NUMBER})*))"
    r"(?:\s+until\s+(?P<until>-?[0-9.a-z]+))?\s*\Z"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A stretch of a series. values: () = no points; two with `ramp` = from … to, else a cycle."""

    values: tuple[float, ...]
    ramp: bool = False
    until: timedelta | None = None  # None = to the end


def parse_offset(text: str) -> timedelta:
    """Parse a time relative to the scenario's start: `10m`, `-30m`, `0m`.

    Raises:
        ValueError: it is no such time.
    """
    return -parse_duration(text[1:]) if text.startswith("-") else parse_duration(text)


def parse_segments(text: str) -> tuple[Segment, ...]:
    """Parse the notation.

    Raises:
        ValueError: the text cannot be read; says which segment and what is expected.
    """
    segments: list[Segment] = []
    for part in text.split(","):
        segments.append(_segment(part))
        if len(segments) > 1:
            before = segments[-2].until
            if before is None:
                raise ValueError(
                    f"only the last segment may leave out `until`, but one stands before {part.strip()!r}"
                )
            after = segments[-1].until
            if after is not None and after <= before:
                raise ValueError(
                    f"the segments' times must grow, but {part.strip()!r} ends before the one in front"
                )
    return tuple(segments)


def points(
    segments: tuple[Segment, ...], *, begin: timedelta, end: timedelta, every: timedelta
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return (offsets in ns, values) of the points at begin, begin + every, … up to and with `end`."""
    step = every // timedelta(microseconds=1)
    first, last = begin // timedelta(microseconds=1), end // timedelta(microseconds=1)
    offsets = np.arange(first, last + 1, step, dtype=np.int64)
    values = np.full(offsets.shape, np.nan)
    start = first
    for segment in segments:
        stop = last + 1 if segment.until is None else segment.until // timedelta(microseconds=1)
        inside = (offsets >= start) & (offsets < stop)
        if segment.ramp:
            low, high = segment.values
            share = (offsets[inside] - start) / max(1, stop - start)
            values[inside] = low + (high - low) * share
        elif segment.values:
            cycle = np.array(segment.values)
            values[inside] = cycle[np.arange(int(inside.sum())) % len(cycle)]
        start = stop
    kept = ~np.isnan(values)
    return offsets[kept] * 1_000, values[kept]


def _segment(part: str) -> Segment:
    match = _SEGMENT.match(part)
    if match is None:
        raise ValueError(
            f"{part.strip()!r} is no segment: write a value, a ramp 50..98, a cycle 4.1|4.3 or none, "
            "each but the last with `until 10m`"
        )
    until = None if match["until"] is None else parse_offset(match["until"])
    if match["none"]:
        return Segment(values=(), until=until)
    if match["low"]:
        return Segment(values=(_number(match["low"]), _number(match["high"])), ramp=True, until=until)
    return Segment(values=tuple(_number(text) for text in match["cycle"].split("|")), until=until)


def _number(text: str) -> float:
    return float(text[:-1]) / 100 if text.endswith("%") else float(text)
