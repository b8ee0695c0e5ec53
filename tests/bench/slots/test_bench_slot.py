"""One whole slot (intake, evaluation, lifecycle, T1) beside plain Python, and what the series weigh.

Beside a real Prometheus: `beside_prometheus.py`. At full size: `WATCHDOG_BENCH=full`.
"""

import gc
import os
import statistics
import tracemalloc
from collections.abc import Callable
from time import process_time

import numpy as np

from watchdog.core.labels import Labels
from watchdog.core.points import SeriesPoints
from watchdog.core.series import SeriesStore

FULL = os.environ.get("WATCHDOG_BENCH") == "full"
GPUS = 10_000 if FULL else 2_000
LABELSETS = 100_000 if FULL else 4_000
MINUTE = 60_000_000_000
LIMIT = 300 * 2**20 / 100_000  # bytes for a labelset with two metrics of sixty points


def in_python(series: list[list[tuple[int, float]]], end: int) -> list[tuple[bool, bool]]:
    """Two of the four rules, point by point: windows, what their points cover, mean and maximum."""
    return [
        (
            judged(points, end - 60 * MINUTE, end, lambda values: sum(values) / len(values) < 0.1),
            judged(points, end - 5 * MINUTE, end, lambda values: max(values) > 0.95),
        )
        for points in series
    ]


def judged(
    points: list[tuple[int, float]], low: int, end: int, beyond: Callable[[list[float]], bool]
) -> bool:
    covered, inside, before = 0, [], points[0][0] - MINUTE
    for at, value in points:
        if low < at <= end:
            inside.append(value)
            covered += at - max(low, at - min(at - before, 2 * MINUTE))
        before = at
    return covered >= 0.8 * (end - low) and beyond(inside)


def test_a_whole_slot_costs_less_than_two_of_its_rules_in_plain_python(tmp_path, fleet_of):
    fleet = fleet_of(tmp_path, GPUS)
    for _ in range(3):
        fleet.slot()
    ours = statistics.median(fleet.slot() for _ in range(20 if FULL else 7))
    again = statistics.median(fleet.slot(6) for _ in range(20 if FULL else 7))
    values = np.random.default_rng(1).random((GPUS, 60)).tolist()
    series = [[(n * MINUTE, value) for n, value in enumerate(row)] for row in values]
    began = process_time()
    in_python(series, 60 * MINUTE)
    plain = process_time() - began
    print(
        f"{GPUS} GPUs: a slot {ours * 1e3:.1f} ms CPU, {again * 1e3:.1f} ms if each series comes with 5 old"
        f" points; two of the four rules in Python {plain * 1e3:.0f} ms, {plain / ours:.1f} times as much"
    )
    assert len(fleet.world.book.all_alerts()) >= GPUS // 100
    assert ours < plain


def answer(first: int, last: int, own_times: bool) -> list[SeriesPoints]:
    """New labels and arrays for each series, as a source makes them."""
    made = []
    for n in range(first, last):
        labels = Labels.of(
            source="s", task=f"s/{n // 80}", task_name=f"run-{n // 80}", pod=f"p{n // 8}", gpu=str(n % 8)
        )
        shift = (n * 997 if own_times else n // 80) % 60 * 1_000_000_000
        times = np.arange(1_000, 1_060) * MINUTE + shift
        made.append(SeriesPoints(labels=labels, times=times, values=np.full(60, n / LABELSETS)))
    return made


def filled(*, own_times: bool) -> SeriesStore:
    store = SeriesStore()
    for metric in ("gpu", "vram"):
        for first in range(0, LABELSETS, 80):
            store.intake("s", metric, answer(first, first + 80, own_times), 1_060 * MINUTE)
    return store


def test_a_hundred_thousand_gpus_fit_into_300_mib():
    gc.collect()
    tracemalloc.start()
    shared = filled(own_times=False)
    gc.collect()
    taken = tracemalloc.get_traced_memory()[0] / LABELSETS
    tracemalloc.stop()
    apart = filled(own_times=True)
    assert len(shared.latest("s", "vram")) == LABELSETS
    print(
        f"{LABELSETS} GPUs x 2 metrics x 60 points: {taken:.0f} B each, {taken * 1e5 / 2**20:.0f} MiB for"
        f" 100 000; points alone {shared.nbytes / LABELSETS:.0f} B, {apart.nbytes / LABELSETS:.0f} B where"
        " series have times of their own"
    )
    assert taken < LIMIT
    assert shared.nbytes < 0.75 * apart.nbytes
