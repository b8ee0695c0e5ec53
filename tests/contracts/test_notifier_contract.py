"""The Notifier port's contract, held against every implementation, and the table of HTTP statuses."""

import asyncio
import io
import threading
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from watchdog.core.notifications import Answer, ChannelLimits, DeliveryResult, Message, MessageKind
from watchdog.core.rules import Severity
from watchdog.notifiers import recorder
from watchdog.notifiers.apprise import AppriseNotifier
from watchdog.notifiers.console import ConsoleNotifier
from watchdog.ports import Notifier


class NoWaiting:
    """A clock on which nothing is ever due."""

    def now(self) -> datetime:
        return datetime(2026, 11, 30, tzinfo=UTC)

    def monotonic(self) -> timedelta:
        return timedelta()

    async def sleep(self, _duration: timedelta) -> None:
        await asyncio.get_running_loop().create_future()


class Endpoint:
    """A loopback web service that answers every request with one status."""

    def __init__(self) -> None:
        self.status = 200
        self.headers: dict[str, str] = {}
        self.requests = 0
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    def _handler(endpoint) -> type[BaseHTTPRequestHandler]:  # noqa: N805
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                endpoint.requests += 1
                self.send_response(endpoint.status)
                for name, value in {**endpoint.headers, "Content-Length": "0"}.items():
                    self.send_header(name, value)
                self.end_headers()

            def log_message(self, *_args: object) -> None:
                pass

        return Handler

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    endpoint = Endpoint()
    yield endpoint
    endpoint.stop()
    recorder.uninstall()


@pytest.fixture(params=["console", "json", "form", "xml", "gotify", "mmost", "ntfy"])
async def notifier(request: pytest.FixtureRequest, endpoint: Endpoint) -> AsyncIterator[Notifier]:
    made: Notifier
    if request.param == "console":
        stream = io.StringIO()
        made = ConsoleNotifier("it", NoWaiting(), stream=lambda: stream)
    else:
        path = {"gotify": "/Az.token0123456", "mmost": "/hooktoken0123456789", "ntfy": "/topic"}
        address = f"127.0.0.1:{endpoint.server.server_address[1]}{path.get(request.param, '/path')}"
        made = AppriseNotifier("it", f"{request.param}://{address}", NoWaiting())
    yield made
    await made.close()


def _message(**changes: str) -> Message:
    texts = {"title": "title", "body": "body", "incident": "k3x9q2mf", "dedup": "d-k3x9q2mf"} | changes
    return Message(severity=Severity.WARNING, kind=MessageKind.FIRST, **texts)


async def test_it_has_a_name_and_limits(notifier: Notifier) -> None:
    assert notifier.name == "it"
    assert isinstance(notifier.limits, ChannelLimits)
    assert notifier.limits.body > 0


async def test_an_accepted_message_is_ok(notifier: Notifier) -> None:
    result = await notifier.send(_message())

    assert isinstance(result, DeliveryResult)
    assert result.answer is Answer.OK
    assert result.retry_after is None
    assert result.detail


@pytest.mark.parametrize(
    "changes",
    [
        {"body": ""},
        {"title": ""},
        {"body": "\x00\x1b[31m \ud83d 显存 %s {x} $HOME ${X}"},
        {"title": "two\r\nlines: injected"},
        {"dedup": ""},
    ],
    ids=["no body", "no title", "odd characters", "header injection", "no key"],
)
async def test_odd_messages_are_sent_and_raise_nothing(notifier: Notifier, changes: dict[str, str]) -> None:
    assert (await notifier.send(_message(**changes))).answer is Answer.OK


async def test_concurrent_sends_all_get_their_answer(notifier: Notifier) -> None:
    results = await asyncio.gather(*(notifier.send(_message(body=str(number))) for number in range(5)))

    assert [result.answer for result in results] == [Answer.OK] * 5


async def test_the_loop_runs_on_while_it_sends(notifier: Notifier) -> None:
    sending = asyncio.ensure_future(notifier.send(_message()))
    turns = 0
    while not sending.done():
        await asyncio.sleep(0)
        turns += 1

    assert turns > 1


async def test_after_close_it_answers_and_close_may_be_repeated(notifier: Notifier) -> None:
    await notifier.send(_message())
    await notifier.close()
    await notifier.close()

    assert (await notifier.send(_message())).answer is not Answer.OK


RETRIED = (408, 425, 429, 500, 502, 503, 504)
REFUSED = (301, 302, 400, 401, 403, 404, 405, 410, 422)


@pytest.fixture
def post(endpoint: Endpoint) -> AppriseNotifier:
    return AppriseNotifier("it", f"json://127.0.0.1:{endpoint.server.server_address[1]}/x", NoWaiting())


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        *((status, Answer.OK) for status in (200, 201, 202, 204)),
        *((status, Answer.RETRY) for status in RETRIED),
        *((status, Answer.PERMANENT) for status in REFUSED),
        (413, Answer.TOO_LONG),
    ],
)
async def test_for_each_http_status_whether_to_try_again(
    status: int, answer: Answer, endpoint: Endpoint, post: AppriseNotifier
) -> None:
    endpoint.status, endpoint.headers = status, {"Retry-After": "30", "Location": "/elsewhere"}

    result = await post.send(_message())
    await post.close()

    assert (result.answer, result.code, endpoint.requests) == (answer, str(status), 1)
    assert result.retry_after == (timedelta(seconds=30) if answer is Answer.RETRY else None)
