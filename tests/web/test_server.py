"""The small server against clients that are slow, many, or hostile. Real sockets on loopback."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta

import pytest

from watchdog.core.ruleset import HttpSpec
from watchdog.web.server import MAX_CONNECTIONS, MAX_HEAD, Page, Server

Ask = Callable[[bytes], Awaitable[bytes]]
BIG = 8 * 1024 * 1024


async def handler(path: str) -> Page:
    if path == "/fails":
        raise RuntimeError("a bug")
    if path == "/big":
        return Page(body=b"x" * BIG)
    return Page(body=path.encode())


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    made = Server(handler, head_patience=timedelta(seconds=0.3), send_patience=timedelta(seconds=0.3))
    await made.start(HttpSpec(host="127.0.0.1", port=0))
    yield made
    await made.close()


@pytest.fixture
def ask(server: Server) -> Ask:
    async def exchange(data: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(data)
        try:
            return await reader.read()
        except ConnectionError:
            return b""
        finally:
            writer.close()

    return exchange


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.005)


def get(path: str, host: str = "127.0.0.1:9595") -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()


async def test_a_get_is_answered_once_and_the_connection_closed(ask: Ask) -> None:
    head, _, body = (await ask(get("/page?x=1"))).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"Connection: close" in head
    assert b"Content-Length: 5" in head
    assert b"Cache-Control: no-store" in head
    assert body == b"/page"


@pytest.mark.parametrize("method", ["POST", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"])
async def test_every_other_method_is_refused(ask: Ask, method: str) -> None:
    answer = await ask(f"{method} / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc".encode())
    assert answer.startswith(b"HTTP/1.1 405 ")
    assert b"\r\nAllow: GET\r\n" in answer


@pytest.mark.parametrize(
    "data",
    [
        b"\r\n\r\n",
        b"GET /\r\n\r\n",
        b"GET http://other/ HTTP/1.1\r\n\r\n",
        b"GET /a b HTTP/1.1\r\n\r\n",
        b"get / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/2.0\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET /" + b"a" * 3000 + b" HTTP/1.1\r\n\r\n",
    ],
)
async def test_what_is_no_request_of_ours_is_refused(ask: Ask, data: bytes) -> None:
    assert (await ask(data)).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:9595", "10.0.0.7", "127.0.0.1.evil.example"])
async def test_on_loopback_no_other_name_is_answered(ask: Ask, host: str) -> None:
    assert (await ask(get("/", host))).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("host", ["localhost", "localhost:9595", "127.0.0.1", "127.9.9.9:1", "[::1]:9595"])
async def test_on_loopback_our_own_names_are_answered(ask: Ask, host: str) -> None:
    assert (await ask(get("/", host))).startswith(b"HTTP/1.1 200 ")


async def test_a_host_that_cannot_be_read_is_refused_a_missing_one_is_not(ask: Ask) -> None:
    assert (await ask(b"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n")).startswith(b"HTTP/1.1 400 ")
    assert (await ask(b"GET / HTTP/1.0\r\n\r\n")).startswith(b"HTTP/1.1 200 ")


async def test_beyond_loopback_every_name_is_answered() -> None:
    server = Server(handler)
    await server.start(HttpSpec(host="0.0.0.0", port=0))
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(get("/", "watchdog.cluster.local:9595"))
    assert (await reader.read()).startswith(b"HTTP/1.1 200 ")
    writer.close()
    await server.close()


async def test_a_head_without_end_is_refused(server: Server, ask: Ask) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"GET / HTTP/1.1\r\nX: " + b"y" * MAX_HEAD * 3)
    assert (await reader.readline()).startswith(b"HTTP/1.1 431 ")
    writer.close()
    assert (await ask(get("/still-here"))).endswith(b"/still-here")


async def test_a_client_that_says_nothing_is_cut_off(ask: Ask) -> None:
    assert await ask(b"") == b""
    assert await ask(b"GET / HTTP/1.1\r\nX: slow") == b""


async def test_a_client_that_does_not_take_the_answer_is_cut_off(server: Server, ask: Ask) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1024)
    writer.write(get("/big"))
    await until(lambda: server.connected == 1)
    await until(lambda: server.connected == 0)
    with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
        await reader.readexactly(BIG)
    writer.close()
    assert (await ask(get("/still-here"))).endswith(b"/still-here")


async def test_too_many_clients_are_turned_away_and_those_that_leave_make_room() -> None:
    server = Server(handler)
    await server.start(HttpSpec(host="127.0.0.1", port=0))
    held = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(MAX_CONNECTIONS)]
    await until(lambda: server.connected == MAX_CONNECTIONS)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
        await reader.readexactly(1)
    writer.close()
    for _, other in held:
        other.close()
    await until(lambda: server.connected == 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(get("/"))
    assert (await reader.read()).endswith(b"/")
    writer.close()
    await server.close()


async def test_a_page_that_fails_is_an_error_of_its_own(ask: Ask, caplog: pytest.LogCaptureFixture) -> None:
    answer = await ask(get("/fails"))
    assert answer.startswith(b"HTTP/1.1 500 ")
    assert b"a bug" not in answer
    assert "a page could not be made" in caplog.text
    assert (await ask(get("/still-here"))).endswith(b"/still-here")


async def test_closing_cuts_off_who_is_connected(server: Server) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    await until(lambda: server.connected == 1)
    await server.close()
    with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
        await reader.readexactly(1)
    writer.close()
    assert server.port == 0
