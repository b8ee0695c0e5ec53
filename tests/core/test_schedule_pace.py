"""An interval that changes while slots go on."""

from datetime import UTC, datetime, timedelta

import pytest

from watchdog.core.schedule import Reading, Schedule

T0 = datetime(2026, 11, 30, 10, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def reading(minutes: float) -> Reading:
    passed = timedelta(minutes=minutes)
    return Reading(at=T0 + passed, monotonic=timedelta(hours=5) + passed)


def running(interval: timedelta = 10 * MINUTE) -> Schedule:
    schedule, _, _ = Schedule(interval=interval).step(reading(0))
    return schedule


def test_before_the_first_slot_the_interval_is_simply_another() -> None:
    assert Schedule(interval=MINUTE).paced(2 * MINUTE).interval == 2 * MINUTE


@pytest.mark.parametrize(("changed", "due"), [(0.5, 1.0), (7.0, 7.0)])
def test_a_shorter_interval_does_not_wait_for_the_longer_one_to_end(changed: float, due: float) -> None:
    schedule = running().paced(MINUTE)
    assert schedule.next_due(reading(changed).monotonic) == reading(due).monotonic


def test_the_time_since_the_last_slot_is_no_outage_under_a_shorter_interval() -> None:
    after, tick, interruption = running().paced(MINUTE).step(reading(7))
    assert interruption is None
    assert (tick.elapsed, tick.missed, tick.settling) == (7 * MINUTE, 0, False)
    assert after.interval == MINUTE
    assert after.next_due(reading(7).monotonic) == reading(8).monotonic


def test_a_longer_interval_begins_with_the_slot_that_is_due() -> None:
    schedule = running(MINUTE).paced(10 * MINUTE)
    assert schedule.next_due(reading(0.2).monotonic) == reading(1).monotonic
    after, tick, _ = schedule.step(reading(1))
    assert tick.interval == MINUTE
    assert after.next_due(reading(1).monotonic) == reading(11).monotonic
    _, tick, interruption = after.step(reading(11))
    assert (tick.elapsed, tick.missed, interruption) == (10 * MINUTE, 0, None)


def test_the_same_interval_changes_nothing() -> None:
    schedule = running(MINUTE)
    assert schedule.paced(MINUTE) == schedule
    assert schedule.paced(5 * MINUTE).paced(MINUTE) == schedule
