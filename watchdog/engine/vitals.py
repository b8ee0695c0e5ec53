"""Collects the facts behind `core.vitals` from a running engine, without changing anything."""

from datetime import datetime, timedelta

from watchdog.core.health import ProbeState
from watchdog.core.notifications import Delivery
from watchdog.core.vitals import Vitals
from watchdog.engine.engine import Engine

LATELY = timedelta(minutes=5)  # an answer counts for so long, or for …
LATELY_POLLS = 5  # … so many polls


def vitals_of(engine: Engine) -> Vitals:
    """Return what the engine knows of itself right now."""
    clock, world, relay = engine.parts.clock, engine.world, engine.relay
    now = clock.now()
    asked = _asked(engine)
    channels = engine.parts.notifiers
    broken = tuple(name for name in channels if name in relay.health and relay.health[name].broken)
    watched = engine.moment().watched
    heard = [row for row in relay.rows.values() if _channel(row) not in broken]
    incidents = world.book.open.values()
    return Vitals(
        interval=engine.schedule.interval,
        slots=engine.slots,
        since_slot=engine.pulse.since_slot(clock.monotonic()),
        asked=len(asked),
        answered=sum(_answered(engine, state, now) for state in asked),
        not_stored=engine.journal.error,
        waiting=len(relay.rows),
        oldest=max((watched - row.created for row in heard), default=timedelta()),
        channels=tuple(channels),
        broken=broken,
        tasks=len(world.states),
        rules=len(world.ruleset.rules),
        firing=sum(not incident.event and incident.notice is None for incident in incidents),
        blind=_blind(engine),
    )


def _channel(row: Delivery) -> str:
    return row.notification.channel


def _asked(engine: Engine) -> list[ProbeState]:
    """The questions that say whether anything can be seen: those about tasks that go on, if there are any."""
    alive = {key for key, state in engine.world.states.items() if not state.status.ended}
    found = [state for state in engine.world.health.states.values() if state.asked is not None]
    about_tasks = [state for state in found if state.key.task in alive]
    return about_tasks or [state for state in found if not state.key.task] or found


def _answered(engine: Engine, state: ProbeState, now: datetime) -> bool:
    limit = max(LATELY, LATELY_POLLS * engine.world.poll(state.key.source))
    return not state.failures and state.asked is not None and now - state.asked <= limit


def _blind(engine: Engine) -> tuple[str, ...]:
    states = engine.world.health.states.values()
    found = {f"{state.key.capability} of {state.key.source}" for state in states if state.blind}
    return tuple(sorted(found))
