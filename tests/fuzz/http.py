"""Answers of an HTTP server that keeps to nothing, over a real connection.

Promises: a whole answer or one `SourceError`; the client goes on being of use. Each answer ends with the
connection, so that nothing waits.
"""

import asyncio
import gzip
import random
from functools import cache

from tests.fuzz.checking import check_error
from tests.fuzz.mutating import garbled
from tests.fuzz.running import Shown
from watchdog.clock import SystemClock
from watchdog.errors import SourceError
from watchdog.sources.alaya_wire import read_reply
from watchdog.sources.http import HttpClient, HttpLimits

EXPECTED = ("answered", "refused")
GOOD = b'{"status": 200, "message": "success", "data": []}'
HEADERS = (
    b"content-type: application/json",
    b"content-type: text/html; charset=gbk",
    b"content-type: application/json; charset=utf-16",
    b"content-length: 10",
    b"content-length: 99999999999999999999",
    b"content-length: -1",
    b"content-length: 5, 6",
    b"transfer-encoding: chunked",
    b"transfer-encoding: chunked, gzip",
    b"content-encoding: gzip",
    b"content-encoding: br",
    b"retry-after: 10",
    b"retry-after: Fri, 31 Dec 9999 23:59:59 GMT",
    b"retry-after: Mon, 99 Foo 0000 99:99:99 +9999",
    b"retry-after: -5",
    b"date: nonsense",
    b"location: http://[::1",
    b"connection: upgrade",
    b"x: " + b"y" * 5000,
    b": no name",
    b"no colon",
    b"\xff: \xfe",
    b" folded",
)
STATUS = (
    b"200 OK",
    b"200",
    b"204 No Content",
    b"301 Moved",
    b"401 No",
    b"429 Slow",
    b"500 Oh",
    b"999 ?",
    b"1 x",
    b"100 Continue",
    b"abc",
)
PIECES = (
    b"\r\n",
    b"\n",
    b"\r\n\r\n",
    b"\0",
    b"5\r\nhello\r\n",
    b"0\r\n\r\n",
    b"ffffffffff\r\n",
    b"HTTP/1.1 200 OK\r\n\r\n",
    b"\xff",
    b":",
    b" ",
)


class Line:
    """A server that answers with whatever it holds, and a client of it, in a loop of their own."""

    def __init__(self) -> None:
        self.content = b""
        self.loop = asyncio.new_event_loop()
        self.loop.run_until_complete(self._open())

    async def _open(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        limits = HttpLimits(body=100_000, rate=1e6, burst=1_000_000)
        self._client = HttpClient(f"http://127.0.0.1:{port}", clock=SystemClock(), limits=limits)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(self.content)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def ask(self, content: bytes) -> str:
        self.content = content
        try:
            answer = self.loop.run_until_complete(self._client.get("/x"))
            reply = read_reply(answer)
        except SourceError as error:
            check_error(error)
            return "refused"
        if reply.error is not None:
            check_error(reply.error)
            return "refused"
        return "answered"


@cache
def _line() -> Line:
    return Line()


def case(dice: random.Random, shown: Shown) -> str:
    body = dice.choice(
        (GOOD, GOOD, gzip.compress(GOOD), b"%x\r\n%s\r\n0\r\n\r\n" % (len(GOOD), GOOD), b"", b"x" * 200_000)
    )
    headers = [dice.choice(HEADERS) for _ in range(dice.choice((0, 1, 2, 4)))]
    if dice.randrange(3):
        headers = [b"content-type: application/json", b"content-length: %d" % len(body), *headers[2:]]
    content = (
        b"HTTP/1.1 "
        + dice.choice(STATUS[:1] * 8 + STATUS)
        + b"\r\n"
        + b"\r\n".join([*headers, b"", b""])
        + body
    )
    if dice.randrange(3) == 0:
        content = garbled(content, dice, PIECES)
    shown(content[:400])
    outcome = _line().ask(content)
    if dice.randrange(50) == 0:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n"
        assert _line().ask(head + GOOD) == "answered", "the client is of no more use"
    return outcome
