"""The slot schedule: from two clock readings to a `Tick`, and what happened in between.

Pure arithmetic. Slots lie on the monotonic clock, at start + n × interval; a missed slot is
counted and never queued. Decides when a stretch of time counts as watched and when it was an
outage of our own (a stall, SIGSTOP), a jump of the wall clock, or a suspend.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from watchdog.core.moments import Moment, Tick

GAP_INTERVALS = 3  # longer than this many intervals without a slot is an outage of our own …
GAP_LEAST = timedelta(seconds=10)  # … but with very short intervals a busy machine is none
SETTLING_SLOTS = 2
JUMP_TOLERANCE = timedelta(seconds=5)  # what NTP may step without being news


class Break(StrEnum):
    """Why time was not counted as watched."""

    START = "start"  # the first slot after a start
    GAP = "gap"  # no slot for too long: the process was stopped, or the machine too busy
    JUMP = "jump"  # the wall clock moved against the monotonic one, or the machine was suspended


@dataclass(frozen=True, slots=True, kw_only=True)
class Interruption:
    """A stretch that was not watched.

    shift: how much further the wall clock went than the monotonic one; negative = back.
    """

    kind: Break
    begin: datetime  # wall clock of the last slot before
    end: datetime
    shift: timedelta = timedelta()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Both clocks, read at once."""

    at: datetime
    monotonic: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Where the slots lie and how much was watched.

    watched: of all runs so far (stored with every slot). origin: monotonic time of slot 0.
    following: the interval from the next slot on, if it is to change.
    """

    interval: timedelta
    watched: timedelta = timedelta()
    before_start: datetime | None = None  # wall clock of the last stored slot
    origin: timedelta | None = None
    last: Reading | None = None
    run: timedelta = timedelta()
    settling: int = 0
    following: timedelta | None = None

    @property
    def _before(self) -> Moment | None:
        at = self.before_start if self.last is None else self.last.at
        return None if at is None else Moment(at=at, watched=self.watched)

    @property
    def gap(self) -> timedelta:
        """The longest time without a slot that still counts as watched."""
        return max(GAP_INTERVALS * self.interval, GAP_LEAST)

    def moment(self, reading: Reading) -> Moment:
        """Now, between slots: watched time goes on with the monotonic clock, up to one gap."""
        if self.last is None:
            return Moment(at=reading.at, watched=self.watched)
        passed = min(reading.monotonic - self.last.monotonic, self.gap)
        return Moment(at=reading.at, watched=self.watched + max(passed, timedelta()))

    def next_due(self, monotonic: timedelta) -> timedelta:
        """The monotonic time of the next slot: now before the first, then on the grid."""
        if self.origin is None or self.last is None:
            return monotonic
        passed = (max(monotonic, self.last.monotonic) - self.origin) // self.interval
        due = self.origin + (passed + 1) * self.interval
        if self.following is None:
            return due
        return min(due, max(monotonic, self.last.monotonic + self.following))

    def paced(self, interval: timedelta) -> "Schedule":
        """Return the schedule with another interval. What has begun ends as a slot of the old one.

        So a shorter interval makes no outage of the time that has passed since the last slot.
        """
        if self.last is None:
            return replace(self, interval=interval, following=None)
        return replace(self, following=None if interval == self.interval else interval)

    def step(self, reading: Reading) -> tuple["Schedule", Tick, Interruption | None]:
        """Take one slot now. Returns the new schedule, the tick, and what broke the watch, if anything."""
        after, tick, interruption = self._step(reading)
        if after.following is not None:
            after = replace(after, interval=after.following, following=None, origin=reading.monotonic)
        return after, tick, interruption

    def _step(self, reading: Reading) -> tuple["Schedule", Tick, Interruption | None]:
        if self.last is None or self.origin is None:
            return self._first(reading)
        passed = reading.monotonic - self.last.monotonic
        shift = (reading.at - self.last.at) - passed
        if passed > self.gap:
            return self._broken(reading, Break.GAP, timedelta(), shift)
        if abs(shift) > JUMP_TOLERANCE:
            return self._broken(reading, Break.JUMP, passed, shift)
        slots = (reading.monotonic - self.origin) // self.interval
        before = (self.last.monotonic - self.origin) // self.interval
        after = replace(
            self,
            watched=self.watched + passed,
            last=reading,
            run=self.run + (passed if not self.settling else timedelta()),
            settling=max(0, self.settling - 1),
        )
        tick = Tick(
            moment=Moment(at=reading.at, watched=after.watched),
            elapsed=passed if not self.settling else timedelta(),
            run=after.run,
            interval=self.interval,
            settling=self.settling > 0,
            missed=max(0, slots - before - 1),
            before=self._before,
        )
        return after, tick, None

    def _first(self, reading: Reading) -> tuple["Schedule", Tick, Interruption | None]:
        after = replace(self, origin=reading.monotonic, last=reading, run=timedelta(), settling=0)
        tick = Tick(
            moment=Moment(at=reading.at, watched=self.watched),
            elapsed=timedelta(),
            run=timedelta(),
            interval=self.interval,
            before=self._before,
        )
        if self.before_start is None:
            return after, tick, None
        return after, tick, Interruption(kind=Break.START, begin=self.before_start, end=reading.at)

    def _broken(
        self, reading: Reading, kind: Break, counted: timedelta, shift: timedelta
    ) -> tuple["Schedule", Tick, Interruption | None]:
        assert self.last is not None
        after = replace(
            self, watched=self.watched + counted, last=reading, run=timedelta(), settling=SETTLING_SLOTS - 1
        )
        missed = (reading.monotonic - self.last.monotonic) // self.interval
        tick = Tick(
            moment=Moment(at=reading.at, watched=after.watched),
            elapsed=timedelta(),
            run=timedelta(),
            interval=self.interval,
            settling=True,
            missed=max(0, missed - 1),
            before=self._before,
        )
        return after, tick, Interruption(kind=kind, begin=self.last.at, end=reading.at, shift=shift)
