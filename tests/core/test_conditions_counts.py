"""Log counts: lines within a window (B14, B18)."""

from datetime import timedelta

import pytest

from watchdog.core.conditions.kinds import By, Capability, Comparison, LogCount, LogMatch
from watchdog.core.health import Standing
from watchdog.core.outcomes import Outcome
from watchdog.core.rules import Rule

TRUE, FALSE, BETWEEN = Outcome.TRUE, Outcome.FALSE, Outcome.BETWEEN
THIN, ERROR = Outcome.THIN, Outcome.ERROR


def rule(*, above=None, below=None, clear=None, by=By.TASK):
    level = above if below is None else below
    return Rule(
        name="burst",
        condition=LogCount(
            lines=LogMatch(match=()),
            within=timedelta(minutes=5),
            comparison=Comparison(above=below is None, threshold=level, clear=clear),
            by=by,
        ),
    )


def lines(lab, minutes, **labels):
    lab.put("log:burst", minutes, 1.0, **labels)


def test_more_lines_than_allowed(lab):
    lines(lab, [n / 10 for n in range(1, 22)], pod="p1")
    assert lab.judge(rule(above=20), 3) == {"": TRUE}
    assert lab.judge(rule(above=21), 3) == {"": FALSE}


def test_lines_leave_the_window(lab):
    lines(lab, [1, 2, 3, 4], pod="p1")
    values = lab.evaluate(rule(above=2), *range(1, 11)).value[0]
    assert values.tolist() == [1, 2, 3, 4, 4, 3, 2, 1, 0, 0]


def test_no_lines_of_a_log_that_can_be_read_is_false(lab):
    assert lab.judge(rule(above=2), 9) == {"": FALSE}
    assert lab.evaluate(rule(above=2), 9).value[0, 0] == 0
    lines(lab, [1], pod="p1")
    assert lab.judge(rule(above=2), 600) == {"": FALSE}


def test_a_log_that_cannot_be_read_is_an_error(lab):
    lab.standings[Capability.LOGS, "src/1"] = Standing.FAILING
    assert lab.judge(rule(above=2), 9) == {"": ERROR}


def test_late_lines_are_counted_over_a_whole_window(lab):
    """B14: twelve lines stamped within five minutes become visible three minutes later."""
    lab.stream(arrived={"p1": 10}, newest={"p1": 7})
    lines(lab, [2.2 + n * 0.4 for n in range(12)], pod="p1")
    assert lab.judge(rule(above=10), 10) == {"": TRUE}


def test_the_delay_of_one_pod_does_not_shift_the_others(lab):
    lab.stream(arrived={"p1": 10, "p2": 10}, newest={"p1": 7, "p2": 10})
    lines(lab, [2.5, 6.5], pod="p1")
    lines(lab, [4.5, 5.5, 9.5], pod="p2")
    found = lab.evaluate(rule(above=1, by=By.POD), 10)
    assert found.value[:, 0].tolist() == [2, 2]
    assert lab.evaluate(rule(above=1), 10).value[0, 0] == 4


def test_many_lines_of_one_moment_all_count(lab):
    lines(lab, [1] * 30, pod="p1")
    assert lab.evaluate(rule(above=20), 1).value[0, 0] == 30


def test_between_and_clear_level(lab):
    lines(lab, [1, 2, 3], pod="p1")
    assert [lab.judge(rule(above=2, clear=1), m)[""] for m in (3, 6, 7, 8)] == [TRUE, BETWEEN, BETWEEN, FALSE]


def test_by_pod_counts_each_pod(lab):
    lab.expect([{"pod": "p1"}, {"pod": "p2"}, {"pod": "p3"}])
    lines(lab, [1, 2, 3], pod="p1")
    lines(lab, [3], pod="p2")
    assert lab.judge(rule(above=2, by=By.POD), 3) == {"p1": TRUE, "p2": FALSE, "p3": FALSE}
    assert lab.judge(rule(above=3), 3) == {"": TRUE}


def test_too_few_lines_are_judged_only_after_a_whole_window(lab):
    lab.change(watched_since=lab.at(0))
    assert lab.judge(rule(below=1), 3) == {"": THIN}
    assert lab.judge(rule(below=1), 4) == {"": TRUE}


def test_lines_of_the_attempt_before_do_not_count(lab):
    lines(lab, [1, 2, 3], pod="p1")
    lab.change(attempt_started=lab.at(2))
    assert lab.evaluate(rule(above=2), 4).value[0, 0] == 1


def test_the_evidence_of_a_count(lab):
    lines(lab, [6, 7, 8], pod="p1")
    lines(lab, [8], pod="p2")
    evidence = lab.evaluate(rule(above=3), 10).explain(0, 0)
    assert (evidence.summary, evidence.value, evidence.threshold) == ("matching lines within 5m", 4.0, 3)
    assert [(m.labels["pod"], m.value) for m in evidence.members] == [("p1", 3.0), ("p2", 1.0)]
    assert (sum(evidence.spark), evidence.spark_span) == (4.0, timedelta(minutes=10))
    assert evidence.spark[-1] == 0.0


@pytest.mark.parametrize("slots", [1, 40])
def test_one_slot_or_many(lab, slots):
    lab.stream(arrived={"p1": 10, "p2": 10}, newest={"p1": 7, "p2": 10})
    lines(lab, [2, 4, 6, 8], pod="p1")
    lines(lab, [3, 5, 7, 9], pod="p2")
    minutes = [n / 2 for n in range(40)]
    whole = lab.evaluate(rule(above=3), *minutes).value[0].tolist()
    pieces = [
        value
        for start in range(0, 40, slots)
        for value in lab.evaluate(rule(above=3), *minutes[start : start + slots]).value[0].tolist()
    ]
    assert pieces == whole


def test_lines_of_the_future_cannot_be_counted(lab):
    """The clock is an hour behind the source's (C15): its lines lie in no window."""
    lab.put("log:burst", [90, 91, 92], 1.0, pod="p1", when=32)
    assert lab.judge(rule(above=1), 32) == {"": ERROR}
    assert lab.judge(rule(below=1), 32) == {"": ERROR}
    lab.put("log:burst", [33], 1.0, pod="p1", when=95)
    assert lab.judge(rule(above=1), 95) == {"": TRUE}
