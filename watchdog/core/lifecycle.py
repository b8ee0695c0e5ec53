"""The lifecycle of alerts: from verdicts to what happened, slot by slot.

`advance` knows history and no data; it is the table of DESIGN §6. Owns how an alert becomes
pending, fires, is held, and closes. How alerts share an incident is `membership`, events are
`events`, closings for outside reasons are `endings`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property
from typing import Self

import numpy as np

from watchdog.core import carrying
from watchdog.core.alerts import Alert, CloseReason, Phase, alert_id
from watchdog.core.conditions.kinds import Absent, Silent, StatusIs
from watchdog.core.durations import from_ns, to_ns
from watchdog.core.flapping import patience
from watchdog.core.incidents import Book, Step, worse
from watchdog.core.labels import TASK, Labels
from watchdog.core.membership import Draft, Verdicts, settle
from watchdog.core.moments import Tick
from watchdog.core.outcomes import Evaluation, Outcome
from watchdog.core.rules import Level, OnNoData, Rule, Severity
from watchdog.core.tasks import Status, TaskState

PENDING_MISSING_INTERVALS = 2
PENDING_BLOCKED = timedelta(hours=1)  # watched
FIRING_MISSING = timedelta(minutes=30)  # watched
MOST_ALERTS = 10_000  # labelsets of one rule that are followed at once
_SAME_NS = 1_000_000  # moments are stored in microseconds
UNSEEN_INTERVALS = 5  # how soon after a start the first verdict speaks of the time before it

_BLOCKED = frozenset({Outcome.THIN, Outcome.ERROR})


class Gate(StrEnum):
    """Whether a rule may judge a task now."""

    OPEN = "open"
    STILL = "still"  # `while` or `after_start`: everything stays as it is
    ENDED = "ended"
    UNWATCHED = "unwatched"
    FOREIGN = "foreign"  # an edited `select` does not take it any more


_SHUT = {
    Gate.ENDED: CloseReason.TASK_ENDED,
    Gate.UNWATCHED: CloseReason.UNWATCHED,
    Gate.FOREIGN: CloseReason.RULE_REMOVED,
}


def gate(rule: Rule, state: TaskState | None, at: datetime) -> Gate:
    """Say whether a rule may judge a task. A rule without `while_status` also judges ended tasks.

    But that a task waits no longer because it has failed is no recovery.
    """
    if state is None:
        return Gate.UNWATCHED
    if rule.select.patterns and not rule.applies(state.task):
        return Gate.FOREIGN
    if isinstance(rule.condition, StatusIs) and _left_for_good(rule.condition, state.status):
        return Gate.ENDED
    wanted = rule.while_status
    if wanted is not None and state.status not in wanted:
        if state.status.ended:
            return Gate.ENDED
        if not (state.status is Status.UNKNOWN and Status.RUNNING in wanted):
            return Gate.STILL
    started = state.attempt_started
    if rule.after_start and started is not None and at < started + rule.after_start:
        return Gate.STILL
    return Gate.OPEN


def _left_for_good(condition: StatusIs, status: Status) -> bool:
    """Whether the task left the statuses that the rule is about by ending, or by vanishing."""
    if status in condition.statuses or not status.ended:
        return False
    return status is Status.VANISHED or not any(one.ended for one in condition.statuses)


def next_look(rule: Rule, identity: str, alert: Alert) -> timedelta | None:
    """Return from when on (watched) a slot that finds an alert TRUE changes it; None = it is not carried.

    It fires, escalates, or its stored value gets old. identity: the rule's.
    """
    if alert.counting is None or alert.rule_identity != identity:
        return None
    if alert.phase is Phase.PENDING:
        left = [hold_of(rule) - alert.held]
    else:
        levels = rule.levels
        if not levels or alert.held < levels[0].hold:  # a reload may have raised the rule's severity
            levels = (Level(hold=timedelta(), severity=rule.severity), *levels)
        left = [level.hold - alert.held for level in levels if level.severity.rank > alert.severity.rank]
    return alert.counting + min([carrying.RENEWED, *left])


def hold_of(rule: Rule) -> timedelta:
    """Return how long a rule's condition must hold before it fires."""
    return rule.levels[0].hold if rule.levels else rule.hold


@dataclass(frozen=True)  # no slots: `measured` is kept once asked for
class _Slot:
    """One rule at one slot: what every decision below looks at, computed once."""

    rule: Rule
    tick: Tick
    identity: str
    hold: timedelta
    book: Book
    last: Evaluation | None  # of the slot before

    @classmethod
    def of(cls, seen: Verdicts, book: Book) -> Self:
        return cls(seen.rule, seen.tick, seen.rule.identity, hold_of(seen.rule), book, seen.last)

    def severity(self, held: timedelta) -> Severity:
        """The level reached after so much unbroken TRUE."""
        reached = [level.severity for level in self.rule.levels if level.hold <= held]
        return reached[-1] if reached else self.rule.severity

    def held_at_first(self, since_ns: int) -> timedelta:
        """How long it has been TRUE when it is first seen TRUE; never longer than we have watched."""
        if since_ns <= 0:
            return timedelta()
        age = timedelta(microseconds=max(0, to_ns(self.tick.at) - since_ns) // 1_000)
        return min(age, self.tick.run)

    def carries(self, alert: Alert) -> bool:
        """Whether one more slot that finds an alert TRUE changes nothing of it."""
        due = next_look(self.rule, self.identity, alert)
        return due is not None and self.tick.moment.watched < due

    def held(self, alert: Alert) -> timedelta:
        """How long an alert had been true at the slot before."""
        return carrying.held(alert, self.tick.previous)

    def halted(self, alerts: Iterable[Alert]) -> tuple[Alert, ...]:
        """Return alerts that were carried, as the slot before left them."""
        return carrying.as_of(alerts, self.measured, self.tick.previous)

    @cached_property
    def measured(self) -> Mapping[Labels, float | None]:
        """What the slot before measured."""
        return {} if self.last is None else carrying.values(self.last, 0)


@dataclass(frozen=True, slots=True)
class _Sight:
    """What one slot says about one labelset. g: its row in the evaluation, -1 = not in it."""

    outcome: Outcome
    g: int = -1
    value: float | None = None
    since_ns: int = 0


def advance(seen: Verdicts, book: Book) -> Step:
    """Decide what the verdicts of one slot change.

    Costs little for labelsets that are neither TRUE nor known, and for alerts that go on (`carrying`).
    Beyond `MOST_ALERTS` known ones no new one is followed; how many that leaves out is `left_out`.
    """
    rule, tick = seen.rule, seen.tick
    slot = _Slot.of(seen, book)
    known = book.known(rule.name)
    if tick.settling:
        return Step(alerts=slot.halted(one for one in known.values() if one.counting is not None))
    room = MOST_ALERTS - len(known)
    doors: dict[str, Gate] = {}
    draft = Draft()
    for labels, g in _worth_a_look(rule, seen.evaluation, seen.column, known).items():
        task = labels.get(TASK, "")
        if task not in doors:
            doors[task] = gate(rule, seen.tasks.get(task), tick.at)
        door = doors[task]
        alert = known.get(labels)
        if alert is not None and door is Gate.OPEN and g >= 0 and _goes_on(slot, alert, seen, g):
            continue
        sight = _sight(rule, seen.evaluation, seen.column, g)
        if alert is not None:
            _advance_known(slot, alert, sight, door, draft)
        elif door is Gate.OPEN and room > 0:
            room -= 1
            _put(_born(slot, labels, sight), None, sight, draft)
    return settle(seen, draft, book)


def _goes_on(slot: _Slot, alert: Alert, seen: Verdicts, g: int) -> bool:
    """Whether nothing changes of a known alert. A pending one with a `since` may have been interrupted."""
    if seen.evaluation.outcome[g, seen.column] != Outcome.TRUE or not slot.carries(alert):
        return False
    return alert.phase is Phase.FIRING or not seen.evaluation.since_ns[g, seen.column]


def left_out(rule: Rule, evaluation: Evaluation, column: int, book: Book) -> int:
    """Return how many labelsets are TRUE after a slot and not followed, because too many are."""
    known = book.known(rule.name)
    if len(known) < MOST_ALERTS:
        return 0
    true = np.flatnonzero(evaluation.outcome[:, column] == Outcome.TRUE)
    return sum(evaluation.labels[g] not in known for g in true.tolist())


def _worth_a_look(
    rule: Rule, evaluation: Evaluation, column: int, known: Mapping[Labels, Alert]
) -> dict[Labels, int]:
    """Return the labelsets that count as TRUE, and the known ones, with their rows; -1 = it has none."""
    codes = evaluation.outcome[:, column]
    true = codes == Outcome.TRUE
    if rule.on_no_data is OnNoData.FIRE:
        true = true | (codes == Outcome.NODATA)
    rows = {evaluation.labels[g]: g for g in np.flatnonzero(true).tolist()}
    others = [labels for labels in known if labels not in rows]
    if others:
        wanted = {labels.code: labels for labels in others}
        rows.update((labels, -1) for labels in others)
        rows.update(
            (wanted[labels.code], g) for g, labels in enumerate(evaluation.labels) if labels.code in wanted
        )
    return rows


def _sight(rule: Rule, evaluation: Evaluation, column: int, g: int) -> _Sight:
    outcome = Outcome.NODATA if g < 0 else Outcome(int(evaluation.outcome[g, column]))
    if outcome is Outcome.NODATA:
        if isinstance(rule.condition, Absent | Silent):
            outcome = Outcome.ERROR  # missing data is what they are about: no verdict
        elif rule.on_no_data is OnNoData.FIRE:
            outcome = Outcome.TRUE
    if g < 0:
        return _Sight(outcome)
    value = float(evaluation.value[g, column])
    return _Sight(outcome, g, None if np.isnan(value) else value, int(evaluation.since_ns[g, column]))


def _advance_known(slot: _Slot, known: Alert, sight: _Sight, door: Gate, draft: Draft) -> None:
    goes_on = door is Gate.OPEN and sight.outcome is Outcome.TRUE
    alert = known if goes_on else slot.halted([known])[0]
    if door is Gate.STILL:
        sight = _Sight(Outcome.ERROR)
    elif door is not Gate.OPEN:
        draft.dropped.append(alert)
        if alert.phase is Phase.FIRING:
            draft.of(alert.labels).left[alert.labels] = (alert, _SHUT[door], -1)
        return
    if alert.phase is Phase.PENDING:
        after = _pending(slot, alert, sight)
        if after is None:
            draft.dropped.append(alert)
        else:
            _put(after, known, sight, draft)
        return
    fate = _firing(slot, alert, sight)
    if isinstance(fate, Alert):
        _put(fate, known, sight, draft)
    else:
        draft.dropped.append(alert)
        unseen = fate is CloseReason.RECOVERED and _unseen(slot, alert)
        draft.of(alert.labels).left[alert.labels] = (replace(alert, unseen=unseen), fate, sight.g)


def _put(after: Alert, before: Alert | None, sight: _Sight, draft: Draft) -> None:
    """Note an alert's new state, and what it means for its incident."""
    if after is before or after == before:
        return
    draft.alerts[after.labels] = after
    if after.phase is not Phase.FIRING:
        return
    if before is None or before.phase is not Phase.FIRING:
        draft.of(after.labels).fired[after.labels] = (after, sight.g)
    elif after.severity is not before.severity:
        draft.of(after.labels).raised[after.labels] = (after, sight.g)


def _born(slot: _Slot, labels: Labels, sight: _Sight) -> Alert:
    """An inactive labelset turns TRUE: pending, or firing at once."""
    since_ns = min(sight.since_ns, to_ns(slot.tick.at))
    alert = Alert(
        id=alert_id(slot.rule.name, labels),
        rule=slot.rule.name,
        labels=labels,
        phase=Phase.PENDING,
        since=from_ns(since_ns) if since_ns > 0 else slot.tick.at,
        held=slot.held_at_first(sight.since_ns),
        severity=slot.severity(timedelta()),
        rule_identity=slot.identity,
        value=sight.value,
        judged=slot.tick.at,
        counting=slot.tick.moment.watched,
    )
    return _fired_if_due(slot, alert)


def _fired_if_due(slot: _Slot, alert: Alert) -> Alert:
    if alert.held < slot.hold:
        return alert
    return replace(alert, phase=Phase.FIRING, fired_at=slot.tick.at, severity=slot.severity(alert.held))


def _pending(slot: _Slot, alert: Alert, sight: _Sight) -> Alert | None:
    """The `pending` row of the table; None = inactive. An edited condition starts anew."""
    edited = alert.rule_identity != slot.identity
    elapsed = slot.tick.elapsed
    if sight.outcome is Outcome.TRUE:
        if edited or _interrupted(alert, sight):
            return _born(slot, alert.labels, sight)
        none = timedelta()
        alert = replace(
            alert,
            held=slot.held(alert) + elapsed,
            missing_for=none,
            blocked_for=none,
            verdict=Outcome.TRUE,
            judged=slot.tick.at,
            value=sight.value,
            counting=slot.tick.moment.watched,
        )
        return _fired_if_due(slot, alert)
    if edited:
        return None
    if sight.outcome in _BLOCKED:
        blocked = alert.blocked_for + elapsed
        return None if blocked >= PENDING_BLOCKED else replace(alert, blocked_for=blocked)
    if sight.outcome is Outcome.NODATA and slot.rule.on_no_data is OnNoData.HOLD:
        missing = _missing(alert, elapsed)
        if missing >= PENDING_MISSING_INTERVALS * slot.tick.interval:
            return None
        return replace(alert, held=alert.held + elapsed, missing_for=missing, verdict=Outcome.NODATA)
    return None


def _interrupted(alert: Alert, sight: _Sight) -> bool:
    """Whether what it waits for came since, between two slots that both found it TRUE."""
    return sight.since_ns > to_ns(alert.since) + _SAME_NS


def _missing(alert: Alert, elapsed: timedelta) -> timedelta:
    """Watched time since the first NODATA of this run of them, which itself counts as 0."""
    return alert.missing_for + elapsed if alert.verdict is Outcome.NODATA else timedelta()


def _firing(slot: _Slot, alert: Alert, sight: _Sight) -> Alert | CloseReason:
    """The `firing` row of the table: the alert as it goes on, or why it closes."""
    if sight.outcome in _BLOCKED:
        return alert
    if sight.outcome is Outcome.TRUE:
        return _still_true(slot, alert, sight)
    if sight.outcome is Outcome.NODATA and slot.rule.on_no_data is OnNoData.HOLD:
        missing = _missing(alert, slot.tick.elapsed)
        if missing >= FIRING_MISSING:
            return CloseReason.DATA_GONE
        return replace(alert, missing_for=missing, verdict=Outcome.NODATA)
    if sight.outcome is Outcome.BETWEEN:
        return replace(
            alert,
            verdict=Outcome.BETWEEN,
            false_for=timedelta(),
            missing_for=timedelta(),
            judged=slot.tick.at,
            value=sight.value,
            unseen=False,
            rule_identity=slot.identity,
        )
    return _still_false(slot, alert, sight)


def _still_true(slot: _Slot, alert: Alert, sight: _Sight) -> Alert:
    broken = alert.verdict in (Outcome.FALSE, Outcome.BETWEEN)
    held = slot.held_at_first(sight.since_ns) if broken else slot.held(alert) + slot.tick.elapsed
    return replace(
        alert,
        held=held,
        false_for=timedelta(),
        missing_for=timedelta(),
        verdict=Outcome.TRUE,
        judged=slot.tick.at,
        value=sight.value,
        severity=worse(alert.severity, slot.severity(held)),
        unseen=False,
        rule_identity=slot.identity,
        counting=slot.tick.moment.watched,
    )


def _still_false(slot: _Slot, alert: Alert, sight: _Sight) -> Alert | CloseReason:
    """FALSE, or NODATA that counts as such; the latter never closes as recovered."""
    first = alert.verdict is not Outcome.FALSE
    false_for = timedelta() if first else alert.false_for + slot.tick.elapsed
    incident = slot.book.open.get((slot.rule.name, alert.labels.get(TASK, "")))
    if false_for >= max(slot.rule.keep_firing_for, patience(incident)):
        no_data = sight.outcome is Outcome.NODATA
        return CloseReason.DATA_GONE if no_data else CloseReason.RECOVERED
    return replace(
        alert,
        false_for=false_for,
        missing_for=timedelta(),
        verdict=Outcome.FALSE,
        judged=slot.tick.at if sight.outcome is Outcome.FALSE else alert.judged,
        value=sight.value,
        unseen=_unseen(slot, alert),
        rule_identity=slot.identity,
    )


def _unseen(slot: _Slot, alert: Alert) -> bool:
    """Whether the run of FALSE that is on may have begun before we were started."""
    if alert.verdict is Outcome.FALSE:
        return alert.unseen
    tick = slot.tick
    if alert.judged is None or tick.run > UNSEEN_INTERVALS * tick.interval:
        return False
    # Half an interval: the run is measured on another clock than the slots' times.
    return alert.judged < tick.at - tick.run - tick.interval / 2
