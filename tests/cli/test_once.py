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
    _, row, waiting, events = ran.out.splitlines()
    assert row.startswith("gpu-low")
    assert "FALSE" in row
    assert waiting.startswith("nothing to judge now: gpu-young (")
    assert events == "events, told when they happen: errors"
