"""Peers: one pod, GPU or node beyond a part of the middle of all members of its task."""

from dataclasses import replace

import numpy as np

from watchdog.core.columns import Ints
from watchdog.core.conditions.kinds import Comparison, Peers
from watchdog.core.conditions.panel import EXACT, Part, Reduction, basis, metric_panel, with_value
from watchdog.core.conditions.threshold import in_words
from watchdog.core.durations import format_duration
from watchdog.core.outcomes import Evidence, Outcome
from watchdog.core.rules import Rule
from watchdog.core.tasks import TaskState
from watchdog.core.view import View


def peers(rule: Rule, condition: Peers, view: View, states: list[TaskState], slots: Ints) -> Part:
    """Judge a `Peers` for tasks of one source. The value is the member's own.

    A task with fewer members than `min_peers` has nobody to compare and yields no labelset; one
    where too few are covered right now is THIN.
    """
    reduction = Reduction(
        metric=condition.metric, by=condition.by, window=condition.window, aggregate=condition.aggregate
    )
    panel = metric_panel(rule, view, states, slots, reduction)
    names, tasks = panel.roster, panel.roster.task_groups
    value = names.by_group.across(panel.values, panel.covered, "avg")
    usable = panel.outcomes(np.zeros(value.shape, np.int64), value) == Outcome.FALSE
    middle = tasks.across(value, usable, "median" if condition.middle == "median" else "avg")
    spread = tasks.across(value, usable, "max") - tasks.across(value, usable, "min")
    limit = (middle * condition.ratio)[names.group_task]
    slack = np.abs(limit) * EXACT
    past = value > limit + slack if condition.above else value < limit - slack
    alike = spread <= np.abs(middle) * EXACT
    meaningless = alike | (middle < 0) | ((middle == 0) & (not condition.above))
    true = past & ~meaningless[names.group_task]
    found = np.where(true, int(Outcome.TRUE), int(Outcome.FALSE))
    few = tasks.count(usable) < condition.min_peers
    found = np.where(few[names.group_task], int(Outcome.THIN), found)
    out = panel.outcomes(found, value)
    words = in_words(condition.aggregate, format_duration(condition.window) if condition.window else "")
    alone = (tasks.count(np.ones(value.shape, np.bool_)) < condition.min_peers).all(axis=1)
    alone &= names.has_rows

    def explain(group: int, t: int) -> Evidence:
        level = float(limit[group, t])
        evidence = basis(panel, group, t, Comparison(above=condition.above, threshold=level))
        summary = f"{words}, against {condition.ratio * 100:.4g}% of the {condition.middle} of its task"
        evidence = replace(evidence, summary=summary, threshold=None if np.isnan(level) else level)
        return with_value(evidence, float(value[group, t]))

    return panel.part(out, value, explain, alone[names.group_task])
