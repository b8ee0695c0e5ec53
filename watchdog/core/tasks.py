"""Tasks: what is watched, what state it is in, and what is expected of it.

Owns the values. How they change as observations arrive is `tracking`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from watchdog.core.labels import SOURCE, TASK, TASK_NAME, Labels


class Status(StrEnum):
    """The state of a task, over all clouds. `unknown` counts as running and is shown."""

    UNKNOWN = "unknown"
    QUEUED = "queued"
    LOADING = "loading"
    RUNNING = "running"
    PAUSED = "paused"
    HELD = "held"  # its command has ended, and its pods are kept for debugging
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"
    VANISHED = "vanished"  # absent from a healthy list; never said while the list cannot be read

    __hash__ = str.__hash__  # an Enum's own is a call of Python, several for each task in every slot

    @property
    def ended(self) -> bool:
        """Whether this attempt is over for good."""
        return self in ENDED

    @property
    def counts_as_running(self) -> bool:
        """Whether metric, log-silence and progress rules apply."""
        return self in (Status.RUNNING, Status.UNKNOWN)


ENDED = frozenset({Status.SUCCEEDED, Status.FAILED, Status.CANCELED, Status.VANISHED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The identity of one watched job; everything a source needs in order to ask about it."""

    key: str  # "source/configured id or name": stable for ever, what alert ids are made of
    source: str
    id: str  # the cloud's own id, opaque; may change when a task found by name starts anew
    name: str
    namespace: str = ""  # "" = the source finds it out
    labels: Labels = field(default_factory=Labels)  # from the watch entry: team, …

    @property
    def identity(self) -> Labels:
        """The labels every series, alert and incident of this task carries."""
        return Labels({SOURCE: self.source, TASK: self.key, TASK_NAME: self.name})


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """When one expected member of a task (a pod or a GPU) was first and last seen in data."""

    labels: Labels  # {pod} or {pod, gpu}
    first: datetime
    last: datetime
    missing: timedelta = timedelta()  # watched time without it, while its source answered
    heir: bool = False  # its pod took over from one that retired; it does so once


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskState:
    """What is known of one task, kept across our restarts."""

    task: Task
    status: Status = Status.UNKNOWN
    status_text: str = ""  # the source's own word
    reason: str = ""
    status_since: datetime | None = None
    attempt: int = 1
    attempt_started: datetime | None = None  # windows never reach before this
    watched_since: datetime | None = None
    nodes: Mapping[str, str] = field(default_factory=dict)  # pod → node, where known
    expected: tuple[Seen, ...] = ()  # the members this attempt is known to have
    restarts: int | None = None  # the source's own count, where it has one
    misses: int | None = None  # whole lists in a row without it; None = no list ever had it


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskObservation:
    """One answer of a source about one task's status."""

    task: Task
    status: Status
    status_text: str = ""
    reason: str = ""
    started: datetime | None = None
    ended: datetime | None = None
    pods: tuple[str, ...] | None = None  # None = the source does not say
    nodes: Mapping[str, str] = field(default_factory=dict)
    restarts: int | None = None
    extra: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusChange:
    """A task entered a status (an event)."""

    task: Task
    before: Status
    after: Status
    at: datetime
    reason: str = ""
    text: str = ""
