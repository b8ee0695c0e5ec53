"""What is decoded at once, because it is as documented, comes out as when it is decoded piece by piece."""

import json
from datetime import UTC, datetime

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchdog.core.logs import LogLine
from watchdog.core.tasks import Task
from watchdog.sources.alaya_points import Point, Remarks, columns_of
from watchdog.sources.alaya_rows import Row, documented_lines, row_lines
from watchdog.sources.alaya_wire import read_metrics

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


TASK = Task(key="alaya/1", source="alaya", id="1", name="run")
ORDERS = {
    "in order": lambda times: times,
    "newest first": lambda times: times[::-1],
    "the newest in front": lambda times: [times[-1], *times[:-1]],
    "halves swapped": lambda times: times[len(times) // 2 :] + times[: len(times) // 2],
    "a step missing near the end": lambda times: times[:-3] + times[-2:],
    "one twice": lambda times: [*times, times[-1]],
    "a time that is text": lambda times: [*times[:-1], str(times[-1])],
    "a brace in a value": lambda times: [*times[:-1], (times[-1], '{"timestamp": 9, "value": ')],
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("new", [0, 1, 2, 5, 30, 119, 200])
def test_a_long_answer_gives_its_newest_points_whatever_its_order(order: str, new: int) -> None:
    times = [1_800_000_000 + 60 * n for n in range(120)]
    told = [one if isinstance(one, tuple) else (one, "0.5") for one in ORDERS[order](times)]
    rows = [{"timestamp": time, "value": value} for time, value in told]
    series = [{"type": "gpu", "podName": pod, "gpuName": "", "metricData": rows} for pod in ("a", "b")]
    data = msgspec.Raw(json.dumps({"metricData": series}).encode())
    since_s = times[-1] - 60 * new
    since = datetime.fromtimestamp(since_s, UTC)

    answer = read_metrics(data, task=TASK, metric="gpu", since=since)

    expected = sorted({int(time) for time, value in told if int(time) > since_s and value == "0.5"})
    assert [series.labels["pod"] for series in answer.series] == (["a", "b"] if expected else [])
    for series in answer.series:
        assert (series.times // 10**9).tolist() == expected
