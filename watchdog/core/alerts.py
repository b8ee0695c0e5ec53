"""Alerts, incidents and transitions: the values that T1 stores.

An alert is one rule × one labelset. An incident is one life of what a rule says about one
task: its alerts join it as members, so that 56 idle GPUs are one incident and one message.
How they change is `lifecycle`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from watchdog.core.labels import Labels, fingerprint, labels_id
from watchdog.core.outcomes import Evidence, EvidenceLine, Outcome
from watchdog.core.rules import Severity


class Phase(StrEnum):
    """The state of an alert; `resolved` alerts are no longer kept."""

    INACTIVE = "inactive"
    PENDING = "pending"
    FIRING = "firing"
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One rule × one labelset that is pending or firing."""

    id: str
    rule: str
    labels: Labels
    phase: Phase
    since: datetime  # when the condition became true
    held: timedelta = timedelta()  # watched time it has been true
    false_for: timedelta = timedelta()  # watched time of unbroken FALSE, while firing
    missing_for: timedelta = timedelta()  # watched time of NODATA
    blocked_for: timedelta = timedelta()  # watched time of THIN or ERROR, while pending
    fired_at: datetime | None = None
    severity: Severity = Severity.WARNING
    value: float | None = None
    incident: str = ""
    rule_identity: str = ""
    verdict: Outcome = Outcome.TRUE  # the newest one that was not THIN, ERROR or frozen
    judged: datetime | None = None  # slot of the newest TRUE, FALSE or BETWEEN
    unseen: bool = False  # the present run of FALSE may have begun while we were not running
    counting: timedelta | None = None  # watched clock: TRUE in every slot since, see `carrying`


def alert_id(rule: str, labels: Labels) -> str:
    """Return the stable id of an alert: rule id and identity labels, never text or values."""
    return fingerprint(rule, labels_id(labels))


class CloseReason(StrEnum):
    """Why an incident ended. Only `recovered` claims that things are well."""

    RECOVERED = "recovered"
    DATA_GONE = "data gone"
    TASK_ENDED = "task ended"
    RULE_REMOVED = "rule removed"
    UNWATCHED = "no longer watched"
    REPLACED = "replaced"  # another attempt or new pods took over
    FORGOTTEN = "forgotten"
    QUIET = "quiet"  # an event's incident: nothing more came; no message


class NoticeKind(StrEnum):
    """What the watchdog says about itself and its sources."""

    SOURCE_BLIND = "source blind"
    NOT_WATCHING = "was not watching"
    CLOCK_JUMPED = "clock jumped"
    CHANNEL_BROKEN = "channel broken"
    UNDELIVERED = "undelivered"
    STATE_NOT_STORED = "state not stored"
    LOG_LAG = "log lag"
    LOG_UNREAD = "log lines unread"
    NO_LOG_LINE = "no log line ever"
    FIRST_READ = "first read of a log"
    RULE_THIN = "rule cannot be judged"
    RULE_SLOW = "rule slower than its interval"
    SUSPECT_VALUES = "suspect values"
    SOURCE_REMARK = "remark of a source"
    UNKNOWN_STATUS = "unknown status word"
    SET_RETIRED = "old pods retired"
    RULES_REJECTED = "rule file rejected"
    SLOTS_LATE = "evaluation late"
    TOO_MANY_ALERTS = "too many alerts"
    TOO_MANY_SERIES = "too many series"
    HEARTBEAT_UNHEARD = "heartbeat not heard"
    STILL_WATCHING = "still watching"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One thing to say about ourselves; the same (kind, subject) is one incident.

    active: True = it is so now; False = it is over. A notice with `lasting` False is said once
    and never closed aloud.
    """

    kind: NoticeKind
    subject: str  # what it is about: "alaya/metrics", a channel or rule name, a task key
    labels: Labels = field(default_factory=Labels)
    severity: Severity = Severity.WARNING
    params: Mapping[str, str] = field(default_factory=dict)
    active: bool = True
    lasting: bool = True
    exclude: tuple[str, ...] = ()  # channels not to use (a broken one cannot report itself)
    concerned: tuple[str, ...] = ()  # of whom or what it is true, where more of it is worth an update


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentMember:
    """One alert's part in an incident."""

    labels: Labels
    since: datetime
    until: datetime | None = None
    value: float | None = None
    reason: CloseReason | None = None  # why it left, once it has


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """One life of a rule's alerts on one task, or a run of like events, or a notice.

    Carries a copy of all it needs to be told, so that it can be closed after its rule is gone.
    """

    id: str
    rule: str  # a notice has "watchdog/<kind>"
    labels: Labels  # identity of the task (or of the notice's subject)
    severity: Severity
    event: bool
    opened_at: datetime
    since: datetime
    updated_at: datetime
    closed_at: datetime | None = None
    close_reason: CloseReason | None = None
    close_note: str = ""  # "while the watchdog was not running", an error's name
    members: tuple[IncidentMember, ...] = ()
    count: int = 0  # events seen
    # Events: distinct masked fingerprints, newest last, capped. Notices: all who, or what, they concerned.
    fingerprints: tuple[str, ...] = ()
    returns: int = 0  # states: how often it had come and gone lately when this one opened, see `flapping`
    evicted: int = 0  # events: fingerprints forgotten because there were too many
    late: bool = False  # events: became visible well after they happened
    news: tuple[EvidenceLine, ...] = ()  # events: the leading line of each kind, newest kind last, capped
    first: Evidence = field(default_factory=Evidence)  # kept from the moment of firing
    latest: Evidence = field(default_factory=Evidence)
    description: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)
    rule_labels: Labels = field(default_factory=Labels)
    notify: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    repeat: timedelta = timedelta(hours=4)
    notice: NoticeKind | None = None
    params: Mapping[str, str] = field(default_factory=dict)
    touched: timedelta = timedelta()  # watched clock: newest event; a notice said once: when it was said
    situation: Mapping[str, str] = field(default_factory=dict)  # how the task stood when it opened

    @property
    def open(self) -> bool:
        """Whether it has not ended."""
        return self.closed_at is None

    @property
    def active(self) -> tuple[IncidentMember, ...]:
        """The members that are still firing."""
        return tuple(member for member in self.members if member.until is None)


_ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"


def incident_id(rule: str, subject: str, opened_at: datetime) -> str:
    """Return a short id (8 characters without look-alikes) that people can type."""
    number = int(fingerprint(rule, subject, opened_at.isoformat()), 16)
    digits = []
    for _ in range(8):
        number, digit = divmod(number, len(_ALPHABET))
        digits.append(_ALPHABET[digit])
    return "".join(digits)


class Change(StrEnum):
    """What happened to an incident."""

    OPENED = "opened"
    GREW = "grew"  # more labelsets, or events with a new fingerprint
    ESCALATED = "escalated"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """One change of one incident: the durable intent to tell. `seq` is given by the store."""

    incident: str
    change: Change
    at: datetime
    seq: int = 0
