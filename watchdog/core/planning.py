"""The planner: which channel is told what of which incident, as pure decisions.

Reads transitions after its mark and compares, per incident and channel, what was said (ledger),
what is about to be said (outbox) and what is so. Planning again after a decision was applied
adds nothing. Knows no wording and no transport.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from watchdog.core.alerts import Change, CloseReason, Incident, Transition
from watchdog.core.evidence import with_news
from watchdog.core.moments import Moment
from watchdog.core.notifications import (
    Delivery,
    DeliveryState,
    LedgerEntry,
    MessageKind,
    Notification,
)
from watchdog.core.ruleset import ChannelSpec

UPDATE_PAUSE = timedelta(minutes=5)  # watched time before a message that only adds members or lines …
UPDATE_PAUSE_MOST = timedelta(hours=1)  # … doubled with each one, up to this
UPDATES_COUNTED = 8  # the pause has long ceased to grow
NOTICE_REPEAT = timedelta(hours=24)
GIVEN_UP_PAUSE = timedelta(hours=1)  # at least; a longer `repeat` counts

Pair = tuple[str, str]  # (incident id, channel name)

_ENDINGS = frozenset({MessageKind.CLOSED, MessageKind.COMBINED})


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanInput:
    """All that the planner looks at.

    incidents: by id; the open ones, and closed ones as long as a row about them is live or a
        transition of theirs is after the mark.
    outbox: pending and in-flight rows; rows in other states are ignored.
    given_up: when (watched) a message about an incident to a channel was last given up; keeps a
        refusing channel from being asked anew in every slot. May be forgotten at a restart.
    """

    mark: int
    transitions: tuple[Transition, ...] = ()
    incidents: Mapping[str, Incident] = field(default_factory=dict)
    channels: tuple[ChannelSpec, ...] = ()
    ledger: Mapping[Pair, LedgerEntry] = field(default_factory=dict)
    outbox: tuple[Delivery, ...] = ()
    given_up: Mapping[Pair, timedelta] = field(default_factory=dict)
    not_stored: bool = False  # T1 failed: what is told now says so


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDecision:
    """What T2 stores: how far was read, new rows (id 0), pending rows that they make needless."""

    mark: int
    deliveries: tuple[Delivery, ...] = ()
    superseded: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """One incident and one channel: what happened, what was said, what is on its way."""

    incident: Incident
    channel: str
    due: bool  # the incident is for this channel
    changes: frozenset[Change]
    entry: LedgerEntry | None
    rows: tuple[Delivery, ...]  # live, oldest first
    given_up: timedelta | None

    @property
    def pending(self) -> tuple[Delivery, ...]:
        return tuple(row for row in self.rows if row.state is DeliveryState.PENDING)

    @property
    def untold(self) -> bool:
        """Nothing was told, and nothing that is on its way can have arrived."""
        return self.entry is None and not any(map(_may_have_arrived, self.rows))

    @property
    def ended(self) -> bool:
        """The end was told or is on its way."""
        told = self.entry is not None and self.entry.kind in _ENDINGS
        return told or any(row.notification.kind in _ENDINGS for row in self.rows)

    @property
    def retry_pause(self) -> timedelta:
        return max(_repeat(self.incident), GIVEN_UP_PAUSE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """One case's decision: a message to queue (None = none), in place of some pending rows."""

    kind: MessageKind | None
    instead_of: tuple[Delivery, ...] = ()
    reminder: int = 0
    update: int = 0


def plan(state: PlanInput, moment: Moment) -> PlanDecision:
    """Decide what is to be queued now, at most one row per incident and channel."""
    rows: list[Delivery] = []
    superseded: list[int] = []
    for case in _cases(state):
        step = _step(case, moment)
        if step is None:
            continue
        superseded.extend(row.id for row in step.instead_of)
        if step.kind is not None:
            rows.append(_row(case, step.kind, step, moment, not_stored=state.not_stored))
    return PlanDecision(
        mark=max((transition.seq for transition in state.transitions), default=state.mark),
        deliveries=tuple(rows),
        superseded=tuple(superseded),
    )


def channels_of(incident: Incident, channels: tuple[ChannelSpec, ...]) -> tuple[str, ...]:
    """Return the names of the channels an incident of this severity is for, in the file's order."""
    return tuple(
        channel.name
        for channel in channels
        if (not incident.notify or channel.name in incident.notify)
        and channel.name not in incident.exclude
        and incident.severity.rank >= channel.min_severity.rank
    )


def newly_due(
    incidents: Iterable[Incident], before: Mapping[str, Sequence[str]], channels: tuple[ChannelSpec, ...]
) -> tuple[Pair, ...]:
    """Return which open incidents are for channels that they were not for under the rules before.

    before: by incident id, for the incidents that were open then.
    """
    return tuple(
        (incident.id, channel)
        for incident in incidents
        if _lasts(incident) and incident.id in before
        for channel in channels_of(incident, channels)
        if channel not in before[incident.id]
    )


def in_order(rows: tuple[Delivery, ...]) -> tuple[Delivery, ...]:
    """Return rows in the order in which they were decided."""
    return tuple(sorted(rows, key=lambda row: (row.created, row.id)))


def pair_of(row: Delivery) -> Pair:
    """Return what a row is about: (incident id, channel name)."""
    return (row.notification.incident.id, row.notification.channel)


def _cases(state: PlanInput) -> Iterator[_Case]:
    changes: dict[str, set[Change]] = {}
    for transition in state.transitions:
        changes.setdefault(transition.incident, set()).add(transition.change)
    rows: dict[Pair, list[Delivery]] = {}
    for row in state.outbox:
        if row.state in (DeliveryState.PENDING, DeliveryState.INFLIGHT):
            rows.setdefault(pair_of(row), []).append(row)
    for incident in state.incidents.values():
        due = channels_of(incident, state.channels)
        for channel in state.channels:
            pair = (incident.id, channel.name)
            entry, own = state.ledger.get(pair), rows.get(pair, ())
            if entry is None and not own and channel.name not in due:
                continue  # nothing was said there, and nothing is to be
            yield _Case(
                incident=incident,
                channel=channel.name,
                due=channel.name in due,
                changes=frozenset(changes.get(incident.id, ())),
                entry=entry,
                rows=in_order(tuple(own)),
                given_up=state.given_up.get(pair),
            )


def _step(case: _Case, moment: Moment) -> _Step | None:
    if _ends_aloud(case.incident):
        return _end(case)
    if not case.due or case.ended:
        return None
    if case.rows:
        return _refresh(case, moment)
    if case.entry is None:
        return _first(case, moment)
    return _more(case, case.entry, moment)


def _end(case: _Case) -> _Step | None:
    """Say the end: in one message with the beginning if that is untold, else after it."""
    if case.entry is None and not case.rows:
        news = case.due and case.changes & {Change.OPENED, Change.ESCALATED}
        return _Step(kind=MessageKind.COMBINED) if news else None
    if case.untold:
        return _end_untold(case)
    if case.ended:
        return None
    beginning = case.rows[:1] if case.entry is None else ()
    return _Step(
        kind=MessageKind.CLOSED, instead_of=tuple(row for row in case.pending if row not in beginning)
    )


def _end_untold(case: _Case) -> _Step | None:
    kinds = {row.notification.kind for row in case.rows}
    if MessageKind.COMBINED in kinds:
        return None
    if kinds == {MessageKind.CLOSED}:  # its beginning was given up: nobody is waiting for the end
        return _Step(kind=None, instead_of=case.rows)
    return _Step(kind=MessageKind.COMBINED, instead_of=case.rows)


def _first(case: _Case, moment: Moment) -> _Step | None:
    news = case.changes & {Change.OPENED, Change.GREW, Change.ESCALATED}
    if news or (_lasts(case.incident) and _worth_another_try(case, moment)):
        return _Step(kind=MessageKind.FIRST)
    return None


def _refresh(case: _Case, moment: Moment) -> _Step | None:
    """Put what is so now in place of what waits; behind what may be arriving, only an escalation."""
    last = case.rows[-1]
    if last.notification.decided_at == moment.at:  # at most one row of a kind in a moment: see T2's key
        return None
    said = last.notification.incident
    worse = case.incident.severity.rank > said.severity.rank
    if case.untold and (worse or _grew(case.incident, len(said.members), said.fingerprints)):
        return _Step(kind=MessageKind.FIRST, instead_of=case.pending)
    if worse:
        waiting = tuple(row for row in case.pending if row.notification.kind is not MessageKind.FIRST)
        return _Step(kind=MessageKind.ESCALATION, instead_of=waiting)
    replaceable = last.state is DeliveryState.PENDING and last.notification.kind is not MessageKind.FIRST
    if replaceable and _grew(case.incident, len(said.members), said.fingerprints):
        said_as = last.notification
        return _Step(kind=said_as.kind, instead_of=(last,), reminder=said_as.reminder, update=said_as.update)
    return None


def _more(case: _Case, entry: LedgerEntry, moment: Moment) -> _Step | None:
    """Say what a told channel does not know yet, or remind it."""
    refused = case.given_up is not None and case.given_up > entry.told_watched
    if refused and not case.changes and not _worth_another_try(case, moment):
        return None
    incident = case.incident
    if incident.severity.rank > entry.severity.rank:
        return _Step(kind=MessageKind.ESCALATION, reminder=entry.reminders, update=entry.updates)
    silent_for = moment.watched - entry.told_watched
    updates = entry.updates if silent_for < 2 * UPDATE_PAUSE_MOST else 0
    pause = min(UPDATE_PAUSE * 2**updates, UPDATE_PAUSE_MOST)
    # What has gone quiet has no later occasion.
    if _grew(incident, entry.members, entry.fingerprints) and (silent_for >= pause or not incident.open):
        return _Step(
            kind=MessageKind.UPDATE, reminder=entry.reminders, update=min(updates + 1, UPDATES_COUNTED)
        )
    repeat = _repeat(incident)
    if _lasts(incident) and repeat and silent_for >= repeat:
        return _Step(kind=MessageKind.REMINDER, reminder=entry.reminders + 1, update=entry.updates)
    return None


def _row(case: _Case, kind: MessageKind, step: _Step, moment: Moment, *, not_stored: bool) -> Delivery:
    """Return the new row; it takes over the waits and tries of the ones it replaces."""
    notification = Notification(
        channel=case.channel,
        kind=kind,
        incident=_with_news(case, kind),
        decided_at=moment.at,
        reminder=step.reminder,
        update=step.update,
        not_stored=not_stored,
        half_size=any(row.notification.half_size for row in step.instead_of),
    )
    row = Delivery(notification=notification, created=moment.watched, not_before=moment.watched)
    tried = [old for old in step.instead_of if old.last_result is not None]
    if tried:
        row = replace(
            row,
            not_before=max(moment.watched, *(old.not_before for old in tried)),
            attempts=max(old.attempts for old in tried),
            last_result=tried[-1].last_result,
        )
    if kind is MessageKind.FIRST and step.instead_of:
        row = replace(row, created=step.instead_of[0].created)
    return row


def _with_news(case: _Case, kind: MessageKind) -> Incident:
    """Return the incident with a line of every kind that this channel was not told of."""
    incident = case.incident
    if not incident.event or not incident.news:
        return incident
    told = case.entry.fingerprints if case.entry is not None else ()
    untold = [line for line in incident.news if line.kind not in told]
    if kind is MessageKind.UPDATE:
        return replace(incident, latest=with_news(incident.latest, untold), news=tuple(untold[:1]))
    return replace(incident, first=with_news(incident.first, untold), news=())


def _ends_aloud(incident: Incident) -> bool:
    """Events happened and do not end; what went quiet is no news."""
    return not incident.open and not incident.event and incident.close_reason is not CloseReason.QUIET


def _may_have_arrived(row: Delivery) -> bool:
    return row.state is DeliveryState.INFLIGHT or row.notification.maybe_repeat


def _worth_another_try(case: _Case, moment: Moment) -> bool:
    return case.given_up is not None and moment.watched - case.given_up >= case.retry_pause


def _lasts(incident: Incident) -> bool:
    return incident.open and not incident.event


def _repeat(incident: Incident) -> timedelta:
    return NOTICE_REPEAT if incident.notice is not None else incident.repeat


def _grew(incident: Incident, members: int, fingerprints: tuple[str, ...]) -> bool:
    return len(incident.members) > members or not set(incident.fingerprints) <= set(fingerprints)
