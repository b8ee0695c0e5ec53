"""The engine: starts and stops the loops, and runs one slot after another.

Owns the order of a slot (poll, decide, T1, plan, T2) and of a start and a stop. One loop a source,
one a channel, one for slots; a slow source or a hanging channel delays nobody else.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

from watchdog.core.alerts import Notice, NoticeKind
from watchdog.core.conditions.kinds import LogMatch
from watchdog.core.durations import format_duration
from watchdog.core.literals import literals_of
from watchdog.core.moments import Moment, Tick
from watchdog.core.protocols import PatternEngine
from watchdog.core.ruleset import Ruleset
from watchdog.core.schedule import JUMP_TOLERANCE, Break, Interruption, Reading, Schedule
from watchdog.engine.collector import Collector, Wishes
from watchdog.engine.crew import Crew
from watchdog.engine.inbox import Inbox
from watchdog.engine.journal import Journal, RunBlocking
from watchdog.engine.log_reader import Literals
from watchdog.engine.pulse import Pulse
from watchdog.engine.relay import Relay, Render
from watchdog.engine.slot import SlotRunner
from watchdog.engine.upkeep import Upkeep
from watchdog.engine.world import World
from watchdog.ports import Clock, Notifier, PlanCommit, Source, Store

log = logging.getLogger(__name__)

GRACE_SHARE = 0.25  # of an interval: how long a slot waits for answers that are on their way …
GRACE_MOST = timedelta(seconds=10)  # … but never longer
NOT_WATCHING_INTERVALS = 3
PRUNE_EVERY = timedelta(hours=1)
SLOW_QUESTIONS = 3  # slots in a row with an answer slower than the poll interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What an engine is built from."""

    ruleset: Ruleset
    sources: Mapping[str, Source]
    notifiers: Mapping[str, Notifier]
    store: Store
    clock: Clock
    patterns: PatternEngine
    render: Render
    run_blocking: RunBlocking
    jitter: Callable[[], float]


@dataclass(slots=True, kw_only=True, repr=False)  # asyncio.run has what it returns spelt out: seconds
class Engine:
    """One running watchdog."""

    parts: Parts
    on_slot: Callable[["Engine", Tick], None] | None = None
    world: World = field(init=False)
    runner: SlotRunner = field(init=False)
    journal: Journal = field(init=False)
    relay: Relay = field(init=False)
    crew: Crew = field(init=False)
    schedule: Schedule = field(init=False)
    pulse: Pulse = field(init=False)
    upkeep: Upkeep = field(init=False)
    slots: int = 0
    missed: int = 0
    _notices: list[Notice] = field(default_factory=list)
    _slow_for: dict[str, int] = field(default_factory=dict)
    _pruned: timedelta | None = None
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)  # one slot, or one change of rules, at a time
    _repaced: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        parts, inbox = self.parts, Inbox()
        self.pulse = Pulse(started=parts.clock.monotonic())
        self.schedule = Schedule(interval=parts.ruleset.interval)
        self.world = World(ruleset=parts.ruleset, sources=parts.sources, inbox=inbox, literals=_required)
        self.runner = SlotRunner(world=self.world, patterns=parts.patterns, monotonic=parts.clock.monotonic)
        self.upkeep = Upkeep(world=self.world, runner=self.runner)
        self.journal = Journal(store=parts.store, run=parts.run_blocking)
        self.relay = Relay(
            journal=self.journal,
            notifiers=parts.notifiers,
            render=parts.render,
            clock=parts.clock,
            moment=self.moment,
            jitter=parts.jitter,
        )
        self.crew = Crew(relay=self.relay, collectors=())
        self.crew.collectors = self._collectors()

    def _collectors(self) -> tuple[Collector, ...]:
        """One for each source of the rules; a source that has one already keeps it."""
        parts, known = self.parts, {id(own.source): own for own in self.crew.collectors}
        return tuple(
            known.get(id(parts.sources[spec.name]))
            or Collector(
                source=parts.sources[spec.name],
                poll=spec.poll,
                clock=parts.clock,
                inbox=self.world.inbox,
                wishes=partial(self._wishes, spec.name),
                jitter=parts.jitter,
            )
            for spec in parts.ruleset.sources
        )

    def _wishes(self, source: str) -> Wishes:
        return self.world.wishes(source, self.parts.clock.now())

    def moment(self) -> Moment:
        """Now, on both clocks."""
        clock = self.parts.clock
        return self.schedule.moment(Reading(at=clock.now(), monotonic=clock.monotonic()))

    async def run(self) -> None:
        """Resume, then watch until cancelled. A slot that fails in an unforeseen way ends the run."""
        await self.resume()
        async with asyncio.TaskGroup() as loops:
            self.crew.start(loops)
            loops.create_task(self._slots(), name="slots")

    async def adopt(self, parts: Parts) -> None:
        """Go on with other rules, sources and channels: all of them, between two slots.

        parts: as they are, but for ruleset, sources, notifiers and render. A source or channel that is
        the same object goes on undisturbed; the others start, or end what they are at and leave.
        """
        async with self._turn:
            before, self.parts = self.parts, parts
            self.world.adopt(parts.ruleset, parts.sources, parts.clock.now())
            self.runner.adopt(before.ruleset)
            fresh = self.relay.adopt(parts.notifiers, parts.render)
            self.crew.take_over(self._collectors(), fresh)
            self.schedule = self.schedule.paced(parts.ruleset.interval)
            self._repaced.set()
            await self.relay.give_up_removed()

    async def resume(self) -> None:
        """Take up what the store holds, and ask everything once before the first slot."""
        async with self._turn:
            stored = await self.journal.load()
            self.world.restore(stored)
            self.relay.resume(stored.outbox, stored.ledger)
            self.relay.recall(stored.incidents, stored.memory)
            await self.relay.give_up_removed()
            if stored.moment is not None:
                self.schedule = Schedule(
                    interval=self.parts.ruleset.interval,
                    watched=stored.moment.watched,
                    before_start=stored.moment.at,
                )
            await self._gather()  # the lists: they decide what else there is to ask
            self.world.prime(self.parts.clock.now())
            await self._gather()

    async def stop(self, patience: timedelta = timedelta(seconds=3)) -> None:
        """After `run` was cancelled: end deliveries in flight, disconnect, release the store."""
        try:
            await asyncio.gather(self.relay.drain(patience), self.crew.close())
            await self.relay.close()
            if (last := self.runner.halt()) is not None:
                await self.journal.slot(last)
        finally:
            await self.journal.close()

    async def _slots(self) -> None:
        clock = self.parts.clock
        while True:
            due = self.schedule.next_due(clock.monotonic())
            if await self._waited(due - clock.monotonic()):
                await self.slot(due)

    async def _waited(self, duration: timedelta) -> bool:
        """Wait. Returns whether it was to the end: a changed schedule cuts it short."""
        self._repaced.clear()
        timer = asyncio.ensure_future(self.parts.clock.sleep(duration))
        repaced = asyncio.ensure_future(self._repaced.wait())
        try:
            await asyncio.wait([timer, repaced], return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
            repaced.cancel()
        return not self._repaced.is_set()

    async def slot(self, due: timedelta) -> None:
        """Run the slot that is due at a monotonic time."""
        clock = self.parts.clock
        late = clock.monotonic() - due
        # A slot that is a little late carries the time it was due: `for` counts whole intervals.
        on_time = timedelta() <= late < self.schedule.interval
        reading = Reading(
            at=clock.now() - late if on_time else clock.now(), monotonic=due if on_time else clock.monotonic()
        )
        await self._gather()
        async with self._turn:
            await self._decide(reading)

    async def _decide(self, reading: Reading) -> None:
        clock = self.parts.clock
        began = clock.monotonic()
        await self.journal.catch_up()
        self.schedule, tick, interruption = self.schedule.step(reading)
        self.slots, self.missed = self.slots + 1, self.missed + tick.missed
        if interruption is not None and interruption.shift < -JUMP_TOLERANCE:
            self.world.clock_set_back(interruption.shift)
        self.upkeep.tidy(tick.moment.watched)
        notices = [*self._take_notices(), *self._interrupted(interruption), *self._slow(), self._storage()]
        notices += self.upkeep.notices(tick, self.pulse)
        commit = self.runner.run(self.world.inbox.drain(), tick, notices)
        numbered = self.journal.numbered(commit.transitions)
        self.world.transitions += numbered
        dropped = (*commit.dropped_memory, *self.relay.owed.said())
        stored = await self.journal.slot(replace(commit, transitions=numbered, dropped_memory=dropped))
        await self._plan(tick, stored=stored)
        await self._prune(tick)
        self.pulse.beat(began, clock.monotonic())
        if self.on_slot is not None:
            self.on_slot(self, tick)

    async def _plan(self, tick: Tick, *, stored: bool) -> None:
        decision = self.runner.plan(self.relay, tick, not_stored=not stored)
        self.relay.supersede(decision.superseded)
        rows = self.journal.identified(decision.deliveries)
        if rows or decision.superseded or decision.mark != self.world.mark:
            await self.journal.plan(
                PlanCommit(mark=decision.mark, deliveries=rows, superseded=decision.superseded)
            )
        self.relay.add(rows)
        self.runner.planned(decision, self.relay)

    async def _gather(self) -> None:
        """Ask what is due, and wait a little for the answers."""
        grace = min(self.schedule.interval * GRACE_SHARE, GRACE_MOST)
        for collector in self.crew.collectors:
            collector.start_due()
        await asyncio.gather(*(collector.settled(grace) for collector in self.crew.collectors))

    async def _prune(self, tick: Tick) -> None:
        watched = tick.moment.watched
        if self._pruned is None or watched - self._pruned >= PRUNE_EVERY:
            self._pruned = watched
            await self.journal.prune(tick.at)

    # --- what there is to say about ourselves

    def _take_notices(self) -> list[Notice]:
        taken, self._notices = self._notices, []
        return [*taken, *self.relay.owed.take()]

    def notify(self, notice: Notice) -> None:
        """Let the next slot say something."""
        self._notices.append(notice)

    def _storage(self) -> Notice:
        error = self.journal.error
        return Notice(
            kind=NoticeKind.STATE_NOT_STORED,
            subject="state",
            params={"detail": error} if error else {},
            active=bool(error),
        )

    def _slow(self) -> list[Notice]:
        notices = []
        for collector in self.crew.collectors:
            name = collector.source.name
            slow = collector.late_questions()
            self._slow_for[name] = self._slow_for.get(name, 0) + 1 if slow else 0
            active = self._slow_for[name] >= SLOW_QUESTIONS
            params = {"source": name, "poll": format_duration(collector.poll)}
            if slow:
                params["capability"] = ", ".join(dict.fromkeys(str(key.capability) for key in slow))
            notices.append(Notice(kind=NoticeKind.RULE_SLOW, subject=name, params=params, active=active))
        return notices

    def _interrupted(self, interruption: Interruption | None) -> list[Notice]:
        if interruption is None:
            return []
        notices = [_jumped(interruption)] if abs(interruption.shift) > JUMP_TOLERANCE else []
        gap = interruption.end - interruption.begin - interruption.shift  # whatever the wall clock did in it
        if interruption.kind is Break.JUMP or gap <= NOT_WATCHING_INTERVALS * self.schedule.interval:
            return notices
        reason = "it was not running" if interruption.kind is Break.START else "it was stopped or starved"
        return [*notices, _not_watching(interruption.end - gap, interruption.end, reason)]


def _required(matches: Sequence[LogMatch]) -> Literals:
    """The substrings the server is to filter by when a reader has fallen behind."""
    return literals_of(pattern.text for match in matches for pattern in match.match)


def _jumped(interruption: Interruption) -> Notice:
    forward = interruption.shift > timedelta()
    by = ("+" if forward else "-") + format_duration(abs(_whole_seconds(interruption.shift)))
    params = {
        "by": by,
        "from": interruption.begin.isoformat(),
        "to": interruption.end.isoformat(),
        "reason": "the clock was set, or the machine was suspended",
    }
    if forward:
        params["gap"] = format_duration(_whole_seconds(interruption.shift))
    return Notice(
        kind=NoticeKind.CLOCK_JUMPED,
        subject="clock",
        params=params,
        lasting=False,
    )


def _not_watching(begin: datetime, end: datetime, reason: str) -> Notice:
    return Notice(
        kind=NoticeKind.NOT_WATCHING,
        subject=begin.isoformat(),  # each outage is told, also the second one within an hour
        params={
            "from": begin.isoformat(),
            "to": end.isoformat(),
            "gap": format_duration(_whole_seconds(end - begin)),
            "reason": reason,
        },
        lasting=False,
    )


def _whole_seconds(duration: timedelta) -> timedelta:
    return timedelta(seconds=round(duration.total_seconds()))
