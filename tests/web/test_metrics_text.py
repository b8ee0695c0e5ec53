"""The metrics page as Prometheus' own parser reads it."""

from dataclasses import replace
from datetime import timedelta

import pytest
from prometheus_client.parser import text_string_to_metric_families

from watchdog.core.labels import Labels
from watchdog.core.telemetry import ChannelLine, SeriesSample, Telemetry
from watchdog.core.vitals import Vitals, judge
from watchdog.web.metrics import exposition, series_name

VITALS = Vitals(
    interval=timedelta(minutes=1),
    slots=10,
    since_slot=timedelta(seconds=2),
    asked=3,
    answered=3,
    channels=("team",),
    broken=("team",),
    tasks=2,
    rules=3,
)
SOME = Telemetry(
    vitals=VITALS,
    verdict=judge(VITALS),
    missed=1,
    evaluating=timedelta(seconds=5),
    evaluated=timedelta(milliseconds=250),
    questions={("alaya", "metrics"): 30},
    failures={("alaya", "metrics", "key expired"): 4},
    blind={("alaya", "metrics"): 1},
    log_lag={("alaya", "alaya/1", "llama"): timedelta(seconds=61)},
    log_lines={("alaya", "alaya/1", "llama"): 1200},
    channels={"team": ChannelLine(waiting=2, oldest=timedelta(minutes=3), answers={"ok": 7, "retry": 2})},
    alerts={("gpu-idle", "firing"): 8},
    incidents={("gpu-idle", "critical"): 1},
)
LABELS = Labels.of(source="alaya", task="alaya/1", task_name='a "quoted"\nname\\', pod="p-0", gpu="0")


def point(**changes: object) -> SeriesSample:
    sample = SeriesSample(
        metric="gpu", unit="ratio", labels=LABELS, time_ns=1_796_044_800_123_456_789, value=0.25
    )
    return replace(sample, **changes)


def read(telemetry: Telemetry) -> dict[tuple[str, frozenset[tuple[str, str]]], tuple[float, object]]:
    """Every sample by name and labels: value and time."""
    found = {}
    for family in text_string_to_metric_families(exposition(telemetry, "1.2.3").decode()):
        assert family.documentation
        for sample in family.samples:
            key = (sample.name.removeprefix("job_watchdog_"), frozenset(sample.labels.items()))
            assert key not in found
            found[key] = (sample.value, sample.timestamp)
    return found


@pytest.mark.parametrize(
    ("name", "labels", "value"),
    [
        ("build_info", {"version": "1.2.3"}, 1),
        ("healthy", {}, 0),
        ("ready", {}, 1),
        ("evaluation_seconds_count", {}, 10),
        ("evaluation_seconds_sum", {}, 5),
        ("last_evaluation_seconds", {}, 0.25),
        ("evaluations_missed_total", {}, 1),
        ("state_stored", {}, 1),
        ("source_questions_total", {"source": "alaya", "capability": "metrics"}, 30),
        (
            "source_failures_total",
            {"source": "alaya", "capability": "metrics", "failure": "key expired"},
            4,
        ),
        ("source_blind", {"source": "alaya", "capability": "metrics"}, 1),
        ("log_lag_seconds", {"source": "alaya", "task": "alaya/1", "task_name": "llama"}, 61),
        ("log_lines_total", {"source": "alaya", "task": "alaya/1", "task_name": "llama"}, 1200),
        ("outbox_messages", {"channel": "team"}, 2),
        ("outbox_oldest_seconds", {"channel": "team"}, 180),
        ("delivery_attempts_total", {"channel": "team", "answer": "ok"}, 7),
        ("delivery_attempts_total", {"channel": "team", "answer": "retry"}, 2),
        ("channel_broken", {"channel": "team"}, 1),
        ("alerts", {"rule": "gpu-idle", "phase": "firing"}, 8),
        ("incidents_open", {"rule": "gpu-idle", "severity": "critical"}, 1),
        ("series_left_out", {}, 0),
    ],
)
def test_every_number_has_its_name(name: str, labels: dict[str, str], value: float) -> None:
    assert read(SOME)[name, frozenset(labels.items())] == (value, None)


def test_a_polled_series_keeps_its_own_time_and_has_our_label_names() -> None:
    found = read(replace(SOME, series=(point(),), left_out=5))
    labels = {**dict(LABELS), "node": ""}
    value, at = found["series_gpu_ratio", frozenset(labels.items())]
    assert (value, at) == (0.25, 1_796_044_800.123)
    assert found["series_left_out", frozenset()] == (5, None)


def test_of_a_labelset_that_comes_twice_only_the_newest_point_is_exported() -> None:
    older = point(time_ns=1_796_044_700_000_000_000, value=0.9)
    for order in ((older, point()), (point(), older)):
        found = read(replace(SOME, series=order))
        assert [value for (name, _), (value, _) in found.items() if name == "series_gpu_ratio"] == [0.25]


@pytest.mark.parametrize(
    ("metric", "unit", "name"),
    [
        ("gpu", "ratio", "job_watchdog_series_gpu_ratio"),
        ("GpuTemp", "", "job_watchdog_series_gpu_temp"),
        ("XidErrors", "", "job_watchdog_series_xid_errors"),
        ("DCGM_FI_DEV_GPU_TEMP", "°C", "job_watchdog_series_dcgm_fi_dev_gpu_temp"),
        ("node.cpu:rate5m", "", "job_watchdog_series_node_cpu_rate5m"),
        ("温度", "", "job_watchdog_series_unnamed"),
    ],
)
def test_a_metric_of_a_source_gets_a_name_that_prometheus_takes(metric: str, unit: str, name: str) -> None:
    assert series_name(metric, unit) == name


def test_two_metrics_with_one_name_are_one_family() -> None:
    found = read(
        replace(
            SOME,
            series=(
                point(metric="GpuTemp", unit=""),
                point(metric="gpu_temp", unit="", labels=Labels.of(pod="x")),
            ),
        )
    )
    assert len([name for name, _ in found if name == "series_gpu_temp"]) == 2
