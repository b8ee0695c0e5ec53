"""What both stand-in clouds are: a loopback server that plays training runs, its faults and its clock."""

from abc import ABC, abstractmethod
from datetime import timedelta
from types import TracebackType
from typing import Self

from watchdog.clock import SystemClock
from watchdog.core.durations import to_ns
from watchdog.demo.cloud_auth import Keys
from watchdog.demo.faults import FaultBoard
from watchdog.demo.httpd import LoopbackServer, Reply, Request
from watchdog.demo.play import Phase, Play
from watchdog.demo.stage import StagedTask
from watchdog.ports import Clock

MOST_RECORDED = 100_000


class PlayedCloud(ABC):
    """Serves at `url` inside `async with`. `tasks`: the runs of the play by id; their second 0 is now."""

    def __init__(
        self, play: Play, *, clock: Clock | None, keys: Keys | None, speed: float, port: int
    ) -> None:
        self.clock = clock or SystemClock()
        self.keys = keys or Keys()
        self.faults = FaultBoard()
        started = self.clock.now()
        self.tasks = {
            task.id: StagedTask(task, started=started, speed=speed, step=play.step) for task in play.tasks
        }
        self._server = LoopbackServer(self.handle, port=port)

    @abstractmethod
    async def handle(self, request: Request) -> Reply:
        """Answer one request."""

    @property
    def url(self) -> str:
        """Where it listens, without a path."""
        return self._server.url

    @property
    def open_connections(self) -> int:
        """How many clients are connected."""
        return self._server.open_connections

    @property
    def most_at_once(self) -> int:
        """The most requests that were ever being answered at the same time."""
        return self._server.most_at_once

    def say(
        self, text: str, *, task: str = "", pod: str = "", time_ns: int = 0, late: timedelta = timedelta()
    ) -> None:
        """Let a pod print a line, now or at `time_ns`; without a task, the first one's."""
        staged = self._task(task)
        staged.say(text, pod=pod, time_ns=time_ns or to_ns(self.clock.now()), late=late)

    def enter(self, phase: Phase, *, task: str = "") -> None:
        """Let a task enter a phase now: status, pods, levels."""
        self._task(task).enter(phase, self.clock.now())

    async def __aenter__(self) -> Self:
        await self._server.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._server.__aexit__(kind, error, trace)

    def _task(self, task: str) -> StagedTask:
        return self.tasks[task or next(iter(self.tasks), "")]
