"""The world: what sources are asked because of the rules, and what follows from it."""

import asyncio
from collections.abc import Iterable
from datetime import timedelta

import pytest

from watchdog.core.conditions.kinds import (
    Across,
    Aggregate,
    Capability,
    Comparison,
    LogCount,
    LogEvent,
    LogMatch,
    Silent,
    Threshold,
)
from watchdog.core.rules import Rule, Selector
from watchdog.core.ruleset import WatchEntry
from watchdog.core.tasks import Status, TaskObservation
from watchdog.engine.collector import Wishes

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def average(name: str, metric: str, window: timedelta, **more: object) -> Rule:
    condition = Threshold(
        metric=metric,
        aggregate=Aggregate.AVG,
        window=window,
        comparison=Comparison(above=False, threshold=0.1),
        across=Across.AVG,
    )
    return Rule(name=name, condition=condition, **more)  # type: ignore[arg-type]


@pytest.fixture
def wishes(bench):  # type: ignore[no-untyped-def]
    """What the source would be asked at minute 0 under these rules."""

    def asked(*rules: Rule) -> Wishes:
        bench.rules = rules
        engine = bench.engine()
        engine.world.prime(bench.world.start)
        return engine.world.wishes("src", bench.world.now())

    return asked


def prefilters(found: Wishes) -> list[str]:
    return [reader.key.prefilter for reader in found.streams]


def test_however_many_rules_read_a_metric_it_is_asked_once_and_far_enough_back(bench, wishes) -> None:  # type: ignore[no-untyped-def]
    found = wishes(
        *(average(f"low-{n}", "gpu", n * 10 * MINUTE) for n in range(1, 20)), average("vram", "vram", HOUR)
    )
    assert sorted(wish.metric for wish in found.metrics) == ["gpu", "vram"]
    since = {wish.metric: (bench.world.start - wish.since) / MINUTE for wish in found.metrics}
    assert since == {"gpu": 190, "vram": 60}


def test_a_metric_that_only_rules_of_other_tasks_read_is_not_asked(bench, wishes) -> None:  # type: ignore[no-untyped-def]
    bench.watch = (WatchEntry(source="src", id="1"), WatchEntry(source="src", id="2"))
    found = wishes(average("low", "gpu", HOUR, select=Selector(patterns=(("id", "2"),))))
    assert [wish.task.id for wish in found.metrics] == ["2"]


def test_only_what_is_new_is_asked_and_what_may_come_late(bench) -> None:  # type: ignore[no-untyped-def]
    bench.rules = (average("low", "gpu", HOUR),)
    bench.cloud.put("gpu", range(-90, 60), 0.9, pod="pod-0")
    engine = bench.run(lambda: bench.live(10.5))
    (wish,) = engine.world.wishes("src", bench.world.now()).metrics
    assert (wish.since - bench.world.start) / MINUTE == 5


def test_a_task_that_has_ended_is_asked_for_its_status_and_log_only(bench) -> None:  # type: ignore[no-untyped-def]
    bench.rules = (average("low", "gpu", HOUR), Rule(name="silent", condition=Silent()))
    bench.cloud.rows = [ended(bench)]
    engine = bench.run(lambda: bench.live(3.5))
    found = engine.world.wishes("src", bench.world.now())
    assert (len(found.statuses), found.metrics, prefilters(found)) == (1, (), [""])


def ended(bench):  # type: ignore[no-untyped-def]
    return TaskObservation(task=bench.cloud.task("1"), status=Status.SUCCEEDED, status_text="Succeeded")


def log_rule(bench, name: str, prefilter: str = "") -> Rule:  # type: ignore[no-untyped-def]
    match = LogMatch(match=(bench.patterns.compile(name),), prefilter=prefilter)
    return Rule(name=name, condition=LogEvent(lines=match))


def test_without_log_rules_no_log_is_read(wishes) -> None:  # type: ignore[no-untyped-def]
    assert prefilters(wishes(average("low", "gpu", HOUR))) == []


def test_rules_with_the_same_filter_share_a_stream(bench, wishes) -> None:  # type: ignore[no-untyped-def]
    found = wishes(log_rule(bench, "a", "ERROR"), log_rule(bench, "b", "ERROR"), log_rule(bench, "c", "WARN"))
    assert prefilters(found) == ["ERROR", "WARN"]


def test_a_stream_of_everything_serves_every_rule(bench, wishes) -> None:  # type: ignore[no-untyped-def]
    found = wishes(log_rule(bench, "a", "ERROR"), Rule(name="silent", condition=Silent()))
    assert prefilters(found) == [""]


def test_the_list_is_asked_only_where_it_is_needed(bench, wishes) -> None:  # type: ignore[no-untyped-def]
    assert not wishes().list_tasks
    bench.watch = (WatchEntry(source="src", name="run-*"),)
    assert wishes().list_tasks
    bench.watch = (WatchEntry(source="src", id="1"),)
    bench.cloud.capabilities = frozenset(Capability) - {Capability.STATUS}
    found = wishes()
    assert (found.list_tasks, found.statuses) == (True, ())


def test_a_task_that_comes_while_a_log_is_being_read_makes_no_line_come_twice(bench) -> None:  # type: ignore[no-untyped-def]
    count = LogCount(
        lines=LogMatch(match=(bench.patterns.compile("WARN"),)),
        within=HOUR,
        comparison=Comparison(above=True, threshold=100),
    )
    bench.rules = (Rule(name="burst", condition=count),)
    bench.watch = (WatchEntry(source="src", id="1"), WatchEntry(source="src", name="late"))

    async def slow() -> None:
        await bench.world.sleep(timedelta(seconds=40))

    bench.cloud.script["logs/1/"] = slow
    for second in range(1, 300, 7):
        bench.cloud.line(second / 60, f"WARN {second}")

    async def main():  # type: ignore[no-untyped-def]
        engine = bench.engine()
        life = asyncio.ensure_future(bench.live(12.5, engine))
        await bench.world.sleep(2.2 * MINUTE)
        bench.cloud.rows = [late(bench)]
        return await life

    engine = bench.run(main)
    assert len(engine.world.states) == 2
    assert counted(engine) == 43


def late(bench):  # type: ignore[no-untyped-def]
    return TaskObservation(task=bench.cloud.task("9", "late"), status=Status.RUNNING, status_text="Running")


def counted(engine) -> float:  # type: ignore[no-untyped-def]
    """How many lines of task 1 the counting rule has found."""
    series = engine.world.series
    found: Iterable[float] = (
        value
        for labels, _ in series.latest("src", "log:burst")
        if labels["task"] == "src/1"
        for value in series.points("src", "log:burst", labels).values
    )
    return sum(found)
