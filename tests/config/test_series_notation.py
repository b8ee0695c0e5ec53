"""The compact notation of series in scenario files."""

from datetime import timedelta

import pytest

from watchdog.config.series_notation import parse_offset, parse_segments, points

MINUTE = timedelta(minutes=1)


def values(text: str, begin: int, end: int) -> dict[int, float]:
    times, found = points(parse_segments(text), begin=begin * MINUTE, end=end * MINUTE, every=MINUTE)
    return {int(t // 60_000_000_000): round(float(v), 6) for t, v in zip(times, found, strict=True)}


def test_segments_follow_one_another() -> None:
    assert values("95% until 0m, 5%", -2, 2) == {-2: 0.95, -1: 0.95, 0: 0.05, 1: 0.05, 2: 0.05}


def test_none_leaves_a_hole() -> None:
    assert values("1 until 1m, none until 3m, 2", 0, 4) == {0: 1, 3: 2, 4: 2}


def test_a_ramp_goes_from_its_first_value_towards_its_second() -> None:
    assert values("0..10 until 5m, 10", 0, 5) == {0: 0, 1: 2, 2: 4, 3: 6, 4: 8, 5: 10}


def test_a_cycle_repeats() -> None:
    assert values("4.1|4.3|3.9", 0, 3) == {0: 4.1, 1: 4.3, 2: 3.9, 3: 4.1}


@pytest.mark.parametrize(
    "text", ["", "x", "5 until", "5 until 3", "5, 6", "5 until 3m, 6 until 2m", "1..", "none|2"]
)
def test_what_cannot_be_read_is_refused_in_words(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w+"):
        parse_segments(text)


def test_offsets_may_be_negative() -> None:
    assert parse_offset("-30m") == timedelta(minutes=-30)
