"""From core values to views: incidents, evidence, tasks, alerts, deliveries as words and plain numbers.

Serves the running daemon and the reader of its state file alike. Decides nothing.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from watchdog.core.alerts import Alert, Incident, Phase
from watchdog.core.conditions.kinds import (
    Changes,
    Condition,
    LogCount,
    LogEvent,
    Silent,
    StatusEnters,
    StatusIs,
)
from watchdog.core.durations import from_ns
from watchdog.core.incidents import SUBJECT
from watchdog.core.labels import GPU, POD, SOURCE, TASK, TASK_NAME
from watchdog.core.lifecycle import hold_of
from watchdog.core.notifications import Delivery, DeliveryState, MessageKind, Notification
from watchdog.core.outcomes import Evidence, EvidenceLine
from watchdog.core.rules import Rule
from watchdog.core.tasks import TaskState
from watchdog.core.wording.languages import wording
from watchdog.core.wording.speaking import notice_title
from watchdog.core.wording.verdicts import leading_line, verdict
from watchdog.core.wording.voice import Voice, voice_of
from watchdog.engine.views import (
    AlertView,
    AttemptView,
    DeliveryView,
    EvidenceView,
    IncidentView,
    LineView,
    MemberView,
    TaskView,
)
from watchdog.ports import AttemptRecord

ZONE_FACT = "zone"
"""Under this name the state remembers the zone of the rules' times, for when no daemon runs."""

_OF_TASK = frozenset({SOURCE, TASK, TASK_NAME})


def speaker(timezone: str, now: datetime) -> Voice:
    """Return who puts things into words: English, in a zone."""
    return voice_of(wording("en"), zone_of(timezone), now)


def zone_of(timezone: str) -> tzinfo:
    """Return a zone by its name; UTC if there is none such here."""
    try:
        return ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC


def beyond_task(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels that are not the task's own."""
    return {name: value for name, value in labels.items() if name not in _OF_TASK}


def task_name(labels: Mapping[str, str]) -> str:
    """Return what people call the task of a labelset."""
    return labels.get(TASK_NAME) or labels.get(TASK, "")


def seconds(duration: timedelta) -> float:
    """Return a duration in seconds, to the millisecond."""
    return round(duration.total_seconds(), 3)


def incident_view(incident: Incident, voice: Voice) -> IncidentView:
    """Return one incident in one row."""
    return IncidentView(
        id=incident.id,
        rule=incident.rule,
        task=task_name(incident.labels),
        severity=incident.severity,
        event=incident.event,
        notice=incident.notice or "",
        opened=incident.opened_at,
        since=incident.since,
        closed=incident.closed_at,
        reason=incident.close_reason or "",
        note=incident.close_note,
        active=len(incident.active),
        members=len(incident.members),
        count=incident.count,
        said=said(incident, voice),
    )


def said(incident: Incident, voice: Voice) -> str:
    """Put what an incident is about into one line."""
    if incident.notice is not None:
        kind = MessageKind.FIRST if incident.open else MessageKind.CLOSED
        told = Notification(channel="", kind=kind, incident=incident, decided_at=incident.updated_at)
        return notice_title(told, voice)
    evidence = incident.first
    if incident.open and not incident.event and incident.latest != Evidence():
        evidence = incident.latest
    return _evidence_said(evidence, voice)


def _evidence_said(evidence: Evidence, voice: Voice) -> str:
    return leading_line(evidence, voice) or verdict(evidence, voice) or voice.param(evidence.detail)


def evidence_view(evidence: Evidence, voice: Voice) -> EvidenceView:
    """Return evidence as plain values; log lines are masked already."""
    return EvidenceView(
        said=_evidence_said(evidence, voice),
        metric=evidence.metric,
        summary=evidence.summary,
        value=evidence.value,
        threshold=evidence.threshold,
        above=evidence.above,
        unit=evidence.unit,
        affected=evidence.affected,
        of=evidence.of,
        covered=evidence.covered,
        spark=evidence.spark,
        spark_s=seconds(evidence.spark_span),
        lines=tuple(_line(line) for line in evidence.lines),
        more_lines=evidence.more_lines,
        detail=evidence.detail,
    )


def _line(line: EvidenceLine) -> LineView:
    return LineView(
        at=moment_of(line.time_ns),
        pod=line.pod,
        text=line.text,
        matched=line.matched,
        repeated=line.repeated,
    )


def moment_of(time_ns: int) -> datetime | None:
    """Return a moment; None for one that is not known, or beyond any calendar."""
    try:
        return from_ns(time_ns) if time_ns > 0 else None
    except OverflowError:
        return None


def member_views(incident: Incident, most: int) -> tuple[MemberView, ...]:
    """Return an incident's members, those that still fire first."""
    ordered = sorted(incident.members, key=lambda member: member.until is not None)
    return tuple(
        MemberView(
            labels=beyond_task(member.labels),
            since=member.since,
            until=member.until,
            value=member.value,
            reason=member.reason or "",
        )
        for member in ordered[:most]
    )


def params_of(incident: Incident) -> dict[str, str]:
    """Return what a notice has to say, without its inner subject."""
    return {name: value for name, value in incident.params.items() if name != SUBJECT and value}


def task_view(state: TaskState, alerts: Collection[Alert]) -> TaskView:
    """Return one task. alerts: of this task."""
    pods = {member.labels[POD] for member in state.expected if POD in member.labels}
    return TaskView(
        key=state.task.key,
        name=state.task.name,
        source=state.task.source,
        id=state.task.id,
        status=state.status,
        status_text=state.status_text,
        reason=state.reason,
        status_since=state.status_since,
        attempt=state.attempt,
        attempt_started=state.attempt_started,
        pods=len(pods),
        gpus=sum(GPU in member.labels for member in state.expected),
        firing=count(alerts, Phase.FIRING),
        pending=count(alerts, Phase.PENDING),
        labels=dict(state.task.labels),
    )


def count(alerts: Iterable[Alert], phase: Phase) -> int:
    """Count the alerts in a phase."""
    return sum(alert.phase is phase for alert in alerts)


def alert_view(alert: Alert, rule: Rule | None) -> AlertView:
    """Return one alert. rule: None = it is not in force, or not known here."""
    return AlertView(
        rule=alert.rule,
        task=task_name(alert.labels),
        labels=beyond_task(alert.labels),
        phase=alert.phase,
        since=alert.since,
        held_s=seconds(alert.held),
        hold_s=None if rule is None else seconds(hold_of(rule)),
        severity=alert.severity,
        value=alert.value,
        incident=alert.incident,
    )


def worst_first(alerts: Iterable[Alert]) -> list[Alert]:
    """Return firing before pending, then by severity, rule and labels."""
    return sorted(
        alerts,
        key=lambda one: (one.phase is not Phase.FIRING, -one.severity.rank, one.rule, one.labels.pairs),
    )


def delivery_view(
    row: Delivery, attempts: Iterable[AttemptRecord], watched: timedelta | None
) -> DeliveryView:
    """Return one message with its attempts. watched: now, on that clock; None = the daemon is not running."""
    wait = None
    if watched is not None and row.state is DeliveryState.PENDING:
        wait = seconds(max(row.not_before - watched, timedelta()))
    return DeliveryView(
        id=row.id,
        kind=row.notification.kind,
        reminder=row.notification.reminder,
        decided=row.notification.decided_at,
        state=row.state,
        next_try_s=wait,
        attempts=tuple(
            AttemptView(
                number=one.number,
                at=one.at.at,
                answer=one.result.answer,
                code=one.result.code,
                detail=one.result.detail,
            )
            for one in attempts
        ),
    )


def looks_at(condition: Condition) -> str:
    """Say in a word or two what a condition is about."""
    match condition:
        case LogEvent():
            return "log lines"
        case LogCount():
            return "count of log lines"
        case Silent():
            return "a silent log"
        case StatusEnters() | StatusIs():
            return "status " + ", ".join(sorted(condition.statuses))
        case Changes():
            return f"steps of {condition.metric}"
    return f"{type(condition).__name__.lower()} {condition.metric}"
