"""Expected pods and GPUs: remembered, retired quietly, forgotten after a day of watching."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from watchdog.core.expecting import renew_members, retire, retired_notice, see_members
from watchdog.core.labels import Labels
from watchdog.core.moments import Moment, Tick
from watchdog.core.tasks import Status, Task, TaskState
from watchdog.store import codec

T0 = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
TASK = Task(key="alaya/1", source="alaya", id="1", name="llama")


def pod(number: int) -> Labels:
    return Labels.of(pod=f"p{number}")


def gpu(number: int, of: int = 0) -> Labels:
    return Labels.of(pod=f"p{of}", gpu=str(number))


class Play:
    def __init__(self) -> None:
        self.state = TaskState(task=TASK, status=Status.RUNNING)
        self.minute = -1
        self.gone: list[tuple[int, set[Labels]]] = []
        self.notices: list[dict[str, str]] = []

    def minutes(self, count: int, seen: Iterable[Labels], step: timedelta = MINUTE) -> "Play":
        for _ in range(count):
            self.minute += 1
            self.state = see_members(self.state, dict.fromkeys(seen, self.at))
            tick = Tick(
                moment=Moment(at=self.at, watched=timedelta()), elapsed=step, run=step, interval=MINUTE
            )
            before = self.state
            self.state, gone = retire(before, tick, tuple(seen))
            if gone:
                self.notices.append(dict(retired_notice(before, gone).params))
                self.gone.append((self.minute, set(gone)))
        return self

    @property
    def at(self) -> datetime:
        return T0 + self.minute * MINUTE

    @property
    def expected(self) -> set[Labels]:
        return {member.labels for member in self.state.expected}


def test_members_are_remembered_with_first_and_last_sight() -> None:
    play = Play().minutes(10, [pod(0), gpu(0), gpu(1)])
    assert play.expected == {pod(0), gpu(0), gpu(1)}
    member = play.state.expected[0]
    assert (member.first, member.last) == (T0, T0 + 9 * MINUTE)


def test_a_gpu_without_its_pod_renews_the_gpu_of_that_pod() -> None:
    nameless = Labels.of(gpu="0")
    state = Play().minutes(1, [nameless]).minutes(1, [gpu(0)]).state
    assert [member.labels for member in state.expected] == [nameless, gpu(0)]
    later = {nameless: T0 + 20 * MINUTE}
    after = renew_members(state, later)
    assert after == see_members(state, later)
    assert [member.last for member in after.expected] == [T0, T0 + 20 * MINUTE]


def test_a_pod_that_stops_is_still_expected() -> None:  # B3, B4
    play = Play().minutes(10, [pod(n) for n in range(8)]).minutes(600, [pod(n) for n in range(7)])
    assert pod(7) in play.expected
    assert play.gone == []


def test_expected_members_survive_a_restart() -> None:  # B12
    play = Play().minutes(10, [pod(0), pod(1)])
    text = codec.encode(play.state)
    play.state = codec.decode(codec.TASK, text, "a task")
    play.minute += 30 * 60
    play.minutes(5, [pod(0)])
    assert play.expected == {pod(0), pod(1)}


def test_who_is_missing_for_a_day_of_watching_is_forgotten_and_said() -> None:  # B16
    play = Play().minutes(10, [pod(0), pod(1)])
    play.minutes(23, [pod(0)], step=timedelta(hours=1))
    assert play.gone == []
    play.minutes(1, [pod(0)], step=timedelta(hours=1))
    assert play.gone == [(33, {pod(1)})]
    assert play.expected == {pod(0)}


def test_being_seen_again_starts_the_day_anew() -> None:
    play = Play().minutes(1, [pod(0), pod(1)]).minutes(20, [pod(0)], step=timedelta(hours=1))
    play.minutes(1, [pod(0), pod(1)]).minutes(23, [pod(0)], step=timedelta(hours=1))
    assert play.gone == []


def test_the_end_of_the_task_retires_all() -> None:
    play = Play().minutes(5, [pod(0), gpu(0)])
    play.state = replace(play.state, status=Status.SUCCEEDED)
    play.minutes(3, [])
    assert play.gone == [(5, {pod(0), gpu(0)})]
    assert play.expected == set()


def test_a_new_attempt_retires_the_pods_of_the_old_one_once() -> None:
    play = Play().minutes(5, [pod(0), pod(1)])
    play.state = replace(play.state, attempt=2, attempt_started=T0 + 5 * MINUTE)
    play.minutes(1, []).minutes(5, [pod(2), pod(3)])
    assert play.gone == [(5, {pod(0), pod(1)})]
    assert play.expected == {pod(2), pod(3)}


def test_late_data_of_an_earlier_attempt_expects_nobody() -> None:
    state = replace(TaskState(task=TASK), attempt_started=T0)
    assert see_members(state, {pod(0): T0 - MINUTE}) is state


def test_a_pod_that_keeps_its_name_over_attempts_stays() -> None:
    play = Play().minutes(5, [pod(0)])
    play.state = replace(play.state, attempt=2, attempt_started=T0 + 5 * MINUTE)
    play.minutes(5, [pod(0)])
    assert play.gone == []


def test_new_pods_replace_old_ones_with_their_gpus() -> None:
    play = Play().minutes(60, [pod(0), gpu(0), gpu(1), pod(1)])
    play.minutes(4, [pod(1)])
    assert play.gone == []
    play.minutes(5, [pod(1), pod(2), gpu(0, of=2)])
    assert play.gone == [(64, {pod(0), gpu(0), gpu(1)})]


def test_one_new_pod_replaces_one_old_pod() -> None:
    play = Play().minutes(60, [pod(n) for n in range(4)])
    play.minutes(1, [pod(0), pod(1), pod(9)])
    assert play.gone == [(60, {pod(2)})]
    assert pod(3) in play.expected
    play.minutes(60, [pod(0), pod(1), pod(9)])
    assert pod(3) in play.expected


def test_a_new_pod_takes_over_from_the_one_of_its_role() -> None:
    def named(name: str) -> Labels:
        return Labels.of(pod=name)

    old = [named(f"tn-aa-{role}") for role in ("master-0", "worker-0", "worker-1")]
    play = Play().minutes(60, old)
    play.minutes(3, old[:1])
    play.minutes(5, [*old[:1], named("tn-bb-worker-1")])
    assert play.gone == [(63, {named("tn-aa-worker-1")})]  # worker-0 is the one that is missing
    assert named("tn-aa-worker-0") in play.expected


def test_a_pod_that_comes_much_later_replaces_nobody() -> None:
    play = Play().minutes(60, [pod(0), pod(1)]).minutes(15, [pod(0)]).minutes(5, [pod(0), pod(2)])
    assert play.gone == []


def test_a_pod_that_was_there_before_replaces_nobody() -> None:
    play = Play().minutes(1, [pod(0)]).minutes(2, [pod(0), pod(1)]).minutes(30, [pod(1)])
    assert play.gone == []


def test_a_gpu_without_its_pod_is_the_one_of_that_name() -> None:  # B7
    bare = Labels.of(gpu="3")
    play = Play().minutes(3, [gpu(3)])
    for _ in range(60 * 26):
        play.minutes(1, [bare]).minutes(1, [gpu(3)])
    assert play.expected == {gpu(3)}
    assert play.gone == []


def test_a_pod_is_there_as_long_as_any_of_its_gpus_is() -> None:
    play = Play().minutes(3, [pod(0), gpu(0), gpu(1)]).minutes(30, [gpu(0)], step=timedelta(hours=1))
    assert play.gone == [(26, {gpu(1)})]
    assert play.expected == {pod(0), gpu(0)}


def test_labels_that_name_no_member_are_ignored() -> None:
    state = TaskState(task=TASK)
    assert see_members(state, {TASK.identity: T0}) is state


def test_nothing_new_is_no_new_state() -> None:
    play = Play().minutes(3, [pod(0)])
    assert see_members(play.state, {pod(0): play.at}) is play.state


def test_the_note_says_who_and_why() -> None:
    ended = Play().minutes(5, [pod(0), gpu(0)])
    ended.state = replace(ended.state, status=Status.SUCCEEDED)
    attempt = Play().minutes(5, [pod(0), pod(1)])
    attempt.state = replace(attempt.state, attempt=2, attempt_started=T0 + 5 * MINUTE)
    replaced = Play().minutes(60, [pod(0), pod(1)])
    forgotten = Play().minutes(60, [pod(0), pod(1)])
    notes = [
        ended.minutes(1, []).notices,
        attempt.minutes(1, []).notices,
        replaced.minutes(1, [pod(0), pod(2)]).notices,
        forgotten.minutes(25, [pod(0)], step=timedelta(hours=1)).notices,
    ]
    assert notes == [
        [{"task": "llama", "reason": "the task has ended", "pods": "p0"}],
        [
            {
                "task": "llama",
                "reason": "another attempt began, or new pods took their place",
                "pods": "p0, p1",
            }
        ],
        [{"task": "llama", "reason": "another attempt began, or new pods took their place", "pods": "p1"}],
        [{"task": "llama", "reason": "not seen for 24 h of watching", "pods": "p1"}],
    ]


def test_retiring_changes_no_input() -> None:
    play = Play().minutes(60, [pod(0), pod(1)])
    before, members = play.state, play.state.expected
    play.minutes(5, [pod(0), pod(2)])
    assert before.expected == members
