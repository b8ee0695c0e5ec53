"""Changes: a counter steps up (an event).

Looks at points newer than the store's mark. The first value ever seen of a series, everything
that was there before the first mark, and the first value of an attempt are baseline. Health does not
matter: a point that is here is true, and it is looked at once only.
"""

from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from watchdog.core.conditions.kinds import Changes
from watchdog.core.durations import duration_ns, from_ns
from watchdog.core.labels import Labels, fingerprint, labels_id, within_task
from watchdog.core.members import Roster, roster
from watchdog.core.outcomes import MEMBERS_SHOWN, Evidence, Member, Occurrence
from watchdog.core.rules import Rule
from watchdog.core.series import Table
from watchdog.core.tasks import TaskState
from watchdog.core.view import View, floor_ns, judged_by_source, task_keys

PIECE_ROWS = 4096
LATE_INTERVALS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """The steps of one series. time_ns, before, after: of the last one."""

    row: int
    count: int
    time_ns: int
    before: float
    after: float


def changes(
    rule: Rule, condition: Changes, view: View, slot_ns: int, interval: timedelta
) -> tuple[Occurrence, ...]:
    """Return one occurrence for each series that stepped, all of a labelset with the same evidence."""
    found: list[Occurrence] = []
    for source, states in judged_by_source(rule, view, slot_ns).items():
        table = view.series.table(source, condition.metric)
        if table.columns.rows:
            names = roster(table, states, condition.by, task_keys(view, states))
            unit = view.units.get((source, condition.metric), "")
            late_ns = max(view.fresh_ns(source, condition.metric), LATE_INTERVALS * duration_ns(interval))
            for group, steps in _by_group(table, names, states, condition.at_least).items():
                evidence = _evidence(table, condition, steps, unit)
                found.extend(
                    Occurrence(
                        rule=rule.name,
                        labels=names.labels[group],
                        at=from_ns(step.time_ns),
                        fingerprint=_fingerprint(condition.metric, table.labels[step.row]),
                        count=step.count,
                        evidence=evidence,
                        late=slot_ns - step.time_ns > late_ns,
                    )
                    for step in steps
                )
    return tuple(found)


def _by_group(
    table: Table, names: Roster, states: list[TaskState], at_least: float
) -> dict[int, list[_Step]]:
    """Return the series that stepped, per group, the largest step first."""
    columns = table.columns
    groups = names.by_group
    codes = np.repeat(groups.filled, np.diff(np.append(groups.starts, names.rows.size)))
    group_of, floors = np.empty(names.rows.size, np.int64), np.empty(names.rows.size, np.int64)
    group_of[names.order] = codes
    floors[names.order] = np.array([floor_ns(state) for state in states], np.int64)[names.row_task]
    news = columns.newest[names.rows] > columns.mark[names.rows]
    rows, group_of, floors = names.rows[news], group_of[news], floors[news]
    found: dict[int, list[_Step]] = {}
    for place, span in columns.spans(rows, PIECE_ROWS, 1):
        # A series' new points are its last ones: what all series have consumed is not looked at.
        mark = columns.mark[rows[place]]
        old = np.count_nonzero(span.times <= int(mark.min()), axis=1)
        tail = slice(max(0, int(old.min()) - 1), int(span.counts.max()))
        stored, values = span.times[span.of, tail], span.values[:, tail]
        times, rise = stored[:, 1:], np.diff(values, axis=1)
        inside = np.arange(tail.start + 1, tail.stop) < span.counts[span.of, None]
        inside &= (times > mark[:, None]) & (stored[:, :-1] > floors[place, None])
        stepped = inside & (rise >= at_least)
        for own in np.flatnonzero(stepped.any(axis=1)).tolist():
            last = int(np.flatnonzero(stepped[own])[-1])
            step = _Step(
                row=int(rows[place][own]),
                count=int(stepped[own].sum()),
                time_ns=int(times[own, last]),
                before=float(values[own, last]),
                after=float(values[own, last + 1]),
            )
            found.setdefault(int(group_of[place][own]), []).append(step)
    for steps in found.values():
        steps.sort(key=lambda step: step.before - step.after)
    return found


def _evidence(table: Table, condition: Changes, steps: list[_Step], unit: str) -> Evidence:
    worst = steps[0]
    shown = [
        Member(labels=within_task(table.labels[step.row]), value=step.after) for step in steps[:MEMBERS_SHOWN]
    ]
    return Evidence(
        metric=condition.metric,
        summary=f"{condition.metric} {worst.before:.6g} → {worst.after:.6g}",
        value=worst.after,
        above=True,
        unit=unit,
        members=tuple(shown),
        affected=len(steps),
        of=len(steps),
        covered=len(steps),
    )


def _fingerprint(metric: str, labels: Labels) -> str:
    """More steps of the same series are more of the same; another series is news."""
    return fingerprint(metric, labels_id(within_task(labels)))
