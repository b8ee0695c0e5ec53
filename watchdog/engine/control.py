"""The control socket: a UNIX socket on which verbs speak to the daemon, one JSON object a line.

Owns the socket file, framing, time-outs and bounds: whatever a client does, it costs one of a few
connections for a few seconds, and never more than a small share of the loop. Knows no verb.
"""

import asyncio
import contextlib
import errno
import logging
import os
import socket
import stat
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from watchdog.engine.protocol import (
    MAX_REQUEST,
    AnyRequest,
    ErrorCode,
    Forget,
    Metrics,
    Refusal,
    Reload,
    TestNotify,
    read_request,
    write_refusal,
    write_result,
)
from watchdog.ports import Clock

log = logging.getLogger(__name__)

MODE = 0o660
MAX_CLIENTS = 16
MAX_REQUESTS = 100  # of one client
BACKLOG = 64
SAY_PATIENCE = timedelta(seconds=10)  # for a whole request, from the answer before it
TAKE_PATIENCE = timedelta(seconds=10)  # for a client to take the whole answer
ANSWER_PATIENCE = timedelta(seconds=20)
SLOW_PATIENCE = timedelta(seconds=170)  # of verbs that wait for somebody outside
SHARE = 0.2  # of the loop's time, for all clients together
MAX_SLOW = 4
LOOK_EVERY = timedelta(seconds=30)  # whether the socket file is still there
LONGEST_PATH = 107  # bytes; Linux, see unix(7)

_SLOW = (Metrics, Reload, TestNotify)
_ACTS = (Forget, Reload, TestNotify)

Answer = Callable[[AnyRequest], Awaitable[object]]
"""From a request to its view; raises `Refusal`."""


@dataclass(slots=True, kw_only=True)
class Control:
    """Serves one socket. redact: hides whatever secret an answer might hold, however unlikely."""

    path: Path
    answer: Answer
    clock: Clock
    redact: Callable[[str], str] = str
    patience: timedelta = SAY_PATIENCE
    take_patience: timedelta = TAKE_PATIENCE
    _clients: set[asyncio.Task[None]] = field(default_factory=set)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _free_at: timedelta | None = None  # when the loop has had its rest from the answer before
    _slow: int = 0  # slow verbs in progress
    _failed: str = ""  # why the socket cannot be had
    _bugs: set[str] = field(default_factory=set)  # told in the log already

    async def run(self) -> None:
        """Serve until cancelled. A socket that cannot be had is reported; the watching goes on without it."""
        try:
            while True:
                await self._listen()
                await self.clock.sleep(LOOK_EVERY)
        finally:
            for client in list(self._clients):
                client.cancel()
            await asyncio.gather(*self._clients, return_exceptions=True)

    async def _listen(self) -> None:
        """Serve as long as the socket file is ours: somebody may have cleaned it away."""
        try:
            listener = open_socket(self.path)
        except OSError as error:
            self._report(error.strerror or str(error))
            return
        self._report("")
        server = await asyncio.start_unix_server(self._accept, sock=listener, limit=MAX_REQUEST)
        place = _place(self.path)
        try:
            while _place(self.path) == place:
                await self.clock.sleep(LOOK_EVERY)
        finally:
            server.close()
            if _place(self.path) == place:
                with contextlib.suppress(OSError):
                    self.path.unlink()

    def _report(self, failure: str) -> None:
        if failure and failure != self._failed:
            log.error("no control socket, verbs cannot reach us path=%s reason=%s", self.path, failure)
        if self._failed and not failure:
            log.info("the control socket is there now path=%s", self.path)
        self._failed = failure

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._clients) >= MAX_CLIENTS:
            writer.write(write_refusal(Refusal(ErrorCode.BUSY, "too many clients: try again in a moment")))
            writer.close()
            return
        client = asyncio.ensure_future(self._attend(reader, writer))
        self._clients.add(client)
        client.add_done_callback(self._clients.discard)

    async def _attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._serve(reader, writer)
        except (ConnectionError, TimeoutError):
            pass  # it left, or does not take its answer
        finally:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(MAX_REQUESTS):
            try:
                async with asyncio.timeout(self.patience.total_seconds()):
                    line = await reader.readuntil(b"\n")
            except asyncio.IncompleteReadError:
                return  # it said nothing more
            except asyncio.LimitOverrunError:
                refusal = Refusal(ErrorCode.TOO_LARGE, f"a request has at most {MAX_REQUEST} bytes")
                await self._give(writer, write_refusal(refusal))
                return
            await self._give(writer, await self._answered(line, writer))

    async def _give(self, writer: asyncio.StreamWriter, line: bytes) -> None:
        writer.transport.set_write_buffer_limits(high=0)  # drained = taken by the kernel
        writer.write(line)
        async with asyncio.timeout(self.take_patience.total_seconds()):
            await writer.drain()

    async def _answered(self, line: bytes, writer: asyncio.StreamWriter) -> bytes:
        try:
            request = read_request(line)
            if isinstance(request, _ACTS):
                log.info("asked over the control socket verb=%s by=%s", _verb(request), _peer(writer))
            return await (self._slowly(request) if isinstance(request, _SLOW) else self._in_turn(request))
        except Refusal as refusal:
            return self._hidden(write_refusal(refusal))
        except TimeoutError:
            return write_refusal(Refusal(ErrorCode.TOO_SLOW, "it took too long; it may still be done"))
        except Exception as error:  # a bug in a view must not cost the connection, let alone the daemon
            kind = type(error).__name__
            fresh = kind not in self._bugs
            self._bugs.add(kind)
            level = logging.ERROR if fresh else logging.DEBUG
            log.log(level, "a request could not be answered reason=%s", kind, exc_info=fresh)
            return write_refusal(Refusal(ErrorCode.FAILED, f"a bug of the daemon's ({kind}): see its log"))

    async def _slowly(self, request: AnyRequest) -> bytes:
        """Answer what waits for somebody outside, beside everything else."""
        if self._slow >= MAX_SLOW:
            raise Refusal(ErrorCode.BUSY, "others are waiting for the same: try again in a moment")
        self._slow += 1
        try:
            async with asyncio.timeout(SLOW_PATIENCE.total_seconds()):
                return self._written(await self.answer(request))
        finally:
            self._slow -= 1

    async def _in_turn(self, request: AnyRequest) -> bytes:
        """Answer one request after another, each after a rest several times as long as the one before."""
        async with asyncio.timeout(ANSWER_PATIENCE.total_seconds()), self._turn:
            if self._free_at is not None:
                await self.clock.sleep(self._free_at - self.clock.monotonic())
            began = self.clock.monotonic()
            line = self._written(await self.answer(request))
            ended = self.clock.monotonic()
            self._free_at = ended + (ended - began) * (1 / SHARE - 1)
            return line

    def _written(self, view: object) -> bytes:
        return self._hidden(write_result(view))

    def _hidden(self, line: bytes) -> bytes:
        return self.redact(line.decode()).encode()


def open_socket(path: Path) -> socket.socket:
    """Return a listening socket that the daemon's own user and group may use.

    Raises:
        OSError: it cannot be had; another daemon that listens there is left alone.
    """
    if len(os.fsencode(path)) > LONGEST_PATH:
        reason = f"the path is longer than {LONGEST_PATH} bytes: set JOB_WATCHDOG_SOCKET to a shorter one"
        raise OSError(errno.ENAMETOOLONG, reason)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _clear(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    try:
        os.fchmod(listener.fileno(), MODE)  # never open to others, not even between bind and chmod
        listener.bind(os.fspath(path))
        path.chmod(MODE)
        listener.listen(BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener


def _clear(path: Path) -> None:
    """Remove what a killed daemon left behind; refuse what is in use or no socket."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise OSError(errno.EEXIST, "there is a file of that name that is no socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(os.fspath(path))
        except ConnectionRefusedError:
            path.unlink()
            return
        except BlockingIOError:
            pass  # its queue is full: somebody listens
    raise OSError(errno.EADDRINUSE, "another daemon listens there")


def _place(path: Path) -> tuple[int, int] | None:
    """What tells one socket file from another; None if there is none."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _verb(request: AnyRequest) -> str:
    return str(type(request).__struct_config__.tag)


def _peer(writer: asyncio.StreamWriter) -> str:
    """Who is at the other end, as the kernel knows it."""
    peer = writer.get_extra_info("socket")
    try:
        found = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    except (AttributeError, OSError):
        return "?"
    pid, uid, _ = struct.unpack("3i", found)
    return f"uid {uid} pid {pid}"
