"""View: all that an evaluation may read, and the questions every condition asks of it.

Owns which tasks a rule judges right now, and whether the source can be trusted. No verdicts.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import numpy as np

from watchdog.core.columns import Bools, Ints
from watchdog.core.conditions.kinds import Capability, Changes, LogCount, Peers, Share, Threshold
from watchdog.core.durations import MINUTE_NS, duration_ns, to_ns
from watchdog.core.health import ProbeKey, Standing
from watchdog.core.logs import StreamState
from watchdog.core.rules import Rule
from watchdog.core.series import SeriesStore
from watchdog.core.tasks import Status, StatusChange, TaskState

FRESH_NS = 5 * MINUTE_NS
FRESH_POLLS = 5
FRESH_STEPS = 3
POLL = timedelta(seconds=60)  # of a source that says nothing
HOLD_SHOWN = timedelta(hours=3)
LOOKBACK_LEAST = timedelta(minutes=10)
STEPS_BACK = timedelta(hours=1)  # steps of a counter in an outage this long are told one by one


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What one slot's evaluation may read. Evaluating changes nothing that can be seen from outside.

    tasks, streams: by task key. standing: the health of a capability of a source for one task.
    It is asked once a view. poll: by source. changes: status changes of this slot.
    units, steps: by (source, metric); steps: how rarely points come, where that is known.
    lacking: (source, metric) that do not exist: a rule leaves the tasks of such a source out.
    """

    series: SeriesStore
    tasks: Mapping[str, TaskState]
    standing: Callable[[ProbeKey], Standing]
    streams: Mapping[str, tuple[StreamState, ...]] = field(default_factory=dict)
    poll: Mapping[str, timedelta] = field(default_factory=dict)
    changes: tuple[StatusChange, ...] = ()
    units: Mapping[tuple[str, str], str] = field(default_factory=dict)
    steps: Mapping[tuple[str, str], timedelta] = field(default_factory=dict)
    lacking: Collection[tuple[str, str]] = frozenset()
    _blind: dict[ProbeKey, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    def poll_ns(self, source: str) -> int:
        """How often a source is asked, ns."""
        return duration_ns(self.poll.get(source, POLL))

    def fresh_ns(self, source: str, metric: str = "") -> int:
        """A newest point this old, or older, is stale."""
        step_ns = duration_ns(self.steps.get((source, metric), timedelta()))
        return max(FRESH_NS, FRESH_POLLS * self.poll_ns(source), FRESH_STEPS * step_ns)

    def blind(self, state: TaskState, capability: Capability, item: str = "") -> str:
        """Why no verdict may be drawn from a capability for this task; "" if it may.

        item: the metric's name, or the filter of the log stream.
        """
        key = ProbeKey(source=state.task.source, capability=capability, task=state.task.key, item=item)
        known = self._blind.get(key)
        if known is None:
            standing = self.standing(key)
            known = self._blind[key] = "" if standing is Standing.GOOD else f"{capability} {standing}"
        return known


def moment_ns(moment: datetime | None) -> int:
    """Return ns since the epoch, 0 for None."""
    return to_ns(moment) if moment is not None else 0


def floor_ns(state: TaskState) -> int:
    """Return when the attempt began: windows never reach before it; 0 = unknown."""
    return moment_ns(state.attempt_started)


def begin_ns(rule: Rule, state: TaskState) -> int:
    """Return from when on the rule judges the task (`after_start`); 0 = always."""
    if not rule.after_start:
        return 0
    start = floor_ns(state)
    return start + duration_ns(rule.after_start) if start else 0


def wanted_statuses(rule: Rule) -> frozenset[Status] | None:
    """Return the statuses `while` allows; an unknown one counts as running. None = any."""
    wanted = rule.while_status
    return wanted | {Status.UNKNOWN} if wanted is not None and Status.RUNNING in wanted else wanted


def judged(rule: Rule, view: View, slot_ns: int) -> Iterator[TaskState]:
    """Yield the tasks the rule is about, in a status it looks at, and past `after_start`."""
    wanted = wanted_statuses(rule)
    metric = getattr(rule.condition, "metric", "")
    for state in view.tasks.values():
        if wanted is not None and state.status not in wanted:
            continue
        if rule.select.patterns and not rule.applies(state.task):
            continue
        if metric and (state.task.source, metric) in view.lacking:
            continue
        if begin_ns(rule, state) <= slot_ns:
            yield state


def judged_by_source(rule: Rule, view: View, slot_ns: int) -> dict[str, list[TaskState]]:
    """Return the judged tasks of each source."""
    found: dict[str, list[TaskState]] = {}
    for state in judged(rule, view, slot_ns):
        found.setdefault(state.task.source, []).append(state)
    return found


def lookback(rule: Rule) -> timedelta:
    """How far back a rule's evidence looks: its window and its `for`, at least 10 min.

    Of the `for`, 3 h at most: it is there to be seen, nothing is decided by it.
    """
    condition = rule.condition
    window = timedelta()
    if isinstance(condition, Threshold | Share | Peers):
        window = condition.window or window
    elif isinstance(condition, LogCount):
        window = condition.within
    elif isinstance(condition, Changes):
        window = STEPS_BACK
    hold = max([rule.hold, *(level.hold for level in rule.levels)])
    return max(window + min(hold, HOLD_SHOWN), LOOKBACK_LEAST)


def too_early(rule: Rule, states: list[TaskState], slots: Ints) -> Bools:
    """Return per task and slot whether `after_start` has not passed yet: (n, T)."""
    begins = np.array([begin_ns(rule, state) for state in states], np.int64)
    return slots[None, :] < begins[:, None]
