"""What the engine under test writes to its log while a scenario is played: part of the story, not of the
terminal. Owns where those lines go meanwhile.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta

PROGRAM = __name__.split(".", maxsplit=1)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """A warning or an error of the engine. `at`: offset from T+0; `times`: how often in a row."""

    at: timedelta
    level: str
    text: str
    times: int = 1


class _Ear(logging.Handler):
    def __init__(self, offset: Callable[[], timedelta]) -> None:
        super().__init__(logging.WARNING)
        self.offset = offset
        self.remarks: list[Remark] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record with the time that it is in the scenario."""
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            text += f" ({type(record.exc_info[1]).__name__}: {record.exc_info[1]})"
        last = self.remarks[-1] if self.remarks else None
        if last is not None and last.text == text:
            self.remarks[-1] = replace(last, times=last.times + 1)
        else:
            self.remarks.append(Remark(at=self.offset(), level=record.levelname.lower(), text=text))


@contextmanager
def overheard(offset: Callable[[], timedelta]) -> Iterator[list[Remark]]:
    """Keep what the program writes to its log from warnings upwards, instead of showing it.

    Args:
        offset: says the time, relative to T+0.
    """
    ear, logger = _Ear(offset), logging.getLogger(PROGRAM)
    before = logger.propagate
    logger.addHandler(ear)
    logger.propagate = False
    try:
        yield ear.remarks
    finally:
        logger.propagate = before
        logger.removeHandler(ear)
