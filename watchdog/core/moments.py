"""Moments and ticks: the two clocks a decision needs, handed down as values.

`at` is the wall clock, comparable with data. `watched` counts only time in which this program
was really running (monotonic, accumulated over restarts), so that downtime, a suspend or a
clock jump completes no `for`, no absence and no reminder.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Now, on both clocks."""

    at: datetime
    watched: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """One evaluation slot.

    elapsed: watched time since the previous slot, 0 for the first after a start, a gap or a jump.
    run: watched time since the last start, gap or jump; nothing can have been true for longer.
    settling: freeze everything in this slot (just back from a gap or a clock jump).
    missed: slots that were due since the previous one and were not evaluated.
    before: the previous slot, of the run before if this is the first; None = `elapsed` ago.
    """

    moment: Moment
    elapsed: timedelta
    run: timedelta
    interval: timedelta
    settling: bool = False
    missed: int = 0
    before: Moment | None = None

    @property
    def previous(self) -> Moment:
        """The slot before."""
        return self.before or Moment(at=self.at - self.elapsed, watched=self.moment.watched - self.elapsed)

    @property
    def at(self) -> datetime:
        """The slot's wall-clock time."""
        return self.moment.at
