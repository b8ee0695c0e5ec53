"""Evaluation as a whole: dispatch, needs, one slot against many, order and repetition of answers."""

from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from watchdog.core.conditions.kinds import (
    Absent,
    Across,
    Aggregate,
    By,
    Changes,
    Comparison,
    LogCount,
    LogEvent,
    LogMatch,
    Peers,
    Share,
    Silent,
    StatusEnters,
    StatusIs,
    Threshold,
)
from watchdog.core.evaluation import needs
from watchdog.core.labels import labels_id
from watchdog.core.rules import Level, Rule, Severity
from watchdog.core.tasks import Status

TEN = timedelta(minutes=10)
LOW = Comparison(above=False, threshold=0.4, clear=0.6)


def named(condition, **more):
    return Rule(name="r", condition=condition, **more)


def threshold(aggregate, by=By.TASK, across=Across.AVG):
    window = None if aggregate is Aggregate.LAST else TEN
    return named(
        Threshold(metric="gpu", aggregate=aggregate, window=window, comparison=LOW, by=by, across=across)
    )


STATES = [
    *(threshold(aggregate, by) for aggregate in Aggregate for by in By),
    *(threshold(Aggregate.AVG, across=across) for across in Across),
    named(Share(metric="gpu", window=TEN, comparison=LOW, at_least=0.5, clear_below=0.25, by=By.POD)),
    *(
        named(Peers(metric="gpu", aggregate=Aggregate.AVG, window=TEN, above=False, ratio=0.8, by=by))
        for by in By
    ),
    *(named(Absent(metric="gpu", by=by)) for by in By),
]


def fill(lab, parts):
    """parts: (pod, gpu, first minute, values) taken in one after the other."""
    for pod, gpu, first, values in parts:
        lab.put("gpu", range(first, first + len(values)), values, pod=f"p{pod}", gpu=f"g{gpu}", when=60)


PARTS = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.integers(0, 1),
        st.integers(0, 55),
        st.lists(st.sampled_from([0.0, 0.3, 0.5, 1.0]), min_size=1, max_size=20).map(lambda v: v[:5] * 4),
    ),
    min_size=1,
    max_size=10,
)


@settings(max_examples=60, deadline=None)
@given(
    parts=PARTS,
    expected=st.sets(st.integers(0, 3)),
    start=st.none() | st.integers(1, 50),
    rules=st.lists(st.sampled_from(STATES), min_size=6, max_size=6),
)
def test_one_slot_is_the_same_column_of_many(new_lab, parts, expected, start, rules):
    lab = new_lab()
    lab.change(nodes={"p0": "n0", "p1": "n0", "p2": "n1"}, attempt_started=start and lab.at(start))
    lab.expect([{"pod": f"p{pod}", "gpu": "g0"} for pod in expected])
    fill(lab, parts)
    minutes = [40 + n * 1.5 for n in range(20)]
    for rule in rules:
        many = lab.evaluate(rule, *minutes)
        for t in (0, 7, 13, 19):
            one = lab.evaluate(rule, minutes[t])
            places = [many.labels.index(labels) for labels in one.labels]
            assert np.array_equal(one.outcome[:, 0], many.outcome[places, t]), rule.condition
            # Points are added up in another order: the last digit may differ, as it may between two machines.
            close = {"rtol": 1e-13, "atol": 1e-15, "equal_nan": True}
            assert np.allclose(one.value[:, 0], many.value[places, t], **close), rule.condition
            assert np.array_equal(one.since_ns[:, 0], many.since_ns[places, t])


@settings(max_examples=40, deadline=None)
@given(parts=PARTS, data=st.data())
def test_order_of_answers_and_repetition_are_irrelevant(new_lab, parts, data):
    distinct = list(
        {(pod, gpu, first): (pod, gpu, first, values) for pod, gpu, first, values in parts}.values()
    )
    flat = [
        (pod, gpu, first, [pod + first / 60])
        for pod, gpu, first, values in distinct
        for first in range(first, first + len(values))
    ]
    straight, mixed = new_lab(), new_lab()
    fill(straight, sorted(flat))
    fill(mixed, [*data.draw(st.permutations(flat)), *data.draw(st.lists(st.sampled_from(flat), max_size=5))])
    for rule in (threshold(Aggregate.AVG, By.GPU), threshold(Aggregate.MAX)):
        left, right = straight.evaluate(rule, 50, 60), mixed.evaluate(rule, 50, 60)
        assert left.labels == right.labels
        assert np.array_equal(left.outcome, right.outcome)
        assert np.allclose(left.value, right.value, equal_nan=True)


@pytest.mark.parametrize(
    "rule", STATES, ids=lambda rule: f"{type(rule.condition).__name__}-{rule.condition.by}"
)
def test_every_verdict_can_be_explained(lab, rule):
    lab.change(nodes={"p0": "n0"})
    lab.expect([{"pod": "p0", "gpu": "g0"}, {"pod": "p9", "gpu": "g0"}])
    for n in range(4):
        lab.put("gpu", range(1, 61), n / 4, pod=f"p{n}", gpu="g0")
    found = lab.evaluate(rule, 20, 60)
    for g in range(len(found.labels)):
        for t in range(2):
            evidence = found.explain(g, t)
            assert evidence.summary
            assert evidence.covered <= evidence.of
            assert evidence.value is None or evidence.value == pytest.approx(found.value[g, t])


def test_what_each_rule_needs():
    hold = timedelta(minutes=45)
    assert needs(
        named(Threshold(metric="gpu", aggregate=Aggregate.AVG, window=TEN, comparison=LOW), hold=hold)
    ) == {("gpu", timedelta(minutes=55))}
    assert needs(threshold(Aggregate.LAST)) == {("gpu", TEN)}
    levels = (Level(hold=timedelta(), severity=Severity.INFO), Level(hold=hold, severity=Severity.CRITICAL))
    assert needs(named(threshold(Aggregate.AVG).condition, levels=levels)) == {("gpu", timedelta(minutes=55))}
    assert needs(named(threshold(Aggregate.AVG).condition, hold=timedelta(days=2))) == {
        ("gpu", timedelta(hours=3, minutes=10))
    }
    assert needs(named(Absent(metric="vram"))) == {("vram", TEN)}
    assert needs(named(Changes(metric="XidErrors"))) == {("XidErrors", timedelta(hours=1))}
    count = LogCount(lines=LogMatch(match=()), within=timedelta(minutes=30), comparison=LOW)
    assert needs(named(count)) == {("log:r", timedelta(minutes=30))}
    for condition in (
        Silent(),
        StatusIs(statuses=frozenset({Status.QUEUED})),
        LogEvent(lines=LogMatch(match=())),
    ):
        assert needs(named(condition)) == frozenset()


def test_events_have_no_state_and_states_do_not_happen(lab):
    for event in (
        Changes(metric="gpu"),
        StatusEnters(statuses=frozenset()),
        LogEvent(lines=LogMatch(match=())),
    ):
        with pytest.raises(TypeError, match="event"):
            lab.evaluate(named(event), 60)
    assert lab.happened(threshold(Aggregate.AVG), 60) == ()
    assert lab.happened(named(LogEvent(lines=LogMatch(match=()))), 60) == ()


def test_labelsets_follow_the_set_of_series_and_of_expected_members(lab):
    rule = threshold(Aggregate.AVG, By.POD)
    lab.put("gpu", range(1, 61), 0.1, pod="p1")
    first = lab.evaluate(rule, 60)
    assert lab.evaluate(rule, 60).labels is first.labels
    lab.put("gpu", range(1, 61), 0.1, pod="p2")
    assert [labels["pod"] for labels in lab.evaluate(rule, 60).labels] == ["p1", "p2"]
    lab.expect([{"pod": "p3"}, {"pod": "p1"}, {"pod": "p2"}])
    assert [labels["pod"] for labels in lab.evaluate(rule, 60).labels] == ["p1", "p2", "p3"]
    lab.store.forget(before_ns=lab.ns(61))
    assert [labels["pod"] for labels in lab.evaluate(rule, 60).labels] == ["p1", "p2", "p3"]
    lab.change(expected=())
    assert [labels_id(labels) for labels in lab.evaluate(rule, 60).labels] == [labels_id(lab.labels())]
