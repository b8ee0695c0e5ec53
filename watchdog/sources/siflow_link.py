"""The process that runs the SDK: started, spoken to, killed by deadline, replaced.

Owns one worker at a time, in a process group of its own. A call that is not answered in time fails, and its
worker takes no new call and is killed once nothing else waits for it; a worker that ends fails what it owed.
Knows the protocol's frames and none of its operations.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import TypeVar

import msgspec

from watchdog.core.durations import format_duration
from watchdog.core.health import Failure
from watchdog.errors import SourceError
from watchdog.ports import Clock
from watchdog.sources.answers import failure
from watchdog.sources.siflow_wire import (
    HEADER,
    VERSION,
    Welcome,
    WorkerError,
    frame,
    frame_length,
    read_answer,
    read_error,
    read_reply,
)

PROGRAM = Path(__file__).with_name("siflow_worker.py")
PASSED_ON = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "LD_LIBRARY_PATH",
)
START_WITHIN = timedelta(seconds=60)  # a cold disk and a large package
FIRST_WAIT = timedelta(seconds=2)
LONGEST_WAIT = timedelta(minutes=5)
ENDING_S = 2.0
SAID_KEPT = 2000  # bytes of what it wrote to stderr

T = TypeVar("T")
_WELCOME = msgspec.json.Decoder(Welcome)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """The first message to a worker: whom to be. Travels over the pipe only."""

    region: str
    cluster: str
    access_key_id: str = field(repr=False)
    access_key_secret: str = field(repr=False)
    timeout: float  # seconds, of one call inside the SDK
    threads: int
    sdk_path: str = ""
    proxy: str = field(default="", repr=False)

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must be taken out of every text."""
        return (self.access_key_secret, self.access_key_id, self.proxy)


@dataclass(slots=True, eq=False)
class _Worker:
    """One process. Retired, it takes no new call and is killed when it owes no answer."""

    process: asyncio.subprocess.Process
    welcome: Welcome = field(default_factory=lambda: Welcome(version=VERSION))
    owed: dict[int, "asyncio.Future[msgspec.Raw]"] = field(default_factory=dict)
    tasks: list["asyncio.Task[None]"] = field(default_factory=list)
    answered: int = 0
    retired: bool = False
    said: bytes = b""

    def kill(self) -> None:
        """End the process and everything in its group."""
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)


class SiflowLink:
    """Calls operations of the worker, at most `hello.threads` at once; the first call starts it."""

    def __init__(self, python: str, hello: Hello, *, clock: Clock, deadline: timedelta) -> None:
        """`deadline`: real time from sending a call to its answer; more than the SDK's own timeout."""
        self.started = 0  # workers, in all
        self._python = python
        self._hello = hello
        self._clock = clock
        self._deadline = deadline
        self._slots = asyncio.Semaphore(hello.threads)
        self._numbers = count(1)
        self._worker: _Worker | None = None
        self._alive: set[_Worker] = set()
        self._starting: asyncio.Task[_Worker] | None = None
        self._strikes = 0  # workers in a row that answered nothing
        self._waiting: tuple[timedelta, SourceError] | None = (
            None  # until when no new one is started, and why
        )
        self._closed = False

    @property
    def welcome(self) -> Welcome | None:
        """What the current worker is; None while there is none."""
        return self._worker.welcome if self._worker is not None else None

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes that live."""
        return tuple(worker.process.pid for worker in self._alive)

    async def ready(self) -> Welcome:
        """Make sure that there is a worker; returns what it is. Raises `SourceError`."""
        return (await self._current()).welcome

    async def call(self, op: str, args: Mapping[str, object], decoder: msgspec.json.Decoder[T]) -> T:
        """Carry out one operation.

        Cancelling the caller leaves the call behind; its deadline holds all the same.

        Raises:
            SourceError: the SDK raised, nothing came in time, or there is no working SDK.
        """
        await self._slots.acquire()
        try:
            worker = await self._current()
            if worker.retired:  # it ended while others waited for their turn
                raise failure(Failure.UNREACHABLE, "the SDK's process ended")
            number = next(self._numbers)
            answer = self._send(worker, number, {"id": number, "op": op, "args": args})
        except BaseException:
            self._slots.release()
            raise
        answer.add_done_callback(self._finished)
        return read_answer(decoder, await asyncio.shield(answer))

    async def close(self) -> None:
        """Kill every worker and wait for its end. May be called again."""
        self._closed = True
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.gather(self._starting, return_exceptions=True)
        for worker in tuple(self._alive):
            worker.kill()
            await asyncio.wait(worker.tasks, timeout=ENDING_S)

    # --- calls

    def _send(self, worker: _Worker, number: int, message: object) -> "asyncio.Future[msgspec.Raw]":
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[msgspec.Raw] = loop.create_future()
        worker.owed[number] = answer
        timer = loop.call_later(self._deadline.total_seconds(), self._expire, worker, number)
        answer.add_done_callback(lambda _: timer.cancel())
        assert worker.process.stdin is not None
        # Not drained: what is owed is bounded, and a worker that does not read runs into its deadline.
        worker.process.stdin.write(frame(message))
        return answer

    def _finished(self, answer: "asyncio.Future[msgspec.Raw]") -> None:
        self._slots.release()
        if not answer.cancelled():
            answer.exception()  # seen, whether or not somebody still waits for it

    def _expire(self, worker: _Worker, number: int) -> None:
        answer = worker.owed.pop(number, None)
        if answer is None or answer.done():
            return
        limit = format_duration(self._deadline)
        error = failure(Failure.TIMEOUT, f"the SDK gave no answer within {limit}; its process is replaced")
        answer.set_exception(error)
        self._retire(worker, error)

    def _retire(self, worker: _Worker, error: SourceError) -> None:
        if not worker.retired:
            worker.retired = True
            self._strike(worker, error, wait=worker.answered == 0)
        if not worker.owed:
            worker.kill()

    def _strike(self, worker: _Worker, error: SourceError, *, wait: bool) -> None:
        """A worker is of no more use. Those that answered nothing are started anew ever more slowly."""
        if self._worker is worker:
            self._worker = None
        self._strikes = self._strikes + 1 if worker.answered == 0 else 1
        if wait:
            pause = min(FIRST_WAIT * 2 ** min(self._strikes - 1, 10), LONGEST_WAIT)
            self._waiting = (self._clock.monotonic() + pause, error)

    # --- processes

    async def _current(self) -> _Worker:
        if self._closed:
            raise SourceError(Failure.UNREACHABLE, "this source was closed", retryable=False)
        if self._worker is not None:
            return self._worker
        if self._waiting is not None and self._clock.monotonic() < self._waiting[0]:
            error = self._waiting[1]
            raise failure(error.failure, error.detail)
        if self._starting is None or self._starting.done():
            self._starting = asyncio.create_task(self._start())
            self._starting.add_done_callback(_seen)
        return await asyncio.shield(self._starting)

    async def _start(self) -> _Worker:
        self.started += 1
        worker = await self._spawn()
        self._alive.add(worker)
        worker.tasks = [asyncio.create_task(part) for part in (self._listen(worker), _overhear(worker))]
        greeting: asyncio.Future[msgspec.Raw] = asyncio.get_running_loop().create_future()
        worker.owed[0] = greeting
        assert worker.process.stdin is not None
        worker.process.stdin.write(frame(self._hello))
        try:
            async with asyncio.timeout(START_WITHIN.total_seconds()):
                worker.welcome = read_answer(_WELCOME, await greeting)
            if worker.welcome.version != VERSION:
                raise failure(Failure.MALFORMED, "this program was updated: restart it")
        except TimeoutError:
            limit = format_duration(START_WITHIN)
            error = failure(Failure.TIMEOUT, f"the SDK's process did not start within {limit}")
            self._give_up(worker, error)
            raise error from None
        except SourceError as error:
            self._give_up(worker, error)
            raise
        except asyncio.CancelledError:
            worker.kill()
            raise
        self._worker, self._waiting = worker, None
        return worker

    async def _spawn(self) -> _Worker:
        pipe = asyncio.subprocess.PIPE
        environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        try:
            process = await asyncio.create_subprocess_exec(
                self._python,
                "-I",  # neither PYTHONPATH nor our own folder: `http.py` there is not the library's
                str(PROGRAM),
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                env=environment,  # no secret and no proxy of ours
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            reason = failure(Failure.UNSUPPORTED, f"python: {self._python}: {error.strerror or error}")
            self._strikes += 1
            self._waiting = (self._clock.monotonic() + LONGEST_WAIT / 5, reason)
            raise reason from None
        return _Worker(process=process)

    def _give_up(self, worker: _Worker, error: SourceError) -> None:
        worker.retired = True
        worker.owed.pop(0, None)
        self._strike(worker, error, wait=True)
        worker.kill()

    async def _listen(self, worker: _Worker) -> None:
        """Take answers until the process ends, then fail what it owes."""
        output = worker.process.stdout
        assert output is not None
        try:
            while True:
                size = frame_length(await output.readexactly(HEADER.size))
                self._take(worker, await output.readexactly(size))
        except (asyncio.IncompleteReadError, ConnectionError):
            with contextlib.suppress(TimeoutError):  # it is ending: let it, so that its code is known
                await asyncio.wait_for(worker.process.wait(), ENDING_S)
        except SourceError:
            pass  # it speaks another language
        worker.kill()
        await worker.process.wait()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(worker.process.pid, signal.SIGKILL)  # what the SDK may have left behind
        self._ended(worker)

    def _take(self, worker: _Worker, body: bytes) -> None:
        reply = read_reply(body)
        answer = worker.owed.pop(reply.id, None)
        if answer is not None and not answer.done():
            worker.answered += reply.id > 0
            if reply.error is None:
                answer.set_result(reply.ok)
            else:
                answer.set_exception(self._named(reply.error))
        if worker.retired and not worker.owed:
            worker.kill()

    def _named(self, error: WorkerError) -> SourceError:
        if error.kind == "sdk_missing":
            wheel = f"{self._python} -m pip install the vendor's siflow-….whl"
            return failure(Failure.UNSUPPORTED, f"the SiFlow SDK is not installed there: {wheel}")
        return read_error(error, self._hello.secrets)

    def _ended(self, worker: _Worker) -> None:
        self._alive.discard(worker)
        code = worker.process.returncode or 0
        how = f"signal {-code}" if code < 0 else f"code {code}"
        said = (
            worker.said.decode("utf-8", "replace").strip().rpartition("\n")[2] if not worker.answered else ""
        )
        error = read_error(WorkerError("ended", f"({how}) {said}"), self._hello.secrets)
        if not worker.retired and not self._closed:
            worker.retired = True
            self._strike(worker, error, wait=True)
        for answer in worker.owed.values():
            if not answer.done():
                answer.set_exception(error)
        worker.owed.clear()


async def _overhear(worker: _Worker) -> None:
    """Read what the process writes to stderr, so that it never waits; the end of it is kept."""
    errors = worker.process.stderr
    assert errors is not None
    with contextlib.suppress(ConnectionError):
        while part := await errors.read(4096):
            worker.said = (worker.said + part)[-SAID_KEPT:]


def _seen(start: "asyncio.Task[_Worker]") -> None:
    if not start.cancelled():
        start.exception()  # whoever asked may have been cancelled meanwhile
