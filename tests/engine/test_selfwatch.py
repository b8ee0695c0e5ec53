"""Self-watch: what is said of the watching itself, when, and that it ends, also over a restart."""

from dataclasses import replace
from datetime import timedelta

from watchdog.core.conditions.kinds import Across, Aggregate, Comparison, LogEvent, LogMatch, Threshold
from watchdog.core.health import Failure
from watchdog.core.rules import Rule
from watchdog.core.ruleset import WatchEntry
from watchdog.core.tasks import Status, TaskObservation
from watchdog.errors import SourceError

MINUTE = timedelta(minutes=1)


def average(window: timedelta) -> Rule:
    condition = Threshold(
        metric="gpu",
        aggregate=Aggregate.AVG,
        window=window,
        comparison=Comparison(above=False, threshold=0.1),
        across=Across.AVG,
    )
    return Rule(name="low", condition=condition)


def about(bench, words: str) -> list[tuple[int, str]]:  # type: ignore[no-untyped-def]
    return [(int(minute), message.title) for minute, message in bench.chat.sent if words in message.title]


def test_a_rule_whose_window_is_never_covered_is_said_once_and_ends_over_a_restart(bench) -> None:  # type: ignore[no-untyped-def]
    bench.rules = (replace(average(10 * MINUTE), quorum=0.9),)
    bench.cloud.put("gpu", range(-100, 160), 0.5, pod="pod-0")
    bench.cloud.put("gpu", [*range(-100, 5), *range(60, 160)], 0.5, pod="pod-1")

    async def main() -> None:
        await bench.live(50.5)
        await bench.live(60)

    bench.run(main)
    told = about(bench, "judged")
    assert [title.split("·")[0].strip() for _, title in told] == ["WARNING", "OK"]
    assert told[1][0] > 60


def test_a_running_task_without_any_line_is_said_after_half_an_hour_and_ends_over_a_restart(bench) -> None:  # type: ignore[no-untyped-def]
    match = LogMatch(match=(bench.patterns.compile("ERROR"),))
    bench.rules = (Rule(name="errors", condition=LogEvent(lines=match)),)

    async def main() -> None:
        await bench.live(40.5)
        bench.cloud.line(45, "hello")
        await bench.live(10)

    bench.run(main)
    told = about(bench, "log line")
    assert [minute for minute, _ in told] == [30, 45]
    assert "never seen" in told[0][1]
    assert "sees log lines" in told[1][1]


def test_a_source_that_is_always_slower_than_its_poll_is_said(bench) -> None:  # type: ignore[no-untyped-def]
    async def slow() -> None:
        if bench.world.monotonic() < 20 * MINUTE:
            await bench.world.sleep(80 * timedelta(seconds=1))

    bench.cloud.script["status/1"] = slow
    bench.run(lambda: bench.live(40))
    told = about(bench, "asked")
    assert [title.split("·")[0].strip() for _, title in told] == ["WARNING", "OK"]


def test_what_fails_late_is_told_as_failing_and_not_as_slow_too(bench) -> None:  # type: ignore[no-untyped-def]
    async def fails_late() -> None:
        if 3 * MINUTE <= bench.world.monotonic() < 30 * MINUTE:
            await bench.world.sleep(80 * timedelta(seconds=1))
            raise SourceError(Failure.TIMEOUT)

    bench.cloud.script["status/1"] = fails_late
    bench.run(lambda: bench.live(60))
    assert about(bench, "asked") == []
    assert [title.split("·")[0].strip() for _, title in about(bench, "cannot read")] == ["WARNING"]


def test_facts_about_tasks_do_not_pile_up(bench) -> None:  # type: ignore[no-untyped-def]
    """A task a day, found by name, each with something to say once: what is remembered stays small."""
    bench.watch = (WatchEntry(source="src", name="run-*"),)
    bench.rules = (average(10 * MINUTE),)
    bench.poll = bench.interval = timedelta(hours=1)
    bench.cloud.remarks = ("suspect: gpu is 8000 %",)

    async def main():  # type: ignore[no-untyped-def]
        engine = bench.engine()
        day = timedelta(days=1)

        def rows(_: object, __: object) -> None:
            today = bench.world.monotonic() // day
            bench.cloud.rows = [
                TaskObservation(
                    task=bench.cloud.task(str(n), f"run-{n}"),
                    status=Status.RUNNING if n == today else Status.SUCCEEDED,
                    status_text="x",
                )
                for n in range(max(0, today - 3), today + 1)
            ]

        engine.on_slot = rows
        return await bench.live(12 * 24 * 60, engine)

    world = bench.run(main).world
    assert len(world.states) <= 4
    assert len(world.memory) <= 8
    assert len(bench.state.reader().load().memory) == len(world.memory)
    assert len(world.health.states) < 20
    assert (len(world.streams), len(world.readers)) == (0, 0)
