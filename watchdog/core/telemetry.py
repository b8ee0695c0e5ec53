"""Telemetry: what the engine counts about itself, as plain values for whoever shows it.

Collected by `engine.telemetry`, shown as metrics by `web`. Counters begin at 0 with each life.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from watchdog.core.labels import Labels
from watchdog.core.vitals import Verdict, Vitals


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesSample:
    """The newest point of one polled series. `unit`: "ratio", "" or the source's own."""

    metric: str
    unit: str
    labels: Labels
    time_ns: int
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelLine:
    """What one channel has waiting. `answers`: attempts by what the provider answered."""

    waiting: int = 0
    oldest: timedelta = timedelta()
    answers: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Telemetry:
    """Everything at one moment.

    questions: by (source, capability). failures: by (source, capability, failure). blind: how many
    questions of a (source, capability) have had no usable answer for long. log_lag: by (source, task
    key, task name). alerts: by (rule, phase). incidents: open ones by (rule, severity).
    """

    vitals: Vitals
    verdict: Verdict
    missed: int
    evaluating: timedelta  # all evaluations together
    evaluated: timedelta  # the newest one
    questions: Mapping[tuple[str, str], int]
    failures: Mapping[tuple[str, str, str], int]
    blind: Mapping[tuple[str, str], int]
    log_lag: Mapping[tuple[str, str, str], timedelta]
    log_lines: Mapping[tuple[str, str, str], int]
    channels: Mapping[str, ChannelLine]
    alerts: Mapping[tuple[str, str], int]
    incidents: Mapping[tuple[str, str], int]
    series: tuple[SeriesSample, ...] = ()
    left_out: int = 0  # series beyond the bound
