"""Log lines as they travel: read from a source, cleaned, matched, kept as evidence.

Owns the values only; reading is `reading`, cleaning `hygiene`, secrets `masking`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a task's log. `time_ns`: int64 nanoseconds since the epoch, the source's clock."""

    time_ns: int
    pod: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogQuery:
    """One request for a page of lines, oldest first. Bounds in ns; both are meant inclusive."""

    start_ns: int
    end_ns: int
    limit: int = 500
    pod: str = ""  # "" = all pods
    contains: str = ""  # the server's substring filter; "" = none


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPage:
    """What came back. `full`: exactly `limit` rows came, so more may exist. `remarks`: rows dropped."""

    lines: tuple[LogLine, ...]
    full: bool
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamKey:
    """One followed log stream: a task, narrowed by pod or by the server's substring filter."""

    task: str
    pod: str = ""
    prefilter: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamState:
    """How far one stream was consumed; durable, moved only by T1.

    `seen` counts, per 8-byte hash of (pod, time, text), the lines inside the overlap that were
    already consumed, so that re-reading the overlap yields nothing twice.
    """

    key: StreamKey
    cursor_ns: int  # newest line time consumed
    seen: Mapping[int, tuple[int, int]] = field(default_factory=dict)  # hash → (time_ns, count)
    newest_ns: Mapping[str, int] = field(default_factory=dict)  # pod → newest line time
    arrived_ns: Mapping[str, int] = field(default_factory=dict)  # pod → slot when a line last came
    lines: int = 0  # consumed in all
