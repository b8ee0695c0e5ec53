"""Panel: one rule on one source, its series reduced over time, ready for a verdict per group.

Owns what all metric conditions share: window ends, freshness, coverage, quorum, errors, and the
evidence behind a verdict. The conditions own only their question.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from typing import cast

import numpy as np

from watchdog.core import windows
from watchdog.core.columns import FEW_SLOTS, Bools, Floats, Ints
from watchdog.core.conditions.kinds import Aggregate, By, Capability, Comparison
from watchdog.core.durations import MINUTE_NS, duration_ns
from watchdog.core.health import Failure
from watchdog.core.labels import Labels, within_task
from watchdog.core.members import Roster, roster
from watchdog.core.outcomes import MEMBERS_SHOWN, Evidence, Member, Outcome
from watchdog.core.rules import Rule
from watchdog.core.series import Table
from watchdog.core.tasks import TaskState
from watchdog.core.view import View, floor_ns, lookback, task_keys, too_early

ALWAYS_NS = 100 * 365 * 24 * 60 * MINUTE_NS  # the window of "the newest value"
SKEW_NS = 2 * MINUTE_NS
PIECE = 1 << 19  # rows × slots reduced at a time
SPARK = 24
EXACT = 1e-12  # a mean of equal values may miss their value by this part of it

Explain = Callable[[int, int], Evidence]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The verdicts of a rule on one source; as in `Evaluation`."""

    labels: tuple[Labels, ...]
    outcome: Ints
    value: Floats
    since_ns: Ints
    explain: Explain

    def without(self, hidden: Bools) -> "Part":
        """Return the part without some labelsets: hidden (G,)."""
        if not hidden.any():
            return self
        kept = np.flatnonzero(~hidden)
        return Part(
            labels=tuple(self.labels[g] for g in kept.tolist()),
            outcome=self.outcome[kept],
            value=self.value[kept],
            since_ns=self.since_ns[kept],
            explain=lambda g, t: self.explain(int(kept[g]), t),
        )


def beyond(values: Floats, comparison: Comparison) -> Bools:
    """Return where values lie strictly beyond the threshold."""
    return _past(values, comparison.threshold, above=comparison.above)


def _past(values: Floats, level: float, *, above: bool) -> Bools:
    slack = abs(level) * EXACT
    return values > level + slack if above else values < level - slack


def verdict(values: Floats, comparison: Comparison) -> Ints:
    """Return TRUE, FALSE or BETWEEN for each value."""
    true = beyond(values, comparison)
    if comparison.clear is None:
        return np.where(true, int(Outcome.TRUE), int(Outcome.FALSE))
    clear = _past(values, comparison.clear, above=not comparison.above)
    rest = np.where(clear, int(Outcome.FALSE), int(Outcome.BETWEEN))
    return np.where(true, int(Outcome.TRUE), rest)


@dataclass(frozen=True, kw_only=True)  # no slots: counts are kept once asked for
class Panel:
    """A rule's series of one source, reduced over time.

    In roster order, (R, T): values (NaN where nothing), covered, fresh, newest (ns, 0 = none).
    errors: (tasks, T), why there is no valid answer: a code into `reasons`, 0 = there is one.
    ends: (T,), where windows end. floors: (tasks,), attempt starts. early: (tasks, T), `after_start` runs or
    the source's answer was cut.
    """

    rule: Rule
    view: View
    source: str
    metric: str
    by: By
    states: list[TaskState]
    slots: Ints
    table: Table
    roster: Roster
    ends: Ints
    floors: Ints
    early: Bools
    values: Floats
    covered: Bools
    fresh: Bools
    newest: Ints
    errors: Ints
    reasons: tuple[str, ...]

    @cached_property
    def of(self) -> tuple[Ints, Ints]:
        """Return how many members each group has in all, and how many are covered: (G, T) each.

        Members: the expected ones and whatever else is covered; all of this attempt's series if
        nothing is known to be expected.
        """
        groups = self.roster.by_group
        covered = groups.count(self.covered)
        extra = groups.count(self.covered & ~self.roster.row_expected[:, None])
        expected = self.roster.expected[:, None] + extra
        if self.roster.has_expected.all():
            return expected, covered
        present = groups.count(self.newest > self.floors[self.roster.row_task, None])
        known = self.roster.has_expected[self.roster.group_task]
        return np.where(known[:, None], expected, present), covered

    @cached_property
    def whole(self) -> bool:
        """Whether nothing at all is missing, as almost always: all are here, covered and answered."""
        return self.roster.whole and bool(self.covered.all()) and not (self.errors.any() or self.early.any())

    def outcomes(self, found: Ints, value: Floats) -> Ints:
        """Lay over verdicts (G, T) what forbids them: THIN, NODATA, ERROR."""
        if self.whole and np.isfinite(value).all():
            return found
        total, covered = self.of
        need = self.rule.quorum * total - 1e-9
        thin = (covered == 0) | (covered < need) | ~np.isfinite(value)
        out = np.where(thin, int(Outcome.THIN), found)
        task = self.roster.group_task
        missing = self.roster.by_group.count(self.fresh) == 0
        if missing.any():
            settled = self.slots[None, :] - self.floors[task, None] >= self.view.fresh_ns(
                self.source, self.metric
            )
            out = np.where(missing & settled, int(Outcome.NODATA), out)
            out = np.where(missing & ~settled, int(Outcome.THIN), out)
        return self.forbid(out)

    def forbid(self, out: Ints) -> Ints:
        """Lay ERROR over verdicts (G, T), and THIN while `after_start` runs."""
        task = self.roster.group_task
        if self.errors.any():
            out = np.where(self.errors[task] > 0, int(Outcome.ERROR), out)
        if self.early.any():
            out = np.where(self.early[task], int(Outcome.THIN), out)
        return out

    def left(self) -> Bools:
        """Return which groups are of no interest any more: (G,).

        Nothing fresh, not expected, and either something else is, or all they have is of an
        earlier attempt.
        """
        names = self.roster
        if self.whole:
            return np.zeros(len(names.labels), np.bool_)
        gone = (names.by_group.count(self.fresh) == 0).all(axis=1) & (names.expected == 0)
        if self.by is By.TASK or not gone.any():
            return np.zeros(len(names.labels), np.bool_)
        old = (names.by_group.latest(self.newest) <= self.floors[names.group_task, None]).all(axis=1)
        others = names.has_expected[names.group_task] | old
        left: Bools = gone & others & names.has_rows[names.group_task]
        return left

    def part(self, out: Ints, value: Floats, explain: Explain, hidden: Bools | None = None) -> Part:
        """Put a result together, without groups that left or that the condition hides (G,)."""
        left = self.left() if hidden is None else self.left() | hidden
        since = np.zeros(out.shape, np.int64)
        whole = Part(labels=self.roster.labels, outcome=out, value=value, since_ns=since, explain=explain)
        return whole.without(left)

    def detail(self, group: int, t: int) -> str:
        """Why there is no verdict, in a few words; "" if there is one."""
        return self.reasons[int(self.errors[self.roster.group_task[group], t])]

    def members(self, group: int, t: int, *, above: bool) -> tuple[Member, ...]:
        """Return the members of a group, worst first, covered ones before the others; capped."""
        own = self.roster.members(group)
        rows = np.arange(own.start, own.stop)
        seen = rows[self.newest[rows, t] > self.floors[self.roster.row_task[rows]]]
        worth = np.where(self.covered[seen, t], self.values[seen, t], np.nan)
        order = np.argsort(-worth if above else worth, kind="stable")[:MEMBERS_SHOWN]
        stored = self.roster.rows[self.roster.order[seen[order]]]
        return tuple(
            Member(
                labels=within_task(self.table.labels[int(row)]),
                value=None if np.isnan(worth[place]) else float(worth[place]),
            )
            for row, place in zip(stored.tolist(), order.tolist(), strict=True)
        )

    def spark(self, group: int, t: int, span: timedelta) -> tuple[float | None, ...]:
        """Return the mean of the group's points in about 24 equal steps up to the window's end."""
        rows = self.roster.rows[self.roster.order[self.roster.members(group)]]
        if not rows.size or int(rows.max()) >= self.table.columns.rows:
            return ()
        length, end = duration_ns(span), int(self.ends[t])
        spacing = np.sort(self.table.columns.spacing[rows])  # np.median would load numpy.ma, for ever
        step = max(self.view.poll_ns(self.source), int(spacing[spacing.size // 2]))
        low = max(end - length, int(self.floors[self.roster.group_task[group]]))
        total, points = bucketed(self.table, rows, (low, end), max(1, min(SPARK, length // step)), length)
        return tuple(
            sum_ / count if count else None
            for sum_, count in zip(total.tolist(), points.tolist(), strict=True)
        )


def bucketed(
    table: Table, rows: Ints, within: tuple[int, int], steps: int, length_ns: int
) -> tuple[Floats, Floats]:
    """Return sum and number of the rows' points in equal steps of the time up to within[1], oldest first.

    within: bounds in ns, the first exclusive; length_ns: all steps together.
    """
    low, end = within
    total, points = np.zeros(steps), np.zeros(steps)
    for _, part in table.columns.spans(np.sort(rows), max(1, rows.size), 1):
        times = part.times[part.of]
        inside = (times > low) & (times <= end)
        bucket = steps - 1 - (end - times[inside]) * steps // length_ns
        total += np.bincount(bucket, weights=part.values[inside], minlength=steps)
        points += np.bincount(bucket, minlength=steps)
    return total, points


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduction:
    """How each series is reduced: an aggregate over a window, or `share` of time beyond a level."""

    metric: str
    by: By
    window: timedelta | None
    aggregate: Aggregate = Aggregate.LAST
    share: Comparison | None = None

    @property
    def length_ns(self) -> int:
        """The window's length; without one, always."""
        return duration_ns(self.window) if self.window is not None else ALWAYS_NS

    def __call__(self, at: windows.Frames) -> Floats:
        """Reduce a span."""
        if self.share is not None:
            return windows.share(at, beyond(at.span.values, self.share))
        return windows.reduce(at, self.aggregate)


def metric_panel(
    rule: Rule,
    view: View,
    states: list[TaskState],
    slots: Ints,
    reducer: Reduction,
) -> Panel:
    """Reduce a metric over its window for all series of these tasks (of one source).

    Rules that ask for the same share it, but for their own of `rule`.
    """
    need = round(rule.coverage * reducer.length_ns) if reducer.window is not None else 0
    if slots.size > FEW_SLOTS:  # of many slots it is too large to be kept
        return _made(rule, view, states, slots, reducer, need)
    key = ("panel", id(states), slots.tobytes(), reducer, need, rule.after_start)
    known = view.kept.get(key)
    if not isinstance(known, Panel):
        known = view.kept[key] = _made(rule, view, states, slots, reducer, need)
    return known if known.rule is rule else replace(known, rule=rule)


def _made(
    rule: Rule, view: View, states: list[TaskState], slots: Ints, reducer: Reduction, need_ns: int
) -> Panel:
    source = states[0].task.source
    table = view.series.table(source, reducer.metric)
    names = roster(table, states, reducer.by, task_keys(view, states))
    ends = table.end(slots)
    fresh_ns = view.fresh_ns(source, reducer.metric)
    ends = np.where(slots - ends < fresh_ns, ends, slots)
    floors = _floors(view, states)
    row_floors = np.empty(names.rows.size, np.int64)
    row_floors[names.order] = floors[names.row_task]
    values, covered, newest = _reduced(table, names.rows, ends, row_floors, reducer, view.poll_ns(source))
    if not names.straight:
        values = values.take(names.order, axis=0)
        covered, newest = covered.take(names.order, axis=0), newest.take(names.order, axis=0)
    fresh = (slots - newest < fresh_ns) & (newest > floors[names.row_task, None])
    errors, reasons = _errors(view, states, reducer.metric, slots, names.by_task.latest(newest))
    return Panel(
        rule=rule,
        view=view,
        source=source,
        metric=reducer.metric,
        by=reducer.by,
        states=states,
        slots=slots,
        table=table,
        roster=names,
        ends=ends,
        floors=floors,
        early=too_early(rule, states, slots) | _cut(table, states),
        values=values,
        covered=fresh & (covered >= need_ns) & ~np.isnan(values),
        fresh=fresh,
        newest=newest,
        errors=errors,
        reasons=reasons,
    )


def _floors(view: View, states: list[TaskState]) -> Ints:
    """Return when each task's attempt began: (tasks,)."""
    found = view.kept.get(("floors", id(states)))
    if not isinstance(found, np.ndarray):
        found = np.array([floor_ns(state) for state in states], np.int64)
        view.kept["floors", id(states)] = found
    return found


def _cut(table: Table, states: list[TaskState]) -> Bools:
    """Return of which tasks the source showed less than it has: (tasks, 1)."""
    if not table.cut:
        return np.zeros((len(states), 1), np.bool_)
    return np.array([state.task.key in table.cut for state in states], np.bool_)[:, None]


def _reduced(
    table: Table, rows: Ints, ends: Ints, floors: Ints, reducer: Reduction, poll_ns: int
) -> tuple[Floats, Ints, Ints]:
    """Return values, covered ns and newest time per row and slot, in storage order."""
    parts = [(np.zeros((0, ends.size)), *np.zeros((2, 0, ends.size), np.int64))]
    for place, span in table.columns.spans(rows, max(1, PIECE // ends.size), poll_ns):
        at = windows.frames(span, ends[None, :], reducer.length_ns, floors[place])
        newest = windows.newest_ns(at)
        covered = windows.covered_ns(at) if reducer.window is not None else np.broadcast_to(0, newest.shape)
        parts.append((reducer(at), covered, newest))
    if len(parts) == 2:
        return parts[1]
    values, covered, newest = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return values, covered, newest


def _errors(
    view: View, states: list[TaskState], metric: str, slots: Ints, newest: Ints
) -> tuple[Ints, tuple[str, ...]]:
    """Say per task and slot why there is no valid answer: codes into the reasons, 0 = there is one."""
    source = states[0].task.source
    stale = (newest > 0) & (slots - newest >= view.fresh_ns(source, metric))
    key = ("unanswered", id(states), metric)
    if key not in view.kept:
        view.kept[key] = _unanswered(view, states, metric)
    codes, reasons = cast("tuple[Ints, tuple[str, ...]]", view.kept[key])
    return np.where(codes[:, None] > 0, codes[:, None], stale.astype(np.int64)), reasons


def _unanswered(view: View, states: list[TaskState], metric: str) -> tuple[Ints, tuple[str, ...]]:
    """Say the same for what holds in every slot: (tasks,)."""
    reasons = ["", str(Failure.STALE), str(Failure.CLOCK_SKEW), "not asked yet"]
    table = view.series.table(states[0].task.source, metric)
    codes = np.zeros(len(states), np.int64)
    usual = table.in_time(SKEW_NS).intersection(view.sound.get((Capability.METRICS, metric), ()))
    if usual.issuperset(task_keys(view, states)):
        return codes, tuple(reasons)
    for task, state in enumerate(states):
        if state.task.key in usual:
            continue
        answered = table.answered.get(state.task.key)
        if answered is None:
            codes[task] = 3
        elif table.ahead_ns(state.task.key) > SKEW_NS:
            codes[task] = 2
        if blind := view.blind(state, Capability.METRICS, metric):
            codes[task] = len(reasons)
            reasons.append(blind)
    return codes, tuple(reasons)


def basis(panel: Panel, group: int, t: int, comparison: Comparison) -> Evidence:
    """Return the evidence every metric verdict shares; the condition adds its words and value."""
    total, covered = panel.of
    rows = panel.roster.members(group)
    affected = beyond(panel.values[rows, t], comparison) & panel.covered[rows, t]
    span = lookback(panel.rule)
    return Evidence(
        metric=panel.metric,
        threshold=comparison.threshold,
        above=comparison.above,
        unit=panel.view.units.get((panel.source, panel.metric), ""),
        members=panel.members(group, t, above=comparison.above),
        affected=int(affected.sum()),
        of=int(total[group, t]),
        covered=int(covered[group, t]),
        spark=panel.spark(group, t, span),
        spark_span=span,
        detail=panel.detail(group, t),
    )


def with_value(evidence: Evidence, value: float) -> Evidence:
    """Return the evidence with a value, None for NaN."""
    return replace(evidence, value=None if np.isnan(value) else value)
