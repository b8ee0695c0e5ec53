"""A loopback webhook receiver: writes down what arrives, and answers as badly as it is told to.

Each request becomes one line of a JSON-lines file before it is answered, so that a test can kill
either side at any moment and still know what was received.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from dataclasses import replace as changed
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from types import TracebackType
from typing import Self

from watchdog.clock import SystemClock
from watchdog.demo.httpd import LoopbackServer, Reply, Request, json_reply
from watchdog.ports import Clock

CONTROL = "/_control/"
HANG_SECONDS = 3600.0


class AnswerKind(StrEnum):
    """How a delivery is answered."""

    STATUS = "status"  # `status`, with `body`
    ERRCODE = "errcode"  # HTTP 200 and {"errcode": `value`} inside
    THROTTLED = "throttled"  # 429; `value` = Retry-After, "" = without
    HANG = "hang"  # silence for `value` seconds, then 200
    REDIRECT = "redirect"  # 302 to `value`
    DROP = "drop"  # the connection closes before an answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One scripted answer for paths that match `path` (a glob); `times` 0 = from now on."""

    kind: AnswerKind = AnswerKind.STATUS
    path: str = "*"
    status: int = 200
    value: str = ""
    body: str = ""
    times: int = 1

    def reply(self) -> Reply:
        """The HTTP answer."""
        match self.kind:
            case AnswerKind.ERRCODE:
                code = int(self.value or 45009)
                return json_reply({"errcode": code, "errmsg": "refused" if code else "ok"})
            case AnswerKind.THROTTLED:
                return Reply(status=429, headers={"Retry-After": self.value} if self.value else {})
            case AnswerKind.HANG:
                return changed(json_reply({}), delay=float(self.value or HANG_SECONDS))
            case AnswerKind.REDIRECT:
                return Reply(status=302, headers={"Location": self.value or "/elsewhere"})
            case AnswerKind.DROP:
                return Reply(body=b"{}", cut=0)
        return Reply(status=self.status, body=self.body.encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One delivery as it arrived. `body` is parsed JSON where it is JSON, else text."""

    at: str  # ISO, UTC
    method: str
    path: str
    body: object
    answered: str  # what it was told, in words


@dataclass(slots=True)
class Receiver:
    """`async with Receiver() as receiver:` listens at `receiver.url`. Answers 200 unless scripted."""

    clock: Clock = field(default_factory=SystemClock)
    out: Path | None = None
    port: int = 0
    received: list[Received] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    _server: LoopbackServer | None = None

    @property
    def url(self) -> str:
        """Where it listens; any path under it is a channel."""
        assert self._server is not None
        return self._server.url

    async def __aenter__(self) -> Self:
        self._server = LoopbackServer(self._handle, port=self.port)
        await self._server.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        await self._server.__aexit__(kind, error, trace)

    async def _handle(self, request: Request) -> Reply:
        if request.raw_path.startswith(CONTROL):
            return self._control(request)
        answer = self._next_answer(request.path)
        parsed = request.json()
        received = Received(
            at=self.clock.now().isoformat(),
            method=request.method,
            path=request.path,
            body=parsed if parsed is not None else request.body.decode("utf-8", "replace"),
            answered=f"{answer.kind} {answer.value or answer.status}",
        )
        self.received.append(received)
        self._write(received)
        return answer.reply()

    def _next_answer(self, path: str) -> Answer:
        for index, answer in enumerate(self.answers):
            if not fnmatchcase(path, answer.path):
                continue
            if answer.times == 1:
                del self.answers[index]
            elif answer.times > 1:
                self.answers[index] = changed(answer, times=answer.times - 1)
            return answer
        return Answer()

    def _write(self, received: Received) -> None:
        if self.out is None:
            return
        line = {name: getattr(received, name) for name in Received.__slots__}
        with self.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")

    def _control(self, request: Request) -> Reply:
        """POST /_control/answers: a list of answers to add; DELETE: forget them. GET: how many came."""
        body = request.json()
        try:
            if request.method == "POST" and isinstance(body, list):
                self.answers += [Answer(**{**one, "kind": AnswerKind(one["kind"])}) for one in body]
            elif request.method == "DELETE":
                self.answers.clear()
        except (KeyError, TypeError, ValueError) as error:
            return json_reply({"error": f"{type(error).__name__}: {error}"}, 400)
        return json_reply({"received": len(self.received), "answers": len(self.answers)})


async def _serve(arguments: argparse.Namespace) -> None:
    async with Receiver(out=arguments.out, port=arguments.port) as receiver:
        sys.stdout.write(f"{receiver.url}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


def main(argv: Sequence[str] | None = None) -> None:
    """Receive until interrupted; the first line printed is the URL."""
    parser = argparse.ArgumentParser(prog="python -m watchdog.demo.receiver", description=main.__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--out", type=Path, help="append each delivery to this JSON-lines file")
    try:
        asyncio.run(_serve(parser.parse_args(argv)))
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
