"""A rule leaves out the tasks of a source that is known not to have its metric."""

from datetime import timedelta

import numpy as np
import pytest

from watchdog.core.conditions.kinds import Absent, Aggregate, Changes, Comparison, Threshold
from watchdog.core.evaluation import evaluate, occurrences
from watchdog.core.outcomes import Outcome
from watchdog.core.rules import Rule
from watchdog.core.view import View

HOT = Comparison(above=True, threshold=85)


@pytest.fixture
def two_clouds(lab):
    lab.task("other/1")
    lab.put("GpuTemp", range(31), 90, pod="p0", gpu="0")

    def view(lacking):
        return View(series=lab.store, tasks=lab.tasks, standing=lab.standing, lacking=lacking)

    return lab, view


def test_tasks_of_a_source_without_the_metric_have_no_verdict(two_clouds):
    lab, view = two_clouds
    hot = Rule(
        name="hot",
        condition=Threshold(metric="GpuTemp", aggregate=Aggregate.LAST, window=None, comparison=HOT),
    )
    slots = np.array([lab.ns(30)], np.int64)

    def verdicts(lacking):
        found = evaluate(hot, view(lacking), slots)
        return {labels["task"]: code for labels, code in zip(found.labels, found.outcome[:, 0], strict=True)}

    assert verdicts(()) == {"src/1": Outcome.TRUE, "other/1": Outcome.ERROR}
    assert verdicts({("other", "GpuTemp")}) == {"src/1": Outcome.TRUE}


@pytest.mark.parametrize("condition", [Absent(metric="GpuTemp"), Changes(metric="GpuTemp")])
def test_that_holds_for_every_kind_of_rule(two_clouds, condition):
    lab, view = two_clouds
    rule = Rule(name="any", condition=condition)
    lacking = {("src", "GpuTemp"), ("other", "GpuTemp")}
    if rule.is_event:
        assert occurrences(rule, view(lacking), lab.ns(30), timedelta(minutes=1)) == ()
    else:
        assert evaluate(rule, view(lacking), np.array([lab.ns(30)], np.int64)).labels == ()
