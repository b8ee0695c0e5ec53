"""The recorder: sees what a provider really answered, whatever Apprise makes of it.

Wraps `requests.adapters.HTTPAdapter.send` and five methods of `smtplib.SMTP`, once per process. Outside of
`recording()` the wrappers only pass through; inside, what happens in that context lands on its tape.
Judges nothing. Never keeps a request's path, headers or body: they hold tokens and the message.
"""

import functools
import smtplib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import requests
import requests.adapters
import urllib3.exceptions

from watchdog.notifiers.exchanges import Exchange, Fault, HttpExchange, SmtpStep

BODY_KEPT = 4096  # bytes
_HEADERS = ("content-type", "date", "location", "retry-after", "x-ratelimit-reset-after")
_VERBS = frozenset({"auth", "data", "ehlo", "helo", "mail", "noop", "quit", "rcpt", "rset", "starttls"})
_SMTP_METHODS = ("connect", "starttls", "login", "putcmd", "getreply")


@dataclass(slots=True)
class Tape:
    """What one context has seen so far."""

    exchanges: list[Exchange] = field(default_factory=list)
    host: str = ""  # of the open SMTP connection
    pending: str = ""  # SMTP command that waits for its reply


_tape: ContextVar[Tape | None] = ContextVar("watchdog_delivery_tape", default=None)
_lock = threading.Lock()
_originals: dict[tuple[type, str], Any] = {}


@contextmanager
def recording() -> Iterator[Tape]:
    """Record what this context sends until the block ends (needs `install`)."""
    tape = Tape()
    token = _tape.set(tape)
    try:
        yield tape
    finally:
        _tape.reset(token)


def install() -> None:
    """Put the wrappers in place; doing it again changes nothing."""
    with _lock:
        if _originals:
            return
        _wrap(requests.adapters.HTTPAdapter, "send", _http_send)
        for method in _SMTP_METHODS:
            _wrap(smtplib.SMTP, method, _SMTP_WRAPPERS[method])


def uninstall() -> None:
    """Put the original methods back (for tests)."""
    with _lock:
        for (owner, name), original in _originals.items():
            setattr(owner, name, original)
        _originals.clear()


def _wrap(owner: type, name: str, wrapper: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    original = getattr(owner, name)
    _originals[owner, name] = original
    setattr(owner, name, functools.wraps(original)(wrapper(original)))


# --- HTTP


def _http_send(original: Callable[..., Any]) -> Callable[..., Any]:
    def send(
        adapter: Any, request: requests.PreparedRequest, stream: bool = False, *args: Any, **kwargs: Any
    ) -> requests.Response:
        tape = _tape.get()
        if tape is None:
            return _response(original(adapter, request, stream, *args, **kwargs))
        response: requests.Response | None = None
        try:
            response = _response(original(adapter, request, stream, *args, **kwargs))
            body = b"" if stream else response.content[:BODY_KEPT]
        except Exception as error:
            tape.exchanges.append(_exchange(request, response, b"", error))
            raise
        tape.exchanges.append(_exchange(request, response, body, None))
        return response

    return send


def _response(answer: Any) -> requests.Response:
    assert isinstance(answer, requests.Response)
    return answer


def _exchange(
    request: requests.PreparedRequest,
    response: requests.Response | None,
    body: bytes,
    error: Exception | None,
) -> HttpExchange:
    headers = response.headers if response is not None else {}
    fault, detail = _classify(error) if error is not None else (None, "")
    return HttpExchange(
        method=request.method or "",
        host=urlsplit(str(request.url)).hostname or "",
        status=response.status_code if response is not None else 0,
        headers={name: str(headers[name]) for name in _HEADERS if name in headers},
        body=body.decode("utf-8", "replace"),
        fault=fault,
        detail=detail,
    )


_FAULTS: tuple[tuple[type[BaseException], Fault], ...] = (  # the first that fits, innermost causes first
    (socket.gaierror, Fault.RESOLVE),
    (urllib3.exceptions.NameResolutionError, Fault.RESOLVE),
    (requests.exceptions.ConnectTimeout, Fault.CONNECT_TIMEOUT),
    (requests.exceptions.ProxyError, Fault.PROXY),
    (requests.exceptions.SSLError, Fault.TLS),
    (ssl.SSLError, Fault.TLS),
    (requests.exceptions.ReadTimeout, Fault.READ_TIMEOUT),
    (urllib3.exceptions.ReadTimeoutError, Fault.READ_TIMEOUT),
    (urllib3.exceptions.NewConnectionError, Fault.CONNECT),
    (urllib3.exceptions.ProtocolError, Fault.DROPPED),
    (requests.exceptions.ChunkedEncodingError, Fault.DROPPED),
)


def _classify(error: BaseException) -> tuple[Fault, str]:
    """Name a failed request, with the innermost reason that holds no URL."""
    chain = list(_chain(error))
    fault = next(
        (fault for kind, fault in _FAULTS if any(isinstance(link, kind) for link in chain)), Fault.OTHER
    )
    return fault, next((text for text in map(_reason, chain) if text), "")


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception, what it carries and what caused it."""
    waiting, seen = [error], set[int]()
    while waiting:
        link = waiting.pop(0)
        if id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        inner = (getattr(link, "reason", None), link.__cause__, link.__context__, *link.args)
        waiting += [item for item in inner if isinstance(item, BaseException)]


def _reason(error: BaseException) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ssl.SSLError):
        return error.reason or ""
    if isinstance(error, OSError) and not isinstance(error, requests.RequestException):
        return error.strerror or ""
    return ""


# --- SMTP


def _connect(original: Callable[..., Any]) -> Callable[..., Any]:
    def connect(server: Any, host: str = "localhost", *args: Any, **kwargs: Any) -> Any:
        tape = _tape.get()
        if tape is None:
            return original(server, host, *args, **kwargs)
        tape.host, tape.pending = host, "connect"
        return _watched(tape, "connect", functools.partial(original, server, host, *args, **kwargs))

    return connect


def _stage(verb: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Wrap a method that can fail by itself, besides what its replies say."""

    def wrapper(original: Callable[..., Any]) -> Callable[..., Any]:
        def stage(server: Any, *args: Any, **kwargs: Any) -> Any:
            tape = _tape.get()
            call = functools.partial(original, server, *args, **kwargs)
            return call() if tape is None else _watched(tape, verb, call)

        return stage

    return wrapper


def _putcmd(original: Callable[..., Any]) -> Callable[..., Any]:
    def putcmd(server: Any, cmd: str, *args: Any, **kwargs: Any) -> Any:
        tape = _tape.get()
        call = functools.partial(original, server, cmd, *args, **kwargs)
        if tape is None:
            return call()
        # An answer to an AUTH challenge is sent like a command; it is a password.
        tape.pending = cmd.lower() if cmd.lower() in _VERBS else "auth"
        return _watched(tape, tape.pending, call)

    return putcmd


def _getreply(original: Callable[..., Any]) -> Callable[..., Any]:
    def getreply(server: Any) -> Any:
        tape = _tape.get()
        if tape is None:
            return original(server)
        verb, tape.pending = tape.pending or "body", ""
        code, text = _watched(tape, verb, functools.partial(original, server))
        tape.exchanges.append(
            SmtpStep(verb=verb, host=tape.host, code=code, text=text[:BODY_KEPT].decode("utf-8", "replace"))
        )
        return code, text

    return getreply


_SMTP_WRAPPERS: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "connect": _connect,
    "starttls": _stage("starttls"),
    "login": _stage("auth"),
    "putcmd": _putcmd,
    "getreply": _getreply,
}


def _watched(tape: Tape, verb: str, call: Callable[[], Any]) -> Any:
    """Run a step; record its failure, unless a reply or an inner step has already told of it."""
    before = len(tape.exchanges)
    try:
        return call()
    except Exception as error:
        told = tape.exchanges[before:]
        refused = any(isinstance(step, SmtpStep) and (step.fault or step.code >= 400) for step in told)
        if not refused:
            fault, text = _classify_smtp(verb, error)
            tape.exchanges.append(SmtpStep(verb=verb, host=tape.host, text=text, fault=fault))
        raise


def _classify_smtp(verb: str, error: BaseException) -> tuple[Fault, str]:
    if isinstance(error, smtplib.SMTPNotSupportedError):
        return Fault.UNSUPPORTED, str(error)
    if verb == "auth" and type(error) is smtplib.SMTPException:
        return Fault.UNSUPPORTED, str(error)
    chain = list(_chain(error))
    if any(isinstance(link, TimeoutError) for link in chain):
        return (Fault.CONNECT_TIMEOUT if isinstance(error, TimeoutError) else Fault.READ_TIMEOUT), ""
    fault, text = _classify(error)
    if fault is not Fault.OTHER:
        return fault, text
    return (Fault.CONNECT if verb == "connect" and isinstance(error, OSError) else Fault.DROPPED), text
