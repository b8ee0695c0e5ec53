"""Views of what is asked of the running daemon, or done by it: explain, metrics, test-notify, forget, reload.

As in `views`: times are UTC, durations seconds, ratios 1 = 100 %, and no field ever holds a secret.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenView:
    """What a rule sees of one task through one capability. what: a metric, "log", "status"."""

    what: str
    standing: str
    failure: str
    series: int
    newest: datetime | None
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelsetView:
    """One labelset under one rule: the verdict, the alert, and why it does or does not fire."""

    labels: Mapping[str, str]
    outcome: str
    phase: str
    since: datetime | None
    held_s: float
    hold_s: float
    value: float | None
    threshold: float | None
    unit: str
    affected: int
    of: int
    covered: int
    said: str
    why: str
    incident: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainTaskView:
    """One rule and one task. gate: open, still, ended, foreign, unwatched; why: what that means here."""

    task: str
    key: str
    status: str
    gate: str
    why: str
    seen: tuple[SeenView, ...]
    labelsets: tuple[LabelsetView, ...]
    more: Mapping[str, int]  # outcome → labelsets not shown
    incident: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainView:
    """One rule, explained. judged: the slot of the verdicts; None = not judged yet."""

    live: bool
    at: datetime | None
    timezone: str
    rule: str
    kind: str
    looks_at: str
    severity: str
    description: str
    judged: datetime | None
    tasks: tuple[ExplainTaskView, ...]
    not_about: int  # watched tasks the rule is not about


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferView:
    """One metric of a task. low, high, mean: of the newest value of each series; error: why there is none.

    per: the labels by which its series differ.
    """

    metric: str
    unit: str
    per: tuple[str, ...]
    series: int
    newest: datetime | None
    low: float | None
    mean: float | None
    high: float | None
    remarks: tuple[str, ...]
    error: str
    rules: tuple[str, ...]  # which read it


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsView:
    """What a task offers. not_offered: documented metrics that this source has not got, and no rule reads."""

    source: str
    task: str
    at: datetime
    timezone: str
    metrics: tuple[OfferView, ...]
    not_offered: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialView:
    """One sample message. kind: first, closed. took_s: until the provider answered."""

    channel: str
    service: str
    kind: str
    ok: bool
    answer: str
    code: str
    detail: str
    took_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TestNotifyView:
    """What every channel answered."""

    __test__ = False

    trials: tuple[TrialView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetView:
    """What will be forgotten, and with which slot."""

    task: str
    pods: tuple[str, ...]  # empty = everything
    within_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemView:
    """One problem of a file."""

    file: str
    line: int
    column: int
    message: str
    hint: str
    warning: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EditsView:
    """What changed in one section."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReloadView:
    """What a reload did."""

    outcome: str  # in force, unchanged, rejected
    file: str
    problems: tuple[ProblemView, ...]
    edits: Mapping[str, EditsView]  # by section
    settings: tuple[str, ...]
    not_kept: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NamesView:
    """The names that verbs take."""

    rules: tuple[str, ...]
    tasks: tuple[str, ...]
    sources: tuple[str, ...]
    channels: tuple[str, ...]
    incidents: tuple[str, ...]
