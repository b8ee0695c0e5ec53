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


@pytest.fixture
def jump(stage: Any) -> Callable[[int], None]:
    """Set the daemon's wall clock so many seconds off the true one."""
    file = stage.folder / "offset"
    file.write_text("+0\n")
    stage.env |= {
        "LD_PRELOAD": str(LIBRARY),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_TIMESTAMP_FILE": str(file),
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    return lambda seconds: file.write_text(f"{seconds:+d}\n") and None


def slots(stage: Any) -> int:
    """How many evaluations the daemon says it has made."""
    asked = stage.run("status", "--json", "--state", stage.state.path)
    return int(json.loads(asked.out)["daemon"]["slots"])


@pytest.mark.parametrize("seconds", [3600, -7200, 6 * 3600])
def test_a_jump_is_told_once_and_completes_nothing(
    stage: Any, jump: Callable[[int], None], wait_until: Wait, seconds: int
) -> None:
    preload = stage.env.pop("LD_PRELOAD")
    cloud, receiver = stage.cloud(), stage.receiver()
    cloud.gpu(0.5, chatter=2)
    daemon = stage.watching(stage.rules(RULES), env={"LD_PRELOAD": preload})
    wait_until(
        lambda: "GPU" in stage.run("explain", "long-low", "--state", stage.state.path).out, "a verdict"
    )

    jump(seconds)
    wait_until(
        lambda: "the clock jumped by" in receiver.texts(), "a word on the jump", alive=daemon, patience=180
    )
    before = slots(stage)
    wait_until(lambda: slots(stage) >= before + 5, "evaluations at their pace", alive=daemon, patience=180)
    jump(0)
    before = slots(stage)
    wait_until(lambda: slots(stage) >= before + 5, "evaluations at their pace", alive=daemon, patience=180)
    cloud.say("ERROR after the jumps", pod="worker-0")
    wait_until(lambda: "after the jumps" in receiver.texts(), "a message", alive=daemon, patience=180)

    text = receiver.texts()
    assert text.count("the clock jumped by") == 1
    for rule in ("long-low", "silent", "absent", "pod-gone"):
        assert f"· {rule} ·" not in text, text
    assert daemon.code is None
