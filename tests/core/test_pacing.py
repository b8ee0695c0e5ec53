"""Polling pace: patient at first, then backing off, obeying Retry-After."""

from datetime import timedelta

from watchdog.core.pacing import LONGEST_WAIT, Pace

MINUTE = timedelta(minutes=1)


def test_regular_polls_stay_on_their_grid() -> None:
    pace = Pace(poll=MINUTE, due=timedelta(minutes=5))
    assert pace.answered(timedelta(minutes=5, seconds=20)).due == timedelta(minutes=6)


def test_a_late_poll_is_not_caught_up() -> None:
    pace = Pace(poll=MINUTE, due=timedelta(minutes=5))
    assert pace.answered(timedelta(minutes=9)).due == timedelta(minutes=10)


def test_polls_return_to_their_grid_after_an_outage() -> None:
    origin = timedelta(seconds=7)
    pace = Pace(poll=MINUTE, due=origin, origin=origin)
    for _ in range(5):
        pace = pace.failed(pace.due, jitter=0.3)
    assert pace.answered(timedelta(minutes=9, seconds=40)).due == timedelta(minutes=10, seconds=7)


def test_three_failures_come_at_the_normal_pace_then_the_wait_doubles_to_a_quarter_hour() -> None:
    pace, now, waits = Pace(poll=MINUTE), timedelta(), []
    for _ in range(12):
        pace = pace.failed(now, jitter=0.0)
        waits.append(pace.due - now)
        now = pace.due
    assert waits[:4] == [MINUTE, MINUTE, 2 * MINUTE, 4 * MINUTE]
    assert waits[-1] == LONGEST_WAIT


def test_jitter_shortens_a_long_wait_by_at_most_half() -> None:
    pace = Pace(poll=MINUTE, failures=9).failed(timedelta(), jitter=0.999)
    assert LONGEST_WAIT / 2 < pace.due < LONGEST_WAIT


def test_retry_after_is_obeyed_and_bounded() -> None:
    assert Pace(poll=MINUTE).failed(timedelta(), 0.5, timedelta(minutes=5)).due == timedelta(minutes=5)
    assert Pace(poll=MINUTE).failed(timedelta(), 0.5, timedelta(days=3)).due == LONGEST_WAIT * 4


def test_one_answer_forgets_the_failures() -> None:
    pace = Pace(poll=MINUTE, failures=9).answered(timedelta())
    assert (pace.failures, pace.due) == (0, MINUTE)
