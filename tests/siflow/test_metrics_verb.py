"""`watchdog metrics` with SiFlow, through the stand-in SDK: values, units, labels, warnings."""

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from watchdog.cli.main import run
from watchdog.clock import SystemClock
from watchdog.demo.play import Play
from watchdog.demo.siflow_cloud import SDK_PATH, StandInSiflow

RULES = """
sources:
  siflow:
    {{ kind: siflow, python: "{python}", sdk_path: "{sdk}", region: "{region}", timeout: 20s, rate: 1000 }}
watch: [ {{ source: siflow, name: "run-*" }} ]
channels: {{ here: {{ url: "console://" }} }}
rules:
  - {{ name: hot, metric: GpuTemp, max_over: 5m, above: 85, by: gpu }}
"""
Verb = Callable[..., Awaitable[tuple[int, str, str]]]


@pytest.fixture
async def live(play: Play) -> AsyncIterator[StandInSiflow]:
    """The stand-in on the machine's own clock, which is the verb's."""
    async with StandInSiflow(play, clock=SystemClock()) as cloud:
        yield cloud


@pytest.fixture
def metrics(
    live: StandInSiflow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Verb:
    """Run `watchdog metrics siflow TASK …` on a thread; returns exit code, output, errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JOB_WATCHDOG_SIFLOW_ACCESS_KEY_ID", "stand-in-ak")
    monkeypatch.setenv("JOB_WATCHDOG_SIFLOW_ACCESS_KEY_SECRET", "stand-in-sk")
    rules = tmp_path / "rules.yaml"
    rules.write_text(RULES.format(python=sys.executable, sdk=SDK_PATH, region=live.region))

    async def called(task: str, *more: str) -> tuple[int, str, str]:
        words = ("metrics", "siflow", task, "--rules", str(rules), "--state", str(tmp_path / "none"), *more)
        code = await asyncio.to_thread(run, words)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return called


def row(out: str, metric: str) -> str:
    return next(line for line in out.splitlines() if line.startswith(f"{metric} "))


@pytest.mark.parametrize("named", ["run-x7k2p", "task-uuid-1"])
async def test_every_metric_has_its_value_unit_and_labels(metrics: Verb, named: str) -> None:
    code, out, err = await metrics(named)

    assert (code, err) == (0, "")
    assert out.startswith("siflow, task run-x7k2p, asked at ")
    number = r"\d+(\.\d+)?"
    for metric, shown in (
        ("gpu", rf"ratio +node pod gpu +4 +\S+ +{number} % to {number} %, mean {number} % +pod-gone"),
        ("cpu", rf"ratio +node pod +2 +\S+ +{number} % to {number} %, mean {number} % +-"),
        ("GpuMemoryUsed", rf"Bytes +node pod gpu +4 +\S+ +{number} GB to {number} GB, mean {number} GB +-"),
        ("GpuTemp", rf"°C +node pod gpu +4 +\S+ +{number} °C to {number} °C, mean {number} °C +hot"),
        ("RdmaTxBytes", rf"Bytes/s +node pod device +\d+ +\S+ +{number} GB/s to .*"),
        ("train_loss", rf"- +pod phase +1 +\S+ +{number} +-"),  # the task's own: nobody knew its name
    ):
        assert re.fullmatch(rf"{metric} +{shown}", row(out, metric).rstrip()), row(out, metric)
    assert re.search("^not offered here: .*GpuMemoryStraggler", out, re.MULTILINE)


async def test_a_warning_is_shown_beside_its_metric(metrics: Verb, live: StandInSiflow) -> None:
    live.faults.add("noted", "metrics", value="step adjusted to 300")
    code, out, _ = await metrics("run-x7k2p")
    assert code == 0
    assert row(out, "gpu").endswith("the source warns: step adjusted to 300")

    live.faults.clear()
    live.faults.add("warned", "metrics", value="GpuTemp")
    code, out, _ = await metrics("run-x7k2p")
    assert code == 1
    assert "GpuTemp: the metric's store did not answer" in row(out, "GpuTemp")
    assert "4" in row(out, "gpu").split()


async def test_what_fails_for_all_is_said_once(metrics: Verb) -> None:
    code, out, _ = await metrics("nobody")
    assert code == 1
    _, said = out.splitlines()
    assert said.startswith("none of ")
    assert "not found" in said


async def test_as_json_a_program_finds_the_same(metrics: Verb) -> None:
    code, out, _ = await metrics("run-x7k2p", "--json")
    assert code == 0
    view = json.loads(out)
    found = {one["metric"]: one for one in view["metrics"]}
    assert (found["GpuMemoryUsed"]["unit"], found["GpuMemoryUsed"]["per"]) == (
        "Bytes",
        ["node", "pod", "gpu"],
    )
    assert found["gpu"]["low"] <= found["gpu"]["mean"] <= found["gpu"]["high"]
    assert "GpuMemoryStraggler" in view["not_offered"]
