"""Threads that may be left behind do what asyncio asks of an executor, and no more of them than allowed."""

import asyncio
import threading

import pytest

from watchdog.threads import LeavableThreads


async def test_it_answers_and_raises() -> None:
    threads = LeavableThreads()
    asyncio.get_running_loop().set_default_executor(threads)

    assert await asyncio.to_thread(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        await asyncio.to_thread(lambda: 1 / 0)
    assert await asyncio.to_thread(str, 3) == "3"


async def test_calls_run_beside_one_another_up_to_the_limit_and_the_others_after_them() -> None:
    threads = LeavableThreads(2)
    loop, go, began = asyncio.get_running_loop(), threading.Event(), threading.Semaphore(0)

    def work(number: int) -> tuple[int, str]:
        began.release()
        assert go.wait(60)
        return number, threading.current_thread().name

    answers = asyncio.gather(*(loop.run_in_executor(threads, work, number) for number in range(6)))
    await asyncio.to_thread(lambda: [began.acquire() for _ in range(2)])
    assert not began.acquire(blocking=False)
    go.set()

    found = await answers
    assert [number for number, _ in found] == list(range(6))
    assert {name for _, name in found} == {"aside-1", "aside-2"}


async def test_a_cancelled_call_that_has_not_begun_is_left_out() -> None:
    threads = LeavableThreads(1)
    loop, go, done = asyncio.get_running_loop(), threading.Event(), []
    first = loop.run_in_executor(threads, go.wait, 60)
    second = loop.run_in_executor(threads, done.append, "second")

    second.cancel()
    await asyncio.sleep(0)  # the loop passes it on in its next turn
    go.set()

    assert await first
    await loop.run_in_executor(threads, done.append, "third")
    assert done == ["third"]


def test_the_end_of_a_loop_does_not_wait_for_what_hangs() -> None:
    go = threading.Event()

    async def life() -> None:
        asyncio.get_running_loop().set_default_executor(LeavableThreads())
        asyncio.get_running_loop().run_in_executor(None, go.wait)
        await asyncio.sleep(0)

    asyncio.run(life())
    assert not go.is_set()
    go.set()
