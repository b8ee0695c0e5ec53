"""Shared by the source tests: a clock moved by hand, the stand-in cloud on it, and sources for it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta

import pytest

from watchdog.core.ruleset import Secret, SourceSpec
from watchdog.core.tasks import Task
from watchdog.demo.cloud import StandInCloud
from watchdog.demo.story import calm
from watchdog.sources.alaya import AlayaSource

KEYS = {
    "api_key": Secret("stand-in-api-key"),
    "access_key": Secret("stand-in-ak"),
    "secret_key": Secret("stand-in-sk"),
}


class HandClock:
    """Stands still until moved; a sleep moves it."""

    def __init__(self) -> None:
        self.wall = datetime(2026, 9, 10, 4, 0, tzinfo=UTC)
        self.mono = timedelta(hours=1)
        self.slept: list[timedelta] = []

    def now(self) -> datetime:
        return self.wall

    def monotonic(self) -> timedelta:
        return self.mono

    async def sleep(self, duration: timedelta) -> None:
        self.slept.append(duration)
        self.advance(duration)
        await asyncio.sleep(0)

    def advance(self, duration: timedelta) -> None:
        self.wall += duration
        self.mono += duration


Build = Callable[..., AlayaSource]


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
async def cloud(clock: HandClock) -> AsyncIterator[StandInCloud]:
    async with StandInCloud(calm(), clock=clock) as cloud:
        yield cloud


@pytest.fixture
async def build(clock: HandClock) -> AsyncIterator[Build]:
    """Build a source for a stand-in (or a URL), with options; closed after the test."""
    built: list[AlayaSource] = []

    def make(where: StandInCloud | str, *, clock: HandClock = clock, **options: object) -> AlayaSource:
        url = where if isinstance(where, str) else where.url
        spec = SourceSpec(
            name="alaya", kind="alaya", options={"base_url": url, **KEYS, "rate": 1000, **options}
        )
        built.append(AlayaSource(spec, clock))
        return built[-1]

    yield make
    for source in built:
        await source.close()


@pytest.fixture
def source(cloud: StandInCloud, build: Build) -> AlayaSource:
    return build(cloud)


@pytest.fixture
def task() -> Task:
    return Task(key="alaya/1234567890", source="alaya", id="1234567890", name="calm-run")
