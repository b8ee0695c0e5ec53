"""Shared by the notifier tests: a scripted HTTP server, SMTP servers, a hand-moved clock, messages."""

import asyncio
import functools
import json
import socket
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest
import requests.adapters

from watchdog.core.notifications import Message, MessageKind
from watchdog.core.rules import Severity
from watchdog.notifiers import recorder

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # aiosmtpd, on import only
    from aiosmtpd.controller import Controller
    from aiosmtpd.smtp import SMTP, AuthResult


@dataclass
class Reply:
    """One scripted answer. mode: answer, hang, drop (close unanswered) or break_off (half a body)."""

    status: int = 200
    body: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    mode: str = "answer"


@dataclass
class Seen:
    """One request the server got."""

    method: str
    path: str
    headers: dict[str, str]
    body: str

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Webhook:
    """A loopback HTTP server that plays a script, one reply a request; the last one repeats."""

    def __init__(self) -> None:
        self.script: list[Reply] = [Reply()]
        self.seen: list[Seen] = []
        self.got_request = threading.Event()
        self.release = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def url(self, schema: str = "json", rest: str = "/hook") -> str:
        return f"{schema}://127.0.0.1:{self.port}{rest}"

    def plays(self, *replies: Reply) -> None:
        self.script = list(replies)

    def stop(self) -> None:
        self.release.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(webhook) -> type[BaseHTTPRequestHandler]:  # noqa: N805
        class Handler(BaseHTTPRequestHandler):
            def _answer(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length).decode("utf-8", "replace")
                webhook.seen.append(Seen(self.command, self.path, dict(self.headers), body))
                reply = webhook.script.pop(0) if len(webhook.script) > 1 else webhook.script[0]
                webhook.got_request.set()
                self.close_connection = True
                if reply.mode == "hang":
                    webhook.release.wait(60)
                if reply.mode in ("hang", "drop"):
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                payload = reply.body.encode()
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                extra = 100 if reply.mode == "break_off" else 0
                self.send_header("Content-Length", str(len(payload) + extra))
                self.end_headers()
                self.wfile.write(payload)

            do_GET = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815

            def log_message(self, *args: object) -> None:
                pass

        return Handler


class HandClock:
    """A clock that moves only when told to."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
        self._passed = timedelta()
        self._sleepers: list[tuple[timedelta, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        return self.moment

    def monotonic(self) -> timedelta:
        return self._passed

    async def sleep(self, duration: timedelta) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._sleepers.append((self._passed + duration, waiter))
        await waiter

    def advance(self, duration: timedelta) -> None:
        self._passed += duration
        self.moment += duration
        for due, waiter in self._sleepers:
            if due <= self._passed and not waiter.done():
                waiter.set_result(None)


@pytest.fixture(autouse=True)
def _recorder_is_restored() -> Iterator[None]:
    yield
    recorder.uninstall()


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def reply() -> type[Reply]:
    return Reply


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    server = Webhook()
    yield server
    server.stop()


@pytest.fixture
def hosted(webhook: Webhook) -> Iterator[Webhook]:
    """The webhook server in the place of every host: requests are re-addressed below the recorder."""
    recorder.uninstall()
    original = requests.adapters.HTTPAdapter.send

    @functools.wraps(original)
    def send(adapter: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        here = request.copy()
        parts = urlsplit(here.url)
        here.url = urlunsplit(("http", f"127.0.0.1:{webhook.port}", parts.path, parts.query, ""))
        return original(adapter, here, *args, **kwargs)

    requests.adapters.HTTPAdapter.send = send  # type: ignore[method-assign,assignment]
    yield webhook
    recorder.uninstall()
    requests.adapters.HTTPAdapter.send = original  # type: ignore[method-assign]


@pytest.fixture
def message() -> Callable[..., Message]:
    def make(**changes: Any) -> Message:
        values: dict[str, Any] = {
            "title": "[critical] gpu-idle llama-70b",
            "body": "56 of 64 GPUs idle since 02:10\nincident k3x9q2mf",
            "severity": Severity.CRITICAL,
            "kind": MessageKind.FIRST,
            "incident": "k3x9q2mf",
            "dedup": "watchdog-k3x9q2mf",
        }
        return Message(**values | changes)

    return make


class MailHandler:
    """What an SMTP server answers; records the mails it took. Replies are used up, the last repeats."""

    def __init__(self) -> None:
        self.mails: list[bytes] = []
        self.rcpt = ["250 OK"]
        self.data = ["250 queued"]

    async def handle_RCPT(self, _server: Any, _session: Any, envelope: Any, address: str, _opts: Any) -> str:  # noqa: N802
        answer = self.rcpt.pop(0) if len(self.rcpt) > 1 else self.rcpt[0]
        if answer.startswith("2"):
            envelope.rcpt_tos.append(address)
        return answer

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802
        answer = self.data.pop(0) if len(self.data) > 1 else self.data[0]
        if answer.startswith("2"):
            self.mails.append(envelope.content)
        return answer


class _ClosingSMTP(SMTP):
    """aiosmtpd leaves a connection half open when the client hangs up without QUIT; close it."""

    def eof_received(self) -> bool:
        super().eof_received()
        return False


class _MailController(Controller):
    """A controller that waits for its clients to be gone before it stops."""

    def factory(self) -> SMTP:
        server = _ClosingSMTP(self.handler, **self.SMTP_kwargs)
        self.__dict__.setdefault("connections", []).append(server)
        return server

    def stop(self, no_assert: bool = False) -> None:
        asyncio.run_coroutine_threadsafe(self._drain(), self.loop).result(10)
        super().stop(no_assert)

    async def _drain(self) -> None:
        while any(server.transport is not None for server in self.__dict__.get("connections", ())):
            await asyncio.sleep(0.001)


@dataclass
class Mail:
    """A running SMTP server."""

    handler: MailHandler
    port: int

    def url(self, *, user: str = "", options: str = "") -> str:
        login = f"{user}@" if user else ""
        return (
            f"mailto://{login}127.0.0.1:{self.port}/?from=wd@example.test&to=ops@example.test"
            f"&mode=insecure{options}"
        )


@pytest.fixture
def mail_server() -> Iterator[Callable[..., Mail]]:
    """Start real SMTP servers; `password`: log-in is offered, and needs it."""
    with ExitStack() as stack:

        def start(*, password: str = "", **options: Any) -> Mail:
            def check(_server: Any, _session: Any, _envelope: Any, _mechanism: Any, data: Any) -> AuthResult:
                return AuthResult(success=data.password == password.encode(), handled=False)

            if password:
                options |= {"authenticator": check, "auth_require_tls": False}
            handler = MailHandler()
            controller = _MailController(handler, hostname="127.0.0.1", port=_free_port(), **options)
            controller.start()
            stack.callback(controller.stop)
            return Mail(handler, controller.port)

        yield start


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A TCP port that takes connections and never says anything."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield int(listener.getsockname()[1])


@pytest.fixture
def closed_port() -> int:
    """A TCP port where nobody listens."""
    return _free_port()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
