"""Threshold and share: levels, coverage, quorum, freshness, attempts, and the evidence."""

from datetime import timedelta

import numpy as np
import pytest

from watchdog.core.conditions.kinds import (
    Across,
    Aggregate,
    By,
    Capability,
    Comparison,
    Share,
    Threshold,
)
from watchdog.core.health import Standing
from watchdog.core.labels import Labels
from watchdog.core.outcomes import MEMBERS_SHOWN, Outcome
from watchdog.core.rules import Rule, Selector
from watchdog.core.tasks import Status

TRUE, FALSE, BETWEEN = Outcome.TRUE, Outcome.FALSE, Outcome.BETWEEN
NODATA, THIN, ERROR = Outcome.NODATA, Outcome.THIN, Outcome.ERROR
HOUR = range(1, 61)


def rule(
    aggregate=Aggregate.AVG,
    window=60,
    *,
    below=None,
    above=None,
    clear=None,
    by=By.TASK,
    across=Across.AVG,
    **more,
):
    level = above if below is None else below
    return Rule(
        name="r",
        condition=Threshold(
            metric="gpu",
            aggregate=aggregate,
            window=None if aggregate is Aggregate.LAST else timedelta(minutes=window),
            comparison=Comparison(above=below is None, threshold=level, clear=clear),
            by=by,
            across=across,
        ),
        **more,
    )


def last(**more):
    return rule(Aggregate.LAST, **more)


def test_an_average_below_the_level_is_true(lab):
    lab.put("gpu", HOUR, 0.03, pod="p1", gpu="g0")
    assert lab.judge(rule(below=0.1), 60) == {"": TRUE}
    assert lab.judge(rule(below=0.03), 60) == {"": FALSE}
    assert lab.judge(rule(above=0.02), 60) == {"": TRUE}


@pytest.mark.parametrize("level", [0.1, 0.3, 0.7, 1 / 3, 0.9])
@pytest.mark.parametrize("minutes", [3, 7, 10, 60])
def test_comparisons_are_strict_even_for_a_mean_of_equal_values(lab, level, minutes):
    lab.put("gpu", range(1, minutes + 1), level, pod="p1")
    assert lab.judge(rule(window=minutes, below=level), minutes) == {"": FALSE}
    assert lab.judge(rule(window=minutes, above=level), minutes) == {"": FALSE}


def test_between_threshold_and_clear_level_is_neither(lab):
    lab.put("gpu", range(1, 5), [0.96, 0.95, 0.9, 0.89], pod="p1")
    full = last(above=0.95, clear=0.9)
    assert [lab.judge(full, minute)[""] for minute in range(1, 5)] == [TRUE, BETWEEN, BETWEEN, FALSE]
    idle = last(below=0.9, clear=0.95)
    assert [lab.judge(idle, minute)[""] for minute in range(1, 5)] == [FALSE, BETWEEN, BETWEEN, TRUE]


def test_a_long_mean_falls_when_the_mean_crosses_not_earlier(lab):
    """A6: avg over 1 h < 20 %, 95 % from minute 60 on: true while fewer than 13 of 60 are high."""
    lab.put("gpu", range(1, 61), 0.0, pod="p1")
    lab.put("gpu", range(61, 91), 0.95, pod="p1")
    verdicts = lab.evaluate(rule(below=0.2), *range(60, 91))
    crossing = [60 + int(t) for t in np.flatnonzero(verdicts.outcome[0] == FALSE)]
    assert crossing == list(range(73, 91))
    assert verdicts.explain(0, 0).summary == "avg over 1h"


def test_series_are_reduced_over_time_first_then_across(lab):
    lab.put("gpu", range(1, 11), [0.0] * 5 + [1.0] * 5, pod="p1")
    lab.put("gpu", range(1, 11), [1.0] * 5 + [0.0] * 5, pod="p2")
    lab.put("gpu", range(1, 11), 0.2, pod="p3")
    values = {
        across: float(lab.evaluate(rule(Aggregate.MAX, 10, above=0.5, across=across), 10).value[0, 0])
        for across in Across
    }
    assert values == {
        Across.MAX: 1.0,
        Across.MIN: 0.2,
        Across.SUM: pytest.approx(2.2),
        Across.AVG: pytest.approx(2.2 / 3),
        Across.MEDIAN: 1.0,
    }


def test_each_gpu_pod_and_node_gets_its_own_verdict(lab):
    lab.change(nodes={"p1": "n1", "p2": "n1", "p3": "n2"})
    for pod, gpu, value in (("p1", "g0", 0.1), ("p1", "g1", 0.3), ("p2", "g0", 0.9), ("p3", "g0", 0.9)):
        lab.put("gpu", HOUR, value, pod=pod, gpu=gpu)
    assert lab.judge(rule(below=0.25, by=By.GPU), 60) == {
        "p1/g0": TRUE,
        "p1/g1": FALSE,
        "p2/g0": FALSE,
        "p3/g0": FALSE,
    }
    assert lab.judge(rule(below=0.25, by=By.POD), 60) == {"p1": TRUE, "p2": FALSE, "p3": FALSE}
    assert lab.judge(rule(below=0.5, by=By.NODE), 60) == {"n1": TRUE, "n2": FALSE}


def test_pods_without_a_gpu_name_are_known_by_the_pod(lab):
    """B19: pods without `gpuName`."""
    lab.put("gpu", HOUR, 0.1, pod="p1")
    found = lab.evaluate(rule(below=0.5, by=By.GPU), 60)
    assert found.labels == (lab.labels(pod="p1"),)


def test_a_window_that_is_not_covered_yet_is_thin(lab):
    lab.put("gpu", range(1, 49), 0.0, pod="p1")
    assert lab.judge(rule(below=0.1), 47) == {"": THIN}
    assert lab.judge(rule(below=0.1), 48) == {"": TRUE}
    assert lab.judge(rule(below=0.1, coverage=1.0), 48) == {"": THIN}


def test_a_hole_counts_as_not_covered(lab):
    lab.put("gpu", [*range(1, 21), *range(40, 61)], 0.0, pod="p1")
    assert lab.judge(rule(below=0.1), 60) == {"": THIN}
    assert lab.judge(rule(below=0.1, coverage=0.7), 60) == {"": TRUE}


def test_fewer_than_the_quorum_of_the_expected_members_is_thin(lab):
    lab.expect([{"pod": f"p{n}"} for n in range(8)])
    for n in range(3):
        lab.put("gpu", HOUR, 0.0, pod=f"p{n}")
    assert lab.judge(rule(below=0.1), 60) == {"": THIN}
    lab.put("gpu", HOUR, 0.0, pod="p3")
    assert lab.judge(rule(below=0.1), 60) == {"": TRUE}
    assert lab.judge(rule(below=0.1, quorum=0.6), 60) == {"": THIN}


def test_without_expected_members_the_series_present_are_the_quorum(lab):
    for n in range(3):
        lab.put("gpu", HOUR, 0.0, pod=f"p{n}")
    for n in range(3, 7):
        lab.put("gpu", [60], 0.0, pod=f"p{n}")
    assert lab.judge(rule(below=0.1), 60) == {"": THIN}
    evidence = lab.evaluate(rule(below=0.1, quorum=0.4), 60).explain(0, 0)
    assert (evidence.of, evidence.covered) == (7, 3)


def test_a_new_pod_counts_once_its_window_is_covered(lab):
    lab.put("gpu", range(1, 121), 0.05, pod="p1")
    lab.put("gpu", range(60, 121), 1.0, pod="p2")
    early = lab.evaluate(rule(below=0.1), 90)
    assert (early.outcome[0, 0], early.value[0, 0]) == (TRUE, pytest.approx(0.05))
    later = lab.evaluate(rule(below=0.1), 120)
    assert (later.outcome[0, 0], later.value[0, 0]) == (FALSE, pytest.approx(0.525))


def test_an_expected_pod_that_is_stale_is_not_covered(lab):
    lab.expect([{"pod": "p1"}, {"pod": "p2"}])
    lab.put("gpu", HOUR, 0.0, pod="p1")
    lab.put("gpu", range(1, 54), 1.0, pod="p2", when=60)
    evidence = lab.evaluate(rule(below=0.1), 60).explain(0, 0)
    assert (evidence.value, evidence.covered, evidence.of) == (0.0, 1, 2)
    assert lab.judge(rule(below=0.1, by=By.POD), 60) == {"p1": TRUE, "p2": NODATA}


def test_an_expected_pod_that_has_no_series_at_all_is_nodata(lab):
    lab.expect([{"pod": "p1"}, {"pod": "p2"}])
    lab.put("gpu", HOUR, 0.0, pod="p1")
    assert lab.judge(rule(below=0.1, by=By.POD), 60) == {"p1": TRUE, "p2": NODATA}


def test_a_pod_without_gpus_is_not_expected_in_a_metric_of_gpus(lab):
    lab.expect([{"pod": "launcher"}, {"pod": "p1"}, {"pod": "p1", "gpu": "g0"}])
    lab.put("gpu", HOUR, 0.0, pod="p1", gpu="g0")
    assert lab.judge(rule(below=0.1, by=By.POD), 60) == {"p1": TRUE}
    assert lab.evaluate(rule(below=0.1), 60).explain(0, 0).of == 1


def test_pods_that_left_and_are_not_expected_give_no_labelset(lab):
    lab.put("gpu", HOUR, 0.0, pod="old")
    lab.put("gpu", range(58, 70), 0.0, pod="new")
    lab.expect([{"pod": "new"}])
    assert lab.judge(rule(window=5, below=0.1, by=By.POD), 69) == {"new": TRUE}


def test_a_delay_of_the_source_is_neither_stale_nor_thin(lab):
    """B15: the newest point is always 3 minutes old."""
    lab.put("gpu", range(1, 58), 0.5, pod="p1", when=60)
    assert lab.judge(rule(window=10, below=0.1), 60) == {"": FALSE}
    assert lab.judge(rule(Aggregate.MIN, 5, below=0.1, across=Across.MIN), 60) == {"": FALSE}
    assert lab.judge(last(below=0.1), 60) == {"": FALSE}


def test_one_end_for_all_tasks_of_a_metric(lab):
    """A task whose points come a minute later than the others' has a gap at the end, not a zero."""
    lab.task("src/2")
    lab.put("gpu", HOUR, 0.5, pod="p1")
    lab.put("gpu", range(1, 60), 0.5, key="src/2", pod="p1")
    found = lab.evaluate(rule(window=5, below=0.1, coverage=0.9), 60)
    assert dict(zip((own["task"] for own in found.labels), found.outcome[:, 0], strict=True)) == {
        "src/1": FALSE,
        "src/2": THIN,
    }


def test_a_whole_task_that_went_stale_is_an_error(lab):
    lab.put("gpu", range(1, 11), 0.0, pod="p1", gpu="g0")
    assert lab.judge(last(below=0.1, by=By.GPU), 14.9) == {"p1/g0": TRUE}
    assert lab.judge(last(below=0.1, by=By.GPU), 15) == {"p1/g0": ERROR}
    found = lab.evaluate(last(below=0.1), 15)
    assert (found.outcome[0, 0], found.explain(0, 0).detail) == (ERROR, "newest point is stale")


def test_staleness_grows_with_the_poll(lab):
    lab.poll["src"] = timedelta(minutes=4)
    lab.put("gpu", range(0, 41, 4), 0.0, pod="p1")
    assert lab.judge(last(below=0.1), 59) == {"": TRUE}
    assert lab.judge(last(below=0.1), 60) == {"": ERROR}


def test_points_from_the_future_are_a_clock_skew(lab):
    lab.put("gpu", [*range(1, 61), 61.5], 0.0, pod="p1", when=60)
    assert lab.judge(last(below=0.1), 60) == {"": TRUE}
    lab.put("gpu", [63], 0.0, pod="p1", when=60)
    found = lab.evaluate(last(below=0.1), 60)
    assert (found.outcome[0, 0], found.explain(0, 0).detail) == (ERROR, "clock skew")


def test_the_health_of_metrics_decides_for_its_own_task_only(lab):
    lab.task("src/2")
    lab.put("gpu", HOUR, 0.0, pod="p1")
    lab.put("gpu", HOUR, 0.0, key="src/2", pod="p1")
    lab.standings[Capability.METRICS, "src/2"] = Standing.FAILING
    lab.standings[Capability.LOGS, "src/1"] = Standing.FAILING
    found = lab.evaluate(rule(below=0.1), 60)
    assert found.outcome[:, 0].tolist() == [TRUE, ERROR]
    assert found.explain(1, 0).detail == "metrics failing"
    lab.standings[Capability.METRICS, "src/1"] = Standing.SETTLING
    assert lab.evaluate(rule(below=0.1), 60).outcome[:, 0].tolist() == [ERROR, ERROR]


def test_a_task_that_answered_without_any_series_is_nodata(lab):
    assert lab.judge(rule(below=0.1), 60) == {"": ERROR}
    lab.store.intake("src", "gpu", (), lab.ns(60), tasks=["src/1"])
    assert lab.judge(rule(below=0.1), 60) == {"": NODATA}
    assert lab.judge(rule(below=0.1, by=By.GPU), 60) == {"": NODATA}
    lab.standings[Capability.METRICS, "src/1"] = Standing.FAILING
    assert lab.judge(rule(below=0.1), 60) == {"": ERROR}


def test_windows_never_reach_into_the_attempt_before(lab):
    lab.put("gpu", range(1, 121), [0.0] * 60 + [1.0] * 60, pod="p1")
    lab.change(attempt_started=lab.at(60))
    assert lab.judge(rule(below=0.99), 61) == {"": THIN}
    found = lab.evaluate(rule(below=0.99), 108)
    assert (found.outcome[0, 0], found.value[0, 0]) == (FALSE, 1.0)
    assert lab.judge(rule(below=0.99), 107) == {"": THIN}


def test_pods_of_the_attempt_before_give_no_labelset(lab):
    lab.put("gpu", range(1, 61), 0.0, pod="old")
    lab.change(attempt_started=lab.at(60.5))
    lab.put("gpu", [61, 62], 0.0, pod="new")
    assert lab.judge(last(below=0.1, by=By.POD), 62) == {"new": TRUE}


def test_a_value_of_the_attempt_before_is_not_the_newest_value(lab):
    lab.put("gpu", range(1, 61), 0.0, pod="p1")
    lab.change(attempt_started=lab.at(60.5))
    assert lab.judge(last(below=0.1), 61) == {"": THIN}


def test_tasks_held_still_yield_nothing(lab):
    lab.put("gpu", HOUR, 0.0, pod="p1")
    running = rule(below=0.1, while_status=frozenset({Status.RUNNING}))
    for status, judged in ((Status.PAUSED, False), (Status.RUNNING, True), (Status.UNKNOWN, True)):
        lab.change(status=status)
        assert bool(lab.judge(running, 60)) is judged
    lab.change(status=Status.PAUSED)
    assert lab.judge(rule(below=0.1), 60) == {"": TRUE}


def test_after_start_waits(lab):
    lab.put("gpu", HOUR, 0.0, pod="p1")
    lab.change(attempt_started=lab.at(20))
    waiting = last(below=0.1, after_start=timedelta(minutes=30))
    assert lab.judge(waiting, 49) == {}
    assert lab.judge(waiting, 50) == {"": TRUE}
    assert lab.evaluate(waiting, 49, 50).outcome.tolist() == [[THIN, TRUE]]


def test_only_selected_tasks_are_judged(lab):
    lab.task("src/2")
    lab.put("gpu", HOUR, 0.0, pod="p1")
    lab.put("gpu", HOUR, 0.0, key="src/2", pod="p1")
    found = lab.evaluate(rule(below=0.1, select=Selector(patterns=(("id", "2"),))), 60)
    assert found.labels == (lab.labels("src/2"),)


def test_tasks_of_several_sources_stand_in_one_evaluation(lab):
    lab.task("other/9")
    lab.put("gpu", HOUR, 0.0, pod="p1")
    points = lab.series(HOUR, 1.0, key="other/9", pod="p7")
    lab.store.intake("other", "gpu", [points], lab.ns(60))
    found = lab.evaluate(rule(below=0.1, by=By.POD), 60)
    assert found.labels == (lab.labels(pod="p1"), lab.labels("other/9", pod="p7"))
    assert found.outcome[:, 0].tolist() == [TRUE, FALSE]
    assert [found.explain(g, 0).value for g in (0, 1)] == [0.0, 1.0]


def test_no_judged_task_gives_an_empty_evaluation(lab):
    lab.tasks.clear()
    found = lab.evaluate(rule(below=0.1), 59, 60)
    assert (found.labels, found.outcome.shape, found.value.shape) == ((), (0, 2), (0, 2))


def test_a_slope_is_per_hour_and_needs_two_points(lab):
    lab.put("gpu", HOUR, [m / 120 for m in HOUR], pod="p1")
    found = lab.evaluate(rule(Aggregate.SLOPE, above=0.4), 60)
    assert (found.outcome[0, 0], found.value[0, 0]) == (TRUE, pytest.approx(0.5))
    assert lab.judge(rule(Aggregate.SLOPE, 1, above=0.4), 60) == {"": THIN}


def test_evidence_names_the_worst_members_and_how_many(lab):
    lab.units["src", "gpu"] = "ratio"
    lab.expect([{"pod": f"p{n}", "gpu": f"g{m}"} for n in range(8) for m in range(8)])
    for n in range(7):
        for m in range(8):
            lab.put("gpu", HOUR, 0.05 if n else 0.001 * (8 - m), pod=f"p{n}", gpu=f"g{m}")
    evidence = lab.evaluate(rule(below=0.1), 60).explain(0, 0)
    assert (evidence.affected, evidence.of, evidence.covered) == (56, 64, 56)
    assert (evidence.metric, evidence.unit, evidence.threshold, evidence.above) == (
        "gpu",
        "ratio",
        0.1,
        False,
    )
    assert len(evidence.members) == MEMBERS_SHOWN
    assert evidence.members[0].labels == Labels.of(pod="p0", gpu="g7")
    assert [member.value for member in evidence.members] == sorted(m.value for m in evidence.members)
    full = lab.evaluate(rule(above=0.01), 60).explain(0, 0)
    assert [member.value for member in full.members] == sorted((m.value for m in full.members), reverse=True)


def test_members_that_are_not_covered_come_last_without_a_value(lab):
    lab.put("gpu", HOUR, 0.2, pod="p1")
    lab.put("gpu", range(50, 61), 0.0, pod="p2")
    evidence = lab.evaluate(rule(below=0.1), 60).explain(0, 0)
    assert [(member.labels["pod"], member.value) for member in evidence.members] == [
        ("p1", pytest.approx(0.2)),
        ("p2", None),
    ]


def test_the_spark_shows_the_course_with_its_holes(lab):
    lab.put(
        "gpu", [*range(1, 25), *range(37, 61)], [m / 100 for m in (*range(1, 25), *range(37, 61))], pod="p1"
    )
    evidence = lab.evaluate(rule(below=0.9, coverage=0.5), 60).explain(0, 0)
    assert evidence.spark_span == timedelta(hours=1)
    assert len(evidence.spark) == 24
    assert [place for place, value in enumerate(evidence.spark) if value is None] == [10, 11, 12, 13]
    assert evidence.spark[0] == pytest.approx(0.015)
    assert evidence.spark[-1] == pytest.approx(0.59)


def test_the_spark_also_spans_the_hold(lab):
    lab.put("gpu", HOUR, 0.5, pod="p1")
    evidence = lab.evaluate(rule(window=10, below=0.9, hold=timedelta(minutes=20)), 60).explain(0, 0)
    assert evidence.spark_span == timedelta(minutes=30)
    assert evidence.spark == (0.5,) * 24


def share_rule(at_least=0.8, *, below=0.1, clear_below=None, **more):
    return Rule(
        name="s",
        condition=Share(
            metric="gpu",
            window=timedelta(minutes=60),
            comparison=Comparison(above=False, threshold=below),
            at_least=at_least,
            clear_below=clear_below,
        ),
        **more,
    )


@pytest.mark.parametrize(
    ("low", "clear_below", "wanted"),
    [(48, None, TRUE), (47, None, FALSE), (47, 0.7, BETWEEN), (42, 0.7, BETWEEN), (41, 0.7, FALSE)],
)
def test_a_share_of_time_below_a_level(lab, low, clear_below, wanted):
    lab.put("gpu", HOUR, [0.0] * low + [1.0] * (60 - low), pod="p1")
    found = lab.evaluate(share_rule(clear_below=clear_below), 60)
    assert (found.outcome[0, 0], found.value[0, 0]) == (wanted, pytest.approx(low / 60))


def test_a_share_is_of_covered_time_not_of_points(lab):
    """Points every minute while busy, every 2 minutes while idle: half the time is half."""
    lab.put("gpu", [*range(1, 31), *range(32, 61, 2)], [1.0] * 30 + [0.0] * 15, pod="p1")
    assert lab.evaluate(share_rule(), 60).value[0, 0] == pytest.approx(0.5)


def test_the_evidence_of_a_share(lab):
    lab.units["src", "gpu"] = "ratio"
    lab.put("gpu", HOUR, 0.0, pod="p1")
    lab.put("gpu", HOUR, [0.0] * 50 + [1.0] * 10, pod="p2")
    lab.put("gpu", HOUR, [0.0] * 40 + [1.0] * 20, pod="p3")
    evidence = lab.evaluate(share_rule(), 60).explain(0, 0)
    assert evidence.summary == "share of 1h below 10%"
    assert (evidence.unit, evidence.threshold, evidence.above) == ("ratio", 0.8, True)
    assert evidence.value == pytest.approx(2.5 / 3)
    assert (evidence.affected, evidence.of) == (2, 3)
    assert [member.labels["pod"] for member in evidence.members] == ["p1", "p2", "p3"]
