"""Upkeep: whether the engine keeps up with what it has to do, and what it drops as nobody needs it.

Owns how long it must be behind before that is worth a message, and the hourly tidying of series. Said
are: evaluations that were left out, rules that take too long, logs that are read late, rules that are
true of more than can be followed, metrics with more series than can be kept.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta

from watchdog.core.alerts import Incident, Notice, NoticeKind
from watchdog.core.conditions.kinds import Capability
from watchdog.core.durations import format_duration, from_ns
from watchdog.core.health import ProbeKey, Standing
from watchdog.core.incidents import SUBJECT
from watchdog.core.lifecycle import MOST_ALERTS, left_out
from watchdog.core.moments import Tick
from watchdog.core.series import MOST_SERIES
from watchdog.engine.pulse import Pulse
from watchdog.engine.slot import SlotRunner
from watchdog.engine.world import World

LATE_SLOTS = 3  # of the newest …
OF_SLOTS = 10
SLOW_SLOTS = 2  # in a row
LAG = timedelta(minutes=3)
LAG_POLLS = 4
TIDY_EVERY = timedelta(hours=1)  # watched

_KINDS = frozenset(
    {
        NoticeKind.SLOTS_LATE,
        NoticeKind.RULE_SLOW,
        NoticeKind.LOG_LAG,
        NoticeKind.TOO_MANY_ALERTS,
        NoticeKind.TOO_MANY_SERIES,
    }
)


@dataclass(slots=True, kw_only=True)
class Upkeep:
    """Looks at one engine before each slot."""

    world: World
    runner: SlotRunner
    _missed: deque[int] = field(default_factory=lambda: deque(maxlen=OF_SLOTS))
    _slow_for: dict[str, int] = field(default_factory=dict)  # rule → slots in a row
    _tidied: timedelta = timedelta.min
    _mentioned: set[tuple[NoticeKind, str]] = field(default_factory=set)  # in the slot before

    def tidy(self, watched: timedelta) -> None:
        """Once an hour, forget series that others have long taken the place of."""
        if self._tidied == timedelta.min or watched - self._tidied >= TIDY_EVERY:
            self._tidied = watched
            self.world.series.forget_outlived(self.world.ruleset.forget_after)

    def notices(self, tick: Tick, pulse: Pulse) -> Iterator[Notice]:
        """What is to be said of the slots so far, and what is over."""
        now = [*self._late(tick, pulse), *self._slow(tick), *self._lagging(tick)]
        now += [*self._crowded(), *self._overfull()]
        yield from now
        subjects = {(notice.kind, notice.subject) for notice in now}
        over = {one for one in self._mentioned - subjects if self._known(*one)}
        for kind, subject in sorted(over):  # it may wait to be said, see `damping`
            yield Notice(kind=kind, subject=subject, active=False)
        self._mentioned = (self._mentioned | subjects) - over
        for (_, subject), incident in self.world.book.open.items():
            if self._is_over(incident) and (incident.notice, subject) not in subjects:
                assert incident.notice is not None
                yield Notice(kind=incident.notice, subject=subject, labels=incident.labels, active=False)

    def _is_over(self, incident: Incident) -> bool:
        """Whether an incident is ours to end. What a source is slow at, or does not tell, is not."""
        if incident.notice is NoticeKind.RULE_SLOW:
            return "rule" in incident.params
        if incident.notice is NoticeKind.LOG_LAG:
            return self._known(incident.notice, incident.params.get(SUBJECT, ""))
        return incident.notice in _KINDS

    def _known(self, kind: NoticeKind, subject: str) -> bool:
        """Whether what is not mentioned is over; of a log that cannot be read nobody knows."""
        return kind is not NoticeKind.LOG_LAG or subject not in self.world.states or self._readable(subject)

    def _late(self, tick: Tick, pulse: Pulse) -> Iterator[Notice]:
        self._missed.append(0 if tick.settling else tick.missed)
        late = sum(1 for missed in self._missed if missed)
        going_on = any(incident.notice is NoticeKind.SLOTS_LATE for incident in self.world.book.open.values())
        if late >= (1 if going_on else LATE_SLOTS):
            slowest = max(self.runner.took, key=lambda rule: self.runner.took[rule], default="")
            params = {
                "missed": str(sum(self._missed)),
                "slots": str(sum(self._missed) + len(self._missed)),
                "took": _rounded(pulse.took),
                "interval": format_duration(tick.interval),
                **({"rule": f"{slowest} ({_rounded(self.runner.took[slowest])})"} if slowest else {}),
            }
            yield Notice(kind=NoticeKind.SLOTS_LATE, subject="evaluation", params=params)

    def _slow(self, tick: Tick) -> Iterator[Notice]:
        """Rules that alone take longer than the interval."""
        slow = {rule: took for rule, took in self.runner.took.items() if took > tick.interval}
        self._slow_for = {rule: self._slow_for.get(rule, 0) + 1 for rule in slow}
        for rule, took in slow.items():
            if self._slow_for[rule] >= SLOW_SLOTS:
                params = {"rule": rule, "took": _rounded(took), "interval": format_duration(tick.interval)}
                yield Notice(kind=NoticeKind.RULE_SLOW, subject=rule, params=params)

    def _lagging(self, tick: Tick) -> Iterator[Notice]:
        """Logs that are answered, and yet whose end was not reached for long."""
        for task, streams in self.world.streams_by_task().items():
            reached = [stream.progress.complete_ns for stream in streams if stream.progress.complete_ns]
            if not reached or tick.settling or not self._readable(task):
                continue
            state = self.world.states[task]
            lag = tick.at - from_ns(min(reached))
            if lag > max(LAG, LAG_POLLS * self.world.poll(state.task.source)):
                params = {"task": state.task.name, "source": state.task.source, "lag": _rounded(lag)}
                yield Notice(kind=NoticeKind.LOG_LAG, subject=task, labels=state.task.identity, params=params)

    def _readable(self, task: str) -> bool:
        """Whether a task's log is answered; what cannot be read at all is told as such."""
        state = self.world.states.get(task)
        if state is None:
            return False
        key = ProbeKey(source=state.task.source, capability=Capability.LOGS, task=task)
        return self.world.standing(key) is Standing.GOOD

    def _crowded(self) -> Iterator[Notice]:
        for rule in self.world.ruleset.rules:
            evaluation = self.runner.evaluations.get(rule.name)
            left = left_out(rule, evaluation, 0, self.world.book) if evaluation is not None else 0
            if left:
                params = {"rule": rule.name, "limit": str(MOST_ALERTS), "left": str(left)}
                yield Notice(kind=NoticeKind.TOO_MANY_ALERTS, subject=rule.name, params=params)

    def _overfull(self) -> Iterator[Notice]:
        for source, metric in self.world.series.metrics():
            left = self.world.series.table(source, metric).refused
            if left:
                limits = {"limit": str(MOST_SERIES), "left": str(left)}
                yield Notice(
                    kind=NoticeKind.TOO_MANY_SERIES,
                    subject=f"{source}/{metric}",
                    params={"source": source, "metric": metric, **limits},
                )


def _rounded(duration: timedelta) -> str:
    """Seconds are enough, but for what is shorter than a few of them."""
    places = 1 if duration < timedelta(seconds=10) else 0
    return format_duration(timedelta(seconds=round(duration.total_seconds(), places)))
