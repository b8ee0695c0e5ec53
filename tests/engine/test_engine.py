"""The engine's life: slots on their grid, a clean stop, a loud death, and restarts that change nothing."""

import asyncio
import gc
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import TypeVar

import pytest

from watchdog.core.conditions.kinds import (
    Across,
    Aggregate,
    Comparison,
    Condition,
    LogCount,
    LogEvent,
    LogMatch,
    Silent,
    Threshold,
)
from watchdog.core.moments import Tick
from watchdog.core.rules import Rule
from watchdog.core.view import View
from watchdog.engine.engine import Engine
from watchdog.ports import SlotCommit

T = TypeVar("T")
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)


def threshold(metric: str = "gpu", level: float = 0.2) -> Condition:
    return Threshold(
        metric=metric,
        aggregate=Aggregate.LAST,
        window=None,
        comparison=Comparison(above=False, threshold=level),
        across=Across.AVG,
    )


def ticks(engine: Engine) -> list[Tick]:
    """Have an engine note its slots."""
    seen: list[Tick] = []
    engine.on_slot = lambda _, tick: seen.append(tick)
    return seen


def minutes(bench, seen: list[Tick]) -> list[float]:  # type: ignore[no-untyped-def]
    return [(tick.at - bench.world.start) / MINUTE for tick in seen]


def test_slots_lie_on_their_grid(bench) -> None:  # type: ignore[no-untyped-def]
    engine = bench.engine()
    seen = ticks(engine)
    bench.run(lambda: bench.live(5.5, engine))
    assert minutes(bench, seen) == [0, 1, 2, 3, 4, 5]
    assert [tick.elapsed for tick in seen] == [timedelta(), *[MINUTE] * 5]
    assert engine.slots == 6


def test_a_slot_that_is_late_carries_the_time_it_was_due(bench) -> None:  # type: ignore[no-untyped-def]
    async def slowly() -> None:
        await bench.world.sleep(8 * SECOND)

    bench.cloud.script["status/1"] = slowly
    engine = bench.engine()
    seen = ticks(engine)
    bench.run(lambda: bench.live(4.9, engine))
    assert [round(minute % 1 * 60) for minute in minutes(bench, seen)] == [8] * 5, (
        "the first answers took 8 s"
    )


def test_a_question_that_hangs_delays_no_slot_but_the_first(bench) -> None:  # type: ignore[no-untyped-def]
    async def ever() -> None:
        await bench.world.sleep(timedelta(days=1))

    bench.rules = (Rule(name="low", condition=threshold()),)
    bench.cloud.script["gpu/1"] = ever
    engine = bench.engine()
    ended: list[float] = []
    engine.on_slot = lambda _, tick: ended.append((bench.world.now() - tick.at) / SECOND)
    bench.run(lambda: bench.live(6.5, engine))
    assert ended[2:] == [0] * (len(ended) - 2)


def test_missed_slots_are_counted_and_not_made_up_for(bench) -> None:  # type: ignore[no-untyped-def]
    engine = bench.engine()
    seen = ticks(engine)
    write = engine.journal.run
    slow = [True]

    async def once(call: Callable[[], T]) -> T:
        if engine.slots == 3 and slow[0]:
            slow[0] = False
            await bench.world.sleep(2.5 * MINUTE)
        return await write(call)

    engine.journal.run = once
    bench.run(lambda: bench.live(9.5, engine))
    assert minutes(bench, seen) == [0, 1, 2, 5, 6, 7, 8, 9]
    assert [tick.missed for tick in seen] == [0, 0, 0, 2, 0, 0, 0, 0]
    assert engine.missed == 2


def test_a_failure_nobody_foresaw_ends_the_run_loudly(bench) -> None:  # type: ignore[no-untyped-def]
    class Broken:
        def __init__(self, inner: object) -> None:
            self.inner = inner

        def __getattr__(self, name: str) -> object:
            return getattr(self.inner, name)

        def commit_slot(self, commit: SlotCommit) -> object:
            raise ZeroDivisionError(commit)

    engine = bench.engine(Broken(bench.state.open()))

    async def main() -> set[str]:
        with pytest.raises(ExceptionGroup) as caught:
            await engine.run()
        with pytest.raises(ZeroDivisionError):
            await engine.stop()
        assert caught.group_contains(ZeroDivisionError)
        return leftovers()

    assert bench.run(main) == set()


def leftovers() -> set[str]:
    """What is still running beside the caller."""
    return {task.get_name() for task in asyncio.all_tasks()} - {asyncio.current_task().get_name()}  # type: ignore[union-attr]


def test_a_stop_leaves_nothing_behind(bench) -> None:  # type: ignore[no-untyped-def]
    async def hangs() -> None:
        await bench.world.sleep(timedelta(days=1))

    bench.rules = (Rule(name="low", condition=threshold()),)
    bench.cloud.put("gpu", range(-60, 60), 0.05, pod="pod-0")
    bench.chat.takes = timedelta(days=1)

    async def main() -> tuple[timedelta, set[str]]:
        engine = bench.engine()
        life = asyncio.ensure_future(engine.run())
        await bench.world.sleep(5 * MINUTE)
        bench.cloud.script["status/1"] = hangs
        await bench.world.sleep(MINUTE)
        life.cancel()
        await asyncio.gather(life, return_exceptions=True)
        began = bench.world.monotonic()
        await engine.stop()
        return bench.world.monotonic() - began, leftovers()

    took, left = bench.run(main)
    assert took <= 3 * SECOND
    assert len(left) == 1, "a request is not cancelled midway"
    assert bench.cloud.closed
    assert bench.chat.closed


def test_a_source_that_cannot_be_closed_keeps_nothing_from_being_stored(bench) -> None:  # type: ignore[no-untyped-def]
    async def broken() -> None:
        raise OSError("gone")

    bench.cloud.close = broken
    bench.rules = (Rule(name="low", condition=threshold()),)
    bench.cloud.put("gpu", range(-60, 60), 0.05, pod="pod-0")
    engine = bench.engine()
    bench.state.refuse_writes(True)

    async def main() -> None:
        life = asyncio.ensure_future(engine.run())
        await bench.world.sleep(3 * MINUTE)
        bench.state.refuse_writes(False)
        life.cancel()
        await asyncio.gather(life, return_exceptions=True)
        with pytest.raises(OSError, match="gone"):
            await engine.stop()

    bench.run(main)
    assert [incident.rule for incident in bench.state.open().load().incidents if not incident.notice] == [
        "low"
    ]


def busy(bench) -> None:  # type: ignore[no-untyped-def]
    """Rules of many kinds, and a run that gives each of them something to say."""
    error, warn = bench.patterns.compile(r"\bERROR\b"), bench.patterns.compile(r"\bWARN\b")
    bench.rules = (
        Rule(name="low", condition=threshold(), hold=5 * MINUTE),
        Rule(name="low-vram", condition=threshold("vram"), keep_firing_for=4 * MINUTE),
        Rule(name="errors", condition=LogEvent(lines=LogMatch(match=(error,)))),
        Rule(
            name="burst",
            condition=LogCount(
                lines=LogMatch(match=(warn,)),
                within=10 * MINUTE,
                comparison=Comparison(above=True, threshold=8),
            ),
        ),
        Rule(name="silence", condition=Silent(), hold=10 * MINUTE),
    )
    every = range(-60, 120)
    bench.cloud.put("gpu", every, [0.05 if 10 <= n < 30 else 0.9 for n in every], pod="pod-0")
    bench.cloud.put("vram", every, [0.1 if 22 <= n < 40 else 0.5 for n in every], pod="pod-0")
    for number, minute in enumerate((3.2, 21.1, 29.7, 41.3)):
        bench.cloud.line(minute, f"ERROR in part {'abcd'[number]} of the program")
    for number in range(12):
        bench.cloud.line(18 + number, f"WARN {number}")
    bench.cloud.line(44.5, "the last line")


def said(bench) -> list[tuple[str, str]]:  # type: ignore[no-untyped-def]
    """Every message, without the order of those that belong to one minute."""
    return sorted((f"{int(minute):02}", message.title) for minute, message in bench.chat.sent)


@pytest.mark.parametrize("restarts", [(12,), (16, 23, 24), (20, 26, 31, 43), (27, 45)])
def test_restarts_change_nothing_that_is_said(new_bench, restarts: tuple[int, ...]) -> None:  # type: ignore[no-untyped-def]
    whole, parts = new_bench(), new_bench()
    for bench in (whole, parts):
        busy(bench)
    whole.run(lambda: whole.live(70.5))

    async def lives() -> None:
        begin = 0.0
        for end in (*restarts, 70):
            await parts.live(end + 0.5 - begin)
            await parts.world.sleep((end + 1) * MINUTE - parts.world.monotonic())
            begin = end + 1

    parts.run(lives)
    titles = [title for _, title in said(whole)]
    assert len(titles) >= 9
    assert [title for _, title in said(parts)] == titles
    late = [int(b) - int(a) for (a, _), (b, _) in zip(said(whole), said(parts), strict=True)]
    assert all(0 <= minute <= len(restarts) for minute in late), "what is down is not watched, no more"
    for bench in (whole, parts):
        bench.state.discard()


def test_a_slot_leaves_nothing_that_must_be_searched_for(bench) -> None:  # type: ignore[no-untyped-def]
    """What a slot saw goes with the next one, by itself: rings would pile up until the collector comes."""
    busy(bench)
    views: list[int] = []

    def count(_: Engine, __: Tick) -> None:
        views.append(sum(isinstance(one, View) for one in gc.get_objects()))

    async def main() -> None:
        engine = bench.engine()
        engine.on_slot = count
        await bench.live(20, engine)

    gc.collect()
    gc.disable()
    try:
        bench.run(main)
    finally:
        gc.enable()
    assert max(views) <= 2


def test_an_edited_rule_takes_no_value_away_from_what_goes_on(bench) -> None:  # type: ignore[no-untyped-def]
    bench.rules = (Rule(name="low", condition=threshold()), Rule(name="other", condition=threshold("vram")))
    bench.cloud.put("gpu", range(-60, 60), [0.01 + abs(n) / 10_000 for n in range(-60, 60)], pod="pod-0")
    seen: list[tuple[object, object]] = []

    def told(engine: Engine) -> list[tuple[object, ...]]:
        return [(one.value, one.held, one.judged) for one in engine.runner.known("low").values()]

    def edit(engine: Engine, _: Tick) -> None:
        known = told(engine)
        engine.runner.adopt(replace(engine.world.ruleset, rules=()))  # as if every rule were another now
        seen.append((known, told(engine)))

    async def main() -> None:
        engine = bench.engine()
        engine.on_slot = edit
        await bench.live(25, engine)

    bench.run(main)
    assert len(seen) >= 25
    assert len({str(known) for known, _ in seen}) >= 25
    assert all(known == after for known, after in seen)


def test_the_world_after_a_restart_is_the_world_before_it(bench) -> None:  # type: ignore[no-untyped-def]
    busy(bench)

    async def main() -> tuple[Engine, Engine]:
        before = await bench.live(25.5)
        after = bench.engine()
        after.world.restore(await after.journal.load())
        return before, after

    before, after = bench.run(main)
    old, new = before.world, after.world
    assert new.states == old.states
    assert new.book == old.book
    assert all(alert.counting is None for alert in new.book.all_alerts()), "an orderly stop stores them exact"
    assert new.streams == old.streams
    assert new.memory == old.memory
    assert (new.incidents, new.transitions, new.mark) == (old.incidents, old.transitions, old.mark)
    key = ("src", "log:burst")
    assert len(new.series.latest(*key)) == len(old.series.latest(*key)) == 1
    for labels, _ in old.series.latest(*key):
        kept, known = new.series.points(*key, labels), old.series.points(*key, labels)
        assert kept.times.tolist() == known.times.tolist()
        assert kept.values.tolist() == known.values.tolist()


def test_a_long_outage_of_our_own_is_told(bench) -> None:  # type: ignore[no-untyped-def]
    async def main() -> None:
        await bench.live(5.5)
        await bench.world.sleep(timedelta(hours=2))
        await bench.live(2)

    bench.run(main)
    (notice,) = [message for _, message in bench.chat.sent]
    assert "was not watching" in notice.title
    assert "2 h" in notice.body
