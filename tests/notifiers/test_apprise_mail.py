"""Mail through a real SMTP server: greylisting, refusals, log-in, servers that never speak."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from watchdog.core.notifications import Answer, Message
from watchdog.notifiers.apprise import AppriseNotifier

Make = Callable[..., Message]


@pytest.fixture
async def channel(clock: Any) -> Any:
    """Make channels that are closed at the end."""
    made: list[AppriseNotifier] = []

    def make(url: str) -> AppriseNotifier:
        made.append(AppriseNotifier("mail", url, clock))
        return made[-1]

    yield make
    for notifier in made:
        await notifier.close()


async def test_a_mail_arrives_as_plain_text(channel: Any, mail_server: Any, message: Make) -> None:
    server = mail_server()

    result = await channel(server.url(options="&format=html")).send(message(body="<b> 3*4*5"))

    assert (result.answer, result.code) == (Answer.OK, "SMTP 250")
    (mail,) = server.handler.mails
    assert b"Subject: [critical] gpu-idle llama-70b" in mail
    assert b"<b> 3*4*5" in mail
    assert b"text/html" not in mail


async def test_greylisting_is_tried_again_and_delivered_once(
    channel: Any, mail_server: Any, message: Make
) -> None:
    server = mail_server()
    server.handler.rcpt = ["451 4.7.1 greylisted, try again later", "250 OK"]
    mail = channel(server.url())

    first, second = await mail.send(message()), await mail.send(message())

    assert (first.answer, first.code) == (Answer.RETRY, "SMTP 451")
    assert "greylisted, try again later" in first.detail
    assert second.answer is Answer.OK
    assert len(server.handler.mails) == 1


@pytest.mark.parametrize(
    ("rcpt", "data", "answer", "code"),
    [
        ("550 5.1.1 no such user", "250 OK", Answer.PERMANENT, "SMTP 550"),
        ("250 OK", "552 5.3.4 message too big", Answer.TOO_LONG, "SMTP 552"),
        ("250 OK", "554 5.7.1 looks like spam", Answer.PERMANENT, "SMTP 554"),
        ("250 OK", "452 4.3.1 disk full", Answer.RETRY, "SMTP 452"),
    ],
)
async def test_refusals_carry_code_and_text(
    rcpt: str, data: str, answer: Answer, code: str, channel: Any, mail_server: Any, message: Make
) -> None:
    server = mail_server()
    server.handler.rcpt, server.handler.data = [rcpt], [data]

    result = await channel(server.url()).send(message())

    assert (result.answer, result.code) == (answer, code)
    assert (data if rcpt.startswith("250") else rcpt) in result.detail
    assert server.handler.mails == []


async def test_a_server_with_a_small_size_limit_says_too_long(
    channel: Any, mail_server: Any, message: Make
) -> None:
    server = mail_server(data_size_limit=2000)

    result = await channel(server.url()).send(message(body="x" * 4000))

    assert (result.answer, result.code) == (Answer.TOO_LONG, "SMTP 552")


async def test_a_wrong_password_is_permanent_and_not_shown(
    channel: Any, mail_server: Any, message: Make
) -> None:
    server = mail_server(password="right-horse")

    wrong = await channel(server.url(user="ops:wrong-horse")).send(message())
    right = await channel(server.url(user="ops:right-horse")).send(message())

    assert (wrong.answer, wrong.code) == (Answer.PERMANENT, "SMTP 535")
    assert "wrong-horse" not in repr(wrong)
    assert right.answer is Answer.OK


async def test_a_server_that_offers_no_starttls_is_permanent(
    channel: Any, mail_server: Any, message: Make
) -> None:
    url = mail_server().url().replace("mailto", "mailtos").replace("mode=insecure", "mode=starttls")

    result = await channel(url).send(message())

    assert result.answer is Answer.PERMANENT
    assert "STARTTLS" in result.detail


async def test_two_recipients_of_whom_one_is_refused_are_no_success(
    channel: Any, mail_server: Any, message: Make
) -> None:
    server = mail_server()
    server.handler.rcpt = ["250 OK", "550 no such user"]
    url = server.url().replace("to=ops@example.test", "to=ops@example.test,dev@example.test")

    result = await channel(url).send(message())

    assert result.answer is Answer.PERMANENT
    assert "not all" in result.detail
    assert len(server.handler.mails) == 1


async def test_nobody_listening_is_tried_again(channel: Any, closed_port: int, message: Make) -> None:
    url = f"mailto://127.0.0.1:{closed_port}/?from=wd@example.test&to=ops@example.test&mode=insecure"

    result = await channel(url).send(message())

    assert result.answer is Answer.RETRY
    assert "Connection refused" in result.detail


async def test_a_silent_server_ends_at_its_time_out_before_anything_was_sent(
    channel: Any, silent_port: int, message: Make
) -> None:
    url = f"mailto://127.0.0.1:{silent_port}/?from=wd@example.test&to=ops@example.test&mode=insecure&cto=0.05"

    result = await channel(url).send(message())

    assert result.answer is Answer.RETRY
    assert "no answer in time" in result.detail


async def test_a_hanging_mail_server_delays_no_other_channel(
    clock: Any, silent_port: int, webhook: Any, message: Make
) -> None:
    url = f"mailto://127.0.0.1:{silent_port}/?from=wd@example.test&to=ops@example.test&mode=insecure"
    mail = AppriseNotifier("mail", url, clock)
    chat = AppriseNotifier("chat", webhook.url(), clock)

    hanging = asyncio.create_task(mail.send(message()))
    told = await chat.send(message())

    assert told.answer is Answer.OK
    assert not hanging.done()
    clock.advance(timedelta(seconds=60))
    assert (await hanging).answer is Answer.UNKNOWN
    assert (mail.stuck, mail.abandoned) == (1, 1)
    await mail.close()
    await chat.close()
