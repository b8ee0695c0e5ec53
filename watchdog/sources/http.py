"""The one module that knows httpx: a small asynchronous client for JSON APIs.

Owns connections, time-outs, size cap, pace and the translation of every foreign exception into
`SourceError`. A request is never cancelled inside a pool that goes on being used: httpx 0.28 would
lose the connection for ever. Knows nothing of any API, nor of credentials.
"""

import asyncio
import contextlib
import importlib.util
import logging
import ssl
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache, lru_cache, partial
from types import ModuleType
from typing import cast
from urllib.parse import urlsplit

import httpx

from watchdog.core.durations import format_duration
from watchdog.core.health import Failure
from watchdog.errors import SourceError
from watchdog.ports import Clock
from watchdog.sources.answers import HttpAnswer, parse_retry_after
from watchdog.sources.pace import Pace

KEPT_ALIVE = timedelta(seconds=5)  # how long a connection without a request stays
CLOSING_GRACE_S = 1.0

_HEADERS = {
    "accept": "application/json",
    "accept-encoding": "gzip",
    "connection": "keep-alive",
    "user-agent": f"python-httpx/{httpx.__version__}",
}

Params = Sequence[tuple[str, str]]
Headers = Callable[[], Mapping[str, str]]  # asked right before sending: signatures carry the time


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """Bounds of one source's traffic. `rate` is requests per second on average, `body` bytes."""

    connect: timedelta = timedelta(seconds=10)
    read: timedelta = timedelta(seconds=20)  # without a single byte
    write: timedelta = timedelta(seconds=10)
    pool: timedelta = timedelta(seconds=5)
    deadline: timedelta = timedelta(seconds=30)  # for one whole answer
    body: int = 16 * 1024 * 1024
    concurrency: int = 4
    rate: float = 5.0
    burst: int = 10


@dataclass(slots=True, eq=False)
class _Lane:
    """One connection, and the request on it. Left behind, it takes no new request and soon ends."""

    transport: httpx.AsyncHTTPTransport
    request: asyncio.Task[HttpAnswer] | None = None
    left: bool = False
    freed: timedelta = timedelta()  # monotonic: when it was used last


class HttpClient:
    """GET with bounds. One per source, so that a bad source cannot starve another."""

    def __init__(
        self, base_url: str, *, clock: Clock, limits: HttpLimits | None = None, proxy: str = ""
    ) -> None:
        """`base_url` has a scheme and a host and no credentials; ValueError says what is wrong."""
        self.base_url = checked_base_url(base_url)
        self.replaced = 0  # how often a lane was left behind
        self._clock = clock
        self._limits = limits or HttpLimits()
        self._proxy = proxy
        self._slots = asyncio.Semaphore(self._limits.concurrency)
        self._pace = Pace(clock, self._limits.rate, self._limits.burst)
        self._closers: set[asyncio.Task[None]] = set()
        self._closed = False
        _hush_httpx()
        _spare_searches()
        self._timeouts = _timeouts(self._limits)
        self._free = [self._new_lane()]
        self._busy: set[_Lane] = set()

    async def get(self, path: str, params: Params = (), headers: Headers = dict) -> HttpAnswer:
        """Send one GET and read the whole answer, whatever its status; redirects are not followed.

        Cancelling the caller leaves the request behind: it ends by itself, with its connection.

        Raises:
            SourceError: no whole answer came (unreachable, timed out, too large, broken off).
        """
        await self._slots.acquire()
        try:
            await self._pace.wait_turn()
            lane = self._next_lane()
        except BaseException:
            self._slots.release()
            raise
        task = lane.request = asyncio.create_task(self._exchange(lane, path, params, headers))
        self._busy.add(lane)
        task.add_done_callback(partial(self._finished, lane))
        deadline = self._limits.deadline
        try:
            done, _ = await asyncio.wait({task}, timeout=deadline.total_seconds())
        except asyncio.CancelledError:
            if not task.done():  # else the lane may be another's by now
                self._leave(lane)
            raise
        if not done:
            self._leave(lane)
            raise SourceError(Failure.TIMEOUT, f"no whole answer within {format_duration(deadline)}")
        if task.cancelled():  # by `close`
            raise SourceError(Failure.UNREACHABLE, "this source was closed", retryable=False)
        return task.result()

    async def close(self) -> None:
        """Close every connection; requests in progress end as failed. May be called again."""
        self._closed = True
        for lane in (*self._free, *self._busy):
            if not lane.left:
                self._end(lane)
        self._free.clear()
        while self._closers:
            await asyncio.wait(self._closers)

    def _next_lane(self) -> _Lane:
        if self._closed:
            raise SourceError(Failure.UNREACHABLE, "this source was closed", retryable=False)
        return self._free.pop() if self._free else self._new_lane()

    def _new_lane(self) -> _Lane:
        """A pool of one: httpcore looks at every connection of a pool, several times a request.

        httpx is used below its client, whose redirects, cookies and sign-in cost each request something.
        """
        limits = httpx.Limits(
            max_connections=1, max_keepalive_connections=1, keepalive_expiry=KEPT_ALIVE.total_seconds()
        )
        return _Lane(
            httpx.AsyncHTTPTransport(
                verify=_shared_ssl_context(), proxy=self._proxy or None, trust_env=False, limits=limits
            )
        )

    async def _exchange(self, lane: _Lane, path: str, params: Params, headers: Headers) -> HttpAnswer:
        try:
            if lane.left:  # its pool would connect anew for the sake of nobody
                raise SourceError(Failure.TIMEOUT, "nobody waits any more")
            request = httpx.Request(
                "GET",
                _url(self.base_url + path, tuple(params)),
                headers={**_HEADERS, **headers()},
                extensions={"timeout": self._timeouts},
            )
            response = await lane.transport.handle_async_request(request)
            try:
                body = await self._read(lane, response)
            finally:
                await response.aclose()
        except SourceError:
            raise
        except httpx.PoolTimeout as error:
            self._leave(lane)
            raise SourceError(Failure.TIMEOUT, "no free connection") from error
        except Exception as error:  # noqa: BLE001 - httpx lets OSError, ssl and h11 errors through
            raise _translated(error, self._limits) from None
        retry_after = response.headers.get("retry-after", "")
        return HttpAnswer(
            status=response.status_code,
            content_type=response.headers.get("content-type", ""),
            body=body,
            retry_after=parse_retry_after(
                retry_after, response.headers.get("date", ""), now=self._clock.now()
            ),
            location=response.headers.get("location", ""),
        )

    async def _read(self, lane: _Lane, response: httpx.Response) -> bytes:
        parts: list[bytes] = []
        size = 0
        chunks = cast(AsyncGenerator[bytes, None], response.aiter_bytes())
        async with contextlib.aclosing(chunks):
            async for chunk in chunks:
                size += len(chunk)
                if size > self._limits.body:
                    megabytes = self._limits.body / (1024 * 1024)
                    raise SourceError(Failure.MALFORMED, f"the answer is larger than {megabytes:g} MiB")
                if lane.left:
                    raise SourceError(Failure.TIMEOUT, "nobody waits any more")
                parts.append(chunk)
        return b"".join(parts)

    def _finished(self, lane: _Lane, task: asyncio.Task[HttpAnswer]) -> None:
        self._busy.discard(lane)
        lane.request = None
        self._slots.release()
        if not task.cancelled():
            task.exception()  # seen, whether or not somebody still waits for it
        if not lane.left:
            lane.freed = self._clock.monotonic()
            self._free.append(lane)
            # The newest is taken first: what has not been needed for so long closes, as at its server.
            while self._free[0].freed < lane.freed - KEPT_ALIVE:
                self._end(self._free.pop(0))

    def _leave(self, lane: _Lane) -> None:
        """Give a lane up, with what is on it that nobody waits for; it closes by itself."""
        if not lane.left:
            self.replaced += 1
            self._end(lane)

    def _end(self, lane: _Lane) -> None:
        lane.left = True
        closer = asyncio.create_task(_close(lane))
        self._closers.add(closer)
        closer.add_done_callback(self._closers.discard)


async def _close(lane: _Lane) -> None:
    """Close the connection, which ends what still runs on it; cancel what does not end."""
    request = lane.request
    with contextlib.suppress(Exception):  # a broken transport may fail to close; it is dropped anyway
        await lane.transport.aclose()
    if request is None:
        return
    await asyncio.wait({request}, timeout=CLOSING_GRACE_S)
    request.cancel()  # its pool is gone for good: nothing can leak into later requests
    await asyncio.gather(request, return_exceptions=True)


def checked_base_url(text: str) -> str:
    """Return the URL without a trailing slash; ValueError names what is wrong, never the text itself."""
    url = _checked_url("base_url", text)
    if url.userinfo:
        raise ValueError("base_url must not contain a user or password")
    if url.query or url.fragment:
        raise ValueError("base_url must not contain ? or #")
    return str(url).rstrip("/")


def checked_proxy(text: str) -> str:
    """Return a proxy URL httpx can use, or ''; ValueError never repeats the text (it may hold a password)."""
    return str(_checked_url("proxy", text)) if text else ""


def _checked_url(name: str, text: str) -> httpx.URL:
    try:
        url, parts = httpx.URL(text.strip()), urlsplit(text.strip())
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except (httpx.InvalidURL, ValueError):
        usable = False
    if not usable:
        raise ValueError(f"{name} must be http:// or https:// and a host, such as https://example.com")
    return url


def _timeouts(limits: HttpLimits) -> Mapping[str, float]:
    return {
        "connect": limits.connect.total_seconds(),
        "read": limits.read.total_seconds(),
        "write": limits.write.total_seconds(),
        "pool": limits.pool.total_seconds(),
    }


@lru_cache(
    maxsize=4_096
)  # a poll asks for the same addresses again; taking one apart costs as much as sending it
def _url(address: str, params: tuple[tuple[str, str], ...]) -> httpx.URL:
    return httpx.URL(address, params=params) if params else httpx.URL(address)


@cache
def _shared_ssl_context() -> ssl.SSLContext:
    """One context for all connections: building it costs a hundred times more than one of them."""
    return httpx.create_ssl_context()


def _spare_searches() -> None:
    # httpcore asks which event loop runs by importing sniffio, a dozen times a request. Where that package is
    # missing, each time is a search through every directory of packages: a quarter of what a request costs.
    if "sniffio" not in sys.modules and importlib.util.find_spec("sniffio") is None:
        sys.modules["sniffio"] = cast(ModuleType, None)  # documented: importing it fails at once


def _hush_httpx() -> None:
    # At INFO, httpx writes each URL with its query; below, httpcore writes headers.
    for name in ("httpx", "httpcore"):
        logger = logging.getLogger(name)
        if logger.level < logging.WARNING:
            logger.setLevel(logging.WARNING)


def _translated(error: Exception, limits: HttpLimits) -> SourceError:
    match error:
        case httpx.ConnectTimeout():
            return SourceError(Failure.TIMEOUT, f"connecting took over {format_duration(limits.connect)}")
        case httpx.ReadTimeout():
            return SourceError(Failure.TIMEOUT, f"no data for {format_duration(limits.read)}")
        case httpx.TimeoutException():
            return SourceError(Failure.TIMEOUT, "sending took too long")
        case httpx.ProxyError():
            return SourceError(Failure.UNREACHABLE, "the proxy refused")
        case httpx.ConnectError():
            return SourceError(Failure.UNREACHABLE, _connect_reason(str(error)))
        case httpx.DecodingError():
            return SourceError(Failure.MALFORMED, "the compressed answer is damaged")
        case httpx.LocalProtocolError() | httpx.UnsupportedProtocol() | httpx.InvalidURL():
            return SourceError(
                Failure.BAD_REQUEST, "the request cannot be sent as configured", retryable=False
            )
        case httpx.TransportError():
            return SourceError(Failure.UNREACHABLE, "the connection broke off")
    return SourceError(Failure.UNREACHABLE, f"the request failed ({type(error).__name__})")


def _connect_reason(text: str) -> str:
    lowered = text.lower()
    if "certificate" in lowered or "ssl" in lowered or "tls" in lowered:
        reason = text.rsplit("failed: ", 1)[-1].split(" (_ssl", 1)[0].strip("[] ")
        return f"TLS: {reason[:100]}"
    if "name" in lowered or "getaddrinfo" in lowered or "resolution" in lowered:
        return "the host name cannot be resolved"
    return "the connection was refused or not possible"
