"""What the state file tells when no daemon is running: everything as it was stored last, marked as such.

Functions of a `StateReader`, for the reading verbs. Changes nothing.
"""

from collections.abc import Iterable, Sequence

from watchdog.core import carrying
from watchdog.core.alerts import Alert, Incident
from watchdog.core.labels import TASK
from watchdog.engine.protocol import MAX_ROWS, ErrorCode, Refusal
from watchdog.engine.records import (
    Context,
    Filter,
    capability_view,
    history,
    left_out,
    outbox_view,
    show,
    why,
)
from watchdog.engine.showing import (
    ZONE_FACT,
    alert_view,
    beyond_task,
    incident_view,
    seconds,
    task_name,
    task_view,
    worst_first,
)
from watchdog.engine.views import (
    ChannelView,
    HistoryView,
    IncidentView,
    ShowView,
    SourceView,
    StatusView,
    WhyView,
)
from watchdog.engine.views_asked import ExplainTaskView, ExplainView, LabelsetView
from watchdog.ports import StateReader, Stored


def stored_context(stored: Stored) -> Context:
    """Return the context of a daemon that is not running. Times are in the zone that its rules had last."""
    return Context(
        at=None if stored.moment is None else stored.moment.at,
        timezone=stored.memory.get(ZONE_FACT, "UTC"),
        tasks={state.task.key: state for state in stored.tasks},
        alerts=stored_alerts(stored),
    )


def stored_alerts(stored: Stored) -> tuple[Alert, ...]:
    """Return every alert as the last slot left it; values may be some minutes older."""
    if stored.moment is None:
        return stored.alerts
    return carrying.as_of(stored.alerts, {}, stored.moment)


def stored_history(reader: StateReader, wanted: Filter) -> HistoryView:
    """`history` of a daemon that is not running."""
    return history(reader, stored_context(reader.load()), wanted)


def stored_show(reader: StateReader, beginning: str) -> ShowView:
    """`show` of a daemon that is not running."""
    return show(reader, stored_context(reader.load()), beginning)


def stored_why(reader: StateReader, beginning: str) -> WhyView:
    """`why` of a daemon that is not running."""
    return why(reader, stored_context(reader.load()), beginning)


def stored_status(reader: StateReader) -> StatusView:
    """Return how everything stood when the daemon last stored it."""
    stored = reader.load()
    context = stored_context(stored)
    incidents = [incident for incident in stored.incidents if incident.open]
    alerts = worst_first(context.alerts)
    by_task: dict[str, list[Alert]] = {}
    for alert in alerts:
        by_task.setdefault(alert.labels.get(TASK, ""), []).append(alert)
    tasks = [task_view(state, by_task.get(state.task.key, ())) for state in stored.tasks]
    voice = context.voice
    shown: list[IncidentView] = [incident_view(incident, voice) for incident in incidents]
    return StatusView(
        live=False,
        at=context.at,
        timezone=context.timezone,
        daemon=None,
        tasks=tuple(tasks[:MAX_ROWS]),
        rules=(),
        alerts=tuple(alert_view(alert, None) for alert in alerts[:MAX_ROWS]),
        incidents=tuple(shown[:MAX_ROWS]),
        sources=tuple(_stored_sources(stored)),
        channels=tuple(_stored_channels(stored)),
        outbox=outbox_view(stored.outbox, None, len(reader.undelivered(limit=MAX_ROWS))),
        more=left_out(tasks=tasks, alerts=alerts, incidents=shown),
    )


def stored_explain(reader: StateReader, rule: str, task: str = "") -> ExplainView:
    """Return what is stored of a rule: its alerts. What it saw is in the memory of a running daemon only.

    Raises:
        Refusal: nothing is stored of it.
    """
    stored = reader.load()
    context, by_task = stored_context(stored), dict[str, list[Alert]]()
    for alert in worst_first(context.alerts):
        key = alert.labels.get(TASK, "")
        if alert.rule == rule and (not task or task in (key, task_name(alert.labels))):
            by_task.setdefault(key, []).append(alert)
    opened = {one.labels.get(TASK, ""): one for one in stored.incidents if one.open and one.rule == rule}
    if not by_task and not opened:
        raise Refusal(ErrorCode.NOT_FOUND, f"nothing is pending or firing of a rule {rule!r}")
    keys = dict.fromkeys((*opened, *by_task))
    return ExplainView(
        live=False,
        at=context.at,
        timezone=context.timezone,
        rule=rule,
        kind="event" if any(one.event for one in opened.values()) else "state",
        looks_at="",
        severity="",
        description=next((one.description for one in opened.values()), ""),
        judged=context.at,
        tasks=tuple(_stored_task(context, key, by_task.get(key, ()), opened.get(key)) for key in keys),
        not_about=0,
    )


def _stored_task(
    context: Context, key: str, alerts: Sequence[Alert], incident: Incident | None
) -> ExplainTaskView:
    state = context.tasks.get(key)
    return ExplainTaskView(
        task=key if state is None else state.task.name,
        key=key,
        status="" if state is None else state.status,
        gate="",
        why="",
        seen=(),
        labelsets=tuple(_stored_labelset(alert) for alert in alerts[:MAX_ROWS]),
        more={},
        incident="" if incident is None else incident.id,
    )


def _stored_labelset(alert: Alert) -> LabelsetView:
    return LabelsetView(
        labels=beyond_task(alert.labels),
        outcome=alert.verdict.name,
        phase=alert.phase,
        since=alert.since,
        held_s=seconds(alert.held),
        hold_s=0.0,
        value=alert.value,
        threshold=None,
        unit="",
        affected=0,
        of=0,
        covered=0,
        said="",
        why=f"it was {alert.phase} when the daemon stopped",
        incident=alert.incident,
    )


def _stored_sources(stored: Stored) -> Iterable[SourceView]:
    """The sources of which something was stored: those that could not be read, and those of tasks."""
    names = dict.fromkeys((*(s.task.source for s in stored.tasks), *(p.key.source for p in stored.probes)))
    for name in names:
        blind = [probe for probe in stored.probes if probe.key.source == name and probe.blind]
        found = dict.fromkeys(probe.key.capability for probe in blind)
        yield SourceView(
            name=name,
            kind="",
            poll_s=None,
            capabilities=tuple(
                capability_view(capability, [p for p in blind if p.key.capability == capability], "failing")
                for capability in found
            ),
        )


def _stored_channels(stored: Stored) -> Iterable[ChannelView]:
    waiting = stored.outbox
    names = dict.fromkeys((*(e.channel for e in stored.ledger), *(r.notification.channel for r in waiting)))
    for name in names:
        own = [row for row in waiting if row.notification.channel == name]
        told = [entry for entry in stored.ledger if entry.channel == name]
        newest = max(told, key=lambda entry: entry.told_at, default=None)
        yield ChannelView(
            name=name,
            service="",
            min_severity="",
            state="unknown",
            failures=max((row.attempts for row in own), default=0),
            rests_s=0.0,
            waiting=len(own),
            newest_at=None if newest is None else newest.told_at,
            newest_answer="" if newest is None else newest.answer,
        )
