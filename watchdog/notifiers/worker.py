"""One daemon thread per channel, in which blocking senders run one job at a time.

Owns the hand-over between the event loop and the thread, and what happens to a thread that never comes
back: it is left behind, counted while it hangs, and replaced. Python does not wait for daemon threads at
exit, so a hanging provider cannot keep the process alive. Knows nothing of messages.
"""

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Generic, TypeVar

Question = TypeVar("Question")
Reply = TypeVar("Reply")


class ChannelWorker(Generic[Question, Reply]):
    """Hands jobs to a thread that makes its own handler and is the only one ever to touch it.

    name: of the threads. make: builds a handler, called in the thread before its first job. late: told, in
    the event loop, of a reply that came after its job was abandoned.
    """

    def __init__(
        self,
        name: str,
        make: Callable[[], Callable[[Question], Reply]],
        late: Callable[[Reply], None],
    ) -> None:
        self._name = name
        self._make = make
        self._late = late
        self._lane: _Lane[Question, Reply] | None = None
        self._left_behind: list[threading.Thread] = []

    def submit(self, question: Question) -> "asyncio.Future[Reply]":
        """Start a job and return its future, which gets the handler's reply or exception."""
        if self._lane is None:
            self._lane = _Lane(self._name, self._make)
        loop = asyncio.get_running_loop()
        job = _Job(question, loop, loop.create_future(), self._late)
        self._lane.jobs.put(job)
        return job.future

    def abandon(self) -> None:
        """Leave the thread behind with whatever it is doing; the next job gets a new one."""
        if self._lane is None:
            return
        self._lane.jobs.put(None)  # it ends as soon as it comes back
        self._left_behind = [*self._alive(), self._lane.thread]
        self._lane = None

    @property
    def stuck(self) -> int:
        """How many abandoned threads have not come back."""
        self._left_behind = self._alive()
        return len(self._left_behind)

    def close(self) -> None:
        """Let the thread end after the job it is at; does not wait for it."""
        if self._lane is not None:
            self._lane.jobs.put(None)
            self._lane = None

    def _alive(self) -> list[threading.Thread]:
        return [thread for thread in self._left_behind if thread.is_alive()]


class _Job(Generic[Question, Reply]):
    """One question on its way to the thread and back."""

    __slots__ = ("_late", "_loop", "future", "question")

    def __init__(
        self,
        question: Question,
        loop: asyncio.AbstractEventLoop,
        future: "asyncio.Future[Reply]",
        late: Callable[[Reply], None],
    ) -> None:
        self.question = question
        self.future = future
        self._loop = loop
        self._late = late

    def reply(self, reply: Reply) -> None:
        """Take the handler's reply to the event loop."""
        self._post(lambda: self._late(reply) if self.future.done() else self.future.set_result(reply))

    def fail(self, error: BaseException) -> None:
        """Take the handler's exception to the event loop."""
        self._post(lambda: None if self.future.done() else self.future.set_exception(error))

    def _post(self, settle: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(settle)
        except RuntimeError:
            return  # the loop is closed: nobody waits any more


class _Lane(Generic[Question, Reply]):
    """A running thread and the queue it reads."""

    __slots__ = ("jobs", "thread")

    def __init__(self, name: str, make: Callable[[], Callable[[Question], Reply]]) -> None:
        self.jobs: SimpleQueue[_Job[Question, Reply] | None] = SimpleQueue()
        self.thread = threading.Thread(target=_run, args=(self.jobs, make), name=name, daemon=True)
        self.thread.start()


def _run(
    jobs: "SimpleQueue[_Job[Question, Reply] | None]", make: Callable[[], Callable[[Question], Reply]]
) -> None:
    handler: Callable[[Question], Reply] | None = None
    while (job := jobs.get()) is not None:
        try:
            handler = handler or make()
            reply = handler(job.question)
        except Exception as error:  # noqa: BLE001 - handlers call foreign libraries; the waiter judges it
            job.fail(error)
        else:
            job.reply(reply)
