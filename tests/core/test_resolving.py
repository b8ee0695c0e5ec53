"""Which tasks are watched: by id without a list, by name through it, under keys that stay."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from watchdog.core.labels import Labels
from watchdog.core.resolving import outlived, resolve
from watchdog.core.ruleset import WatchEntry
from watchdog.core.tasks import Status, Task, TaskObservation, TaskState

T0 = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
BY_ID = WatchEntry(source="alaya", id="77", labels=Labels.of(team="nlp"))
BY_NAME = WatchEntry(source="alaya", name="pretrain-*")
R, X = Status.RUNNING, Status.FAILED


def listed(id_: str, name: str = "pretrain-a", status: Status = R) -> TaskObservation:
    task = Task(key=f"alaya/{id_}", source="alaya", id=id_, name=name, namespace="ns")
    return TaskObservation(task=task, status=status)


class Play:
    """Resolves list after list, remembering states as the engine does."""

    def __init__(self, *watch: WatchEntry) -> None:
        self.watch = watch or (BY_NAME,)
        self.states: dict[str, TaskState] = {}

    def list(self, *observations: TaskObservation) -> dict[str, str]:
        tasks = resolve(self.watch, {"alaya": observations}, self.states)
        status = {one.task.id: one.status for one in observations}
        self.states = {
            task.key: TaskState(task=task, status=status.get(task.id, Status.UNKNOWN), status_since=T0)
            for task in tasks
        }
        return {task.key: task.id for task in tasks}


def test_a_task_by_id_needs_no_list() -> None:
    (task,) = resolve([BY_ID], {}, {})
    assert task == Task(key="alaya/77", source="alaya", id="77", name="77", labels=Labels.of(team="nlp"))


def test_a_name_once_chosen_stays() -> None:
    (before,) = resolve([BY_ID], {}, {})
    states = {before.key: TaskState(task=before)}
    (after,) = resolve([BY_ID], {"alaya": [listed("77", "llama")]}, states)
    assert after.identity == before.identity
    (fresh,) = resolve([BY_ID], {"alaya": [listed("77", "llama")]}, {})
    assert (fresh.name, fresh.namespace) == ("llama", "ns")
    (named,) = resolve([replace(BY_ID, name="mine")], {"alaya": [listed("77", "llama")]}, states)
    assert named.name == "mine"


def test_names_are_found_by_glob_under_a_stable_key() -> None:
    play = Play()
    found = play.list(listed("1"), listed("2", "pretrain-b"), listed("3", "finetune"))
    assert found == {"alaya/pretrain-a": "1", "alaya/pretrain-b": "2"}


def test_a_task_that_was_over_when_first_seen_is_not_taken_up() -> None:
    assert Play().list(listed("1", status=X), listed("2", "pretrain-b", Status.SUCCEEDED)) == {}


def test_a_new_id_under_the_same_name_is_the_same_task() -> None:
    play = Play()
    play.list(listed("1"))
    assert play.list(listed("1", status=X)) == {"alaya/pretrain-a": "1"}
    assert play.list(listed("1", status=X), listed("2")) == {"alaya/pretrain-a": "2"}
    assert play.list(listed("1", status=X), listed("2")) == {"alaya/pretrain-a": "2"}
    assert play.list(listed("3")) == {"alaya/pretrain-a": "3"}, "the old one may be gone from the list"


def test_two_running_tasks_of_one_name_get_keys_with_ids() -> None:
    play = Play()
    both = play.list(listed("1"), listed("2"))
    assert both == {"alaya/pretrain-a/1": "1", "alaya/pretrain-a/2": "2"}
    assert play.list(listed("1"), listed("2", status=X)) == both


def test_the_first_of_two_keeps_its_key() -> None:
    play = Play()
    play.list(listed("1"))
    assert play.list(listed("1"), listed("2")) == {"alaya/pretrain-a": "1", "alaya/pretrain-a/2": "2"}


def test_a_known_task_stays_without_a_list_and_when_it_is_gone_from_it() -> None:
    play = Play()
    found = play.list(listed("1"))
    assert play.list() == found
    assert [task.key for task in resolve(play.watch, {}, play.states)] == list(found)


def test_duplicate_rows_are_one_task() -> None:
    assert Play().list(listed("1"), listed("1")) == {"alaya/pretrain-a": "1"}


def test_a_task_by_id_is_not_found_a_second_time_by_name() -> None:
    play = Play(BY_NAME, replace(BY_ID, name="pretrain-a"))
    assert play.list(listed("77"), listed("2", "pretrain-b")) == {"alaya/77": "77", "alaya/pretrain-b": "2"}


def test_the_first_entry_that_finds_a_task_gives_its_labels() -> None:
    watch = [replace(BY_NAME, labels=Labels.of(team="a")), WatchEntry(source="alaya", name="*")]
    (task,) = resolve(watch, {"alaya": [listed("1")]}, {})
    assert task.labels == Labels.of(team="a")


def test_a_task_of_another_source_is_not_taken() -> None:
    assert resolve([BY_NAME], {"siflow": [listed("1")]}, {}) == ()


def test_a_task_that_left_the_watch_is_not_kept() -> None:
    play = Play()
    play.list(listed("1"))
    play.watch = (WatchEntry(source="alaya", name="other-*"),)
    assert play.list(listed("1")) == {}


def test_tasks_by_name_are_let_go_a_day_after_their_end() -> None:
    play = Play(BY_NAME, BY_ID)
    play.list(listed("1"), listed("2", "pretrain-b"))
    play.list(listed("1", status=X), listed("2", "pretrain-b"), listed("77", status=X))
    assert outlived(play.watch, play.states, T0 + timedelta(hours=24)) == ()
    assert outlived(play.watch, play.states, T0 + timedelta(hours=25)) == ("alaya/pretrain-a",)
