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
from datetime import datetime

from watchdog.demo.cloud_api import CloudApi, RefusedError, Where, locate
from watchdog.demo.cloud_auth import Keys, refusal
from watchdog.demo.cloud_control import CloudControl
from watchdog.demo.faults import CONSOLE_PAGE, envelope, replaced, spoiled
from watchdog.demo.httpd import Reply, Request, json_reply
from watchdog.demo.play import Play
from watchdog.demo.played import MOST_RECORDED, PlayedCloud
from watchdog.demo.story import PLAYS
from watchdog.ports import Clock

CONTROL = "/_control/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One request that came, in the words of the API; `prefix` is "" when it was no API call."""

    at: datetime
    prefix: str
    capability: str
    task: str
    path: str
    query: tuple[tuple[str, str], ...]


class StandInCloud(PlayedCloud):
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
        super().__init__(play, clock=clock, keys=keys, speed=speed, port=port)
        self.prefixes = tuple(prefixes)
        self.requests: list[Recorded] = []
        self._api = CloudApi(self.tasks)
        self._control = CloudControl(self)

    def counts(self) -> Counter[str]:
        """How many API calls came, by capability (metrics, logs, list, pod)."""
        return Counter(request.capability for request in self.requests if request.capability)

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
