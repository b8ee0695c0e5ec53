"""The pulse of one life of the engine: when slots ended and how long they took. Decides nothing."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(slots=True, kw_only=True)
class Pulse:
    """How the slots of one life went by. Times on the monotonic clock.

    took: the newest evaluation, T1, plan and T2, without the wait for answers before it.
    """

    started: timedelta
    ended: timedelta | None = None
    took: timedelta = timedelta()
    total: timedelta = timedelta()
    longest: timedelta = timedelta()

    def beat(self, began: timedelta, ended: timedelta) -> None:
        """Note that a slot has ended."""
        self.ended, self.took = ended, ended - began
        self.total += self.took
        self.longest = max(self.longest, self.took)

    def since_slot(self, now: timedelta) -> timedelta:
        """How long ago the newest slot ended, or the life began."""
        return now - (self.started if self.ended is None else self.ended)
