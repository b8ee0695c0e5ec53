"""The threads beside the event loop: the store's, which is waited for, and those that may be left behind.

Python joins the threads of its own executors at the end of a process, however long they take. A name
server that does not answer, or a file on a share that is gone, must not keep a daemon that was told to stop.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")

MOST = 8  # at a time; as asyncio's own executor has on a small machine


class StoreThread:
    """Runs blocking calls (the store's) on one thread. A call that has begun is never abandoned."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store")

    async def __call__(self, call: Callable[[], T]) -> T:
        """Run a call; its exception is raised here."""
        return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._pool, call))

    def close(self) -> None:
        """Wait for the call in progress."""
        self._pool.shutdown(wait=True)


class LeavableThreads(ThreadPoolExecutor):
    """An event loop's executor whose threads do not keep the process: for what only reads.

    Looks up names and reads files on behalf of asyncio. Use from the loop's thread.
    """

    def __init__(self, most: int = MOST) -> None:
        super().__init__(max_workers=most)  # asyncio accepts no other kind; it starts no thread by itself
        self._most = most
        self._jobs: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._count = 0

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> "Future[T]":
        """Run a call in a thread, at once or as soon as one of them is free."""
        future: Future[T] = Future()
        self._jobs.put((future, partial(fn, *args, **kwargs)))
        if not self._idle.acquire(blocking=False) and self._count < self._most:
            self._count += 1
            threading.Thread(target=self._work, name=f"aside-{self._count}", daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave behind what still runs."""
        del wait
        super().shutdown(wait=False, cancel_futures=cancel_futures)

    def _work(self) -> None:
        while True:
            future, call = self._jobs.get()
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except BaseException as error:  # noqa: BLE001 - whoever waits gets it
                    future.set_exception(error)
            del future, call  # until the next one nothing of this is kept
            self._idle.release()
