"""Peers: who is beyond the others, and when nobody can be (J16)."""

from datetime import timedelta

import pytest

from watchdog.core.conditions.kinds import Aggregate, By, Middle, Peers
from watchdog.core.outcomes import Outcome
from watchdog.core.rules import Rule

TRUE, FALSE, THIN, NODATA = Outcome.TRUE, Outcome.FALSE, Outcome.THIN, Outcome.NODATA
TEN = range(1, 11)


def rule(*, above=False, ratio=0.5, by=By.POD, middle=Middle.MEDIAN, min_peers=3):
    return Rule(
        name="straggler",
        condition=Peers(
            metric="gpu",
            aggregate=Aggregate.AVG,
            window=timedelta(minutes=10),
            above=above,
            ratio=ratio,
            by=by,
            middle=middle,
            min_peers=min_peers,
        ),
    )


def run(lab, values, **more):
    for n, value in enumerate(values):
        lab.put("gpu", TEN, value, pod=f"p{n}")
    return lab.judge(rule(**more), 10)


def true(verdicts):
    return {name for name, outcome in verdicts.items() if outcome is TRUE}


def test_one_slow_pod_of_eight(lab):
    verdicts = run(lab, [0.95] * 7 + [0.40])
    assert true(verdicts) == {"p7"}
    assert set(verdicts.values()) == {TRUE, FALSE}


def test_all_alike_is_no_straggler(lab):
    assert true(run(lab, [0.40] * 8)) == set()
    assert true(run(lab, [0.40] * 8, ratio=1.5)) == set()


def test_two_of_four_low_is_decided_by_the_middle(lab):
    assert true(run(lab, [0.95, 0.95, 0.05, 0.05])) == {"p2", "p3"}


def test_two_of_four_not_so_low_is_nobody(lab):
    assert true(run(lab, [0.95, 0.95, 0.40, 0.40])) == set()


def test_median_and_mean_differ(lab):
    values = [1.0, 1.0, 1.0, 1.0, 0.45, 0.0, 0.0]
    assert true(run(lab, values, middle=Middle.MEDIAN)) == {"p4", "p5", "p6"}
    assert true(run(lab, values, middle=Middle.MEAN)) == {"p5", "p6"}


def test_a_middle_of_zero_makes_nobody_low(lab):
    assert true(run(lab, [0.0, 0.0, 0.0, 0.5])) == set()


def test_one_far_above_the_others(lab):
    assert true(run(lab, [10.0, 10.0, 10.0, 25.0], above=True, ratio=2)) == {"p3"}
    assert true(run(lab, [0.0, 0.0, 0.0, 5.0], above=True, ratio=2)) == {"p3"}


def test_the_level_itself_is_not_beyond(lab):
    assert true(run(lab, [0.8, 0.8, 0.8, 0.4])) == set()


def test_a_task_with_too_few_members_yields_nothing(lab):
    assert run(lab, [0.9, 0.1]) == {}


def test_too_few_covered_members_are_thin(lab):
    lab.put("gpu", TEN, 0.9, pod="p0")
    lab.put("gpu", TEN, 0.1, pod="p1")
    lab.put("gpu", [9, 10], 0.9, pod="p2")
    assert set(lab.judge(rule(), 10).values()) == {THIN}


def test_an_uncovered_member_neither_is_judged_nor_counts(lab):
    lab.expect([{"pod": f"p{n}"} for n in range(6)])
    for n in range(4):
        lab.put("gpu", TEN, 0.9 if n else 0.2, pod=f"p{n}")
    lab.put("gpu", [9, 10], 0.0, pod="p4")
    assert lab.judge(rule(), 10) == {
        "p0": TRUE,
        "p1": FALSE,
        "p2": FALSE,
        "p3": FALSE,
        "p4": THIN,
        "p5": NODATA,
    }


def test_members_are_compared_within_their_own_task(lab):
    lab.task("src/2")
    for n in range(3):
        lab.put("gpu", TEN, 0.9, pod=f"p{n}")
        lab.put("gpu", TEN, 0.3, key="src/2", pod=f"q{n}")
    assert true(lab.judge(rule(), 10)) == set()


def test_gpus_of_a_pod_are_averaged_and_nodes_compared(lab):
    lab.change(nodes={"p0": "n0", "p1": "n1", "p2": "n2"})
    for n in range(3):
        for m in range(2):
            lab.put("gpu", TEN, 0.9 if n else 0.1 + 0.2 * m, pod=f"p{n}", gpu=f"g{m}")
    assert true(lab.judge(rule(), 10)) == {"p0"}
    assert true(lab.judge(rule(by=By.NODE), 10)) == {"n0"}
    assert true(lab.judge(rule(by=By.GPU), 10)) == {"p0/g0", "p0/g1"}


def test_the_evidence_compares_with_the_middle(lab):
    run(lab, [0.95] * 7 + [0.40])
    found = lab.evaluate(rule(), 10)
    slow = next(g for g, labels in enumerate(found.labels) if labels["pod"] == "p7")
    evidence = found.explain(slow, 0)
    assert evidence.summary == "avg over 10m, against 50% of the median of its task"
    assert (evidence.value, evidence.threshold) == (pytest.approx(0.4), pytest.approx(0.475))
    assert (evidence.affected, evidence.of, evidence.above) == (1, 1, False)
