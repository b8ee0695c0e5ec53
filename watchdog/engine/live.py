"""What the running daemon shows of itself: `status`, and what it knows better than its state file.

Reads an engine between two slots, without changing anything.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from watchdog.core.alerts import Alert, Phase
from watchdog.core.backoff import ChannelHealth
from watchdog.core.conditions.kinds import Capability
from watchdog.core.health import Standing
from watchdog.core.labels import TASK
from watchdog.core.outcomes import Outcome
from watchdog.core.rules import Rule
from watchdog.core.ruleset import ChannelSpec, SourceSpec
from watchdog.core.vitals import judge
from watchdog.engine.engine import Engine
from watchdog.engine.protocol import MAX_ROWS
from watchdog.engine.records import Context, capability_view, left_out, outbox_view
from watchdog.engine.relay import LONG_AGO
from watchdog.engine.reloading import Reloader
from watchdog.engine.showing import (
    alert_view,
    count,
    incident_view,
    looks_at,
    seconds,
    task_view,
    worst_first,
)
from watchdog.engine.views import (
    CapabilityView,
    ChannelView,
    DaemonView,
    RuleView,
    SourceView,
    StatusView,
)
from watchdog.engine.vitals import vitals_of

_UNJUDGED = frozenset({Outcome.ERROR, Outcome.THIN})


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """What the running process is called."""

    version: str
    pid: int
    started: datetime


def context_of(engine: Engine) -> Context:
    """Return what the daemon knows better than its state file, as of now."""
    world = engine.world
    return Context(
        live=True,
        at=engine.parts.clock.now(),
        timezone=world.ruleset.timezone,
        incidents=dict(world.incidents),
        tasks=dict(world.states),
        alerts=engine.runner.alerts(),
        rows=dict(engine.relay.rows),
        channels=world.ruleset.channels,
        watched=engine.moment().watched,
    )


def status_of(engine: Engine, reloader: Reloader, process: Process) -> StatusView:
    """Return how everything stands."""
    world, context = engine.world, context_of(engine)
    rules = {rule.name: rule for rule in world.ruleset.rules}
    alerts = worst_first(context.alerts)
    by_task: dict[str, list[Alert]] = {}
    for alert in alerts:
        by_task.setdefault(alert.labels.get(TASK, ""), []).append(alert)
    opened = sorted(world.book.open.values(), key=lambda one: (one.opened_at, one.id), reverse=True)
    states = list(world.states.values())
    voice = context.voice
    return StatusView(
        live=True,
        at=context.at,
        timezone=context.timezone,
        daemon=_daemon(engine, reloader, process),
        tasks=tuple(task_view(state, by_task.get(state.task.key, ())) for state in states[:MAX_ROWS]),
        rules=tuple(_rule(engine, rule) for rule in world.ruleset.rules[:MAX_ROWS]),
        alerts=tuple(alert_view(alert, rules.get(alert.rule)) for alert in alerts[:MAX_ROWS]),
        incidents=tuple(incident_view(incident, voice) for incident in opened[:MAX_ROWS]),
        sources=tuple(_source(engine, spec) for spec in world.ruleset.sources),
        channels=tuple(_channel(engine, spec) for spec in world.ruleset.channels),
        outbox=outbox_view(tuple(engine.relay.rows.values()), context.watched, _given_up(engine)),
        more=left_out(tasks=states, rules=world.ruleset.rules, alerts=alerts, incidents=opened),
    )


def _daemon(engine: Engine, reloader: Reloader, process: Process) -> DaemonView:
    verdict = judge(vitals_of(engine))
    last = engine.schedule.last
    return DaemonView(
        version=process.version,
        pid=process.pid,
        started=process.started,
        healthy=verdict.healthy,
        remarks=(*verdict.reasons, *verdict.remarks),
        rule_file=reloader.file,
        rules_since=reloader.since,
        rules_rejected=tuple(map(str, reloader.rejected[:MAX_ROWS])),
        rules_not_kept=reloader.not_kept,
        auto_reload=engine.world.ruleset.auto_reload,
        interval_s=seconds(engine.schedule.interval),
        slots=engine.slots,
        missed=engine.missed,
        last_slot=None if last is None else last.at,
        not_stored=engine.journal.error,
    )


def _given_up(engine: Engine) -> int:
    """How many messages were given up since the start, of incidents that are still of interest."""
    return sum(at > LONG_AGO for at in engine.relay.given_up.values())


def _rule(engine: Engine, rule: Rule) -> RuleView:
    world = engine.world
    alerts = world.book.known(rule.name).values()
    evaluation = engine.runner.evaluations.get(rule.name)
    unjudged: set[str] = set()
    if evaluation is not None:
        rows = np.flatnonzero(np.isin(evaluation.outcome[:, 0], list(_UNJUDGED)))
        unjudged = {evaluation.labels[row].get(TASK, "") for row in rows.tolist()}
    firing = count(alerts, Phase.FIRING)
    if rule.is_event:
        firing = sum(one.event and one.rule == rule.name for one in world.book.open.values())
    return RuleView(
        name=rule.name,
        kind="event" if rule.is_event else "state",
        looks_at=looks_at(rule.condition),
        severity=rule.severity,
        tasks=sum(rule.applies(state.task) for state in world.states.values()),
        firing=firing,
        pending=count(alerts, Phase.PENDING),
        unjudged=len(unjudged),
        builtin=rule.builtin,
    )


def _source(engine: Engine, spec: SourceSpec) -> SourceView:
    source = engine.world.sources[spec.name]
    return SourceView(
        name=spec.name,
        kind=spec.kind,
        poll_s=seconds(spec.poll),
        capabilities=tuple(
            _capability(engine, spec.name, capability)
            for capability in Capability
            if capability in source.capabilities
        ),
    )


def _capability(engine: Engine, source: str, capability: Capability) -> CapabilityView:
    states = [
        state
        for key, state in engine.world.health.states.items()
        if (key.source, key.capability) == (source, capability)
    ]
    if not states:
        standing = "not asked"
    elif any(state.failures for state in states):
        standing = str(Standing.FAILING)
    elif any(state.blind for state in states):
        standing = str(Standing.SETTLING)
    else:
        standing = str(Standing.GOOD)
    return capability_view(capability, states, standing)


def _channel(engine: Engine, spec: ChannelSpec) -> ChannelView:
    relay = engine.relay
    health, newest = relay.health.get(spec.name, ChannelHealth()), relay.newest.get(spec.name)
    rests = max(health.not_before - engine.moment().watched, timedelta())
    waiting = Counter(row.notification.channel for row in relay.rows.values())
    answer = ""
    if newest is not None:
        result = newest[1]
        answer = " ".join(dict.fromkeys(filter(None, (str(result.answer), result.code, result.detail))))
    return ChannelView(
        name=spec.name,
        service=spec.url.strip().partition("://")[0].lower(),
        min_severity=spec.min_severity,
        state=_state(health, rests, used=newest is not None),
        failures=health.failures,
        rests_s=seconds(rests),
        waiting=waiting[spec.name],
        newest_at=None if newest is None else newest[0].at,
        newest_answer=answer,
    )


def _state(health: ChannelHealth, rests: timedelta, *, used: bool) -> str:
    if health.broken:
        return "broken"
    if health.failures:
        return "failing"
    if rests:
        return "throttled"
    return "ok" if used else "unused"


def near(wanted: str, known: Iterable[str]) -> str:
    """Return the names that a mistyped one may mean, in words; "" if none is near."""
    low = wanted.lower()
    found = [name for name in known if low in name.lower() or name.lower() in low]
    return f" (did you mean {', '.join(sorted(found)[:3])}?)" if found else ""
