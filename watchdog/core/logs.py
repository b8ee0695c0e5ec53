"""Log lines as they travel: read from a source, cleaned, matched, kept as evidence.

Owns the values only; reading is `reading`, cleaning `hygiene`, secrets `masking`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple, overload


class LogLine(NamedTuple):
    """One line of a task's log. `time_ns`: int64 nanoseconds since the epoch, the source's clock.

    A tuple, not a dataclass: there are millions of them, and a tuple is made three times as fast.
    """

    time_ns: int
    pod: str
    text: str


class LogRows(Sequence[LogLine]):
    """Lines in columns, equal to any sequence of the same lines; never changed in place.

    A line becomes an object when it is asked for: with one of its own for each of millions, the garbage
    collector walks through them again and again.
    """

    __slots__ = ("pods", "texts", "times")

    def __init__(
        self, times: Sequence[int] = (), pods: Sequence[str] = (), texts: Sequence[str] = ()
    ) -> None:
        self.times = times
        self.pods = pods
        self.texts = texts

    @classmethod
    def of(cls, lines: Sequence[LogLine]) -> "LogRows":
        """Return some lines in columns; themselves if they are."""
        if isinstance(lines, LogRows):
            return lines
        times, pods, texts = zip(*lines, strict=True) if lines else ((), (), ())
        return cls(list(times), list(pods), list(texts))

    @classmethod
    def joined(cls, parts: Iterable["LogRows"]) -> "LogRows":
        """Return the lines of all parts, one part after the other."""
        times: list[int] = []
        pods: list[str] = []
        texts: list[str] = []
        for part in parts:
            times += part.times
            pods += part.pods
            texts += part.texts
        return cls(times, pods, texts)

    def __len__(self) -> int:
        return len(self.times)

    @overload
    def __getitem__(self, number: int) -> LogLine: ...
    @overload
    def __getitem__(self, number: slice) -> "LogRows": ...
    def __getitem__(self, number: int | slice) -> "LogLine | LogRows":
        if isinstance(number, slice):
            return LogRows(self.times[number], self.pods[number], self.texts[number])
        return LogLine(self.times[number], self.pods[number], self.texts[number])

    def __iter__(self) -> Iterator[LogLine]:
        return map(LogLine, self.times, self.pods, self.texts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(one == two for one, two in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def picked(self, numbers: Sequence[int]) -> "LogRows":
        """Return the lines with these numbers, in this order."""
        times, pods, texts = self.times, self.pods, self.texts
        return LogRows([times[n] for n in numbers], [pods[n] for n in numbers], [texts[n] for n in numbers])

    def in_order(self) -> "LogRows":
        """Return them in order of time, equal times as they are."""
        if self.times == sorted(self.times):
            return self
        return self.picked(sorted(range(len(self)), key=self.times.__getitem__))


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

    lines: Sequence[LogLine]
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
