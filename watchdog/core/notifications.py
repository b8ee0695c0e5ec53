"""Notifications, deliveries and the ledger: what is told to whom, and what became of it.

Owns the values; deciding is `planning`, wording is `wording`.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from watchdog.core.alerts import Incident
from watchdog.core.rules import Severity


class MessageKind(StrEnum):
    """What a message says about its incident."""

    FIRST = "first"
    UPDATE = "update"
    ESCALATION = "escalation"
    REMINDER = "reminder"
    CLOSED = "closed"
    COMBINED = "combined"  # fired and closed before the channel could be told


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """One message for one channel, as data; rendered when it is sent."""

    channel: str
    kind: MessageKind
    incident: Incident  # a copy from the moment of the decision
    decided_at: datetime
    reminder: int = 0  # which reminder this is, from 1
    update: int = 0  # how many updates in quick succession this channel was sent, this one included
    maybe_repeat: bool = False  # an earlier attempt may have arrived
    not_stored: bool = False  # the state could not be written when this was decided
    half_size: bool = False  # the provider found an earlier, longer rendering too long


class DeliveryState(StrEnum):
    """Where a delivery stands."""

    PENDING = "pending"
    INFLIGHT = "inflight"
    DONE = "done"
    DEAD = "dead"  # refused for good, or too old
    SUPERSEDED = "superseded"  # a later message says it too


class Answer(StrEnum):
    """What a provider really answered."""

    OK = "ok"
    RETRY = "retry"
    PERMANENT = "permanent"
    TOO_LONG = "too long"
    UNKNOWN = "unknown"  # it may or may not have arrived


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryResult:
    """One attempt's true outcome. `detail` is for people and holds no secret."""

    answer: Answer
    detail: str = ""
    code: str = ""  # "429", "errcode 45009", "SMTP 451"
    retry_after: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One outbox row. Ages and waits are on the watched clock."""

    id: int = 0  # given by the store
    notification: Notification
    state: DeliveryState = DeliveryState.PENDING
    created: timedelta  # watched
    not_before: timedelta  # watched
    attempts: int = 0
    last_result: DeliveryResult | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """What one channel was last told of one incident, and when."""

    incident: str
    channel: str
    kind: MessageKind
    told_at: datetime
    told_watched: timedelta
    severity: Severity
    members: int = 0  # labelsets told of
    count: int = 0  # events told of
    fingerprints: tuple[str, ...] = ()
    reminders: int = 0
    updates: int = 0  # in quick succession
    answer: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A rendered message, cut to what the channel takes."""

    title: str
    body: str
    severity: Severity
    kind: MessageKind
    incident: str
    dedup: str = ""  # stable per incident, for paging services


class LimitUnit(StrEnum):
    """What a channel counts."""

    BYTES = "bytes"  # of UTF-8
    CHARACTERS = "characters"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelLimits:
    """How much text a channel takes. `title` 0 = the title becomes the body's first line."""

    body: int = 4000
    title: int = 200
    unit: LimitUnit = LimitUnit.BYTES
