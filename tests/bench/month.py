"""Months of a daemon's life in minutes: the live engine on a virtual clock, its state in a real SQLite file.

Its tasks print, restart with other pods, hang and recover, come and go; the source forgets nothing and
answers at once. Run as a program, it prints one line of JSON a day: memory, the size of the state, counts.
"""

import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import process_time
from typing import TypeVar

import numpy as np

import watchdog.app as whole  # all that a daemon imports
from watchdog.cli.loading import knowledge
from watchdog.config.build import loads
from watchdog.core.conditions.kinds import Capability
from watchdog.core.durations import format_duration, to_ns
from watchdog.core.logs import LogLine, LogPage, LogQuery
from watchdog.core.notifications import Answer, DeliveryResult, Message
from watchdog.core.series import SeriesPoints
from watchdog.core.tasks import Status, Task, TaskObservation
from watchdog.engine.engine import Engine, Parts
from watchdog.engine.looks import renderer
from watchdog.ports import MetricAnswer, MetricInfo, Notifier, TaskListing
from watchdog.replay.virtual import VirtualWorld
from watchdog.store.sqlite import SqliteStore
from watchdog.text.patterns import Re2Engine

T = TypeVar("T")
T0 = datetime(2026, 11, 1, tzinfo=UTC)
DAY = timedelta(days=1)
GPUS = 8
PACE_NS = 60_000_000_000  # from one line of a task to the next
LIFE = 240  # hours from one restart of a task to the next
RULES = """
defaults: { interval: INTERVAL, poll: INTERVAL, timezone: UTC }
sources: { far: { kind: alaya, api_key: none } }
watch: [ { source: far, name: "run-*" } ]
channels:
  chat: { url: "json://127.0.0.1:9/chat" }
  mail: { url: "mailto://127.0.0.1/?from=a@example.test&to=b@example.test&mode=insecure" }
rules:
  - { name: gpu-idle, metric: gpu, avg_over: 1h, below: 10%, severity: critical }
  - { name: vram-full, metric: vram, above: 95%, by: gpu }
  - { name: error-lines, log: { match: ['\\bERROR\\b', 'Traceback'], ignore: ['\\b0 errors\\b'] } }
  - { name: error-burst, log: { match: ['\\bERROR\\b'], count: { above: 5, within: 1h } } }
  - { name: log-silence, silent: { log: any }, for: 2h }
  - { name: task-state, status: { enters: [failed, succeeded, vanished] } }
"""


@dataclass
class Far:
    """The source of all this. What it answers follows from the time alone."""

    clock: VirtualWorld
    step: timedelta
    tasks: int
    name: str = "far"
    all_metrics: bool = False
    capabilities: frozenset[Capability] = frozenset(Capability) - {Capability.STATUS}

    def metric_infos(self) -> tuple[MetricInfo, ...]:
        return (MetricInfo(name="gpu", unit="ratio"), MetricInfo(name="vram", unit="ratio"))

    def life(self, number: int, at: datetime) -> int:
        """Which life a task is in: each begins with new pods; tasks take turns."""
        return int((at - T0) / timedelta(hours=1) + number * LIFE / self.tasks) // LIFE

    def pod(self, number: int, at: datetime) -> str:
        return f"run-{number}-{self.life(number, at)}-worker-0"

    async def list_tasks(self) -> TaskListing:
        """Every task but one in ten is replaced by a new one, with another id, at each restart."""
        now = self.clock.true_now()
        rows = []
        for number in range(self.tasks):
            born = self.life(number, now) if number % 10 == 0 else 0
            task = Task(
                key=f"far/{number}-{born}", source="far", id=f"{number}-{born}", name=f"run-{number}-{born}"
            )
            rows.append(TaskObservation(task=task, status=Status.RUNNING, started=T0 - DAY))
        return TaskListing(tasks=tuple(rows))

    async def status(self, task: Task) -> TaskObservation:
        raise NotImplementedError("its list says how each task stands: nobody asks about one")

    async def metric(self, task: Task, metric: str, *, since: datetime, now: datetime) -> MetricAnswer:
        number = int(task.id.partition("-")[0])
        first = max(since, now - timedelta(hours=2))
        times = np.arange(to_ns(first), to_ns(now), self.step // timedelta(microseconds=1) * 1_000, np.int64)
        times -= times[:1] % 1_000_000_000 if times.size else 0
        hours = (times - to_ns(T0)) / 3.6e12 + number
        level = (
            np.where(hours % 300 < 3, 0.02, 0.9) if metric == "gpu" else np.where(hours % 170 < 1, 0.97, 0.8)
        )
        pod = self.pod(number, now)
        return MetricAnswer(
            series=tuple(
                SeriesPoints(
                    labels=task.identity.plus({"pod": pod, "gpu": str(gpu)}),
                    times=times,
                    values=level + gpu / 1e3,
                )
                for gpu in range(GPUS)
            )
        )

    async def logs(self, task: Task, query: LogQuery) -> LogPage:
        number = int(task.id.partition("-")[0])
        last = min(query.end_ns, to_ns(self.clock.true_now()))
        begin = max(query.start_ns, to_ns(T0)) // PACE_NS
        lines = []
        for count in range(begin, last // PACE_NS + 1):
            if (count // 40 + number) % 40 == 0 or count * PACE_NS < query.start_ns:
                continue  # silent for a while
            if len(lines) == query.limit:
                return LogPage(lines=tuple(lines), full=True)
            text = f"step {count} loss {count % 977 / 1000}"
            if (count + number * 37) % 10_007 == 0:
                text = f"ERROR rank {count % 64} of {task.name}: NCCL timeout {count}"
            lines.append(LogLine(count * PACE_NS, self.pod(number, self.clock.true_now()), text))
        return LogPage(lines=tuple(lines), full=False)

    async def close(self) -> None:
        """Nothing to give back."""


class Taken:
    """A channel as the daemon has it, Apprise and all, whose messages are accepted without being sent."""

    def __init__(self, real: Notifier) -> None:
        self.name, self.limits, self.close = real.name, real.limits, real.close
        self.count = 0

    async def send(self, message: Message) -> DeliveryResult:
        """Count it."""
        self.count += 1
        return DeliveryResult(answer=Answer.OK)


async def inline(call: Callable[[], T]) -> T:
    """Run what would be a thread's, at once: virtual time waits for nobody."""
    return call()


@dataclass
class Life:
    """One daemon, from its first day."""

    folder: Path
    interval: timedelta
    tasks: int

    def __post_init__(self) -> None:
        self.world = VirtualWorld(start=T0)
        text = RULES.replace("INTERVAL", format_duration(self.interval))
        ruleset = loads(text, file="rules.yaml", env={}, knowledge=knowledge()).ruleset
        built = whole.build_outside(ruleset, self.world)
        self.channels = {name: Taken(real) for name, real in built.notifiers.items()}
        self.engine = Engine(
            parts=Parts(
                ruleset=ruleset,
                sources={"far": Far(self.world, timedelta(minutes=5), self.tasks)},
                notifiers=self.channels,
                store=SqliteStore.open(self.folder / "state.db", started=T0),
                clock=self.world,
                patterns=Re2Engine(),
                render=renderer(ruleset, whole.compile_template),
                run_blocking=inline,
                jitter=lambda: 0.5,
            )
        )

    def run(self, days: int, note: Callable[[int, "Life"], None]) -> None:
        """Live so many days; `note` is called at the end of each."""
        self.world.run(lambda: self._run(days, note))

    async def _run(self, days: int, note: Callable[[int, "Life"], None]) -> None:
        life = asyncio.ensure_future(self.engine.run())
        for day in range(1, days + 1):
            while self.world.monotonic() < day * DAY and not life.done():
                await self.world.sleep(min(self.interval, day * DAY - self.world.monotonic()))
            if life.done():
                await life
            note(day, self)
        life.cancel()
        await asyncio.gather(life, return_exceptions=True)
        await self.engine.stop()

    def stored(self) -> int:
        """Bytes of the state on the disk."""
        return sum(path.stat().st_size for path in self.folder.glob("state.db*"))

    def rows(self) -> dict[str, int]:
        """How many rows each table has."""
        import sqlite3

        with sqlite3.connect(f"file:{self.folder}/state.db?mode=ro", uri=True) as connection:
            names = [
                name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            ]
            return {name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in names}


def memory() -> dict[str, float]:
    """Resident MiB of this process, all and anonymous."""
    lines = Path("/proc/self/status").read_text().splitlines()
    pairs = (line.split()[:2] for line in lines if line.startswith(("VmRSS", "RssAnon")))
    return {name.rstrip(":"): round(int(kib) / 1024, 1) for name, kib in pairs}


def main(folder: str, days: str, minutes: str, tasks: str) -> None:
    """Live `days`, with an evaluation every so many minutes; one line a day."""

    def note(day: int, life: Life) -> None:
        told = sum(channel.count for channel in life.channels.values())
        line = {"day": day, **memory(), "state_mib": round(life.stored() / 2**20, 2), "told": told}
        line |= {"slots": life.engine.slots, "cpu_s": round(process_time(), 1), "rows": life.rows()}
        print(json.dumps(line), flush=True)

    Life(Path(folder), timedelta(minutes=float(minutes)), int(tasks)).run(int(days), note)


if __name__ == "__main__":
    main(*sys.argv[1:])
