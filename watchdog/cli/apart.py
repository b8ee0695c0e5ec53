"""Runs one call in a copy of this process, beside it: for what a daemon needs once and would keep for months.

What the call imports and allocates ends with the copy.
"""

import os
import pickle
from collections.abc import Callable
from typing import NoReturn, TypeVar

from watchdog.errors import ConfigError

T = TypeVar("T")


def begin(call: Callable[[], T]) -> Callable[[], T]:
    """Start a call. Returns what waits for it, and returns or raises as it did.

    Its value has to be picklable, as ConfigError is. Use it before there are threads. A copy that ends
    without an answer (killed, out of memory, another exception) is made up for here.
    """
    reading, writing = os.pipe()
    copy = os.fork()
    if copy == 0:
        _answer(call, writing)
    os.close(writing)

    def outcome() -> T:
        with os.fdopen(reading, "rb") as pipe:
            told = pipe.read()
        os.waitpid(copy, 0)
        if not told:
            return call()
        value, error = pickle.loads(told)  # noqa: S301 - our own copy wrote it
        if error is not None:
            raise error
        answer: T = value
        return answer

    return outcome


def _answer(call: Callable[[], T], writing: int) -> NoReturn:
    """Be the copy: never return into what the process was doing."""
    outcome: tuple[object, ConfigError | None]
    try:
        try:
            outcome = (call(), None)
        except ConfigError as error:
            outcome = (None, error)
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(pickle.dumps(outcome))
    finally:
        os._exit(0)
