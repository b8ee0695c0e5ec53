"""What comes and goes too often ends later, and says so."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from watchdog.core.alerts import Change, CloseReason, Incident, NoticeKind
from watchdog.core.flapping import ENDS, STAYS_WELL, WITHIN, Flapping, patience
from watchdog.core.incidents import Step, transition
from watchdog.core.labels import Labels
from watchdog.core.rules import Severity

T = datetime(2026, 9, 17, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def incident(task: str = "src/1", **changes: object) -> Incident:
    plain = Incident(
        id=f"of {task}",
        rule="low",
        labels=Labels.of(source="src", task=task, task_name="job"),
        severity=Severity.WARNING,
        event=False,
        opened_at=T,
        since=T,
        updated_at=T,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def step(one: Incident, change: Change) -> Step:
    return Step(incidents=(one,), transitions=(transition(one, change),))


class Life:
    """Incidents of one rule and task, one after the other."""

    def __init__(self) -> None:
        self.flapping = Flapping()

    def opens(self, minute: float, task: str = "src/1") -> Incident:
        (one,) = self.flapping.noted(step(incident(task), Change.OPENED), minute * MINUTE).incidents
        return one

    def ends(self, minute: float, reason: CloseReason = CloseReason.RECOVERED, **more: object) -> None:
        over = incident(closed_at=T, close_reason=reason, **more)
        self.flapping.noted(step(over, Change.CLOSED), minute * MINUTE)


def test_the_third_within_two_hours_flaps() -> None:
    life = Life()
    for number in range(ENDS):
        assert patience(life.opens(10 * number)) == timedelta()
        life.ends(10 * number + 1)
    third = life.opens(30)
    assert (third.returns, patience(third)) == (ENDS, STAYS_WELL)
    assert life.opens(30, "src/2").returns == 0


def test_what_was_long_ago_does_not_count() -> None:
    life = Life()
    life.ends(0)
    life.ends(60)
    assert life.opens(WITHIN / MINUTE - 1).returns == 2
    assert life.opens(WITHIN / MINUTE).returns == 1
    life.flapping.forget(10 * WITHIN)
    assert life.opens(WITHIN / MINUTE - 1).returns == 0


@pytest.mark.parametrize(
    ("reason", "more"),
    [
        (CloseReason.TASK_ENDED, {}),
        (CloseReason.DATA_GONE, {}),
        (CloseReason.RECOVERED, {"event": True}),
        (CloseReason.RECOVERED, {"notice": NoticeKind.SOURCE_BLIND}),
    ],
)
def test_only_recoveries_of_rules_count(reason: CloseReason, more: dict[str, object]) -> None:
    life = Life()
    for minute in range(5):
        life.ends(minute, reason, **more)
    assert life.opens(6).returns == 0


def test_the_next_after_one_that_flapped_flaps_at_once() -> None:
    life = Life()
    life.ends(0, returns=ENDS)
    assert patience(life.opens(60)) == STAYS_WELL


def test_no_incident_asks_for_no_patience() -> None:
    assert patience(None) == timedelta()
