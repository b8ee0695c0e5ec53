"""Polling through the real source beside bare httpx that fetches the same bytes, by CPU.

Each client is a process of its own, as is the server. This file is also the program of the clients.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from time import process_time

import httpx
import pytest

from watchdog.clock import SystemClock
from watchdog.core.ruleset import Secret, SourceSpec
from watchdog.core.tasks import Task
from watchdog.sources.alaya import AlayaSource

FULL = os.environ.get("WATCHDOG_BENCH") == "full"
RESPONSES, ROUNDS, REPEATS = (1_250, 1, 3) if FULL else (32, 3, 1)
CONCURRENCY, PODS, STEP = 16, 8, 60
BODIES = {"window": 360, "delta": 2}  # points of each series: six hours (135 kB), the newest two (1 kB)
NEWEST = datetime(2026, 9, 10, 4, 0, tzinfo=UTC)

# Answers whatever is asked with the documented body of as many points as the task's id says.
SERVER = f"""
import json, random
dice = random.Random(3)

def body(points):
    def series(pod):
        newest = {int(NEWEST.timestamp())}
        times = range(newest - (points - 1) * {STEP}, newest + 1, {STEP})
        rows = [{{"timestamp": t, "value": f"{{0.8 + 0.15 * dice.random():.8f}}"}} for t in times]
        return {{"type": "gpu", "podName": f"worker-{{pod}}", "gpuName": "", "metricData": rows}}
    data = {{"metricData": [series(pod) for pod in range({PODS})]}}
    return json.dumps({{"status": 200, "message": "success", "data": data}}).encode()

bodies = {{points: body(points) for points in {tuple(BODIES.values())}}}
HEAD = "HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\nContent-Length: %d\\r\\n\\r\\n"
answers = {{points: (HEAD % len(body)).encode() + body for points, body in bodies.items()}}

async def answer(head, reader):
    return answers[int(head.partition(b"/instance/")[2].partition(b"/")[0])]
"""


@pytest.fixture
def url(serve: Callable[[str], int]) -> str:
    return f"http://127.0.0.1:{serve(SERVER)}"


class Bare:
    """httpx as one would write it."""

    def __init__(self, url: str, points: int) -> None:
        self.address = f"{url}/v1/training/instance/{points}/metrics?type=gpu&period=6h"
        self.client = httpx.AsyncClient(limits=httpx.Limits(max_connections=CONCURRENCY), timeout=60)

    async def one(self) -> int:
        return len((await self.client.get(self.address)).content)

    async def close(self) -> None:
        await self.client.aclose()


class Source:
    """The source as the collector asks it. `span`: how far back points are wanted."""

    def __init__(self, url: str, points: int, span: timedelta) -> None:
        options = {"prefix": "/v1", "api_key": Secret("k"), "rate": 99_999, "concurrency": CONCURRENCY}
        spec = SourceSpec(name="alaya", kind="alaya", options={"base_url": url, **options})
        self.source = AlayaSource(spec, SystemClock())
        self.task = Task(key="alaya/1", source="alaya", id=str(points), name="llama")
        self.since = NEWEST - span

    async def one(self) -> int:
        answer = await self.source.metric(self.task, "gpu", since=self.since, now=NEWEST)
        return sum(len(series.times) for series in answer.series)

    async def close(self) -> None:
        await self.source.close()


CLIENTS: dict[str, Callable[[str, int], Bare | Source]] = {
    "bare httpx": Bare,
    "source, newest points": lambda url, points: Source(url, points, timedelta(seconds=2 * STEP)),
    "source, all points": lambda url, points: Source(url, points, timedelta(hours=6)),
}


async def seconds_of(client: Bare | Source) -> list[float]:
    """CPU seconds of each round, after a first one that is not counted; some requests at once."""

    async def worker(left: Iterator[int]) -> list[int]:
        return [await client.one() for _ in left]

    found = []
    for _ in range(1 + ROUNDS):
        began = process_time()
        left = iter(range(RESPONSES))
        sizes = await asyncio.gather(*(worker(left) for _ in range(CONCURRENCY)))
        found.append(process_time() - began)
    await client.close()
    assert len({size for one in sizes for size in one}) == 1
    return [*found[1:], next(size for one in sizes for size in one)]


def in_a_process_of_its_own(name: str, url: str, points: int) -> tuple[float, int]:
    """Return CPU seconds per response, the median of the rounds, and what one response brought."""
    command = [sys.executable, __file__, name, url, str(points)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    *rounds, size = json.loads(done.stdout)
    return statistics.median(rounds) / RESPONSES, size


@pytest.mark.timeout(1800 if FULL else 120)
@pytest.mark.parametrize("shape", BODIES)
def test_polling_costs_little_more_than_fetching_the_same_bytes(shape: str, url: str) -> None:
    points = BODIES[shape]

    runs = [{name: in_a_process_of_its_own(name, url, points) for name in CLIENTS} for _ in range(REPEATS)]

    peer = statistics.median(run["bare httpx"][0] for run in runs)
    print(f"\n{shape}, {runs[0]['bare httpx'][1] / 1000:,.0f} kB: {RESPONSES:,} responses, CPU per response")
    for name in CLIENTS:
        cpu = statistics.median(run[name][0] for run in runs)
        print(f"{name:24} {cpu * 1e3:.2f} ms, {cpu / peer:.2f} x")
    assert runs[0]["source, newest points"][1] == PODS * 2
    assert runs[0]["source, all points"][1] == PODS * points
    assert statistics.median(run["source, newest points"][0] for run in runs) < 3 * peer


if __name__ == "__main__":
    print(json.dumps(asyncio.run(seconds_of(CLIENTS[sys.argv[1]](sys.argv[2], int(sys.argv[3]))))))
