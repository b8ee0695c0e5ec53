"""Self-watch: what a slot has to say about the watching itself.

Blind sources, rules that cannot be judged, tasks that never log, suspect values, slow sources.
Owns how long such a thing must last before it is worth a message; the text is `core.wording`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from watchdog.core.alerts import Notice, NoticeKind
from watchdog.core.blindness import blind_notices
from watchdog.core.conditions.kinds import Capability, LogCount, Share, Threshold
from watchdog.core.durations import format_duration
from watchdog.core.health import ProbeKey, Standing
from watchdog.core.labels import TASK
from watchdog.core.moments import Tick
from watchdog.core.outcomes import Evaluation, Outcome
from watchdog.core.rules import Rule
from watchdog.engine.intake import Arrivals
from watchdog.engine.world import World

NEVER_A_LINE = timedelta(minutes=30)  # watched, in a running task with a healthy log query
THIN_POLLS = 3
THIN_LEAST = timedelta(minutes=10)


@dataclass(slots=True)
class SelfWatch:
    """Counts, over slots, what is not as it should be."""

    world: World
    _thin: dict[tuple[str, str], timedelta] = field(default_factory=dict)  # (rule, task) → watched THIN
    _lineless: dict[str, timedelta] = field(default_factory=dict)  # task → watched without a line

    def notices(
        self, evaluations: Mapping[str, Evaluation], arrivals: Arrivals, tick: Tick
    ) -> Iterable[Notice]:
        """What is to be said in this slot; saying it again is no message."""
        tasks = [state.task for state in self.world.states.values()]
        yield from blind_notices(self.world.health, tasks)
        yield from self._suspects(arrivals)
        if not tick.settling:
            yield from self._thin_rules(evaluations, tick)
            yield from self._never_logged(tick)

    def _suspects(self, arrivals: Arrivals) -> Iterable[Notice]:
        """Suspect values are told once per task and metric, for ever."""
        for task, metric, remark in arrivals.remarks:
            fact = f"suspect/{task.key}/{metric}"
            if fact in self.world.memory:
                continue
            self.world.remember(fact, remark)
            yield Notice(
                kind=NoticeKind.SUSPECT_VALUES,
                subject=f"{task.key}/{metric}",
                labels=task.identity,
                params={"task": task.name, "metric": metric, "remark": remark},
                lasting=False,
            )

    def _thin_rules(self, evaluations: Mapping[str, Evaluation], tick: Tick) -> Iterable[Notice]:
        """A rule that stays THIN although its window has passed is a fault of the rule."""
        rules = {rule.name: rule for rule in self.world.ruleset.rules}
        thin: dict[tuple[str, str], timedelta] = {}
        for name, evaluation in evaluations.items():
            window = _window(rules[name])
            if window is None:
                continue
            for task in _all_thin(evaluation):
                held = self._thin.get((name, task), timedelta()) + tick.elapsed
                thin[name, task] = held
                state = self.world.states.get(task)
                if state is None:
                    continue
                limit = window + THIN_POLLS * self.world.poll(state.task.source)
                if held > max(limit, THIN_LEAST):
                    yield self._thin_notice(rules[name], task, window, active=True)
        for name, task in self._thin.keys() - thin.keys():
            if name in rules and task in self.world.states:
                yield self._thin_notice(rules[name], task, timedelta(), active=False)
        self._thin = thin

    def uncovered(self, evaluations: Mapping[str, Evaluation]) -> Iterable[tuple[str, str]]:
        """The rules and tasks' names of which every labelset is THIN right now."""
        rules = {rule.name: rule for rule in self.world.ruleset.rules}
        for name, evaluation in evaluations.items():
            if _window(rules[name]) is not None:
                for task in sorted(_all_thin(evaluation)):
                    if task in self.world.states:
                        yield name, self.world.states[task].task.name

    def _thin_notice(self, rule: Rule, task: str, window: timedelta, *, active: bool) -> Notice:
        state = self.world.states[task]
        params = {"rule": rule.name, "task": state.task.name}
        if active:
            params["window"] = format_duration(window)
        return Notice(
            kind=NoticeKind.RULE_THIN,
            subject=f"{rule.name}/{task}",
            labels=state.task.identity,
            params=params,
            active=active,
        )

    def _never_logged(self, tick: Tick) -> Iterable[Notice]:
        """A healthy log query without one line of a running task is probably asked in the wrong place."""
        for key, state in self.world.states.items():
            streams = [stream for stream in self.world.streams.values() if stream.key.task == key]
            probe = ProbeKey(source=state.task.source, capability=Capability.LOGS, task=key)
            healthy = bool(streams) and self.world.standing(probe) is Standing.GOOD
            if any(stream.lines for stream in streams) or f"logged/{key}" in self.world.memory:
                if self._lineless.pop(key, None) is not None:
                    yield self._lineless_notice(key, active=False)
                continue
            if healthy and state.status.counts_as_running:
                self._lineless[key] = self._lineless.get(key, timedelta()) + tick.elapsed
                if self._lineless[key] >= NEVER_A_LINE:
                    yield self._lineless_notice(key, active=True)

    def _lineless_notice(self, key: str, *, active: bool) -> Notice:
        task = self.world.states[key].task
        return Notice(
            kind=NoticeKind.NO_LOG_LINE,
            subject=key,
            labels=task.identity,
            params={"task": task.name, "namespace": task.namespace},
            active=active,
        )


def _window(rule: Rule) -> timedelta | None:
    """The window a rule needs covered; None for rules that are never THIN for long."""
    condition = rule.condition
    if isinstance(condition, LogCount):
        return None
    if isinstance(condition, Share):
        return condition.window
    return condition.window if isinstance(condition, Threshold) else None


def _all_thin(evaluation: Evaluation) -> set[str]:
    """The tasks of which every labelset is THIN."""
    thin: dict[str, bool] = {}
    for labels, outcome in zip(evaluation.labels, evaluation.outcome[:, 0], strict=True):
        task = labels.get(TASK, "")
        thin[task] = thin.get(task, True) and outcome == Outcome.THIN
    return {task for task, all_thin in thin.items() if all_thin}
