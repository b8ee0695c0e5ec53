"""The bounded HTTP client against loopback servers that misbehave."""

import asyncio
import logging
from datetime import timedelta

import pytest

from watchdog.core.health import Failure
from watchdog.demo.httpd import LoopbackServer, Reply, Request, json_reply
from watchdog.errors import SourceError
from watchdog.sources.http import HttpClient, HttpLimits, checked_base_url, checked_proxy


class Service:
    """Answers as told: `replies` by path, everything else with an empty object."""

    def __init__(self) -> None:
        self.replies: dict[str, Reply] = {}
        self.seen: list[Request] = []

    async def __call__(self, request: Request) -> Reply:
        self.seen.append(request)
        return self.replies.get(request.path, json_reply({}))


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
async def server(service):
    async with LoopbackServer(service) as server:
        yield server


@pytest.fixture
async def connect(server, clock):
    """Make a client of the server with some limits; closed after the test."""
    clients: list[HttpClient] = []

    def make(url: str = "", proxy: str = "", **limits: object) -> HttpClient:
        bounds = HttpLimits(**{"rate": 100_000.0, "deadline": timedelta(seconds=5), **limits})
        clients.append(HttpClient(url or server.url, clock=clock, limits=bounds, proxy=proxy))
        return clients[-1]

    yield make
    for client in clients:
        await client.close()


async def failure_of(awaitable) -> SourceError:
    with pytest.raises(SourceError) as caught:
        await awaitable
    return caught.value


async def test_an_answer_arrives_whole_with_status_and_type(service, connect) -> None:
    service.replies["/a"] = Reply(status=418, body=b"teapot", content_type="text/plain; charset=GBK")

    answer = await connect().get("/a", [("q", "ä b"), ("q2", "")], lambda: {"authorization": "x"})

    assert (answer.status, answer.body, answer.media_type, answer.charset) == (
        418,
        b"teapot",
        "text/plain",
        "gbk",
    )
    (request,) = service.seen
    assert request.query == {"q": "ä b", "q2": ""}
    assert request.headers["authorization"] == "x"


async def test_a_request_says_what_we_take_and_nothing_that_an_earlier_answer_told(service, connect) -> None:
    service.replies["/a"] = Reply(body=b"{}", headers={"Set-Cookie": "session=abc; Path=/"})
    client = connect()

    await client.get("/a")
    await client.get("/a", headers=lambda: {"authorization": "x"})

    first, second = (request.headers for request in service.seen)
    assert (first["accept"], first["accept-encoding"]) == ("application/json", "gzip")
    assert first["user-agent"].startswith("python-httpx/")
    assert second == {**first, "authorization": "x"}


async def test_redirects_are_answers_and_not_followed(service, connect) -> None:
    service.replies["/a"] = Reply(status=302, headers={"Location": "/b"})

    assert (await connect().get("/a")).status == 302
    assert [request.path for request in service.seen] == ["/a"]


async def test_many_cancellations_leave_no_connection_behind(server, service, connect) -> None:
    """httpx loses connections when cancelled in its pool; afterwards every request would time out."""
    service.replies["/slow"] = Reply(body=b"{}", delay=0.02)
    client = connect(concurrency=3, pool=timedelta(seconds=1))
    for round_number in range(60):
        requests = [asyncio.create_task(client.get("/slow" if n % 2 else "/quick")) for n in range(5)]
        for _ in range(round_number % 13):
            await asyncio.sleep(0)
        for request in requests[: 1 + round_number % 5]:
            request.cancel()
        outcomes = await asyncio.gather(*requests, return_exceptions=True)
        assert not [outcome for outcome in outcomes if isinstance(outcome, SourceError)]

    answers = await asyncio.gather(*(client.get("/quick") for _ in range(20)))
    assert [answer.status for answer in answers] == [200] * 20
    assert client.replaced > 0
    assert server.most_at_once <= 3
    await client.close()
    assert not client._closers


async def test_a_cancelled_request_does_not_hurt_its_neighbours(service, connect) -> None:
    service.replies["/hang"] = Reply(body=b"{}", delay=60)
    service.replies["/slow"] = Reply(body=b"{}", delay=0.1)
    client = connect()
    hanging = asyncio.create_task(client.get("/hang"))
    neighbour = asyncio.create_task(client.get("/slow"))
    while len(service.seen) < 2:
        await asyncio.sleep(0)

    hanging.cancel()

    assert (await neighbour).status == 200
    with pytest.raises(asyncio.CancelledError):
        await hanging


async def test_a_cancelled_request_takes_its_own_connection_only(server, service, connect) -> None:
    service.replies["/hang"] = Reply(body=b"{}", delay=60)
    client = connect()
    hanging = asyncio.create_task(client.get("/hang"))
    while not service.seen:
        await asyncio.sleep(0)
    await client.get("/quick")
    assert server.open_connections == 2

    hanging.cancel()
    await asyncio.wait([hanging])
    while server.open_connections == 2:
        await asyncio.sleep(0)
    for _ in range(100):
        await asyncio.sleep(0)

    assert server.open_connections == 1


@pytest.mark.parametrize(
    "reply",
    [Reply(body=b"{}", delay=60), Reply(body=b"{}" + b" " * 500, drip=0.05)],
    ids=["hang", "drip"],
)
async def test_the_deadline_holds_for_the_whole_answer(service, connect, reply) -> None:
    service.replies["/a"] = reply
    client = connect(deadline=timedelta(seconds=0.2), concurrency=1)

    error = await failure_of(client.get("/a"))
    assert error.failure is Failure.TIMEOUT
    assert error.detail == "no whole answer within 200ms"
    assert (await client.get("/b")).status == 200  # on a fresh client, the old one is given up
    assert client.replaced == 1


async def test_silence_between_bytes_is_bounded(service, connect) -> None:
    service.replies["/a"] = Reply(body=b"{}", delay=60)

    error = await failure_of(connect(read=timedelta(seconds=0.1)).get("/a"))
    assert (error.failure, error.detail) == (Failure.TIMEOUT, "no data for 100ms")


async def test_a_body_over_the_cap_is_refused(service, connect) -> None:
    service.replies["/a"] = Reply(body=b"x" * 3_000_000)
    client = connect(body=2 * 1024 * 1024)

    error = await failure_of(client.get("/a"))
    assert (error.failure, error.detail) == (Failure.MALFORMED, "the answer is larger than 2 MiB")
    assert (await client.get("/b")).status == 200


async def test_a_connection_that_breaks_off_is_unreachable(service, connect) -> None:
    service.replies["/a"] = Reply(body=b"x" * 100, cut=40)

    error = await failure_of(connect().get("/a"))
    assert (error.failure, error.retryable) == (Failure.UNREACHABLE, True)


async def test_nobody_listening_is_unreachable(connect) -> None:
    async with LoopbackServer(Service()) as gone:
        url = gone.url

    error = await failure_of(connect(url).get("/a"))
    assert error.failure is Failure.UNREACHABLE


async def test_a_server_that_speaks_no_http(clock, connect) -> None:
    async def speak(reader, writer) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"220 smtp ready\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(speak, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        error = await failure_of(connect(f"http://127.0.0.1:{port}").get("/a"))
    assert error.failure is Failure.UNREACHABLE


async def test_damaged_compression_is_malformed(service, connect) -> None:
    service.replies["/a"] = Reply(body=b"not gzip", headers={"Content-Encoding": "gzip"})

    assert (await failure_of(connect().get("/a"))).failure is Failure.MALFORMED


async def test_a_header_that_cannot_be_sent_is_no_crash(connect) -> None:
    error = await failure_of(connect().get("/a", (), lambda: {"authorization": "new\nline-secret"}))
    assert error.failure is Failure.BAD_REQUEST
    assert "secret" not in str(error)


async def test_never_more_at_once_than_allowed(server, service, connect) -> None:
    service.replies["/slow"] = Reply(body=b"{}", delay=0.01)
    client = connect(concurrency=3)

    await asyncio.gather(*(client.get("/slow") for _ in range(24)))

    assert server.most_at_once == 3


async def test_the_rate_limit_spreads_requests_on_the_given_clock(clock, connect) -> None:
    client = connect(rate=2.0, burst=3)

    for _ in range(7):
        await client.get("/a")

    assert clock.slept == [timedelta(seconds=0.5)] * 4


async def test_the_environments_proxy_is_not_used(connect, monkeypatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "socks5://127.0.0.1:9")

    assert (await connect().get("/a")).status == 200


async def test_a_configured_proxy_is_used(service, server, connect) -> None:
    client = connect("http://somewhere.invalid", proxy=server.url)

    assert (await client.get("/a")).status == 200
    assert service.seen[0].headers["host"] == "somewhere.invalid"


async def test_httpx_does_not_log_requests_even_at_debug(connect, caplog) -> None:
    caplog.set_level(logging.DEBUG)

    await connect().get("/a", [("token", "visible-in-a-url")])

    assert "visible-in-a-url" not in caplog.text


async def test_closing_ends_requests_in_progress_and_refuses_new_ones(service, connect) -> None:
    service.replies["/hang"] = Reply(body=b"{}", delay=60)
    client = connect()
    hanging = asyncio.create_task(client.get("/hang"))
    while not service.seen:
        await asyncio.sleep(0)

    await client.close()
    await client.close()

    assert (await failure_of(hanging)).failure in (Failure.UNREACHABLE, Failure.TIMEOUT)
    assert (await failure_of(client.get("/a"))).failure is Failure.UNREACHABLE


@pytest.mark.parametrize(
    "url",
    [
        "",
        "api.example.com",
        "ftp://x",
        "https://",
        "https://user:pw-x@h",
        "https://h?x=1",
        "https://[bad",
        "https://h:99999",
    ],
)
def test_unusable_base_urls_are_refused_without_repeating_them(url) -> None:
    with pytest.raises(ValueError, match="base_url") as caught:
        checked_base_url(url)
    assert "pw-x" not in str(caught.value)


def test_unusable_proxies_are_refused_without_repeating_them() -> None:
    for text in ("socks5://user:pw-x@h", "user:pw-x", "http://[pw-x"):
        with pytest.raises(ValueError, match="proxy") as caught:
            checked_proxy(text)
        assert "pw-x" not in str(caught.value)


async def test_connections_that_are_not_needed_any_more_are_closed(service, connect, clock) -> None:
    service.replies["/slow"] = Reply(body=b"{}", delay=0.05)
    client = connect(concurrency=4)
    await asyncio.gather(*(client.get("/slow") for _ in range(4)))
    assert len(client._free) == 4
    for _ in range(3):
        clock.advance(timedelta(seconds=3))
        await client.get("/quick")
    assert len(client._free) == 1
    assert client.replaced == 0
