"""The stand-in cloud: a loopback server that speaks Alaya's calls and plays training runs.

Serves the metrics and logs calls field for field as documented, and the task list and pod-basic as
far as they are known. Faults can be switched on while it runs, in process or through /_control.
Written from the documents, not from our adapter: it checks keys and signatures on its own.
"""

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import TracebackType
from typing import Self

from watchdog.clock import SystemClock
from watchdog.core.durations import to_ns
from watchdog.demo.cloud_api import CloudApi, RefusedError, Where, locate
from watchdog.demo.cloud_auth import Keys, refusal
from watchdog.demo.cloud_control import CloudControl
from watchdog.demo.faults import CONSOLE_PAGE, FaultBoard, envelope, replaced, spoiled
from watchdog.demo.httpd import LoopbackServer, Reply, Request, json_reply
from watchdog.demo.play import Phase, Play
from watchdog.demo.stage import StagedTask
from watchdog.demo.story import PLAYS
from watchdog.ports import Clock

CONTROL = "/_control/"
MOST_RECORDED = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One request that came, in the words of the API; `prefix` is "" when it was no API call."""

    at: datetime
    prefix: str
    capability: str
    task: str
    path: str
    query: tuple[tuple[str, str], ...]


class StandInCloud:
    """`async with StandInCloud(play) as cloud:` serves at `cloud.url` until the block ends."""

    def __init__(
        self,
        play: Play,
        *,
        clock: Clock | None = None,
        keys: Keys | None = None,
        prefixes: Sequence[str] = ("/v1",),
        speed: float = 1.0,
        port: int = 0,
    ) -> None:
        """The play's second 0 is now. `prefixes`: where the API is; elsewhere the console answers."""
        self.clock = clock or SystemClock()
        self.keys = keys or Keys()
        self.prefixes = tuple(prefixes)
        self.faults = FaultBoard()
        self.requests: list[Recorded] = []
        started = self.clock.now()
        self.tasks = {
            task.id: StagedTask(task, started=started, speed=speed, step=play.step) for task in play.tasks
        }
        self._api = CloudApi(self.tasks)
        self._control = CloudControl(self)
        self._server = LoopbackServer(self.handle, port=port)

    @property
    def url(self) -> str:
        """The base URL, without a prefix."""
        return self._server.url

    @property
    def open_connections(self) -> int:
        """How many clients are connected."""
        return self._server.open_connections

    @property
    def most_at_once(self) -> int:
        """The most requests that were ever being answered at the same time."""
        return self._server.most_at_once

    def counts(self) -> Counter[str]:
        """How many API calls came, by capability (metrics, logs, list, pod)."""
        return Counter(request.capability for request in self.requests if request.capability)

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

    async def handle(self, request: Request) -> Reply:
        """Answer one request, API or control."""
        if request.raw_path.startswith(CONTROL):
            return self._control.answer(request.path.removeprefix(CONTROL), request)
        return self._answer(request)

    def _answer(self, request: Request) -> Reply:
        prefix = next((known for known in self.prefixes if request.raw_path.startswith(f"{known}/")), None)
        where = locate(request.raw_path.removeprefix(prefix)) if prefix is not None else Where("", "")
        self._remember(request, prefix, where)
        if prefix is None:
            return Reply(body=CONSOLE_PAGE, content_type="text/html; charset=utf-8")
        faults = self.faults.active(where.capability, where.task)
        reply = replaced(faults)
        if reply is None:
            reply = refusal(self.keys, request, self.clock.now())
        if reply is None:
            try:
                data = self._api.data(where, request.query, faults, self.clock.now())
                reply = json_reply(envelope(data))
            except RefusedError as refused:
                reply = json_reply(envelope({}, refused.status, str(refused)), refused.status)
        return spoiled(reply, faults)

    def _remember(self, request: Request, prefix: str | None, where: Where) -> None:
        if len(self.requests) < MOST_RECORDED:
            self.requests.append(
                Recorded(
                    at=self.clock.now(),
                    prefix=prefix or "",
                    capability=where.capability,
                    task=where.task,
                    path=request.path,
                    query=tuple(request.query.items()),
                )
            )


async def _serve(arguments: argparse.Namespace) -> None:
    cloud = StandInCloud(
        PLAYS[arguments.play](),
        keys=Keys(scheme=arguments.auth),
        prefixes=arguments.prefix or ("/v1",),
        speed=arguments.speed,
        port=arguments.port,
    )
    async with cloud:
        sys.stdout.write(f"{cloud.url}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


def main(argv: Sequence[str] | None = None) -> None:
    """Serve until interrupted; the first line printed is the URL."""
    parser = argparse.ArgumentParser(prog="python -m watchdog.demo.cloud", description=main.__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--play", choices=sorted(PLAYS), default="demo")
    parser.add_argument("--speed", type=float, default=1.0, help="play seconds per real second")
    parser.add_argument("--auth", choices=("bearer", "hmac", "plain", "none"), default="bearer")
    parser.add_argument("--prefix", action="append", help="where the API is; may be repeated")
    try:
        asyncio.run(_serve(parser.parse_args(argv)))
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
