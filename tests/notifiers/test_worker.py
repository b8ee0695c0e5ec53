"""The worker: one thread per channel, left behind when it hangs, replaced, counted."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from watchdog.notifiers.worker import ChannelWorker


class Bench:
    """A worker whose handler blocks when asked to."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.entered = threading.Event()
        self.made_in: list[threading.Thread] = []
        self.late: list[str] = []
        self.worker: ChannelWorker[str, str] = ChannelWorker("channel-x", self._make, self.late.append)

    async def hanging(self) -> "asyncio.Future[str]":
        """Start a job that hangs and return once it is inside the handler."""
        self.entered.clear()
        future = self.worker.submit("hang")
        await asyncio.to_thread(self.entered.wait, 10)
        return future

    def _make(self) -> Callable[[str], str]:
        self.made_in.append(threading.current_thread())
        return self._handle

    def _handle(self, question: str) -> str:
        if question == "hang":
            self.entered.set()
            self.release.wait(30)
        if question == "fail":
            raise LookupError("no such thing")
        return question.upper()


@pytest.fixture
def bench() -> Any:
    bench = Bench()
    yield bench
    bench.release.set()
    bench.worker.close()


async def test_jobs_run_in_order_in_one_daemon_thread_with_one_handler(bench: Bench) -> None:
    answers = [await bench.worker.submit(word) for word in ("a", "b")]

    assert answers == ["A", "B"]
    (thread,) = bench.made_in
    assert (thread.daemon, thread.name) == (True, "channel-x")
    assert thread is not threading.current_thread()


async def test_no_thread_exists_before_the_first_job(bench: Bench) -> None:
    assert bench.made_in == []
    assert bench.worker.stuck == 0


async def test_an_exception_reaches_whoever_waits_and_the_thread_lives_on(bench: Bench) -> None:
    with pytest.raises(LookupError, match="no such thing"):
        await bench.worker.submit("fail")

    assert await bench.worker.submit("next") == "NEXT"
    assert len(bench.made_in) == 1


async def test_a_hanging_thread_is_left_behind_counted_and_replaced(bench: Bench) -> None:
    first = await bench.hanging()
    first.cancel()
    bench.worker.abandon()

    assert await bench.worker.submit("next") == "NEXT"
    assert bench.worker.stuck == 1
    assert len(bench.made_in) == 2  # a handler is never shared with a thread that may come back


async def test_a_thread_that_comes_back_is_counted_no_more_and_ends(bench: Bench) -> None:
    first = await bench.hanging()
    first.cancel()
    bench.worker.abandon()

    bench.release.set()
    await asyncio.to_thread(bench.made_in[0].join, 10)

    assert bench.worker.stuck == 0
    await asyncio.sleep(0)
    assert bench.late == ["HANG"]


async def test_closing_ends_an_idle_thread(bench: Bench) -> None:
    await bench.worker.submit("a")
    bench.worker.close()

    await asyncio.to_thread(bench.made_in[0].join, 10)

    assert not bench.made_in[0].is_alive()


def test_an_answer_after_the_loop_has_ended_disturbs_nobody(bench: Bench) -> None:
    async def start() -> None:
        await bench.hanging()

    asyncio.run(start())
    bench.worker.abandon()
    bench.release.set()
    bench.made_in[0].join(10)

    assert not bench.made_in[0].is_alive()
    assert bench.late == []
