"""The world as the engine knows it: one mutable value, changed only inside a slot.

Owns what is kept in memory between slots and how a start restores it. Everything decided about it
is decided in `core`; how a slot changes it is `intake` and `slot`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import numpy as np

from watchdog.core.alerts import Incident, Transition
from watchdog.core.conditions.kinds import Capability, LogCount, LogEvent, LogMatch
from watchdog.core.durations import EPOCH, from_ns
from watchdog.core.evaluation import needs
from watchdog.core.health import Health, ProbeKey, ProbeState, Standing, resumed, standing
from watchdog.core.incidents import Book
from watchdog.core.labels import TASK, Labels
from watchdog.core.logs import StreamKey, StreamState
from watchdog.core.resolving import resolve
from watchdog.core.rules import Rule
from watchdog.core.ruleset import Ruleset
from watchdog.core.series import SeriesPoints, SeriesStore
from watchdog.core.tasks import Task, TaskObservation, TaskState
from watchdog.engine.collector import MetricWish, Wishes
from watchdog.engine.inbox import Inbox
from watchdog.engine.log_reader import Literals, LogReader
from watchdog.ports import LogSample, Source, Stored

LATE_POINTS = timedelta(minutes=5)  # how far back each poll looks for points that came late
LOG_METRIC = "log:"
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
    now: datetime = EPOCH  # the newest slot
    _stored_blind: dict[ProbeKey, ProbeState] = field(default_factory=dict)
    _needs: dict[str, dict[str, timedelta]] = field(default_factory=dict)  # task → metric → lookback

    # --- a start

    def restore(self, stored: Stored) -> None:
        """Resume from what the store holds."""
        self.book = Book.of(stored.alerts, stored.incidents)
        self.health = resumed(stored.probes)
        self.states = {state.task.key: state for state in stored.tasks}
        self.stored_states = dict(self.states)
        self.streams = {state.key: state for state in stored.streams}
        self.incidents = {incident.id: incident for incident in stored.incidents}
        self.transitions = list(stored.transitions)
        self.mark = stored.mark
        self.memory = dict(stored.memory)
        self.tasks_changed()
        self._restore_samples(stored.samples)

    def prime(self, at: datetime) -> None:
        """Before the first slot: know the tasks that the lists name, so that they can be asked about."""
        for arrived in self.inbox.listings:
            self.listings[arrived.source] = arrived.listing.tasks
        for task in resolve(self.ruleset.watch, self.listings, self.states):
            if task.key not in self.states:
                self.states[task.key] = TaskState(task=task, watched_since=at)
        self.tasks_changed()

    def _restore_samples(self, samples: Iterable[LogSample]) -> None:
        by_metric: dict[tuple[str, str], dict[Labels, list[LogSample]]] = {}
        for sample in samples:
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
        for state in self.states.values():
            wanted = self._needs.setdefault(state.task.key, {})
            for rule in self.ruleset.rules:
                if not rule.applies(state.task):
                    continue
                for metric, lookback in needs(rule):
                    wanted[metric] = max(lookback, wanted.get(metric, timedelta()))
                    pair = (state.task.source, metric)
                    longest[pair] = max(lookback, longest.get(pair, timedelta()))
        for (source, metric), lookback in longest.items():
            self.series.keep(source, metric, lookback)
        self._renew_readers()

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
                if metric.startswith(LOG_METRIC):
                    continue
                newest = self.series.newest(task.source, metric, task.key)
                since = max(from_ns(newest) - LATE_POINTS, now - lookback) if newest else now - lookback
                yield MetricWish(task=task, metric=metric, since=since)

    def _renew_readers(self) -> None:
        """One reader a stream: everything of a task, or only what the server's filter leaves."""
        wanted: dict[StreamKey, tuple[Task, list[Rule]]] = {}
        for state in self.states.values():
            rules = [
                r for r in self.ruleset.rules if Capability.LOGS in r.condition.uses and r.applies(state.task)
            ]
            for prefilter in self.prefilters(rules):
                own = [rule for rule in rules if prefilter in ("", _prefilter(rule))]
                wanted[StreamKey(task=state.task.key, prefilter=prefilter)] = (state.task, own)
        before, self.readers = self.readers, {}
        for key, (task, rules) in wanted.items():
            reader = before.get(key)
            matches = tuple(m for m in (_match(rule) for rule in rules) if m is not None)
            self.readers[key] = LogReader(
                task=task,
                key=key,
                inbox=self.inbox,
                literals=lambda matches=matches: self.literals(matches),  # type: ignore[misc]
                state=reader.state if reader else self.streams.get(key),
            )

    @staticmethod
    def prefilters(rules: Sequence[Rule]) -> tuple[str, ...]:
        """The streams that serve these rules: one without a filter serves them all."""
        found = dict.fromkeys(_prefilter(rule) for rule in rules)
        return ("",) if "" in found else tuple(found)

    def remember(self, fact: str, value: str = "said") -> None:
        """Keep a small fact, over restarts too."""
        self.memory[fact] = value
        self.new_memory[fact] = value

    @property
    def units(self) -> dict[tuple[str, str], str]:
        """The unit of each metric, by (source, metric), as far as sources tell."""
        return {
            (name, info.name): info.unit
            for name, source in self.sources.items()
            for info in source.metric_infos()
        }

    def changed_states(self) -> tuple[TaskState, ...]:
        """The task states that T1 has not stored as they are."""
        changed = tuple(s for key, s in self.states.items() if self.stored_states.get(key) is not s)
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
        return changed

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

    def rules_of(self, labels: Labels) -> tuple[Rule, ...]:
        """The rules that are about the task of a labelset."""
        state = self.states.get(labels.get(TASK, ""))
        return tuple(rule for rule in self.ruleset.rules if state is not None and rule.applies(state.task))


def _match(rule: Rule) -> LogMatch | None:
    return rule.condition.lines if isinstance(rule.condition, LogEvent | LogCount) else None


def _prefilter(rule: Rule) -> str:
    match = _match(rule)
    return match.prefilter if match is not None else ""
