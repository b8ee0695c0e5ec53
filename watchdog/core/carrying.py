"""Carried alerts: what stays true from slot to slot is neither renewed nor stored each time.

A thousand alerts that go on would be a thousand new values and rows a minute. An alert that has been
TRUE in every slot since `counting` (watched clock) stands for itself: `held` grows with the clock, and
its newest value is in the rule's evaluation. Owns how such an alert is read, and made exact again; when
it is carried at all is `lifecycle`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

import numpy as np

from watchdog.core.alerts import Alert
from watchdog.core.labels import Labels
from watchdog.core.moments import Moment
from watchdog.core.outcomes import Evaluation, Outcome

RENEWED = timedelta(minutes=10)  # how old (watched) a stored value may get


def held(alert: Alert, slot: Moment) -> timedelta:
    """Return how long an alert had been true at a slot that found it so, or that came later."""
    return alert.held if alert.counting is None else alert.held + (slot.watched - alert.counting)


def as_of(
    alerts: Iterable[Alert], measured: Mapping[Labels, float | None], slot: Moment
) -> tuple[Alert, ...]:
    """Return alerts as a slot left them; `held` of those that were carried stands still from then on.

    measured: the slot's `values`. Where they are not known any more, after a crash, an alert keeps its stored
    value and the time at which that was measured (`judged`), up to `RENEWED` before.
    """
    return tuple(alert if alert.counting is None else _exact(alert, measured, slot) for alert in alerts)


def _exact(alert: Alert, measured: Mapping[Labels, float | None], slot: Moment) -> Alert:
    known = alert.labels in measured
    return replace(
        alert,
        held=held(alert, slot),
        counting=None,
        value=measured[alert.labels] if known else alert.value,
        judged=slot.at if known else alert.judged,
    )


def values(
    evaluation: Evaluation, column: int, rows: Sequence[int] | None = None
) -> dict[Labels, float | None]:
    """Return what a slot measured of each labelset that it found TRUE, or without data.

    rows: of which ones; None = of all.
    """
    outcome, value = evaluation.outcome[:, column], evaluation.value[:, column]
    measured = (outcome == Outcome.TRUE) | (outcome == Outcome.NODATA)
    chosen = np.flatnonzero(measured).tolist() if rows is None else [g for g in rows if measured[g]]
    return {evaluation.labels[g]: None if np.isnan(value[g]) else float(value[g]) for g in chosen}
