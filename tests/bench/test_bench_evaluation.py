"""Evaluation beside plain Python doing the same over the same points, by CPU, in one run."""

import statistics
from datetime import timedelta
from time import process_time

import numpy as np
import pytest

from watchdog.core.conditions.kinds import Absent, Aggregate, By, Comparison, Peers, Threshold
from watchdog.core.durations import from_ns
from watchdog.core.evaluation import View, evaluate
from watchdog.core.health import Standing
from watchdog.core.labels import Labels
from watchdog.core.outcomes import Outcome
from watchdog.core.rules import Rule
from watchdog.core.series import SeriesPoints, SeriesStore
from watchdog.core.tasks import Seen, Task, TaskState

GPUS, POINTS = 10_000, 60
PART = 1_000  # GPUs that plain Python is given
MINUTE = 60_000_000_000
NOW = 28_333_333 * MINUTE
TIMES = NOW + np.arange(1 - POINTS, 1) * MINUTE

RULES = {
    "avg 1h below": Threshold(
        metric="gpu",
        aggregate=Aggregate.AVG,
        window=timedelta(hours=1),
        comparison=Comparison(above=False, threshold=0.1),
        by=By.GPU,
    ),
    "max 5m above": Threshold(
        metric="vram",
        aggregate=Aggregate.MAX,
        window=timedelta(minutes=5),
        comparison=Comparison(above=True, threshold=0.95),
        by=By.GPU,
    ),
    "absent": Absent(metric="gpu", by=By.POD),
    "straggler": Peers(metric="gpu", aggregate=Aggregate.LAST, window=None, above=False, ratio=0.5),
}


def members(task):
    return [Labels.of(pod=f"p{n // 8}", gpu=f"g{n % 8}") for n in range(task * 80, task * 80 + 80)]


@pytest.fixture(scope="module")
def scene():
    random = np.random.default_rng(1)
    tasks = {
        f"s/{n}": TaskState(
            task=Task(key=f"s/{n}", source="s", id=str(n), name=f"run-{n}"),
            expected=tuple(Seen(labels=own, first=from_ns(NOW), last=from_ns(NOW)) for own in members(n)),
        )
        for n in range(GPUS // 80)
    }
    labels = [
        tasks[f"s/{n // 80}"].task.identity.plus({"pod": f"p{n // 8}", "gpu": f"g{n % 8}"})
        for n in range(GPUS)
    ]
    values = {
        "gpu": np.where(np.arange(GPUS) % 100 == 7, 0.03, 0.9)[:, None]
        + random.random((GPUS, POINTS)) * 0.05,
        "vram": 0.8 + random.random((GPUS, POINTS)) * 0.16 * (np.arange(GPUS) % 100 == 7)[:, None],
    }
    store = SeriesStore()
    for metric, rows in values.items():
        store.intake("s", metric, answer(labels, TIMES, rows), NOW)
    return View(series=store, tasks=tasks, standing=lambda key: Standing.GOOD), labels, values


def answer(labels, times, rows):
    return [SeriesPoints(labels=own, times=times, values=row) for own, row in zip(labels, rows, strict=True)]


def cpu(work, times=5):
    taken = []
    for _ in range(times):
        start = process_time()
        result = work()
        taken.append(process_time() - start)
    return statistics.median(taken), result


def naive(series, end, length, reduce, beyond):
    """The same question in loops: the points of the window, what they cover, their value, the verdict."""
    verdicts = []
    for points in series:
        low, covered, inside, before = end - length, 0, [], points[0][0] - MINUTE
        for at, value in points:
            if low < at <= end:
                inside.append(value)
                covered += at - max(low, at - min(at - before, 2 * MINUTE))
            before = at
        verdicts.append(covered >= 0.8 * length and beyond(reduce(inside)))
    return verdicts


def test_one_slot_over_ten_thousand_gpus(scene):
    view, labels, values = scene
    slots = np.array([NOW])
    took = {}
    for name, condition in RULES.items():
        rule = Rule(name=name, condition=condition)
        evaluate(rule, view, slots)  # the roster is made once, not every slot
        took[name], found = cpu(lambda rule=rule: evaluate(rule, view, slots))
        print(f"{name}: {took[name] * 1e3:.2f} ms for {len(found.labels)} labelsets")
    for name, metric, minutes, reduce, beyond in (
        ("avg 1h below", "gpu", 60, lambda row: sum(row) / len(row), lambda v: v < 0.1),
        ("max 5m above", "vram", 5, max, lambda v: v > 0.95),
    ):
        rows = values[metric][:PART].tolist()
        series = [list(zip(TIMES.tolist(), row, strict=True)) for row in rows]
        start = process_time()
        wanted = naive(series, NOW, minutes * MINUTE, reduce, beyond)
        plain = (process_time() - start) * GPUS / PART
        print(f"{name} in plain Python: {plain * 1e3:.0f} ms, {plain / took[name]:.0f} times as much")
        found = evaluate(Rule(name=name, condition=RULES[name]), view, slots)
        verdicts = dict(zip(found.labels, found.outcome[:, 0] == Outcome.TRUE, strict=True))
        assert [bool(verdicts[own]) for own in labels[:PART]] == wanted
        assert any(wanted)
        assert not all(wanted)
        assert took[name] * 4 < plain


def test_many_slots_cost_less_than_one_by_one(scene):
    view, _, _ = scene
    rule = Rule(name="r", condition=RULES["avg 1h below"])
    slots = NOW + np.arange(-59, 1) * MINUTE
    apart, _ = cpu(lambda: [evaluate(rule, view, slots[t : t + 1]) for t in range(10)], 1)
    apart *= slots.size / 10
    together, _ = cpu(lambda: evaluate(rule, view, slots), 1)
    print(f"{slots.size} slots: {together * 1e3:.0f} ms together, {apart * 1e3:.0f} ms one by one")
    assert together < apart * 2


def test_taking_in_one_new_point_of_each_series(scene):
    _, labels, values = scene
    store = SeriesStore()
    store.intake("s", "gpu", answer(labels, TIMES, values["gpu"]), NOW)
    fill = store.nbytes
    taken = []
    for minute in range(1, 10):
        at = NOW + minute * MINUTE
        new = answer(labels, np.array([at]), values["gpu"][:, :1])
        start = process_time()
        report = store.intake("s", "gpu", new, at)
        taken.append(process_time() - start)
        assert report.added == GPUS
    print(
        f"intake: {statistics.median(taken) * 1e3:.2f} ms; {GPUS} x {POINTS} points: {fill / 2**20:.1f} MiB"
    )
    assert fill < GPUS * POINTS * 16 * 1.5
