"""The control socket under polite, clumsy and hostile clients, over real sockets."""

import asyncio
import contextlib
import json
import os
import socket
import stat
import struct
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from watchdog.clock import SystemClock
from watchdog.engine import control as module
from watchdog.engine.control import MAX_CLIENTS, MAX_SLOW, Control, open_socket
from watchdog.engine.protocol import (
    MAX_ANSWER,
    MAX_REQUEST,
    VERSION,
    ErrorCode,
    Explain,
    Names,
    Refusal,
    Status,
    TestNotify,
)

SOON = 20.0  # seconds; only reached when something hangs
Serve = Callable[..., Awaitable[Control]]


@pytest.fixture
def place() -> Iterator[Path]:
    """A socket path that is short enough."""
    with tempfile.TemporaryDirectory(prefix="wd-") as folder:
        yield Path(folder) / "control.sock"


async def answer(request: object) -> object:
    match request:
        case Status():
            return {"fine": True}
        case Names():
            return {"names": ["x" * 1000] * 3000}
        case Explain(rule="bug"):
            raise ZeroDivisionError
        case Explain(rule="secret"):
            return {"said": "the token is hunter2hunter2"}
        case Explain():
            raise Refusal(ErrorCode.NOT_FOUND, f"no rule {request.rule}")
        case TestNotify():
            await asyncio.sleep(SOON)
    return {}


@pytest.fixture
async def serve(place: Path) -> AsyncIterator[Serve]:
    lives: list[asyncio.Task[None]] = []

    async def serving(**more: Any) -> Control:
        control = Control(path=place, answer=answer, clock=SystemClock(), **more)
        lives.append(asyncio.create_task(control.run()))
        for _ in range(200):
            with contextlib.suppress(OSError):
                (await asyncio.open_unix_connection(place))[1].close()
                return control
            await asyncio.sleep(0.01)
        raise AssertionError("it does not listen")

    yield serving
    for life in lives:
        life.cancel()
    await asyncio.gather(*lives, return_exceptions=True)


class Client:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def says(self, raw: bytes) -> dict[str, Any]:
        self.writer.write(raw)
        return await self.hears()

    async def hears(self) -> dict[str, Any]:
        line = await asyncio.wait_for(self.reader.readline(), SOON)
        found: dict[str, Any] = json.loads(line)
        return found

    async def gone(self) -> bool:
        """Whether the other end hung up."""
        try:
            return await asyncio.wait_for(self.reader.read(), SOON) == b""
        except ConnectionError:
            return True


Connect = Callable[[], Awaitable[Client]]


@pytest.fixture
async def connect(place: Path) -> AsyncIterator[Connect]:
    """Opens connections, and closes what is left of them."""
    opened: list[Client] = []

    async def connected() -> Client:
        opened.append(Client(*await asyncio.open_unix_connection(place, limit=2 * MAX_ANSWER)))
        return opened[-1]

    yield connected
    for client in opened:
        client.writer.transport.abort()
    await asyncio.sleep(0)


STATUS = b'{"verb":"status"}\n'


async def test_one_connection_asks_one_thing_after_another(
    serve: Serve, connect: Connect, place: Path
) -> None:
    await serve()
    client = await connect()
    for _ in range(3):
        assert (await client.says(STATUS))["result"] == {"fine": True}
    said = await client.says(b'{"verb":"explain","rule":"idle"}\n')
    assert (said["ok"], said["code"], said["message"]) == (False, "not found", "no rule idle")


async def test_requests_may_come_all_at_once_and_in_pieces(
    serve: Serve, connect: Connect, place: Path
) -> None:
    await serve()
    client = await connect()
    client.writer.write(STATUS * 2 + STATUS[:7])
    assert (await client.hears())["ok"]
    assert (await client.hears())["ok"]
    await asyncio.sleep(0.05)
    assert (await client.says(STATUS[7:]))["ok"]


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"null\n",
        b"[]\n",
        b"{}\n",
        b"\xff\xfe\x00garbage\n",
        b'{"verb":"rm -rf"}\n',
        b'{"verb":"status","extra":1}\n',
        b'{"verb":"history","limit":0}\n',
        b'{"verb":"history","limit":1e99}\n',
        b'{"verb":"show"}\n',
        b'{"verb":"show","incident":7}\n',
        b'{"verb":"show","incident":"' + b"a" * 600 + b'"}\n',
        b"[" * 3000 + b"\n",
        b'{"verb":"status","verb":"reload","v":{}}\n',
    ],
)
async def test_garbage_is_answered_with_what_is_wrong_and_the_connection_goes_on(
    serve: Serve, connect: Connect, place: Path, line: bytes
) -> None:
    await serve()
    client = await connect()
    said = await client.says(line)
    assert (said["ok"], said["code"]) == (False, "bad request")
    assert said["message"]
    assert (await client.says(STATUS))["ok"]


async def test_another_version_is_named_as_such(serve: Serve, connect: Connect, place: Path) -> None:
    await serve()
    said = await (await connect()).says(b'{"verb":"brew","v":99}\n')
    assert said["code"] == "other version"
    assert f"{VERSION} here" in said["message"]


async def test_a_line_without_end_is_cut_off_early(serve: Serve, connect: Connect, place: Path) -> None:
    """A gigabyte is never taken in: after a few kilobytes the line is refused and the client is left."""
    await serve()
    client = await connect()
    sent, block = 0, b"x" * (1 << 16)
    with contextlib.suppress(ConnectionError):
        while sent < 1 << 30:
            client.writer.write(block)
            await client.writer.drain()
            sent += len(block)
    assert sent < 8 << 20
    assert (await (await connect()).says(STATUS))["ok"]


async def test_a_request_that_is_just_too_long_is_told_so(
    serve: Serve, connect: Connect, place: Path
) -> None:
    await serve()
    client = await connect()
    said = await client.says(b'{"verb":"status"' + b" " * MAX_REQUEST + b"}\n")
    assert said["code"] == "too large"
    assert await client.gone()


async def test_a_client_that_says_nothing_or_half_a_line_is_left(
    serve: Serve, connect: Connect, place: Path
) -> None:
    await serve(patience=timedelta(seconds=0.2))
    silent, halfway = await connect(), await connect()
    halfway.writer.write(b'{"verb":')
    assert await silent.gone()
    assert await halfway.gone()


async def test_a_client_that_never_reads_is_left(serve: Serve, connect: Connect, place: Path) -> None:
    control = await serve(take_patience=timedelta(seconds=0.3))
    stuck = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    stuck.connect(os.fspath(place))
    stuck.sendall(b'{"verb":"names"}\n')
    for _ in range(500):
        await asyncio.sleep(0.01)
        if control._clients:
            break
    for _ in range(500):
        if not control._clients:
            break
        await asyncio.sleep(0.01)
    assert not control._clients
    stuck.close()
    assert (await (await connect()).says(STATUS))["ok"]


async def test_an_answer_arrives_whole_though_the_client_has_nothing_more_to_say(
    serve: Serve, connect: Connect, place: Path
) -> None:
    await serve()
    client = await connect()
    client.writer.write(b'{"verb":"names"}\n')
    client.writer.write_eof()
    await asyncio.sleep(0.2)  # the answer fills every buffer in between
    assert len((await client.hears())["result"]["names"]) == 3000


async def test_two_hundred_connections_cost_no_more_than_a_few_and_the_loop_goes_on(
    serve: Serve, connect: Connect, place: Path
) -> None:
    control = await serve(patience=timedelta(seconds=1))
    ticks = 0

    async def beat() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.005)
            ticks += 1

    pulse = asyncio.create_task(beat())
    clients = [await connect() for _ in range(200)]
    refused = 0
    for client in clients[MAX_CLIENTS:]:
        with contextlib.suppress(ConnectionError, ValueError):
            refused += (await client.hears())["code"] == "busy"
    assert len(control._clients) <= MAX_CLIENTS
    assert refused >= 150
    assert all([await client.gone() for client in clients[:MAX_CLIENTS]])
    pulse.cancel()
    assert ticks > 20
    assert (await (await connect()).says(STATUS))["ok"]


async def test_a_bug_costs_neither_the_connection_nor_the_log(
    serve: Serve, connect: Connect, place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await serve()
    client = await connect()
    for _ in range(3):
        said = await client.says(b'{"verb":"explain","rule":"bug"}\n')
        assert said["code"] == "failed"
        assert "ZeroDivisionError" in said["message"]
    assert (
        sum("Traceback" in (record.exc_text or "") or bool(record.exc_info) for record in caplog.records) == 1
    )


async def test_no_secret_leaves_whatever_an_answer_holds(serve: Serve, connect: Connect, place: Path) -> None:
    await serve(redact=lambda text: text.replace("hunter2hunter2", "****"))
    said = await (await connect()).says(b'{"verb":"explain","rule":"secret"}\n')
    assert said["result"] == {"said": "the token is ****"}


async def test_slow_verbs_are_few_at_a_time_and_keep_nobody_from_asking(
    serve: Serve, connect: Connect, place: Path
) -> None:
    await serve()
    waiting = [await connect() for _ in range(MAX_SLOW)]
    for client in waiting:
        client.writer.write(b'{"verb":"test-notify"}\n')
    await asyncio.sleep(0.05)
    another = await connect()
    assert (await another.says(b'{"verb":"test-notify"}\n'))["code"] == "busy"
    assert (await another.says(STATUS))["ok"]


async def test_answers_leave_the_loop_most_of_the_time(
    place: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an answer that took long the next one waits; the clock says how long."""

    class Clock(SystemClock):
        now_s = 0.0

        def monotonic(self) -> timedelta:
            return timedelta(seconds=self.now_s)

        async def sleep(self, duration: timedelta) -> None:
            rests.append(duration.total_seconds())

    rests: list[float] = []
    clock = Clock()

    async def costly(request: object) -> object:
        clock.now_s += 0.5
        return {}

    control = Control(path=place, answer=costly, clock=clock)
    await control._in_turn(Status())
    assert rests == []
    await control._in_turn(Status())
    assert rests == [pytest.approx(2.0)]  # four times as long as the answer took


# --- the socket file


def test_the_socket_is_for_the_owner_and_the_group_whatever_the_umask(place: Path) -> None:
    before = os.umask(0)
    try:
        for umask in (0o000, 0o022, 0o077):
            os.umask(umask)
            listener = open_socket(place)
            assert stat.S_IMODE(place.stat().st_mode) == 0o660
            listener.close()
    finally:
        os.umask(before)


def test_what_a_killed_daemon_left_is_replaced_and_what_a_living_one_has_is_not(place: Path) -> None:
    open_socket(place).close()  # closed, but the file is still there
    listener = open_socket(place)
    with pytest.raises(OSError, match="another daemon"):
        open_socket(place)
    listener.close()


def test_a_file_that_is_no_socket_is_left_alone(place: Path) -> None:
    place.write_text("mine")
    with pytest.raises(OSError, match="no socket"):
        open_socket(place)
    assert place.read_text() == "mine"


def test_a_path_that_is_too_long_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="JOB_WATCHDOG_SOCKET"):
        open_socket(tmp_path / ("x" * 120))


async def test_without_a_socket_the_daemon_goes_on_and_says_so_once(
    place: Path, connect: Connect, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOK_EVERY", timedelta(seconds=0.01))
    place.write_text("in the way")
    control = Control(path=place, answer=answer, clock=SystemClock())
    life = asyncio.create_task(control.run())
    await asyncio.sleep(0.2)
    assert len([one for one in caplog.records if "no control socket" in one.message]) == 1
    place.unlink()
    for _ in range(300):
        if place.exists() and stat.S_ISSOCK(place.stat().st_mode):
            break
        await asyncio.sleep(0.01)
    assert (await (await connect()).says(STATUS))["ok"]
    life.cancel()
    await asyncio.gather(life, return_exceptions=True)
    assert not place.exists()


async def test_a_socket_file_that_was_cleaned_away_comes_back(
    place: Path, serve: Serve, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOK_EVERY", timedelta(seconds=0.02))
    await serve()
    place.unlink()
    for _ in range(300):
        with contextlib.suppress(OSError):
            assert (await (await connect()).says(STATUS))["ok"]
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come back")


async def test_who_asked_for_a_deed_is_in_the_log(
    serve: Serve, connect: Connect, place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    await serve()
    await (await connect()).says(b'{"verb":"reload"}\n')
    (line,) = [one.getMessage() for one in caplog.records if "verb=reload" in one.getMessage()]
    assert f"uid {os.getuid()} pid {os.getpid()}" in line


def test_the_kernels_word_on_the_peer_has_the_size_we_read() -> None:
    assert struct.calcsize("3i") == 12
