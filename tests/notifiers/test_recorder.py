"""The recorder: installs once, keeps contexts apart, passes everything through, keeps no secret."""

import contextlib
import contextvars
import smtplib
import ssl
import threading
from collections.abc import Callable
from typing import Any

import pytest
import requests
import requests.adapters
import urllib3

from watchdog.notifiers import recorder
from watchdog.notifiers.exchanges import Fault, HttpExchange, SmtpStep

FAKE_POOL = urllib3.HTTPConnectionPool("hooks.example")


def _expired_certificate() -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_message = "certificate has expired"
    return error


def _post(url: str, **options: Any) -> requests.Response:
    return requests.post(url, data="private text", timeout=5, **options)


def test_installing_twice_wraps_once_and_uninstalling_restores() -> None:
    before = requests.adapters.HTTPAdapter.send, smtplib.SMTP.getreply
    recorder.install()
    wrapped = requests.adapters.HTTPAdapter.send, smtplib.SMTP.getreply

    recorder.install()

    assert (requests.adapters.HTTPAdapter.send, smtplib.SMTP.getreply) == wrapped
    assert wrapped != before
    recorder.uninstall()
    assert (requests.adapters.HTTPAdapter.send, smtplib.SMTP.getreply) == before


def test_an_answer_is_recorded_and_still_delivered(webhook: Any, reply: Any) -> None:
    recorder.install()
    webhook.plays(reply(429, "slow down", {"Retry-After": "7", "Set-Cookie": "session=abc"}))

    with recorder.recording() as tape:
        response = _post(webhook.url("http", "/secret-path?key=abc"), headers={"Authorization": "Bearer abc"})

    assert (response.status_code, response.text) == (429, "slow down")
    (seen,) = tape.exchanges
    assert isinstance(seen, HttpExchange)
    assert (seen.method, seen.host, seen.status, seen.body) == ("POST", "127.0.0.1", 429, "slow down")
    assert seen.headers["retry-after"] == "7"
    for secret in ("abc", "secret-path", "private text"):
        assert secret not in repr(seen)


def test_only_the_beginning_of_a_body_is_kept(webhook: Any, reply: Any) -> None:
    recorder.install()
    webhook.plays(reply(200, "x" * 10_000))

    with recorder.recording() as tape:
        assert len(_post(webhook.url("http")).text) == 10_000

    assert len(tape.exchanges[0].body) == recorder.BODY_KEPT  # type: ignore[union-attr]


def test_a_streamed_body_is_left_alone(webhook: Any, reply: Any) -> None:
    recorder.install()
    webhook.plays(reply(200, "abc"))

    with recorder.recording() as tape, _post(webhook.url("http"), stream=True) as response:
        assert b"".join(response.iter_content(1)) == b"abc"

    assert tape.exchanges[0].body == ""  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("mode", "fault"), [("drop", Fault.DROPPED), ("break_off", Fault.DROPPED), ("hang", Fault.READ_TIMEOUT)]
)
def test_a_missing_answer_is_named_and_still_raised(
    mode: str, fault: Fault, webhook: Any, reply: Any
) -> None:
    recorder.install()
    webhook.plays(reply(200, "half", mode=mode))

    with recorder.recording() as tape, pytest.raises(requests.RequestException):
        requests.get(webhook.url("http"), timeout=(5, 0.05))

    assert tape.exchanges[0].fault is fault
    assert tape.exchanges[0].status == (200 if mode == "break_off" else 0)  # type: ignore[union-attr]


def test_outside_a_recording_nothing_is_kept(webhook: Any) -> None:
    recorder.install()
    with recorder.recording() as tape:
        pass

    _post(webhook.url("http"))

    assert tape.exchanges == []


@pytest.mark.parametrize(
    ("error", "fault", "detail"),
    [
        (
            requests.exceptions.SSLError(
                urllib3.exceptions.MaxRetryError(
                    FAKE_POOL, "/secret", urllib3.exceptions.SSLError(_expired_certificate())
                )
            ),
            Fault.TLS,
            "certificate has expired",
        ),
        (requests.exceptions.ConnectTimeout("/secret"), Fault.CONNECT_TIMEOUT, ""),
        (requests.exceptions.ProxyError("/secret"), Fault.PROXY, ""),
        (requests.exceptions.InvalidHeader("/secret"), Fault.OTHER, ""),
    ],
    ids=["certificate", "connect", "proxy", "other"],
)
def test_failures_are_named_without_the_url(
    error: Exception, fault: Fault, detail: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: object, **_options: object) -> requests.Response:
        raise error

    recorder.uninstall()
    monkeypatch.setattr(requests.adapters.HTTPAdapter, "send", fail)
    recorder.install()

    with recorder.recording() as tape, pytest.raises(requests.RequestException):
        _post("https://hooks.example/secret")
    recorder.uninstall()

    (seen,) = tape.exchanges
    assert isinstance(seen, HttpExchange)
    assert (seen.host, seen.fault, seen.detail) == ("hooks.example", fault, detail)
    assert "secret" not in repr(seen)


def test_a_proxy_that_is_down_is_told_apart(closed_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder.install()
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{closed_port}")

    with recorder.recording() as tape, pytest.raises(requests.exceptions.ProxyError):
        _post("http://hooks.example/x")

    assert tape.exchanges[0].fault is Fault.PROXY


def test_mail_outside_a_recording_is_untouched(mail_server: Callable[..., Any]) -> None:
    recorder.install()
    server = mail_server()

    with smtplib.SMTP("127.0.0.1", server.port, timeout=5) as client:
        client.sendmail("a@example.test", ["b@example.test"], "Subject: s\n\ntext")

    assert len(server.handler.mails) == 1


def test_threads_do_not_see_each_others_traffic(webhook: Any, reply: Any) -> None:
    recorder.install()
    webhook.plays(reply(200))
    tapes: dict[str, recorder.Tape] = {}

    def work(name: str) -> None:
        with recorder.recording() as tapes[name]:
            _post(webhook.url("http", f"/{name}"))

    threads = [threading.Thread(target=contextvars.Context().run, args=(work, name)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)

    assert [len(tape.exchanges) for tape in tapes.values()] == [1, 1, 1]


def test_a_mail_conversation_is_recorded_step_by_step(mail_server: Callable[..., Any]) -> None:
    recorder.install()
    server = mail_server()

    with recorder.recording() as tape, smtplib.SMTP("127.0.0.1", server.port, timeout=5) as client:
        client.sendmail("a@example.test", ["b@example.test"], "Subject: s\n\nprivate text")

    steps = [(step.verb, step.code) for step in tape.exchanges if isinstance(step, SmtpStep)]
    assert steps == [
        ("connect", 220),
        ("ehlo", 250),
        ("mail", 250),
        ("rcpt", 250),
        ("data", 354),
        ("body", 250),
        ("quit", 221),
    ]
    assert "private text" not in repr(tape.exchanges)


def test_a_log_in_leaves_no_password_on_the_tape(mail_server: Callable[..., Any]) -> None:
    recorder.install()
    server = mail_server(password="right-horse")

    with recorder.recording() as tape, smtplib.SMTP("127.0.0.1", server.port, timeout=5) as client:
        with contextlib.suppress(smtplib.SMTPAuthenticationError):
            client.login("ops", "wrong-horse")
        with contextlib.suppress(smtplib.SMTPAuthenticationError):
            client.auth("LOGIN", client.auth_login)

    verbs = {step.verb for step in tape.exchanges if isinstance(step, SmtpStep)}
    assert verbs == {"connect", "ehlo", "auth", "quit"}
    shown = repr(tape.exchanges)
    for secret in ("wrong-horse", "d3JvbmctaG9yc2U", "b3Bz"):
        assert secret not in shown


def test_a_silent_mail_server_is_named(silent_port: int) -> None:
    recorder.install()

    with recorder.recording() as tape, pytest.raises(OSError, match="timed out"):
        smtplib.SMTP("127.0.0.1", silent_port, timeout=0.05)

    (step,) = tape.exchanges
    assert (step.fault, step.verb) == (Fault.READ_TIMEOUT, "connect")  # type: ignore[union-attr]


def test_an_unknown_mail_host_is_named() -> None:
    recorder.install()

    with recorder.recording() as tape, pytest.raises(OSError, match=r"not known|resolution"):
        smtplib.SMTP("nowhere.invalid", 25, timeout=5)

    assert tape.exchanges[0].fault is Fault.RESOLVE
