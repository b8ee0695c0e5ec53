"""Status changes, attempts, vanishing, and the joined reading of status, metrics and logs."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from watchdog.core.health import Standing
from watchdog.core.tasks import Status, StatusChange, Task, TaskObservation, TaskState
from watchdog.core.tracking import Diagnosis, diagnose, list_shrank, missed_in_list, observe_task

T0 = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
TASK = Task(key="alaya/llama", source="alaya", id="1", name="llama")
Q, L, R, P, U = Status.QUEUED, Status.LOADING, Status.RUNNING, Status.PAUSED, Status.UNKNOWN
S, X, C, V = Status.SUCCEEDED, Status.FAILED, Status.CANCELED, Status.VANISHED


def seen(status: Status, **more: object) -> TaskObservation:
    return replace(TaskObservation(task=TASK, status=status, status_text=str(status).upper()), **more)  # type: ignore[arg-type]


class Play:
    def __init__(self, state: TaskState | None = None) -> None:
        self.state = state
        self.minute = -1
        self.changes: list[tuple[int, Status, Status]] = []

    def see(self, *observations: TaskObservation | Status, listed: bool = False) -> "Play":
        for one in observations:
            self.minute += 1
            observation = seen(one) if isinstance(one, Status) else one
            self.state, changes = observe_task(self.state, observation, self.at, listed=listed)
            self._note(changes)
        return self

    def miss(self, count: int = 1, *, complete: bool = True) -> "Play":
        for _ in range(count):
            self.minute += 1
            assert self.state is not None
            self.state, changes = missed_in_list(self.state, self.at, complete=complete)
            self._note(changes)
        return self

    def _note(self, changes: tuple[StatusChange, ...]) -> None:
        self.changes += [(self.minute, change.before, change.after) for change in changes]

    @property
    def at(self) -> datetime:
        return T0 + self.minute * MINUTE

    @property
    def now(self) -> TaskState:
        assert self.state is not None
        return self.state


@pytest.mark.parametrize("status", list(Status))
def test_the_first_answer_is_the_baseline(status: Status) -> None:  # C10, D13
    play = Play().see(status, status, status)
    assert play.changes == []
    assert play.now.status is status
    assert play.now.status_since == T0
    assert play.now.watched_since == T0


def test_a_state_made_before_any_answer_is_no_baseline() -> None:
    play = Play(TaskState(task=TASK, watched_since=T0 - MINUTE)).see(S)
    assert play.changes == []
    assert play.now.watched_since == T0 - MINUTE


def test_entering_a_status_is_one_change() -> None:
    play = Play().see(R, R, seen(X, reason="OOMKilled"), X)
    assert play.changes == [(2, R, X)]
    assert play.now.status_since == T0 + 2 * MINUTE
    assert play.now.reason == "OOMKilled"


def test_a_change_carries_the_words_of_the_source() -> None:
    state, _ = observe_task(None, seen(R), T0)
    _, (change,) = observe_task(state, seen(P, status_text="Suspended", reason="overdraft"), T0 + MINUTE)
    assert (change.text, change.reason, change.at) == ("Suspended", "overdraft", T0 + MINUTE)


def test_an_unknown_word_is_kept_and_is_no_end() -> None:
    play = Play().see(R, seen(U, status_text="Hibernating"))
    assert play.now.status_text == "Hibernating"
    assert play.now.status.counts_as_running
    assert play.now.attempt == 1


# Attempts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("story", "attempt"),
    [
        ([R, R, R], 1),
        ([Q, L, R], 1),
        ([Q, Q, R, R], 1),
        ([R, P, R], 2),
        ([R, P, Q, L, R], 2),
        ([R, Q, R], 2),
        ([Q, R, Q, R], 2),
        ([R, X, R], 2),
        ([R, X, L, R], 2),
        ([R, S], 1),
        ([S, R], 2),
        ([P, R], 2),
        ([R, U, R], 1),
        ([R, V, R], 1),
        ([R, L, R], 1),
        ([R, X, R, X, R], 3),
    ],
)
def test_running_again_is_another_attempt(story: list[Status], attempt: int) -> None:
    assert Play().see(*story).now.attempt == attempt


def test_an_attempt_starts_when_it_is_first_seen_running_or_when_the_source_says() -> None:
    assert Play().see(R).now.attempt_started is None
    assert Play().see(Q, R).now.attempt_started == T0 + MINUTE
    assert Play().see(seen(R, started=T0 - MINUTE)).now.attempt_started == T0 - MINUTE
    assert Play().see(R, P, P, R).now.attempt_started == T0 + 3 * MINUTE
    assert Play().see(R, P, Q, L, R).now.attempt_started == T0 + 4 * MINUTE


def test_a_later_start_is_another_attempt_and_an_earlier_one_a_correction() -> None:
    play = Play().see(Q, R).see(seen(R, started=T0 + timedelta(seconds=40)))
    assert play.now.attempt == 1
    assert play.now.attempt_started == T0 + timedelta(seconds=40)
    play.see(seen(R, started=T0 + timedelta(seconds=41)))
    assert play.now.attempt == 1
    play.see(seen(R, started=T0 + 3 * MINUTE))
    assert play.now.attempt == 2
    assert play.now.attempt_started == T0 + 3 * MINUTE


def test_a_growing_restart_count_is_another_attempt() -> None:
    play = Play().see(seen(R, restarts=3, started=T0 - MINUTE), seen(R, restarts=3, started=T0 - MINUTE))
    assert play.now.attempt == 1
    play.see(seen(R, restarts=4, started=T0 - MINUTE))
    assert play.now.attempt == 2
    assert play.now.attempt_started == play.at, "the source's start is that of the first life"
    assert play.see(R, seen(R, restarts=4)).now.attempt == 2


def test_a_new_cloud_id_is_another_attempt_of_the_same_task() -> None:
    new = replace(TASK, id="2")
    play = Play().see(R, X, seen(Q, task=new), seen(Q, task=new), seen(R, task=new))
    assert play.now.attempt == 2
    assert play.now.task == replace(TASK, id="2")
    assert play.now.attempt_started == play.at
    assert play.changes == [(1, R, X), (2, X, Q), (4, Q, R)]


def test_nodes_are_remembered_within_an_attempt() -> None:
    play = Play().see(seen(R, nodes={"p0": "n0"}), R, seen(R, nodes={"p1": "n1"}))
    assert play.now.nodes == {"p0": "n0", "p1": "n1"}
    play.see(P, seen(R, nodes={"p2": "n2"}))
    assert play.now.nodes == {"p2": "n2"}


# The list ------------------------------------------------------------------------------------------


def test_a_task_vanishes_after_two_whole_lists_without_it() -> None:
    play = Play().see(R, R, listed=True).miss()
    assert play.changes == []
    play.miss(3)
    assert play.changes == [(3, R, V)]
    assert play.now.status is V


def test_being_listed_again_starts_the_count_anew() -> None:
    play = Play().see(R, listed=True).miss().see(R, listed=True).miss()
    assert play.changes == []


def test_nothing_follows_from_an_incomplete_list() -> None:
    assert Play().see(R, listed=True).miss(9, complete=False).changes == []


def test_a_task_that_no_list_ever_had_does_not_vanish() -> None:
    assert Play().see(R).miss(9).changes == []


@pytest.mark.parametrize("status", [S, X, C])
def test_an_ended_task_does_not_vanish(status: Status) -> None:
    play = Play().see(R, status, listed=True).miss(9)
    assert play.now.status is status


@pytest.mark.parametrize(
    ("before", "now", "shrank"),
    [
        (1, 0, False),
        (2, 0, False),
        (3, 0, True),
        (20, 9, True),
        (20, 10, False),
        (20, 19, False),
        (0, 9, False),
    ],
)
def test_a_list_that_loses_most_tasks_at_once_is_not_trusted(before: int, now: int, shrank: bool) -> None:
    assert list_shrank(before, now) is shrank


def test_observing_changes_no_input() -> None:
    state, _ = observe_task(None, seen(R, nodes={"p0": "n0"}), T0)
    copy = replace(state, nodes=dict(state.nodes))
    observe_task(state, seen(X, nodes={"p1": "n1"}), T0 + MINUTE)
    missed_in_list(state, T0, complete=True)
    assert state == copy


# Joined reading --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "standing", "fresh", "flowing", "expected"),
    [
        (R, Standing.GOOD, True, True, Diagnosis.NONE),
        (R, Standing.GOOD, False, True, Diagnosis.METRICS_PATH),
        (R, Standing.FAILING, True, True, Diagnosis.METRICS_PATH),
        (R, Standing.GOOD, False, False, Diagnosis.WEDGED_OR_BLIND),
        (R, Standing.FAILING, False, False, Diagnosis.WEDGED_OR_BLIND),
        (R, Standing.GOOD, True, False, Diagnosis.LOG_PATH),
        (U, Standing.GOOD, False, True, Diagnosis.METRICS_PATH),
        (S, Standing.GOOD, False, False, Diagnosis.ENDED),
        (X, Standing.FAILING, False, True, Diagnosis.ENDED),
        (V, Standing.FAILING, False, False, Diagnosis.VANISHED),
        (P, Standing.GOOD, False, False, Diagnosis.NOT_RUNNING),
        (Q, Standing.GOOD, False, False, Diagnosis.NOT_RUNNING),
    ],
)
def test_status_metrics_and_logs_are_read_together(
    status: Status, standing: Standing, fresh: bool, flowing: bool, expected: Diagnosis
) -> None:
    assert diagnose(status, standing, fresh=fresh, flowing=flowing) is expected
