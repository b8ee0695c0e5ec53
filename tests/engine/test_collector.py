"""The collector: every question at its own pace, whatever becomes of the others."""

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Protocol

import pytest

from watchdog.core.conditions.kinds import Capability
from watchdog.core.health import Failure, Probe, ProbeKey
from watchdog.core.tasks import Task
from watchdog.engine.collector import Collector, MetricWish, Wishes
from watchdog.engine.inbox import Inbox
from watchdog.errors import SourceError
from watchdog.replay.virtual import VirtualWorld

MINUTE = timedelta(minutes=1)
EVER = timedelta(days=30)


class Cloud(Protocol):
    asked: list[tuple[float, str]]
    script: dict[str, Callable[[], Awaitable[None]]]
    closed: bool

    def minutes(self, question: str) -> list[float]: ...
    def task(self, number: str = "1", name: str = "") -> Task: ...


class Bench(Protocol):
    world: VirtualWorld
    cloud: Cloud

    def run(self, main: Callable[[], Awaitable[object]]) -> object: ...


def failing(failure: Failure, retry_after: timedelta | None = None) -> Callable[[], Awaitable[None]]:
    async def script() -> None:
        raise SourceError(failure, "as scripted", retry_after=retry_after)

    return script


def taking(bench: Bench, duration: timedelta) -> Callable[[], Awaitable[None]]:
    async def script() -> None:
        await bench.world.sleep(duration)

    return script


class Lab:
    """A collector over a test's cloud that asks for two tasks' status and one metric each."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.inbox = bench, Inbox()
        tasks = (bench.cloud.task("1"), bench.cloud.task("2"))
        since: datetime = bench.world.start
        self.wishes = Wishes(
            statuses=tasks,
            metrics=tuple(MetricWish(task=task, metric="gpu", since=since) for task in tasks),
        )
        self.collector = Collector(
            source=bench.cloud,
            poll=MINUTE,
            clock=bench.world,
            inbox=self.inbox,
            wishes=lambda: self.wishes,
            jitter=lambda: 0.5,
        )

    def poll(self, minutes: float) -> None:
        """Let it poll for so long."""

        async def main() -> None:
            life = asyncio.ensure_future(self.collector.run())
            await self.bench.world.sleep(minutes * MINUTE)
            life.cancel()

        self.bench.run(main)

    def probes(self, capability: Capability, task: str) -> list[Probe]:
        return [p for p in self.inbox.probes if (p.key.capability, p.key.task) == (capability, task)]


@pytest.fixture
def lab(bench: Bench) -> Lab:
    return Lab(bench)


def test_everything_is_asked_once_a_poll(lab: Lab) -> None:
    lab.poll(3.5)
    for question in ("status/1", "status/2", "gpu/1", "gpu/2"):
        assert lab.bench.cloud.minutes(question) == [0, 1, 2, 3]
    assert len(lab.inbox.statuses) == len(lab.inbox.points) == 8
    assert all(probe.failure is None for probe in lab.inbox.probes)


def test_a_metric_is_named_in_its_probe(lab: Lab) -> None:
    lab.poll(0.5)
    assert {probe.key for probe in lab.inbox.probes} == {
        ProbeKey(source="src", capability=capability, task=f"src/{n}", item=item)
        for n in (1, 2)
        for capability, item in ((Capability.STATUS, ""), (Capability.METRICS, "gpu"))
    }


def test_a_failing_question_backs_off_and_slows_no_other(lab: Lab) -> None:
    lab.bench.cloud.script["gpu/1"] = failing(Failure.FORBIDDEN)
    lab.poll(60.5)
    asked = lab.bench.cloud.minutes("gpu/1")
    assert asked[:3] == [0, 1, 2], "blindness is known after three polls"
    assert len(asked) < 12
    assert max(later - sooner for sooner, later in pairwise(asked)) <= 15
    for question in ("status/1", "status/2", "gpu/2"):
        assert len(lab.bench.cloud.minutes(question)) == 61
    failed = lab.probes(Capability.METRICS, "src/1")
    assert {(probe.failure, probe.detail) for probe in failed} == {(Failure.FORBIDDEN, "as scripted")}


def test_after_a_failure_polls_are_back_on_the_grid(lab: Lab) -> None:
    async def mends() -> None:
        if lab.bench.world.monotonic() < 10 * MINUTE:
            raise SourceError(Failure.SERVER_ERROR)

    lab.bench.cloud.script["gpu/1"] = mends
    lab.poll(30.5)
    asked = lab.bench.cloud.minutes("gpu/1")
    healthy = [minute for minute in asked if minute >= 10]
    assert [minute % 1 for minute in healthy[1:]] == [0] * (len(healthy) - 1)
    assert len(healthy) > 10


def test_retry_after_is_obeyed(lab: Lab) -> None:
    lab.bench.cloud.script["gpu/1"] = failing(Failure.THROTTLED, timedelta(minutes=7))
    lab.poll(20)
    assert lab.bench.cloud.minutes("gpu/1") == [0, 7, 14]


def test_a_hanging_question_delays_no_other_and_is_not_asked_again(lab: Lab) -> None:
    lab.bench.cloud.script["gpu/1"] = taking(lab.bench, EVER)
    lab.poll(20.5)
    assert lab.bench.cloud.minutes("gpu/1") == [0]
    assert len(lab.bench.cloud.minutes("gpu/2")) == 21


def test_a_question_that_is_never_answered_counts_as_failing(lab: Lab) -> None:
    lab.bench.cloud.script["gpu/1"] = taking(lab.bench, EVER)
    lab.poll(9.5)
    failed = lab.probes(Capability.METRICS, "src/1")
    assert [probe.failure for probe in failed] == [Failure.TIMEOUT] * 5  # minutes 5 to 9
    assert failed[0].detail == "no answer for 5m"
    assert all(probe.failure is None for probe in lab.probes(Capability.METRICS, "src/2"))


def test_an_answer_that_is_only_slow_is_no_failure(lab: Lab) -> None:
    lab.bench.cloud.script["gpu/1"] = taking(lab.bench, 4 * MINUTE)
    lab.poll(20)
    assert lab.bench.cloud.minutes("gpu/1") == [0, 5, 10, 15]
    assert all(probe.failure is None for probe in lab.inbox.probes)
    assert [key.task for key in lab.collector.late_questions()] == ["src/1"]


def test_slowness_is_over_with_the_first_quick_answer(lab: Lab) -> None:
    async def once() -> None:
        if lab.bench.world.monotonic() < MINUTE:
            await lab.bench.world.sleep(2 * MINUTE)

    lab.bench.cloud.script["gpu/1"] = once
    lab.poll(2.5)
    assert lab.collector.late_questions() != ()
    lab.poll(3)
    assert lab.collector.late_questions() == ()


def test_nobody_asks_for_what_is_no_longer_wanted_nor_remembers_its_slowness(lab: Lab) -> None:
    lab.bench.cloud.script["gpu/1"] = taking(lab.bench, 2 * MINUTE)
    lab.poll(3.5)
    assert lab.collector.late_questions() != ()
    lab.wishes = Wishes(statuses=(lab.bench.cloud.task("2"),))
    asked = len(lab.bench.cloud.asked)
    lab.poll(3)
    assert {question for _, question in lab.bench.cloud.asked[asked:]} == {"status/2"}
    assert lab.collector.late_questions() == ()


def test_a_bug_of_an_adapter_is_a_failure_of_its_question_and_is_logged_once(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    async def bug() -> None:
        raise KeyError("surprise")

    lab.bench.cloud.script["gpu/1"] = bug
    with caplog.at_level(logging.INFO):
        lab.poll(20.5)
    failed = lab.probes(Capability.METRICS, "src/1")
    assert {(probe.failure, probe.detail) for probe in failed} == {(Failure.MALFORMED, "KeyError")}
    assert len(lab.bench.cloud.minutes("gpu/2")) == 21
    (record,) = [record for record in caplog.records if "unforeseen" in record.message]
    assert "src/1" in record.message
    assert record.exc_info is not None


def test_settling_waits_for_answers_that_are_on_their_way(lab: Lab) -> None:
    lab.bench.cloud.script["gpu/1"] = taking(lab.bench, timedelta(seconds=3))

    async def main() -> timedelta:
        lab.collector.start_due()
        await lab.collector.settled(timedelta(seconds=10))
        return lab.bench.world.monotonic()

    assert lab.bench.run(main) == timedelta(seconds=3)
    assert len(lab.inbox.points) == 2


def test_settling_waits_no_longer_than_its_grace(lab: Lab) -> None:
    lab.bench.cloud.script["gpu/1"] = taking(lab.bench, EVER)

    async def main() -> timedelta:
        lab.collector.start_due()
        await lab.collector.settled(timedelta(seconds=10))
        return lab.bench.world.monotonic()

    assert lab.bench.run(main) == timedelta(seconds=10)
    assert len(lab.inbox.points) == 1, "what has come is there"


def test_settling_does_not_wait_for_what_has_been_hanging_for_long(lab: Lab) -> None:
    lab.bench.cloud.script["gpu/1"] = taking(lab.bench, EVER)

    async def main() -> timedelta:
        lab.collector.start_due()
        await lab.bench.world.sleep(MINUTE)
        lab.collector.start_due()
        await lab.collector.settled(timedelta(seconds=10))
        return lab.bench.world.monotonic() - MINUTE

    assert lab.bench.run(main) == timedelta()


def test_settling_without_questions_does_not_wait(lab: Lab) -> None:
    async def main() -> timedelta:
        await lab.collector.settled(timedelta(seconds=10))
        return lab.bench.world.monotonic()

    assert lab.bench.run(main) == timedelta()


def test_a_cancelled_wait_leaves_nothing_behind(lab: Lab) -> None:
    lab.bench.cloud.script["gpu/1"] = taking(lab.bench, timedelta(seconds=30))

    async def main() -> set[str]:
        lab.collector.start_due()
        waiting = asyncio.ensure_future(lab.collector.settled(timedelta(hours=1)))
        await lab.bench.world.sleep(timedelta(seconds=1))
        waiting.cancel()
        await lab.bench.world.sleep(MINUTE)
        return {str(task.get_coro()) for task in asyncio.all_tasks()} - {
            str(asyncio.current_task().get_coro())
        }

    assert lab.bench.run(main) == set()


def test_closing_lets_what_is_in_flight_end_before_it_disconnects(lab: Lab) -> None:
    async def slow() -> None:
        await lab.bench.world.sleep(timedelta(seconds=1))
        assert not lab.bench.cloud.closed

    lab.bench.cloud.script["gpu/1"] = slow
    lab.bench.cloud.script["gpu/2"] = taking(lab.bench, EVER)

    async def main() -> timedelta:
        lab.collector.start_due()
        await lab.collector.close()
        return lab.bench.world.monotonic()

    assert lab.bench.run(main) == timedelta(seconds=2)
    assert lab.bench.cloud.closed
    assert [points.task.id for points in lab.inbox.points] == ["1"]


def test_what_is_slow_and_fails_by_turns_is_slow(lab: Lab) -> None:
    turns = itertools.count()

    async def by_turns() -> None:
        await lab.bench.world.sleep(90 * timedelta(seconds=1))
        if next(turns) % 2:
            raise SourceError(Failure.TIMEOUT)

    lab.bench.cloud.script["gpu/1"] = by_turns
    late: list[list[str]] = []

    async def main() -> None:
        life = asyncio.ensure_future(lab.collector.run())
        for _ in range(40):
            await lab.bench.world.sleep(MINUTE)
            late.append([key.task for key in lab.collector.late_questions()])
        life.cancel()

    lab.bench.run(main)
    assert late[4:] == [["src/1"]] * 36
