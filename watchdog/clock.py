"""The only reader of clocks. Everything else is handed a `Clock` or a time."""

import asyncio
import time
from datetime import UTC, datetime, timedelta


class SystemClock:
    """The machine's clocks, looked up at call time."""

    def now(self) -> datetime:
        """Wall-clock time, aware UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> timedelta:
        """CLOCK_MONOTONIC: does not count a suspend, never jumps."""
        return timedelta(microseconds=time.monotonic_ns() // 1_000)

    async def sleep(self, duration: timedelta) -> None:
        """Wait; a duration in the past only yields."""
        await asyncio.sleep(max(0.0, duration.total_seconds()))


class FastClock:
    """The machine's clocks, running `speed` times as fast from now on: the demo's time.

    Everything that is handed this clock agrees on it; the network underneath stays real.
    """

    def __init__(self, speed: float) -> None:
        self._speed = speed
        self._real = SystemClock()
        self._origin = self._real.monotonic()
        self._start = self._real.now()

    def now(self) -> datetime:
        """Wall-clock time: the start's, plus the fast time since."""
        return self._start + self.monotonic()

    def monotonic(self) -> timedelta:
        """Fast time since the clock was made."""
        return (self._real.monotonic() - self._origin) * self._speed

    async def sleep(self, duration: timedelta) -> None:
        """Wait for so much fast time."""
        await self._real.sleep(duration / self._speed)
