"""Log lines as they travel: read from a source, cleaned, matched, kept as evidence.

Owns the values only; reading is `reading`, cleaning `hygiene`, secrets `masking`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import repeat
from typing import NamedTuple


class LogLine(NamedTuple):
    """One line of a task's log. `time_ns`: int64 nanoseconds since the epoch, the source's clock.

    A tuple, not a dataclass: there are millions of them, and a tuple is made three times as fast.
    """

    time_ns: int
    pod: str
    text: str


def log_lines(times: Iterable[int], pods: Iterable[str], texts: Iterable[str]) -> list[LogLine]:
    """Return lines made of columns of the same length."""
    return list(map(tuple.__new__, repeat(LogLine), zip(times, pods, texts, strict=True)))


class ReadKind(StrEnum):
    """Why a page is asked for; only `reading` cares."""

    HEAD = "head"  # what is new, with the overlap
    SWEEP = "sweep"  # further back, for lines that became visible late
    GAP = "gap"  # what was passed over when the reader fell behind, filtered by the server


@dataclass(frozen=True, slots=True, kw_only=True)
class LogQuery:
    """One request for a page of lines, oldest first. Bounds in ns; both are meant inclusive."""

    start_ns: int
    end_ns: int
    limit: int = 500
    pod: str = ""  # "" = all pods
    contains: str = ""  # the server's substring filter; "" = none
    kind: ReadKind = ReadKind.HEAD
    until_ns: int = 0  # where this run of pages ends; 0 = at `end_ns`
    bookmark: str = ""  # the newest one that the source gave, see `LogPage`


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPage:
    """What came back. `full`: exactly `limit` rows came, so more may exist. `remarks`: rows dropped.

    lost_ns: from when to when (both included) lines may exist that this source cannot show any more.
    bookmark: where a source that cannot be asked by time stands after these lines. Kept with the stream, so
    that it finds its place again after a restart; nobody else reads it.
    """

    lines: tuple[LogLine, ...]
    full: bool
    remarks: tuple[str, ...] = ()
    lost_ns: tuple[int, int] | None = None
    bookmark: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamKey:
    """One followed log stream: a task, narrowed by pod or by the server's substring filter."""

    task: str
    pod: str = ""
    prefilter: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where reading stands between two pages; durable with its stream, as one value.

    All zero means "not known": `reading` then takes what cursor and seen lines tell.
    """

    floor_ns: int = 0  # a line at or before this is no longer new, whenever it comes
    complete_ns: int = 0  # the newest slot at which the end of the log was reached
    swept_ns: int = 0  # every line visible by then was read, as far back as a sweep goes
    head_from_ns: int = 0  # where the newest read of kind HEAD began to read
    head_began_ns: int = 0  # and the slot in which it did
    sweep_began_ns: int = 0  # what `swept_ns` becomes when the sweep in progress ends
    pending: tuple[LogQuery, ...] = ()  # pages still to be asked for
    evicted: int = 0  # lines forgotten before their time because there were too many


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
    bookmark: str = ""  # see `LogPage`
    progress: Progress = field(default_factory=Progress)


def arrivals_moved(state: StreamState, noted: StreamState, shift_ns: int) -> StreamState:
    """Return the state after our clock was set: when lines arrived, as that clock would have said.

    noted: the stream as of the last slot before; what arrived since then was stamped by the new clock.
    """
    arrived = {
        pod: at_ns + shift_ns if noted.arrived_ns.get(pod) == at_ns else at_ns
        for pod, at_ns in state.arrived_ns.items()
    }
    return replace(state, arrived_ns=arrived)
