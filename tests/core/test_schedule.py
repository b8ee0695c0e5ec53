"""Slots on the monotonic clock; gaps, jumps and starts."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchdog.core.moments import Moment
from watchdog.core.schedule import Break, Reading, Schedule

T0 = datetime(2026, 11, 30, 10, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def reading(minutes: float, *, shift: timedelta = timedelta()) -> Reading:
    passed = timedelta(minutes=minutes)
    return Reading(at=T0 + passed + shift, monotonic=timedelta(hours=5) + passed)


def started(**values: object) -> Schedule:
    schedule, _, _ = Schedule(interval=MINUTE, **values).step(reading(0))
    return schedule


def test_the_first_slot_of_a_new_state_counts_nothing_and_is_no_news() -> None:
    schedule, tick, interruption = Schedule(interval=MINUTE).step(reading(0))
    assert (tick.elapsed, tick.run, tick.settling, interruption) == (timedelta(), timedelta(), False, None)
    assert schedule.watched == timedelta()


def test_the_first_slot_after_a_restart_reports_the_downtime_and_resumes_watched_time() -> None:
    schedule = Schedule(interval=MINUTE, watched=timedelta(hours=9), before_start=T0 - timedelta(minutes=30))
    _, tick, interruption = schedule.step(reading(0))
    assert tick.moment.watched == timedelta(hours=9)
    assert interruption is not None
    assert (interruption.kind, interruption.end - interruption.begin) == (Break.START, timedelta(minutes=30))


def test_a_slot_knows_the_one_before_across_starts_gaps_and_jumps() -> None:
    begun, hours = T0 - timedelta(minutes=30), timedelta(hours=9)
    schedule, tick, _ = Schedule(interval=MINUTE, watched=hours, before_start=begun).step(reading(0))
    assert tick.previous == Moment(at=begun, watched=hours)
    schedule, tick, _ = schedule.step(reading(1))
    assert tick.previous == Moment(at=T0, watched=hours)
    _, tick, _ = schedule.step(reading(60))  # a gap
    assert tick.previous == Moment(at=T0 + MINUTE, watched=hours + MINUTE)
    _, tick, _ = schedule.step(reading(2, shift=timedelta(hours=3)))
    assert tick.settling
    assert tick.moment.watched == hours + 2 * MINUTE
    assert tick.previous == Moment(at=T0 + MINUTE, watched=hours + MINUTE)
    _, tick, _ = Schedule(interval=MINUTE).step(reading(0))
    assert tick.previous == tick.moment


def test_a_regular_slot_counts_the_time_since_the_last() -> None:
    _, tick, interruption = started().step(reading(1))
    assert (tick.elapsed, tick.run, tick.missed, interruption) == (MINUTE, MINUTE, 0, None)


def test_slots_stay_on_the_grid_when_one_runs_late() -> None:
    schedule, _, _ = started().step(reading(1.4))
    assert schedule.next_due(reading(1.5).monotonic) == reading(2).monotonic


def test_missed_slots_are_counted_and_not_queued() -> None:
    schedule, tick, interruption = started().step(reading(2.5))
    assert (tick.missed, tick.elapsed, interruption) == (1, timedelta(minutes=2.5), None)
    assert schedule.next_due(reading(2.5).monotonic) == reading(3).monotonic


def test_a_long_stall_is_an_outage_and_counts_nothing() -> None:
    schedule, tick, interruption = started().step(reading(30))
    assert interruption is not None
    assert interruption.kind is Break.GAP
    assert (tick.elapsed, tick.run, tick.settling, schedule.watched) == (
        timedelta(),
        timedelta(),
        True,
        timedelta(),
    )


@pytest.mark.parametrize("shift", [timedelta(hours=6), timedelta(hours=-1), timedelta(seconds=6)])
def test_a_wall_clock_jump_is_reported_and_completes_nothing(shift: timedelta) -> None:
    schedule, tick, interruption = started().step(reading(1, shift=shift))
    assert interruption is not None
    assert (interruption.kind, interruption.shift) == (Break.JUMP, shift)
    assert (tick.elapsed, tick.run, tick.settling) == (timedelta(), timedelta(), True)
    assert schedule.watched == MINUTE
    assert schedule.next_due(reading(1).monotonic) == reading(2).monotonic


def test_two_slots_settle_after_a_break_and_time_counts_again_after_them() -> None:
    schedule, first, _ = started().step(reading(30))
    schedule, second, _ = schedule.step(reading(31))
    schedule, third, _ = schedule.step(reading(32))
    assert [first.settling, second.settling, third.settling] == [True, True, False]
    assert (second.elapsed, third.elapsed) == (timedelta(), MINUTE)


def test_a_small_clock_correction_is_no_news() -> None:
    _, tick, interruption = started().step(reading(1, shift=timedelta(seconds=2)))
    assert (interruption, tick.elapsed) == (None, MINUTE)


def test_moments_between_slots_go_on_with_the_monotonic_clock_but_not_through_a_stall() -> None:
    schedule = started(watched=timedelta(hours=1))
    assert schedule.moment(reading(0.5, shift=timedelta(hours=6))).watched == timedelta(hours=1, seconds=30)
    assert schedule.moment(reading(600)).watched == timedelta(hours=1, minutes=3)


@given(st.lists(st.floats(min_value=0.01, max_value=20, allow_nan=False), min_size=1, max_size=40))
def test_watched_time_never_exceeds_the_monotonic_time_and_never_falls(steps: list[float]) -> None:
    schedule, now, before = started(), 0.0, timedelta()
    for step in steps:
        now += step
        schedule, tick, _ = schedule.step(reading(now))
        assert before <= tick.moment.watched <= timedelta(minutes=now)
        assert tick.elapsed <= tick.run
        before = tick.moment.watched
