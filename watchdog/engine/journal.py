"""The journal: T1, T2 and T3 in order, and what happens when the disk does not take them.

A full or failing disk must not mean silence. What could not be stored is kept, merged into as
few commits as possible, and stored first as soon as the disk takes it again; until then the
engine goes on from memory and says so. Numbers (transition seq, outbox id) are therefore given
here, not by the database.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Protocol, TypeVar

from watchdog.core.alerts import Transition
from watchdog.core.notifications import Delivery
from watchdog.errors import StoreError
from watchdog.ports import AttemptCommit, PlanCommit, SlotCommit, Store, Stored

log = logging.getLogger(__name__)

T = TypeVar("T")


class RunBlocking(Protocol):
    """Runs a blocking call off the event loop: one thread in the daemon, inline in a replay."""

    def __call__(self, call: Callable[[], T], /) -> Awaitable[T]:
        """Run `call`; its exception comes back through the awaitable."""
        ...


def merge(first: SlotCommit, second: SlotCommit) -> SlotCommit:
    """Return one T1 that has the effect of both, in order."""
    dropped_alerts = {*first.dropped_alerts, *second.dropped_alerts} - {a.id for a in second.alerts}
    dropped_tasks = {*first.dropped_tasks, *second.dropped_tasks} - {t.task.key for t in second.tasks}
    dropped_streams = {*first.dropped_streams, *second.dropped_streams} - {s.key for s in second.streams}
    streams = {s.key: s for s in (*first.streams, *second.streams) if s.key not in dropped_streams}
    alerts = {a.id: a for a in (*first.alerts, *second.alerts) if a.id not in dropped_alerts}
    tasks = {t.task.key: t for t in (*first.tasks, *second.tasks) if t.task.key not in dropped_tasks}
    return SlotCommit(
        moment=second.moment,
        alerts=tuple(alerts.values()),
        dropped_alerts=tuple(sorted(dropped_alerts)),
        incidents=tuple({i.id: i for i in (*first.incidents, *second.incidents)}.values()),
        transitions=(*first.transitions, *second.transitions),
        tasks=tuple(tasks.values()),
        dropped_tasks=tuple(sorted(dropped_tasks)),
        streams=tuple(streams.values()),
        dropped_streams=tuple(dropped_streams),
        probes=tuple({p.key: p for p in (*first.probes, *second.probes)}.values()),
        samples=(*first.samples, *second.samples),
        forget_samples_before_ns=max(first.forget_samples_before_ns, second.forget_samples_before_ns),
        memory={**first.memory, **second.memory},
    )


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
        if self.error and await self._flush():
            self.error = ""

    async def slot(self, commit: SlotCommit) -> bool:
        """T1. Returns whether it is stored."""
        self._slot = commit if self._slot is None else merge(self._slot, commit)
        return await self._flush()

    async def plan(self, commit: PlanCommit) -> bool:
        """T2. Returns whether it is stored."""
        self._plans.append(commit)
        return await self._flush()

    async def started(self, delivery: Delivery) -> bool:
        """Mark a row as in flight. Returns whether that is stored."""
        if self.error:
            return False
        return await self._try(lambda: self.store.start_attempt(delivery))

    async def attempt(self, commit: AttemptCommit) -> bool:
        """T3. Returns whether it is stored."""
        before = self._attempts.get(commit.delivery.id)
        ledger = commit.ledger or (before.ledger if before else None)
        self._attempts[commit.delivery.id] = replace(commit, ledger=ledger)
        return await self._flush()

    async def prune(self, now: datetime) -> None:
        """Let the store drop what nobody needs."""
        await self._try(lambda: self.store.prune(now))

    async def close(self) -> None:
        """Store what is left, if the disk takes it, and release the file."""
        await self._flush()
        await self.run(self.store.close)

    async def _flush(self) -> bool:
        """Store the backlog in order: T1, T2s, T3s. Each part is dropped once it is stored."""
        if (slot := self._slot) is not None:
            if not await self._try(lambda: self.store.commit_slot(slot)):
                return False
            # Another slot may have been merged in meanwhile; it is stored by its own flush.
            self._slot = None if self._slot is slot else self._slot
        while self._plans:
            plan = self._plans[0]
            if not await self._try(lambda plan=plan: self.store.commit_plan(plan)):  # type: ignore[misc]
                return False
            if self._plans and self._plans[0] is plan:
                self._plans.pop(0)
        for key, attempt in list(self._attempts.items()):
            if not await self._try(lambda attempt=attempt: self.store.commit_attempt(attempt)):  # type: ignore[misc]
                return False
            if self._attempts.get(key) is attempt:
                del self._attempts[key]
        return True

    async def _try(self, call: Callable[[], object]) -> bool:
        try:
            await self.run(call)
        except StoreError as error:
            if not self.error:
                log.error("state not stored, going on from memory reason=%s", error)
            self.error = str(error)
            return False
        if self.error:
            log.info("state is stored again")
        self.error = ""
        return True
