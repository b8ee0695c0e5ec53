"""Explaining: why a rule does or does not fire, from the verdicts of the newest slot.

Shows what the rule saw of each task, each labelset's verdict and alert, and says in one sentence what
follows. Reads an engine between two slots; judges nothing anew.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import NamedTuple

from watchdog.core.alerts import Alert, Phase
from watchdog.core.conditions.kinds import Capability, LogCount, LogEvent
from watchdog.core.durations import format_duration
from watchdog.core.evaluation import needs
from watchdog.core.health import ProbeKey, Standing
from watchdog.core.labels import TASK, Labels
from watchdog.core.lifecycle import FIRING_MISSING, Gate, gate, hold_of
from watchdog.core.outcomes import Evaluation, Evidence, Outcome
from watchdog.core.rules import OnNoData, Rule
from watchdog.core.series import COUNTED
from watchdog.core.tasks import TaskState
from watchdog.core.view import begin_ns
from watchdog.core.wording.verdicts import finding
from watchdog.core.wording.voice import Voice
from watchdog.engine.engine import Engine
from watchdog.engine.live import near
from watchdog.engine.protocol import ErrorCode, Refusal
from watchdog.engine.showing import beyond_task, looks_at, moment_of, seconds, speaker
from watchdog.engine.views_asked import ExplainTaskView, ExplainView, LabelsetView, SeenView

SHOWN = 20  # labelsets of one task with all their evidence
TASKS = 20

_ORDER = (Outcome.TRUE, Outcome.ERROR, Outcome.THIN, Outcome.NODATA, Outcome.BETWEEN, Outcome.FALSE)


def explain(engine: Engine, rule: str, task: str = "") -> ExplainView:
    """Explain a rule for the tasks that `task` names (name, key, id or glob; "" = all).

    Raises:
        Refusal: there is no such rule or task.
    """
    world, now = engine.world, engine.parts.clock.now()
    found = next((one for one in world.ruleset.rules if one.name == rule), None)
    if found is None:
        known = [one.name for one in world.ruleset.rules]
        raise Refusal(ErrorCode.NOT_FOUND, f"there is no rule {rule!r}{near(rule, known)}")
    states = named(world.states.values(), task)
    if task and not states:
        names = [state.task.name for state in world.states.values()]
        raise Refusal(ErrorCode.NOT_FOUND, f"no task {task!r} is watched{near(task, names)}")
    about = [state for state in states if task or found.applies(state.task)]
    evaluation = engine.runner.evaluations.get(found.name)
    judged = world.now if engine.slots and (evaluation is not None or found.is_event) else None
    explainer = _Explainer(engine, found, evaluation, now)
    return ExplainView(
        live=True,
        at=now,
        timezone=world.ruleset.timezone,
        rule=found.name,
        kind="event" if found.is_event else "state",
        looks_at=looks_at(found.condition),
        severity=found.severity,
        description=found.description,
        judged=judged,
        tasks=tuple(explainer.task(state) for state in about[:TASKS]),
        not_about=sum(not found.applies(state.task) for state in world.states.values()),
    )


def named(states: Iterable[TaskState], wanted: str) -> list[TaskState]:
    """Return the tasks that a name, key, id or glob means; "" = all."""
    if not wanted:
        return list(states)
    return [
        state
        for state in states
        if wanted in (state.task.key, state.task.name, state.task.id)
        or fnmatchcase(state.task.name, wanted)
        or fnmatchcase(state.task.key, wanted)
    ]


class _Explainer:
    """One rule, explained task by task."""

    def __init__(self, engine: Engine, rule: Rule, evaluation: Evaluation | None, now: datetime) -> None:
        self._engine = engine
        self._rule = rule
        self._evaluation = evaluation
        self._known = engine.runner.known(rule.name)
        self._now = now
        self._voice: Voice = speaker(engine.world.ruleset.timezone, now)

    def task(self, state: TaskState) -> ExplainTaskView:
        rule, key = self._rule, state.task.key
        door = Gate.FOREIGN if not rule.applies(state.task) else gate(rule, state, self._engine.world.now)
        rows = [] if self._evaluation is None else self._rows(self._evaluation, key)
        judged = {self._evaluation.labels[g] for g in rows} if self._evaluation is not None else set()
        lost = [
            one for labels, one in self._known.items() if labels.get(TASK) == key and labels not in judged
        ]
        shown = [self._labelset(g, door) for g in rows[:SHOWN]] if self._evaluation is not None else []
        shown += [self._alone(alert, door) for alert in lost[: SHOWN - len(shown)]]
        opened = [
            one.id
            for one in self._engine.world.book.open.values()
            if one.rule == rule.name and one.labels.get(TASK) == key
        ]
        return ExplainTaskView(
            task=state.task.name,
            key=key,
            status=state.status,
            gate=door,
            why=self._door(door, state) or self._summary(rows, opened),
            seen=tuple(self._seen(state)),
            labelsets=tuple(shown),
            more=self._more(rows[SHOWN:]),
            incident=opened[0] if opened else "",
        )

    # --- labelsets

    def _rows(self, evaluation: Evaluation, key: str) -> list[int]:
        """The rows of one task, those that matter most first."""
        mine = [g for g, labels in enumerate(evaluation.labels) if labels.get(TASK) == key]

        def rank(g: int) -> tuple[int, int]:
            alert = self._known.get(evaluation.labels[g])
            phase = 2 if alert is None else 0 if alert.phase is Phase.FIRING else 1
            return phase, _ORDER.index(Outcome(int(evaluation.outcome[g, 0])))

        return sorted(mine, key=rank)

    def _more(self, rows: list[int]) -> dict[str, int]:
        if self._evaluation is None:
            return {}
        outcomes = self._evaluation.outcome
        return dict(Counter(Outcome(int(outcomes[g, 0])).name for g in rows))

    def _labelset(self, g: int, door: Gate) -> LabelsetView:
        assert self._evaluation is not None
        labels = self._evaluation.labels[g]
        outcome, evidence = Outcome(int(self._evaluation.outcome[g, 0])), self._evaluation.explain(g, 0)
        alert = self._known.get(labels)
        return self._view(labels, outcome, evidence, alert, self._why(outcome, evidence, alert, door))

    def _alone(self, alert: Alert, door: Gate) -> LabelsetView:
        """An alert about a labelset that is not judged any more."""
        why = self._why(Outcome.NODATA, Evidence(), alert, door)
        return self._view(alert.labels, None, Evidence(value=alert.value), alert, why)

    def _view(
        self, labels: Labels, outcome: Outcome | None, evidence: Evidence, alert: Alert | None, why: str
    ) -> LabelsetView:
        return LabelsetView(
            labels=beyond_task(labels),
            outcome="not judged" if outcome is None else outcome.name,
            phase=Phase.INACTIVE if alert is None else alert.phase,
            since=None if alert is None else alert.since,
            held_s=0.0 if alert is None else seconds(alert.held),
            hold_s=seconds(hold_of(self._rule)),
            value=evidence.value,
            threshold=evidence.threshold,
            unit=evidence.unit,
            affected=evidence.affected,
            of=evidence.of,
            covered=evidence.covered,
            said=finding(evidence, Outcome.NODATA if outcome is None else outcome, self._voice),
            why=why,
            incident="" if alert is None else alert.incident,
        )

    # --- words

    def _why(self, outcome: Outcome, evidence: Evidence, alert: Alert | None, door: Gate) -> str:
        if alert is not None and alert.phase is Phase.FIRING:
            return self._firing(outcome, alert, door)
        if alert is not None:
            return self._pending(outcome, evidence, alert)
        return {
            Outcome.TRUE: "it is true now",
            Outcome.FALSE: "not true",
            Outcome.BETWEEN: "between its level and its clear level: neither fires nor would clear",
            Outcome.NODATA: self._no_data(),
            Outcome.THIN: self._thin(evidence),
            Outcome.ERROR: f"cannot be judged: {evidence.detail or 'no valid answer for what it uses'}",
        }[outcome]

    def _firing(self, outcome: Outcome, alert: Alert, door: Gate) -> str:
        since = self._voice.time(alert.fired_at or alert.since)
        if outcome is Outcome.TRUE:
            return f"fires since {since}; true for {_short(alert.held)} (for: {_short(hold_of(self._rule))})"
        if door is Gate.STILL or outcome in (Outcome.ERROR, Outcome.THIN):
            return f"fires since {since}, held: it cannot be judged, so it is not known to have recovered"
        if outcome is Outcome.NODATA:
            left = max(FIRING_MISSING - alert.missing_for, timedelta())
            return f"fires since {since}; its data is gone, it closes in {_short(left)} if none comes"
        if outcome is Outcome.BETWEEN:
            return f"fires since {since}; not true any more, but not beyond its clear level"
        left = max(self._rule.keep_firing_for - alert.false_for, timedelta())
        return f"fires since {since}; not true any more, it recovers in {_short(left)} if that lasts"

    def _pending(self, outcome: Outcome, evidence: Evidence, alert: Alert) -> str:
        hold = hold_of(self._rule)
        held = f"true for {_short(alert.held)} of {_short(hold)}"
        if outcome is Outcome.TRUE:
            return f"pending: {held}; fires in {_short(max(hold - alert.held, timedelta()))} if it stays so"
        if outcome is Outcome.THIN:
            return f"pending: {held}; time does not count now: {self._thin(evidence)}"
        if outcome is Outcome.ERROR:
            return f"pending: {held}; time does not count now: it cannot be judged"
        return f"pending: {held}; no data at the moment"

    def _no_data(self) -> str:
        meaning = {
            OnNoData.HOLD: "nothing follows from that",
            OnNoData.FIRE: "which counts as true (on_no_data: fire)",
            OnNoData.OK: "which counts as not true (on_no_data: ok)",
        }[self._rule.on_no_data]
        return f"the source answers, but has no data of it: {meaning}"

    def _thin(self, evidence: Evidence) -> str:
        wanted = f"needs {self._rule.coverage:.0%} of its window"
        if evidence.of <= 1:
            return f"its window is not covered yet: it {wanted}"
        covered = f"{evidence.covered} of {evidence.of} series are"
        return f"its window is not covered yet: {covered}; it {wanted} for {self._rule.quorum:.0%} of them"

    def _door(self, door: Gate, state: TaskState) -> str:
        """Why the rule does not judge the task now; "" if it does."""
        if door is Gate.FOREIGN:
            return "this rule is not about this task (select)"
        if door is Gate.ENDED:
            return f"not judged: the task has ended ({state.status})"
        if door is Gate.UNWATCHED:
            return "not judged: the task is not watched"
        if door is not Gate.STILL:
            return ""
        wanted = self._rule.while_status
        if wanted is not None and state.status not in wanted and not state.status.counts_as_running:
            return f"holds still: the task is {state.status} (while: {', '.join(sorted(wanted))})"
        begin = moment_of(begin_ns(self._rule, state))
        until = f" until {self._voice.time(begin)}" if begin else ""
        return f"holds still{until} (after_start: {_short(self._rule.after_start)})"

    def _summary(self, rows: list[int], opened: list[str]) -> str:
        rule = self._rule
        if rule.is_event:
            return (
                f"an event: its incident {opened[0]} is open" if opened else "an event: nothing has happened"
            )
        if self._evaluation is None:
            return "not judged yet: the next slot will"
        return "" if rows else "there is no series of what it looks at, so nothing to judge"

    # --- what it sees

    def _seen(self, state: TaskState) -> Iterable[SeenView]:
        for look in self._looks(state):
            yield self._seen_view(state, look)

    def _looks(self, state: TaskState) -> "Iterable[_Look]":
        rule, world = self._rule, self._engine.world
        for metric, _ in sorted(needs(rule)):
            if not metric.startswith(COUNTED):
                rows = world.series.table(state.task.source, metric).rows_of(state.task.key)
                newest = world.series.newest(state.task.source, metric, state.task.key)
                yield _Look(Capability.METRICS, metric, metric, int(rows.size), newest)
        if Capability.LOGS in rule.condition.uses:
            wanted = ""
            if isinstance(rule.condition, LogEvent | LogCount):
                wanted = rule.condition.lines.prefilter
            for stream in world.streams_by_task().get(state.task.key, ()):
                if stream.key.prefilter in ("", wanted):
                    newest = max(stream.newest_ns.values(), default=0)
                    pods, said = len(stream.newest_ns), f"{stream.lines} lines read"
                    yield _Look(Capability.LOGS, stream.key.prefilter, "log", pods, newest, said)
        if Capability.STATUS in rule.condition.uses:
            said = " ".join(filter(None, (str(state.status), state.status_text)))
            yield _Look(Capability.STATUS, "", "status", said=said)

    def _seen_view(self, state: TaskState, look: "_Look") -> SeenView:
        world = self._engine.world
        key = ProbeKey(
            source=state.task.source, capability=look.capability, task=state.task.key, item=look.item
        )
        standing = world.standing(key)
        failed = next((one for one in world.health.of(key.whole) if one.failures), None)
        failure = "" if failed is None or failed.failure is None else str(failed.failure)
        if standing is Standing.FAILING and failed is None:
            failure = "not answered yet"
        return SeenView(
            what=look.what,
            standing=standing,
            failure=failure,
            series=look.series,
            newest=moment_of(look.newest_ns),
            detail=look.said if failed is None else failed.detail or look.said,
        )


class _Look(NamedTuple):
    """One thing a rule looks at. item: see `ProbeKey`."""

    capability: Capability
    item: str
    what: str
    series: int = 0
    newest_ns: int = 0
    said: str = ""


def _short(duration: timedelta) -> str:
    return format_duration(timedelta(seconds=round(duration.total_seconds())))
