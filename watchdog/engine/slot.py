"""The slot function: everything that one slot decides, without a single await.

Runs live, in `watchdog test` and in `once`. Takes what arrived, evaluates every rule, advances
every alert, and returns what T1 is to store; afterwards the planner (T2) reads its transitions.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

import numpy as np

from watchdog.core import carrying
from watchdog.core.alerts import Alert, Notice, NoticeKind
from watchdog.core.conditions.kinds import LogCount, LogEvent
from watchdog.core.conditions.log import log_occurrences, log_samples
from watchdog.core.damping import Damper
from watchdog.core.durations import duration_ns, from_ns, to_ns
from watchdog.core.endings import close_rule_removed, close_stale_notices, close_unasked, renew
from watchdog.core.evaluation import evaluate, occurrences
from watchdog.core.events import advance_events, quiet_expired
from watchdog.core.flapping import Flapping
from watchdog.core.health import sound
from watchdog.core.incidents import Step, apply, join, situated
from watchdog.core.labels import Labels
from watchdog.core.lifecycle import Gate, advance, gate
from watchdog.core.logs import StreamKey
from watchdog.core.membership import Verdicts, as_of_now
from watchdog.core.moments import Moment, Tick
from watchdog.core.notices import advance_notices
from watchdog.core.notifications import Delivery
from watchdog.core.outcomes import Evaluation, Occurrence
from watchdog.core.planning import PlanDecision, PlanInput, channels_of, newly_due, plan
from watchdog.core.protocols import PatternEngine
from watchdog.core.rules import Rule, Severity
from watchdog.core.ruleset import Ruleset
from watchdog.core.scanning import Hits, LogScanner
from watchdog.core.series import SeriesPoints
from watchdog.core.tasks import Task
from watchdog.core.unchanged import Unchanged
from watchdog.core.view import View
from watchdog.engine.inbox import Inbox
from watchdog.engine.intake import Arrivals, Intake
from watchdog.engine.relay import Relay
from watchdog.engine.selfwatch import SelfWatch
from watchdog.engine.world import World
from watchdog.ports import LogSample, SlotCommit

SAMPLES_KEPT = timedelta(hours=1)  # beyond the longest counting window


@dataclass(slots=True, kw_only=True)
class SlotRunner:
    """Runs slots over one world."""

    world: World
    patterns: PatternEngine
    monotonic: Callable[[], timedelta] = timedelta  # only to measure how long a rule takes
    took: dict[str, timedelta] = field(default_factory=dict)  # by rule, in the newest slot
    intake: Intake = field(init=False)
    selfwatch: SelfWatch = field(init=False)
    evaluations: dict[str, Evaluation] = field(default_factory=dict)  # of the newest slot, by rule
    moment: Moment | None = None  # the newest slot
    _last: dict[str, Evaluation] = field(default_factory=dict)  # its verdicts, also of rules edited since
    _unchanged: Unchanged = field(default_factory=Unchanged)
    _flapping: Flapping = field(default_factory=Flapping)
    _scanners: dict[tuple[str, ...], LogScanner] = field(default_factory=dict)
    _damper: Damper = field(default_factory=Damper)
    _new_rules: bool = True  # the next slot is the first with these rules
    _due_before: dict[str, tuple[str, ...]] | None = None  # incident → channels, under the rules before

    def __post_init__(self) -> None:
        self.intake = Intake(self.world)
        self.selfwatch = SelfWatch(self.world)

    def run(self, inbox: Inbox, tick: Tick, notices: Iterable[Notice]) -> SlotCommit:
        """Decide one slot; changes the world and returns T1 (transitions not yet numbered)."""
        world = self.world
        world.now, self.moment = tick.at, tick.moment
        steps: list[Step] = []
        if self._new_rules:
            self._take_over(tick, steps)
        arrivals = self.intake.take(inbox, tick)
        steps += arrivals.steps
        if self._new_rules:
            self._tidy_up(tick, steps)
        elif arrivals.changes or arrivals.dropped_tasks:
            world.drop_unasked()
        seen, samples = self._scan(arrivals, tick)
        self._judge(self.view(arrivals), seen, tick, steps)
        rules = {rule.name: rule for rule in world.ruleset.rules}
        self._advance(quiet_expired(world.book, tick, rules), steps)
        said = [
            *notices,
            *arrivals.notices,
            *self._untold(arrivals),
            *self.selfwatch.notices(self.evaluations, arrivals, tick),
        ]
        asked = {notice.subject for notice in said if notice.kind is NoticeKind.SOURCE_BLIND}
        said = self._damper.damped(said, world.book.open, tick.moment.watched)
        self._advance(advance_notices(said, world.book, tick), steps)
        ended = {key for key, state in world.states.items() if state.status.ended}
        self._advance(close_unasked(world.book, asked, ended, tick.at), steps)
        world.series.mark()
        commit = self._commit(join(steps), arrivals, samples, tick)
        self._new_rules = False
        return commit

    def known(self, rule: str) -> Mapping[Labels, Alert]:
        """Return a rule's pending and firing alerts by labelset, as the newest slot left them."""
        known = self.world.book.known(rule)
        if self.moment is None:
            return known
        last = self._last.get(rule)
        measured = {} if last is None else carrying.values(last, 0)
        return {alert.labels: alert for alert in carrying.as_of(known.values(), measured, self.moment)}

    def alerts(self) -> tuple[Alert, ...]:
        """Return every pending and firing alert, as the newest slot left it."""
        return tuple(alert for rule in self.world.book.alerts for alert in self.known(rule).values())

    def halt(self) -> SlotCommit | None:
        """Make carried alerts exact, as the newest slot left them; returns what an orderly stop stores."""
        if self.moment is None:
            return None
        book = self.world.book
        carried = {alert.id for alert in book.all_alerts() if alert.counting is not None}
        alerts = tuple(alert for alert in self.alerts() if alert.id in carried)
        self.world.book = apply(book, Step(alerts=alerts))
        return SlotCommit(moment=self.moment, alerts=alerts)

    def adopt(self, before: Ruleset) -> None:
        """Go on with the rules that the world has now. What was compiled for the same patterns stays."""
        was = {rule.name: rule.condition for rule in before.rules}
        now = {rule.name: rule.condition for rule in self.world.ruleset.rules}
        same = {name for name in was if was[name] == now.get(name)}
        self._scanners = {names: own for names, own in self._scanners.items() if same.issuperset(names)}
        self.evaluations = {name: own for name, own in self.evaluations.items() if name in same}
        if self._due_before is None:
            incidents = self.world.incidents.values()
            self._due_before = {one.id: channels_of(one, before.channels) for one in incidents if one.open}
        self._unchanged = Unchanged()
        self._new_rules = True

    def _take_over(self, tick: Tick, steps: list[Step]) -> None:
        """End what belongs to rules that are gone; the rest is told as the rules say now."""
        rules = self.world.ruleset.rules
        self._advance(close_rule_removed(self.world.book, rules, tick.at), steps)
        self._advance(renew(self.world.book, rules), steps)

    def _tidy_up(self, tick: Tick, steps: list[Step]) -> None:
        """Once it is known which tasks these rules are about: end what was said of things now gone."""
        world, ruleset = self.world, self.world.ruleset
        world.drop_unasked()
        stale = close_stale_notices(
            world.book,
            tick.at,
            rules=[rule.name for rule in ruleset.rules],
            sources=world.sources.keys(),
            channels=[channel.name for channel in ruleset.channels],
        )
        self._advance(stale, steps)

    def plan(self, relay: Relay, tick: Tick, *, not_stored: bool) -> PlanDecision:
        """T2's decision, from what T1 has just made true."""
        world = self.world
        if self._due_before is not None:
            found = newly_due(world.incidents.values(), self._due_before, world.ruleset.channels)
            relay.invite(found)
            self._due_before = None
        decision = plan(
            PlanInput(
                mark=world.mark,
                transitions=tuple(world.transitions),
                incidents=world.incidents,
                channels=world.ruleset.channels,
                ledger=relay.ledger,
                outbox=tuple(relay.rows.values()),
                given_up=relay.given_up,
                not_stored=not_stored,
            ),
            tick.moment,
        )
        return replace(decision, deliveries=tuple(self._as_of_now(row, tick) for row in decision.deliveries))

    def _as_of_now(self, row: Delivery, tick: Tick) -> Delivery:
        """What is told of an incident long after it changed says how it stands now."""
        said, incident = row.notification, row.notification.incident
        evaluation = self.evaluations.get(incident.rule)
        if evaluation is None or incident.event or not incident.open or incident.updated_at == tick.at:
            return row
        rule = next(rule for rule in self.world.ruleset.rules if rule.name == incident.rule)
        verdicts = Verdicts(rule, evaluation, 0, tick, self.world.states)
        now = as_of_now(verdicts, incident, self.world.book.known(rule.name))
        return replace(row, notification=replace(said, incident=now))

    def planned(self, decision: PlanDecision, relay: Relay) -> None:
        """After T2: what was told needs no further thought."""
        world = self.world
        world.mark = decision.mark
        world.transitions = [t for t in world.transitions if t.seq > decision.mark]
        live = {row.notification.incident.id for row in relay.rows.values()}
        live |= {row.notification.incident.id for row in decision.deliveries}
        over = frozenset(
            incident.id
            for incident in world.incidents.values()
            if not incident.open and incident.id not in live
        )
        for incident in over:
            del world.incidents[incident]
        relay.forget(over)

    # --- logs

    def _scan(self, arrivals: Arrivals, tick: Tick) -> tuple[dict[str, list[Occurrence]], list[LogSample]]:
        """Match new lines; returns occurrences by rule, and the samples of counting rules."""
        found: dict[str, list[Occurrence]] = {}
        samples: list[LogSample] = []
        for task, key, lines in arrivals.lines:
            scanner = self._scanner(task, key)
            if scanner is None:
                continue
            hits = scanner.scan(task, lines)
            for rule in self._log_rules(task, key):
                own = hits.of(rule.name)
                if own is None:
                    continue
                if isinstance(rule.condition, LogEvent):
                    if gate(rule, self.world.states.get(task.key), tick.at) is Gate.OPEN:
                        found.setdefault(rule.name, []).extend(log_occurrences(rule, task, own, tick.at))
                else:
                    samples += self._count(rule, task, log_samples(rule, task, own), tick)
        return found, samples

    def _untold(self, arrivals: Arrivals) -> Iterator[Notice]:
        """What stood in a log before watching began is not told; how much of it would have been, is."""
        for lines in arrivals.standing:
            rules = self._log_rules(lines.task, lines.state.key)
            hits = LogScanner(rules, self.patterns).scan(lines.task, lines.standing) if rules else Hits()
            count = len({number for own in hits.by_rule.values() for number in own.matched})
            if count:
                yield Notice(
                    kind=NoticeKind.FIRST_READ,
                    subject=lines.task.key,
                    labels=lines.task.identity,
                    severity=Severity.INFO,
                    params={
                        "task": lines.task.name,
                        "count": f"{count}+" if lines.standing_more else str(count),
                        "from": from_ns(lines.state.cursor_ns).isoformat(),
                    },
                    lasting=False,
                )

    def _log_rules(self, task: Task, key: StreamKey) -> list[Rule]:
        return [
            rule
            for rule in self.world.ruleset.rules
            if isinstance(rule.condition, LogEvent | LogCount)
            and rule.applies(task)
            and key.prefilter in ("", rule.condition.lines.prefilter)
        ]

    def _scanner(self, task: Task, key: StreamKey) -> LogScanner | None:
        rules = self._log_rules(task, key)
        if not rules:
            return None
        names = tuple(rule.name for rule in rules)
        if names not in self._scanners:
            self._scanners[names] = LogScanner(rules, self.patterns)
        return self._scanners[names]

    def _count(
        self, rule: Rule, task: Task, matches: Iterable[tuple[int, Labels, float]], tick: Tick
    ) -> list[LogSample]:
        """Feed a counting rule's matches into its series; they are stored, no source serves them again."""
        metric = f"log:{rule.name}"
        rows = [LogSample(metric=metric, labels=labels, time_ns=time, value=v) for time, labels, v in matches]
        by_labels: dict[Labels, list[LogSample]] = {}
        for row in rows:
            by_labels.setdefault(row.labels, []).append(row)
        series = [
            SeriesPoints(
                labels=labels,
                times=np.array([row.time_ns for row in own], np.int64),
                values=np.array([row.value for row in own]),
            )
            for labels, own in by_labels.items()
        ]
        self.world.series.intake(task.source, metric, series, to_ns(tick.at), tasks={task.key})
        return rows

    # --- rules

    def view(self, arrivals: Arrivals) -> View:
        """What rules may read in this slot."""
        world = self.world
        return View(
            series=world.series,
            tasks=world.states,
            standing=world.standing,
            streams=world.streams_by_task(),
            poll={spec.name: spec.poll for spec in world.ruleset.sources},
            changes=tuple(arrivals.changes),
            units=world.units,
            steps=world.steps,
            lacking=world.lacking,
            sound=sound(world.health),
        )

    def _judge(self, view: View, seen: Mapping[str, list[Occurrence]], tick: Tick, steps: list[Step]) -> None:
        slot_ns = to_ns(tick.at)
        slots = np.array([slot_ns], np.int64)
        self.evaluations, self.took = {}, {}
        self._flapping.forget(tick.moment.watched)
        for rule in self.world.ruleset.rules:
            began = self.monotonic()
            if rule.is_event:
                happened = seen.get(rule.name) or occurrences(rule, view, slot_ns, tick.interval)
                self._advance(advance_events(rule, happened, self.world.book, tick), steps)
            else:
                evaluation = evaluate(rule, view, slots)
                self.evaluations[rule.name] = evaluation
                last = self._last.get(rule.name)
                found = Verdicts(rule, evaluation, 0, tick, self.world.states, last)
                if not self._unchanged.holds(found, self.world.book):
                    step = advance(found, self.world.book)
                    self._advance(self._flapping.noted(step, tick.moment.watched), steps)
            self.took[rule.name] = self.monotonic() - began
        view.kept.clear()  # it holds what knows the view: a ring, which would stay until it is searched for
        self._last = {name: own.bare() for name, own in self.evaluations.items()}

    def _advance(self, step: Step, steps: list[Step]) -> None:
        if not step.empty:
            step = situated(step, self.world.states)
            self.world.book = apply(self.world.book, step)
            steps.append(step)

    # --- T1

    def _commit(self, step: Step, arrivals: Arrivals, samples: Sequence[LogSample], tick: Tick) -> SlotCommit:
        world = self.world
        for incident in step.incidents:
            world.incidents[incident.id] = incident
        memory, dropped_memory = world.memory_changes()
        dropped_streams = world.drop_streams() if self._new_rules else ()
        streams = (state for key, state in arrivals.streams.items() if key not in dropped_streams)
        return SlotCommit(
            moment=tick.moment,
            alerts=step.alerts,
            dropped_alerts=step.dropped_ids,
            incidents=step.incidents,
            transitions=step.transitions,
            tasks=world.changed_states(),
            dropped_tasks=tuple(arrivals.dropped_tasks),
            streams=tuple(streams),
            dropped_streams=dropped_streams,
            probes=world.changed_probes(),
            samples=tuple(samples),
            forget_samples_before_ns=self._oldest_sample(tick),
            memory=memory,
            dropped_memory=dropped_memory,
        )

    def _oldest_sample(self, tick: Tick) -> int:
        windows = [
            rule.condition.within for rule in self.world.ruleset.rules if isinstance(rule.condition, LogCount)
        ]
        return to_ns(tick.at) - duration_ns(max(windows, default=timedelta()) + SAMPLES_KEPT)
