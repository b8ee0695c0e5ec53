"""Whatever happens in whatever order: every channel learns of every incident once, and of its end after.

A small world plays incidents, a planner run after each event, and a channel that answers as
hypothesis likes, crashes between sending and writing included.
"""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from watchdog.core.alerts import Change, CloseReason, Incident, IncidentMember, Transition
from watchdog.core.backoff import MAX_AGE, after_attempt, next_due
from watchdog.core.labels import Labels
from watchdog.core.moments import Moment
from watchdog.core.notifications import (
    Answer,
    Delivery,
    DeliveryResult,
    DeliveryState,
    LedgerEntry,
    MessageKind,
)
from watchdog.core.planning import Pair, PlanInput, channels_of, plan
from watchdog.core.rules import Severity
from watchdog.core.ruleset import ChannelSpec, Secret

T = datetime(2026, 9, 17, tzinfo=UTC)
CHANNELS = (
    ChannelSpec(name="team", url=Secret("x://")),
    ChannelSpec(name="oncall", url=Secret("y://"), min_severity=Severity.CRITICAL),
)
BEGINNINGS = (MessageKind.FIRST, MessageKind.COMBINED)
ENDINGS = (MessageKind.CLOSED, MessageKind.COMBINED)
REASONS = (CloseReason.RECOVERED, CloseReason.TASK_ENDED, CloseReason.QUIET)


@dataclass
class World:
    """Incidents, an outbox and what each channel really received, in order."""

    minutes: int = 0
    mark: int = 0
    seq: int = 0
    number: int = 0
    incidents: dict[str, Incident] = field(default_factory=dict)
    new: list[Transition] = field(default_factory=list)
    rows: dict[int, Delivery] = field(default_factory=dict)
    ledger: dict[Pair, LedgerEntry] = field(default_factory=dict)
    given_up: dict[Pair, timedelta] = field(default_factory=dict)
    accepted: dict[Pair, list[MessageKind]] = field(default_factory=dict)
    arrived: dict[Pair, list[Delivery]] = field(default_factory=dict)
    due: set[Pair] = field(default_factory=set)

    @property
    def moment(self) -> Moment:
        return Moment(at=T + timedelta(minutes=self.minutes), watched=timedelta(minutes=self.minutes))

    def change(self, incident: Incident, change: Change) -> None:
        self.incidents[incident.id] = incident
        self.seq += 1
        self.new.append(Transition(incident=incident.id, change=change, at=self.moment.at, seq=self.seq))
        if change is not Change.CLOSED:
            self.due |= {(incident.id, name) for name in channels_of(incident, CHANNELS)}

    def plan(self) -> None:
        decision = plan(self._input(), self.moment)
        self.mark, self.new = decision.mark, []
        for superseded in decision.superseded:
            assert self.rows[superseded].state is DeliveryState.PENDING
            del self.rows[superseded]
        for row in decision.deliveries:
            self.number += 1
            self.rows[self.number] = replace(row, id=self.number)
        again = plan(self._input(), self.moment)
        assert (again.deliveries, again.superseded) == ((), ())

    def _input(self) -> PlanInput:
        return PlanInput(
            mark=self.mark,
            transitions=tuple(self.new),
            incidents=self.incidents,
            channels=CHANNELS,
            ledger=self.ledger,
            outbox=tuple(self.rows.values()),
            given_up=self.given_up,
        )

    def take(self, channel: str) -> Delivery | None:
        row = next_due(self.rows.values(), channel, self.moment, self.ledger)
        if row is not None:
            self.rows[row.id] = replace(row, state=DeliveryState.INFLIGHT)
        return self.rows[row.id] if row else None

    def answer(self, row: Delivery, answer: Answer, *, came_through: bool) -> None:
        pair = (row.notification.incident.id, row.notification.channel)
        if answer is Answer.OK or (answer is Answer.UNKNOWN and came_through):
            self.arrived.setdefault(pair, []).append(row)
        decision = after_attempt(row, DeliveryResult(answer=answer), self.moment, 0.5)
        del self.rows[row.id]
        if decision.delivery.state is DeliveryState.PENDING:
            self.rows[row.id] = decision.delivery
        if decision.ledger is not None:
            self.ledger[pair] = decision.ledger
            self.accepted.setdefault(pair, []).append(row.notification.kind)
        if decision.gave_up:
            self.given_up[pair] = self.moment.watched

    def crash(self) -> None:
        """Start anew: what was in flight may have arrived, what was only remembered is gone."""
        self.given_up = {}
        for row in self.rows.values():
            if row.state is DeliveryState.INFLIGHT:
                said = replace(row.notification, maybe_repeat=True)
                self.rows[row.id] = replace(row, state=DeliveryState.PENDING, notification=said)

    def settle(self) -> None:
        """From now on every channel works."""
        for row in [row for row in self.rows.values() if row.state is DeliveryState.INFLIGHT]:
            self.answer(row, Answer.OK, came_through=True)
        for _ in range(200):
            self.minutes += 6
            self.plan()
            for channel in CHANNELS:
                while (row := self.take(channel.name)) is not None:
                    self.answer(row, Answer.OK, came_through=True)
            if not self.rows:
                return
        raise AssertionError("the outbox never empties")


EVENTS = st.one_of(
    st.tuples(st.just("open"), st.sampled_from([Severity.WARNING, Severity.CRITICAL])),
    st.tuples(st.just("grow"), st.integers(0, 2)),
    st.tuples(st.just("escalate"), st.integers(0, 2)),
    st.tuples(st.just("close"), st.integers(0, 2), st.sampled_from(REASONS)),
    st.tuples(st.just("take"), st.sampled_from(["team", "oncall"])),
    st.tuples(
        st.just("answer"),
        st.sampled_from([Answer.OK, Answer.RETRY, Answer.UNKNOWN, Answer.PERMANENT]),
        st.booleans(),
    ),
    st.tuples(st.just("wait"), st.integers(1, 300)),
    st.tuples(st.just("crash")),
)


def _play(world: World, event: tuple[object, ...], *, refuse: bool) -> None:
    match event:
        case ("open", Severity() as severity):
            _open(world, severity)
        case ("grow" | "escalate" | "close" as what, int(index), *rest):
            ongoing = [incident for incident in world.incidents.values() if incident.open]
            if ongoing:
                _change(world, what, ongoing[index % len(ongoing)], *rest)
        case ("take", str(channel)):
            world.take(channel)
        case ("answer", Answer() as answer, bool(came_through)):
            flying = [row for row in world.rows.values() if row.state is DeliveryState.INFLIGHT]
            if answer is Answer.PERMANENT and not refuse:
                answer = Answer.RETRY
            if flying:
                world.answer(flying[0], answer, came_through=came_through)
        case ("wait", int(minutes)):
            world.minutes += minutes
        case ("crash",):
            world.crash()


def _open(world: World, severity: Severity) -> None:
    labels = Labels.of(task=f"a/{len(world.incidents)}")
    now = world.moment.at
    incident = Incident(
        id=f"i{len(world.incidents)}",
        rule="rule",
        labels=labels,
        severity=severity,
        event=False,
        opened_at=now,
        since=now,
        updated_at=now,
        members=(IncidentMember(labels=labels, since=now),),
    )
    world.change(incident, Change.OPENED)


def _change(world: World, what: str, incident: Incident, *rest: object) -> None:
    now = world.moment.at
    match what, rest:
        case "grow", _:
            member = IncidentMember(labels=Labels.of(pod=f"p{len(incident.members)}"), since=now)
            world.change(replace(incident, members=(*incident.members, member)), Change.GREW)
        case "escalate", _:
            world.change(replace(incident, severity=Severity.CRITICAL), Change.ESCALATED)
        case "close", [CloseReason() as reason]:
            world.change(replace(incident, closed_at=now, close_reason=reason), Change.CLOSED)


def _run(events: list[tuple[object, ...]], *, refuse: bool) -> World:
    world = World()
    for event in events:
        _play(world, event, refuse=refuse)
        if event[0] not in ("take", "wait"):
            world.minutes += 1
            world.plan()
    return world


def _told_in_order(kinds: list[MessageKind]) -> bool:
    """A beginning (an escalation may be one) comes first and once; nothing follows an end."""
    return (
        kinds[0] is not MessageKind.CLOSED
        and not any(kind in BEGINNINGS for kind in kinds[1:])
        and not any(kind in ENDINGS for kind in kinds[:-1])
    )


@settings(max_examples=150, deadline=None)
@given(st.lists(EVENTS, max_size=40))
def test_every_incident_reaches_each_due_channel_once_and_its_end_after_it(
    events: list[tuple[object, ...]],
) -> None:
    world = _run(events, refuse=False)
    if timedelta(minutes=world.minutes) >= MAX_AGE:
        return  # given up by age: the other property

    world.settle()

    for pair in world.due:
        told = world.accepted.get(pair, [])
        assert sum(kind in BEGINNINGS for kind in told) == 1, (pair, told)
        incident = world.incidents[pair[0]]
        aloud = not incident.open and incident.close_reason is not CloseReason.QUIET
        assert sum(kind in ENDINGS for kind in told) == (1 if aloud else 0), (pair, told)
    assert set(world.accepted) == world.due
    assert all(_told_in_order(kinds) for kinds in world.accepted.values())


@settings(max_examples=150, deadline=None)
@given(st.lists(EVENTS, max_size=50))
def test_the_end_never_arrives_before_the_beginning_even_when_channels_refuse(
    events: list[tuple[object, ...]],
) -> None:
    world = _run(events, refuse=True)

    world.settle()

    assert all(_told_in_order(kinds) for kinds in world.accepted.values())
    for rows in world.arrived.values():
        assert rows[0].notification.kind is not MessageKind.CLOSED
        for earlier, later in pairwise(rows):
            again = earlier.id == later.id
            assert not again or later.notification.maybe_repeat
            assert again or later.created >= earlier.created


@settings(max_examples=60, deadline=None)
@given(st.lists(EVENTS, max_size=40))
def test_what_is_told_at_the_end_is_what_is_so(events: list[tuple[object, ...]]) -> None:
    world = _run(events, refuse=False)
    if timedelta(minutes=world.minutes) >= MAX_AGE:
        return

    world.settle()
    world.minutes += 6
    world.plan()
    world.settle()

    for pair in world.due:
        incident = world.incidents[pair[0]]
        if incident.open:
            entry = world.ledger[pair]
            assert entry.severity is incident.severity
            assert entry.members == len(incident.members)
