"""Evaluation: what a rule says of the data, for one slot or many. Pure: no history, no clock.

`evaluate` is for states, `occurrences` for events; which condition answers is decided here, how
is `conditions`. Knows nothing of alerts. Log events are found by the log scanner, not here.
"""

from collections.abc import Callable
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from watchdog.core.columns import Ints
from watchdog.core.conditions.absence import absent
from watchdog.core.conditions.changes import changes
from watchdog.core.conditions.counts import log_count
from watchdog.core.conditions.kinds import (
    Absent,
    Changes,
    LogCount,
    Peers,
    Share,
    Silent,
    StatusEnters,
    StatusIs,
    Threshold,
)
from watchdog.core.conditions.panel import Part
from watchdog.core.conditions.peers import peers
from watchdog.core.conditions.silence import silent
from watchdog.core.conditions.status import status_enters, status_is
from watchdog.core.conditions.threshold import share, threshold
from watchdog.core.outcomes import Evaluation, Evidence, Occurrence
from watchdog.core.rules import Rule
from watchdog.core.series import COUNTED
from watchdog.core.tasks import TaskState
from watchdog.core.view import View, judged_by_source, lookback

__all__ = ["View", "evaluate", "needs", "occurrences"]


def evaluate(rule: Rule, view: View, slots: NDArray[np.int64]) -> Evaluation:
    """Judge a state rule at each slot.

    slots: int64 ns, shape (T,), ascending. Labelsets are the same for all slots; a task still
    within `after_start` at an earlier slot is THIN there. Statuses, nodes, streams and expected
    members are those of the view, for every slot. `explain` holds until the next intake.

    Raises:
        TypeError: the rule's condition is an event.
    """
    parts = [
        _judge(rule, view, states, slots) for states in judged_by_source(rule, view, int(slots[-1])).values()
    ]
    part = parts[0] if len(parts) == 1 else _joined(parts, slots.size)
    return Evaluation(
        rule=rule.name,
        labels=part.labels,
        outcome=part.outcome.astype(np.int8),
        value=part.value,
        since_ns=part.since_ns,
        explain=part.explain,
    )


def occurrences(rule: Rule, view: View, slot_ns: int, interval: timedelta) -> tuple[Occurrence, ...]:
    """Return what happened for a `changes` or `status.enters` rule; nothing for other kinds.

    interval: between slots; a step is late if it is older than five of them, or five polls.
    """
    condition = rule.condition
    if isinstance(condition, Changes):
        return changes(rule, condition, view, slot_ns, interval)
    if isinstance(condition, StatusEnters):
        return status_enters(rule, condition, view)
    return ()


def needs(rule: Rule) -> frozenset[tuple[str, timedelta]]:
    """Return which metrics a rule reads, each with how far back.

    A count of log lines reads the derived metric `log:<rule>` of the task's source.
    """
    condition = rule.condition
    if isinstance(condition, Threshold | Share | Peers | Changes | Absent):
        return frozenset({(condition.metric, lookback(rule))})
    if isinstance(condition, LogCount):
        return frozenset({(COUNTED + rule.name, lookback(rule))})
    return frozenset()


def _judge(rule: Rule, view: View, states: list[TaskState], slots: Ints) -> Part:
    """Ask the rule's condition about the tasks of one source."""
    match rule.condition:
        case Threshold() as condition:
            return threshold(rule, condition, view, states, slots)
        case Share() as condition:
            return share(rule, condition, view, states, slots)
        case Peers() as condition:
            return peers(rule, condition, view, states, slots)
        case Absent() as condition:
            return absent(rule, condition, view, states, slots)
        case LogCount() as condition:
            return log_count(rule, condition, view, states, slots)
        case Silent() as condition:
            return silent(rule, condition, view, states, slots)
        case StatusIs() as condition:
            return status_is(rule, condition, view, states, slots)
        case _:
            raise TypeError(f"{rule.name}: an event has no state to judge")


def _joined(parts: list[Part], slots: int) -> Part:
    """Put the sources' verdicts one below the other."""
    firsts = np.cumsum([0, *(len(part.labels) for part in parts)])

    def explain(group: int, t: int) -> Evidence:
        place = int(np.searchsorted(firsts, group, side="right")) - 1
        own: Callable[[int, int], Evidence] = parts[place].explain
        return own(group - int(firsts[place]), t)

    empty = np.zeros((0, slots), np.int64)
    return Part(
        labels=tuple(labels for part in parts for labels in part.labels),
        outcome=np.concatenate([empty, *(part.outcome for part in parts)]),
        value=np.concatenate([empty.astype(np.float64), *(part.value for part in parts)]),
        since_ns=np.concatenate([empty, *(part.since_ns for part in parts)]),
        explain=explain,
    )
