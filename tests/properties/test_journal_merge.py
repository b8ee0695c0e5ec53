"""Merging two slots' commits, as the journal does while the disk is full, against the real store."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import reduce

from hypothesis import given, settings
from hypothesis import strategies as st

from watchdog.core.alerts import Alert, Change, Incident, Phase, Transition
from watchdog.core.conditions.kinds import Capability
from watchdog.core.durations import to_ns
from watchdog.core.health import ProbeKey, ProbeState
from watchdog.core.labels import Labels
from watchdog.core.logs import StreamKey, StreamState
from watchdog.core.moments import Moment
from watchdog.core.rules import Severity
from watchdog.core.tasks import Task, TaskState
from watchdog.engine.journal import merge
from watchdog.ports import LogSample, SlotCommit, Stored
from watchdog.store.memory import MemoryState

T0 = datetime(2026, 11, 30, 2, tzinfo=UTC)
NAMES = ("a", "b", "c")
name = st.sampled_from(NAMES)
number = st.integers(0, 9)


def some(values: st.SearchStrategy[object], most: int = 3) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(values, max_size=most).map(tuple)


def alert(key: str, held: int) -> Alert:
    labels = Labels.of(source="s", task=f"s/{key}")
    return Alert(id=key, rule="r", labels=labels, phase=Phase.PENDING, since=T0, held=timedelta(minutes=held))


def incident(key: str, count: int) -> Incident:
    return Incident(
        id=key,
        rule="r",
        labels=Labels.of(source="s", task=f"s/{key}"),
        severity=Severity.WARNING,
        event=True,
        opened_at=T0,
        since=T0,
        updated_at=T0,
        count=count,
    )


def task(key: str, attempt: int) -> TaskState:
    return TaskState(task=Task(key=key, source="s", id=key, name=key), attempt=attempt)


def stream(key: str, prefilter: str, cursor: int) -> StreamState:
    return StreamState(
        key=StreamKey(task=key, prefilter=prefilter), cursor_ns=cursor, seen={cursor: (cursor, 1)}
    )


def probe(key: str, item: str, failures: int) -> ProbeState:
    return ProbeState(
        key=ProbeKey(source="s", capability=Capability.METRICS, task=key, item=item), failures=failures
    )


def sample(key: str, second: int) -> LogSample:
    return LogSample(
        metric=f"log:{key}", labels=Labels.of(task=key), time_ns=to_ns(T0) + second * 10**9, value=1.0
    )


@st.composite
def history(draw: st.DrawFn, slots: int) -> tuple[SlotCommit, ...]:
    """Consecutive slots, as an engine makes them: streams and probes are those of watched tasks."""
    watched: set[str] = set()
    made = []
    for slot in range(slots):
        at = T0 + timedelta(minutes=slot)
        dropped = draw(some(name, 1))
        tasks = draw(some(st.builds(task, name, number)))
        watched = (watched - {*dropped}) | {state.task.key for state in tasks}
        own = st.sampled_from(sorted(watched)) if watched else st.nothing()
        prefilter, metric = st.sampled_from(("", "E")), st.sampled_from(("", "gpu"))
        grown = draw(some(name, 2))
        made.append(
            SlotCommit(
                moment=Moment(at=at, watched=timedelta(minutes=slot)),
                alerts=draw(some(st.builds(alert, name, number))),
                dropped_alerts=draw(some(name)),
                incidents=draw(some(st.builds(incident, name, number))),
                transitions=tuple(
                    Transition(incident=key, change=Change.GREW, at=at, seq=slot * 10 + n)
                    for n, key in enumerate(dict.fromkeys(grown), start=1)
                ),
                tasks=tasks,
                dropped_tasks=dropped,
                streams=draw(some(st.builds(stream, own, prefilter, number))) if watched else (),
                dropped_streams=draw(some(st.builds(StreamKey, task=name, prefilter=prefilter), 2)),
                probes=draw(some(st.builds(probe, own, metric, number))) if watched else (),
                samples=draw(some(st.builds(sample, name, number))),
                # The clock goes on: what one slot may forget, the next may, too.
                forget_samples_before_ns=to_ns(T0) + (slot - 1 + draw(st.integers(0, 1))) * 3 * 10**9,
                memory=draw(st.dictionaries(name, name)),
                dropped_memory=draw(some(name)),
            )
        )
    return tuple(made)


def stored_after(*slots: SlotCommit) -> Stored:
    state = MemoryState()
    try:
        store = state.open()
        for one in slots:
            store.commit_slot(one)
        stored = store.load()
    finally:
        state.discard()
    return replace(stored, samples=tuple(sorted(stored.samples, key=repr)))


@settings(max_examples=80, deadline=None)
@given(history(3))
def test_a_merged_commit_has_the_effect_of_both_in_order(slots: tuple[SlotCommit, ...]) -> None:
    before, first, second = slots
    assert stored_after(before, merge(first, second)) == stored_after(*slots)


@settings(max_examples=40, deadline=None)
@given(history(4))
def test_a_long_backlog_is_one_commit(slots: tuple[SlotCommit, ...]) -> None:
    before, *backlog = slots
    assert stored_after(before, reduce(merge, backlog)) == stored_after(*slots)


@settings(max_examples=40, deadline=None)
@given(history(2))
def test_committing_twice_does_no_harm(slots: tuple[SlotCommit, ...]) -> None:
    assert stored_after(*slots, slots[-1]) == stored_after(*slots)
