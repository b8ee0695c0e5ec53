"""How much is asked of a cloud: it grows with tasks and metrics, not with rules. Real command and server."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HEAD = """
sources:
  alaya: { kind: alaya, base_url: "${CLOUD}", rate: 1000 }
watch: [TASKS]
channels: { here: { url: "console://" } }
rules:
"""
ONE_OF_EACH = """
  - { name: gpu-N, metric: gpu, avg_over: 5m, below: LEVEL% }
  - { name: vram-N, metric: vram, by: gpu, above: LEVEL% }
  - { name: gone-N, absent: { metric: gpu, by: pod }, for: 10m }
  - { name: straggler-N, metric: gpu, avg_over: 10m, peers: { by: pod, below: LEVEL% } }
  - { name: errors-N, log: { match: 'ERROR N' } }
  - { name: state-N, status: { is: queued }, for: Nm }
"""


@pytest.fixture
def asked(
    outside: Any,
    watchdog: Any,
    rule_file: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
    root_logger: None,
) -> Callable[[int, int], Counter[str]]:
    """What one round asks with so many rules of each kind, for so many tasks."""
    monkeypatch.setenv("CLOUD", outside.cloud.url)
    monkeypatch.setenv("JOB_WATCHDOG_ALAYA_API_KEY", "stand-in-api-key")
    ids = list(outside.cloud.tasks)

    def once(rules: int, tasks: int) -> Counter[str]:
        entries = ", ".join(
            f'{{ source: alaya, task: "{task}", namespace: default }}' for task in ids[:tasks]
        )
        each = [ONE_OF_EACH.replace("N", str(n + 1)).replace("LEVEL", str(n % 90 + 5)) for n in range(rules)]
        path = rule_file(HEAD.replace("TASKS", entries) + "".join(each))
        outside.cloud.requests.clear()
        ran = watchdog("once", str(path))
        assert (ran.code in (0, 1), ran.err) == (True, "")
        return outside.cloud.counts()

    return once


def test_ten_times_the_rules_ask_nothing_more(asked: Callable[[int, int], Counter[str]]) -> None:
    few, many = asked(1, 1), asked(10, 1)

    assert few["metrics"] == 2
    assert few == many


def test_each_further_task_asks_for_its_own_metrics_once(asked: Callable[[int, int], Counter[str]]) -> None:
    assert [asked(3, tasks)["metrics"] for tasks in (1, 2)] == [2, 4]
