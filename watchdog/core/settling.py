"""Settling: a file that is being written is looked at until it stays as it is. Pure."""

from dataclasses import dataclass
from datetime import timedelta

STABLE_FOR = timedelta(seconds=2)
MISSING_FOR = timedelta(seconds=30)  # some tools remove a file before they write it anew


@dataclass(frozen=True, slots=True, kw_only=True)
class Settling:
    """What a file held when it was last looked at, and since when. digest: "" = it cannot be read."""

    digest: str = ""
    since: timedelta | None = None  # monotonic; None = never looked at

    def saw(self, digest: str, now: timedelta) -> "Settling":
        """Take in one look."""
        if self.since is not None and digest == self.digest:
            return self
        return Settling(digest=digest, since=now)

    def settled(self, now: timedelta) -> bool:
        """Whether it has stayed as it is for long enough to be believed."""
        patience = STABLE_FOR if self.digest else MISSING_FOR
        return self.since is not None and now - self.since >= patience
