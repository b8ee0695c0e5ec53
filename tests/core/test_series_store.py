"""The series store: what becomes of the points of answers."""

import itertools
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from watchdog.core import series
from watchdog.core.columns import BLOCK_ROWS
from watchdog.core.labels import Labels
from watchdog.core.series import MARGIN_NS, SeriesPoints, SeriesStore

MINUTE = 60_000_000_000
BASE = 1_700_000_000_000_000_000
ONE = Labels.of(source="s", task="s/1", task_name="run", pod="p1", gpu="g0")


def points(labels, minutes, values):
    return SeriesPoints(
        labels=labels,
        times=np.array([BASE + round(m * MINUTE) for m in minutes], np.int64),
        values=np.array(values, np.float64),
    )


def stored(store, labels=ONE, metric="gpu"):
    own = store.points("s", metric, labels)
    return [
        (round((t - BASE) / MINUTE, 3), v)
        for t, v in zip(own.times.tolist(), own.values.tolist(), strict=True)
    ]


def take(store, *series, at=0.0, metric="gpu"):
    return store.intake("s", metric, series, BASE + round(at * MINUTE))


def test_overlap_is_stored_once():
    store = SeriesStore()
    take(store, points(ONE, [0, 1, 2], [1, 2, 3]), at=2)
    report = take(store, points(ONE, [1, 2, 3], [2, 3, 4]), at=3)
    assert stored(store) == [(0, 1), (1, 2), (2, 3), (3, 4)]
    assert (report.points, report.added, report.duplicates, report.late) == (3, 1, 2, 0)


def test_a_point_of_the_far_future_is_not_kept_and_blinds_nobody():
    store, day = SeriesStore(), 24 * 60
    task = ONE["task"]
    report = store.intake("s", "gpu", [points(ONE, [0, 1, 9 * day], [1, 2, 3])], BASE + MINUTE, tasks={task})
    assert stored(store) == [(0, 1), (1, 2)]
    assert report.expired == 1
    assert store.table("s", "gpu").ahead_ns(task) == 0
    assert store.newest("s", "gpu", task) == BASE + MINUTE


def test_an_answer_of_nothing_but_the_far_future_says_so_until_the_next():
    store, day = SeriesStore(), 24 * 60
    task = ONE["task"]
    store.intake("s", "gpu", [points(ONE, [9 * day], [3])], BASE, tasks={task})
    assert stored(store) == []
    assert store.table("s", "gpu").ahead_ns(task) == 9 * day * MINUTE
    assert store.newest("s", "gpu", task) == BASE + 9 * day * MINUTE
    store.intake("s", "gpu", [points(ONE, [1], [3])], BASE + MINUTE, tasks={task})
    assert store.table("s", "gpu").ahead_ns(task) == 0


def test_who_answered_in_time_is_not_who_answered_of_the_far_future():
    store, day = SeriesStore(), 24 * 60
    two = ONE.plus({"task": "s/2"})
    store.intake("s", "gpu", [points(ONE, [0], [1]), points(two, [0], [1])], BASE, tasks={ONE["task"], "s/2"})
    table = store.table("s", "gpu")
    assert table.in_time(2 * MINUTE, BASE) == {ONE["task"], "s/2"}
    assert table.in_time(2 * MINUTE, BASE + 1) == set()
    store.intake("s", "gpu", [points(two, [9 * day], [3])], BASE, tasks={"s/2"})
    assert table.in_time(2 * MINUTE, BASE) == {ONE["task"]}
    store.intake("s", "gpu", [points(ONE, [9], [1])], BASE, tasks={ONE["task"]})
    assert table.in_time(2 * MINUTE) == set()


def test_unsorted_points_are_sorted():
    store = SeriesStore()
    take(store, points(ONE, [3, 1, 2, 0], [4, 2, 3, 1]), at=3)
    assert stored(store) == [(0, 1), (1, 2), (2, 3), (3, 4)]


def test_late_points_find_their_place():
    store = SeriesStore()
    take(store, points(ONE, [0, 1, 4, 5], [0, 1, 4, 5]), at=5)
    report = take(store, points(ONE, [2, 3, 6], [2, 3, 6]), at=6)
    assert stored(store) == [(m, m) for m in range(7)]
    assert (report.added, report.late) == (3, 2)


def test_the_newest_answer_wins_for_the_same_time():
    store = SeriesStore()
    take(store, points(ONE, [0, 1], [1, 2]), at=1)
    report = take(store, points(ONE, [1, 2], [9, 3]), at=2)
    assert stored(store) == [(0, 1), (1, 9), (2, 3)]
    assert report.rewritten == 1


def test_the_last_of_equal_times_in_one_answer_wins():
    store = SeriesStore()
    report = take(store, points(ONE, [0, 1, 1], [1, 2, 7]), at=1)
    assert stored(store) == [(0, 1), (1, 7)]
    assert report.duplicates == 1


def test_series_with_the_same_labels_are_merged():
    store = SeriesStore()
    report = take(store, points(ONE, [0, 2], [0, 2]), points(ONE, [1, 3], [1, 3]), at=3)
    assert stored(store) == [(0, 0), (1, 1), (2, 2), (3, 3)]
    assert report.new_series == (ONE,)


def test_what_is_no_number_is_dropped_and_counted():
    store = SeriesStore()
    report = take(store, points(ONE, [0, 1, 2, 3], [1, float("nan"), float("inf"), 2]), at=3)
    assert stored(store) == [(0, 1), (3, 2)]
    assert report.not_finite == 2
    only_nan = take(store, points(ONE.plus({"gpu": "g1"}), [0], [float("nan")]), at=3)
    assert only_nan.new_series == ()


def test_values_out_of_range_are_kept():
    store = SeriesStore()
    take(store, points(ONE, [0], [212.37]))
    assert stored(store) == [(0, 212.37)]


def test_empty_series_and_empty_answers_are_no_series():
    store = SeriesStore()
    report = take(store, points(ONE, [], []))
    assert report.new_series == ()
    assert take(store).points == 0
    assert stored(store) == []
    assert store.latest("s", "gpu") == ()


def test_a_renamed_task_and_a_new_node_are_the_same_series():
    store = SeriesStore()
    take(store, points(ONE, [0], [1]))
    take(store, points(ONE.plus({"task_name": "renamed", "node": "n1"}), [1], [2]), at=1)
    assert stored(store) == [(0, 1), (1, 2)]
    assert [labels["node"] for labels, _ in store.latest("s", "gpu")] == ["n1"]


def test_a_series_without_a_pod_is_the_pod_that_had_its_gpu():
    store = SeriesStore()
    nameless = ONE.plus({"pod": ""})
    for minute in range(10):
        take(store, points(nameless if minute % 2 else ONE, [minute], [minute]), at=minute)
    assert stored(store) == [(m, m) for m in range(10)]
    assert len(store.latest("s", "gpu")) == 1


def test_pod_and_no_pod_within_one_answer_are_one_series():
    store = SeriesStore()
    take(store, points(ONE.plus({"pod": ""}), [1, 3], [1, 3]), points(ONE, [0, 2], [0, 2]), at=3)
    assert stored(store) == [(0, 0), (1, 1), (2, 2), (3, 3)]


def test_a_series_that_gets_its_pod_later_keeps_its_points():
    store = SeriesStore()
    take(store, points(ONE.plus({"pod": ""}), [0, 1], [0, 1]), at=1)
    take(store, points(ONE, [2], [2]), at=2)
    take(store, points(ONE.plus({"pod": ""}), [3], [3]), at=3)
    assert stored(store) == [(0, 0), (1, 1), (2, 2), (3, 3)]
    assert [labels.get("pod") for labels, _ in store.latest("s", "gpu")] == ["p1"]


def test_a_gpu_name_on_two_pods_says_nothing():
    store = SeriesStore()
    take(store, points(ONE, [0], [1]), points(ONE.plus({"pod": "p2"}), [0], [2]))
    take(store, points(ONE.plus({"pod": ""}), [1], [3]), at=1)
    assert stored(store) == [(0, 1)]
    assert len(store.latest("s", "gpu")) == 3


def test_a_gpu_not_seen_for_over_five_minutes_says_nothing():
    store = SeriesStore()
    take(store, points(ONE, [0], [1]))
    take(store, points(ONE.plus({"pod": ""}), [5.5], [3]), at=5.5)
    assert len(store.latest("s", "gpu")) == 2


def test_the_same_gpu_name_of_another_task_says_nothing():
    store = SeriesStore()
    take(store, points(ONE, [0], [1]))
    take(store, points(ONE.plus({"pod": "", "task": "s/2"}), [1], [3]), at=1)
    assert len(store.latest("s", "gpu")) == 2


def test_retention_follows_the_data_and_memory_stays_flat():
    store = SeriesStore()
    store.keep("s", "gpu", timedelta(minutes=30))
    sizes = []
    for minute in range(600):
        take(store, points(ONE, [minute], [minute]), at=minute)
        sizes.append(store.nbytes)
    assert sizes[100] == sizes[-1]
    kept = stored(store)
    assert kept[-1] == (599, 599)
    assert kept == [(float(m), float(m)) for m in range(int(kept[0][0]), 600)]
    assert kept[0][0] <= 599 - 30


def test_an_outage_drops_nothing_and_expired_points_are_counted():
    store = SeriesStore()
    store.keep("s", "gpu", timedelta(minutes=30))
    take(store, points(ONE, range(60), range(60)), at=59)
    assert stored(store)[0][0] == 59 - 30 - MARGIN_NS / MINUTE + 1
    take(store, at=600)
    assert stored(store)[-1] == (59, 59)
    report = take(store, points(ONE, [10], [1]), at=600)
    assert report.expired == 1
    take(store, points(ONE, [600, 601], [1, 1]), at=601)
    assert stored(store)[-2:] == [(600, 1), (601, 1)]


def test_the_newest_point_of_a_series_is_never_dropped():
    store = SeriesStore()
    store.keep("s", "gpu", timedelta(minutes=10))
    other = ONE.plus({"gpu": "g1"})
    take(store, points(ONE, [0, 1], [5, 6]), points(other, [0], [1]), at=1)
    for minute in range(2, 200):
        take(store, points(other, [minute], [minute]), at=minute)
    assert stored(store)[-1] == (1, 6)


def test_counts_of_one_second_add_up():
    store = SeriesStore()
    take(store, points(ONE, [0, 0, 1], [1, 1, 1]), at=1, metric="log:errors")
    take(store, points(ONE, [0, 0.001, 1], [1, 1, 1]), at=1, metric="log:errors")
    assert stored(store, metric="log:errors") == [(0, 4), (1, 2)]


def test_tasks_that_come_and_go_leave_nothing_behind():
    store = SeriesStore()
    table = store._open("s", "gpu")
    for day in range(40):
        for number in range(3):
            own = Labels.of(source="s", task=f"s/{day + number}", pod=f"p{day}")
            store.intake("s", "gpu", [points(own, [day], [day])], BASE, tasks={f"s/{day + number}"})
        store.forget(task=f"s/{day}")

    left = ["s/40", "s/41"]
    assert sorted(table.task_names) == sorted(table.answered) == sorted(table._began) == left
    for task in left:
        rows = table.rows_of(task).tolist()
        assert {table.labels[row]["task"] for row in rows} == {task}
        assert table.newest(task) == BASE + 39 * MINUTE
    assert table.newest("s/0") == 0
    assert len(table.labels) == len(table._rows) == len(table._alias) == table.columns.rows


def test_forgetting_old_series_and_whole_tasks():
    store = SeriesStore()
    kept = ONE.plus({"pod": "p2", "gpu": "g1"})
    other = ONE.plus({"task": "s/2"})
    take(store, points(ONE, [0, 1], [1, 2]), points(kept, [0, 9], [3, 4]), points(other, [9], [5]), at=9)
    assert store.forget(before_ns=BASE + 5 * MINUTE) == 1
    assert stored(store) == []
    assert stored(store, kept) == [(0, 3), (9, 4)]
    assert store.forget(task="s/2") == 1
    assert [labels for labels, _ in store.latest("s", "gpu")] == [kept]
    take(store, points(kept, [10], [6]), points(ONE, [10], [7]), at=10)
    assert stored(store, kept) == [(0, 3), (9, 4), (10, 6)]
    assert stored(store) == [(10, 7)]


def test_newest_of_a_metric_and_of_a_task():
    store = SeriesStore()
    other = ONE.plus({"task": "s/2"})
    take(store, points(ONE, [0, 1], [1, 2]), points(other, [5], [1]), at=5)
    assert store.newest("s", "gpu") == BASE + 5 * MINUTE
    assert store.newest("s", "gpu", "s/1") == BASE + MINUTE
    assert store.newest("s", "vram") == store.newest("s", "gpu", "s/3") == 0


def test_a_task_that_answers_twice_does_not_answer_for_another():
    store, other = SeriesStore(), ONE.plus({"task": "s/2"})
    ahead = points(other, [3], [1])
    store.intake("s", "gpu", [points(ONE, [0], [1]), ahead], BASE, tasks={ONE["task"], other["task"]})
    twice = [points(ONE, [4], [1]), points(ONE, [5], [1])]
    store.intake("s", "gpu", twice, BASE + 5 * MINUTE, tasks={ONE["task"]})
    table = store.table("s", "gpu")
    assert table.answered == {ONE["task"]: BASE + 5 * MINUTE, other["task"]: BASE}
    assert table.ahead_ns(other["task"]) == 3 * MINUTE


def test_spacing_is_the_usual_gap_whatever_hole_there_is():
    store = SeriesStore()
    take(store, points(ONE, [0, 1, 2, 3, 20, 21], [0] * 6), at=21)
    table = store.table("s", "gpu")
    assert table.columns.spacing.tolist() == [MINUTE]
    take(store, points(ONE, [40], [0]), at=40)
    assert table.columns.spacing.tolist() == [MINUTE]
    assert table.columns.widest.tolist()[0] >= 19 * MINUTE


def test_spacing_follows_an_answer_with_another_step():
    store = SeriesStore()
    store.keep("s", "gpu", timedelta(hours=6))
    take(store, points(ONE, range(30), [0] * 30), at=29)
    take(store, points(ONE, range(30, 60, 5), [0] * 6), at=59)
    assert store.table("s", "gpu").columns.spacing.tolist() == [5 * MINUTE]


def test_many_series_fill_many_blocks():
    store = SeriesStore()
    labels = [ONE.plus({"gpu": f"g{n}"}) for n in range(BLOCK_ROWS + 300)]
    for minute in range(3):
        take(store, *(points(one, [minute], [n]) for n, one in enumerate(labels)), at=minute)
    for n in (0, BLOCK_ROWS - 1, BLOCK_ROWS, BLOCK_ROWS + 299):
        assert stored(store, labels[n]) == [(0, n), (1, n), (2, n)]
    take(store, points(labels[BLOCK_ROWS], [3], [1]), points(labels[0], [3], [1]), at=3)
    store.forget(before_ns=BASE + 3 * MINUTE)
    assert stored(store, labels[BLOCK_ROWS]) == [(0, BLOCK_ROWS), (1, BLOCK_ROWS), (2, BLOCK_ROWS), (3, 1)]
    assert [one for one, _ in store.latest("s", "gpu")] == [labels[0], labels[BLOCK_ROWS]]


ANSWERS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b"]),
        st.lists(st.tuples(st.integers(0, 40), st.integers(0, 5)), max_size=12),
    ),
    max_size=6,
)


@settings(max_examples=150, deadline=None)
@given(answers=ANSWERS, keep=st.integers(5, 60))
def test_the_store_equals_a_dictionary(answers, keep):
    store = SeriesStore()
    store.keep("s", "gpu", timedelta(minutes=keep))
    model, latest = {"a": {}, "b": {}}, 0
    for pod, given_points in answers:
        labels = ONE.plus({"pod": pod})
        take(store, points(labels, [m for m, _ in given_points], [v for _, v in given_points]), at=100)
        latest = max([latest, *(m for m, _ in given_points)])
        oldest = latest - keep - MARGIN_NS / MINUTE
        model[pod].update({m: v for m, v in given_points if m > oldest})
    for pod, expected in model.items():
        have = stored(store, ONE.plus({"pod": pod}))
        oldest = latest - keep
        assert have == sorted(have)
        assert [p for p in have if p[0] > oldest] == sorted((m, v) for m, v in expected.items() if m > oldest)
        assert all(expected.get(m) == v for m, v in have)


@settings(max_examples=60, deadline=None)
@given(order=st.permutations(list(range(6))), again=st.lists(st.integers(0, 5), max_size=4))
def test_the_order_of_answers_and_repetition_do_not_matter(order, again):
    chunks = [points(ONE, [n * 2, n * 2 + 1], [n, n + 0.5]) for n in range(6)]
    store = SeriesStore()
    for n in itertools.chain(order, again):
        take(store, chunks[n], at=12)
    straight = SeriesStore()
    take(straight, points(ONE, range(12), [n / 2 for n in range(12)]), at=12)
    assert stored(store) == stored(straight)
    assert store.table("s", "gpu").columns.spacing.tolist() == [MINUTE]


@pytest.mark.parametrize("metric", ["gpu", "log:r"])
def test_unknown_series_are_empty(metric):
    assert SeriesStore().points("s", metric, ONE).times.size == 0


def test_how_far_points_are_ahead_goes_by_the_clock_of_the_newest_answer():
    store = SeriesStore()
    take(store, points(ONE, [100], [1]), at=100)
    assert store.table("s", "gpu").ahead_ns("s/1") == 0
    take(store, points(ONE, [101], [1]), at=41)  # our clock went back an hour
    assert store.table("s", "gpu").ahead_ns("s/1") == 60 * MINUTE


def test_the_first_point_after_a_long_hole_does_not_cover_the_hole():
    store = SeriesStore()
    store.keep("s", "gpu", timedelta(minutes=20))
    other = Labels.of(source="s", task="s/1", task_name="run", pod="p2", gpu="g0")
    for minute in range(90):
        gone = 10 <= minute < 80
        take(store, points(other, [minute], [1]), *([] if gone else [points(ONE, [minute], [1])]), at=minute)
        if minute in (80, 81, 82, 89):
            columns = store.table("s", "gpu").columns
            row = store.table("s", "gpu").row(ONE)
            assert columns.spacing[row] == MINUTE, minute


def test_a_step_that_becomes_coarser_is_learnt_from_some_points():
    store = SeriesStore()
    for minute in range(30):
        take(store, points(ONE, [minute], [1]), at=minute)
    for minute in range(35, 150, 5):
        take(store, points(ONE, [minute], [1]), at=minute)
    table = store.table("s", "gpu")
    assert table.columns.spacing[table.row(ONE)] == 5 * MINUTE


def test_a_pod_that_gave_way_to_others_long_ago_is_forgotten() -> None:
    store = SeriesStore()
    old, new, other = (
        Labels.of(task=task, pod=pod) for task, pod in (("s/1", "a"), ("s/1", "b"), ("s/2", "c"))
    )
    take(store, *(points(labels, [0], [1.0]) for labels in (old, new, other)))
    take(store, points(new, [1500], [2.0]), at=1500)
    assert store.forget_outlived(timedelta(hours=24)) == 1
    assert [labels for labels, _ in store.latest("s", "gpu")] == [new, other]
    assert store.forget_outlived(timedelta(hours=24)) == 0


def test_nothing_is_forgotten_while_a_window_may_reach_it_or_nothing_newer_came() -> None:
    store = SeriesStore()
    store.keep("s", "gpu", timedelta(hours=48))
    old, new = (Labels.of(task="s/1", pod=pod) for pod in ("a", "b"))
    take(store, points(old, [0], [1.0]))
    take(store, points(new, [1500], [2.0]), at=1500)
    assert store.forget_outlived(timedelta(hours=24)) == 0
    take(store, points(new, [2900], [2.0]), at=2900)
    assert store.forget_outlived(timedelta(hours=24)) == 1


def test_memory_does_not_grow_with_pods_that_come_and_go() -> None:
    store = SeriesStore()
    for hour in range(24 * 30):
        pods = [Labels.of(task="s/1", pod=f"p-{hour}-{number}") for number in range(8)]
        minutes = [hour * 60 + minute for minute in range(0, 60, 20)]
        take(store, *(points(pod, minutes, [1.0] * 3) for pod in pods), at=hour * 60 + 59)
        store.forget_outlived(timedelta(hours=24))
    assert len(store.latest("s", "gpu")) <= 26 * 8
    assert store.nbytes < 2_000_000


def test_beyond_the_room_for_series_no_new_one_is_kept_and_known_ones_go_on(  # K6
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(series, "MOST_SERIES", 3)
    store = SeriesStore()
    pods = [Labels.of(task="s/1", pod=f"p{number}") for number in range(6)]
    report = take(store, *(points(pod, [0], [1.0]) for pod in pods))
    assert report.added == 3
    assert store.table("s", "gpu").refused == 3
    take(store, *(points(pod, [1], [2.0]) for pod in reversed(pods)), at=1)
    assert [stored(store, pod) for pod in pods] == [[(0, 1.0), (1, 2.0)]] * 3 + [[]] * 3
    take(store, *(points(pod, [2], [3.0]) for pod in pods[:2]), at=2)
    assert store.table("s", "gpu").refused == 0
