"""Points of Alaya's metrics as columns: a series at once where its points are as documented, else one by one.

Pure; knows neither the envelope nor what was asked, but that older points than some time are not wanted.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from watchdog.core.durations import SECOND_NS
from watchdog.core.labels import Labels
from watchdog.core.series import SeriesPoints

LATEST_SECONDS = 9_000_000_000  # epoch seconds beyond this are another unit, or no time: int64 ns end in 2262
_TAIL = 1_024  # bytes of a series looked at first: a dozen points and more
LARGEST = 1e300  # a number
NO_VALUE = frozenset({"", "-", "--", "nan", "null", "none", "n/a"})


@dataclass(slots=True)
class Remarks:
    """What is odd about one answer, counted so that each is said once."""

    suspect: list[float] = field(default_factory=list)
    unreadable: int = 0
    lost: int = 0  # series that cannot be read at all
    bad_times: int = 0
    foreign: int = 0
    disagree: int = 0

    def texts(self, metric: str) -> tuple[str, ...]:
        """Say each once."""
        said = []
        if self.suspect:
            worst = max(self.suspect, key=abs)
            said.append(f"suspect values of {metric}: outside 0 to 1, such as {worst:g}; kept as sent")
        if self.unreadable:
            said.append(f"{self.unreadable} values of {metric} are no numbers; dropped")
        if self.lost:
            said.append(f"{self.lost} series of {metric} cannot be read; what is missing is not judged")
        if self.bad_times:
            said.append(f"{self.bad_times} points of {metric} have no readable time; dropped")
        if self.foreign:
            said.append(f"{self.foreign} series are of another type than {metric}; dropped")
        if self.disagree:
            said.append(f"{self.disagree} series of {metric} came twice and disagree; averaged")
        return tuple(said)


Columns = tuple[NDArray[np.int64], NDArray[np.float64]]


class Point(msgspec.Struct, gc=False):
    """One point as it came."""

    timestamp: int | float | str | None = None
    value: str | int | float | None = None


_POINTS = msgspec.json.Decoder(list[Point])


def newest_points(raw: msgspec.Raw, since_s: int) -> list[Point] | None:
    """Return the points at the end of a long series if they hold every new one; None if that is not sure.

    It is where the series begins with its oldest point and has as many as there are equal steps from there
    to its last, and its end, one step after the other, begins before `since_s`.
    """
    text = bytes(raw)
    try:
        oldest = _POINTS.decode(text[: text.find(b"}") + 1] + b"]")
        points = _POINTS.decode(b"[" + text[text.find(b"{", max(len(text) - _TAIL, 0)) :])
    except (msgspec.MsgspecError, RecursionError):
        return None
    times = [point.timestamp for point in (*oldest, *points)]
    if len(times) < 4 or set(map(type, times)) != {int}:
        return None
    oldest_s, first, before, last = (cast(int, times[place]) for place in (0, 1, -2, -1))
    step = last - before
    if not oldest_s <= first <= since_s or step <= 0 or times[1:] != list(range(first, last + 1, step)):
        return None
    return points if last - oldest_s == step * (text.count(b'"timestamp"') - 1) else None


def columns_of(points: Sequence[Point], since_s: int, remarks: Remarks) -> Columns | None:
    """Turn points into columns sorted by time, the last of equal times; None without a new one."""
    times = [point.timestamp for point in points]
    first = _first_new(times, since_s)
    if first == len(points):
        return None
    values = _numbers([point.value for point in points[first:]]) if first is not None else None
    if values is None:
        return _odd_columns(points, since_s, remarks)
    if min(values) < 0.0 or max(values) > 1.0:
        remarks.suspect += [value for value in values if not 0.0 <= value <= 1.0]
    return np.array(times[first:], np.int64) * SECOND_NS, np.array(values)


def _first_new(times: Sequence[Any], since_s: int) -> int | None:
    """Return the place of the first new point; None if they are not whole seconds in order, none twice."""
    try:
        if times != sorted(times) or (times and not 0 < times[0] <= times[-1] < LATEST_SECONDS):
            return None
        first = bisect_right(times, since_s)
    except TypeError:
        return None
    new = set(times[first:])
    return first if len(new) == len(times) - first and set(map(type, new)) <= {int} else None


def _numbers(values: Sequence[Any]) -> list[float] | None:
    """Return values that are all numbers, or all texts of such; None otherwise."""
    kinds = set(map(type, values))
    if not (kinds <= {int, float} or (kinds == {str} and "_" not in "".join(values))):
        return None
    try:
        found = list(map(float, values))
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(sum(found)) and -LARGEST < min(found) <= max(found) < LARGEST else None


def _odd_columns(points: Sequence[Point], since_s: int, remarks: Remarks) -> Columns | None:
    found: dict[int, float] = {}
    for point in points:
        time = point.timestamp
        if time.__class__ is not int:
            time = _seconds(time)
        if time is None or not 0 < time < LATEST_SECONDS:
            remarks.bad_times += 1
            continue
        if time <= since_s:
            continue
        value = _ratio(point.value, remarks)
        if value is not None:
            found[time] = value
    if not found:
        return None
    times = np.fromiter(found.keys(), np.int64, len(found))
    values = np.fromiter(found.values(), np.float64, len(found))
    order = np.argsort(times, kind="stable")
    return times[order] * SECOND_NS, values[order]


def _seconds(time: object) -> int | None:
    """Read epoch seconds written as text or with a fraction."""
    try:
        seconds = float(time) if isinstance(time, (str, int, float)) else math.nan
    except ValueError:
        return None
    return int(seconds) if abs(seconds) < LATEST_SECONDS else None


def _ratio(value: str | float | None, remarks: Remarks) -> float | None:
    """Read a ratio; None when there is none. Values outside 0 to 1 are kept and remarked upon."""
    if isinstance(value, str):
        text = value.strip()
        try:
            number = float(text) if "_" not in text else math.nan
        except ValueError:
            if text.lower() not in NO_VALUE:
                remarks.unreadable += 1
            return None
    elif value is None:
        return None
    else:
        number = float(value) if abs(value) < LARGEST else math.nan
    if not math.isfinite(number):
        return None
    if not 0.0 <= number <= 1.0:
        remarks.suspect.append(number)
    return number


def merged(labels: Labels, parts: Sequence[Columns], remarks: Remarks) -> SeriesPoints:
    """Join series that share pod and GPU name: cards without a name cannot be told apart."""
    if len(parts) == 1:
        return SeriesPoints(labels=labels, times=parts[0][0], values=parts[0][1])
    all_times = np.concatenate([times for times, _ in parts])
    all_values = np.concatenate([values for _, values in parts])
    times, index, counts = np.unique(all_times, return_inverse=True, return_counts=True)
    first = np.empty(len(times))
    first[index[::-1]] = all_values[::-1]
    if np.array_equal(first[index], all_values):
        return SeriesPoints(labels=labels, times=times, values=first)
    remarks.disagree += len(parts)
    return SeriesPoints(labels=labels, times=times, values=np.bincount(index, all_values) / counts)
