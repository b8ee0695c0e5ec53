"""Blindness folds upwards: one message for what is one failure, and none missing for a second one."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from watchdog.core.alerts import Change
from watchdog.core.blindness import blind_notices, observe_all
from watchdog.core.conditions.kinds import Capability
from watchdog.core.health import Failure, Health, Probe, ProbeKey
from watchdog.core.incidents import Book, apply
from watchdog.core.labels import Labels
from watchdog.core.moments import Moment, Tick
from watchdog.core.notices import advance_notices
from watchdog.core.tasks import Task

T0 = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
METRICS, LOGS, LIST = Capability.METRICS, Capability.LOGS, Capability.LIST


def key(task: int | None, capability: Capability = METRICS, item: str = "") -> ProbeKey:
    name = "" if task is None else f"alaya/{task}"
    return ProbeKey(source="alaya", capability=capability, task=name, item=item)


class Play:
    """Every key is asked once a minute; those in `failing` fail."""

    def __init__(
        self,
        tasks: int,
        capabilities: Iterable[Capability] = (METRICS,),
        *,
        listed: bool = False,
        items: Iterable[str] = ("",),
    ) -> None:
        self.tasks = [
            Task(key=f"alaya/{n}", source="alaya", id=str(n), name=f"run-{n}") for n in range(tasks)
        ]
        self.keys = [
            key(n, capability, item)
            for capability in capabilities
            for n in range(tasks)
            for item in (items if capability is METRICS else ("",))
        ]
        self.keys += [key(None, LIST)] if listed else []
        self.health, self.book, self.minute = Health(), Book(), 0
        self.said: list[tuple[int, str, str]] = []

    def minutes(
        self,
        count: int,
        failing: Iterable[ProbeKey] = (),
        failure: Failure = Failure.TIMEOUT,
        *,
        silent: Iterable[ProbeKey] = (),
    ) -> "Play":
        failing, silent = set(failing), set(silent)
        for _ in range(count):
            at = T0 + self.minute * MINUTE
            probes = [
                Probe(key=one, at=at, failure=failure if one in failing else None, detail="x")
                for one in self.keys
                if one not in silent
            ]
            self.health = observe_all(self.health, probes)
            moment = Moment(at=at, watched=self.minute * MINUTE)
            tick = Tick(moment=moment, elapsed=MINUTE, run=moment.watched, interval=MINUTE)
            step = advance_notices(blind_notices(self.health, self.tasks), self.book, tick)
            self.book = apply(self.book, step)
            subjects = {one.id: one.params["subject"] for one in step.incidents}
            words = {Change.OPENED: "blind", Change.CLOSED: "sees"}
            self.said += [
                (self.minute, words[one.change], subjects[one.incident]) for one in step.transitions
            ]
            self.minute += 1
        return self

    def of(self, *items: str, task: int | None = None) -> list[ProbeKey]:
        """The questions about these metrics, of one task or of all."""
        return [one for one in self.keys if one.item in items and task in (None, int(one.task[6:]))]

    def params(self) -> dict[str, str]:
        (incident,) = self.book.open.values()
        return dict(incident.params)


def test_300_tasks_of_a_dead_source_are_one_message() -> None:  # F11, B1, B2
    play = Play(300, (METRICS, LOGS), listed=True).minutes(5)
    play.minutes(20, play.keys).minutes(5)
    assert play.said == [(7, "blind", "alaya"), (26, "sees", "alaya")]


def test_staggered_failures_and_recoveries_are_one_message() -> None:
    play = Play(6).minutes(3)
    first, second = play.keys[:3], play.keys[3:]
    play.minutes(1, first, silent=second).minutes(1, second, silent=first)
    for _ in range(5):
        play.minutes(1, first, silent=second).minutes(1, second, silent=first)
    play.minutes(4, second).minutes(5)
    assert [(word, subject) for _, word, subject in play.said] == [
        ("blind", "alaya/metrics"),
        ("sees", "alaya/metrics"),
    ]


def test_one_capability_is_told_apart_from_the_source() -> None:
    play = Play(4, (METRICS, LOGS), listed=True).minutes(3)
    play.minutes(5, [one for one in play.keys if one.capability is METRICS])
    assert play.said == [(5, "blind", "alaya/metrics")]
    params = play.params()
    assert (params["source"], params["capability"], params["failure"]) == ("alaya", "metrics", "timed out")
    assert params["detail"] == "x"
    assert params["since"] == (T0 + 3 * MINUTE).isoformat()
    assert "task" not in params


def test_a_list_that_fails_does_not_speak_for_metrics() -> None:
    play = Play(4, (METRICS,), listed=True).minutes(3)
    play.minutes(5, [key(None, LIST)], Failure.NOT_JSON)
    assert play.said == [(5, "blind", "alaya/list")]
    assert play.params()["failure"] == "not JSON"


def test_a_single_task_is_told_by_name() -> None:
    play = Play(4).minutes(3).minutes(5, [key(2)], Failure.FORBIDDEN)
    assert play.said == [(5, "blind", "alaya/2/metrics")]
    assert play.params()["task"] == "run-2"
    (incident,) = play.book.open.values()
    assert incident.labels == play.tasks[2].identity


def test_the_only_task_that_is_not_found_is_told_by_name() -> None:
    play = Play(1).minutes(1).minutes(4, [key(0)], Failure.NOT_FOUND)
    assert [subject for _, _, subject in play.said] == ["alaya/0/metrics"]
    play = Play(1).minutes(1).minutes(4, [key(0)], Failure.UNREACHABLE)
    assert [subject for _, _, subject in play.said] == ["alaya/metrics"]


def test_several_tasks_of_many_are_one_message_that_names_them() -> None:
    play = Play(30).minutes(3).minutes(5, [key(n) for n in range(8)])
    assert play.said == [(5, "blind", "alaya/metrics/some")]
    assert play.params()["task"] == "run-0, run-1, run-2, run-3, run-4 (+3)"
    play.minutes(20, [key(0)])
    assert len(play.said) == 1, "seven see again, the message speaks of all"
    play.minutes(2)
    assert play.said[1:] == [(29, "sees", "alaya/metrics/some")]


def test_most_tasks_of_a_source_are_the_source() -> None:
    play = Play(10).minutes(3).minutes(5, [key(n) for n in range(6)])
    assert [subject for _, _, subject in play.said] == ["alaya/metrics"]


def test_a_forbidden_task_does_not_hide_the_outage_of_its_source() -> None:
    play = Play(10).minutes(3).minutes(60, [key(0)], Failure.FORBIDDEN)
    play.minutes(10, play.keys)
    assert play.said[1:] == [(65, "blind", "alaya/metrics")]
    play.minutes(15, [key(0)])
    assert play.said[2:] == [(74, "sees", "alaya/metrics")]


def test_what_lingers_after_an_outage_is_told_by_itself() -> None:
    play = Play(10).minutes(3).minutes(10, play_keys := [key(n) for n in range(10)])
    play.minutes(11, [key(0)])
    assert [word for _, word, _ in play.said] == ["blind"]
    play.minutes(1, [key(0)])
    assert sorted(play.said[1:]) == [(24, "blind", "alaya/0/metrics"), (24, "sees", "alaya/metrics")]
    play.minutes(10, play_keys)
    assert play.said[3:] == [(27, "blind", "alaya/metrics")], "a second outage is told"


def test_a_wider_failure_of_the_same_outage_is_no_second_message() -> None:
    play = Play(4, (METRICS, LOGS)).minutes(3)
    metrics = [one for one in play.keys if one.capability is METRICS]
    play.minutes(6, metrics).minutes(10, play.keys)
    assert play.said == [(5, "blind", "alaya/metrics")]
    assert play.params()["capability"] == "logs, metrics"
    play.minutes(3)
    assert play.said[1:] == [(20, "sees", "alaya/metrics")]


def test_a_later_failure_of_another_capability_is_told() -> None:
    play = Play(4, (METRICS, LOGS)).minutes(3)
    metrics = [one for one in play.keys if one.capability is METRICS]
    play.minutes(30, metrics).minutes(10, play.keys)
    assert [subject for _, word, subject in play.said if word == "blind"] == ["alaya/metrics", "alaya"]


def test_tasks_that_are_not_asked_any_more_do_not_hide_an_outage() -> None:
    play = Play(4).minutes(3)
    ended = [key(n) for n in range(3)]
    play.minutes(31, silent=ended)
    play.minutes(5, [key(3)], silent=ended)
    assert [subject for _, _, subject in play.said] == ["alaya/metrics"]


def test_blindness_survives_a_restart_without_a_second_message() -> None:
    play = Play(4).minutes(3).minutes(5, [key(n) for n in range(4)])
    play.health = Health(states={one: state for one, state in play.health.states.items() if state.blind})
    play.minutes(5, play.keys).minutes(3)
    assert [word for _, word, _ in play.said] == ["blind", "sees"]


def test_keys_of_unwatched_tasks_say_nothing() -> None:
    play = Play(2).minutes(3).minutes(3, [key(0)], Failure.FORBIDDEN)
    assert blind_notices(play.health, play.tasks[1:]) == ()
    notices = blind_notices(play.health, play.tasks)
    assert [notice.labels for notice in notices if notice.active] == [play.tasks[0].identity]
    assert all(notice.labels == Labels.of(source="alaya") for notice in notices if not notice.active)


FOUR = ("cpu", "gpu", "memory", "vram")


def test_one_metric_of_one_task_is_told_with_its_name() -> None:
    play = Play(4, items=FOUR).minutes(3).minutes(5, play_vram(4, 2))
    assert play.said == [(5, "blind", "alaya/2/metrics:vram")]
    assert (play.params()["task"], play.params()["items"]) == ("run-2", "vram")
    (incident,) = play.book.open.values()
    assert incident.labels == play.tasks[2].identity
    play.minutes(3)
    assert play.said[1:] == [(9, "sees", "alaya/2/metrics:vram")]


def play_vram(tasks: int, *own: int) -> list[ProbeKey]:
    return [key(n, METRICS, "vram") for n in own or range(tasks)]


def test_one_metric_of_most_tasks_is_one_message() -> None:
    play = Play(30, items=FOUR).minutes(3).minutes(5, play_vram(30))
    assert play.said == [(5, "blind", "alaya/metrics:vram")]
    assert play.params()["items"] == "vram"
    assert "task" not in play.params()


def test_one_metric_of_several_tasks_names_them_in_one_message() -> None:
    play = Play(30, items=FOUR).minutes(3).minutes(5, play_vram(30, 3, 4, 5))
    assert play.said == [(5, "blind", "alaya/metrics:vram/some")]
    assert play.params()["task"] == "run-3, run-4, run-5"


def test_two_metrics_that_fail_together_are_one_message() -> None:
    for tasks, subject in ((4, "alaya/2/metrics:gpu"), (30, "alaya/metrics:gpu")):
        play = Play(tasks, items=FOUR).minutes(3)
        play.minutes(1, play.of("gpu", task=2 if tasks == 4 else None))
        play.minutes(5, play.of("gpu", "vram", task=2 if tasks == 4 else None))
        assert play.said == [(5, "blind", subject)]
        assert play.params()["items"] == "gpu, vram"


def test_all_metrics_of_a_task_are_told_without_their_names() -> None:
    play = Play(4, items=FOUR).minutes(3).minutes(5, Play(4, items=FOUR).of(*FOUR, task=1))
    assert play.said == [(5, "blind", "alaya/1/metrics")]
    assert "items" not in play.params()


def test_four_metrics_of_the_only_task_are_still_about_that_task() -> None:
    play = Play(1, items=FOUR).minutes(1)
    play.minutes(4, play.keys, Failure.NOT_FOUND)
    assert [subject for _, _, subject in play.said] == ["alaya/0/metrics"]
    play = Play(1, items=FOUR).minutes(1)
    play.minutes(4, play.keys, Failure.UNREACHABLE)
    assert [subject for _, _, subject in play.said] == ["alaya/metrics"]


def test_a_metric_that_always_fails_hides_no_outage_of_the_others() -> None:
    for tasks, subject in ((1, "alaya/metrics"), (12, "alaya/metrics")):
        play = Play(tasks, items=FOUR).minutes(3)
        play.minutes(60, play_vram(tasks))
        play.minutes(10, play.keys).minutes(10, play_vram(tasks))
        assert [word for _, word, _ in play.said] == ["blind", "blind", "sees"]
        assert [told for _, _, told in play.said[1:]] == [subject, subject]


def test_a_metric_that_fails_a_little_earlier_hides_no_outage_of_the_others() -> None:
    play = Play(4, items=FOUR).minutes(3)
    play.minutes(5, play_vram(4)).minutes(10, play.keys)
    assert [subject for _, _, subject in play.said] == ["alaya/metrics:vram", "alaya/metrics"]


def test_a_metric_that_lingers_after_an_outage_is_told_by_itself() -> None:
    play = Play(6, items=FOUR).minutes(3)
    play.minutes(10, play.keys).minutes(11, play_vram(6))
    assert [word for _, word, _ in play.said] == ["blind"]
    play.minutes(1, play_vram(6))
    assert sorted(play.said[1:]) == [(24, "blind", "alaya/metrics:vram"), (24, "sees", "alaya/metrics")]
