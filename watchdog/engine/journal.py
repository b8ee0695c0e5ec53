"""The journal: T1, T2 and T3 in order, and what happens when the disk does not take them.

A full or failing disk must not mean silence. What could not be stored is kept, merged into as
few commits as possible, and stored first as soon as the disk takes it again; until then the
engine goes on from memory and says so. Numbers (transition seq, outbox id) are therefore given
here, not by the database.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Protocol, TypeVar

from watchdog.core.alerts import Transition
from watchdog.core.notifications import Delivery
from watchdog.errors import StoreError
from watchdog.ports import AttemptCommit, PlanCommit, SlotCommit, Store, Stored

log = logging.getLogger(__name__)

T = TypeVar("T")
K = TypeVar("K")


class RunBlocking(Protocol):
    """Runs a blocking call off the event loop: one thread in the daemon, inline in a replay."""

    def __call__(self, call: Callable[[], T], /) -> Awaitable[T]:
        """Run `call`; its exception comes back through the awaitable."""
        ...


def merge(first: SlotCommit, second: SlotCommit) -> SlotCommit:
    """Return one T1 that has the effect of both, in order. In one commit, what is dropped goes first."""
    over = {*first.dropped_tasks} - {state.task.key for state in first.tasks} | {*second.dropped_tasks}
    gone = {*second.dropped_streams}
    forgotten, oldest_ns = {*second.dropped_memory}, second.forget_samples_before_ns
    oldest_ns = oldest_ns or first.forget_samples_before_ns
    alerts = {a.id: a for a in first.alerts if a.id not in second.dropped_alerts}
    tasks = {t.task.key: t for t in first.tasks if t.task.key not in over}
    streams = {s.key: s for s in first.streams if s.key not in gone and s.key.task not in over}
    probes = {p.key: p for p in first.probes if p.key.task not in over}
    memory = {name: value for name, value in first.memory.items() if name not in forgotten}
    samples = [s for s in (*first.samples, *second.samples) if s.time_ns >= oldest_ns]
    return SlotCommit(
        moment=second.moment,
        alerts=tuple({**alerts, **{a.id: a for a in second.alerts}}.values()),
        dropped_alerts=_union(first.dropped_alerts, second.dropped_alerts),
        incidents=tuple({i.id: i for i in (*first.incidents, *second.incidents)}.values()),
        transitions=(*first.transitions, *second.transitions),
        tasks=tuple({**tasks, **{t.task.key: t for t in second.tasks}}.values()),
        dropped_tasks=_union(first.dropped_tasks, second.dropped_tasks),
        streams=tuple({**streams, **{s.key: s for s in second.streams}}.values()),
        dropped_streams=_union(first.dropped_streams, second.dropped_streams),
        probes=tuple({**probes, **{p.key: p for p in second.probes}}.values()),
        samples=tuple(samples),
        forget_samples_before_ns=oldest_ns,
        memory={**memory, **second.memory},
        dropped_memory=_union(first.dropped_memory, second.dropped_memory),
    )


def _union(first: Iterable[K], second: Iterable[K]) -> tuple[K, ...]:
    return tuple(dict.fromkeys((*first, *second)))


@dataclass(slots=True, kw_only=True)
class Journal:
    """Owns the store on behalf of the engine."""

    store: Store
    run: RunBlocking
    error: str = ""  # why the newest commit could not be stored; "" = all is stored
    _slot: SlotCommit | None = None  # backlog, merged
    _plans: list[PlanCommit] = field(default_factory=list)
    _attempts: dict[int, AttemptCommit] = field(default_factory=dict)
    _seq: int = 0
    _id: int = 0
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def load(self) -> Stored:
        """Read what a start resumes from. A store that cannot be read stops the start."""
        stored = await self.run(self.store.load)
        self._seq = max([stored.mark, *(t.seq for t in stored.transitions)])
        self._id = max([stored.newest_delivery, *(d.id for d in stored.outbox)])
        return stored

    def numbered(self, transitions: Sequence[Transition]) -> tuple[Transition, ...]:
        """Give transitions their seq."""
        first = self._seq + 1
        self._seq += len(transitions)
        return tuple(replace(t, seq=first + n) for n, t in enumerate(transitions))

    def identified(self, deliveries: Sequence[Delivery]) -> tuple[Delivery, ...]:
        """Give new outbox rows their id."""
        first = self._id + 1
        self._id += len(deliveries)
        return tuple(replace(d, id=first + n) for n, d in enumerate(deliveries))

    async def catch_up(self) -> None:
        """Store the backlog, if there is one and the disk takes it by now."""
        if self.error:
            async with self._turn:
                await self._flush()

    async def slot(self, commit: SlotCommit) -> bool:
        """T1. Returns whether it is stored."""
        async with self._turn:
            self._slot = commit if self._slot is None else merge(self._slot, commit)
            for key, attempt in self._attempts.items():  # they are stored after it
                kept = {n: fact for n, fact in attempt.memory.items() if n not in commit.dropped_memory}
                self._attempts[key] = replace(attempt, memory=kept)
            return await self._flush()

    async def plan(self, commit: PlanCommit) -> bool:
        """T2. Returns whether it is stored."""
        async with self._turn:
            self._plans.append(commit)
            return await self._flush()

    async def started(self, delivery: Delivery) -> bool:
        """Mark a row as in flight. Returns whether that is stored."""
        if self.error:
            return False
        return await self._try(partial(self.store.start_attempt, delivery))

    async def attempt(self, commit: AttemptCommit) -> bool:
        """T3. Returns whether it is stored."""
        async with self._turn:
            before = self._attempts.get(commit.delivery.id)
            ledger = commit.ledger or (before.ledger if before else None)
            memory = {**before.memory, **commit.memory} if before else commit.memory
            self._attempts[commit.delivery.id] = replace(commit, ledger=ledger, memory=memory)
            return await self._flush()

    async def prune(self, now: datetime) -> None:
        """Let the store drop what nobody needs."""
        await self._try(partial(self.store.prune, now))

    async def close(self) -> None:
        """Store what is left, if the disk takes it, and release the file."""
        try:
            async with self._turn:
                await self._flush()
        finally:
            await self.run(self.store.close)

    async def _flush(self) -> bool:
        """Store the backlog in order: T1, T2s, T3s. Each part is dropped once it is stored.

        Returns whether nothing is left. One at a time: a part that is being stored must not be merged
        into the next, which would store it twice.
        """
        if (slot := self._slot) is not None:
            if not await self._try(partial(self.store.commit_slot, slot)):
                return False
            self._slot = None
        while self._plans:
            plan = self._plans[0]
            if not await self._try(partial(self.store.commit_plan, plan)):
                return False
            self._plans.pop(0)
        while self._attempts:
            key, attempt = next(iter(self._attempts.items()))
            if not await self._try(partial(self.store.commit_attempt, attempt)):
                return False
            del self._attempts[key]
        if self.error:
            log.info("state is stored again")
        self.error = ""
        return True

    async def _try(self, call: Callable[[], object]) -> bool:
        try:
            await self.run(call)
        except StoreError as error:
            if not self.error:
                log.error("state not stored, going on from memory reason=%s", error)
            self.error = str(error)
            return False
        return True
