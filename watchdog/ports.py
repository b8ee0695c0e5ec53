"""The four ports between decisions and the world: Source, Notifier, Store, Clock.

Implementations live in `sources`, `notifiers`, `store` and `clock`; the engine sees only this.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol, runtime_checkable

from watchdog.core.alerts import Alert, Incident, Transition
from watchdog.core.conditions.kinds import Capability
from watchdog.core.health import ProbeState
from watchdog.core.labels import Labels
from watchdog.core.logs import LogPage, LogQuery, StreamKey, StreamState
from watchdog.core.moments import Moment
from watchdog.core.notifications import (
    ChannelLimits,
    Delivery,
    DeliveryResult,
    LedgerEntry,
    Message,
)
from watchdog.core.series import SeriesPoints
from watchdog.core.tasks import Task, TaskObservation, TaskState


class Clock(Protocol):
    """The only way to learn the time."""

    def now(self) -> datetime:
        """Wall-clock time, aware UTC."""
        ...

    def monotonic(self) -> timedelta:
        """A clock that never jumps; its zero means nothing."""
        ...

    async def sleep(self, duration: timedelta) -> None:
        """Wait on the monotonic clock."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricInfo:
    """One metric a source offers. `unit`: "ratio" (1 = 100 %), "" or the source's own.

    step: how rarely points come, where that is more than a poll and known beforehand.
    """

    name: str
    unit: str = ""
    per: tuple[str, ...] = ("pod",)  # labels beyond the task's
    step: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricAnswer:
    """One healthy answer; no series is an answer too.

    remarks: what is odd about it (suspect values, warnings of the source), each `kind: details`; of a
    kind, the first is told. complete: False = the source has data that did not come (it cut its answer,
    some pods could not be asked): then nothing is judged by it.
    """

    series: Sequence[SeriesPoints]
    remarks: tuple[str, ...] = ()
    complete: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskListing:
    """A whole, healthy list. `complete` False: more may exist, so absence proves nothing."""

    tasks: tuple[TaskObservation, ...]
    complete: bool = True


class Source(Protocol):
    """Something that answers queries about tasks. Every failure is a `SourceError`."""

    name: str
    capabilities: frozenset[Capability]
    all_metrics: bool  # there are no others than `metric_infos`

    def metric_infos(self) -> tuple[MetricInfo, ...]:
        """The metrics known without asking."""
        ...

    async def list_tasks(self) -> TaskListing:
        """List every task the key may see."""
        ...

    async def status(self, task: Task) -> TaskObservation:
        """Ask about one task (capability STATUS); may serve it from a recent list.

        Absent from a whole, healthy list is `VANISHED`, whether or not it was ever in one.
        """
        ...

    async def metric(self, task: Task, metric: str, *, since: datetime, now: datetime) -> MetricAnswer:
        """Return every point newer than about `since` (older ones may come along)."""
        ...

    async def logs(self, task: Task, query: LogQuery) -> LogPage:
        """Return one page of lines, oldest first."""
        ...

    async def close(self) -> None:
        """Give back connections."""
        ...


@runtime_checkable
class Exposing(Protocol):
    """A source whose tasks expose metrics of their own, beside those that it knows."""

    async def exposed(self, task: Task) -> tuple[str, ...]:
        """Ask which metrics a task exposes itself, by name."""
        ...


class Notifier(Protocol):
    """One channel."""

    name: str
    limits: ChannelLimits

    async def send(self, message: Message) -> DeliveryResult:
        """Send and find out what really happened. Never raises; never blocks the loop."""
        ...

    async def close(self) -> None:
        """Stop; a send in progress is left behind."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSample:
    """A value read from a log (a match of a counting rule): kept, since no source serves it again."""

    metric: str  # "log:<rule>"
    labels: Labels
    time_ns: int
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotCommit:
    """T1: all that one slot decided. Applying it twice does no harm (transitions carry no seq yet)."""

    moment: Moment
    alerts: tuple[Alert, ...] = ()  # upserted
    dropped_alerts: tuple[str, ...] = ()  # ids
    incidents: tuple[Incident, ...] = ()  # upserted
    transitions: tuple[Transition, ...] = ()  # appended, in order
    tasks: tuple[TaskState, ...] = ()  # upserted
    dropped_tasks: tuple[str, ...] = ()
    streams: tuple[StreamState, ...] = ()  # upserted: the log cursors
    dropped_streams: tuple[StreamKey, ...] = ()
    probes: tuple[ProbeState, ...] = ()  # upserted
    samples: tuple[LogSample, ...] = ()
    forget_samples_before_ns: int = 0
    memory: Mapping[str, str] = field(default_factory=dict)  # small facts by name, upserted
    dropped_memory: tuple[str, ...] = ()  # names


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCommit:
    """T2: what the planner decided, and how far it has read."""

    mark: int  # seq of the newest transition planned
    deliveries: tuple[Delivery, ...] = ()  # new rows (id 0)
    superseded: tuple[int, ...] = ()  # ids of pending rows that a new one says too


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptCommit:
    """T3: one attempt's end: the row as it now stands, and the ledger if it was told.

    memory: facts, as in T1: what the next slot owes to say of it, until that slot's T1 drops them.
    """

    delivery: Delivery
    result: DeliveryResult
    at: Moment
    ledger: LedgerEntry | None = None
    memory: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """All that a start resumes from."""

    moment: Moment | None  # of the last slot; None in a new file
    mark: int
    alerts: tuple[Alert, ...]
    incidents: tuple[Incident, ...]  # the open ones, and closed ones not yet told
    tasks: tuple[TaskState, ...]
    streams: tuple[StreamState, ...]
    probes: tuple[ProbeState, ...]
    samples: tuple[LogSample, ...]
    ledger: tuple[LedgerEntry, ...]  # of `incidents`
    outbox: tuple[Delivery, ...]  # pending; what was in flight comes back pending, maybe_repeat
    transitions: tuple[Transition, ...]  # after the mark
    memory: Mapping[str, str]
    newest_delivery: int = 0  # highest outbox id ever given


class Store(Protocol):
    """Durable state with one writer. Blocking: the engine calls it from one thread.

    Every method raises `StoreError` when the disk does not take it; then nothing was changed.
    """

    def load(self) -> Stored:
        """Read all that a start needs."""
        ...

    def commit_slot(self, commit: SlotCommit) -> tuple[Transition, ...]:
        """T1. Returns the transitions with their `seq`; a seq that is not 0 is kept as it is."""
        ...

    def commit_plan(self, commit: PlanCommit) -> tuple[Delivery, ...]:
        """T2. Returns the new rows with their ids; an id that is not 0 is kept as it is."""
        ...

    def start_attempt(self, delivery: Delivery) -> None:
        """Mark a row as in flight, before anything is sent."""
        ...

    def commit_attempt(self, commit: AttemptCommit) -> None:
        """T3."""
        ...

    def prune(self, now: datetime) -> None:
        """Drop what nobody needs any more (closed incidents, done rows), by age."""
        ...

    def close(self) -> None:
        """Release the file."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRecord:
    """One attempt of one delivery, as it ended. `number` counts from 1."""

    delivery: int  # its id
    number: int
    at: Moment
    result: DeliveryResult


class StateReader(Protocol):
    """Read-only views for verbs, open while the daemon writes.

    Every method raises `StoreError` when the file cannot be read; each answer is of one moment.
    """

    def load(self) -> Stored:
        """Everything a start would resume from, as it stands: what is in flight is shown as such."""
        ...

    def incidents(self, *, limit: int) -> Sequence[Incident]:
        """The newest incidents, open ones first."""
        ...

    def incident(self, incident: str) -> Incident | None:
        """One incident by its id; None if it is not known (any more)."""
        ...

    def incident_ids(self, beginning: str, *, limit: int) -> Sequence[str]:
        """The ids that begin so, at most `limit`, the newest first."""
        ...

    def transitions(self, incident: str) -> Sequence[Transition]:
        """The changes of an incident, oldest first, as far back as they are kept."""
        ...

    def deliveries(self, incident: str) -> Sequence[Delivery]:
        """Every delivery of an incident, oldest first."""
        ...

    def attempts(self, incident: str) -> Sequence[AttemptRecord]:
        """Every attempt of every delivery of an incident, in the order they ended."""
        ...

    def ledger(self, incident: str) -> Sequence[LedgerEntry]:
        """What each channel was last told of an incident."""
        ...

    def undelivered(self, *, limit: int) -> Sequence[Delivery]:
        """The newest deliveries that were given up, over all incidents."""
        ...

    def close(self) -> None:
        """Release the file."""
        ...
