"""Plays a scenario: the live engine on a virtual clock, a scripted source and scripted channels.

Owns the lives of the engine (starts, restarts, crashes) and the timing of events: an event at T+8m
happens just after the slot of T+8m.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TypeVar

from watchdog.config.scenario import Scenario, ScenarioEvent
from watchdog.core.notifications import ChannelLimits, LimitUnit, Message
from watchdog.core.protocols import PatternEngine
from watchdog.core.rendering import TemplateCompiler
from watchdog.core.ruleset import ChannelSpec, Ruleset
from watchdog.engine.engine import Engine, Parts
from watchdog.engine.looks import renderer
from watchdog.ports import Store
from watchdog.replay.virtual import VirtualWorld
from watchdog.replay.world import FragileStore, ScriptedChannel, Sent, SimulatedCrashError, Trap
from watchdog.sources.scripted import ScriptedSource

T = TypeVar("T")

JUST_AFTER = timedelta(milliseconds=1)
ROOM = 6000  # bytes a scripted channel takes unless the scenario says otherwise


async def _inline(call: Callable[[], T]) -> T:
    return call()


@dataclass(slots=True, kw_only=True)
class Play:
    """One performance of one scenario. `open_store` opens the same state anew at each call."""

    scenario: Scenario
    ruleset: Ruleset
    rulesets: Mapping[int, Ruleset]  # by number of the event that brings other rules
    open_store: Callable[[], Store]
    patterns: PatternEngine
    compile_template: TemplateCompiler | None
    sent: list[Sent] = field(default_factory=list)
    slots: int = 0  # evaluated, over all lives
    engine: Engine | None = None
    on_life: Callable[[Engine], None] | None = None
    _world: VirtualWorld = field(init=False)
    _trap: Trap = field(default_factory=Trap)
    _full_until: timedelta = timedelta.min
    _used: dict[str, dict[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        scenario = self.scenario
        self._world = VirtualWorld(start=scenario.start + scenario.begin)

    def run(self) -> tuple[Sent, ...]:
        """Play it to the end; returns every accepted message in order."""
        self._world.run(self._main)
        return tuple(self.sent)

    async def _main(self) -> None:
        for event in self.scenario.events:
            if event.stall:
                self._world.stall(event.at - self.scenario.begin + JUST_AFTER, event.stall)
        events = sorted((e for e in self.scenario.events if not e.stall), key=lambda event: event.at)
        life = self._live(self.ruleset)
        for event in events:
            life = await self._until(event.at + JUST_AFTER, life)
            life = await self._befall(event, life)
        life = await self._until(self.scenario.length + JUST_AFTER, life)
        await self._end(life)
        self.slots += self.engine.slots if self.engine is not None else 0

    def offset(self) -> timedelta:
        """Now, relative to T+0."""
        return self._world.monotonic() + self._world.suspended + self.scenario.begin

    async def _until(self, at: timedelta, life: "asyncio.Task[None]") -> "asyncio.Task[None]":
        """Let time pass; a life that dies on the way is followed by the next one."""
        while self.offset() < at:
            timer = asyncio.ensure_future(self._world.sleep(at - self.offset()))
            await asyncio.wait([timer, life], return_when=asyncio.FIRST_COMPLETED)
            if life.done():
                life = await self._after_death(life)
            timer.cancel()
        return life

    async def _befall(self, event: ScenarioEvent, life: "asyncio.Task[None]") -> "asyncio.Task[None]":
        self._world.jump(event.jump)
        self._world.suspend(event.suspend)
        if event.disk_full:
            self._full_until = self.offset() + event.disk_full
        if event.crash is not None:
            self._trap.armed, self._trap.down = event.crash, event.down
        number = self.scenario.events.index(event)
        if event.reload is not None and self.engine is not None:
            await self._reload(self.engine, self.rulesets[number])
        if event.restart is None and event.kill is None:
            return life
        await self._end(life, gently=event.restart is not None)
        await self._world.sleep(event.restart or event.kill or timedelta())
        return self._live(self.rulesets.get(number, self._ruleset_now()))

    async def _reload(self, engine: Engine, ruleset: Ruleset) -> None:
        """Put other rules in force; the sources and channels of a scenario stay the same."""
        changed = replace(engine.parts, ruleset=ruleset, render=renderer(ruleset, self.compile_template))
        await engine.adopt(changed)

    def _ruleset_now(self) -> Ruleset:
        assert self.engine is not None
        return self.engine.parts.ruleset

    async def _after_death(self, life: "asyncio.Task[None]") -> "asyncio.Task[None]":
        """The life ended by itself: only a simulated crash may do that."""
        try:
            await life
        except* SimulatedCrashError:
            pass
        await self._buried()
        await self._world.sleep(self._trap.down)
        return self._live(self._ruleset_now())

    async def _end(self, life: "asyncio.Task[None]", *, gently: bool = True) -> None:
        life.cancel()
        await asyncio.gather(life, return_exceptions=True)
        if gently and self.engine is not None:
            await self.engine.stop()
        await self._buried()

    async def _buried(self) -> None:
        """What a dead process had in flight ends with it."""
        if self.engine is not None:
            await self.engine.relay.drain(timedelta())

    def _live(self, ruleset: Ruleset) -> "asyncio.Task[None]":
        """Start a life of the engine."""
        self.slots += self.engine.slots if self.engine is not None else 0
        world = self._world
        script = self.scenario.script
        store = FragileStore(
            inner=self.open_store(), trap=self._trap, full=lambda: self.offset() < self._full_until
        )
        self.engine = Engine(
            parts=Parts(
                ruleset=ruleset,
                sources={script.source: ScriptedSource(script, world, world.true_now)},
                notifiers={spec.name: self._channel(spec) for spec in ruleset.channels},
                store=store,
                clock=world,
                patterns=self.patterns,
                render=renderer(ruleset, self.compile_template),
                run_blocking=_inline,
                jitter=lambda: 0.5,
            )
        )
        if self.on_life is not None:
            self.on_life(self.engine)
        return asyncio.ensure_future(self.engine.run())

    def _channel(self, spec: ChannelSpec) -> ScriptedChannel:
        return ScriptedChannel(
            name=spec.name,
            limits=ChannelLimits(body=spec.max_bytes or ROOM, title=200, unit=LimitUnit.BYTES),
            answers=tuple(answer for answer in self.scenario.answers if answer.channel == spec.name),
            clock=self._world,
            offset=self.offset,
            trap=self._trap,
            record=self._record,
            used=self._used.setdefault(spec.name, {}),
        )

    def _record(self, channel: str, message: Message) -> None:
        assert self.engine is not None
        incident = self.engine.world.incidents.get(message.incident)
        self.sent.append(
            Sent(
                at=self.offset(),
                channel=channel,
                kind=message.kind,
                rule=incident.rule if incident else "",
                task=incident.labels.get("task_name", "") if incident else "",
                incident=message.incident,
                title=message.title,
                body=message.body,
            )
        )
