"""The book of what is going on, and the steps that change it.

Owns `Book` (known alerts, open incidents), `Step` (what one decision changes), and how an incident
opens, gains and loses members, and closes. Knows no outcomes: those are `lifecycle`, `events`
and `notices`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Self

from watchdog.core.alerts import (
    Alert,
    Change,
    CloseReason,
    Incident,
    IncidentMember,
    Transition,
    incident_id,
)
from watchdog.core.labels import POD, SOURCE, TASK, TASK_NAME, Labels
from watchdog.core.rules import Rule, Severity
from watchdog.core.tasks import TaskState

IncidentKey = tuple[str, str]  # (rule, subject)
SUBJECT = "subject"  # the param of a notice's incident that holds its subject

_IDENTITY = frozenset({SOURCE, TASK, TASK_NAME})


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """All alerts that are pending or firing, and all open incidents. Never changed in place.

    alerts: by rule name, then by labelset.
    open: by (rule, subject), see `subject_of`.
    """

    alerts: Mapping[str, Mapping[Labels, Alert]] = field(default_factory=dict)
    open: Mapping[IncidentKey, Incident] = field(default_factory=dict)

    @classmethod
    def of(cls, alerts: Iterable[Alert] = (), incidents: Iterable[Incident] = ()) -> Self:
        """Build a book from stored values; closed incidents are left out."""
        by_rule: dict[str, dict[Labels, Alert]] = {}
        for alert in alerts:
            by_rule.setdefault(alert.rule, {})[alert.labels] = alert
        return cls(alerts=by_rule, open={key_of(one): one for one in incidents if one.open})

    def known(self, rule: str) -> Mapping[Labels, Alert]:
        """Return the pending and firing alerts of a rule by labelset."""
        return self.alerts.get(rule, {})

    def all_alerts(self) -> tuple[Alert, ...]:
        """Return every pending and firing alert."""
        return tuple(alert for known in self.alerts.values() for alert in known.values())

    def by_task(self) -> Mapping[str, Sequence[Alert]]:
        """Return every pending and firing alert by the key of its task."""
        found: dict[str, list[Alert]] = {}
        for alert in self.all_alerts():
            found.setdefault(alert.labels.get(TASK, ""), []).append(alert)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one decision changes: values to upsert, alerts to drop, transitions in order."""

    alerts: tuple[Alert, ...] = ()
    dropped: tuple[Alert, ...] = ()
    incidents: tuple[Incident, ...] = ()
    transitions: tuple[Transition, ...] = ()

    @property
    def dropped_ids(self) -> tuple[str, ...]:
        """The ids of the alerts that are inactive now."""
        return tuple(alert.id for alert in self.dropped)

    @property
    def empty(self) -> bool:
        """Whether nothing changes."""
        return not (self.alerts or self.dropped or self.incidents or self.transitions)


def apply(book: Book, step: Step) -> Book:
    """Return the book after a step. Costs as much as the rules the step touches have alerts."""
    if step.empty:
        return book
    alerts: dict[str, dict[Labels, Alert]] = {}
    for alert in (*step.dropped, *step.alerts):
        if alert.rule not in alerts:
            alerts[alert.rule] = dict(book.known(alert.rule))
    for alert in step.dropped:
        alerts[alert.rule].pop(alert.labels, None)
    for alert in step.alerts:
        alerts[alert.rule][alert.labels] = alert
    kept = {rule: known for rule, known in {**book.alerts, **alerts}.items() if known}
    if not step.incidents:
        return Book(alerts=kept, open=book.open)
    incidents = dict(book.open)
    take_in(incidents, step.incidents)
    return Book(alerts=kept, open=incidents)


def take_in(known: dict[IncidentKey, Incident], changed: Iterable[Incident]) -> None:
    """Put changed incidents among the open ones; those that are closed now leave."""
    for incident in changed:
        key = key_of(incident)
        if incident.open:
            known[key] = incident
        elif key in known and known[key].id == incident.id:
            del known[key]


def join(steps: Iterable[Step]) -> Step:
    """Return one step that has the effect of several in order; the last word on each value counts."""
    alerts: dict[str, Alert] = {}
    dropped: dict[str, Alert] = {}
    incidents: dict[str, Incident] = {}
    transitions: list[Transition] = []
    for step in steps:
        for alert in step.dropped:
            alerts.pop(alert.id, None)
            dropped[alert.id] = alert
        for alert in step.alerts:
            dropped.pop(alert.id, None)
            alerts[alert.id] = alert
        for incident in step.incidents:
            incidents[incident.id] = incident
        transitions += step.transitions
    return Step(
        alerts=tuple(alerts.values()),
        dropped=tuple(dropped.values()),
        incidents=tuple(incidents.values()),
        transitions=tuple(transitions),
    )


def situated(step: Step, tasks: Mapping[str, TaskState]) -> Step:
    """Return the step with how each task stood, kept in the incidents that it opens. tasks: by key."""
    opened = {change.incident for change in step.transitions if change.change is Change.OPENED}
    if not opened:
        return step
    incidents = tuple(
        replace(incident, situation=_situation(tasks[incident.labels[TASK]]))
        if incident.id in opened and incident.labels.get(TASK) in tasks
        else incident
        for incident in step.incidents
    )
    return replace(step, incidents=incidents)


def _situation(state: TaskState) -> dict[str, str]:
    pods = {member.labels[POD] for member in state.expected if POD in member.labels}
    found = {
        "status": str(state.status),
        "status text": state.status_text,
        "reason": state.reason,
        "in this status since": "" if state.status_since is None else state.status_since.isoformat(),
        "attempt": str(state.attempt),
        "attempt began": "" if state.attempt_started is None else state.attempt_started.isoformat(),
        "pods expected": str(len(pods)) if pods else "",
        "restarts": "" if state.restarts is None else str(state.restarts),
    }
    return {name: value for name, value in found.items() if value}


def subject_of(incident: Incident) -> str:
    """Return what an incident is about: the task key of a state, the labelset of an event.

    A rule can be edited from a state into an event, so the two never share a subject.
    """
    if incident.notice is not None:
        return incident.params.get(SUBJECT, "")
    if incident.event:
        return event_subject(incident.labels)
    return incident.labels.get(TASK, "")


def event_subject(labels: Labels) -> str:
    """Return the subject of an event's incident: every identity label counts."""
    return f"event {labels!r}"


def key_of(incident: Incident) -> IncidentKey:
    """Return the key under which an open incident stands in the book."""
    return incident.rule, subject_of(incident)


def task_labels(labels: Labels) -> Labels:
    """Return the part of a labelset that names the task."""
    return labels.only(_IDENTITY)


def new_incident(rule: Rule, labels: Labels, subject: str, at: datetime, since: datetime) -> Incident:
    """Open an incident of a rule, with a copy of all that telling it needs."""
    return Incident(
        id=incident_id(rule.name, subject, at),
        rule=rule.name,
        labels=labels,
        severity=rule.severity,
        event=rule.is_event,
        opened_at=at,
        since=min(since, at),
        updated_at=at,
        description=rule.description,
        annotations=rule.annotations,
        rule_labels=rule.labels,
        notify=rule.notify,
        repeat=rule.repeat,
    )


def worse(one: Severity, other: Severity) -> Severity:
    """Return the more urgent of two severities."""
    return one if one.rank >= other.rank else other


def transition(incident: Incident, change: Change) -> Transition:
    """Return the intent to tell that an incident has just changed."""
    return Transition(incident=incident.id, change=change, at=incident.updated_at)


def closed(incident: Incident, reason: CloseReason, at: datetime, note: str = "") -> Incident:
    """Return the incident closed; members that are still in it leave for the same reason."""
    return replace(
        incident,
        closed_at=at,
        updated_at=at,
        close_reason=reason,
        close_note=note,
        members=tuple(
            replace(member, until=at, reason=reason) if member.until is None else member
            for member in incident.members
        ),
    )


def closed_alike(incident: Incident, at: datetime, note: str = "") -> Incident:
    """Close an incident whose members have all left: *recovered* only if every one of them did."""
    left = [member for member in incident.members if member.reason is not None]
    doubtful = [member for member in left if member.reason is not CloseReason.RECOVERED]
    if not doubtful:
        return closed(incident, CloseReason.RECOVERED, at, note)
    last = max(doubtful, key=lambda member: member.until or at)
    if len(doubtful) < len(left):
        note = f"{len(left) - len(doubtful)} of {len(left)} recovered"
    return closed(incident, last.reason or CloseReason.DATA_GONE, at, note)


def with_members(incident: Incident, changed: Mapping[Labels, IncidentMember]) -> Incident:
    """Return the incident with members added or renewed, in order of joining."""
    members = {member.labels: member for member in incident.members}
    members.update(changed)
    return replace(incident, members=tuple(members.values()))
