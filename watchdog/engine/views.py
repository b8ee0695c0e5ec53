"""Views: what verbs show, as plain values. Made by the daemon, or from its state file when it is not running.

Times are UTC; durations are seconds; ratios are 1 = 100 %. Texts are in English. No field ever holds a
secret: a channel is a name and the scheme of its URL.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonView:
    """The running process."""

    version: str
    pid: int
    started: datetime
    healthy: bool
    remarks: tuple[str, ...]  # why it is not healthy, and what else there is to know
    rule_file: str
    rules_since: datetime
    rules_rejected: tuple[str, ...]  # what is wrong with the file as it stands
    rules_not_kept: str
    auto_reload: bool
    interval_s: float
    slots: int
    missed: int
    last_slot: datetime | None
    not_stored: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskView:
    """One watched task."""

    key: str
    name: str
    source: str
    id: str
    status: str
    status_text: str
    reason: str
    status_since: datetime | None
    attempt: int
    attempt_started: datetime | None
    pods: int
    gpus: int
    firing: int
    pending: int
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleView:
    """One rule in force. looks_at: what its condition is about. unjudged: tasks it cannot judge now."""

    name: str
    kind: str  # state, event
    looks_at: str
    severity: str
    tasks: int
    firing: int
    pending: int
    unjudged: int
    builtin: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertView:
    """One rule × one labelset that is pending or firing."""

    rule: str
    task: str
    labels: Mapping[str, str]  # beyond the task's
    phase: str
    since: datetime
    held_s: float
    hold_s: float | None  # the `for`; None = the rule is not in force
    severity: str
    value: float | None
    incident: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentView:
    """One incident in one row. said: its verdict in words."""

    id: str
    rule: str
    task: str
    severity: str
    event: bool
    notice: str
    opened: datetime
    since: datetime
    closed: datetime | None
    reason: str  # why it closed
    note: str
    active: int  # members still firing
    members: int
    count: int  # of an event: how often
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CapabilityView:
    """One thing a source can be asked for, over all tasks."""

    capability: str
    standing: str  # good, failing, settling, not asked
    asked: int
    failing: int
    blind: int
    failure: str
    detail: str
    since: datetime | None
    last_good: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceView:
    """One source."""

    name: str
    kind: str
    poll_s: float | None
    capabilities: tuple[CapabilityView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelView:
    """One channel. state: ok, failing, broken, throttled, unused, unknown."""

    name: str
    service: str
    min_severity: str
    state: str
    failures: int
    rests_s: float  # nothing is tried there for so long
    waiting: int
    newest_at: datetime | None
    newest_answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxView:
    """What is to be told. oldest_s: how long the oldest row has waited."""

    waiting: int
    in_flight: int
    oldest_s: float
    given_up: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusView:
    """How everything stands. live: False = read from the state file, as of `at`.

    more: how many rows were left out, by list.
    """

    live: bool
    at: datetime | None
    timezone: str
    daemon: DaemonView | None
    tasks: tuple[TaskView, ...]
    rules: tuple[RuleView, ...]
    alerts: tuple[AlertView, ...]
    incidents: tuple[IncidentView, ...]
    sources: tuple[SourceView, ...]
    channels: tuple[ChannelView, ...]
    outbox: OutboxView
    more: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryView:
    """Incidents, open ones first."""

    live: bool
    at: datetime | None
    timezone: str
    incidents: tuple[IncidentView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LineView:
    """One log line, secrets masked."""

    at: datetime | None
    pod: str
    text: str
    matched: bool
    repeated: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceView:
    """Why a verdict is what it is. spark: values oldest first, None = no point."""

    said: str
    metric: str
    summary: str
    value: float | None
    threshold: float | None
    above: bool
    unit: str
    affected: int
    of: int
    covered: int
    spark: tuple[float | None, ...]
    spark_s: float
    lines: tuple[LineView, ...]
    more_lines: int
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberView:
    """One labelset of an incident."""

    labels: Mapping[str, str]
    since: datetime
    until: datetime | None
    value: float | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowView:
    """One incident. first: from the moment it fired; latest: the newest. situation: the task, then."""

    live: bool
    at: datetime | None
    timezone: str
    incident: IncidentView
    labels: Mapping[str, str]
    description: str
    annotations: Mapping[str, str]
    params: Mapping[str, str]
    situation: Mapping[str, str]
    first: EvidenceView
    latest: EvidenceView | None
    members: tuple[MemberView, ...]
    more_members: int
    task: TaskView | None  # as it is now


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeView:
    """One change of an incident."""

    change: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptView:
    """One attempt at a delivery, with the provider's answer."""

    number: int
    at: datetime
    answer: str
    code: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryView:
    """One message for one channel."""

    id: int
    kind: str
    reminder: int
    decided: datetime
    state: str
    next_try_s: float | None
    attempts: tuple[AttemptView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelWhyView:
    """One channel's part in an incident. meant: why it is, or is not, for this channel; "" = not known."""

    channel: str
    meant: str
    told: str  # the kind of the newest message that arrived; "" = none
    told_at: datetime | None
    reminders: int
    deliveries: tuple[DeliveryView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyView:
    """What was decided and tried for one incident."""

    live: bool
    at: datetime | None
    timezone: str
    incident: IncidentView
    changes: tuple[ChangeView, ...]
    channels: tuple[ChannelWhyView, ...]
