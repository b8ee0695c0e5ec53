"""What stands beside a running engine: the service manager's ear, the heartbeat, the pages.

Puts them together and keeps them going through reloads; none of them can delay a slot. Decides
nothing about health: that is `core.vitals`.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Self

from watchdog import __version__
from watchdog.core.moments import Tick
from watchdog.core.ruleset import HttpSpec
from watchdog.core.vitals import summary
from watchdog.engine.engine import Engine
from watchdog.engine.heartbeat import Call, Heartbeat
from watchdog.engine.supervisor import Supervisor
from watchdog.engine.telemetry import telemetry_of
from watchdog.engine.vitals import vitals_of
from watchdog.web.pages import Pages
from watchdog.web.server import Server

log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class Service:
    """Everything beside one engine."""

    engine: Engine
    supervisor: Supervisor
    heartbeat: Heartbeat
    server: Server
    _listening: HttpSpec | None = None
    _refused: HttpSpec | None = None  # said already that it cannot be had
    _slot: asyncio.Event = field(default_factory=asyncio.Event)

    @classmethod
    def beside(cls, engine: Engine, call: Call, environ: Mapping[str, str], pid: int) -> Self:
        """Build it, and let it hear of each slot."""
        clock = engine.parts.clock
        pages = Pages(
            vitals=partial(vitals_of, engine),
            telemetry=partial(telemetry_of, engine),
            clock=clock,
            version=__version__,
        )
        service = cls(
            engine=engine,
            supervisor=Supervisor.of(environ, pid, clock),
            heartbeat=Heartbeat(call=call),
            server=Server(pages),
        )
        engine.on_slot = service.after_slot
        return service

    def after_slot(self, engine: Engine, tick: Tick) -> None:
        """Hear that a slot has ended."""
        if not self.supervisor.ready:
            log.info("watching: %s", summary(vitals_of(engine)))
        self.supervisor.after_slot(engine, tick)
        self.heartbeat.after_slot(engine, tick)
        self._slot.set()

    async def run(self) -> None:
        """Serve beside the engine. Ends only by cancellation."""
        self.supervisor.starting()
        self.heartbeat.start(self.engine)
        try:
            async with asyncio.TaskGroup() as loops:
                loops.create_task(self.supervisor.run(self.engine), name="supervisor")
                loops.create_task(self._serve(), name="pages")
        finally:
            await asyncio.gather(self.heartbeat.close(), self.server.close())

    async def _serve(self) -> None:
        """Listen where the rules in force say; look after each slot whether that has changed."""
        while True:
            self._slot.clear()
            spec = self.engine.world.ruleset.http
            if spec != self._listening:
                await self._listen(spec)
            await self._slot.wait()

    async def _listen(self, spec: HttpSpec | None) -> None:
        await self.server.close()
        self._listening = None
        if spec is None:
            return
        try:
            await self.server.start(spec)
        except OSError as error:
            if spec != self._refused:
                log.error("cannot serve pages, trying again address=%s reason=%s", spec, error.strerror)
            self._refused = spec
            return
        self._listening, self._refused = spec, None
        log.info("serving pages address=%s", spec)
