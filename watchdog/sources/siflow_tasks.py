"""SiFlow's tasks and pods as observations: status words, retries, holds, places in the queue; pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo

from watchdog.core.tasks import Status, Task, TaskObservation
from watchdog.sources.naive_times import read_time
from watchdog.sources.siflow_wire import PodRow, TaskRow

REASON_KEPT = 300
PODS_NAMED = 4

# The SDK's own words, the one more that a user filters by, and what the vendor's CI is prepared for.
_WORDS = {
    Status.QUEUED: ("pending", "queueing", "queuing", "queued", "waiting"),
    Status.LOADING: ("partialpending", "creating", "starting", "initializing"),
    Status.RUNNING: ("running",),
    Status.PAUSED: ("suspended", "suspending", "paused"),
    Status.SUCCEEDED: ("succeeded", "success", "completed", "complete"),
    Status.FAILED: ("failed", "error", "timeout"),
    Status.CANCELED: ("stopping", "stopped", "canceled", "cancelled", "killed", "terminated", "deleted"),
}
_STATUS = {word: status for status, words in _WORDS.items() for word in words}
_OVER = frozenset({"succeeded", "failed", "error", "stopped", "completed", "terminated", "deleted"})

HELD = "held for debugging: its command has ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Roster:
    """The pods of a task: those alive, their nodes, since when, and what those that ended said."""

    alive: tuple[str, ...] = ()
    nodes: Mapping[str, str] = field(default_factory=dict)
    known: bool = True  # the cloud listed them all
    since: datetime | None = None  # when the oldest of those alive was created
    ends: tuple[str, ...] = ()  # such as "worker-1 ended with exit code 137"


def status_of(row: TaskRow) -> Status:
    """Map a task's status word in any case; a word nobody has seen is UNKNOWN, never an end.

    A task that the platform holds for debugging says that it runs, while its command has ended and its
    GPUs idle on purpose: it is HELD, so that nothing is expected of them.
    """
    status = _STATUS.get((row.status or "").strip().lower(), Status.UNKNOWN)
    return Status.HELD if row.held and status is Status.RUNNING else status


def read_roster(rows: Iterable[PodRow], zone: tzinfo) -> Roster:
    """Sort the pods of a task into those alive and those that are over."""
    alive: dict[str, str] = {}
    since: list[datetime] = []
    ends = []
    for row in rows:
        if not row.name:
            continue
        if not row.deleted and (row.status or "").strip().lower() not in _OVER:
            alive[row.name] = row.node or ""
            since += filter(None, [read_time(row.create_time, zone)])
        if row.exit_code:
            said = f": {row.status_msg}" if row.status_msg else ""
            ends.append(f"{row.name} ended with exit code {row.exit_code:.0f}{said}")
    nodes = {pod: node for pod, node in alive.items() if node}
    return Roster(alive=tuple(alive), nodes=nodes, since=min(since, default=None), ends=tuple(ends))


def observe(
    row: TaskRow, *, source: str, zone: tzinfo, task: Task | None = None, roster: Roster | None = None
) -> TaskObservation | None:
    """Read a task's row; None if it has no id. task: whom it is about, where that is known."""
    if not row.uuid:
        return None
    status = status_of(row)
    word = (row.status or "").strip()
    return TaskObservation(
        task=task or Task(key=f"{source}/{row.uuid}", source=source, id=row.uuid, name=row.name or row.uuid),
        status=status,
        status_text=f"{word}, {HELD}" if status is Status.HELD else word,
        reason=_reason(row, status, roster.ends if roster else ()),
        started=_started(row, roster, zone),
        ended=read_time(row.end_time, zone),
        pods=roster.alive if roster else None,
        nodes=dict(roster.nodes) if roster else {},
        restarts=row.retries,
        extra=_extra(row, zone),
    )


def unique(rows: Sequence[TaskRow]) -> Mapping[str, TaskRow]:
    """Return rows by id; a task that is in several answers counts once, as it came first."""
    found: dict[str, TaskRow] = {}
    for row in rows:
        if row.uuid:
            found.setdefault(row.uuid, row)
    return found


def _started(row: TaskRow, roster: Roster | None, zone: tzinfo) -> datetime | None:
    """When this attempt began. After a retry by the platform, the task's own start may be the first one's."""
    if not row.retries:
        return read_time(row.start_time, zone)
    return roster.since if roster else None


def _reason(row: TaskRow, status: Status, ends: Sequence[str]) -> str:
    parts = [(row.status_msg or "").strip()]
    if status is Status.QUEUED:
        parts.append(_queue(row))
    elif status is Status.HELD:
        parts.append(HELD)
    elif status is Status.FAILED:
        parts += ends[:PODS_NAMED]
        parts.append(f"and {len(ends) - PODS_NAMED} more pods" if len(ends) > PODS_NAMED else "")
    return "; ".join(filter(None, parts))[:REASON_KEPT]


def _queue(row: TaskRow) -> str:
    place = f"place {row.queue_rank:.0f} in its pool's queue" if row.queue_rank is not None else ""
    ahead = f"{row.queue_ahead:.0f} tasks ahead" if row.queue_ahead is not None else ""
    return ", ".join(filter(None, (place, ahead)))


def _extra(row: TaskRow, zone: tzinfo) -> Mapping[str, str]:
    created = read_time(row.create_time, zone)
    found = {
        "created": created.isoformat() if created else "",
        "owner": row.owner or "",
        "pool": row.resource_pool or "",
        "queue": _queue(row),
        "held": "true" if row.held else "",
    }
    return {name: value for name, value in found.items() if value}
