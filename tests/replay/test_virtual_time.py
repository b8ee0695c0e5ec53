"""The virtual clock: jumps, suspends and stalls move exactly the clocks they move in life."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from watchdog.replay.virtual import VirtualWorld

START = datetime(2026, 11, 30, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


def test_sleeping_takes_no_time_but_virtual_time() -> None:
    world = VirtualWorld(start=START)
    world.run(lambda: world.sleep(1000 * HOUR))
    assert world.monotonic() == 1000 * HOUR
    assert world.now() == world.true_now() == START + 1000 * HOUR


def test_timers_on_a_grid_stay_on_it() -> None:
    world = VirtualWorld(start=START)

    async def ticks() -> None:
        for _ in range(10_000):
            await world.sleep(timedelta(seconds=0.1))

    world.run(ticks)
    assert world.monotonic() == timedelta(seconds=1000)


def test_sleepers_wake_in_order() -> None:
    world = VirtualWorld(start=START)
    woken: list[tuple[str, timedelta]] = []

    async def sleeper(name: str, duration: timedelta) -> None:
        await world.sleep(duration)
        woken.append((name, world.monotonic()))

    async def main() -> None:
        await asyncio.gather(sleeper("late", HOUR), sleeper("soon", MINUTE), sleeper("mid", 5 * MINUTE))

    world.run(main)
    assert woken == [("soon", MINUTE), ("mid", 5 * MINUTE), ("late", HOUR)]


def test_a_jump_moves_the_machine_s_wall_clock_only() -> None:
    world = VirtualWorld(start=START)
    world.jump(-HOUR)
    assert (world.now(), world.true_now(), world.monotonic()) == (START - HOUR, START, timedelta())


def test_a_suspend_moves_every_wall_clock_and_not_the_monotonic_one() -> None:
    world = VirtualWorld(start=START)
    world.suspend(HOUR)
    assert (world.now(), world.true_now(), world.monotonic()) == (START + HOUR, START + HOUR, timedelta())


def test_a_stall_moves_all_clocks_and_what_was_due_in_it_runs_late() -> None:
    world = VirtualWorld(start=START)
    world.stall(5 * MINUTE, 30 * MINUTE)
    woken: list[timedelta] = []

    async def ticks() -> None:
        for number in range(1, 4):
            await world.sleep(4 * MINUTE * number - world.monotonic())
            woken.append(world.monotonic())

    world.run(ticks)
    assert woken == [4 * MINUTE, 35 * MINUTE, 35 * MINUTE]
    assert world.now() == world.true_now() == START + 35 * MINUTE


def test_a_stall_while_nothing_is_due_is_a_stall_too() -> None:
    world = VirtualWorld(start=START)
    world.stall(MINUTE, 2 * MINUTE)
    world.run(lambda: world.sleep(10 * MINUTE))
    assert world.monotonic() == 10 * MINUTE


def test_time_that_stands_still_for_ever_is_an_error() -> None:
    world = VirtualWorld(start=START)
    with pytest.raises(RuntimeError, match="stands still"):
        world.run(lambda: asyncio.Event().wait())
