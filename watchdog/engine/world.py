"""The world as the engine knows it: one mutable value, changed only inside a slot.

Owns what is kept in memory between slots and how a start restores it. Everything decided about it
is decided in `core`; how a slot changes it is `intake` and `slot`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

import numpy as np

from watchdog.core.alerts import Incident, Transition
from watchdog.core.conditions.kinds import Capability, LogCount, LogMatch
from watchdog.core.durations import EPOCH, duration_ns, from_ns, to_ns
from watchdog.core.evaluation import needs
from watchdog.core.health import (
    Health,
    ProbeKey,
    ProbeState,
    Standing,
    only_asked,
    only_served,
    resumed,
    standing,
)
from watchdog.core.incidents import Book
from watchdog.core.labels import Labels, fingerprint
from watchdog.core.logs import StreamKey, StreamState, arrivals_moved
from watchdog.core.resolving import resolve
from watchdog.core.rules import Rule
from watchdog.core.ruleset import Ruleset
from watchdog.core.series import COUNTED, SeriesPoints, SeriesStore
from watchdog.core.tasks import TaskObservation, TaskState
from watchdog.core.view import HOLD_SHOWN
from watchdog.engine.collector import MetricWish, Wishes
from watchdog.engine.inbox import Inbox
from watchdog.engine.log_reader import Literals, LogReader
from watchdog.engine.showing import ZONE_FACT
from watchdog.engine.streams import state_of, wanted_streams
from watchdog.ports import LogSample, Source, Stored

LATE_POINTS = timedelta(minutes=5)  # how far back each poll looks for points that came late
DEEP_ANSWERS = 2  # so many answers reach far back after a rule wants more of the past
DEFAULT_POLL = timedelta(seconds=60)


@dataclass(slots=True, kw_only=True)
class World:
    """All that is known.

    states: the watched tasks by key. listings: the newest healthy list by source.
    incidents: open ones, and closed ones until every channel they are for was told.
    transitions: after the planner's mark. memory: small facts that outlive a restart.
    """

    ruleset: Ruleset
    sources: Mapping[str, Source]
    inbox: Inbox
    literals: Callable[[Sequence[LogMatch]], Literals]
    book: Book = field(default_factory=Book)
    health: Health = field(default_factory=Health)
    states: dict[str, TaskState] = field(default_factory=dict)
    stored_states: dict[str, TaskState] = field(default_factory=dict)  # as T1 last had them
    listings: dict[str, tuple[TaskObservation, ...]] = field(default_factory=dict)
    series: SeriesStore = field(default_factory=SeriesStore)
    readers: dict[StreamKey, LogReader] = field(default_factory=dict)
    streams: dict[StreamKey, StreamState] = field(default_factory=dict)  # as consumed by slots
    incidents: dict[str, Incident] = field(default_factory=dict)
    transitions: list[Transition] = field(default_factory=list)
    mark: int = 0
    memory: dict[str, str] = field(default_factory=dict)
    new_memory: dict[str, str] = field(default_factory=dict)  # what T1 has to add
    lacking: frozenset[tuple[str, str]] = frozenset()  # (source, metric) that rules name and nobody serves
    old_memory: set[str] = field(default_factory=set)  # what T1 has to drop
    now: datetime = EPOCH  # the newest slot
    whole_holds: bool = False  # ask for all of the past that a `for` looks at: nobody watched it pass
    forgetting: list[tuple[str, str]] = field(default_factory=list)  # (task, pod), for the next slot
    _stored_blind: dict[ProbeKey, ProbeState] = field(default_factory=dict)
    _needs: dict[str, dict[str, timedelta]] = field(default_factory=dict)  # task → metric → lookback
    _deep: dict[tuple[str, str], int] = field(default_factory=dict)  # (task, metric) → answers to come

    # --- a start

    def restore(self, stored: Stored) -> None:
        """Resume from what the store holds."""
        self.book = Book.of(stored.alerts, stored.incidents)
        self.health = only_served(resumed(stored.probes), _served(self.sources))
        self._stored_blind = {state.key: state for state in stored.probes if state.blind}
        self.states = {state.task.key: state for state in stored.tasks}
        self.stored_states = dict(self.states)
        self.streams = {state.key: state for state in stored.streams}
        self.incidents = {incident.id: incident for incident in stored.incidents}
        self.transitions = list(stored.transitions)
        self.mark = stored.mark
        self.memory = dict(stored.memory)
        self._count_anew(EPOCH if stored.moment is None else stored.moment.at)
        self.tasks_changed()
        self._restore_samples(stored.samples)

    def prime(self, at: datetime) -> None:
        """Before a slot with these rules: know the tasks that they name, so that they can be asked about."""
        for arrived in self.inbox.listings:
            if arrived.source in self.sources:
                self.listings[arrived.source] = arrived.listing.tasks
        for task in resolve(self.ruleset.watch, self.listings, self.states):
            if task.key not in self.states:
                self.states[task.key] = TaskState(task=task, watched_since=at)
        if self.memory.get(ZONE_FACT) != self.ruleset.timezone:
            self.remember(ZONE_FACT, self.ruleset.timezone)
        self.tasks_changed()

    def adopt(self, ruleset: Ruleset, sources: Mapping[str, Source], at: datetime) -> None:
        """Go on with other rules, between two slots. What they no longer name ends in the next slot."""
        rebuilt = {name for name, own in sources.items() if self.sources.get(name) is not own}
        known = sources.keys() - rebuilt
        self.ruleset, self.sources = ruleset, sources
        self.listings = {name: rows for name, rows in self.listings.items() if name in known}
        self.health = only_served(self.health, _served(sources))
        before = self._needs
        self._count_anew(at)
        self.prime(at)
        for task, wanted in self._needs.items():
            for metric, lookback in wanted.items():
                if lookback > before.get(task, {}).get(metric, timedelta()):
                    self._deep[task, metric] = DEEP_ANSWERS

    def _count_anew(self, at: datetime) -> None:
        """Forget what a counting rule found with other patterns than it has now."""
        for rule in self.ruleset.rules:
            if not isinstance(rule.condition, LogCount):
                continue
            mark = fingerprint(repr(rule.condition.lines))
            known, _, _ = self.memory.get(_counted(rule.name), "").partition(" ")
            if known and known != mark:
                self.series.forget_metric(COUNTED + rule.name)
                self.remember(_counted(rule.name), f"{mark} {at.isoformat()}")
            elif not known:
                self.remember(_counted(rule.name), mark)

    def _counts_since(self, metric: str) -> int:
        """From when on what was counted is of use, ns."""
        since = self.memory.get(_counted(metric.removeprefix(COUNTED)), "").partition(" ")[2]
        return to_ns(datetime.fromisoformat(since)) if since else 0

    def _restore_samples(self, samples: Sequence[LogSample]) -> None:
        by_metric: dict[tuple[str, str], dict[Labels, list[LogSample]]] = {}
        since = {metric: self._counts_since(metric) for metric in {sample.metric for sample in samples}}
        for sample in samples:
            if sample.time_ns <= since[sample.metric]:
                continue
            source = sample.labels.get("source", "")
            by_metric.setdefault((source, sample.metric), {}).setdefault(sample.labels, []).append(sample)
        for (source, metric), found in by_metric.items():
            newest = max(sample.time_ns for rows in found.values() for sample in rows)
            series = [
                SeriesPoints(
                    labels=labels,
                    times=np.array([row.time_ns for row in rows], np.int64),
                    values=np.array([row.value for row in rows]),
                )
                for labels, rows in found.items()
            ]
            self.series.intake(source, metric, series, newest, tasks=())

    # --- what is to be asked

    def tasks_changed(self) -> None:
        """Work out anew what rules need, after tasks came or went."""
        self._needs = {}
        longest: dict[tuple[str, str], timedelta] = {}
        self.lacking = frozenset(self._lacking())
        for state in self.states.values():
            wanted = self._needs.setdefault(state.task.key, {})
            for rule in self.ruleset.rules:
                if not rule.applies(state.task):
                    continue
                for metric, span in needs(rule):
                    pair = (state.task.source, metric)
                    if pair in self.lacking:
                        continue
                    more = self._hold_beyond(rule, state) if self.whole_holds else timedelta()
                    lookback = span + more
                    wanted[metric] = max(lookback, wanted.get(metric, timedelta()))
                    longest[pair] = max(lookback, longest.get(pair, timedelta()))
        for (source, metric), lookback in longest.items():
            self.series.keep(source, metric, lookback)
        self._renew_readers()

    def _hold_beyond(self, rule: Rule, state: TaskState) -> timedelta:
        """How much further back a rule's longest `for` reaches than what evidence shows of it, and a slot."""
        hold = max([rule.hold, *(level.hold for level in rule.levels)])
        slot = 2 * (self.ruleset.interval + self.poll(state.task.source))
        return max(timedelta(), hold - HOLD_SHOWN) + slot

    def _lacking(self) -> Iterable[tuple[str, str]]:
        """The metrics of rules that a source, which knows all of its own, does not have."""
        wanted = {metric for rule in self.ruleset.rules for metric, _ in needs(rule)}
        for name, source in self.sources.items():
            if source.all_metrics:
                known = {info.name for info in source.metric_infos()}
                yield from ((name, m) for m in wanted - known if not m.startswith(COUNTED))

    def wishes(self, source: str, now: datetime) -> Wishes:
        """What a source is to be asked now."""
        tasks = [state for state in self.states.values() if state.task.source == source]
        capabilities = self.sources[source].capabilities
        alive = [state for state in tasks if not state.status.ended]
        return Wishes(
            list_tasks=Capability.LIST in capabilities and self._wants_list(source, capabilities),
            statuses=tuple(s.task for s in tasks) if Capability.STATUS in capabilities else (),
            metrics=tuple(self._metric_wishes(alive, now)) if Capability.METRICS in capabilities else (),
            streams=tuple(
                reader
                for reader in self.readers.values()
                if reader.task.source == source and Capability.LOGS in capabilities
            ),
        )

    def _wants_list(self, source: str, capabilities: frozenset[Capability]) -> bool:
        by_name = any(entry.source == source and not entry.id for entry in self.ruleset.watch)
        return by_name or Capability.STATUS not in capabilities

    def _metric_wishes(self, states: Iterable[TaskState], now: datetime) -> Iterable[MetricWish]:
        for state in states:
            task = state.task
            for metric, lookback in self._needs.get(task.key, {}).items():
                if metric.startswith(COUNTED):
                    continue
                newest = self.series.newest(task.source, metric, task.key)
                since = now - lookback
                if newest and (task.key, metric) not in self._deep:
                    since = max(from_ns(newest) - LATE_POINTS, since)
                yield MetricWish(task=task, metric=metric, since=since)

    def _renew_readers(self) -> None:
        """One reader a stream: everything of a task, or only what the server's filter leaves."""
        wanted = wanted_streams(self.states.values(), self.ruleset.rules)
        before, self.readers = self.readers, {}
        for key, (task, matches) in wanted.items():
            reader = before.pop(key, None)
            if reader is None:
                begin = state_of(key, self.streams, wanted.keys())
                reader = LogReader(task=task, key=key, inbox=self.inbox, literals=_none, state=begin)
            reader.task, reader.literals = task, partial(self.literals, matches)
            self.readers[key] = reader
        for reader in before.values():
            reader.retired = True
        self.inbox.lines = [lines for lines in self.inbox.lines if lines.state.key not in before]

    def clock_set_back(self, shift: timedelta) -> None:
        """Our clock was set back: a line that arrived before has not arrived in the future.

        (If it was set ahead, or the machine slept, that much time may really have passed.)
        """
        shift_ns = -duration_ns(-shift)
        before = dict(self.streams)
        for key, noted in before.items():
            self.streams[key] = arrivals_moved(noted, noted, shift_ns)
            reader = self.readers.get(key)
            if reader is not None and reader.state is not None:
                reader.state = arrivals_moved(reader.state, noted, shift_ns)
        self.inbox.lines = [
            replace(lines, state=arrivals_moved(lines.state, before[lines.state.key], shift_ns))
            if lines.state.key in before
            else lines
            for lines in self.inbox.lines
        ]

    def drop_streams(self) -> tuple[StreamKey, ...]:
        """Forget the streams of watched tasks that no rule wants; returns which."""
        dropped = tuple(key for key in self.streams if key.task in self.states and key not in self.readers)
        for key in dropped:
            del self.streams[key]
        return dropped

    def drop_unasked(self) -> None:
        """Forget how metrics and log streams could be read that no rule wants, or of a task that is over."""
        sources = {key: state.task.source for key, state in self.states.items() if not state.status.ended}
        asked = {
            ProbeKey(source=sources[task], capability=Capability.METRICS, task=task, item=metric)
            for task, wanted in self._needs.items()
            if task in sources
            for metric in wanted
        }
        asked |= {
            ProbeKey(source=reader.task.source, capability=Capability.LOGS, task=key.task, item=key.prefilter)
            for key, reader in self.readers.items()
        }
        self.health = only_asked(self.health, asked)

    def asked(self, key: ProbeKey) -> bool:
        """Whether this is asked of a task that is watched; metrics only until it ends."""
        state = self.states.get(key.task)
        return state is not None and not (key.capability is Capability.METRICS and state.status.ended)

    def answered(self, task: str, metric: str) -> None:
        """Note that an answer came: soon nothing more of the past is wanted than usual."""
        if not self._deep:
            return
        left = self._deep.get((task, metric), 0) - 1
        if left > 0:
            self._deep[task, metric] = left
        else:
            self._deep.pop((task, metric), None)

    def forget_soon(self, task: str, pod: str = "") -> None:
        """Have the next slot forget a task, or that it is expected to have a pod."""
        self.forgetting.append((task, pod))

    def drop_task(self, key: str) -> None:
        """Forget everything about a task."""
        self.states.pop(key, None)
        self.series.forget(task=key)
        for stream in [stream for stream in self.streams if stream.task == key]:
            del self.streams[stream]
        for fact in [fact for fact in self.memory if fact.endswith(fact_about(key, ""))]:
            del self.memory[fact]
            self.new_memory.pop(fact, None)
            self.old_memory.add(fact)

    def remember(self, fact: str, value: str = "said") -> None:
        """Keep a small fact, over restarts too; one about a task (`fact_about`) goes with it."""
        self.memory[fact] = value
        self.new_memory[fact] = value
        self.old_memory.discard(fact)

    def memory_changes(self) -> tuple[dict[str, str], tuple[str, ...]]:
        """Return what T1 has to add to the facts, and what to drop."""
        added, self.new_memory = self.new_memory, {}
        dropped, self.old_memory = tuple(sorted(self.old_memory)), set()
        return added, dropped

    @property
    def units(self) -> dict[tuple[str, str], str]:
        """The unit of each metric, by (source, metric), as far as sources tell."""
        return {
            (name, info.name): info.unit
            for name, source in self.sources.items()
            for info in source.metric_infos()
        }

    @property
    def steps(self) -> dict[tuple[str, str], timedelta]:
        """How rarely points of a metric come, by (source, metric), as far as sources tell."""
        return {
            (name, info.name): info.step
            for name, source in self.sources.items()
            for info in source.metric_infos()
            if info.step is not None
        }

    def changed_states(self) -> tuple[TaskState, ...]:
        """The task states that T1 has not stored as they are."""
        stored = self.stored_states
        moved = [s for key, s in self.states.items() if stored.get(key) is not s]
        changed = tuple(s for s in moved if stored.get(s.task.key) != s)
        self.stored_states = dict(self.states)
        return changed

    def changed_probes(self) -> tuple[ProbeState, ...]:
        """The probe states that T1 has not stored as they are; only what a start resumes from."""
        changed = tuple(
            state
            for key, state in self.health.states.items()
            if (state.blind or key in self._stored_blind) and self._stored_blind.get(key) is not state
        )
        for state in changed:
            self._stored_blind[state.key] = state
        gone = [key for key in self._stored_blind if key not in self.health.states]
        for key in gone:
            del self._stored_blind[key]
        return (*changed, *(ProbeState(key=key) for key in gone))

    # --- what may be trusted

    def standing(self, key: ProbeKey) -> Standing:
        """Whether verdicts may be drawn; status comes with the list where there is no other way."""
        capabilities = self.sources[key.source].capabilities if key.source in self.sources else frozenset()
        if key.capability is Capability.STATUS and Capability.STATUS not in capabilities:
            key = ProbeKey(source=key.source, capability=Capability.LIST)
        return standing(self.health, key)

    def poll(self, source: str) -> timedelta:
        """How often a source is asked."""
        return next((spec.poll for spec in self.ruleset.sources if spec.name == source), DEFAULT_POLL)

    def streams_by_task(self) -> dict[str, tuple[StreamState, ...]]:
        """The consumed streams of each task."""
        found: dict[str, tuple[StreamState, ...]] = {}
        for state in self.streams.values():
            found[state.key.task] = (*found.get(state.key.task, ()), state)
        return found


def fact_about(task: str, what: str) -> str:
    """Return the name of a fact about a task, by its key."""
    return f"{what} // {task}"


def _served(sources: Mapping[str, Source]) -> dict[str, frozenset[Capability]]:
    return {name: source.capabilities for name, source in sources.items()}


def _counted(rule: str) -> str:
    return f"counted/{rule}"


def _none() -> Literals:
    return (), ()
