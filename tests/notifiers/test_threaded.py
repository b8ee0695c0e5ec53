"""The threaded notifier: deadlines on the Clock port, stuck sends, and never an exception."""

import asyncio
import logging
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from watchdog.core.notifications import Answer, ChannelLimits, DeliveryResult, Message
from watchdog.core.redaction import Redactor
from watchdog.notifiers.threaded import MAX_STUCK, ThreadedNotifier

Make = Callable[..., Message]
MINUTE = timedelta(minutes=1)


class Provider:
    """A blocking sender under the test's control."""

    def __init__(self) -> None:
        self.hangs = False
        self.error: Exception | None = None
        self.entered = threading.Semaphore(0)
        self.release = threading.Event()
        self.bodies: list[str] = []

    def __call__(self, message: Message) -> DeliveryResult:
        self.bodies.append(message.body)
        self.entered.release()
        if self.hangs:
            self.release.wait(30)
        if self.error:
            raise self.error
        return DeliveryResult(answer=Answer.OK, detail="taken")

    async def reached(self) -> None:
        await asyncio.to_thread(self.entered.acquire, True, 10)


@pytest.fixture
def provider() -> Any:
    provider = Provider()
    yield provider
    provider.release.set()


@pytest.fixture
async def channel(provider: Provider, clock: Any) -> Any:
    redactor = Redactor(["s3cret-token"])
    notifier = ThreadedNotifier("team", ChannelLimits(), clock, lambda: provider, redactor=redactor)
    yield notifier
    await notifier.close()


async def _hang(
    channel: ThreadedNotifier, provider: Provider, clock: Any, message: Message
) -> DeliveryResult:
    sending = asyncio.create_task(channel.send(message))
    await provider.reached()
    clock.advance(MINUTE)
    return await sending


async def test_the_senders_answer_is_the_answer(channel: ThreadedNotifier, message: Make) -> None:
    assert await channel.send(message()) == DeliveryResult(answer=Answer.OK, detail="taken")


async def test_no_answer_by_the_deadline_is_unknown(
    channel: ThreadedNotifier, provider: Provider, clock: Any, message: Make
) -> None:
    provider.hangs = True
    sending = asyncio.create_task(channel.send(message()))
    await provider.reached()

    clock.advance(timedelta(seconds=59))
    await asyncio.sleep(0)
    assert not sending.done()
    clock.advance(timedelta(seconds=1))

    assert await sending == DeliveryResult(
        answer=Answer.UNKNOWN, detail="no answer in 60 s; it may have arrived"
    )
    assert (channel.stuck, channel.abandoned) == (1, 1)


async def test_the_next_send_does_not_wait_for_the_stuck_one(
    channel: ThreadedNotifier, provider: Provider, clock: Any, message: Make
) -> None:
    provider.hangs = True
    await _hang(channel, provider, clock, message())
    provider.hangs = False

    assert (await channel.send(message())).answer is Answer.OK


async def test_with_too_many_stuck_sends_nothing_more_is_tried(
    channel: ThreadedNotifier, provider: Provider, clock: Any, message: Make
) -> None:
    provider.hangs = True
    for _ in range(MAX_STUCK):
        assert (await _hang(channel, provider, clock, message())).answer is Answer.UNKNOWN

    result = await channel.send(message())

    assert result == DeliveryResult(
        answer=Answer.RETRY, detail=f"not tried: {MAX_STUCK} earlier sends are still hanging"
    )
    assert len(provider.bodies) == MAX_STUCK


async def test_a_late_answer_is_only_logged(
    channel: ThreadedNotifier,
    provider: Provider,
    clock: Any,
    message: Make,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    provider.hangs = True
    assert (await _hang(channel, provider, clock, message())).answer is Answer.UNKNOWN

    provider.release.set()
    while channel.stuck:
        await asyncio.sleep(0)
    await asyncio.sleep(0)

    assert "abandoned send ended channel=team answer=ok detail=taken" in caplog.text


async def test_sends_of_one_channel_take_turns(
    channel: ThreadedNotifier, provider: Provider, message: Make
) -> None:
    await asyncio.gather(*(channel.send(message(body=str(number))) for number in range(4)))

    assert provider.bodies == ["0", "1", "2", "3"]


async def test_waiting_for_its_turn_does_not_use_up_a_sends_deadline(
    channel: ThreadedNotifier, provider: Provider, clock: Any, message: Make
) -> None:
    provider.hangs = True
    first = asyncio.create_task(channel.send(message(body="first")))
    second = asyncio.create_task(channel.send(message(body="second")))
    await provider.reached()

    provider.hangs = False
    clock.advance(MINUTE)

    assert (await first).answer is Answer.UNKNOWN
    assert (await second).answer is Answer.OK


async def test_a_cancelled_send_leaves_its_thread_behind(
    channel: ThreadedNotifier, provider: Provider, message: Make
) -> None:
    provider.hangs = True
    sending = asyncio.create_task(channel.send(message()))
    await provider.reached()

    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending

    assert channel.stuck == 1
    provider.hangs = False
    assert (await channel.send(message())).answer is Answer.OK


async def test_an_exception_becomes_an_answer_without_secrets(
    channel: ThreadedNotifier, provider: Provider, message: Make
) -> None:
    provider.error = KeyError("s3cret-token")

    result = await channel.send(message())

    assert result.answer is Answer.UNKNOWN
    assert result.detail == "sending failed unexpectedly: KeyError: '****'"


async def test_when_no_thread_can_be_started_nothing_was_sent(
    channel: ThreadedNotifier, message: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        result = await channel.send(message())

    assert result == DeliveryResult(answer=Answer.RETRY, detail="not tried: can't start new thread")


async def test_a_closed_channel_sends_nothing(
    channel: ThreadedNotifier, provider: Provider, message: Make
) -> None:
    await channel.close()

    assert (await channel.send(message())).answer is Answer.RETRY
    assert provider.bodies == []
