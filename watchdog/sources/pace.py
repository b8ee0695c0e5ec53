"""A rate limit: at most `burst` requests at once and `rate` a second on average."""

from datetime import timedelta

from watchdog.ports import Clock


class Pace:
    """Hands out turns in order. Time comes from the clock it is given."""

    def __init__(self, clock: Clock, rate: float, burst: int) -> None:
        """`rate` is turns per second, above 0; `burst` how many may come without waiting."""
        self._clock = clock
        self._spacing = timedelta(seconds=1 / rate)
        self._slack = self._spacing * (max(1, burst) - 1)
        self._due = clock.monotonic()

    async def wait_turn(self) -> None:
        """Return when it is this caller's turn; a turn given up by cancellation is spent."""
        now = self._clock.monotonic()
        due = max(self._due, now)
        self._due = due + self._spacing
        wait = due - self._slack - now
        if wait > timedelta():
            await self._clock.sleep(wait)
