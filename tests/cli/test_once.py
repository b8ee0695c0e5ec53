import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

RULES = """
sources:
  alaya: { kind: alaya, base_url: "${CLOUD}", rate: 1000 }
watch: [{ source: alaya, task: "1234567890" }]
channels: { here: { url: "console://" } }
rules:
  - { name: gpu-low, metric: gpu, below: 10% }
  - { name: gpu-young, metric: gpu, below: 10%, after_start: 1000h }
  - { name: errors, log: { match: ERROR } }
  - { name: burst, log: { match: ERROR, count: { above: 20, within: 5m } } }
  - { name: log-silence, silent: { log: any }, for: 15m }
  - { name: pod-gone, enabled: false }
"""
STATES = """
sources:
  alaya: { kind: alaya, base_url: "${CLOUD}", rate: 1000 }
watch: [{ source: alaya, task: "1234567890" }]
channels: { here: { url: "console://" } }
rules:
  - { name: low, metric: gpu, below: 99.5% }
  - { name: idle, metric: gpu, below: 10%, by: gpu }
  - { name: between, metric: vram, above: 80%, clear_below: 20% }
  - { name: thin, metric: gpu, avg_over: 48h, below: 10% }
  - { name: gone, absent: { metric: gpu, by: pod }, for: 5m }
  - { name: queued, status: { is: queued }, for: 5m }
  - { name: pod-gone, enabled: false }
"""


@pytest.fixture
def rules(
    outside: Any, rule_file: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, root_logger: None
) -> Path:
    monkeypatch.setenv("CLOUD", outside.cloud.url)
    monkeypatch.setenv("JOB_WATCHDOG_ALAYA_API_KEY", "stand-in-api-key")
    return rule_file(RULES)


def test_a_rule_without_a_row_is_named_with_the_reason(watchdog: Any, rules: Path) -> None:
    ran = watchdog("once", str(rules))

    assert (ran.code, ran.err) == (0, "")
    _, row, waiting, lines, events = ran.out.splitlines()
    assert row.startswith("gpu-low")
    assert "FALSE" in row
    assert waiting.startswith("nothing to judge now: gpu-young (")
    assert lines == ("about lines as they come, judged by a daemon that goes on watching: burst, log-silence")
    assert events == "events, told when they happen: errors"


def test_each_row_says_what_is_and_no_limit_as_reached_that_is_not(
    watchdog: Any, rules: Path, rule_file: Callable[[str], Path]
) -> None:
    ran = watchdog("once", str(rule_file(STATES)))

    rows = {line.split()[0]: " ".join(line.split()[2:]) for line in ran.out.splitlines()[1:7]}
    assert re.fullmatch(r"FIRING TRUE GPU 9\d(\.\d+)? %, below 99.5 %", rows["low"])
    assert re.fullmatch(r"- 32 FALSE GPU 9\d(\.\d+)? %, not below 10 % \(tn-.*\)", rows["idle"])
    assert re.fullmatch(
        r"- BETWEEN VRAM 7\d.* %, not above 80 %, but not clear of it either", rows["between"]
    )
    assert rows["thin"] == (
        "- THIN GPU average over 2 d; not judged: the window of 0 of 32 series is covered"
    )
    assert re.fullmatch(r"- 4 FALSE Newest GPU data .* ago \(tn-.*\)", rows["gone"])
    assert rows["queued"] == "- FALSE Status is running"
    assert ran.code == 1


def test_of_many_the_one_nearest_to_the_limit_is_shown(
    watchdog: Any, rules: Path, rule_file: Callable[[str], Path]
) -> None:
    path = rule_file(STATES)
    found = json.loads(watchdog("once", "--json", str(path)).out)["rules"]
    lowest = min((one for one in found if one["rule"] == "idle"), key=lambda one: one["value"])
    row = next(line for line in watchdog("once", str(path)).out.splitlines() if line.startswith("idle "))
    assert f"({lowest['labels']['pod']} {lowest['labels']['gpu']})" in row
