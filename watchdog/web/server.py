"""A small HTTP/1.1 server for a few read-only pages: GET only, one request a connection, all bounded.

Owns sockets, framing and time-outs. A slow or hostile client costs one of a few connections for a few
seconds, and never the loop. Knows nothing of what it serves.
"""

import asyncio
import ipaddress
import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from typing import Final

from watchdog.core.ruleset import HttpSpec

log = logging.getLogger(__name__)

MAX_HEAD: Final = 8 * 1024
MAX_CONNECTIONS: Final = 32
HEAD_PATIENCE: Final = timedelta(seconds=5)  # for a whole request
SEND_PATIENCE: Final = timedelta(seconds=10)  # for a client to take the whole answer

_REQUEST = re.compile(rb"([A-Z]{1,16}) (/[!-~]{0,2000}) HTTP/1\.[01]\r\n")
_HOST = re.compile(rb"\r\nhost:[ \t]*(\[[0-9a-f:.]+\]|[a-z0-9.-]*)(?::[0-9]{1,5})?[ \t]*\r\n", re.IGNORECASE)
_NAMES_HOST = re.compile(rb"\r\nhost[ \t]*:", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One answer."""

    status: HTTPStatus = HTTPStatus.OK
    content_type: str = "text/plain; charset=utf-8"
    body: bytes = b""


Handler = Callable[[str], Awaitable[Page]]
"""From a path, without its query, to a page."""


class Server:
    """Serves a handler on one address."""

    def __init__(
        self,
        handler: Handler,
        *,
        head_patience: timedelta = HEAD_PATIENCE,
        send_patience: timedelta = SEND_PATIENCE,
    ) -> None:
        self._handler = handler
        self._head_patience = head_patience.total_seconds()
        self._send_patience = send_patience.total_seconds()
        self._server: asyncio.Server | None = None
        self._spec: HttpSpec | None = None
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        """The port it listens on; 0 = none."""
        return 0 if self._server is None else int(self._server.sockets[0].getsockname()[1])

    @property
    def connected(self) -> int:
        """How many clients are being served."""
        return len(self._connections)

    async def start(self, spec: HttpSpec) -> None:
        """Listen. Raises OSError if the address cannot be had."""
        self._spec = spec
        self._server = await asyncio.start_server(
            self._serve, spec.host, spec.port, limit=MAX_HEAD, backlog=MAX_CONNECTIONS
        )

    async def close(self) -> None:
        """Stop listening, and cut off who is still connected."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        for connection in tuple(self._connections):
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        if server is not None:
            await server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._connections) >= MAX_CONNECTIONS:
            writer.transport.abort()
            return
        self._connections.add(task)
        try:
            page = await self._page(reader)
            async with asyncio.timeout(self._send_patience):
                writer.write(_framed(page))
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            pass  # the client went away, is too slow, or says nothing
        except asyncio.CancelledError:
            pass  # the server stops
        finally:
            self._connections.discard(task)
            writer.transport.abort()

    async def _page(self, reader: asyncio.StreamReader) -> Page:
        """Read a request and answer it."""
        try:
            async with asyncio.timeout(self._head_patience):
                head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            return _plain(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        return await self._answer(head)

    async def _answer(self, head: bytes) -> Page:
        match = _REQUEST.match(head)
        if match is None or not self._is_meant(head):
            return _plain(HTTPStatus.BAD_REQUEST)
        if match[1] != b"GET":
            return _plain(HTTPStatus.METHOD_NOT_ALLOWED)
        try:
            return await self._handler(match[2].split(b"?", 1)[0].decode("ascii"))
        except Exception:  # supervisor site: a page that fails must not end the watching
            log.exception("a page could not be made")
            return _plain(HTTPStatus.INTERNAL_SERVER_ERROR)

    def _is_meant(self, head: bytes) -> bool:
        """Whether it is for us: on loopback, no name is answered that a web page could have rebound."""
        named = _HOST.search(head)
        if named is None:
            return _NAMES_HOST.search(head) is None
        assert self._spec is not None
        return not self._spec.loopback or _is_local(named[1].decode("ascii").strip("[]").lower())


def _is_local(name: str) -> bool:
    if name in ("", "localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _plain(status: HTTPStatus) -> Page:
    return Page(status=status, body=f"{status.phrase}\n".encode())


def _framed(page: Page) -> bytes:
    allow = "Allow: GET\r\n" if page.status is HTTPStatus.METHOD_NOT_ALLOWED else ""
    head = (
        f"HTTP/1.1 {page.status.value} {page.status.phrase}\r\n"
        f"Content-Type: {page.content_type}\r\n"
        f"Content-Length: {len(page.body)}\r\n"
        f"Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n{allow}Connection: close\r\n\r\n"
    )
    return head.encode("ascii") + page.body
