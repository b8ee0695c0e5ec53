"""A small HTTP/1.1 server for loopback, able to misbehave as real ones do.

Owns sockets and framing: it hangs, drips, cuts off and redirects as a `Reply` says. Knows nothing of
what it serves. Not for use on a network.
"""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from types import TracebackType
from typing import Self
from urllib.parse import parse_qsl, unquote, urlsplit

PHRASES = {status.value: status.phrase for status in HTTPStatus}
MAX_HEAD = 64 * 1024
MAX_BODY = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request. `headers` have lower-case names; `raw_path` is still percent-encoded."""

    method: str
    raw_path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""

    @property
    def path(self) -> str:
        """The decoded path."""
        return unquote(self.raw_path)

    def json(self) -> object:
        """The body as JSON; None if it is none."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One answer, and how badly to deliver it. Times in seconds.

    delay: silence before the first byte. drip: pause after each byte of the body.
    cut: close the connection after so many bytes of the body.
    """

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    drip: float = 0.0
    cut: int | None = None


def json_reply(value: object, status: int = 200) -> Reply:
    """A JSON answer."""
    return Reply(status=status, body=json.dumps(value, ensure_ascii=False).encode())


Handler = Callable[[Request], Awaitable[Reply]]


class LoopbackServer:
    """Serves a handler on 127.0.0.1; `async with` starts and stops it."""

    def __init__(self, handler: Handler, *, port: int = 0) -> None:
        """`port` 0 takes a free one."""
        self._handler = handler
        self._port = port
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self.at_once = 0  # requests being answered
        self.most_at_once = 0

    @property
    def url(self) -> str:
        """Where it listens, without a trailing slash."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def open_connections(self) -> int:
        """How many clients are connected."""
        return len(self._connections)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port, limit=MAX_HEAD)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while await self._serve_one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass  # the client went away or speaks no HTTP
        except asyncio.CancelledError:
            pass  # the server stops
        finally:
            self._connections.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether the connection may be used again."""
        request = await _read_request(reader)
        if request is None:
            return False
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            reply = await self._handler(request)
            await _pause_unless_gone(reader, reply.delay)
            whole = await _write_reply(writer, reply)
        finally:
            self.at_once -= 1
        return whole and request.headers.get("connection", "").lower() != "close"


async def _read_request(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    method, target, _ = first.split(" ", 2)
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    parts = urlsplit(target)
    return Request(
        method=method,
        raw_path=parts.path,
        query=dict(parse_qsl(parts.query, keep_blank_values=True)),
        headers=headers,
        body=await _read_body(reader, headers),
    )


async def _read_body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() != "chunked":
        length = int(headers.get("content-length", "0"))
        if length > MAX_BODY:
            raise ValueError("body too large")
        return await reader.readexactly(length)
    parts = []
    while size := int((await reader.readline()).split(b";")[0], 16):
        parts.append(await reader.readexactly(size))
        await reader.readexactly(2)
    await reader.readline()
    return b"".join(parts)


async def _pause_unless_gone(reader: asyncio.StreamReader, seconds: float) -> None:
    """Keep silent for a while; stop early when the client hangs up."""
    if seconds <= 0:
        return
    gone = asyncio.ensure_future(reader.read(1))
    done, _ = await asyncio.wait({gone}, timeout=seconds)
    if done:
        raise ConnectionResetError("the client hung up")
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)


async def _write_reply(writer: asyncio.StreamWriter, reply: Reply) -> bool:
    """Send a reply; False if the connection must be closed."""
    lines = [
        f"HTTP/1.1 {reply.status} {PHRASES.get(reply.status, 'Unknown')}",
        f"Content-Length: {len(reply.body)}",
    ]
    if reply.content_type:
        lines.append(f"Content-Type: {reply.content_type}")
    lines += [f"{name}: {value}" for name, value in reply.headers.items()]
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
    if reply.drip > 0:
        for index in range(len(reply.body)):
            writer.write(reply.body[index : index + 1])
            await writer.drain()
            await asyncio.sleep(reply.drip)
        return True
    writer.write(reply.body if reply.cut is None else reply.body[: reply.cut])
    await writer.drain()
    return reply.cut is None
