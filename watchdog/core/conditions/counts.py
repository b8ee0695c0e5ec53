"""Log counts: how many matching lines came within a window, against a level.

Reads the derived metric `log:<rule>`, whose points count lines per second. Zero lines of a log
that can be read is FALSE, never NODATA.
"""

import numpy as np

from watchdog.core import windows
from watchdog.core.columns import Floats, Ints
from watchdog.core.conditions.kinds import By, Capability, LogCount
from watchdog.core.conditions.panel import PIECE, SKEW_NS, SPARK, Part, beyond, bucketed, verdict
from watchdog.core.durations import duration_ns, format_duration
from watchdog.core.health import Failure
from watchdog.core.labels import NODE, POD
from watchdog.core.members import Roster, roster
from watchdog.core.outcomes import MEMBERS_SHOWN, Evidence, Member, Outcome
from watchdog.core.rules import Rule
from watchdog.core.series import COUNTED, Table
from watchdog.core.tasks import TaskState
from watchdog.core.view import View, floor_ns, lookback, moment_ns, task_keys, too_early


def log_count(rule: Rule, condition: LogCount, view: View, states: list[TaskState], slots: Ints) -> Part:
    """Judge a `LogCount` for tasks of one source.

    Each pod's window ends as long before the slot as its lines usually come late, so that late
    lines are counted in a whole window too.
    """
    table = view.series.table(states[0].task.source, COUNTED + rule.name)
    by = By.POD if condition.by is By.GPU else condition.by  # lines know no GPU
    names = roster(table, states, by, task_keys(view, states))
    floors = np.array([floor_ns(state) for state in states], np.int64)
    late = _lateness(table, names, view, states)
    lines = _counted(table, names, slots[None, :] - late[:, None], floors, duration_ns(condition.within))
    value = np.nan_to_num(names.by_group.across(lines, np.ones(lines.shape, np.bool_), "sum"), nan=0.0)
    out = verdict(value, condition.comparison)
    if not condition.comparison.above:  # too few lines in too short a time prove nothing
        begun = np.array([max(floor_ns(one), moment_ns(one.watched_since)) for one in states], np.int64)
        need = round(duration_ns(condition.within) * rule.coverage)
        out = np.where(slots[None, :] - begun[names.group_task, None] < need, int(Outcome.THIN), out)
    reasons = [_unseen(view, table, state, condition.lines.prefilter) for state in states]
    blind = np.array([bool(reason) for reason in reasons], np.bool_)
    out = np.where(blind[names.group_task, None], int(Outcome.ERROR), out)
    out = np.where(too_early(rule, states, slots)[names.group_task], int(Outcome.THIN), out)
    span = lookback(rule)

    def explain(group: int, t: int) -> Evidence:
        rows = names.members(group)
        stored, each = names.rows[names.order[rows]], lines[rows, t]
        end, length = int(slots[t]), duration_ns(span)
        spark = bucketed(table, stored, (end - length, end), SPARK, length)[0]
        return Evidence(
            summary=f"matching lines within {format_duration(condition.within)}",
            value=float(value[group, t]),
            threshold=condition.comparison.threshold,
            above=condition.comparison.above,
            members=_members(table, stored, each, above=condition.comparison.above),
            affected=int(beyond(each, condition.comparison).sum()),
            of=int(each.size),
            covered=int(each.size),
            spark=tuple(spark.tolist()),
            spark_span=span,
            detail=reasons[int(names.group_task[group])],
        )

    newest = table.columns.newest[names.rows][names.order][:, None]
    old = names.by_group.latest(newest)[:, 0] <= floors[names.group_task]
    gone = old & (names.expected == 0) & names.has_rows[names.group_task] & (by is not By.TASK)
    since = np.zeros(out.shape, np.int64)
    whole = Part(labels=names.labels, outcome=out, value=value, since_ns=since, explain=explain)
    return whole.without(gone)


def _unseen(view: View, table: Table, state: TaskState, prefilter: str) -> str:
    """Why the lines of a task cannot be counted; "" if they can. Lines of the future lie in no window."""
    blind = view.blind(state, Capability.LOGS, prefilter)
    if blind or table.ahead_ns(state.task.key) <= SKEW_NS:
        return blind
    return str(Failure.CLOCK_SKEW)


def _lateness(table: Table, names: Roster, view: View, states: list[TaskState]) -> Ints:
    """How long after they were written a pod's lines last came, per row in roster order, ns: (R,)."""
    by_pod: dict[tuple[int, str], int] = {}
    for task, state in enumerate(states):
        for stream in view.streams.get(state.task.key, ()):
            for pod, arrived in stream.arrived_ns.items():
                delay = max(0, arrived - stream.newest_ns.get(pod, arrived))
                by_pod[task, pod] = min(delay, by_pod.get((task, pod), delay))
    rows = names.rows[names.order].tolist()
    found = [
        by_pod.get((task, table.labels[row].get(POD, "")), 0)
        for row, task in zip(rows, names.row_task.tolist(), strict=True)
    ]
    return np.array(found, np.int64)


def _counted(table: Table, names: Roster, ends: Ints, floors: Ints, length_ns: int) -> Floats:
    """Count lines per row and slot, in roster order: (R, T)."""
    lines = np.zeros(ends.shape)
    stored_ends, row_floors = np.empty_like(ends), np.empty(names.rows.size, np.int64)
    stored_ends[names.order], row_floors[names.order] = ends, floors[names.row_task]
    for place, span in table.columns.spans(names.rows, max(1, PIECE // ends.shape[1]), 1):
        at = windows.frames(span, stored_ends[place], length_ns, row_floors[place])
        lines[place] = np.nan_to_num(windows.reduce(at, "sum"), nan=0.0)
    return lines[names.order]


def _members(table: Table, stored: Ints, each: Floats, *, above: bool) -> tuple[Member, ...]:
    order = np.argsort(-each if above else each, kind="stable")[:MEMBERS_SHOWN]
    shown = [(table.labels[int(stored[row])], float(each[row])) for row in order.tolist()]
    return tuple(
        Member(labels=labels.only((POD, NODE)), value=value) for labels, value in shown if POD in labels
    )
