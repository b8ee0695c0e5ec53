"""View: all that an evaluation may read, and the questions every condition asks of it.

Owns which tasks a rule judges right now, and whether the source can be trusted. No verdicts.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache

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
    It is asked once a view. sound: (capability, item) → tasks of which it would say "good".
    poll: by source. changes: status changes of this slot.
    units, steps: by (source, metric); steps: how rarely points come, where that is known.
    lacking: (source, metric) that do not exist: a rule leaves the tasks of such a source out.
    kept: what conditions found out about the same tasks for other rules, by their own keys.
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
    sound: Mapping[tuple[Capability, str], Collection[str]] = field(default_factory=dict)
    _blind: dict[tuple[str, Capability, str], str] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _judged: dict[object, list[TaskState]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _by_source: dict[int, dict[str, list[TaskState]]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    kept: dict[object, object] = field(default_factory=dict, init=False, repr=False, compare=False)

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
        task = state.task
        if task.key in self.sound.get((capability, item), ()):
            return ""
        known = self._blind.get((task.key, capability, item))
        if known is None:
            key = ProbeKey(source=task.source, capability=capability, task=task.key, item=item)
            standing = self.standing(key)
            known = "" if standing is Standing.GOOD else f"{capability} {standing}"
            self._blind[task.key, capability, item] = known
        return known


def moment_ns(moment: datetime | None) -> int:
    """Return ns since the epoch, 0 for None."""
    return to_ns(moment) if moment is not None else 0


def floor_ns(state: TaskState) -> int:
    """Return when the attempt began: windows never reach before it; 0 = unknown."""
    return _start_ns(state.attempt_started)


@lru_cache(maxsize=4096)  # asked of every task in every slot, and the same until it restarts
def _start_ns(started: datetime | None) -> int:
    return moment_ns(started)


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


def judged(rule: Rule, view: View, slot_ns: int) -> Sequence[TaskState]:
    """Return the tasks the rule is about, in a status it looks at, and past `after_start`.

    It is the same object for all rules that judge the same tasks.
    """
    metric = getattr(rule.condition, "metric", "")
    lacking = frozenset(source for source, name in view.lacking if name == metric) if metric else frozenset()
    key = (wanted_statuses(rule), rule.select, rule.after_start, lacking, slot_ns)
    known = view._judged.get(key)
    if known is None:
        known = view._judged[key] = [
            state
            for state in view.tasks.values()
            if state.task.source not in lacking and _judges(rule, state, slot_ns)
        ]
    return known


def task_keys(view: View, states: list[TaskState]) -> tuple[str, ...]:
    """Return the keys of tasks that a rule judges; made once for all rules that judge the same."""
    keys = view.kept.get(("keys", id(states)))
    if not isinstance(keys, tuple):
        keys = view.kept["keys", id(states)] = tuple([state.task.key for state in states])
    return keys


def judged_by_source(rule: Rule, view: View, slot_ns: int) -> Mapping[str, list[TaskState]]:
    """Return the judged tasks of each source; as in `judged`, the same objects for like rules."""
    states = judged(rule, view, slot_ns)
    if id(states) not in view._by_source:
        found: dict[str, list[TaskState]] = {}
        for state in states:
            found.setdefault(state.task.source, []).append(state)
        view._by_source[id(states)] = found
    return view._by_source[id(states)]


def _judges(rule: Rule, state: TaskState, slot_ns: int) -> bool:
    wanted = wanted_statuses(rule)
    if wanted is not None and state.status not in wanted:
        return False
    if rule.select.patterns and not rule.applies(state.task):
        return False
    return not rule.after_start or begin_ns(rule, state) <= slot_ns


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
    """Return per task and slot whether `after_start` has not passed yet: (n, T), or (n, 1) for all slots."""
    if not rule.after_start:
        return np.zeros((len(states), 1), np.bool_)
    begins = np.array([begin_ns(rule, state) for state in states], np.int64)
    return slots[None, :] < begins[:, None]
