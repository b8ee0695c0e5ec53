"""Self-watch: what a slot has to say about the watching itself.

Blind sources, rules that cannot be judged, tasks that never log, suspect values, slow sources.
Owns how long such a thing must last before it is worth a message; the text is `core.wording`.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from watchdog.core.alerts import Notice, NoticeKind
from watchdog.core.blindness import blind_notices
from watchdog.core.conditions.kinds import Capability, Peers, Share, Threshold
from watchdog.core.durations import format_duration
from watchdog.core.health import ProbeKey, Standing
from watchdog.core.labels import TASK, Labels
from watchdog.core.moments import Tick
from watchdog.core.notices import notice_rule
from watchdog.core.outcomes import Evaluation, Outcome
from watchdog.core.rules import OnNoData, Rule, Severity
from watchdog.core.tasks import Task
from watchdog.engine.intake import Arrivals, logged
from watchdog.engine.world import World, fact_about

NEVER_A_LINE = timedelta(minutes=30)  # watched, in a running task with a healthy log query
THIN_POLLS = 3
THIN_LEAST = timedelta(minutes=10)
SUSPECT = "suspect"  # how remarks about odd values begin
VERDICTS = frozenset({Outcome.TRUE, Outcome.FALSE, Outcome.BETWEEN})
_VERDICTS = [int(outcome) for outcome in VERDICTS]
_LAST_VERDICT = max(_VERDICTS)  # they have the lowest codes, see `Outcome`


def _kind(remark: str) -> str:
    """What two remarks must share to be told once: what stands before the colon, whatever its numbers."""
    return re.sub(r"[0-9.]+", "#", remark.partition(":")[0])[:80]


@dataclass(frozen=True, slots=True)
class _Owners:
    """Whose labelsets a rule judges. tasks: key → place; codes: per labelset, the place of its task."""

    labels: tuple[Labels, ...]
    tasks: Mapping[str, int]
    codes: NDArray[np.int64]

    @classmethod
    def of(cls, labels: tuple[Labels, ...]) -> "_Owners":
        places: dict[str, int] = {}
        codes = [places.setdefault(own.get(TASK, ""), len(places)) for own in labels]
        return cls(labels, places, np.array(codes, np.int64))

    def seen(self, evaluation: Evaluation) -> NDArray[np.bool_]:
        """Return which outcomes each task has: (tasks, outcomes)."""
        found = np.zeros((len(self.tasks), len(Outcome)), np.bool_)
        found[self.codes, evaluation.outcome[:, 0]] = True
        return found


@dataclass(slots=True)
class SelfWatch:
    """Counts, over slots, what is not as it should be."""

    world: World
    _unjudged: dict[tuple[str, str], timedelta] = field(default_factory=dict)  # (rule, task) → watched
    _lineless: dict[str, timedelta] = field(default_factory=dict)  # task → watched without a line
    _owners: dict[str, _Owners] = field(default_factory=dict)  # by rule, as of the newest slot

    def notices(
        self, evaluations: Mapping[str, Evaluation], arrivals: Arrivals, tick: Tick
    ) -> Iterable[Notice]:
        """What is to be said in this slot; saying it again is no message."""
        tasks = [state.task for state in self.world.states.values()]
        yield from blind_notices(self.world.health, tasks)
        yield from self._suspects(arrivals)
        if not tick.settling:
            yield from self._unjudged_rules(evaluations, tick)
            yield from self._never_logged(tick)

    def _suspects(self, arrivals: Arrivals) -> Iterable[Notice]:
        """Suspect values are told once per task and metric, other remarks once per task and kind."""
        for task, metric, remark in arrivals.remarks:
            suspect = remark.startswith(SUSPECT)
            subject = f"{task.key}/{metric if suspect else _kind(remark)}"
            fact = fact_about(task.key, f"suspect {subject.removeprefix(task.key)}")
            if fact in self.world.memory:
                continue
            self.world.remember(fact, remark)
            yield Notice(
                kind=NoticeKind.SUSPECT_VALUES if suspect else NoticeKind.SOURCE_REMARK,
                subject=subject,
                labels=task.identity,
                params={"source": task.source, "task": task.name, "metric": metric, "remark": remark},
                severity=Severity.WARNING if suspect else Severity.INFO,
                lasting=False,
            )

    def _unjudged_rules(self, evaluations: Mapping[str, Evaluation], tick: Tick) -> Iterable[Notice]:
        """A rule without a verdict although its window has passed is a fault of the rule, told once."""
        rules = {rule.name: rule for rule in self.world.ruleset.rules}
        waiting: dict[tuple[str, str], timedelta] = {}
        thin = notice_rule(NoticeKind.RULE_THIN)
        open_ = {subject for kind, subject in self.world.book.open if kind == thin}
        for name, evaluation in evaluations.items():
            rule, faults = rules[name], _faults(rules[name])
            known = {task for own, task in self._unjudged if own == name}
            for task, outcomes in self._worth_a_look(evaluation, known, open_) if faults else ():
                state = self.world.states.get(task)
                if state is None:
                    continue
                held = self._unjudged.get((name, task), timedelta())
                if outcomes <= faults:
                    held = waiting[name, task] = held + tick.elapsed
                    limit = _window(rule) + THIN_POLLS * self.world.poll(state.task.source)
                    if held > max(limit, THIN_LEAST):
                        yield _unjudged(rule, state.task, thin=Outcome.THIN in outcomes)
                elif outcomes & VERDICTS:
                    if f"{name}/{task}" in open_:
                        yield _judged(rule, state.task)
                elif held:  # blind: neither better nor worse
                    waiting[name, task] = held
        self._unjudged = waiting
        self._owners = {name: owners for name, owners in self._owners.items() if name in evaluations}

    def uncovered(self, evaluations: Mapping[str, Evaluation]) -> Iterable[tuple[str, str]]:
        """The rules and tasks' names of which every labelset is THIN right now."""
        rules = {rule.name: rule for rule in self.world.ruleset.rules}
        for name, evaluation in evaluations.items():
            owners = self._owners_of(evaluation)
            seen = owners.seen(evaluation)
            for task, place in sorted(owners.tasks.items()):
                thin = _outcomes(seen[place]) == {Outcome.THIN} <= _faults(rules[name])
                if thin and task in self.world.states:
                    yield name, self.world.states[task].task.name

    def _worth_a_look(
        self, evaluation: Evaluation, known: Collection[str], told: Collection[str]
    ) -> Iterable[tuple[str, frozenset[Outcome]]]:
        """Yield the tasks without any verdict, and those of which that was so, with their outcomes.

        known: those that were without one. told: the subjects of all that was said about such.
        """
        prefix = f"{evaluation.rule}/"
        again = {*known, *(one.removeprefix(prefix) for one in told if one.startswith(prefix))}
        if not again and evaluation.outcome.max(initial=0) <= _LAST_VERDICT:
            return
        owners = self._owners_of(evaluation)
        seen = owners.seen(evaluation)
        judged = np.any(seen[:, _VERDICTS], axis=1)
        for task, place in owners.tasks.items():
            if task in again or not judged[place]:
                yield task, _outcomes(seen[place])

    def _owners_of(self, evaluation: Evaluation) -> _Owners:
        """Return whose the labelsets are; that is worked out when they change only."""
        owners = self._owners.get(evaluation.rule)
        if owners is None or not (owners.labels is evaluation.labels or owners.labels == evaluation.labels):
            owners = self._owners[evaluation.rule] = _Owners.of(evaluation.labels)
        return owners

    def _open(self, kind: NoticeKind, subject: str) -> bool:
        """Whether this was said, by this process or an earlier one, and is not over yet."""
        return (notice_rule(kind), subject) in self.world.book.open

    def _never_logged(self, tick: Tick) -> Iterable[Notice]:
        """A healthy log query without one line of a running task is probably asked in the wrong place."""
        self._lineless = {key: held for key, held in self._lineless.items() if key in self.world.states}
        by_task = self.world.streams_by_task()
        for key, state in self.world.states.items():
            streams = [stream for stream in by_task.get(key, ()) if not stream.key.prefilter]
            if any(stream.lines for stream in streams) or logged(key) in self.world.memory:
                self._lineless.pop(key, None)
                if self._open(NoticeKind.NO_LOG_LINE, key):
                    yield self._lineless_notice(key, active=False)
                continue
            if streams and state.status.counts_as_running and self._log_is_read(state.task):
                self._lineless[key] = self._lineless.get(key, timedelta()) + tick.elapsed
                if self._lineless[key] >= NEVER_A_LINE:
                    yield self._lineless_notice(key, active=True)

    def _log_is_read(self, task: Task) -> bool:
        probe = ProbeKey(source=task.source, capability=Capability.LOGS, task=task.key)
        return self.world.standing(probe) is Standing.GOOD

    def _lineless_notice(self, key: str, *, active: bool) -> Notice:
        task = self.world.states[key].task
        return Notice(
            kind=NoticeKind.NO_LOG_LINE,
            subject=key,
            labels=task.identity,
            params={"task": task.name, "namespace": task.namespace},
            active=active,
        )


def _faults(rule: Rule) -> frozenset[Outcome]:
    """What all labelsets of a task must not be for long; empty for rules that need no data."""
    condition = rule.condition
    if not isinstance(condition, Threshold | Share | Peers):
        return frozenset()
    faults = {Outcome.NODATA} if rule.on_no_data is OnNoData.HOLD else set()
    if not isinstance(condition, Peers) and condition.window is not None:
        faults.add(Outcome.THIN)
    return frozenset(faults)


def _window(rule: Rule) -> timedelta:
    condition = rule.condition
    window = condition.window if isinstance(condition, Threshold | Share | Peers) else None
    return window or timedelta()


def _outcomes(seen: NDArray[np.bool_]) -> frozenset[Outcome]:
    """Return the outcomes that are marked: seen (outcomes,)."""
    return frozenset(map(Outcome, np.flatnonzero(seen).tolist()))


def _unjudged(rule: Rule, task: Task, *, thin: bool) -> Notice:
    """Say that a rule has no verdict: its window is never covered, or there is no data at all."""
    window = _window(rule)
    condition = rule.condition
    params = {"rule": rule.name, "task": task.name}
    if thin:
        params |= {"lacking": "too few points cover its window", "window": format_duration(window)}
    elif isinstance(condition, Threshold | Share | Peers):
        params |= {"lacking": f"it has no point of {condition.metric}", "metric": condition.metric}
    return Notice(
        kind=NoticeKind.RULE_THIN, subject=f"{rule.name}/{task.key}", labels=task.identity, params=params
    )


def _judged(rule: Rule, task: Task) -> Notice:
    return Notice(
        kind=NoticeKind.RULE_THIN,
        subject=f"{rule.name}/{task.key}",
        labels=task.identity,
        params={"rule": rule.name, "task": task.name},
        active=False,
    )
