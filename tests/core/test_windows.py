"""Window reductions against a plain Python reference, point by point."""

import math
import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from watchdog.core import windows
from watchdog.core.columns import Columns
from watchdog.core.conditions.kinds import Aggregate

SECOND = 1_000_000_000
BASE = 1_700_000_000 * SECOND
HOUR = 3600


def columns_of(rows):
    """rows: lists of (seconds after BASE, value); every second point comes late."""
    made = Columns()
    for row in rows:
        number = made.add_row(0)
        for part in (row[::2], row[1::2]):
            made.insert(
                np.full(len(part), number, np.int64),
                np.array([BASE + t * SECOND for t, _ in part], np.int64),
                np.array([v for _, v in part], np.float64),
                0,
            )
    return made


def look(made, ends, length, floors, usual=60):
    """Return span and frames; all in seconds, floors None = none."""
    rows = np.arange(made.rows)
    ((_, span),) = made.spans(rows, made.rows, usual * SECOND)
    low = np.array([0 if f is None else BASE + f * SECOND for f in floors], np.int64)
    at = windows.frames(span, np.array([[BASE + e * SECOND for e in ends]], np.int64), length * SECOND, low)
    return span, at


def newest(at):
    return at.newest[at.span.of]


def reference(row, end, length, floor):
    """Return the values inside (end − length, end], not before the floor."""
    low = end - length if floor is None else max(end - length, floor)
    return low, [(t, v) for t, v in row if low < t <= end]


def covered_reference(row, spacing, end, length, floor, only=None):
    """Sum what each point covers, clipped to the window."""
    low, _ = reference(row, end, length, floor)
    total = 0
    for place, (t, v) in enumerate(row):
        if not low < t <= end or (only is not None and not only(v)):
            continue
        reach = spacing if place == 0 else min(t - row[place - 1][0], 2 * spacing)
        total += t - max(low, t - reach)
    return total


def interpolated(values, q):
    ranked = sorted(values)
    place = (len(ranked) - 1) * q
    low = math.floor(place)
    high = min(low + 1, len(ranked) - 1)
    return ranked[low] + (ranked[high] - ranked[low]) * (place - low)


def slope_reference(inside):
    hours = [t / HOUR for t, _ in inside]
    if len(set(hours)) < 2:
        return math.nan
    x, y = statistics.fmean(hours), statistics.fmean(v for _, v in inside)
    return sum((a - x) * (v - y) for a, (_, v) in zip(hours, inside, strict=True)) / sum(
        (a - x) ** 2 for a in hours
    )


NAIVE = {
    Aggregate.LAST: lambda inside: inside[-1][1],
    Aggregate.AVG: lambda inside: statistics.fmean(v for _, v in inside),
    "sum": lambda inside: math.fsum(v for _, v in inside),
    Aggregate.MIN: lambda inside: min(v for _, v in inside),
    Aggregate.MAX: lambda inside: max(v for _, v in inside),
    Aggregate.MEDIAN: lambda inside: statistics.median(v for _, v in inside),
    Aggregate.P95: lambda inside: interpolated([v for _, v in inside], 0.95),
    Aggregate.STDDEV: lambda inside: statistics.pstdev(v for _, v in inside),
    Aggregate.SLOPE: slope_reference,
}

ROWS = st.lists(
    st.dictionaries(st.integers(0, 900), st.integers(-50, 50), max_size=25).map(lambda d: sorted(d.items())),
    min_size=1,
    max_size=4,
)
REGULAR = st.integers(1, 3).map(lambda n: [[(t, (t * 7 + n) % 13) for t in range(0, 900, 60)]] * n)
ENDS = st.lists(st.integers(0, 1000), min_size=1, max_size=40, unique=True).map(sorted)
FLOORS = st.lists(st.none() | st.integers(0, 900), min_size=4, max_size=4)


@settings(max_examples=250, deadline=None)
@given(rows=ROWS | REGULAR, ends=ENDS, length=st.sampled_from([1, 60, 300, 5000]), floors=FLOORS)
def test_every_reduction_equals_the_plain_one(rows, ends, length, floors):
    made = columns_of(rows)
    _span, at = look(made, ends, length, floors[: len(rows)])
    for how, naive in NAIVE.items():
        found = windows.reduce(at, how)
        for r, row in enumerate(rows):
            for t, end in enumerate(ends):
                _, inside = reference(row, end, length, floors[r])
                wanted = naive(inside) if inside else math.nan
                assert found[r, t] == pytest.approx(wanted, rel=1e-9, abs=1e-9, nan_ok=True), (how, row, end)


@settings(max_examples=250, deadline=None)
@given(rows=ROWS | REGULAR, ends=ENDS, length=st.sampled_from([1, 60, 300, 5000]), floors=FLOORS)
def test_coverage_and_shares_equal_the_sum_over_points(rows, ends, length, floors):
    made = columns_of(rows)
    span, at = look(made, ends, length, floors[: len(rows)])
    covered = windows.covered_ns(at)
    share = windows.share(at, span.values > 3)
    for r, row in enumerate(rows):
        spacing = int(span.spacing[span.of[r]]) // SECOND
        for t, end in enumerate(ends):
            whole = covered_reference(row, spacing, end, length, floors[r])
            part = covered_reference(row, spacing, end, length, floors[r], only=lambda v: v > 3)
            assert covered[r, t] == whole * SECOND
            assert share[r, t] == pytest.approx(part / whole if whole else math.nan, nan_ok=True)


@settings(max_examples=100, deadline=None)
@given(rows=ROWS, ends=ENDS, length=st.sampled_from([60, 300]), floors=FLOORS)
def test_one_slot_is_the_same_column_of_many(rows, ends, length, floors):
    made = columns_of(rows)
    _many, at_many = look(made, ends, length, floors[: len(rows)])
    for t, end in enumerate(ends):
        _one, at_one = look(made, [end], length, floors[: len(rows)])
        for how in NAIVE:
            left, right = windows.reduce(at_one, how)[:, 0], windows.reduce(at_many, how)[:, t]
            assert np.array_equal(left, right, equal_nan=True), how
        assert np.array_equal(windows.covered_ns(at_one)[:, 0], windows.covered_ns(at_many)[:, t])
        assert np.array_equal(newest(at_one)[:, 0], newest(at_many)[:, t])


@settings(max_examples=50, deadline=None)
@given(rows=ROWS, shifts=st.lists(st.integers(0, 300), min_size=4, max_size=4), ends=ENDS)
def test_each_row_may_have_its_own_ends(rows, shifts, ends):
    made = columns_of(rows)
    ((_, span),) = made.spans(np.arange(made.rows), made.rows, 60 * SECOND)
    shifted = np.array([[BASE + (e - shifts[r]) * SECOND for e in ends] for r in range(len(rows))], np.int64)
    at = windows.frames(span, shifted, 120 * SECOND, np.zeros(len(rows), np.int64))
    found = windows.reduce(at, "sum")
    for r, row in enumerate(rows):
        for t, end in enumerate(ends):
            _, inside = reference(row, end - shifts[r], 120, None)
            assert found[r, t] == pytest.approx(
                sum(v for _, v in inside) if inside else math.nan, nan_ok=True
            )


def test_a_hole_is_not_covered_beyond_two_spacings():
    made = columns_of([[(t, 1.0) for t in (0, 60, 120, 180, 600, 660)]])
    _span, at = look(made, [660], 600, [None])
    # (60, 180] + (480, 600] + (600, 660]
    assert windows.covered_ns(at).tolist() == [[(120 + 120 + 60) * SECOND]]
