"""Silent: no log line arrives (B10, B11, B12)."""

from datetime import timedelta

from watchdog.core.conditions.kinds import By, Capability, Silent
from watchdog.core.health import Standing
from watchdog.core.outcomes import Outcome
from watchdog.core.rules import Rule

TRUE, FALSE, ERROR = Outcome.TRUE, Outcome.FALSE, Outcome.ERROR


def rule(by=By.TASK):
    return Rule(name="quiet", condition=Silent(by=by), hold=timedelta(minutes=10))


def test_lines_that_arrived_in_this_interval_are_no_silence(lab):
    lab.stream(arrived={"p1": 30, "p2": 3})
    assert lab.judge(rule(), 30) == {"": FALSE}
    assert lab.judge(rule(), 30.9) == {"": FALSE}


def test_silence_begins_with_the_last_arrival(lab):
    lab.stream(arrived={"p1": 30, "p2": 3})
    found = lab.evaluate(rule(), 31)
    assert (found.outcome[0, 0], found.since_ns[0, 0], found.value[0, 0]) == (TRUE, lab.ns(30), 60.0)
    assert found.explain(0, 0).summary == "no line for"


def test_lines_that_come_six_minutes_late_are_no_silence(lab):
    """B10"""
    lab.stream(arrived={"p1": 30}, newest={"p1": 24})
    assert lab.judge(rule(), 30) == {"": FALSE}


def test_a_task_that_never_had_a_line_is_silent_since_it_began(lab):
    lab.change(watched_since=lab.at(2))
    assert lab.evaluate(rule(), 30).since_ns[0, 0] == lab.ns(2)
    lab.change(attempt_started=lab.at(5))
    found = lab.evaluate(rule(), 30)
    assert (found.outcome[0, 0], found.since_ns[0, 0]) == (TRUE, lab.ns(5))


def test_lines_of_the_attempt_before_do_not_count(lab):
    lab.stream(arrived={"p1": 10})
    lab.change(attempt_started=lab.at(20))
    assert lab.evaluate(rule(), 30).since_ns[0, 0] == lab.ns(20)
    assert lab.judge(rule(By.POD), 30) == {}


def test_each_pod_by_itself(lab):
    """B12: an expected pod is known even if none of its lines was seen since the start."""
    lab.change(watched_since=lab.at(0))
    lab.expect([{"pod": "p1"}, {"pod": "p3", "gpu": "g0"}], seen=4)
    lab.stream(arrived={"p1": 30, "p2": 12})
    found = lab.evaluate(rule(By.POD), 30)
    assert [labels["pod"] for labels in found.labels] == ["p1", "p2", "p3"]
    assert found.outcome[:, 0].tolist() == [FALSE, TRUE, TRUE]
    assert found.since_ns[:, 0].tolist() == [0, lab.ns(12), lab.ns(4)]


def test_by_node_one_talking_pod_is_enough(lab):
    lab.change(nodes={"p1": "n1", "p2": "n1", "p3": "n3"})
    lab.stream(arrived={"p1": 30, "p2": 12, "p3": 12})
    assert lab.judge(rule(By.NODE), 30) == {"n1": FALSE, "n3": TRUE}


def test_logs_that_cannot_be_read_are_an_error(lab):
    lab.stream(arrived={"p1": 3})
    lab.standings[Capability.LOGS, "src/1"] = Standing.FAILING
    assert lab.judge(rule(), 30) == {"": ERROR}
    lab.standings.clear()
    lab.standings[Capability.METRICS, "src/1"] = Standing.FAILING
    assert lab.judge(rule(), 30) == {"": TRUE}


def test_a_filtered_stream_alone_proves_no_silence(lab):
    lab.stream(arrived={"p1": 3}, prefilter="ERROR")
    found = lab.evaluate(rule(), 30)
    assert (found.outcome[0, 0], found.explain(0, 0).detail) == (
        ERROR,
        "the log is read through a filter only",
    )
    lab.stream(arrived={"p1": 12})
    assert lab.evaluate(rule(), 30).since_ns[0, 0] == lab.ns(12)


def test_an_arrival_in_the_future_is_no_arrival_now(lab):
    """Our clock was set back over a restart (C15)."""
    lab.stream(arrived={"p1": 90})
    assert lab.judge(rule(), 30) == {"": ERROR}
    assert lab.judge(rule(), 89) == {"": FALSE}
