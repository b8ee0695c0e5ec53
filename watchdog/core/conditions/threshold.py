"""Threshold and share: a metric over a window against a level, per task, pod, GPU or node.

Each series is reduced over time first, then across the members of its group.
"""

from dataclasses import replace

import numpy as np

from watchdog.core.columns import Floats, Ints
from watchdog.core.conditions.kinds import Across, Aggregate, Comparison, Share, Threshold
from watchdog.core.conditions.panel import (
    EXACT,
    Panel,
    Part,
    Reduction,
    basis,
    metric_panel,
    verdict,
    with_value,
)
from watchdog.core.durations import format_duration
from watchdog.core.outcomes import Evidence, Outcome
from watchdog.core.rules import Rule
from watchdog.core.tasks import TaskState
from watchdog.core.view import View

_WORDS = {
    Aggregate.LAST: "newest value",
    Aggregate.MEDIAN: "median",
    Aggregate.P95: "95th percentile",
    Aggregate.STDDEV: "standard deviation",
    Aggregate.SLOPE: "slope per hour",
}


def in_words(aggregate: Aggregate, window_text: str) -> str:
    """Return what was computed of each series: "avg over 1h"."""
    word = _WORDS.get(aggregate, str(aggregate))
    return f"{word} over {window_text}" if window_text else word


def threshold(rule: Rule, condition: Threshold, view: View, states: list[TaskState], slots: Ints) -> Part:
    """Judge a `Threshold` for tasks of one source."""
    reduction = Reduction(
        metric=condition.metric, by=condition.by, window=condition.window, aggregate=condition.aggregate
    )
    panel = metric_panel(rule, view, states, slots, reduction)
    value = panel.roster.by_group.across(panel.values, panel.covered, condition.across)
    out = panel.outcomes(verdict(value, condition.comparison), value)
    words = in_words(condition.aggregate, format_duration(condition.window) if condition.window else "")

    def explain(group: int, t: int) -> Evidence:
        evidence = basis(panel, group, t, condition.comparison)
        summary = _across_words(words, condition.across, panel, group)
        return with_value(replace(evidence, summary=summary), float(value[group, t]))

    return panel.part(out, value, explain)


def share(rule: Rule, condition: Share, view: View, states: list[TaskState], slots: Ints) -> Part:
    """Judge a `Share` for tasks of one source. The value is the share of covered time, 0 to 1."""
    reduction = Reduction(
        metric=condition.metric, by=condition.by, window=condition.window, share=condition.comparison
    )
    panel = metric_panel(rule, view, states, slots, reduction)
    value = panel.roster.by_group.across(panel.values, panel.covered, condition.across)
    out = panel.outcomes(_share_verdict(value, condition), value)
    side = "above" if condition.comparison.above else "below"
    unit = view.units.get((panel.source, panel.metric), "")
    level = in_unit(condition.comparison.threshold, unit)
    words = f"share of {format_duration(condition.window)} {side} {level}"
    reached = Comparison(above=True, threshold=condition.at_least - 2 * EXACT)

    def explain(group: int, t: int) -> Evidence:
        evidence = basis(panel, group, t, reached)
        summary = _across_words(words, condition.across, panel, group)
        evidence = replace(evidence, summary=summary, threshold=condition.at_least, unit="ratio")
        return with_value(evidence, float(value[group, t]))

    return panel.part(out, value, explain)


def in_unit(value: float, unit: str) -> str:
    """Return a level as people write it: 10% for ratios, else the number with its unit."""
    if unit == "ratio":
        return f"{value * 100:.4g}%"
    return f"{value:.6g} {unit}".rstrip()


def _share_verdict(value: Floats, condition: Share) -> Ints:
    true = value >= condition.at_least - EXACT
    clear = value < (condition.at_least if condition.clear_below is None else condition.clear_below) - EXACT
    rest = np.where(clear, int(Outcome.FALSE), int(Outcome.BETWEEN))
    return np.where(true, int(Outcome.TRUE), rest)


def _across_words(words: str, across: Across, panel: Panel, group: int) -> str:
    """Say how members were put together, where there is more than one and it is not the mean."""
    rows = panel.roster.members(group)
    if rows.stop - rows.start <= 1 or across is Across.AVG:
        return words
    return f"{across} of {words}"
