"""Shared by the SiFlow tests: a clock moved by hand, the stand-in cloud on it, and sources for it.

The SDK's process is a real one; its time-outs are real time, and short.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from watchdog.core.ruleset import Secret, SourceSpec
from watchdog.core.tasks import Task
from watchdog.demo.play import Level, Phase, Play, TaskPlay
from watchdog.demo.siflow_cloud import SDK_PATH, StandInSiflow
from watchdog.sources.siflow import SiflowSource

PODS = ("run-master-0", "run-worker-0")
BUSY = (
    Level(metric="gpu", value=0.9),
    Level(metric="vram", value=0.7),
    Level(metric="cpu", value=0.4),
    Level(metric="memory", value=0.5),
)


class HandClock:
    """Stands still until moved; a sleep moves it."""

    def __init__(self) -> None:
        self.wall = datetime(2026, 9, 10, 4, 0, tzinfo=UTC)
        self.mono = timedelta(hours=1)

    def now(self) -> datetime:
        return self.wall

    def monotonic(self) -> timedelta:
        return self.mono

    async def sleep(self, duration: timedelta) -> None:
        self.advance(duration)
        await asyncio.sleep(0)

    def advance(self, duration: timedelta) -> None:
        self.wall += duration
        self.mono += duration


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


async def _gone(pid: int, within: float = 10.0) -> bool:
    for _ in range(round(within / 0.02)):
        if not alive(pid):
            return True
        await asyncio.sleep(0.02)
    return False


@pytest.fixture
def gone():
    """Wait until a process has ended; False if it does not."""
    return _gone


@pytest.fixture(autouse=True)
def no_process_is_left() -> AsyncIterator[None]:
    """Every test ends without a child of ours."""
    yield
    own = os.getpid()
    children = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and alive(int(entry.name)):
            try:
                words = (entry / "stat").read_text().rpartition(")")[2].split()
                line = (entry / "cmdline").read_bytes()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(words[1]) == own and b"siflow_worker" in line:
                children.append(line)
    assert children == []


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def play() -> Play:
    """Two healthy pods of two cards each, history of two hours, a point a minute."""
    task = TaskPlay(
        id="task-uuid-1",
        name="run-x7k2p",
        gpus_per_pod=2,
        phases=(Phase(start=-7200.0, pods=PODS, levels=BUSY, chatter=0),),
    )
    return Play(tasks=(task,), step=60)


@pytest.fixture
async def cloud(clock: HandClock, play: Play) -> AsyncIterator[StandInSiflow]:
    async with StandInSiflow(play, clock=clock) as cloud:
        yield cloud


Build = Callable[..., SiflowSource]


@pytest.fixture
async def build(clock: HandClock) -> AsyncIterator[Build]:
    """Build a source for a stand-in, with options; closed after the test."""
    built: list[SiflowSource] = []

    def make(cloud: StandInSiflow | None, *, poll: timedelta = timedelta(seconds=60), **options: object):
        known = {
            "python": sys.executable,
            "sdk_path": str(SDK_PATH),
            "region": cloud.region if cloud is not None else "cn-beijing",
            "access_key_id": Secret("stand-in-ak"),
            "access_key_secret": Secret("stand-in-sk"),
            "timeout": "20s",
            "rate": 1000,
        }
        spec = SourceSpec(name="siflow", kind="siflow", options={**known, **options}, poll=poll)
        built.append(SiflowSource(spec, clock))
        return built[-1]

    yield make
    for source in built:
        await source.close()


@pytest.fixture
def source(cloud: StandInSiflow, build: Build) -> SiflowSource:
    return build(cloud)


@pytest.fixture
def task() -> Task:
    return Task(key="siflow/task-uuid-1", source="siflow", id="task-uuid-1", name="run-x7k2p")
