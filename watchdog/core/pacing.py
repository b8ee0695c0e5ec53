"""The pace of one query to a source: regular polls, backing off while it fails.

The first failures are retried at the normal pace, so that a source is known to be blind after
three polls; then the wait doubles up to 15 min. What the server asks for (Retry-After) is obeyed.
"""

from dataclasses import dataclass, replace
from datetime import timedelta

LONGEST_WAIT = timedelta(minutes=15)
PATIENT_FAILURES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """When a query is due next, on the monotonic clock. origin: where the grid of its polls begins."""

    poll: timedelta
    due: timedelta = timedelta()
    failures: int = 0
    origin: timedelta = timedelta()

    def answered(self, now: timedelta) -> "Pace":
        """After a healthy answer: the next poll on the grid, also after waits that left it."""
        passed = (now - self.origin) // self.poll
        return replace(self, due=self.origin + (passed + 1) * self.poll, failures=0)

    def failed(self, now: timedelta, jitter: float, retry_after: timedelta | None = None) -> "Pace":
        """After a failure. `jitter` in [0, 1) takes up to half of a doubled wait away."""
        failures = self.failures + 1
        wait = self.poll
        if failures >= PATIENT_FAILURES:
            doubled = min(LONGEST_WAIT, self.poll * 2 ** min(failures - PATIENT_FAILURES + 1, 12))
            wait = max(self.poll, doubled * (1 - jitter / 2))
        if retry_after is not None:
            wait = max(wait, min(retry_after, LONGEST_WAIT * 4))
        return replace(self, due=now + wait, failures=failures)
