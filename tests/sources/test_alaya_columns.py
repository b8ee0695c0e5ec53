"""What is decoded at once, because it is as documented, comes out as when it is decoded piece by piece."""

import json

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from watchdog.core.logs import LogLine
from watchdog.sources.alaya_points import Point, Remarks, columns_of
from watchdog.sources.alaya_rows import Row, documented_lines, row_lines

VALUES = st.one_of(
    st.floats(allow_nan=False, width=32).map(str),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-3, 3),
    st.sampled_from(
        ["0.5", "1.02", "212.37", "", "-", "NaN", "inf", "1_0", " 0.25 ", "oops", "1e305", None, 10**40]
    ),
)
TIMES = st.one_of(st.integers(1, 60), st.sampled_from([0, -5, 10**10, 17.5, "12", "oops", None]))


@given(
    st.lists(st.tuples(TIMES, VALUES), max_size=8, unique_by=lambda pair: str(pair[0])),
    st.one_of(st.none(), st.integers(1, 4).map(str)),
    st.integers(0, 40),
)
def test_points_in_order_come_out_as_those_in_disorder(
    pairs: list[tuple[object, object]], same: str | None, since_s: int
) -> None:
    pairs = sorted(pairs, key=lambda pair: (not isinstance(pair[0], int), str(pair[0]).zfill(12)))
    points = [Point(time, value if same is None else same) for time, value in pairs]
    said, otherwise = Remarks(), Remarks()

    found = columns_of(points, since_s, said)
    # A time before the epoch at the end: never in order.
    expected = columns_of([*points, Point(-1, "0.5")], since_s, otherwise)

    otherwise.bad_times -= 1
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        for ours, theirs in zip(found, expected, strict=True):
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)
    assert said == otherwise


TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5), st.sampled_from(["a\x00b", ""])
)
STAMPS = st.integers(1, (1 << 63) - 1)


@given(st.lists(st.tuples(STAMPS, TEXTS, TEXTS, st.booleans()), max_size=5))
def test_documented_rows_come_out_as_row_by_row(rows: list[tuple[int, str, str, bool]]) -> None:
    told = [
        {"timestamp": str(at) if quoted else at, "podName": pod, "log": log} for at, pod, log, quoted in rows
    ]
    data = msgspec.Raw(json.dumps(told).encode())

    one_by_one, timeless = row_lines(msgspec.json.decode(data, type=list[Row]))
    at_once = documented_lines(data)

    assert timeless == 0
    assert [line.time_ns for line in one_by_one] == [at for at, _, _, _ in rows]
    assert at_once == (None if "\x00" in "".join(pod + log for _, pod, log, _ in rows) else one_by_one)
    assert all(type(line) is LogLine for line in at_once or ())


def test_a_page_with_an_odd_row_is_not_taken_at_once() -> None:
    whole = {"timestamp": "1762837199838553596", "podName": "p", "log": "x"}
    odd = (
        {"timestamp": " 1762837199838553596"},
        {"timestamp": "0"},
        {"timestamp": str(1 << 63)},
        {"timestamp": "1.7e18"},
        {"timestamp": True},
        {"timestamp": None},
        {"log": None},
        {"log": {"a": 1}},
        {"podName": None},
        {"podName": 7},
    )

    assert documented_lines(msgspec.Raw(json.dumps([whole]).encode())) == [
        LogLine(1762837199838553596, "p", "x")
    ]
    assert documented_lines(msgspec.Raw(b'[{"timestamp":"1","log":"x"}]')) == [LogLine(1, "", "x")]
    for change in odd:
        assert documented_lines(msgspec.Raw(json.dumps([whole, whole | change]).encode())) is None
