"""A file is believed once it has stayed as it is."""

from datetime import timedelta

import pytest

from watchdog.core.settling import MISSING_FOR, STABLE_FOR, Settling


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


def test_a_file_never_looked_at_is_not_settled() -> None:
    assert not Settling().settled(seconds(1e6))


def test_content_settles_after_its_time() -> None:
    seen = Settling().saw("a", seconds(10)).saw("a", seconds(11))
    assert not seen.settled(seconds(10) + STABLE_FOR - seconds(0.1))
    assert seen.settled(seconds(10) + STABLE_FOR)


def test_each_change_starts_anew() -> None:
    seen = Settling().saw("a", seconds(0)).saw("ab", seconds(1.9)).saw("abc", seconds(3))
    assert not seen.settled(seconds(4.9))
    assert seen.settled(seconds(5))


def test_content_that_comes_back_starts_anew_as_well() -> None:
    seen = Settling().saw("a", seconds(0)).saw("b", seconds(1)).saw("a", seconds(2))
    assert not seen.settled(seconds(3))


@pytest.mark.parametrize(("after", "settled"), [(STABLE_FOR, False), (MISSING_FOR, True)])
def test_a_missing_file_is_waited_for(after: timedelta, settled: bool) -> None:
    assert Settling().saw("", seconds(0)).settled(after) is settled
