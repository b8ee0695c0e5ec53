"""Absent: an expected member gives no points while the others of its task do.

Knows TRUE, FALSE and ERROR only. A task that gives nothing at all is ERROR: that is the path to
it, or the task itself, and no member can be blamed.
"""

from collections.abc import Sequence

import numpy as np

from watchdog.core.columns import Floats, Ints
from watchdog.core.conditions.kinds import Absent
from watchdog.core.conditions.panel import ALWAYS_NS, Panel, Part, Reduction, metric_panel
from watchdog.core.durations import SECOND_NS
from watchdog.core.labels import GPU, POD, Labels
from watchdog.core.outcomes import Evidence, Outcome
from watchdog.core.rules import Rule
from watchdog.core.tasks import Seen, TaskState
from watchdog.core.view import View, lookback, moment_ns


def absent(rule: Rule, condition: Absent, view: View, states: list[TaskState], slots: Ints) -> Part:
    """Judge an `Absent` for tasks of one source. The value is for how long nothing came, in seconds."""
    reduction = Reduction(metric=condition.metric, by=condition.by, window=None)
    panel = metric_panel(rule, view, states, slots, reduction)
    names = panel.roster
    newest = names.by_group.latest(panel.newest)
    last = np.where(newest > 0, newest, _ghosts_seen(panel)[:, None])
    end = names.by_task.latest(panel.newest)[names.group_task]
    true = end - last > _patience(panel, end - last)
    out = panel.forbid(np.where(true, int(Outcome.TRUE), int(Outcome.FALSE)))
    out = np.where((end == 0) | (out == Outcome.THIN), int(Outcome.ERROR), out)
    value: Floats = np.where(last > 0, (slots - last) / SECOND_NS, np.nan)
    since = np.where(out == Outcome.TRUE, last, 0)

    def explain(group: int, t: int) -> Evidence:
        seconds = float(value[group, t])
        return Evidence(
            metric=condition.metric,
            summary=f"no point of {condition.metric} for",
            value=None if np.isnan(seconds) else seconds,
            above=True,
            unit="s",
            members=panel.members(group, t, above=False),
            affected=int(out[group, t] == Outcome.TRUE),
            of=int(names.expected[group]),
            spark=panel.spark(group, t, lookback(rule)),
            spark_span=lookback(rule),
            detail=panel.detail(group, t),
        )

    whole = Part(labels=names.labels, outcome=out, value=value, since_ns=since, explain=explain)
    return whole.without(names.expected == 0)


def _ghosts_seen(panel: Panel) -> Ints:
    """When an expected member that has no series here was last seen, per group; 0 = never: (G,)."""
    seen = np.zeros(len(panel.roster.labels), np.int64)
    last: dict[int, dict[Labels, int]] = {}  # task → member → when it, or any part of it, was last seen
    for group, task, number in panel.roster.ghosts:
        expected = panel.states[task].expected
        if task not in last:
            last[task] = _last_seen(expected)
        seen[group] = max(seen[group], last[task].get(expected[number].labels.only((POD, GPU)), 0))
    return seen


def _last_seen(expected: Sequence[Seen]) -> dict[Labels, int]:
    """Return when each member was last seen; a pod also as any of its GPUs."""
    found: dict[Labels, int] = {}
    for member in expected:
        last = moment_ns(member.last)
        for names in ((POD, GPU), (POD,), (GPU,)):
            own = member.labels.only(names)
            found[own] = max(last, found.get(own, 0))
    return found


def _patience(panel: Panel, behind: Ints) -> Ints:
    """How far behind its task a group may be: (G, 1). behind: how far each is, (G, T)."""
    poll_ns = panel.view.poll_ns(panel.source)
    spacing = panel.table.columns.spacing
    least = 2 * int(spacing.min(initial=0 if not spacing.size else ALWAYS_NS)) + poll_ns
    if behind.max(initial=0) <= least:
        return np.full((behind.shape[0], 1), least)  # nobody is, whatever each may be
    return 2 * _spacing(panel)[:, None] + poll_ns


def _spacing(panel: Panel) -> Ints:
    """The widest usual gap between points of a group's series, or of its task's: (G,)."""
    names = panel.roster
    own = panel.table.columns.spacing[names.rows][names.order][:, None]
    group = names.by_group.latest(own)[:, 0]
    task = names.by_task.latest(own)[:, 0]
    return np.where(group > 0, group, task[names.group_task])
