"""Metrics in Prometheus' text format: the watchdog's own numbers, and the polled series with their own times.

Owns names and help texts. Label names are ours: `source`, `task`, `task_name`, `pod`, `gpu`, `node`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TypeVar

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    Metric,
    SummaryMetricFamily,
    UnknownMetricFamily,
)
from prometheus_client.registry import Collector

from watchdog.core.labels import GPU, NODE, POD, SOURCE, TASK, TASK_NAME
from watchdog.core.telemetry import SeriesSample, Telemetry

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PREFIX = "job_watchdog"
SERIES_LABELS = (SOURCE, TASK, TASK_NAME, POD, GPU, NODE)

Row = tuple[Sequence[str], float]
Key = TypeVar("Key", bound=tuple[str, ...])

_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_ODD = re.compile(r"[^a-z0-9]+")


def exposition(telemetry: Telemetry, version: str) -> bytes:
    """Return everything as text."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Snapshot(telemetry, version))
    ProcessCollector(registry=registry)
    return generate_latest(registry)


class _Snapshot(Collector):
    """One moment, as metric families."""

    def __init__(self, telemetry: Telemetry, version: str) -> None:
        self._telemetry = telemetry
        self._version = version

    def collect(self) -> Iterable[Metric]:
        yield from _own(self._telemetry, self._version)
        yield from _sources(self._telemetry)
        yield from _telling(self._telemetry)
        yield from _series(self._telemetry)


def series_name(metric: str, unit: str) -> str:
    """Return the name a source's metric is exported under: `GpuTemp` is `job_watchdog_series_gpu_temp`."""
    words = _ODD.sub("_", _WORD.sub("_", metric).lower()).strip("_")
    return f"{PREFIX}_series_{words or 'unnamed'}{'_ratio' if unit == 'ratio' else ''}"


def _own(telemetry: Telemetry, version: str) -> Iterator[Metric]:
    vitals, verdict = telemetry.vitals, telemetry.verdict
    yield _gauge("build_info", "The version that runs; always 1.", ("version",), [((version,), 1)])
    yield _gauge(
        "healthy", "1 if nothing speaks against relying on it, as /healthz says.", (), [((), verdict.healthy)]
    )
    yield _gauge("ready", "1 if rules are being evaluated, on time.", (), [((), verdict.ready)])
    slots = SummaryMetricFamily(
        f"{PREFIX}_evaluation_seconds",
        "Evaluations, and the time they took together: judging, storing and planning.",
        count_value=vitals.slots,
        sum_value=_s(telemetry.evaluating),
    )
    yield slots
    yield _gauge(
        "last_evaluation_seconds", "How long the newest evaluation took.", (), [((), _s(telemetry.evaluated))]
    )
    yield _gauge("interval_seconds", "How often rules are to be evaluated.", (), [((), _s(vitals.interval))])
    yield _gauge(
        "since_evaluation_seconds",
        "Time since the newest evaluation ended.",
        (),
        [((), _s(vitals.since_slot))],
    )
    yield _counter(
        "evaluations_missed", "Evaluations that were due and left out.", (), [((), telemetry.missed)]
    )
    yield _gauge("state_stored", "1 if the state can be written.", (), [((), not vitals.not_stored)])
    yield _gauge("tasks", "Tasks being watched.", (), [((), vitals.tasks)])
    yield _gauge("rules", "Rules in force.", (), [((), vitals.rules)])
    yield _gauge(
        "alerts", "Labelsets that are pending or firing.", ("rule", "phase"), _rows(telemetry.alerts)
    )
    yield _gauge(
        "incidents_open", "Incidents that are open.", ("rule", "severity"), _rows(telemetry.incidents)
    )


def _sources(telemetry: Telemetry) -> Iterator[Metric]:
    asked = ("source", "capability")
    stream = ("source", "task", "task_name")
    yield _counter("source_questions", "Questions asked of a source.", asked, _rows(telemetry.questions))
    yield _counter(
        "source_failures",
        "Questions without a usable answer, by why.",
        (*asked, "failure"),
        _rows(telemetry.failures),
    )
    yield _gauge(
        "source_blind", "Questions that have had no usable answer for long.", asked, _rows(telemetry.blind)
    )
    lag = [(key, _s(value)) for key, value in sorted(telemetry.log_lag.items())]
    yield _gauge("log_lag_seconds", "How far reading is behind the end of a task's log.", stream, lag)
    yield _counter("log_lines", "Log lines read, over all lives.", stream, _rows(telemetry.log_lines))


def _telling(telemetry: Telemetry) -> Iterator[Metric]:
    lines = sorted(telemetry.channels.items())
    yield _gauge(
        "outbox_messages",
        "Messages that wait for a channel.",
        ("channel",),
        [((name,), line.waiting) for name, line in lines],
    )
    yield _gauge(
        "outbox_oldest_seconds",
        "Age of the oldest message that waits for a channel.",
        ("channel",),
        [((name,), _s(line.oldest)) for name, line in lines],
    )
    yield _counter(
        "delivery_attempts",
        "Attempts to deliver a message, by what the provider really answered.",
        ("channel", "answer"),
        [((name, answer), count) for name, line in lines for answer, count in sorted(line.answers.items())],
    )
    yield _gauge(
        "channel_broken",
        "1 if a channel takes no messages.",
        ("channel",),
        [((name,), name in telemetry.vitals.broken) for name, _ in lines],
    )


def _series(telemetry: Telemetry) -> Iterator[Metric]:
    """The polled series, each point with the time its source gave it. Metrics of one name are one family."""
    families: dict[str, list[SeriesSample]] = {}
    for sample in telemetry.series:
        families.setdefault(series_name(sample.metric, sample.unit), []).append(sample)
    for name, samples in sorted(families.items()):
        family = UnknownMetricFamily(
            name, f"The newest point of {samples[0].metric}, as polled.", labels=SERIES_LABELS
        )
        for sample in _distinct(samples):
            labels = [sample.labels.get(label, "") for label in SERIES_LABELS]
            family.add_metric(labels, sample.value, timestamp=sample.time_ns // 1_000_000 / 1_000)
        yield family
    yield _gauge(
        "series_left_out", "Polled series beyond the number that is exported.", (), [((), telemetry.left_out)]
    )


def _distinct(samples: Sequence[SeriesSample]) -> Iterable[SeriesSample]:
    """One sample per labelset, the newest: Prometheus refuses a whole page for one that comes twice."""
    newest: dict[tuple[str, ...], SeriesSample] = {}
    for sample in samples:
        key = tuple(sample.labels.get(label, "") for label in SERIES_LABELS)
        if key not in newest or newest[key].time_ns < sample.time_ns:
            newest[key] = sample
    return newest.values()


def _rows(counts: Mapping[Key, int]) -> list[Row]:
    return [(key, count) for key, count in sorted(counts.items())]


def _gauge(name: str, text: str, labels: Sequence[str], rows: Iterable[Row]) -> Metric:
    family = GaugeMetricFamily(f"{PREFIX}_{name}", text, labels=labels)
    for values, value in rows:
        family.add_metric(values, float(value))
    return family


def _counter(name: str, text: str, labels: Sequence[str], rows: Iterable[Row]) -> Metric:
    family = CounterMetricFamily(f"{PREFIX}_{name}", text, labels=labels)
    for values, value in rows:
        family.add_metric(values, float(value))
    return family


def _s(duration: timedelta) -> float:
    return duration.total_seconds()
