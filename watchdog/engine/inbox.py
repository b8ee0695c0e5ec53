"""What collectors bring and a slot takes away. Plain hand-over on one event loop, no locks."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from watchdog.core.health import Probe
from watchdog.core.logs import LogLine, StreamState
from watchdog.core.reading import Unread
from watchdog.core.tasks import Task, TaskObservation
from watchdog.ports import MetricAnswer, TaskListing


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingArrived:
    """A healthy task list."""

    source: str
    listing: TaskListing
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusArrived:
    """A healthy answer about one task."""

    observation: TaskObservation
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PointsArrived:
    """A healthy metric answer."""

    task: Task
    metric: str
    answer: MetricAnswer
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class LinesArrived:
    """New lines of one stream, and the state that has consumed them."""

    task: Task
    state: StreamState
    lines: Sequence[LogLine]
    standing: tuple[LogLine, ...] = ()  # a stream's first read ever: rows that stood there already
    standing_more: bool = False  # … and there are more than were read
    unread: tuple[Unread, ...] = ()  # stretches that were passed over
    unsearched: tuple[str, ...] = ()  # patterns that the passed-over stretch was not searched for
    remarks: tuple[str, ...] = ()


@dataclass(slots=True)
class Inbox:
    """Everything that arrived since the last slot took it, in order of arrival."""

    probes: list[Probe] = field(default_factory=list)
    listings: list[ListingArrived] = field(default_factory=list)
    statuses: list[StatusArrived] = field(default_factory=list)
    points: list[PointsArrived] = field(default_factory=list)
    lines: list[LinesArrived] = field(default_factory=list)

    def drain(self) -> "Inbox":
        """Take everything."""
        taken = Inbox(self.probes, self.listings, self.statuses, self.points, self.lines)
        self.probes, self.listings, self.statuses, self.points, self.lines = [], [], [], [], []
        return taken
