"""The delivery policy: what becomes of an outbox row after an attempt, and which row is next.

Pure: the caller brings the moment and the random number. All ages and waits are on the watched
clock. Knows nothing of transports beyond the five answers.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from watchdog.core.alerts import Notice, NoticeKind
from watchdog.core.events import FINGERPRINTS_KEPT
from watchdog.core.moments import Moment
from watchdog.core.notifications import (
    Answer,
    Delivery,
    DeliveryResult,
    DeliveryState,
    LedgerEntry,
    MessageKind,
)
from watchdog.core.planning import Pair, in_order, pair_of
from watchdog.core.rules import Severity

BASE = timedelta(seconds=2)
CAP = timedelta(minutes=10)
FLOOR = timedelta(seconds=1)
RETRY_AFTER_CAP = timedelta(hours=1)
THROTTLED_WAIT = timedelta(minutes=1)  # chat services count messages per minute
SECOND_TRY = timedelta(minutes=5)  # after a refusal
MAX_AGE = timedelta(hours=24)
MAX_AGE_INFO = timedelta(hours=1)
BROKEN_AFTER = 5  # failures in a row
LOST_BEFORE = 3  # messages given up, none taken in between
INCIDENTS_NAMED = 10

_URGENT = frozenset({MessageKind.FIRST, MessageKind.ESCALATION})
_RETRYABLE = frozenset({Answer.RETRY, Answer.UNKNOWN})


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptDecision:
    """What T3 stores: the row as it now stands, the ledger if the channel was told.

    gave_up: the row is dead; say so through other channels (`undelivered_notice`).
    """

    delivery: Delivery
    ledger: LedgerEntry | None = None
    gave_up: bool = False


def after_attempt(
    delivery: Delivery, result: DeliveryResult, moment: Moment, jitter: float
) -> AttemptDecision:
    """Decide what becomes of a row. `jitter`: a random number in [0, 1)."""
    row = replace(delivery, last_result=result)
    if not throttled(result):
        row = replace(row, attempts=delivery.attempts + 1)
    if result.answer is Answer.OK:
        return AttemptDecision(
            delivery=replace(row, state=DeliveryState.DONE), ledger=_told(row, result, moment)
        )
    if result.answer is Answer.UNKNOWN:
        row = replace(row, notification=replace(row.notification, maybe_repeat=True))
    if result.answer is Answer.TOO_LONG and not row.notification.half_size:
        row = replace(row, notification=replace(row.notification, half_size=True))
        return _again(row, moment, timedelta())
    if result.answer in _RETRYABLE:
        return _again(row, moment, _wait(row, result, jitter))
    return _refused(delivery, row, moment)


def throttled(result: DeliveryResult) -> bool:
    """Whether the provider asks for patience; such a wait does not count as a try."""
    return result.answer is Answer.RETRY and (result.retry_after is not None or result.code == "429")


def next_due(
    outbox: Iterable[Delivery],
    channel: str,
    moment: Moment,
    ledger: Mapping[Pair, LedgerEntry] | None = None,
) -> Delivery | None:
    """Return the row this channel should try now, or None.

    Oldest first; a critical first word or escalation goes before other incidents; within an
    incident strictly in order. With a ledger, the end of what was never told is passed over
    (the next plan supersedes it).
    """
    due = [row for row in _waiting(outbox, channel, ledger) if row.not_before <= moment.watched]
    return min(due, key=lambda row: (not _urgent(row), row.created, row.id), default=None)


def next_wake(
    outbox: Iterable[Delivery], channel: str, ledger: Mapping[Pair, LedgerEntry] | None = None
) -> timedelta | None:
    """Return when (watched) this channel next has a row to try; None = not before new rows come."""
    return min((row.not_before for row in _waiting(outbox, channel, ledger)), default=None)


def _waiting(
    outbox: Iterable[Delivery], channel: str, ledger: Mapping[Pair, LedgerEntry] | None
) -> list[Delivery]:
    """Return the rows that may be next, at most one an incident."""
    heads: dict[str, Delivery] = {}
    live = (DeliveryState.PENDING, DeliveryState.INFLIGHT)
    for row in in_order(
        tuple(row for row in outbox if row.notification.channel == channel and row.state in live)
    ):
        heads.setdefault(row.notification.incident.id, row)
    return [
        row
        for row in heads.values()
        if row.state is DeliveryState.PENDING and not (ledger is not None and _orphan(row, ledger))
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelHealth:
    """How one channel has been answering.

    not_before: the whole channel rests until then (watched): throttled, or broken and only probed.
    lost: messages given up since one was taken; while the channel is broken they are not told one by one.
    """

    failures: int = 0  # retryable ones in a row
    broken: bool = False
    not_before: timedelta = timedelta()
    lost: int = 0


def after_answer(
    channel: str, health: ChannelHealth, decision: AttemptDecision, moment: Moment
) -> tuple[ChannelHealth, Notice | None]:
    """Return the channel's health after an attempt, and what is to be said about it, if anything."""
    result = decision.delivery.last_result
    if result is None:
        return health, None
    if result.answer is Answer.OK:
        return ChannelHealth(), broken_notice(channel, health, active=False) if health.broken else None
    if throttled(result):
        return replace(health, not_before=decision.delivery.not_before), None
    now = replace(health, lost=health.lost + decision.gave_up)
    if result.answer in _RETRYABLE:
        now = replace(now, failures=health.failures + 1)
    now = replace(now, broken=health.broken or now.failures >= BROKEN_AFTER or now.lost >= LOST_BEFORE)
    if result.answer in _RETRYABLE:
        now = replace(now, not_before=decision.delivery.not_before if now.broken else moment.watched)
    news = now.broken and (not health.broken or decision.gave_up)
    return now, broken_notice(channel, now, result=result) if news else None


def broken_notice(
    channel: str, health: ChannelHealth, *, result: DeliveryResult | None = None, active: bool = True
) -> Notice:
    """Return the notice that a channel does not take messages (or takes them again)."""
    params = {"channel": channel, "answer": _answer(result)}
    if health.failures >= BROKEN_AFTER:
        params["failures"] = str(health.failures)
    if health.lost:
        params["lost"] = str(health.lost)
    return Notice(
        kind=NoticeKind.CHANNEL_BROKEN,
        subject=channel,
        params={name: value for name, value in params.items() if value},
        active=active,
        exclude=(channel,),
    )


def undelivered_notice(delivery: Delivery) -> Notice | None:
    """Return the notice that a message was given up; None for a message about channels itself."""
    incident = delivery.notification.incident
    if incident.notice in (NoticeKind.UNDELIVERED, NoticeKind.CHANNEL_BROKEN):
        return None
    channel = delivery.notification.channel
    return Notice(
        kind=NoticeKind.UNDELIVERED,
        subject=f"{channel}/{incident.id}",
        severity=max(incident.severity, Severity.WARNING, key=lambda severity: severity.rank),
        params={
            "channel": channel,
            "incident": incident.id,
            "rule": incident.rule,
            "task": incident.labels.get("task_name", ""),
            "kind": delivery.notification.kind.value,
            "attempts": str(delivery.attempts),
            "answer": _answer(delivery.last_result),
        },
        lasting=False,
        exclude=(channel,),
    )


REMOVED = DeliveryResult(answer=Answer.PERMANENT, detail="the channel was removed from the rule file")


def channel_removed(row: Delivery) -> AttemptDecision:
    """Decide what becomes of a row whose channel is gone: it is given up."""
    return _dead(replace(row, attempts=row.attempts + 1, last_result=REMOVED))


def channel_removed_notice(channel: str, rows: Iterable[Delivery]) -> Notice | None:
    """Return the one notice about all that a removed channel was still to be told; None = nothing.

    What was to be said about channels themselves needs no telling.
    """
    about = (NoticeKind.UNDELIVERED, NoticeKind.CHANNEL_BROKEN)
    untold = [row.notification.incident for row in rows if row.notification.incident.notice not in about]
    if not untold:
        return None
    ids = list(dict.fromkeys(incident.id for incident in untold))
    more = f" (+{len(ids) - INCIDENTS_NAMED})" if len(ids) > INCIDENTS_NAMED else ""
    return Notice(
        kind=NoticeKind.UNDELIVERED,
        subject=channel,
        severity=max(
            (Severity.WARNING, *(incident.severity for incident in untold)),
            key=lambda severity: severity.rank,
        ),
        params={
            "channel": channel,
            "messages": str(len(untold)),
            "incidents": ", ".join(ids[:INCIDENTS_NAMED]) + more,
        },
        lasting=False,
        concerned=tuple(ids[:FINGERPRINTS_KEPT]),  # what was in flight may follow, and is told as well
    )


def _told(row: Delivery, result: DeliveryResult, moment: Moment) -> LedgerEntry:
    incident = row.notification.incident
    return LedgerEntry(
        incident=incident.id,
        channel=row.notification.channel,
        kind=row.notification.kind,
        told_at=moment.at,
        told_watched=moment.watched,
        severity=incident.severity,
        members=len(incident.members),
        count=incident.count,
        fingerprints=incident.fingerprints,
        reminders=row.notification.reminder,
        updates=row.notification.update,
        answer=_answer(result),
    )


def _again(row: Delivery, moment: Moment, wait: timedelta) -> AttemptDecision:
    age = moment.watched - row.created
    info = row.notification.incident.severity is Severity.INFO
    if age >= (MAX_AGE_INFO if info else MAX_AGE):
        return _dead(row)
    return AttemptDecision(
        delivery=replace(row, state=DeliveryState.PENDING, not_before=moment.watched + wait)
    )


def _refused(before: Delivery, row: Delivery, moment: Moment) -> AttemptDecision:
    last = before.last_result
    if last is not None and last.answer is Answer.PERMANENT:
        return _dead(row)
    if row.last_result is not None:  # a text still too long at half size counts as a refusal
        row = replace(row, last_result=replace(row.last_result, answer=Answer.PERMANENT))
    return _again(row, moment, SECOND_TRY)


def _dead(row: Delivery) -> AttemptDecision:
    return AttemptDecision(delivery=replace(row, state=DeliveryState.DEAD), gave_up=True)


def _wait(row: Delivery, result: DeliveryResult, jitter: float) -> timedelta:
    if result.retry_after is not None:
        return max(FLOOR, min(result.retry_after, RETRY_AFTER_CAP))
    if throttled(result):
        return THROTTLED_WAIT * (0.5 + jitter / 2)
    doubling = min(row.attempts - 1, 20)
    return max(FLOOR, min(CAP, BASE * float(2**doubling)) * jitter)


def _urgent(row: Delivery) -> bool:
    said = row.notification
    return said.kind in _URGENT and said.incident.severity is Severity.CRITICAL


def _orphan(row: Delivery, ledger: Mapping[Pair, LedgerEntry]) -> bool:
    return row.notification.kind is MessageKind.CLOSED and pair_of(row) not in ledger


def _answer(result: DeliveryResult | None) -> str:
    if result is None:
        return ""
    if result.code and result.code not in result.detail:
        return f"{result.code} {result.detail}".strip()
    return result.detail or result.answer.value
