"""How alerts of one rule and task share an incident: it opens, grows, escalates and closes.

Takes what one slot did to the alerts (`Draft`) and says what that means for their incidents. The
evidence is asked for only when something is to be told. Knows no table of states.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from watchdog.core import carrying
from watchdog.core.alerts import Alert, Change, CloseReason, Incident, IncidentMember
from watchdog.core.evidence import of_members, with_nodes, worst
from watchdog.core.incidents import (
    Book,
    Step,
    closed_alike,
    new_incident,
    transition,
    with_members,
    worse,
)
from watchdog.core.labels import TASK, Labels
from watchdog.core.moments import Tick
from watchdog.core.outcomes import Evaluation, Evidence, Outcome
from watchdog.core.rules import Rule
from watchdog.core.tasks import TaskState

UNSEEN_NOTE = "while the watchdog was not running"
ATTEMPT_NOTE = "in another attempt"

_NOT_COVERED = frozenset({Outcome.NODATA, Outcome.THIN, Outcome.ERROR})


@dataclass(slots=True)
class Changes:
    """What one slot did to the alerts of one task. Numbers are rows of the evaluation, -1 = none."""

    fired: dict[Labels, tuple[Alert, int]] = field(default_factory=dict)
    raised: dict[Labels, tuple[Alert, int]] = field(default_factory=dict)  # to a higher severity
    left: dict[Labels, tuple[Alert, CloseReason, int]] = field(default_factory=dict)


@dataclass(slots=True)
class Draft:
    """What one slot did to the alerts of one rule, by task key where incidents are concerned."""

    alerts: dict[Labels, Alert] = field(default_factory=dict)
    dropped: list[Alert] = field(default_factory=list)
    tasks: dict[str, Changes] = field(default_factory=dict)

    def of(self, labels: Labels) -> Changes:
        """Return the changes of the task that a labelset belongs to."""
        return self.tasks.setdefault(labels.get(TASK, ""), Changes())


@dataclass(frozen=True, slots=True)
class Verdicts:
    """One column of a rule's evaluation, and its slot.

    tasks: the watched ones by key; a task that is not in it is no longer watched.
    last: what the slot before found, if that is still known: a carried alert keeps its value.
    """

    rule: Rule
    evaluation: Evaluation
    column: int
    tick: Tick
    tasks: Mapping[str, TaskState] = field(default_factory=dict)
    last: Evaluation | None = None

    @property
    def at(self) -> datetime:
        """The slot's wall-clock time."""
        return self.tick.at

    def current(self, incident: Incident, alerts: Iterable[Alert]) -> tuple[Alert, ...]:
        """Return alerts of one incident as this slot leaves them. Those that are carried are TRUE in it."""
        rows = self.evaluation.of_task(incident.labels.get(TASK, ""))
        return carrying.as_of(alerts, carrying.values(self.evaluation, self.column, rows), self.tick.moment)

    def explain(self, incident: Incident, rows: Sequence[tuple[int, float | None]]) -> Evidence | None:
        """Explain the worst of some rows; with `by`, the members are the incident's own."""
        rows = [row for row in rows if row[0] >= 0]
        if not rows:
            return None
        evidence = self.evaluation.explain(rows[0][0], self.column)
        g = worst(rows, above=evidence.above)
        if g != rows[0][0]:
            evidence = self.evaluation.explain(g, self.column)
        if all(member.labels == incident.labels for member in incident.active):
            return evidence
        task = incident.labels.get(TASK, "")
        mine = self.evaluation.of_task(task)
        codes = self.evaluation.outcome[:, self.column]
        covered = sum(Outcome(int(codes[g])) not in _NOT_COVERED for g in mine)
        found = of_members(evidence, incident.active, expected=len(mine), covered=covered)
        return with_nodes(found, self.tasks[task].nodes) if task in self.tasks else found


def settle(verdicts: Verdicts, draft: Draft, book: Book) -> Step:
    """Turn a draft into a step: alerts join their incidents, and what is to be told is noted.

    The verdicts must know every task with a newly firing alert.
    """
    tasks = verdicts.tasks
    alerts = dict(draft.alerts)
    told: list[tuple[Incident, Change | None]] = []
    known = book.known(verdicts.rule.name)
    for key, changes in draft.tasks.items():
        before = book.open.get((verdicts.rule.name, key))
        if before is None and not changes.fired:
            continue
        first = before or _opened(verdicts, changes, tasks[key])
        incident = _with(first, changes, _values(verdicts, first, alerts, known), verdicts.at)
        told.append(_told(verdicts, changes, before, incident, tasks.get(key)))
        for labels, (alert, _) in changes.fired.items():
            alerts[labels] = replace(alert, incident=incident.id)
    return Step(
        alerts=tuple(alerts.values()),
        dropped=tuple(draft.dropped),
        incidents=tuple(incident for incident, _ in told),
        transitions=tuple(transition(incident, change) for incident, change in told if change is not None),
    )


def as_of_now(verdicts: Verdicts, incident: Incident, known: Mapping[Labels, Alert]) -> Incident:
    """Return an open incident with what this slot shows of it, for a message long after it opened.

    known: the rule's alerts. If none of the incident's own can be judged now, its evidence says so.
    """
    alerts = [known[member.labels] for member in incident.active if member.labels in known]
    alerts = list(verdicts.current(incident, alerts))
    values = {alert.labels: alert.value for alert in alerts}
    members = tuple(replace(one, value=values.get(one.labels, one.value)) for one in incident.members)
    incident = replace(incident, members=members)
    own = verdicts.evaluation.of_task(incident.labels.get(TASK, ""))
    place = {verdicts.evaluation.labels[g]: g for g in own}
    judged = [alert for alert in alerts if alert.judged == verdicts.at and alert.labels in place]
    evidence = verdicts.explain(incident, [(place[alert.labels], alert.value) for alert in judged])
    return replace(incident, latest=_as_last_judged(incident, alerts) if evidence is None else evidence)


def _as_last_judged(incident: Incident, alerts: Sequence[Alert]) -> Evidence:
    """Return what was known when there was data last: the values of the alerts, and no more."""
    last = max((alert.judged for alert in alerts if alert.judged is not None), default=incident.updated_at)
    values = list(enumerate(alert.value for alert in alerts))
    value = alerts[worst(values, above=incident.latest.above)].value if values else incident.latest.value
    several = any(member.labels != incident.labels for member in incident.active)
    return replace(
        incident.latest,
        value=value,
        members=(),
        affected=len(incident.active) if several else 0,
        spark=(),
        detail=f"not judged since {last.isoformat()}",
    )


def _opened(verdicts: Verdicts, changes: Changes, state: TaskState) -> Incident:
    alerts = [alert for alert, _ in changes.fired.values()]
    since = min(alert.since for alert in alerts)
    task = state.task
    incident = new_incident(verdicts.rule, task.identity, task.key, verdicts.at, since)
    return replace(incident, severity=alerts[0].severity)


def _values(
    verdicts: Verdicts, incident: Incident, changed: Mapping[Labels, Alert], known: Mapping[Labels, Alert]
) -> dict[Labels, float | None]:
    """Return the newest value of each member that stays. changed: alerts as of this slot; known: before."""
    own = [changed.get(one.labels) or known.get(one.labels) for one in incident.active]
    current = verdicts.current(incident, [alert for alert in own if alert is not None])
    return {alert.labels: alert.value for alert in current}


def _with(
    incident: Incident, changes: Changes, values: Mapping[Labels, float | None], at: datetime
) -> Incident:
    """Return the incident with this slot's members; values of those that stay are renewed."""
    members = {
        member.labels: replace(member, value=values[member.labels])
        for member in incident.active
        if member.labels in values
    }
    for labels, (alert, reason, _) in changes.left.items():
        since = members[labels].since if labels in members else alert.since
        members[labels] = IncidentMember(
            labels=labels, since=since, until=at, value=alert.value, reason=reason
        )
    severity = incident.severity
    for labels, (alert, _) in changes.fired.items():
        members[labels] = IncidentMember(labels=labels, since=alert.since, value=alert.value)
        severity = worse(severity, alert.severity)
    for alert, _ in changes.raised.values():
        severity = worse(severity, alert.severity)
    return replace(with_members(incident, members), severity=severity, updated_at=at)


def _told(
    verdicts: Verdicts,
    changes: Changes,
    before: Incident | None,
    incident: Incident,
    state: TaskState | None,
) -> tuple[Incident, Change | None]:
    """Return the incident with fresh evidence, and the one change that is to be told of it."""
    if not incident.active:
        return _ended(verdicts, changes, incident, state), Change.CLOSED
    change = _change(changes, before, incident)
    if change is None:
        return incident, None
    rows = [(g, alert.value) for alert, g in (*changes.fired.values(), *changes.raised.values())]
    evidence = verdicts.explain(incident, rows)
    if evidence is not None:
        first = evidence if before is None else incident.first
        incident = replace(incident, first=first, latest=evidence)
    return incident, change


def _change(changes: Changes, before: Incident | None, incident: Incident) -> Change | None:
    if before is None:
        return Change.OPENED
    if incident.severity.rank > before.severity.rank:
        return Change.ESCALATED
    # One that left and is back was told of already, and its leaving never was: no news.
    return Change.GREW if len(incident.members) > len(before.members) else None


def _in_another_attempt(incident: Incident, state: TaskState | None) -> bool:
    before = incident.situation.get("attempt")
    return state is not None and before is not None and before != str(state.attempt)


def _ended(verdicts: Verdicts, changes: Changes, incident: Incident, state: TaskState | None) -> Incident:
    last = list(changes.left.values())
    recovered = [(g, alert.value) for alert, reason, g in last if reason is CloseReason.RECOVERED]
    evidence = verdicts.explain(incident, recovered)
    if evidence is not None:
        incident = replace(incident, latest=evidence)
    note = ""
    if len(recovered) == len(last) and all(alert.unseen for alert, _, _ in last):
        note = UNSEEN_NOTE
    elif len(recovered) == len(last) and _in_another_attempt(incident, state):
        note = ATTEMPT_NOTE
    elif state is not None and any(reason is CloseReason.TASK_ENDED for _, reason, _ in last):
        note = str(state.status)
    return closed_alike(incident, verdicts.at, note)
