"""The wall clock of the real daemon jumps. Run by name: it needs the package `libfaketime` (see .ci/service).

Only the daemon's clock is faked; the cloud and everything else go on in real time.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import libfaketime
import pytest

Wait = Callable[..., Any]
LIBRARY = next(Path(libfaketime.__file__).parent.rglob("libfaketime.so.1"))

RULES = r"""
channels:
  chat: { url: "${CHAT}" }
rules:
  - { name: long-low, metric: gpu, below: 99%, for: 30m }
  - { name: silent, silent: { log: any }, for: 10m }
  - { name: absent, absent: { metric: gpu, by: pod }, for: 10m }
  - { name: errors, log: { match: '\bERROR\b', by: pod } }
"""


PATIENCE = 400.0  # seconds; only ever reached when something hangs: a loaded machine starts a verb in five


@pytest.fixture
def jump(stage: Any) -> Callable[[int], None]:
    """Set the daemon's wall clock so many seconds off the true one."""
    file, whole = stage.folder / "offset", stage.folder / "offset.new"
    file.write_text("+0\n")
    stage.env |= {
        "LD_PRELOAD": str(LIBRARY),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_TIMESTAMP_FILE": str(file),
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }

    def to(seconds: int) -> None:
        whole.write_text(f"{seconds:+d}\n")
        whole.replace(file)  # every reading of the clock reads it: never half of it

    return to


def slots(stage: Any) -> int:
    """How many evaluations the daemon says it has made; 0 while it does not answer (it is busy)."""
    asked = stage.run("status", "--json", "--state", stage.state.path, patience=PATIENCE)
    view = json.loads(asked.out) if asked.code == 0 and asked.out else {}
    return int((view.get("daemon") or {"slots": 0})["slots"])


def go_on(stage: Any, wait_until: Wait, daemon: Any) -> None:
    """Wait until it has made some more evaluations."""
    before = wait_until(lambda: slots(stage), "an answer", alive=daemon, patience=PATIENCE)
    wait_until(lambda: slots(stage) >= before + 5, "evaluations", alive=daemon, patience=PATIENCE)


@pytest.mark.parametrize("seconds", [3600, -7200, 6 * 3600])
def test_a_jump_is_told_once_and_completes_nothing(
    stage: Any, jump: Callable[[int], None], wait_until: Wait, seconds: int
) -> None:
    preload = stage.env.pop("LD_PRELOAD")
    cloud, receiver = stage.cloud(), stage.receiver()
    cloud.gpu(0.5, chatter=2)
    daemon = stage.daemon(stage.rules(RULES), env={"LD_PRELOAD": preload})

    def come(condition: Callable[[], Any], what: str) -> None:
        wait_until(condition, what, alive=daemon, patience=PATIENCE)

    come(stage.state.slot, "a first slot")
    come(lambda: "GPU" in explained(stage), "a verdict")

    jump(seconds)
    come(lambda: "the clock jumped by" in receiver.texts(), "a word on the jump")
    go_on(stage, wait_until, daemon)
    jump(0)
    go_on(stage, wait_until, daemon)
    cloud.say("ERROR after the jumps", pod="worker-0")
    come(lambda: "after the jumps" in receiver.texts(), "a message")

    text = receiver.texts()
    jumps = {one.incident for one in receiver.told() if "the clock jumped by" in one.title}
    assert len(jumps) == 1, text  # a message that may not have arrived comes twice, as the same incident
    for rule in ("long-low", "silent", "absent", "pod-gone"):
        assert f"· {rule} ·" not in text, text
    assert daemon.code is None


def explained(stage: Any) -> str:
    return str(stage.run("explain", "long-low", "--state", stage.state.path, patience=PATIENCE).out)
