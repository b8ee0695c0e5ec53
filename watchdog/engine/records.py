"""What the state file tells: history, one incident, and what became of its messages.

Functions of a `StateReader`. The running daemon adds what it knows better (`Context`). Changes nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fnmatch import fnmatchcase

from watchdog.core.alerts import Alert, Incident
from watchdog.core.durations import EPOCH
from watchdog.core.health import ProbeState
from watchdog.core.labels import TASK
from watchdog.core.notifications import Delivery, DeliveryState, LedgerEntry
from watchdog.core.outcomes import Evidence
from watchdog.core.ruleset import ChannelSpec
from watchdog.core.tasks import TaskState
from watchdog.core.wording.voice import Voice
from watchdog.engine.protocol import MAX_ROWS, ErrorCode, Refusal
from watchdog.engine.showing import (
    beyond_task,
    delivery_view,
    evidence_view,
    incident_view,
    member_views,
    params_of,
    speaker,
    task_name,
    task_view,
)
from watchdog.engine.views import (
    CapabilityView,
    ChangeView,
    ChannelWhyView,
    HistoryView,
    OutboxView,
    ShowView,
    TaskView,
    WhyView,
)
from watchdog.ports import StateReader

SEARCHED = 5000  # incidents looked through for a history
NAMED = 6  # ids named when a beginning fits several


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What is known beside the state file.

    at: of which moment the answer is. incidents, tasks, rows: fresher than what is stored. channels: those of
    the rules in force; None = not known. watched: now, on that clock; None = nothing is running.
    """

    live: bool = False
    at: datetime | None = None
    timezone: str = "UTC"
    incidents: Mapping[str, Incident] = field(default_factory=dict)
    tasks: Mapping[str, TaskState] = field(default_factory=dict)
    alerts: tuple[Alert, ...] = ()
    rows: Mapping[int, Delivery] = field(default_factory=dict)
    channels: tuple[ChannelSpec, ...] | None = None
    watched: timedelta | None = None

    @property
    def voice(self) -> Voice:
        """Who puts things into words."""
        return speaker(self.timezone, self.at or EPOCH)

    def task_of(self, incident: Incident) -> TaskView | None:
        """The task of an incident, as it is now."""
        key = incident.labels.get(TASK, "")
        state = self.tasks.get(key)
        if state is None:
            return None
        return task_view(state, [alert for alert in self.alerts if alert.labels.get(TASK) == key])


def find(reader: StateReader, context: Context, beginning: str) -> Incident:
    """Return the incident that an id, or the beginning of one, means.

    Raises:
        Refusal: there is none, or several.
    """
    wanted = beginning.strip().lower()
    if not wanted:
        raise Refusal(ErrorCode.NOT_FOUND, "say which incident: its id, or the beginning of it")
    known = context.incidents.get(wanted) or reader.incident(wanted)
    if known is not None:
        return known
    found = dict.fromkeys(id_ for id_ in context.incidents if id_.startswith(wanted))
    found.update(dict.fromkeys(reader.incident_ids(wanted, limit=NAMED)))
    if not found:
        raise Refusal(
            ErrorCode.NOT_FOUND, f"there is no incident {beginning!r}: `watchdog history` lists them"
        )
    if len(found) > 1:
        named = ", ".join(list(found)[: NAMED - 1]) + (", …" if len(found) >= NAMED else "")
        raise Refusal(ErrorCode.AMBIGUOUS, f"{beginning!r} may mean {named}: write more of it")
    incident = context.incidents.get(next(iter(found))) or reader.incident(next(iter(found)))
    if incident is None:
        raise Refusal(ErrorCode.NOT_FOUND, f"incident {beginning!r} has just been forgotten")
    return incident


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which incidents a history shows; rule and task are globs, "" = all."""

    limit: int = 50
    rule: str = ""
    task: str = ""
    only_open: bool = False

    def takes(self, incident: Incident) -> bool:
        """Whether an incident is shown."""
        if self.only_open and not incident.open:
            return False
        if self.rule and not fnmatchcase(incident.rule, self.rule):
            return False
        names = (task_name(incident.labels), incident.labels.get(TASK, ""))
        return not self.task or any(fnmatchcase(name, self.task) for name in names)


def history(reader: StateReader, context: Context, wanted: Filter) -> HistoryView:
    """Return incidents, open ones first, then the newest."""
    narrowed = wanted.rule or wanted.task or wanted.only_open
    stored = reader.incidents(limit=SEARCHED if narrowed else wanted.limit)
    incidents = {incident.id: context.incidents.get(incident.id, incident) for incident in stored}
    incidents.update((key, one) for key, one in context.incidents.items() if key not in incidents)
    ordered = sorted(incidents.values(), key=lambda one: (one.open, one.opened_at, one.id), reverse=True)
    shown = [incident for incident in ordered if wanted.takes(incident)][: wanted.limit]
    voice = context.voice
    return HistoryView(
        live=context.live,
        at=context.at,
        timezone=context.timezone,
        incidents=tuple(incident_view(incident, voice) for incident in shown),
    )


def show(reader: StateReader, context: Context, beginning: str) -> ShowView:
    """Return one incident with its evidence.

    Raises:
        Refusal: see `find`.
    """
    incident, voice = find(reader, context, beginning), context.voice
    same = incident.latest in (incident.first, Evidence())
    return ShowView(
        live=context.live,
        at=context.at,
        timezone=context.timezone,
        incident=incident_view(incident, voice),
        labels=beyond_task({**incident.labels, **incident.rule_labels}),
        description=incident.description,
        annotations=dict(incident.annotations),
        params=params_of(incident),
        situation=dict(incident.situation),
        first=evidence_view(incident.first, voice),
        latest=None if same else evidence_view(incident.latest, voice),
        members=member_views(incident, MAX_ROWS),
        more_members=max(0, len(incident.members) - MAX_ROWS),
        task=context.task_of(incident),
    )


def why(reader: StateReader, context: Context, beginning: str) -> WhyView:
    """Return what was decided and tried for one incident.

    Raises:
        Refusal: see `find`.
    """
    incident = find(reader, context, beginning)
    changes = reader.transitions(incident.id)
    return WhyView(
        live=context.live,
        at=context.at,
        timezone=context.timezone,
        incident=incident_view(incident, context.voice),
        changes=tuple(ChangeView(change=one.change, at=one.at) for one in changes),
        channels=tuple(_channels(reader, context, incident)),
    )


def _channels(reader: StateReader, context: Context, incident: Incident) -> Iterable[ChannelWhyView]:
    rows = {row.id: row for row in reader.deliveries(incident.id)}
    rows.update(
        (key, row) for key, row in context.rows.items() if row.notification.incident.id == incident.id
    )
    attempts = reader.attempts(incident.id)
    ledger = {entry.channel: entry for entry in reader.ledger(incident.id)}
    specs = {spec.name: spec for spec in context.channels or ()}
    names = dict.fromkeys((*specs, *(row.notification.channel for row in rows.values()), *ledger))
    for name in names:
        own = [row for row in rows.values() if row.notification.channel == name]
        entry: LedgerEntry | None = ledger.get(name)
        yield ChannelWhyView(
            channel=name,
            meant=meant(incident, name, specs) if context.channels is not None else "",
            told="" if entry is None else entry.kind,
            told_at=None if entry is None else entry.told_at,
            reminders=0 if entry is None else entry.reminders,
            deliveries=tuple(
                delivery_view(row, [one for one in attempts if one.delivery == row.id], context.watched)
                for row in own
            ),
        )


def meant(incident: Incident, channel: str, specs: Mapping[str, ChannelSpec]) -> str:
    """Say why an incident is, or is not, for a channel; `core.planning.channels_of` decides it."""
    spec = specs.get(channel)
    if spec is None:
        return "the rule file has no such channel any more"
    if channel in incident.exclude:
        return "not for it: it is about this channel"
    if incident.notify and channel not in incident.notify:
        return f"not for it: the rule notifies {', '.join(incident.notify)}"
    if incident.severity.rank < spec.min_severity.rank:
        return f"not for it: min_severity is {spec.min_severity}, this is {incident.severity}"
    return "for it"


def outbox_view(rows: Sequence[Delivery], watched: timedelta | None, given_up: int) -> OutboxView:
    """Return what is to be told. watched: now; None = as of the newest row."""
    flying = sum(row.state is DeliveryState.INFLIGHT for row in rows)
    now = max((row.created for row in rows), default=timedelta()) if watched is None else watched
    oldest = max((now - row.created for row in rows), default=timedelta())
    return OutboxView(
        waiting=len(rows) - flying,
        in_flight=flying,
        oldest_s=round(oldest.total_seconds(), 3),
        given_up=given_up,
    )


def left_out(**lists: Sequence[object]) -> dict[str, int]:
    """Return how many rows of each list are beyond what an answer shows."""
    return {name: len(rows) - MAX_ROWS for name, rows in lists.items() if len(rows) > MAX_ROWS}


def capability_view(capability: str, states: Sequence[ProbeState], standing: str) -> CapabilityView:
    """Return one capability over all that was asked of it; the failure that has lasted longest is named."""
    failing = [state for state in states if state.failures or state.blind]
    worst = min(failing, key=lambda state: (state.since is None, state.since or EPOCH), default=None)
    about = f"{worst.key.task}: " if worst is not None and worst.key.task and len(states) > 1 else ""
    return CapabilityView(
        capability=capability,
        standing=standing,
        asked=len(states),
        failing=sum(bool(state.failures) for state in states),
        blind=sum(state.blind for state in states),
        failure="" if worst is None else str(worst.failure or ""),
        detail="" if worst is None else f"{about}{worst.detail}",
        since=None if worst is None else worst.since,
        last_good=max((state.last_good for state in states if state.last_good), default=None),
    )
