"""Decisions about many members, tasks or notices at once: by CPU, linear in how many there are.

What looks at everything for each thing costs ten times as much a thing at ten times the size.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from time import process_time

import pytest

from watchdog.core.alerts import Alert, Notice, NoticeKind, Phase
from watchdog.core.blindness import observe_all
from watchdog.core.conditions.kinds import Capability
from watchdog.core.endings import forget
from watchdog.core.expecting import retire, retired_reason, see_members
from watchdog.core.health import Failure, Health, Probe, ProbeKey
from watchdog.core.incidents import Book
from watchdog.core.labels import Labels
from watchdog.core.moments import Moment, Tick
from watchdog.core.notices import advance_notices
from watchdog.core.resolving import resolve
from watchdog.core.ruleset import WatchEntry
from watchdog.core.tasks import Seen, Status, Task, TaskObservation, TaskState

T0 = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
TICK = Tick(moment=Moment(at=T0, watched=timedelta(hours=1)), elapsed=MINUTE, run=MINUTE, interval=MINUTE)
SMALL, LARGE = 500, 5_000
SLACK = 4


def task(name: str) -> Task:
    return Task(key=f"s/{name}", source="s", id=name, name=name)


def members(count: int, first: str = "pod") -> list[Labels]:
    return [Labels.of(pod=f"{first}-{n}") for n in range(count)]


def expecting(count: int, *, last: datetime = T0) -> TaskState:
    seen = tuple(Seen(labels=own, first=T0 - MINUTE, last=last) for own in members(count))
    return TaskState(task=task("t"), status=Status.RUNNING, expected=seen)


def many_retire(count: int) -> object:
    state = expecting(count)
    return retired_reason(state, members(count))


def others_take_over(count: int) -> object:
    heirs = dict.fromkeys(members(count, "other-pod"), T0 + MINUTE)
    state = see_members(expecting(count), heirs)
    after, gone = retire(state, TICK, heirs.keys())
    assert len(gone) == len(after.expected) == count
    return gone


def alerts_of_many_members_end(count: int) -> object:
    alerts = [
        Alert(
            id=f"{n}", rule="r", labels=own.plus({"task": "s/t"}), phase=Phase.FIRING, since=T0, fired_at=T0
        )
        for n, own in enumerate(members(count))
    ]
    step = forget(Book.of(alerts), "s/t", members(count), T0)
    assert len(step.dropped) == count
    return step


def names_are_resolved(count: int) -> object:
    states = {f"s/t{n}": TaskState(task=task(f"t{n}")) for n in range(count)}
    rows = tuple(TaskObservation(task=state.task, status=Status.RUNNING) for state in states.values())
    found = resolve((WatchEntry(source="s", name="t*"),), {"s": rows}, states)
    assert len(found) == count
    return found


def ids_are_resolved(count: int) -> object:
    watch = [WatchEntry(source="s", id=f"t{n}") for n in range(count)]
    rows = tuple(TaskObservation(task=task(f"t{n}"), status=Status.RUNNING) for n in range(count))
    return resolve(watch, {"s": rows}, {})


def all_go_blind(count: int) -> object:
    keys = [
        ProbeKey(source="s", capability=Capability.METRICS, task=f"s/{n}", item="gpu") for n in range(count)
    ]
    health = Health()
    for minute in range(4):
        at = T0 + minute * MINUTE
        probes = (
            Probe(key=key, at=at + timedelta(milliseconds=n), failure=Failure.TIMEOUT if minute else None)
            for n, key in enumerate(keys)
        )
        health = observe_all(health, probes)
    assert len({state.subject for state in health.states.values()}) == 1
    return health


def much_is_noted(count: int) -> object:
    notices = [Notice(kind=NoticeKind.SOURCE_REMARK, subject=f"{n}", params={}) for n in range(count)]
    step = advance_notices(notices, Book(), TICK)
    book = Book.of(incidents=step.incidents)
    return advance_notices([replace(one, params={"more": "x"}) for one in notices], book, TICK)


@pytest.mark.parametrize(
    "work",
    [
        many_retire,
        others_take_over,
        alerts_of_many_members_end,
        names_are_resolved,
        ids_are_resolved,
        all_go_blind,
        much_is_noted,
    ],
)
def test_a_decision_about_many_is_linear(work: Callable[[int], object]) -> None:
    def each(count: int) -> float:
        taken = []
        for _ in range(3):
            began = process_time()
            work(count)
            taken.append(process_time() - began)
        least = min(taken)
        print(f"{work.__name__} {count}: {least * 1e3:.1f} ms CPU, {least / count * 1e6:.1f} us each")
        return least / count

    assert each(LARGE) < SLACK * each(SMALL)
