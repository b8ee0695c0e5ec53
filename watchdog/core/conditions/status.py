"""Status conditions: a task is in, or enters, one of some statuses."""

import numpy as np

from watchdog.core.columns import Ints
from watchdog.core.conditions.kinds import Capability, StatusEnters, StatusIs
from watchdog.core.conditions.panel import Part
from watchdog.core.outcomes import Evidence, Occurrence, Outcome
from watchdog.core.rules import Rule
from watchdog.core.tasks import TaskState
from watchdog.core.view import View, moment_ns, too_early, wanted_statuses


def status_is(rule: Rule, condition: StatusIs, view: View, states: list[TaskState], slots: Ints) -> Part:
    """Judge a `StatusIs`: TRUE since the task entered the status."""
    reasons = [view.blind(state, Capability.STATUS) for state in states]
    true = np.array([state.status in condition.statuses for state in states], np.bool_)
    out = np.repeat(np.where(true, int(Outcome.TRUE), int(Outcome.FALSE))[:, None], slots.size, axis=1)
    out[np.array([bool(reason) for reason in reasons], np.bool_)] = int(Outcome.ERROR)
    out = np.where(too_early(rule, states, slots), int(Outcome.THIN), out)
    since = np.array([moment_ns(state.status_since) for state in states], np.int64)[:, None]

    def explain(group: int, _t: int) -> Evidence:
        state = states[group]
        words = state.status_text or str(state.status)
        return Evidence(
            summary=f"status is {state.status}",
            affected=int(true[group]),
            of=1,
            covered=1,
            detail=reasons[group] or state.reason or (words if words != state.status else ""),
        )

    return Part(
        labels=tuple(state.task.identity for state in states),
        outcome=out,
        value=np.full(out.shape, np.nan),
        since_ns=np.where(out == Outcome.TRUE, since, 0),
        explain=explain,
    )


def status_enters(rule: Rule, condition: StatusEnters, view: View) -> tuple[Occurrence, ...]:
    """Return the status changes of this slot that the rule is about.

    With `while`, the status that was left must be one of those.
    """
    found = []
    wanted = wanted_statuses(rule)
    for change in view.changes:
        if change.after not in condition.statuses or not rule.applies(change.task):
            continue
        if wanted is not None and change.before not in wanted:
            continue
        evidence = Evidence(
            summary=f"{change.before} → {change.after}",
            affected=1,
            of=1,
            covered=1,
            detail=change.reason or (change.text if change.text != change.after else ""),
        )
        found.append(
            Occurrence(
                rule=rule.name,
                labels=change.task.identity,
                at=change.at,
                fingerprint=str(change.after),
                count=1,
                evidence=evidence,
            )
        )
    return tuple(found)
