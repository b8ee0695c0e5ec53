"""One case: made, limited in CPU time, and judged by how it ends. Knows no area."""

import contextlib
import faulthandler
import random
import re
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

MEMORY = 4 << 30  # bytes of addresses; an endless file must not take the machine with it
LIMIT_S = 20.0  # CPU time of one case; the usual one takes a thousandth of it
SHOWN = 1500
Case = Callable[[random.Random, "Shown"], str]
"""Plays one case made from the dice; returns what came of it in a word. `Shown` is told the input first."""


class Shown:
    """The input of a case, for whoever looks at a finding."""

    def __init__(self) -> None:
        self.value: object = None

    def __call__(self, value: object) -> None:
        self.value = value


class StalledError(BaseException):
    """A case took too long. No `except Exception` of ours may swallow it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A case that did not end as it should."""

    place: str
    text: str


@dataclass(slots=True)
class Stopwatch:
    """CPU time of the cases of one area."""

    total_s: float = 0.0
    slowest_s: float = 0.0
    slowest: int = 0

    @contextlib.contextmanager
    def case(self, number: int) -> Iterator[None]:
        began = time.process_time()
        try:
            yield
        finally:
            took = time.process_time() - began
            self.total_s += took
            if took > self.slowest_s:
                self.slowest_s, self.slowest = took, number


def play(area: str, case: Case, seed: int, number: int, stopwatch: Stopwatch) -> Finding | str:
    """Play one case; return what came of it."""
    dice = random.Random(f"{area}/{seed}/{number}")
    shown = Shown()
    _arm()
    try:
        with stopwatch.case(number):
            return case(dice, shown)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - that is what is looked for
        return _finding(area, seed, number, shown, error)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _arm() -> None:
    if signal.getsignal(signal.SIGVTALRM) is not _stalled:
        signal.signal(signal.SIGVTALRM, _stalled)
        faulthandler.register(signal.SIGVTALRM, chain=True)  # tells where, also from within C
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT_S, LIMIT_S)


def _stalled(_signal: int, _frame: object) -> None:
    raise StalledError(f"more than {LIMIT_S:g} s of CPU time")


def _finding(area: str, seed: int, number: int, shown: Shown, error: BaseException) -> Finding:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if f"{Path('/watchdog/')}" in frame.filename] or frames
    last = ours[-1]
    place = f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno}"
    if isinstance(error, AssertionError):  # a promise is checked in one place, however it is broken
        place += f": {re.sub(r'[0-9]+', '#', str(error))[:80]}"
    again = f"python -m tests.fuzz --only {area} --seed {seed} --first {number} --cases 1"
    told = "".join(traceback.format_exception(error, limit=-14))
    text = f"\n-- {area}: {place}\n{told}input: {repr(shown.value)[:SHOWN]}\nagain: {again}\n"
    return Finding(place=place, text=text)
