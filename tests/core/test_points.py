"""Points as columns are the same points, and are taken in as one series after another would be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchdog.core.labels import Interned, Labels
from watchdog.core.points import Curves, SeriesPoints
from watchdog.core.series import SeriesStore

MINUTE = 60_000_000_000
BASE = 1_700_000_000_000_000_000


def points(pod, minutes):
    times = np.array(minutes, np.int64) * MINUTE + BASE
    return SeriesPoints(
        labels=Labels.of(task="s/1", pod=pod), times=times, values=np.array(minutes, np.float64)
    )


def plain(series):
    return [(one.labels, one.times.tolist(), one.values.tolist()) for one in series]


ANSWER = st.lists(
    st.tuples(st.sampled_from("abcd"), st.lists(st.integers(0, 30), max_size=5)).map(
        lambda own: points(*own)
    ),
    max_size=5,
)


@given(answers=st.lists(st.tuples(ANSWER, st.booleans()), max_size=4))
def test_columns_read_as_the_series_they_were_made_of(answers):
    parts = [Curves.of(series) if columns else series for series, columns in answers]
    joined = Curves.joined(parts)
    assert plain(joined) == plain([one for series, _ in answers for one in series])
    assert len(joined) == sum(len(series) for series, _ in answers)
    assert plain(joined[1:3]) == plain(joined)[1:3]


@given(answers=st.lists(ANSWER, max_size=5))
def test_taking_in_columns_is_taking_in_series(answers):
    apart, together = SeriesStore(), SeriesStore()
    for minute, series in enumerate(answers):
        at = BASE + (30 + minute) * MINUTE
        one = apart.intake("s", "gpu", series, at, tasks={"s/1"})
        other = together.intake("s", "gpu", Curves.of(series), at, tasks={"s/1"})
        assert one == other
    assert apart.latest("s", "gpu") == together.latest("s", "gpu")
    for labels, _ in apart.latest("s", "gpu"):
        assert plain([apart.points("s", "gpu", labels)]) == plain([together.points("s", "gpu", labels)])


def test_a_place_outside_is_an_error():
    with pytest.raises(IndexError):
        Curves.of([points("a", [1])])[1]


def test_the_same_series_in_the_same_order_again_are_the_same_rows():
    store = SeriesStore()
    for minute in range(4):
        order = "ba" if minute == 3 else "ab"
        series = [points(pod, [minute + (5 if pod == "b" else 0)]) for pod in order]
        store.intake("s", "gpu", series, BASE + 9 * MINUTE)
    found = {labels["pod"]: (newest - BASE) // MINUTE for labels, newest in store.latest("s", "gpu")}
    assert found == {"a": 3, "b": 8}


def test_a_gpu_without_its_pod_is_looked_at_each_time():
    store, minute = SeriesStore(), 0

    def take(**labels: str) -> None:
        nonlocal minute
        minute += 1
        own = Labels.of(task="s/1", gpu="0", **labels)
        times = np.array([BASE + minute * MINUTE])
        store.intake("s", "gpu", [SeriesPoints(labels=own, times=times, values=np.ones(1))], int(times[0]))

    for _ in range(3):
        take()
    take(pod="a")  # it was this pod's
    for _ in range(3):
        take()
    assert [labels.get("pod") for labels, _ in store.latest("s", "gpu")] == ["a"]
    take(pod="b")
    take()
    assert len(store.latest("s", "gpu")) == 3  # of two pods that had it lately, nobody knows which it is


def test_equal_labels_and_equal_pairs_are_one_object():
    interned = Interned()
    one = interned.of(Labels.of(task="s/1", pod="a", gpu="0"))
    assert interned.of(Labels.of(task="s/1", pod="a", gpu="0")) is one
    other = interned.of(Labels.of(task="s/1", pod="a", gpu="1"))
    assert [pair for pair in other.pairs if any(pair is known for known in one.pairs)] == [
        ("pod", "a"),
        ("task", "s/1"),
    ]
    interned.keep([one])
    assert interned.of(Labels.of(task="s/1", pod="a", gpu="0")) is one
    assert interned.of(other) is not other
