"""Series: points by labels, and the columnar store that rules read."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from watchdog.core.labels import Labels


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesPoints:
    """Points of one series. times: int64 ns, shape (n,), ascending; values: float64, shape (n,)."""

    labels: Labels  # task identity plus pod, gpu, node
    times: NDArray[np.int64]
    values: NDArray[np.float64]
