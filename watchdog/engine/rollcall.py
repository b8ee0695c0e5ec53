"""The roll call: who of each task is here, who is missing, who retires; cheap while nothing changes.

Decides when a task has to be looked at, and hands `core.expecting` what it needs; a task of which
all are here, as before, costs nothing. Knows no alerts.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from watchdog.core.alerts import Notice
from watchdog.core.conditions.kinds import Capability
from watchdog.core.durations import duration_ns, from_ns, to_ns
from watchdog.core.expecting import TAKEOVER, may_return, renew_members, retire, retired_notice, see_members
from watchdog.core.health import in_sight
from watchdog.core.labels import Labels
from watchdog.core.moments import Tick
from watchdog.core.series import COUNTED
from watchdog.core.tasks import Seen, Status, TaskState
from watchdog.core.view import FRESH_STEPS, floor_ns
from watchdog.engine.attendance import Attendance
from watchdog.engine.world import World

FRESH = timedelta(minutes=5)
FRESH_POLLS = 5
AHEAD = timedelta(minutes=2)  # a source's clock may be this far ahead of ours
RENEW = timedelta(minutes=30)  # how old `Seen.last` of somebody who is here may get
OWED = timedelta(minutes=5)  # how much missing time is added up at once
RENEWED_AT_ONCE = 16  # one in so many tasks a slot


@dataclass(slots=True)
class _Last:
    """How a task stood when it was last looked at. owed: missing time not yet added."""

    expected: tuple[Seen, ...]
    status: Status
    attempt_started: datetime | None
    healthy: bool
    all_here: bool
    renewed: datetime
    missing: timedelta  # the longest
    owed: timedelta = timedelta()

    def same(self, state: TaskState, *, healthy: bool) -> bool:
        return (
            self.expected is state.expected
            and self.status is state.status
            and self.attempt_started == state.attempt_started
            and self.healthy is healthy
        )


@dataclass(slots=True)
class _Leave:
    """Who went because another attempt began. before: the task as it was; since: watched."""

    before: TaskState
    gone: set[Labels]
    since: timedelta


class RollCall:
    """Keeps `TaskState.expected` of the world's tasks up to date.

    The note on pods that another attempt has made superfluous waits until those that come back are back.
    It waits in memory: a restart meanwhile costs the note, and nothing else.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self._attendance = Attendance()
        self._last: dict[str, _Last] = {}
        self._leaves: dict[str, _Leave] = {}

    def notes(self, retired: Iterable[tuple[TaskState, tuple[Labels, ...]]], tick: Tick) -> Iterator[Notice]:
        """Yield the quiet notes that are due. retired: what `call` yielded, but for tasks that have ended."""
        for before, gone in retired:
            if not may_return(before, gone):
                yield retired_notice(before, gone)
                continue
            key = before.task.key
            known = self._leaves.get(key, _Leave(before, set(), tick.moment.watched))
            members = (*before.expected, *known.before.expected)
            whole = replace(before, expected=tuple({one.labels: one for one in members}.values()))
            self._leaves[key] = _Leave(whole, known.gone | set(gone), known.since)
        for key, leave in list(self._leaves.items()):
            state = self.world.states.get(key)
            if state is None or state.status.ended:
                del self._leaves[key]
            elif tick.moment.watched - leave.since >= TAKEOVER:
                del self._leaves[key]
                back = {member.labels for member in state.expected}
                if leave.gone - back:
                    yield retired_notice(leave.before, leave.gone - back)

    def call(self, tick: Tick) -> Iterator[tuple[TaskState, tuple[Labels, ...]]]:
        """Take the roll. Yields each task that somebody retires of: as it was, and who goes."""
        states = self.world.states
        self._last = {key: last for key, last in self._last.items() if key in states}
        after_ns = self._after_ns(tick)
        moved = self._attendance.look(self.world.series, after_ns, to_ns(tick.at + AHEAD))
        renewals = 1 + len(states) // RENEWED_AT_ONCE
        seen = () if tick.settling else in_sight(self.world.health, Capability.METRICS)
        for key, state in list(states.items()):
            healthy = key in seen or state.status.ended  # whether who is not seen is missing
            last = self._last.get(key)
            owed = (tick.elapsed if healthy else timedelta()) + (
                last.owed if last is not None else timedelta()
            )
            if last is not None and key not in moved and last.same(state, healthy=healthy):
                if renewals > 0 and tick.at - last.renewed >= RENEW:
                    renewals -= 1
                    self._renew(key, state, last, tick)
                if self._can_wait(last, owed):
                    continue
            before, gone = self._look_at(key, state, replace(tick, elapsed=owed), healthy=healthy)
            self._last[key].owed = timedelta() if healthy else owed
            if gone:
                yield before, gone

    def _after_ns(self, tick: Tick) -> Mapping[str, int]:
        """From when on a point says that somebody is here, by task."""
        fresh_ns = {
            source: to_ns(tick.at) - duration_ns(self._fresh(source))
            for source in {state.task.source for state in self.world.states.values()}
        }
        return {
            key: max(floor_ns(state), fresh_ns[state.task.source]) for key, state in self.world.states.items()
        }

    def _fresh(self, source: str) -> timedelta:
        """How old the newest point of somebody who is here may be; its most frequent metric decides."""
        steps = self.world.steps
        own = [
            steps.get(key, timedelta())
            for key in self.world.series.metrics()
            if key[0] == source and not key[1].startswith(COUNTED)
        ]
        rarest = FRESH_STEPS * min(own, default=timedelta())
        return max(FRESH, FRESH_POLLS * self.world.poll(source), rarest)

    def _can_wait(self, last: _Last, owed: timedelta) -> bool:
        """Whether a look would change nothing but how long somebody has been missing."""
        if last.all_here or not last.healthy:
            return True
        last.owed = owed
        return owed < OWED and last.missing + owed < self.world.ruleset.forget_after

    def _renew(self, key: str, state: TaskState, last: _Last, tick: Tick) -> None:
        """Note when those who are here were seen; nobody came or went."""
        after = renew_members(state, self._seen(key, state, self._attendance.here(key)))
        self.world.states[key] = after
        last.expected, last.renewed = after.expected, tick.at

    def _seen(self, key: str, state: TaskState, here: Mapping[Labels, int]) -> dict[Labels, datetime]:
        """Return the time of everybody's newest point."""
        seen = {**(here if state.status.counts_as_running else {}), **self._leaving(key, state, here)}
        moments = {time: from_ns(time) for time in set(seen.values())}  # few: they are measured together
        return {labels: moments[time] for labels, time in seen.items()}

    def _look_at(
        self, key: str, state: TaskState, tick: Tick, *, healthy: bool
    ) -> tuple[TaskState, tuple[Labels, ...]]:
        """Return the task as it is before anybody retires, and who does; the world has it afterwards."""
        here = self._attendance.here(key)
        before = see_members(state, self._seen(key, state, here))
        after = before
        gone: tuple[Labels, ...] = ()
        if healthy:
            forget_after = self.world.ruleset.forget_after
            after, gone = retire(before, tick, here.keys(), forget_after=forget_after)
        self.world.states[key] = after
        self._last[key] = _Last(
            expected=after.expected,
            status=after.status,
            attempt_started=after.attempt_started,
            healthy=healthy,
            all_here=all(member.labels in here for member in after.expected),
            renewed=tick.at,
            missing=max((member.missing for member in after.expected), default=timedelta()),
        )
        return before, gone

    def _leaving(self, key: str, state: TaskState, here: Mapping[Labels, int]) -> dict[Labels, int]:
        """Who was here until now, with the exact time of the last point: it is renewed rarely otherwise."""
        left = [m for m in state.expected if not m.missing and m.labels not in here]
        newest = self._attendance.newest(key) if left else {}
        floor = floor_ns(state)
        return {
            m.labels: newest[m.labels] for m in left if newest.get(m.labels, 0) > max(to_ns(m.last), floor)
        }
