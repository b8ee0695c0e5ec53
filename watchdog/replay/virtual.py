"""Virtual time: an event loop whose clock jumps to the next timer instead of waiting.

The whole live engine runs on it unchanged. When nothing is ready the loop advances its own
time to the next timer; a script may also move the wall clock (a jump, a suspend) or stop the
process for a while (a stall). Knows nothing of rules or scenarios.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

T = TypeVar("T")


class _HasFileno(Protocol):
    def fileno(self) -> int: ...


FileObject = int | _HasFileno


class _JumpingSelector(selectors.BaseSelector):
    """A selector that never waits: a time-out becomes a jump of the virtual clock."""

    def __init__(self, world: "VirtualWorld") -> None:
        self._inner = selectors.DefaultSelector()
        self._world = world

    def register(self, fileobj: FileObject, events: int, data: object = None) -> selectors.SelectorKey:
        return self._inner.register(fileobj, events, data)

    def unregister(self, fileobj: FileObject) -> selectors.SelectorKey:
        return self._inner.unregister(fileobj)

    def get_map(self) -> object:  # type: ignore[override]  # typeshed wants the private mapping type
        return self._inner.get_map()

    def close(self) -> None:
        self._inner.close()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = self._inner.select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            raise RuntimeError("virtual time stands still: nothing is scheduled any more")
        self._world.advance(timeout)
        return []


class _VirtualLoop(asyncio.SelectorEventLoop):
    """asyncio's own loop, with the world's monotonic clock."""

    def __init__(self, world: "VirtualWorld") -> None:
        self._virtual_world = world
        super().__init__(_JumpingSelector(world))
        # Timers are floats and the clock counts microseconds: half of one must not delay a timer.
        self._clock_resolution = 2e-6

    def time(self) -> float:
        """The virtual monotonic clock, in seconds."""
        return self._virtual_world.monotonic_s


@dataclass(kw_only=True)
class VirtualWorld:
    """The clocks of a simulation; implements the Clock port.

    Monotonic time is kept in whole microseconds so that timers on a grid stay on it.
    """

    start: datetime
    _monotonic_us: int = 0
    _shift: timedelta = timedelta()
    suspended: timedelta = timedelta()
    _stalls: list[tuple[int, int]] = field(default_factory=list)  # (at, for how long), µs

    @property
    def monotonic_s(self) -> float:
        """Seconds since the simulation began."""
        return self._monotonic_us / 1_000_000

    def now(self) -> datetime:
        """The wall clock, as the simulated machine shows it."""
        return self.start + self.monotonic() + self._shift

    def true_now(self) -> datetime:
        """The wall clock of the rest of the world (sources stamp their data with it)."""
        return self.start + self.monotonic() + self.suspended

    def monotonic(self) -> timedelta:
        """Time since the simulation began; stands still in a suspend."""
        return timedelta(microseconds=self._monotonic_us)

    async def sleep(self, duration: timedelta) -> None:
        """Wait in virtual time."""
        await asyncio.sleep(max(0.0, duration.total_seconds()))

    def jump(self, shift: timedelta) -> None:
        """Move the machine's wall clock only."""
        self._shift += shift

    def suspend(self, duration: timedelta) -> None:
        """The machine sleeps: the world's clock goes on, the monotonic one does not."""
        self._shift += duration
        self.suspended += duration

    def stall(self, at: timedelta, duration: timedelta) -> None:
        """At `at`, the process is stopped for `duration` (SIGSTOP): all clocks go on, nothing runs."""
        self._stalls.append((at // timedelta(microseconds=1), duration // timedelta(microseconds=1)))

    def advance(self, seconds: float) -> None:
        """Let idle time pass; called by the loop."""
        target = self._monotonic_us + max(1, round(seconds * 1_000_000))
        for stall in sorted(self._stalls):
            if stall[0] <= target:
                self._stalls.remove(stall)
                self._monotonic_us = max(self._monotonic_us, stall[0]) + stall[1]
                return
        self._monotonic_us = target

    def run(self, main: Callable[[], Coroutine[object, object, T]]) -> T:
        """Run a coroutine to its end in virtual time."""
        with asyncio.Runner(loop_factory=lambda: _VirtualLoop(self)) as runner:
            return runner.run(main())
