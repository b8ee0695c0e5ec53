"""The heartbeat: tells somebody outside, and once a day the channels, that the watching is of use.

Called after each slot and never waited for: an outside that hangs delays nothing. How a URL is
called is handed in; when, and with which word, is `core.heartbeats`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from zoneinfo import ZoneInfo

from watchdog.core.alerts import Notice, NoticeKind
from watchdog.core.heartbeats import Beat, Rhythm, beat_url, due, heard, note_day, seen
from watchdog.core.moments import Tick
from watchdog.core.rules import Severity
from watchdog.core.ruleset import HeartbeatSpec
from watchdog.core.vitals import Verdict, Vitals, judge, summary
from watchdog.engine.engine import Engine
from watchdog.engine.vitals import vitals_of

log = logging.getLogger(__name__)

UNHEARD_AFTER = 3  # failed calls in a row
FACT = "daily note"  # in the world's memory: the day it was last said

Call = Callable[[str, str], Awaitable[str]]
"""Sends a body to a URL and returns "" if it was heard, else why not. Has its own time-out."""


@dataclass(slots=True, kw_only=True)
class Heartbeat:
    """One life's heartbeat. Reads the section `heartbeat` anew at each slot."""

    call: Call
    rhythm: Rhythm = field(default_factory=Rhythm)
    failures: int = 0  # calls in a row that were not heard
    _calling: asyncio.Task[None] | None = None

    def start(self, engine: Engine) -> None:
        """Say outside that a life begins."""
        spec = engine.world.ruleset.heartbeat
        if spec is not None and spec.url:
            self._call(engine, spec, Beat.START, "")

    def after_slot(self, engine: Engine, tick: Tick) -> None:
        """Say what is due after a slot."""
        spec = engine.world.ruleset.heartbeat
        if spec is None:
            return
        vitals = vitals_of(engine)
        verdict = judge(vitals)
        if spec.url:
            self._beat(engine, spec, vitals, verdict)
        _daily_note(engine, spec, tick, vitals, verdict)

    async def close(self) -> None:
        """Give up a call in progress."""
        if self._calling is not None:
            self._calling.cancel()
            await asyncio.gather(self._calling, return_exceptions=True)

    def _beat(self, engine: Engine, spec: HeartbeatSpec, vitals: Vitals, verdict: Verdict) -> None:
        now = engine.parts.clock.monotonic()
        self.rhythm = seen(self.rhythm, now, healthy=verdict.healthy)
        beat = due(self.rhythm, spec.every, engine.schedule.interval / 2, now)
        if beat is not None and self._calling is None:
            said = "\n".join((*verdict.reasons, *verdict.remarks, summary(vitals)))
            self._call(engine, spec, beat, said)

    def _call(self, engine: Engine, spec: HeartbeatSpec, beat: Beat, said: str) -> None:
        self._calling = asyncio.ensure_future(self._heard(engine, spec.url, beat, said))

    async def _heard(self, engine: Engine, url: str, beat: Beat, said: str) -> None:
        began = engine.parts.clock.monotonic()
        try:
            trouble = await self.call(beat_url(url, beat), said)
        finally:
            self._calling = None
        if trouble:
            self._unheard(engine, trouble)
            return
        self.rhythm = heard(self.rhythm, beat, began)
        if self.failures:
            log.info("the heartbeat is heard again")
            engine.notify(self._notice("", active=False))
        self.failures = 0

    def _unheard(self, engine: Engine, trouble: str) -> None:
        self.failures += 1
        if self.failures == 1:
            log.warning("the heartbeat was not heard reason=%s", trouble)
        if self.failures == UNHEARD_AFTER:
            engine.notify(self._notice(trouble))

    def _notice(self, trouble: str, *, active: bool = True) -> Notice:
        return Notice(
            kind=NoticeKind.HEARTBEAT_UNHEARD,
            subject="heartbeat",
            params={"failures": str(self.failures), "answer": trouble} if active else {},
            active=active,
        )


def _daily_note(engine: Engine, spec: HeartbeatSpec, tick: Tick, vitals: Vitals, verdict: Verdict) -> None:
    """Have the next slot say that the watching goes on, if it is time to."""
    if spec.daily_note is None:
        return
    world = engine.world
    local = tick.at.astimezone(ZoneInfo(world.ruleset.timezone))
    day = note_day(local, spec.daily_note, world.memory.get(FACT, ""))
    if day is None:
        return
    world.remember(FACT, day.isoformat())
    params = {"tasks": str(vitals.tasks), "rules": str(vitals.rules), "firing": str(vitals.firing)}
    but = "; ".join((*verdict.reasons, *verdict.remarks))
    engine.notify(
        Notice(
            kind=NoticeKind.STILL_WATCHING,
            subject=day.isoformat(),
            severity=Severity.INFO,
            params={**params, **({"but": but} if but else {})},
            lasting=False,
        )
    )
