"""Sparklines show the course truthfully."""

import math

from hypothesis import given
from hypothesis import strategies as st

from watchdog.core.sparkline import BARS, GAP, sparkline


def test_values_between_their_extremes_and_gaps() -> None:
    assert sparkline([1, 2, None, 8]) == "▁▂·█"
    assert sparkline([0.0, 50.0, 100.0]) == "▁▅█"


def test_ratios_are_drawn_on_a_fixed_scale_so_that_idle_looks_idle() -> None:
    assert sparkline([0.03, 0.05, 0.04], ratio=True) == "▁▁▁"
    assert sparkline([0.96, 0.97, 1.0], ratio=True) == "███"
    assert sparkline([90.0, 95.0], ratio=True) == "▁█"


def test_nothing_known_is_nothing_drawn_and_a_flat_line_is_flat() -> None:
    assert sparkline([]) == ""
    assert sparkline([None, math.nan]) == ""
    assert sparkline([7, 7, 7]) == "▄▄▄"


def test_many_values_are_averaged_into_the_width() -> None:
    assert sparkline([0.0] * 100 + [1.0] * 100, ratio=True, width=4) == "▁▁██"
    assert len(sparkline(list(range(1000)))) == 40


@given(st.lists(st.none() | st.floats(), max_size=100), st.booleans())
def test_any_values_can_be_drawn(values: list[float | None], ratio: bool) -> None:
    drawn = sparkline(values, ratio=ratio)

    assert len(drawn) in (0, min(len(values), 40))
    assert set(drawn) <= {*BARS, GAP}
