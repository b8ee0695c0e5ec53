"""Changes: counters that step (J10)."""

from datetime import timedelta

import pytest

from watchdog.core.conditions.kinds import By, Capability, Changes
from watchdog.core.health import Standing
from watchdog.core.labels import Labels
from watchdog.core.rules import Rule
from watchdog.core.tasks import Status


def rule(by=By.TASK, at_least=1.0, **more):
    return Rule(name="xid", condition=Changes(metric="XidErrors", by=by, at_least=at_least), **more)


class Slots:
    """Plays minutes: points come in, the rule is asked, the store is marked."""

    def __init__(self, lab, own=None):
        self.lab, self.rule = lab, own or rule()

    def __call__(self, minute, value, **labels):
        self.lab.put("XidErrors", [minute], value, **({"pod": "p1", "gpu": "g0"} | labels))
        return self.ask(minute)

    def ask(self, minute):
        found = self.lab.happened(self.rule, minute)
        self.lab.store.mark()
        return found


def test_a_gauge_that_sticks_is_one_event(lab):
    play = Slots(lab)
    assert play(0, 0) == ()
    assert [len(play(minute, 31)) for minute in range(1, 8)] == [1, 0, 0, 0, 0, 0, 0]


def test_every_step_of_a_counter_is_an_event(lab):
    play = Slots(lab)
    play(0, 2)
    assert [
        sum(one.count for one in play(m, v)) for m, v in ((1, 3), (2, 3), (3, 4), (4, 9), (5, 0), (6, 1))
    ] == [
        1,
        0,
        1,
        1,
        0,
        1,
    ]


def test_what_is_there_at_the_first_answer_is_baseline(lab):
    """After a restart the source serves history again: its steps were told, or are over."""
    lab.put("XidErrors", [0, 1, 2], [0, 31, 48], pod="p1", gpu="g0")
    assert Slots(lab).ask(2) == ()
    assert len(Slots(lab)(3, 79)) == 1


def test_history_that_arrives_after_the_first_slot_is_baseline_too(lab):
    play = Slots(lab)
    play.ask(1)
    lab.put("XidErrors", [0, 1, 2], [0, 31, 48], pod="p1", gpu="g0")
    assert play.ask(2) == ()


def test_the_first_value_of_a_new_series_is_baseline_but_not_its_second(lab):
    play = Slots(lab)
    play(0, 0)
    assert play(1, 31, gpu="g1") == ()
    assert len(play(2, 48, gpu="g1")) == 1
    lab.put("XidErrors", [3, 3.5], [0, 13], pod="p1", gpu="g2")
    assert len(play.ask(4)) == 1


def test_several_steps_between_two_slots_are_counted(lab):
    play = Slots(lab)
    play(0, 0)
    lab.put("XidErrors", [0.25, 0.5, 0.75, 1], [1, 2, 2, 3], pod="p1", gpu="g0")
    (found,) = play.ask(1)
    assert (found.count, found.at) == (3, lab.at(1))


def test_steps_during_an_outage_are_told_when_it_is_over(lab):
    play = Slots(lab)
    play(0, 0)
    lab.put("XidErrors", [10, 11, 30], [31, 31, 31], pod="p1", gpu="g0")
    (found,) = play.ask(30)
    assert (found.at, found.late) == (lab.at(10), True)


def test_smaller_steps_than_asked_for_are_none(lab):
    play = Slots(lab, rule(at_least=5))
    play(0, 0)
    assert [len(play(m, v)) for m, v in ((1, 4), (2, 9), (3, 13))] == [0, 1, 0]


def test_each_series_has_its_own_fingerprint_and_all_share_the_evidence(lab):
    play = Slots(lab)
    for gpu in ("g0", "g1", "g2"):
        play(0, 0, gpu=gpu)
    lab.put("XidErrors", [1], 31, pod="p1", gpu="g0")
    lab.put("XidErrors", [1], 79, pod="p1", gpu="g1")
    found = play.ask(1)
    assert {one.labels for one in found} == {lab.labels()}
    assert len({one.fingerprint for one in found}) == 2
    evidence = found[0].evidence
    assert (evidence.summary, evidence.affected) == ("XidErrors 0 → 79", 2)
    assert [(m.labels, m.value) for m in evidence.members] == [
        (Labels.of(pod="p1", gpu="g1"), 79.0),
        (Labels.of(pod="p1", gpu="g0"), 31.0),
    ]
    (again,) = play(2, 99)
    assert again.fingerprint in {one.fingerprint for one in found}


@pytest.mark.parametrize(
    ("by", "wanted"), [(By.TASK, {}), (By.POD, {"pod": "p1"}), (By.GPU, {"pod": "p1", "gpu": "g0"})]
)
def test_the_labelset_is_what_by_names(lab, by, wanted):
    play = Slots(lab, rule(by))
    play(0, 0)
    (found,) = play(1, 1)
    assert found.labels == lab.labels(**wanted)


def test_a_new_attempt_begins_with_a_baseline(lab):
    play = Slots(lab)
    play(0, 0)
    lab.change(attempt_started=lab.at(0.5))
    assert play(1, 31) == ()
    assert len(play(2, 48)) == 1


def test_tasks_that_are_not_judged_are_passed_over(lab):
    play = Slots(lab, rule(while_status=frozenset({Status.RUNNING}), after_start=timedelta(minutes=5)))
    play(0, 0)
    lab.change(status=Status.SUCCEEDED)
    assert play(1, 45) == ()
    lab.change(status=Status.RUNNING, attempt_started=lab.at(-10))
    assert play(2, 45) == ()


def test_points_that_end_an_outage_are_looked_at_although_the_source_is_not_trusted_yet(lab):
    play = Slots(lab)
    play(0, 0)
    lab.standings[Capability.METRICS, "src/1"] = Standing.SETTLING
    assert len(play(30, 31)) == 1
    lab.standings[Capability.METRICS, "src/1"] = Standing.GOOD
    assert play(31, 31) == ()
