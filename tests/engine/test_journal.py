"""The journal: what could not be stored is kept in order, numbered once, and stored as soon as it can be."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Protocol, TypeVar

import pytest

from watchdog.core.alerts import Change, Incident, Transition
from watchdog.core.durations import to_ns
from watchdog.core.labels import Labels
from watchdog.core.moments import Moment
from watchdog.core.notifications import (
    Answer,
    Delivery,
    DeliveryResult,
    DeliveryState,
    LedgerEntry,
    MessageKind,
    Notification,
)
from watchdog.core.rules import Severity
from watchdog.engine.journal import Journal
from watchdog.errors import StoreError
from watchdog.ports import AttemptCommit, LogSample, PlanCommit, SlotCommit, Store, Stored
from watchdog.replay.virtual import VirtualWorld
from watchdog.store.memory import MemoryState

T = TypeVar("T")
T0 = datetime(2026, 11, 30, 2, tzinfo=UTC)
OK = DeliveryResult(answer=Answer.OK)
LABELS = Labels.of(source="src", task="src/1")


class Bench(Protocol):
    world: VirtualWorld

    def run(self, main: Callable[[], Coroutine[object, object, T]]) -> T: ...


class Disk:
    """A real store on a disk that may be full; notes what it was asked to write, and when it did."""

    def __init__(self, inner: Store) -> None:
        self.inner, self.full, self.written = inner, False, list[str]()

    def _write(self, what: str) -> None:
        if self.full:
            raise StoreError("no space left")
        self.written.append(what)

    def load(self) -> Stored:
        return self.inner.load()

    def commit_slot(self, commit: SlotCommit) -> tuple[Transition, ...]:
        self._write(f"T1 {commit.moment.watched // timedelta(minutes=1)}")
        return self.inner.commit_slot(commit)

    def commit_plan(self, commit: PlanCommit) -> tuple[Delivery, ...]:
        self._write(f"T2 {commit.mark}")
        return self.inner.commit_plan(commit)

    def start_attempt(self, delivery: Delivery) -> None:
        self._write(f"start {delivery.id}")
        self.inner.start_attempt(delivery)

    def commit_attempt(self, commit: AttemptCommit) -> None:
        self._write(f"T3 {commit.delivery.id}")
        self.inner.commit_attempt(commit)

    def prune(self, now: datetime) -> None:
        self._write("prune")
        self.inner.prune(now)

    def close(self) -> None:
        self.inner.close()


@pytest.fixture
def state() -> Iterator[MemoryState]:
    made = MemoryState()
    yield made
    made.discard()


@pytest.fixture
def disk(state: MemoryState) -> Disk:
    return Disk(state.open())


async def inline(call: Callable[[], T]) -> T:
    return call()


@pytest.fixture
def journal(disk: Disk) -> Journal:
    return Journal(store=disk, run=inline)


def moment(minute: int) -> Moment:
    return Moment(at=T0 + timedelta(minutes=minute), watched=timedelta(minutes=minute))


def incident(name: str) -> Incident:
    return Incident(
        id=name,
        rule="low",
        labels=LABELS,
        severity=Severity.WARNING,
        event=False,
        opened_at=T0,
        since=T0,
        updated_at=T0,
    )


def slot(journal: Journal, minute: int, *names: str, samples: int = 0) -> SlotCommit:
    at = moment(minute)
    changes = tuple(Transition(incident=name, change=Change.OPENED, at=at.at) for name in names)
    rows = tuple(
        LogSample(metric="log:errors", labels=LABELS, time_ns=to_ns(at.at) + n, value=1.0)
        for n in range(samples)
    )
    return SlotCommit(
        moment=at,
        incidents=tuple(map(incident, names)),
        transitions=journal.numbered(changes),
        samples=rows,
    )


def row(name: str, minute: int) -> Delivery:
    said = Notification(
        channel="chat", kind=MessageKind.FIRST, incident=incident(name), decided_at=moment(minute).at
    )
    return Delivery(notification=said, created=moment(minute).watched, not_before=moment(minute).watched)


def told(delivery: Delivery, minute: int) -> AttemptCommit:
    entry = LedgerEntry(
        incident=delivery.notification.incident.id,
        channel="chat",
        kind=MessageKind.FIRST,
        told_at=moment(minute).at,
        told_watched=moment(minute).watched,
        severity=Severity.WARNING,
    )
    done = replace(delivery, state=DeliveryState.DONE, attempts=1)
    return AttemptCommit(delivery=done, result=OK, at=moment(minute), ledger=entry)


async def decided(journal: Journal, minute: int, *names: str) -> tuple[Delivery, ...]:
    """One slot's T1 and T2."""
    commit = slot(journal, minute, *names)
    await journal.slot(commit)
    rows = journal.identified([row(name, minute) for name in names])
    await journal.plan(PlanCommit(mark=commit.transitions[-1].seq, deliveries=rows))
    return rows


async def test_a_backlog_is_stored_in_order_and_in_as_few_commits_as_possible(
    journal: Journal, disk: Disk, state: MemoryState
) -> None:
    await decided(journal, 1, "aaaa")
    disk.full = True
    disk.written.clear()
    (second,) = await decided(journal, 2, "bbbb")
    await journal.attempt(told(second, 2))
    (third,) = await decided(journal, 3, "cccc")
    assert disk.written == []
    assert journal.error == "no space left"
    disk.full = False
    await journal.catch_up()
    assert disk.written == ["T1 3", "T2 2", "T2 3", "T3 2"]
    assert journal.error == ""
    stored = state.open().load()
    assert [delivery.id for delivery in stored.outbox] == [1, third.id] == [1, 3]
    assert {entry.incident for entry in stored.ledger} == {"bbbb"}
    assert (stored.mark, stored.newest_delivery) == (3, 3)


async def test_numbers_given_while_the_disk_was_full_are_the_numbers_stored(
    journal: Journal, disk: Disk, state: MemoryState
) -> None:
    await journal.slot(slot(journal, 1, "aaaa"))
    disk.full = True
    await journal.slot(slot(journal, 2, "bbbb", "cccc"))
    disk.full = False
    await journal.slot(slot(journal, 3, "dddd"))
    stored = state.open().load()
    assert [(t.seq, t.incident) for t in stored.transitions] == [
        (1, "aaaa"),
        (2, "bbbb"),
        (3, "cccc"),
        (4, "dddd"),
    ]


async def test_a_start_goes_on_with_higher_numbers(journal: Journal, disk: Disk) -> None:
    await decided(journal, 1, "aaaa", "bbbb")
    after = Journal(store=disk, run=inline)
    await after.load()
    (transition,) = after.numbered([Transition(incident="cccc", change=Change.OPENED, at=T0)])
    (delivery,) = after.identified([row("cccc", 2)])
    assert (transition.seq, delivery.id) == (3, 3)


async def test_what_was_lost_with_the_process_may_be_numbered_again(disk: Disk) -> None:
    first = Journal(store=disk, run=inline)
    disk.full = True
    await decided(first, 1, "aaaa")
    disk.full = False  # … and the process was killed
    second = Journal(store=disk, run=inline)
    await second.load()
    (delivery,) = await decided(second, 2, "bbbb")
    assert [one.id for one in (await second.load()).outbox] == [delivery.id] == [1]


async def test_the_disk_is_well_again_only_when_everything_is_stored(journal: Journal, disk: Disk) -> None:
    (delivery,) = await decided(journal, 1, "aaaa")
    disk.full = True
    await journal.slot(slot(journal, 2, "bbbb"))
    disk.full = False
    assert not await journal.started(delivery), "not before what comes first"
    await journal.prune(T0)
    assert journal.error
    await journal.catch_up()
    assert not journal.error


async def test_the_newest_attempt_of_a_row_is_the_one_stored_and_a_ledger_is_never_lost(
    journal: Journal, disk: Disk, state: MemoryState
) -> None:
    (delivery,) = await decided(journal, 1, "aaaa")
    disk.full = True
    await journal.attempt(told(delivery, 2))
    failed = replace(delivery, state=DeliveryState.PENDING, attempts=2)
    await journal.attempt(AttemptCommit(delivery=failed, result=OK, at=moment(3)))
    disk.full = False
    await journal.catch_up()
    stored = state.open().load()
    assert [one.attempts for one in stored.outbox] == [2]
    assert [entry.incident for entry in stored.ledger] == ["aaaa"]


async def test_what_was_said_while_nothing_could_be_stored_is_not_owed_afterwards(
    journal: Journal, disk: Disk, state: MemoryState
) -> None:
    (delivery,) = await decided(journal, 1, "aaaa")
    disk.full = True
    await journal.attempt(replace(told(delivery, 2), memory={"owed 1": "a", "owed 2": "b"}))
    await journal.attempt(replace(told(delivery, 2), memory={"owed 3": "c"}))
    await journal.slot(replace(slot(journal, 3), dropped_memory=("owed 1",)))
    disk.full = False
    await journal.catch_up()
    assert state.open().load().memory == {"owed 2": "b", "owed 3": "c"}


def test_a_slot_that_comes_while_the_backlog_is_being_stored_is_stored_by_itself(
    bench: Bench, disk: Disk, state: MemoryState
) -> None:
    async def slow(call: Callable[[], T]) -> T:
        await bench.world.sleep(timedelta(seconds=5))
        return call()

    journal = Journal(store=disk, run=slow)

    async def main() -> None:
        disk.full = True
        await journal.slot(slot(journal, 1, "aaaa", samples=3))
        disk.full = False
        catching_up = asyncio.ensure_future(journal.catch_up())
        await bench.world.sleep(timedelta(seconds=1))
        await journal.slot(slot(journal, 2, "bbbb", samples=2))
        await catching_up

    bench.run(main)
    assert disk.written == ["T1 1", "T1 2"]
    assert len(state.open().load().samples) == 5, "none counted twice"


def test_a_commit_that_is_cut_off_is_stored_once(bench: Bench, disk: Disk, state: MemoryState) -> None:
    async def thread(call: Callable[[], T]) -> T:
        """As a thread does it: what has begun ends, whoever still waits for it."""

        async def work() -> T:
            await bench.world.sleep(timedelta(seconds=5))
            return call()

        return await asyncio.shield(work())

    journal = Journal(store=disk, run=thread)

    async def main() -> None:
        cut = asyncio.ensure_future(journal.slot(slot(journal, 1, "aaaa", samples=3)))
        await bench.world.sleep(timedelta(seconds=1))
        cut.cancel()
        await asyncio.gather(cut, return_exceptions=True)
        await journal.close()

    bench.run(main)
    stored = state.open().load()
    assert [t.incident for t in stored.transitions] == ["aaaa"]
    assert len(stored.samples) == 3


async def test_closing_stores_what_is_left(journal: Journal, disk: Disk, state: MemoryState) -> None:
    disk.full = True
    await journal.slot(slot(journal, 1, "aaaa"))
    disk.full = False
    await journal.close()
    assert [t.incident for t in state.open().load().transitions] == ["aaaa"]
