"""Points: what a source answers about series, one by one or as columns.

Owns the two forms and how one becomes the other; what becomes of points is `series`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import overload

import numpy as np
from numpy.typing import NDArray

from watchdog.core.labels import Labels


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesPoints:
    """Points of one series. times: int64 ns, shape (n,), ascending; values: float64, shape (n,)."""

    labels: Labels  # task identity plus pod, gpu, node
    times: NDArray[np.int64]
    values: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curves(Sequence[SeriesPoints]):
    """Points of many series, laid end to end; reads as a sequence of `SeriesPoints`.

    Taking in ten thousand series as columns costs a fraction of taking them in one by one.
    labels: of the n series. times, values: those of series i stand at starts[i] … starts[i + 1] − 1.
    starts: int64, shape (n + 1,), from 0 to the number of points.
    """

    labels: tuple[Labels, ...]
    starts: NDArray[np.int64]
    times: NDArray[np.int64]
    values: NDArray[np.float64]

    @classmethod
    def of(cls, series: Sequence[SeriesPoints]) -> "Curves":
        """Return the same as columns."""
        if isinstance(series, Curves):
            return series
        times = [one.times for one in series]
        starts = np.zeros(len(times) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, times), np.int64, len(times)), out=starts[1:])
        return cls(
            labels=tuple([one.labels for one in series]),
            starts=starts,
            times=np.concatenate(times or [np.zeros(0, np.int64)]).astype(np.int64, copy=False),
            values=np.concatenate([one.values for one in series] or [np.zeros(0)]).astype(
                np.float64, copy=False
            ),
        )

    @classmethod
    def joined(cls, parts: Iterable[Sequence[SeriesPoints]]) -> "Curves":
        """Return several answers as one."""
        parts = list(parts)
        if not any(isinstance(part, Curves) for part in parts):
            return cls.of(list(chain.from_iterable(parts)))
        made = [cls.of(part) for part in parts]
        sizes = np.fromiter([len(one.labels) for one in made], np.int64, len(made))
        points = np.fromiter([one.times.size for one in made], np.int64, len(made))
        before = np.repeat(np.cumsum(points) - points, sizes)  # points of the answers that come first
        return cls(
            labels=tuple(chain.from_iterable([one.labels for one in made])),
            starts=np.concatenate([[0], np.concatenate([one.starts[1:] for one in made]) + before]),
            times=np.concatenate([one.times for one in made]),
            values=np.concatenate([one.values for one in made]),
        )

    def __len__(self) -> int:
        return len(self.labels)

    @overload
    def __getitem__(self, place: int) -> SeriesPoints: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[SeriesPoints]: ...
    def __getitem__(self, place: int | slice) -> SeriesPoints | Sequence[SeriesPoints]:
        if isinstance(place, slice):
            return [self[n] for n in range(*place.indices(len(self)))]
        own = slice(int(self.starts[:-1][place]), int(self.starts[1:][place]))
        return SeriesPoints(labels=self.labels[place], times=self.times[own], values=self.values[own])
