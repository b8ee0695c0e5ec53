"""A channel whose sending blocks: the Notifier port on top of a `ChannelWorker`.

Owns the deadline, the queueing of concurrent sends, and what is answered when a send hangs. How a message
is sent is the sender's business; it runs in the channel's thread and answers with a result.
"""

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta

from watchdog.core.notifications import Answer, ChannelLimits, DeliveryResult, Message
from watchdog.core.redaction import Redactor
from watchdog.notifiers.worker import ChannelWorker
from watchdog.ports import Clock

DEADLINE = timedelta(seconds=60)
MAX_STUCK = 3  # threads of one channel that may hang at a time

Sender = Callable[[Message], DeliveryResult]

_log = logging.getLogger(__name__)


class ThreadedNotifier:
    """One channel with its own thread; implements `ports.Notifier`.

    make_sender: builds the blocking sender, called in the thread. redactor: masks what exceptions say.
    """

    def __init__(
        self,
        name: str,
        limits: ChannelLimits,
        clock: Clock,
        make_sender: Callable[[], Sender],
        *,
        redactor: Redactor | None = None,
        deadline: timedelta = DEADLINE,
    ) -> None:
        self.name = name
        self.limits = limits
        self.abandoned = 0  # sends given up at their deadline, since the start
        self._clock = clock
        self._deadline = deadline
        self._redactor = redactor or Redactor()
        self._worker = ChannelWorker(f"channel-{name}", make_sender, self._late)
        self._turn = asyncio.Lock()
        self._closed = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r})"

    @property
    def stuck(self) -> int:
        """How many abandoned sends are still hanging in their threads."""
        return self._worker.stuck

    async def send(self, message: Message) -> DeliveryResult:
        """Send and wait for the true answer, at most until the deadline. Never raises."""
        async with self._turn:
            if self._closed:
                return DeliveryResult(answer=Answer.RETRY, detail="the channel is closed")
            if (stuck := self.stuck) >= MAX_STUCK:
                return DeliveryResult(
                    answer=Answer.RETRY, detail=f"not tried: {stuck} earlier sends are still hanging"
                )
            return await self._send(message)

    async def close(self) -> None:
        """Stop; a send in progress is left behind."""
        self._closed = True
        self._worker.close()

    async def _send(self, message: Message) -> DeliveryResult:
        try:
            answer = self._worker.submit(message)
        except RuntimeError as refusal:  # no more threads
            return DeliveryResult(answer=Answer.RETRY, detail=f"not tried: {refusal}")
        alarm = asyncio.ensure_future(self._clock.sleep(self._deadline))
        try:
            await asyncio.wait((answer, alarm), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._abandon(answer)
            raise
        finally:
            alarm.cancel()
        if not answer.done():
            self._abandon(answer)
            return DeliveryResult(
                answer=Answer.UNKNOWN,
                detail=f"no answer in {self._deadline.total_seconds():g} s; it may have arrived",
            )
        error = answer.exception()
        return self._failed(error) if error is not None else answer.result()

    def _abandon(self, answer: "asyncio.Future[DeliveryResult]") -> None:
        if answer.done():
            return
        self.abandoned += 1
        answer.cancel()
        self._worker.abandon()
        _log.warning("send abandoned channel=%s hanging=%d", self.name, self.stuck)

    def _failed(self, error: BaseException) -> DeliveryResult:
        text = self._redactor.mask(f"{type(error).__name__}: {error}")
        return DeliveryResult(answer=Answer.UNKNOWN, detail=f"sending failed unexpectedly: {text}")

    def _late(self, result: DeliveryResult) -> None:
        # Not delivered to anybody: the outbox has moved on, and the next attempt is marked as a repeat.
        _log.info(
            "abandoned send ended channel=%s answer=%s detail=%s", self.name, result.answer, result.detail
        )
