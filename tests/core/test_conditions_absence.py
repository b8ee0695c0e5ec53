"""Absent: an expected member gives no points (B3, B4, B7), and what is no absence (B15, B20)."""

from datetime import timedelta

from watchdog.core.conditions.kinds import Absent, By, Capability
from watchdog.core.health import Standing
from watchdog.core.labels import Labels
from watchdog.core.outcomes import Outcome
from watchdog.core.rules import Rule
from watchdog.core.tasks import Seen

TRUE, FALSE, ERROR = Outcome.TRUE, Outcome.FALSE, Outcome.ERROR
PODS = [f"p{n}" for n in range(8)]


def rule(by=By.POD):
    return Rule(name="gone", condition=Absent(metric="gpu", by=by))


def eight(lab, *, until=30, gone_at=20, delay=0):
    lab.expect([{"pod": pod, "gpu": "g0"} for pod in PODS])
    for pod in PODS:
        last = gone_at if pod == "p5" else until
        lab.put("gpu", range(1, last + 1 - delay), 0.9, pod=pod, gpu="g0", when=until)


def test_one_pod_of_eight_stops_and_only_it_is_absent(lab):
    eight(lab)
    found = lab.evaluate(rule(), 30)
    verdicts = dict(zip((labels["pod"] for labels in found.labels), found.outcome[:, 0], strict=True))
    assert verdicts == {pod: TRUE if pod == "p5" else FALSE for pod in PODS}
    assert found.since_ns[found.outcome == TRUE].tolist() == [lab.ns(20)]


def test_it_takes_two_spacings_and_a_poll_behind_the_others(lab):
    lab.expect([{"pod": "p0"}, {"pod": "p5"}])
    lab.put("gpu", range(1, 21), 0.9, pod="p5")
    lab.put("gpu", range(1, 31), 0.9, pod="p0", when=30)
    verdicts = [lab.judge(rule(), minute)["p5"] for minute in (20, 21, 22, 23, 24, 25)]
    assert verdicts == [FALSE, FALSE, FALSE, FALSE, TRUE, TRUE]


def test_it_is_false_again_once_points_come(lab):
    eight(lab)
    lab.put("gpu", [31], 0.9, pod="p0", gpu="g0")
    lab.put("gpu", [31], 0.9, pod="p5", gpu="g0")
    assert lab.judge(rule(), 31)["p5"] is FALSE


def test_a_pod_is_expected_even_if_the_store_never_had_it(lab):
    """B4 and a restart: the expected set is remembered, the points are not."""
    lab.expect([{"pod": "p5"}, {"pod": "p0"}], seen=3)
    lab.put("gpu", range(20, 31), 0.9, pod="p0")
    found = lab.evaluate(rule(), 30)
    assert found.outcome[:, 0].tolist() == [FALSE, TRUE]
    assert found.since_ns[1, 0] == lab.ns(3)


def test_a_member_just_seen_is_not_absent_yet(lab):
    lab.expect([{"pod": "p0"}, {"pod": "p5"}], seen=29)
    lab.put("gpu", range(20, 31), 0.9, pod="p0")
    assert lab.judge(rule(), 30) == {"p0": FALSE, "p5": FALSE}


def test_the_last_sighting_of_any_of_its_gpus_counts(lab):
    seen = [
        Seen(labels=Labels.of(pod="p5", gpu="g0"), first=lab.at(0), last=lab.at(3)),
        Seen(labels=Labels.of(pod="p5", gpu="g1"), first=lab.at(0), last=lab.at(9)),
        Seen(labels=Labels.of(pod="p0", gpu="g0"), first=lab.at(0), last=lab.at(30)),
    ]
    lab.change(expected=tuple(seen))
    lab.put("gpu", range(20, 31), 0.9, pod="p0", gpu="g0")
    assert lab.evaluate(rule(), 30).since_ns[:, 0].tolist() == [0, lab.ns(9)]
    assert lab.evaluate(rule(By.GPU), 30).since_ns[:, 0].tolist() == [0, lab.ns(3), lab.ns(9)]


def test_who_is_not_expected_cannot_be_absent(lab):
    eight(lab)
    lab.expect([{"pod": pod, "gpu": "g0"} for pod in PODS if pod != "p5"])
    assert "p5" not in lab.judge(rule(), 30)
    lab.change(expected=())
    assert lab.judge(rule(), 30) == {}


def test_the_whole_task_without_points_is_an_error_and_nobodys_absence(lab):
    eight(lab)
    assert set(lab.judge(rule(), 34).values()) == {TRUE, FALSE}
    assert set(lab.judge(rule(), 35).values()) == {ERROR}


def test_a_task_that_answered_nothing_is_an_error(lab):
    lab.expect([{"pod": "p0"}, {"pod": "p1"}])
    lab.store.intake("src", "gpu", (), lab.ns(30), tasks=["src/1"])
    assert lab.judge(rule(), 30) == {"p0": ERROR, "p1": ERROR}


def test_a_failing_source_is_an_error(lab):
    """B20: an HTML page with status 200 is a failure of metrics, not an absence."""
    eight(lab)
    lab.standings[Capability.METRICS, "src/1"] = Standing.FAILING
    assert set(lab.judge(rule(), 30).values()) == {ERROR}


def test_a_delay_of_the_source_is_no_absence(lab):
    """B15: every newest point is 3 minutes old."""
    eight(lab, gone_at=30, delay=3)
    assert set(lab.judge(rule(), 30).values()) == {FALSE}


def test_a_pod_label_that_comes_and_goes_is_no_absence(lab):
    """B7"""
    lab.expect([{"pod": "p1", "gpu": "u1"}, {"pod": "p2", "gpu": "u2"}])
    for minute in range(1, 31):
        lab.put("gpu", [minute], 0.9, pod="p1" if minute % 4 == 0 else "", gpu="u1")
        lab.put("gpu", [minute], 0.9, pod="p2", gpu="u2")
    assert lab.judge(rule(), 30) == {"p1": FALSE, "p2": FALSE}


def test_by_gpu_and_by_node(lab):
    lab.change(nodes={"p0": "n0", "p1": "n0", "p2": "n2"})
    lab.expect([{"pod": f"p{n}", "gpu": "g0"} for n in range(3)])
    for n, last in enumerate((30, 10, 10)):
        lab.put("gpu", range(1, last + 1), 0.9, pod=f"p{n}", gpu="g0", when=30)
    assert lab.judge(rule(By.GPU), 30) == {"p0/g0": FALSE, "p1/g0": TRUE, "p2/g0": TRUE}
    assert lab.judge(rule(By.NODE), 30) == {"n0": FALSE, "n2": TRUE}


def test_patience_follows_the_spacing_of_the_series(lab):
    lab.expect([{"pod": "p0"}, {"pod": "p1"}])
    lab.poll["src"] = timedelta(minutes=4)
    lab.put("gpu", range(0, 61, 4), 0.9, pod="p0")
    lab.put("gpu", range(0, 49, 4), 0.9, pod="p1", when=60)
    assert lab.judge(rule(), 60) == {"p0": FALSE, "p1": FALSE}
    lab.put("gpu", [64], 0.9, pod="p0")
    assert lab.judge(rule(), 64) == {"p0": FALSE, "p1": TRUE}


def test_the_evidence_says_for_how_long(lab):
    eight(lab)
    found = lab.evaluate(rule(), 30)
    evidence = found.explain(5, 0)
    assert (evidence.summary, evidence.value, evidence.unit) == ("no point of gpu for", 600.0, "s")
    assert (evidence.affected, evidence.of) == (1, 1)
