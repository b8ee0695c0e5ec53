"""The journal on a disk that refuses for a while: it goes on from memory and catches up by itself."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import pytest

from watchdog.core.alerts import Change, Transition
from watchdog.core.moments import Moment
from watchdog.engine.journal import Journal
from watchdog.ports import SlotCommit
from watchdog.store.memory import MemoryState

T = TypeVar("T")
T0 = datetime(2026, 11, 30, 2, tzinfo=UTC)


async def inline(call: Callable[[], T]) -> T:
    return call()


@pytest.fixture
def state() -> Iterator[MemoryState]:
    made = MemoryState()
    yield made
    made.discard()


def slot(minute: int, *incidents: str) -> SlotCommit:
    at = T0 + timedelta(minutes=minute)
    changes = tuple(Transition(incident=name, change=Change.OPENED, at=at) for name in incidents)
    return SlotCommit(moment=Moment(at=at, watched=timedelta(minutes=minute)), transitions=changes)


async def test_what_was_refused_is_stored_by_catching_up(state: MemoryState) -> None:
    journal = Journal(store=state.open(), run=inline)
    state.refuse_writes(True)
    assert not await journal.slot(slot(1, "aaaa"))
    assert journal.error
    await journal.catch_up()
    assert journal.error
    state.refuse_writes(False)
    await journal.catch_up()
    assert not journal.error
    assert [t.incident for t in (await journal.load()).transitions] == ["aaaa"]


async def test_a_failed_pruning_is_no_lasting_error(state: MemoryState) -> None:
    journal = Journal(store=state.open(), run=inline)
    await journal.slot(slot(1))
    state.refuse_writes(True)
    await journal.prune(T0)
    state.refuse_writes(False)
    await journal.catch_up()
    assert not journal.error
