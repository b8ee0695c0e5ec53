"""Series that were measured at the same times share them; parting and uniting is never seen from outside."""

from datetime import timedelta

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from watchdog.core.labels import Labels
from watchdog.core.series import SeriesPoints, SeriesStore

MINUTE = 60_000_000_000
BASE = 1_700_000_000_000_000_000
PODS = [Labels.of(source="s", task="s/1", task_name="run", pod=f"p{n}") for n in range(4)]


def points(labels, given_points):
    return SeriesPoints(
        labels=labels,
        times=np.array([BASE + m * MINUTE for m, _ in given_points], np.int64),
        values=np.array([v for _, v in given_points], np.float64),
    )


def take(store, *series, at=1000):
    return store.intake("s", "gpu", series, BASE + at * MINUTE)


def stored(store, labels):
    own = store.points("s", "gpu", labels)
    minutes = ((own.times - BASE) // MINUTE).tolist()
    return list(zip(minutes, own.values.tolist(), strict=True))


def grids(store):
    ((_, span),) = store.table("s", "gpu").columns.spans(np.arange(len(PODS)), 100, 1)
    return span.times.shape[0]


POINTS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 5)), min_size=1, max_size=8)
# Of each answer: the same points for all pods, or for some others, or none.
ANSWERS = st.lists(st.lists(st.one_of(st.none(), st.just([]), POINTS), min_size=4, max_size=4), max_size=8)


@settings(max_examples=300, deadline=None)
@given(answers=ANSWERS, common=POINTS, keep=st.integers(5, 60), gone=st.integers(0, 3))
def test_what_is_shared_is_what_each_series_would_have_alone(answers, common, keep, gone):
    store, alone = SeriesStore(), [SeriesStore() for _ in PODS]
    for own in (store, *alone):
        own.keep("s", "gpu", timedelta(minutes=keep))
    latest = 0
    for answer in answers:
        given_points = [common if own is None else own for own in answer]
        latest = max([latest, *(m for own in given_points for m, _ in own)])
        take(store, *map(points, PODS, given_points), at=latest)
        for own, pod, own_points in zip(alone, PODS, given_points, strict=True):
            take(own, points(pod, own_points), at=latest)
    table = store.table("s", "gpu")
    for pod, own in zip(PODS, alone, strict=True):
        least = latest - keep
        assert [p for p in stored(store, pod) if p[0] > least] == [
            p for p in stored(own, pod) if p[0] > least
        ]
        row = table.row(pod)
        if row is not None:
            assert table.columns.counts[row] == len(stored(store, pod))
            assert table.columns.newest[row] == BASE + stored(store, pod)[-1][0] * MINUTE
    row = table.row(PODS[gone])
    if row is not None:
        kept = [stored(store, pod) for n, pod in enumerate(PODS) if n != gone]
        table.forget(np.arange(table.columns.rows) == row)
        assert [stored(store, pod) for n, pod in enumerate(PODS) if n != gone] == kept
        assert stored(store, PODS[gone]) == []


def test_series_that_answer_together_keep_their_times_once():
    store = SeriesStore()
    for minute in range(60):
        take(store, *(points(pod, [(minute, n)]) for n, pod in enumerate(PODS)), at=minute)
    assert grids(store) == 1


def test_a_series_that_missed_a_point_shares_again_once_it_came_late():
    store = SeriesStore()
    for minute in range(60):
        late = [(11, 3), (minute, 3)] if minute == 13 else [(minute, 3)]
        there = PODS[:3] if minute == 11 else PODS
        take(store, *(points(pod, late if pod == PODS[3] else [(minute, 0)]) for pod in there), at=minute)
        if minute == 12:
            assert grids(store) == 2
    assert grids(store) == 1
    assert stored(store, PODS[3]) == [(m, 3.0) for m in range(60)]
    assert stored(store, PODS[0]) == [(m, 0.0) for m in range(60)]


def test_a_series_that_falls_silent_leaves_the_others_as_they_are():
    store = SeriesStore()
    for minute in range(30):
        there = PODS if minute < 10 else PODS[1:]
        take(store, *(points(pod, [(minute, minute)]) for pod in there), at=minute)
    assert grids(store) == 2
    assert stored(store, PODS[0]) == [(m, m) for m in range(10)]
    assert stored(store, PODS[1]) == [(m, m) for m in range(30)]


def test_memory_of_series_with_times_of_their_own_is_bounded():
    store = SeriesStore()
    pods = [Labels.of(task="s/1", pod=f"p{n}") for n in range(500)]
    for minute in range(0, 600, 5):
        shifted = [points(pod, [(minute + n % 5, 1.0)]) for n, pod in enumerate(pods)]
        take(store, *shifted, at=minute)
    assert store.nbytes < 500 * 40 * 16


def test_what_a_long_answer_of_one_series_took_is_given_back():
    store = SeriesStore()
    store.keep("s", "gpu", timedelta(minutes=60))
    backfill = [(minute, 1.0) for minute in range(3000)]
    take(store, *(points(pod, backfill[-1 if n else 0 :]) for n, pod in enumerate(PODS)), at=60)
    full = store.nbytes
    for minute in range(3000, 3600):
        take(store, *(points(pod, [(minute, 1.0)]) for pod in PODS), at=minute)
    assert store.nbytes < full / 4
    assert stored(store, PODS[0])[-60:] == [(minute, 1.0) for minute in range(3540, 3600)]
