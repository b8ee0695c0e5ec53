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
