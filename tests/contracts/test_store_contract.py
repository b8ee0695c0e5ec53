"""What every Store and StateReader must do, on disk and in memory. A reopened store is a restart."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from watchdog.core.alerts import Alert, Change, CloseReason, Incident, Phase, Transition
from watchdog.core.conditions.kinds import Capability
from watchdog.core.health import Failure, ProbeKey, ProbeState
from watchdog.core.labels import Labels
from watchdog.core.logs import StreamKey, StreamState
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
from watchdog.core.tasks import Status, Task, TaskState
from watchdog.errors import StoreError
from watchdog.ports import (
    AttemptCommit,
    AttemptRecord,
    LogSample,
    PlanCommit,
    SlotCommit,
    StateReader,
    Store,
)
from watchdog.store.memory import MemoryState
from watchdog.store.reader import SqliteReader
from watchdog.store.sqlite import SqliteStore

T0 = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
NOW = Moment(at=T0, watched=HOUR)


@dataclass
class State:
    """One state that outlives its stores."""

    open: Callable[[], Store]
    reader: Callable[[], StateReader]
    refusing: Callable[[], AbstractContextManager[None]]


@contextmanager
def on_disk(folder: Path) -> Iterator[State]:
    path = folder / "state.db"
    closing: list[SqliteStore | SqliteReader] = []

    def restart() -> Store:
        while closing:
            closing.pop().close()
        opened = SqliteStore.open(path, started=T0, busy=timedelta(milliseconds=10))
        closing.append(opened)
        return opened

    def reader() -> StateReader:
        opened = SqliteReader.open(path)
        closing.append(opened)
        return opened

    @contextmanager
    def refusing() -> Iterator[None]:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        yield
        other.close()

    yield State(open=restart, reader=reader, refusing=refusing)
    for store in closing:
        store.close()


@contextmanager
def in_memory(_: Path) -> Iterator[State]:
    state = MemoryState()

    @contextmanager
    def refusing() -> Iterator[None]:
        state.refuse_writes(True)
        yield
        state.refuse_writes(False)

    yield State(open=state.open, reader=state.reader, refusing=refusing)
    state.discard()


@pytest.fixture(params=[on_disk, in_memory], ids=["disk", "memory"])
def state(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[State]:
    with request.param(tmp_path) as made:
        yield made


def incident(key: str = "aaaa", **changes: Any) -> Incident:
    values: dict[str, Any] = {
        "id": key, "rule": "idle", "labels": Labels.of(source="alaya", task="alaya/1"),
        "severity": Severity.CRITICAL, "event": False, "opened_at": T0, "since": T0, "updated_at": T0,
    }  # fmt: skip
    return Incident(**{**values, **changes})


def alert(key: str = "a1", **changes: Any) -> Alert:
    labels = Labels.of(source="alaya", task="alaya/1", pod="p-0")
    return replace(Alert(id=key, rule="idle", labels=labels, phase=Phase.FIRING, since=T0), **changes)


def opened(key: str = "aaaa", at: datetime = T0) -> Transition:
    return Transition(incident=key, change=Change.OPENED, at=at)


def delivery(key: str = "aaaa", channel: str = "team", at: datetime = T0, **changes: Any) -> Delivery:
    kind = changes.pop("kind", MessageKind.FIRST)
    note = Notification(channel=channel, kind=kind, incident=incident(key), decided_at=at)
    return replace(Delivery(notification=note, created=HOUR, not_before=HOUR), **changes)


def told(row: Delivery, answer: Answer = Answer.OK, **changes: Any) -> AttemptCommit:
    state = DeliveryState.DONE if answer is Answer.OK else changes.pop("state", DeliveryState.PENDING)
    result = DeliveryResult(answer=answer, code="200", detail="from the provider", **changes)
    row = replace(row, state=state, attempts=row.attempts + 1, last_result=result)
    ledger = None
    if answer is Answer.OK:
        note = row.notification
        ledger = LedgerEntry(
            incident=note.incident.id, channel=note.channel, kind=note.kind, told_at=T0, told_watched=HOUR,
            severity=Severity.CRITICAL, members=3, fingerprints=("f1",), answer="200",
        )  # fmt: skip
    return AttemptCommit(delivery=row, result=result, at=NOW, ledger=ledger)


def slot(**changes: Any) -> SlotCommit:
    return SlotCommit(moment=NOW, **changes)


TASK = TaskState(
    task=Task(key="alaya/1", source="alaya", id="1", name="llama"), status=Status.RUNNING, watched_since=T0
)
STREAM = StreamState(
    key=StreamKey(task="alaya/1"),
    cursor_ns=1_796_025_600_123_456_789,
    seen={1: (5, 2), 2**64 - 1: (7, 1)},
    newest_ns={"p-0": 1_796_025_600_123_456_789},
    arrived_ns={"p-0": 3},
    lines=12,
)
PROBE = ProbeState(
    key=ProbeKey(source="alaya", capability=Capability.LOGS, task="alaya/1"),
    failures=2, since=T0, failure=Failure.FORBIDDEN, detail="403",
)  # fmt: skip


def test_what_an_attempt_leaves_to_be_said_is_stored_with_it_until_a_slot_drops_it(state: State) -> None:
    store = state.open()
    (row,) = store.commit_plan(PlanCommit(mark=0, deliveries=(delivery(),)))
    store.commit_attempt(replace(told(row), memory={"owed": "a notice", "other": "fact"}))
    assert state.open().load().memory == {"owed": "a notice", "other": "fact"}

    state.open().commit_slot(slot(dropped_memory=("owed",)))

    assert state.open().load().memory == {"other": "fact"}


def test_a_new_state_is_empty(state: State) -> None:
    stored = state.open().load()

    assert stored.moment is None
    assert stored.mark == 0
    assert stored.memory == {}
    assert not any((stored.alerts, stored.incidents, stored.outbox, stored.transitions, stored.samples))


def test_all_of_a_slot_comes_back_after_a_restart(state: State) -> None:
    sample = LogSample(metric="log:errors", labels=Labels.of(pod="p-0"), time_ns=9, value=1.0)
    commit = slot(
        alerts=(alert(),), incidents=(incident(),), transitions=(opened(),), tasks=(TASK,), streams=(STREAM,),
        probes=(PROBE,), samples=(sample,), memory={"fact": "值"},
    )  # fmt: skip

    numbered = state.open().commit_slot(commit)
    stored = state.open().load()

    assert stored.moment == NOW
    assert stored.alerts == (alert(),)
    assert stored.incidents == (incident(),)
    assert stored.transitions == numbered == (replace(opened(), seq=1),)
    assert (stored.tasks, stored.streams, stored.probes) == ((TASK,), (STREAM,), (PROBE,))
    assert stored.samples == (sample,)
    assert stored.memory == {"fact": "值"}


def test_a_later_slot_replaces_what_it_names_and_keeps_the_rest(state: State) -> None:
    store = state.open()
    store.commit_slot(slot(alerts=(alert("a1"), alert("a2")), memory={"one": "1", "two": "2"}))

    later = Moment(at=T0 + HOUR, watched=2 * HOUR)
    changed = alert("a2", held=HOUR)
    store.commit_slot(
        SlotCommit(moment=later, alerts=(changed,), dropped_alerts=("a1",), memory={"two": "3"})
    )

    stored = state.open().load()
    assert stored.moment == later
    assert stored.alerts == (changed,)
    assert stored.memory == {"one": "1", "two": "3"}


def test_an_alert_dropped_and_begun_anew_in_one_slot_stays(state: State) -> None:
    store = state.open()
    store.commit_slot(slot(alerts=(alert(),)))

    store.commit_slot(slot(alerts=(alert(phase=Phase.PENDING),), dropped_alerts=("a1",)))

    assert [found.phase for found in store.load().alerts] == [Phase.PENDING]


def test_repeating_a_slot_does_no_harm(state: State) -> None:
    sample = LogSample(metric="log:errors", labels=Labels(), time_ns=9, value=1.0)
    commit = slot(
        incidents=(incident(),),
        transitions=(opened(), opened("bbbb")),
        samples=(sample, sample),
        streams=(STREAM,),
    )
    store = state.open()

    first = store.commit_slot(commit)
    more = store.commit_slot(replace(commit, transitions=(*commit.transitions, opened("cccc"))))

    stored = store.load()
    assert [change.seq for change in first] == [1, 2]
    assert more[:2] == first
    assert stored.transitions == more
    assert stored.samples == (sample, sample)
    assert stored.streams == (STREAM,)


def test_the_numbers_of_transitions_rise_for_ever(state: State) -> None:
    store = state.open()
    (first,) = store.commit_slot(slot(transitions=(opened(),)))
    store.commit_plan(PlanCommit(mark=first.seq))
    store.prune(T0 + 100 * DAY)

    (second,) = state.open().commit_slot(slot(transitions=(opened("bbbb"),)))

    assert second.seq > first.seq


def test_numbers_that_are_given_are_kept_and_the_highest_id_ever_is_known(state: State) -> None:
    store = state.open()
    (opened_,) = store.commit_slot(SlotCommit(moment=NOW, transitions=(replace(opened(), seq=7),)))
    (row,) = store.commit_plan(PlanCommit(mark=7, deliveries=(replace(delivery(), id=12),)))
    store.commit_attempt(told(row))
    assert (opened_.seq, row.id, store.load().newest_delivery) == (7, 12, 12)
    (later,) = state.open().commit_slot(SlotCommit(moment=NOW, transitions=(opened("bbbb"),)))
    (next_row,) = store.commit_plan(PlanCommit(mark=8, deliveries=(delivery("bbbb"),)))
    assert (later.seq, next_row.id) == (8, 13)


def test_a_row_with_a_given_id_takes_nothing_from_another_one(state: State) -> None:
    store = state.open()
    (first,) = store.commit_plan(PlanCommit(mark=1, deliveries=(delivery(),)))
    store.commit_attempt(told(first))
    second = replace(delivery("bbbb"), id=state.open().load().newest_delivery + 1)
    store = state.open()
    store.commit_plan(PlanCommit(mark=2, deliveries=(second,)))
    store.commit_attempt(told(second))
    assert not state.open().load().outbox
    (before,) = state.reader().deliveries("aaaa")
    assert before.state is DeliveryState.DONE


def test_only_transitions_after_the_mark_are_loaded_and_the_mark_never_goes_back(state: State) -> None:
    store = state.open()
    one, two, three = store.commit_slot(slot(transitions=(opened("1"), opened("2"), opened("3"))))

    store.commit_plan(PlanCommit(mark=two.seq))
    store.commit_plan(PlanCommit(mark=one.seq))

    stored = state.open().load()
    assert stored.mark == two.seq
    assert stored.transitions == (three,)


def test_a_closed_incident_is_loaded_until_its_end_was_told(state: State) -> None:
    store = state.open()
    closed = incident(closed_at=T0 + HOUR, close_reason=CloseReason.RECOVERED)
    over = Transition(incident="aaaa", change=Change.CLOSED, at=T0 + HOUR)

    (change,) = store.commit_slot(slot(incidents=(closed,), transitions=(over,)))
    unplanned = store.load().incidents
    (row,) = store.commit_plan(PlanCommit(mark=change.seq, deliveries=(delivery(),)))
    untold = store.load().incidents
    store.commit_attempt(told(row))

    assert unplanned == untold == (closed,)
    stored = store.load()
    assert stored.incidents == ()
    assert stored.ledger == ()


def test_rows_get_ids_and_planning_twice_sends_once(state: State) -> None:
    store = state.open()
    commit = PlanCommit(mark=1, deliveries=(delivery(channel="team"), delivery(channel="oncall")))

    team, oncall = store.commit_plan(commit)
    store.commit_attempt(told(team))
    again = store.commit_plan(commit)

    assert team.id != oncall.id
    assert [row.id for row in again] == [team.id, oncall.id]
    assert [row.state for row in again] == [DeliveryState.DONE, DeliveryState.PENDING]
    assert [row.id for row in store.load().outbox] == [oncall.id]


def test_only_pending_rows_are_superseded(state: State) -> None:
    store = state.open()
    waits, flies, done = store.commit_plan(
        PlanCommit(mark=1, deliveries=tuple(delivery(channel=name) for name in ("a", "b", "c")))
    )
    store.start_attempt(flies)
    store.commit_attempt(told(done))

    store.commit_plan(PlanCommit(mark=2, superseded=(waits.id, flies.id, done.id)))

    states = {row.notification.channel: row.state for row in state.reader().deliveries("aaaa")}
    assert states == {"a": DeliveryState.SUPERSEDED, "b": DeliveryState.INFLIGHT, "c": DeliveryState.DONE}


def test_what_was_in_flight_comes_back_pending_and_says_that_it_may_be_a_repeat(state: State) -> None:
    store = state.open()
    (row,) = store.commit_plan(PlanCommit(mark=1, deliveries=(delivery(),)))
    store.commit_slot(slot())
    store.start_attempt(row)

    (back,) = state.open().load().outbox
    (again,) = state.open().load().outbox

    assert back.state is DeliveryState.PENDING
    assert back.notification.maybe_repeat
    assert back.attempts == 1
    assert again == back
    (attempt,) = state.reader().attempts("aaaa")
    assert (attempt.number, attempt.at, attempt.result.answer) == (1, NOW, Answer.UNKNOWN)


def test_every_attempt_is_kept_and_the_ledger_only_changes_when_told(state: State) -> None:
    store = state.open()
    store.commit_slot(slot(incidents=(incident(),)))
    (row,) = store.commit_plan(PlanCommit(mark=1, deliveries=(delivery(),)))
    refused = told(row, Answer.RETRY, retry_after=timedelta(seconds=120))
    accepted = replace(told(refused.delivery), at=Moment(at=T0 + HOUR, watched=2 * HOUR))

    store.start_attempt(row)
    store.commit_attempt(refused)
    between = state.reader().ledger("aaaa")
    store.start_attempt(refused.delivery)
    store.commit_attempt(accepted)
    store.commit_attempt(accepted)

    reader = state.reader()
    assert between == ()
    assert reader.ledger("aaaa") == (accepted.ledger,)
    assert reader.deliveries("aaaa") == (accepted.delivery,)
    assert reader.attempts("aaaa") == (
        AttemptRecord(delivery=row.id, number=1, at=NOW, result=refused.result),
        AttemptRecord(delivery=row.id, number=2, at=accepted.at, result=accepted.result),
    )
    assert state.open().load().ledger == (accepted.ledger,)


def test_what_was_sent_while_nothing_could_be_stored_is_added_when_it_can(state: State) -> None:
    store = state.open()
    row = delivery()

    store.start_attempt(row)
    store.commit_attempt(told(row))
    (known,) = store.commit_plan(PlanCommit(mark=1, deliveries=(row,)))

    assert known.state is DeliveryState.DONE
    assert known.id > 0
    assert len(state.reader().attempts("aaaa")) == 1
    assert store.load().outbox == ()


def test_a_dropped_task_takes_its_streams_and_probes_along(state: State) -> None:
    other = replace(STREAM, key=StreamKey(task="alaya/2"))
    whole = replace(PROBE, key=replace(PROBE.key, task=""))
    item = replace(PROBE, key=replace(PROBE.key, item="ERROR"))
    store = state.open()
    store.commit_slot(slot(tasks=(TASK,), streams=(STREAM, other), probes=(PROBE, item, whole)))
    assert store.load().probes == (whole, PROBE, item)

    store.commit_slot(slot(dropped_tasks=("alaya/1",), streams=(STREAM,)))

    stored = store.load()
    assert stored.tasks == ()
    assert stored.streams == (other,)
    assert stored.probes == (whole,)


def test_seen_lines_are_exactly_those_of_the_newest_commit(state: State) -> None:
    store = state.open()
    store.commit_slot(slot(streams=(STREAM,)))
    moved = replace(STREAM, seen={2**64 - 1: (7, 3), 4: (9, 1)}, cursor_ns=STREAM.cursor_ns + 1, lines=15)

    store.commit_slot(slot(streams=(moved,)))

    assert state.open().load().streams == (moved,)


def test_equal_values_of_one_moment_are_all_kept_and_old_ones_forgotten(state: State) -> None:
    def sample(time_ns: int) -> LogSample:
        return LogSample(metric="log:errors", labels=Labels.of(pod="p-0"), time_ns=time_ns, value=1.0)

    store = state.open()
    store.commit_slot(slot(samples=(sample(5), sample(9), sample(9))))

    late = Moment(at=T0 + HOUR, watched=2 * HOUR)
    store.commit_slot(SlotCommit(moment=late, samples=(sample(9),), forget_samples_before_ns=6))

    assert store.load().samples == (sample(9),) * 3


def test_a_refused_write_changes_nothing_and_the_store_works_again_afterwards(state: State) -> None:
    store = state.open()
    store.commit_slot(slot(alerts=(alert("a1"),)))
    (row,) = store.commit_plan(PlanCommit(mark=1, deliveries=(delivery(),)))
    later = slot(alerts=(alert("a2"),), dropped_alerts=("a1",), transitions=(opened(),))

    with state.refusing():
        for refused in (
            lambda: store.commit_slot(later),
            lambda: store.commit_plan(PlanCommit(mark=2)),
            lambda: store.start_attempt(row),
            lambda: store.commit_attempt(told(row)),
            lambda: store.prune(T0 + 100 * DAY),
        ):
            with pytest.raises(StoreError, match="state file"):
                refused()
        assert store.load().alerts == (alert("a1"),)

    store.commit_slot(later)
    store.commit_attempt(told(row))
    assert store.load().alerts == (alert("a2"),)
    assert store.load().outbox == ()


def test_a_value_that_cannot_be_stored_takes_the_whole_slot_back(state: State) -> None:
    store = state.open()
    huge = LogSample(metric="log:errors", labels=Labels(), time_ns=2**80, value=1.0)

    with pytest.raises(StoreError):
        store.commit_slot(slot(alerts=(alert(),), transitions=(opened(),), samples=(huge,)))

    stored = store.load()
    assert (stored.alerts, stored.transitions, stored.moment) == ((), (), None)


def test_a_start_on_a_state_that_cannot_be_written_still_loads(state: State) -> None:
    store = state.open()
    (row,) = store.commit_plan(PlanCommit(mark=1, deliveries=(delivery(),)))
    store.start_attempt(row)

    with state.refusing():
        (back,) = store.load().outbox

    assert back.notification.maybe_repeat
    assert state.open().load().outbox == (back,)


def test_pruning_keeps_what_open_incidents_and_untold_messages_need(state: State) -> None:
    store = state.open()
    closed = {"closed_at": T0 + HOUR, "close_reason": CloseReason.RECOVERED}
    store.commit_slot(
        slot(incidents=(incident("open"), incident("gone", **closed), incident("untold", **closed)))
    )
    first, reminder, gone, untold = store.commit_plan(
        PlanCommit(
            mark=0,
            deliveries=(
                delivery("open"),
                delivery("open", kind=MessageKind.REMINDER),
                delivery("gone"),
                delivery("untold"),
            ),
        )
    )
    for row in (first, reminder, gone):
        store.commit_attempt(told(row))
    store.commit_slot(
        slot(
            incidents=(incident("unplanned", **closed),),
            transitions=(opened("open"), opened("untold"), opened("unplanned")),
        )
    )
    store.commit_plan(PlanCommit(mark=2))

    store.prune(T0 + 40 * DAY)

    stored, reader = store.load(), state.reader()
    assert {found.id for found in stored.incidents} == {"open", "untold", "unplanned"}
    assert [entry.incident for entry in stored.ledger] == ["open"]
    assert stored.outbox == (untold,)
    assert [change.incident for change in stored.transitions] == ["unplanned"]
    assert [row.id for row in reader.deliveries("open")] == [first.id]
    assert reader.incident("gone") is None
    assert (reader.deliveries("gone"), reader.attempts("gone"), reader.ledger("gone")) == ((), (), ())


def test_pruning_goes_by_age(state: State) -> None:
    store = state.open()
    store.commit_slot(slot(incidents=(incident(closed_at=T0),), transitions=(opened(),)))
    (row,) = store.commit_plan(PlanCommit(mark=1, deliveries=(delivery(),)))
    store.commit_attempt(told(row))

    store.prune(T0 + 6 * DAY)
    after_6_days = state.reader().deliveries("aaaa")
    store.prune(T0 + 29 * DAY)
    after_29_days = state.reader()

    assert len(after_6_days) == 1
    assert after_29_days.deliveries("aaaa") == ()
    assert after_29_days.incident("aaaa") is not None
    assert len(after_29_days.ledger("aaaa")) == 1
    store.prune(T0 + 31 * DAY)
    assert state.reader().incident("aaaa") is None


def test_a_reader_lists_open_incidents_first_then_the_newest(state: State) -> None:
    store = state.open()
    rows = [
        incident("old", opened_at=T0),
        incident("new", opened_at=T0 + 2 * HOUR),
        incident("ended", opened_at=T0 + 3 * HOUR, closed_at=T0 + 4 * HOUR),
    ]
    store.commit_slot(slot(incidents=tuple(rows)))

    reader = state.reader()

    assert [found.id for found in reader.incidents(limit=10)] == ["new", "old", "ended"]
    assert [found.id for found in reader.incidents(limit=1)] == ["new"]
    assert reader.incident("ended") == rows[2]
    assert reader.incident("nobody") is None


def test_ids_are_found_by_their_beginning_the_newest_first(state: State) -> None:
    incidents = (
        incident("abca"),
        incident("abcb", opened_at=T0 + HOUR),
        incident("b%_c", opened_at=T0 + DAY),
    )
    state.open().commit_slot(SlotCommit(moment=NOW, incidents=incidents))
    reader = state.reader()
    assert list(reader.incident_ids("abc", limit=9)) == ["abcb", "abca"]
    assert list(reader.incident_ids("abc", limit=1)) == ["abcb"]
    assert list(reader.incident_ids("abca", limit=9)) == ["abca"]
    assert list(reader.incident_ids("%", limit=9)) == []
    assert list(reader.incident_ids("b%", limit=9)) == ["b%_c"]
    assert len(reader.incident_ids("", limit=9)) == 3


def test_the_changes_of_one_incident_are_told_in_order(state: State) -> None:
    closed = Transition(incident="aaaa", change=Change.CLOSED, at=T0 + HOUR)
    state.open().commit_slot(SlotCommit(moment=NOW, transitions=(opened("aaaa"), opened("bbbb"), closed)))
    found = state.reader().transitions("aaaa")
    assert [(one.change, one.at) for one in found] == [(Change.OPENED, T0), (Change.CLOSED, T0 + HOUR)]
    assert list(state.reader().transitions("zzzz")) == []


def test_a_dropped_stream_is_gone_with_what_it_had_seen_and_may_begin_anew(state: State) -> None:
    kept, dropped = (StreamKey(task="alaya/1", prefilter=text) for text in ("", "ERROR"))
    store = state.open()
    store.commit_slot(
        SlotCommit(
            moment=NOW,
            streams=tuple(StreamState(key=key, cursor_ns=7, seen={1: (7, 1)}) for key in (kept, dropped)),
        )
    )
    store.commit_slot(SlotCommit(moment=NOW, dropped_streams=(dropped,)))
    assert [stream.key for stream in store.load().streams] == [kept]
    fresh = StreamState(key=dropped, cursor_ns=9)
    store.commit_slot(SlotCommit(moment=NOW, streams=(fresh,), dropped_streams=(dropped,)))
    (found,) = [stream for stream in store.load().streams if stream.key == dropped]
    assert (found.cursor_ns, dict(found.seen)) == (9, {})


def test_a_reader_shows_what_is_in_flight_as_such_and_what_was_given_up(state: State) -> None:
    store = state.open()
    flies, dead = store.commit_plan(
        PlanCommit(mark=1, deliveries=(delivery(channel="team"), delivery(channel="mail")))
    )
    store.start_attempt(flies)
    store.commit_attempt(told(dead, Answer.PERMANENT, state=DeliveryState.DEAD))

    reader = state.reader()

    assert [row.state for row in reader.load().outbox] == [DeliveryState.INFLIGHT]
    assert not reader.load().outbox[0].notification.maybe_repeat
    assert [row.notification.channel for row in reader.undelivered(limit=5)] == ["mail"]


def test_a_closed_store_can_be_closed_again(state: State) -> None:
    store = state.open()

    store.close()
    store.close()

    assert state.open().load().moment is None


def test_a_task_that_is_dropped_and_watched_anew_at_once_begins_without_its_past(state: State) -> None:
    store = state.open()
    store.commit_slot(slot(tasks=(TASK,), streams=(STREAM,), probes=(PROBE,)))

    store.commit_slot(slot(dropped_tasks=(TASK.task.key,), tasks=(TASK,)))

    stored = store.load()
    assert stored.tasks == (TASK,)
    assert (stored.streams, stored.probes) == ((), ())


def test_facts_that_nobody_needs_go(state: State) -> None:
    store = state.open()
    store.commit_slot(slot(memory={"one": "1", "two": "2"}))

    store.commit_slot(slot(dropped_memory=("one", "two", "unknown"), memory={"two": "3"}))

    assert store.load().memory == {"two": "3"}
