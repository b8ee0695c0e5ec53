"""Health per capability and task: three failures blind, two answers give sight back."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from watchdog.core.conditions.kinds import Capability
from watchdog.core.health import (
    Failure,
    Health,
    Probe,
    ProbeKey,
    Standing,
    in_sight,
    observe,
    only_served,
    only_tasks,
    resumed,
    sound,
    standing,
)

T0 = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
METRICS = ProbeKey(source="alaya", capability=Capability.METRICS, task="alaya/1")
OTHER = ProbeKey(source="alaya", capability=Capability.METRICS, task="alaya/2")
LOGS = ProbeKey(source="alaya", capability=Capability.LOGS, task="alaya/1")
WHOLE = ProbeKey(source="alaya", capability=Capability.METRICS)
LIST = ProbeKey(source="alaya", capability=Capability.LIST)
GPU = ProbeKey(source="alaya", capability=Capability.METRICS, task="alaya/1", item="gpu")
VRAM = ProbeKey(source="alaya", capability=Capability.METRICS, task="alaya/1", item="vram")


def after(pattern: str, key: ProbeKey = METRICS, health: Health | None = None) -> Health:
    """x = a failure, o = a good answer, one a minute."""
    health = health or Health()
    for minute, letter in enumerate(pattern):
        failure = Failure.TIMEOUT if letter == "x" else None
        probe = Probe(key=key, at=T0 + timedelta(minutes=minute), failure=failure, detail=f"no {minute}")
        health = observe(health, probe)
    return health


def test_three_failures_in_a_row_are_blindness() -> None:
    assert not after("xx").states[METRICS].blind
    assert not after("xxoxx").states[METRICS].blind
    state = after("oxxx").states[METRICS]
    assert state.blind
    assert state.since == T0 + timedelta(minutes=1)
    assert (state.failure, state.detail) == (Failure.TIMEOUT, "no 3")


def test_two_good_answers_in_a_row_give_sight_back() -> None:
    assert after("xxxo").states[METRICS].blind
    assert after("xxxoxo").states[METRICS].blind
    state = after("xxxoo").states[METRICS]
    assert not state.blind
    assert (state.since, state.failure, state.failures) == (None, None, 0)


def test_standing_goes_through_settling() -> None:
    expected = {
        "o": "good",
        "ox": "failing",
        "oxo": "good",
        "xxx": "failing",
        "xxxo": "settling",
        "xxxoo": "good",
    }
    assert {pattern: str(standing(after(pattern), METRICS)) for pattern in expected} == expected


def test_what_was_never_asked_stands_as_failing() -> None:
    assert standing(Health(), METRICS) is Standing.FAILING


def test_one_task_or_capability_does_not_blind_another() -> None:
    health = after("xxx", METRICS, after("o", LOGS, after("o", OTHER, after("xxx", LIST))))
    assert standing(health, METRICS) is Standing.FAILING
    assert standing(health, OTHER) is Standing.GOOD
    assert standing(health, LOGS) is Standing.GOOD


def test_the_whole_source_question_speaks_for_every_task() -> None:
    health = after("x", WHOLE, after("o", OTHER))
    assert standing(health, OTHER) is Standing.FAILING
    health = after("xxxo", WHOLE, after("o", OTHER))
    assert standing(health, OTHER) is Standing.SETTLING
    assert standing(after("o", WHOLE), OTHER) is Standing.GOOD
    assert standing(after("o", WHOLE, after("x", OTHER)), OTHER) is Standing.FAILING


def test_one_metric_does_not_blind_another() -> None:
    health = after("xxx", VRAM, after("o", GPU))
    assert standing(health, VRAM) is Standing.FAILING
    assert standing(health, GPU) is Standing.GOOD
    assert standing(after("xxxo", VRAM, after("o", GPU)), VRAM) is Standing.SETTLING
    assert standing(after("o", VRAM, after("x", WHOLE, after("o", GPU))), GPU) is Standing.FAILING


def test_all_metrics_of_a_task_together_are_as_good_as_the_worst_that_was_ever_answered() -> None:
    assert standing(after("ox", VRAM, after("o", GPU)), METRICS) is Standing.FAILING
    assert standing(after("oxxxo", VRAM, after("o", GPU)), METRICS) is Standing.SETTLING
    assert standing(after("o", VRAM, after("o", GPU)), METRICS) is Standing.GOOD
    assert standing(after("xxxxx", VRAM, after("o", GPU)), METRICS) is Standing.GOOD
    assert standing(after("xxxxx", VRAM), METRICS) is Standing.FAILING
    assert standing(after("o", VRAM), OTHER) is Standing.FAILING


def test_an_item_that_is_not_asked_by_itself_is_part_of_the_whole_question() -> None:
    errors = ProbeKey(source="alaya", capability=Capability.LOGS, task="alaya/1", item="ERROR")
    assert standing(after("o", LOGS), errors) is Standing.GOOD
    assert standing(after("x", LOGS), errors) is Standing.FAILING
    assert standing(after("x", errors, after("o", LOGS)), LOGS) is Standing.GOOD


def test_a_start_trusts_nothing_and_keeps_blindness() -> None:
    stored = after("xxx", METRICS, after("o", OTHER)).states.values()
    health = resumed(stored)
    assert standing(health, OTHER) is Standing.FAILING
    assert health.states[METRICS].blind
    assert standing(after("oo", METRICS, health), METRICS) is Standing.GOOD


def test_tasks_no_longer_watched_are_let_go() -> None:
    health = after("o", METRICS, after("o", OTHER, after("o", LIST)))
    assert set(only_tasks(health, {"alaya/2"}).states) == {OTHER, LIST}
    assert only_tasks(health, {"alaya/1", "alaya/2"}) is health


def test_what_a_source_can_be_asked_no_more_is_let_go() -> None:
    status = ProbeKey(source="alaya", capability=Capability.STATUS, task="alaya/1")
    health = after("o", METRICS, after("o", LIST, after("o", status)))
    fewer = only_served(health, {"alaya": {Capability.METRICS, Capability.LIST}})
    assert set(fewer.states) == {METRICS, LIST}
    assert only_served(health, {"alaya": frozenset(Capability)}) is health
    assert not only_served(health, {"other": frozenset(Capability)}).states


def test_observing_leaves_the_old_health_as_it_was() -> None:
    health = after("xx")
    states = dict(health.states)
    observe(health, Probe(key=METRICS, at=T0, failure=Failure.TIMEOUT))
    assert health.states == states


@given(
    patterns=st.dictionaries(
        st.sampled_from([METRICS, OTHER, LOGS, WHOLE, LIST, GPU, VRAM]), st.text("xo", min_size=1, max_size=6)
    )
)
def test_what_is_sound_is_what_stands_good(patterns: dict[ProbeKey, str]) -> None:
    health = Health()
    for key, pattern in patterns.items():
        health = after(pattern, key, health)
    good: dict[tuple[Capability, str], set[str]] = {}
    for key in health.states:
        if key.task and standing(health, key) is Standing.GOOD:
            good.setdefault((key.capability, key.item), set()).add(key.task)
    assert sound(health) == good
    for capability in Capability:
        tasks = {key.task for key in health.states if key.task and key.capability is capability}
        whole = {task: ProbeKey(source="alaya", capability=capability, task=task) for task in tasks}
        assert in_sight(health, capability) == {
            task for task, key in whole.items() if standing(health, key) is Standing.GOOD
        }
