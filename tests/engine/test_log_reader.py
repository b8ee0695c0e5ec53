"""The log reader: bounded rounds, nothing read twice or skipped unsaid, also when reading breaks off."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Protocol

import pytest

from watchdog.core.durations import from_ns, to_ns
from watchdog.core.health import Failure
from watchdog.core.logs import LogLine, StreamKey, StreamState
from watchdog.core.reading import UnreadReason
from watchdog.engine.inbox import Inbox, LinesArrived
from watchdog.engine.log_reader import PAGES_A_ROUND, LogReader
from watchdog.errors import SourceError
from watchdog.replay.virtual import VirtualWorld

MINUTE = timedelta(minutes=1)


class Cloud(Protocol):
    asked: list[tuple[float, str]]
    script: dict[str, Callable[[], Awaitable[None]]]
    lines: list[LogLine]
    page: int
    remarks: tuple[str, ...]

    def line(self, minute: float, text: str, pod: str = "pod-0") -> None: ...


class Bench(Protocol):
    world: VirtualWorld
    cloud: Cloud

    def run(self, main: Callable[[], Awaitable[object]]) -> object: ...


class Lab:
    def __init__(self, bench: Bench) -> None:
        self.bench, self.inbox = bench, Inbox()
        self.reader = LogReader(
            task=bench.cloud.task("1"),
            key=StreamKey(task="src/1"),
            inbox=self.inbox,
            literals=lambda: (("ERROR",), ("x+y",)),
        )

    def read(self, minute: float) -> LinesArrived | None:
        """Read at a minute; returns what arrived (the newest hand-over), None if nothing did."""

        async def main() -> None:
            at = minute * MINUTE
            await self.bench.world.sleep(at - self.bench.world.monotonic())
            await self.reader.read(self.bench.cloud, self.bench.world)

        arrived = len(self.inbox.lines)
        try:
            self.bench.run(main)
        finally:
            self.newest = self.inbox.lines[-1] if len(self.inbox.lines) > arrived else None
        return self.newest

    def fails(self, minute: float) -> LinesArrived | None:
        with pytest.raises(SourceError):
            self.read(minute)
        return self.newest

    def texts(self) -> list[str]:
        return [line.text for arrived in self.inbox.lines for line in arrived.lines]

    def at(self, minute: float) -> datetime:
        return self.bench.world.start + minute * MINUTE


@pytest.fixture
def lab(bench: Bench) -> Lab:
    return Lab(bench)


def breaks(after: int = 0) -> Callable[[], Awaitable[None]]:
    """Fails each time, after so many pages that do not."""
    left = [after]

    async def script() -> None:
        left[0] -= 1
        if left[0] < 0:
            raise SourceError(Failure.SERVER_ERROR)

    return script


def test_the_first_read_begins_now_and_hands_over_what_stands_there(lab: Lab) -> None:
    for minute in (1, 2, 3):
        lab.bench.cloud.line(minute, f"old {minute}")
    first = lab.read(5)
    assert first is not None
    assert first.lines == ()
    assert [line.text for line in first.standing] == ["old 1", "old 2", "old 3"]
    assert not first.standing_more
    assert from_ns(first.state.cursor_ns) == lab.at(5)
    lab.bench.cloud.line(5.5, "new")
    lab.read(6)
    assert lab.texts() == ["new"]


def test_the_first_read_counts_across_pages_without_counting_twice(lab: Lab) -> None:
    lab.bench.cloud.page = 4
    for second in range(18):
        lab.bench.cloud.line(second / 60, f"old {second}")
    first = lab.read(1)
    assert first is not None
    assert [line.text for line in first.standing] == [f"old {second}" for second in range(18)]
    assert not first.standing_more


def test_a_long_log_is_not_read_to_its_end_before_watching_begins(lab: Lab) -> None:
    lab.bench.cloud.page = 4
    for second in range(600):
        lab.bench.cloud.line(second / 60, f"old {second}")
    first = lab.read(11)
    assert first is not None
    assert first.standing_more
    assert len(first.standing) < 40


def test_a_log_that_cannot_be_read_at_first_is_read_from_when_it_was_first_tried(lab: Lab) -> None:
    lab.bench.cloud.line(1, "old")
    lab.bench.cloud.script["logs/1/"] = breaks()
    assert lab.fails(2) is None
    lab.bench.cloud.line(3, "Traceback (most recent call last)")
    assert lab.fails(4) is None
    del lab.bench.cloud.script["logs/1/"]
    first = lab.read(5)
    assert first is not None
    assert [line.text for line in first.standing] == ["old"]
    lab.read(6)
    assert lab.texts() == ["Traceback (most recent call last)"]


def test_pages_are_read_on_while_they_are_full(lab: Lab) -> None:
    lab.bench.cloud.page = 10
    lab.read(0)
    for second in range(1, 56):
        lab.bench.cloud.line(second / 60, f"line {second}")
    lab.read(1)
    assert lab.texts() == [f"line {second}" for second in range(1, 56)]


def test_a_failure_midway_keeps_what_came_before_it(lab: Lab) -> None:
    lab.bench.cloud.page = 10
    lab.read(0)
    for second in range(1, 56):
        lab.bench.cloud.line(second / 60, f"line {second}")
    lab.bench.cloud.script["logs/1/"] = breaks(after=2)
    partly = lab.fails(1)
    assert partly is not None
    assert 10 < len(partly.lines) < 30
    assert partly.state == lab.reader.state
    del lab.bench.cloud.script["logs/1/"]
    lab.read(2)
    assert lab.texts() == [f"line {second}" for second in range(1, 56)], "each once, none left out"


def test_reading_anew_from_the_last_stored_state_brings_the_same_lines(lab: Lab) -> None:
    lab.read(0)
    lab.bench.cloud.line(0.5, "one")
    first = lab.read(1)
    assert first is not None
    stored: StreamState = first.state
    lab.bench.cloud.line(1.5, "two")
    lab.read(2)
    lab.reader.state = stored  # T1 of the last slot never came: the process died
    lab.read(3)
    assert lab.texts() == ["one", "two", "two"]


def test_one_round_is_bounded_and_the_next_goes_on(lab: Lab) -> None:
    lab.bench.cloud.page = 2
    lab.read(0)
    for number in range(150):
        lab.bench.cloud.line(1 + number / 1000, f"line {number}")
    asked = len(lab.bench.cloud.asked)
    lab.read(2)
    assert len(lab.bench.cloud.asked) - asked == PAGES_A_ROUND
    for minute in range(3, 9):
        lab.read(minute)
    assert lab.texts() == [f"line {number}" for number in range(150)]


def test_a_reader_that_falls_behind_says_what_it_leaves_unread_and_asks_for_the_worst(lab: Lab) -> None:
    lab.bench.cloud.page = 2
    lab.read(0)
    for number in range(1000):
        text = "ERROR here" if number == 700 else f"line {number}"
        lab.bench.cloud.line(1 + number / 200, text)
    behind = lab.read(12)
    assert behind is not None
    (unread,) = behind.unread
    assert unread.reason is UnreadReason.BEHIND
    assert unread.literals == ("ERROR",)
    assert behind.unsearched == ("x+y",)
    assert lab.at(1) < from_ns(unread.start_ns) < from_ns(unread.end_ns) == lab.at(12)
    read = len(lab.texts())
    assert read < 200
    lab.bench.cloud.line(12.5, "afterwards")
    lab.read(13)
    assert lab.texts()[read:] == ["ERROR here", "afterwards"]


def test_what_a_source_remarks_on_pages_is_handed_over_once(lab: Lab) -> None:
    lab.bench.cloud.page = 2
    lab.read(0)
    for second in range(1, 10):
        lab.bench.cloud.line(second / 60, f"line {second}")
    lab.bench.cloud.remarks = ("3 rows have no readable time; dropped",)
    arrived = lab.read(1)
    assert arrived is not None
    assert arrived.remarks == ("3 rows have no readable time; dropped",)


def test_two_reads_at_once_bring_each_line_once(lab: Lab) -> None:
    lab.read(0)
    lab.bench.cloud.line(0.5, "once")

    async def slow() -> None:
        await lab.bench.world.sleep(timedelta(seconds=5))

    lab.bench.cloud.script["logs/1/"] = slow

    async def main() -> None:
        await lab.bench.world.sleep(MINUTE)
        await asyncio.gather(*(lab.reader.read(lab.bench.cloud, lab.bench.world) for _ in range(2)))

    lab.bench.run(main)
    assert lab.texts() == ["once"]


def test_a_retired_reader_hands_nothing_over(lab: Lab) -> None:
    lab.read(0)
    lab.bench.cloud.line(0.5, "nobody wants it")
    lab.reader.retired = True
    assert lab.read(1) is None


def test_the_state_that_is_handed_over_has_consumed_exactly_its_lines(lab: Lab) -> None:
    lab.read(0)
    lab.bench.cloud.line(0.5, "one")
    first = lab.read(1)
    assert first is not None
    assert first.state.lines == 1
    assert first.state.cursor_ns == to_ns(lab.at(0.5))
