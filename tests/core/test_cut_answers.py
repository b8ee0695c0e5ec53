"""Answers that are known to be incomplete judge nothing; metrics that come rarely are not stale so soon."""

from datetime import timedelta

import pytest

from watchdog.core.conditions.kinds import (
    Absent,
    Across,
    Aggregate,
    By,
    Changes,
    Comparison,
    Peers,
    Share,
    Threshold,
)
from watchdog.core.outcomes import Outcome
from watchdog.core.rules import Rule

LOW = Comparison(above=False, threshold=0.5)
CONDITIONS = {
    "threshold": Threshold(metric="gpu", aggregate=Aggregate.LAST, window=None, comparison=LOW),
    "share": Share(metric="gpu", window=timedelta(minutes=10), comparison=LOW, at_least=0.5),
    "peers": Peers(metric="gpu", aggregate=Aggregate.LAST, window=None, above=False, ratio=0.5),
}


def rule(condition):
    return Rule(name="low", condition=condition)


def fill(lab, *, pods=4):
    for number in range(pods):
        lab.put("gpu", range(31), 0.1 if number == 0 else 0.3, pod=f"p{number}")


def cut(lab, key="src/1"):
    lab.store.intake("src", "gpu", [], lab.ns(30), tasks={key}, cut={key})


@pytest.mark.parametrize("condition", CONDITIONS.values(), ids=CONDITIONS.keys())
@pytest.mark.parametrize("expected", [0, 4])
def test_nothing_is_judged_by_a_cut_answer(lab, condition, expected):
    lab.expect([{"pod": f"p{number}"} for number in range(expected)])
    fill(lab)
    whole = lab.judge(rule(condition), 30)
    assert Outcome.TRUE in whole.values()

    cut(lab)
    assert set(lab.judge(rule(condition), 30).values()) == {Outcome.THIN}

    lab.store.intake("src", "gpu", [], lab.ns(30), tasks={"src/1"})
    assert lab.judge(rule(condition), 30) == whole


def test_who_is_not_in_a_cut_answer_is_not_absent(lab):
    lab.expect([{"pod": "p0"}, {"pod": "p9"}])
    fill(lab)
    absent = rule(Absent(metric="gpu", by=By.POD))
    assert lab.judge(absent, 30)["p9"] is Outcome.TRUE

    cut(lab)
    assert lab.judge(absent, 30)["p9"] is Outcome.ERROR


def test_a_cut_answer_about_one_task_leaves_the_others(lab):
    lab.task("src/2")
    fill(lab)
    lab.put("gpu", range(31), 0.1, "src/2", pod="q0")
    cut(lab)
    found = lab.evaluate(rule(CONDITIONS["threshold"]), 30)
    verdicts = {labels["task"]: code for labels, code in zip(found.labels, found.outcome[:, 0], strict=True)}
    assert verdicts == {"src/1": Outcome.THIN, "src/2": Outcome.TRUE}


def test_a_task_that_is_forgotten_is_not_cut_when_it_comes_back(lab):
    fill(lab)
    cut(lab)
    lab.store.forget(task="src/1")
    fill(lab)
    assert set(lab.judge(rule(CONDITIONS["threshold"]), 30).values()) == {Outcome.TRUE}


def test_a_metric_that_comes_every_five_minutes_is_fresh_for_three_times_that(lab):
    lab.put("train_loss", range(0, 31, 5), 9.0)
    high = Comparison(above=True, threshold=5.0)
    loss = rule(
        Threshold(
            metric="train_loss", aggregate=Aggregate.LAST, window=None, comparison=high, across=Across.AVG
        )
    )
    assert lab.judge(loss, 38) == {"": Outcome.ERROR}

    lab.steps = {("src", "train_loss"): timedelta(minutes=5)}
    assert lab.judge(loss, 38) == {"": Outcome.TRUE}
    assert lab.judge(loss, 46) == {"": Outcome.ERROR}


def test_another_code_of_the_same_card_is_news_and_named(lab):
    xid = rule(Changes(metric="XidErrors", by=By.GPU))
    card = {"pod": "p1", "gpu": "3", "node": "n1"}
    for minute, counts in enumerate([{"31": 0, "79": 0}, {"31": 1, "79": 0}, {"31": 1, "79": 1}]):
        for code, value in counts.items():
            lab.put("XidErrors", [minute], value, **card, xid=code)
        found = lab.happened(xid, minute)
        lab.store.mark()
        if minute == 1:
            (first,) = found
    (second,) = found
    assert first.labels == second.labels == lab.labels(pod="p1", gpu="3")
    assert first.fingerprint != second.fingerprint
    (member,) = second.evidence.members
    assert dict(member.labels) == {**card, "xid": "79"}
