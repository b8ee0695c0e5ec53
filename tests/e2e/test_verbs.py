"""The verbs against the stand-in cloud: `once`, `check --probe`, `test` and `demo`, and their exit codes."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

Wait = Callable[..., Any]

STATES = r"""
channels:
  chat: { url: "${CHAT}" }
rules:
  - { name: gpu-low, metric: gpu, below: 10%, for: 2s }
  - { name: vram-full, metric: vram, above: 95% }
  - { name: errors, log: { match: '\bERROR\b' } }
  - { name: pod-gone, enabled: false }
"""
PASSES = """
description: An idle GPU is told.
length: 10m
rules:
  - { name: low, metric: gpu, below: 20%, for: 3m }
series:
  - { metric: gpu, values: '95% until 0m, 5%' }
expect:
  - { at: 3m, kind: first, rule: low }
"""


def test_once_tells_what_is_so_as_a_table_as_json_and_by_its_exit_code(stage: Any) -> None:
    cloud = stage.cloud()
    stage.env["CHAT"] = "json://127.0.0.1:1/nobody"
    rules = stage.rules(STATES)

    well = stage.run("once", rules)
    assert (well.code, well.err) == (0, "")
    head, *rows, events = well.out.splitlines()
    assert head.split() == ["RULE", "TASK", "ALERT", "NOW", "WHY"]
    assert events == "events, told when they happen: errors"
    assert [row.split()[:4] for row in rows] == [
        ["gpu-low", "calm-run", "-", "FALSE"],
        ["vram-full", "calm-run", "-", "FALSE"],
    ]

    cloud.gpu(0.02)
    fires = once_it_fires(stage, rules)
    assert fires.code == 1
    told = json.loads(fires.out)
    (low,) = [one for one in told["rules"] if one["rule"] == "gpu-low"]
    assert (low["outcome"], low["phase"], low["labels"]["task_name"]) == ("TRUE", "firing", "calm-run")
    assert low["value"] < low["threshold"] == 0.1
    assert told["blind"] == []

    cloud.gpu(0.9)
    cloud.fault("html", "metrics")
    blind = stage.run("once", rules)
    assert blind.code == 3
    cannot = r"cannot see: alaya metrics (\w+) of alaya/1234567890: not JSON: text/html"
    assert re.findall(cannot, blind.out) == ["gpu", "vram"]
    assert not stage.state.path.exists()


def once_it_fires(stage: Any, rules: Any) -> Any:
    """Ask until the new level has lasted as long as the rule's `for`."""
    for _ in range(20):
        done = stage.run("once", "--json", rules)
        if '"firing"' in done.out:
            break
    return done


def test_check_probe_asks_every_source_and_channel(stage: Any) -> None:
    cloud, receiver = stage.cloud(), stage.receiver()
    rules = stage.rules(STATES)

    well = stage.run("check", "--probe", rules)
    assert well.code == 0, well.out
    lines = well.out.splitlines()
    for subject in ("source alaya: metrics", "source alaya: logs", "channel chat"):
        assert any(line.startswith(f"ok     {subject}: ") for line in lines), well.out
    (test,) = receiver.told("chat")
    assert "test" in test.title.lower()

    cloud.fault("key expired", "logs")
    receiver.answers({"kind": "status", "status": 403, "times": 0})
    ill = stage.run("check", "--probe", "--json", rules)
    assert ill.code == 1
    told = json.loads(ill.out)
    failed = {one["subject"]: one["detail"] for one in told["probes"] if not one["ok"]}
    assert failed.keys() == {"source alaya: logs", "channel chat"}
    assert "expired" in failed["source alaya: logs"]
    assert "403" in failed["channel chat"]


def test_the_scenario_verb_has_an_exit_code(stage: Any) -> None:
    good, bad, broken = (stage.folder / name for name in ("good.yaml", "bad.yaml", "broken.yaml"))
    good.write_text(PASSES)
    bad.write_text(PASSES.replace("kind: first", "kind: closed"))
    broken.write_text(PASSES.replace("metric: gpu, below", "metric: gpu, bellow"))

    passed, failed = stage.run("test", good), stage.run("test", good, bad, broken)

    assert (passed.code, passed.err) == (0, "")
    assert "1 passed, 0 failed" in passed.out
    assert failed.code == 1
    assert "1 passed, 2 failed" in failed.out
    assert "broken.yaml:5:" in failed.out
    assert "Traceback" not in failed.out + failed.err


# What the demo has to say, rule by rule; besides, on a busy machine, that it is late.
DEMO = (
    "WARNING · error-lines · pretrain-llama-70b",
    "CRITICAL · error-burst · pretrain-llama-70b",
    "Recovered · error-burst · pretrain-llama-70b (was CRITICAL)",
    "CRITICAL · pod-gone · pretrain-llama-70b",
    "Closed · pod-gone · pretrain-llama-70b: new pods took over, not known to have recovered (was CRITICAL)",
    "WARNING · log-silence · pretrain-llama-70b",
    "Recovered · log-silence · pretrain-llama-70b (was WARNING)",
    "CRITICAL · gpu-idle-without-pause · pretrain-llama-70b",
    "Recovered · gpu-idle-without-pause · pretrain-llama-70b (was CRITICAL)",
    "CRITICAL · gpu-idle · pretrain-llama-70b",
    "Recovered · gpu-idle · pretrain-llama-70b (was CRITICAL)",
    "INFO · mostly-idle · pretrain-llama-70b",
    "Recovered · mostly-idle · pretrain-llama-70b (was INFO)",
    "WARNING · vram-nearly-full · pretrain-llama-70b",
    "Now CRITICAL · vram-nearly-full · pretrain-llama-70b",
    "Recovered · vram-nearly-full · pretrain-llama-70b (was CRITICAL)",
    "WARNING · queued-too-long · pretrain-eval-7b",
    "Recovered · queued-too-long · pretrain-eval-7b (was WARNING)",
    "WARNING · straggler · pretrain-llama-70b",
    "Recovered · straggler · pretrain-llama-70b (was WARNING)",
    "WARNING · memory-climbing · pretrain-llama-70b",
    "Closed · memory-climbing · pretrain-llama-70b: task ended, not known to have recovered (was WARNING)",
    "INFO · task-done · pretrain-eval-7b",
    "INFO · task-done · pretrain-llama-70b",
)


@pytest.mark.timeout(300)
def test_the_demo_ends_by_itself_and_every_rule_fires_and_closes(demo: Any) -> None:
    assert demo.wait(240) == 0, demo.err

    titles = demo.out.splitlines()
    assert [title for title in DEMO if title not in titles] == []
    assert "stopped by a bug" not in demo.err
    assert demo.out.count("Summary") == 1
    assert "undelivered messages: 0" in demo.out
