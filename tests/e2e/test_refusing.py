"""What the real command says when it cannot do what it is asked: clearly, at once, without a traceback."""

import os
import re
import sys
from typing import Any

import pytest

# Root may write everything; without this capability it is stopped by permissions as everybody else.
UNPRIVILEGED = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)  # PR_CAPBSET_DROP, CAP_DAC_OVERRIDE
os.execv(sys.argv[1], sys.argv[1:])
"""
BROKEN = r"""
channels:
  chat: { url: "${CHAT}" }
rules:
  - { name: gpu-low, metric: gpu, below: 10 }
  - { name: gpu-low, metrik: vram, above: 95% }
  - { name: hopeless, log: { match: '(a' } }
"""


def test_a_broken_rule_file_is_refused_with_every_problem(stage: Any) -> None:
    stage.env |= {"CLOUD": "http://127.0.0.1:1", "CHAT": "json://127.0.0.1:1/chat"}
    rules = stage.rules(BROKEN)

    for verb in (("run", rules, "--state", stage.state.path), ("check", rules)):
        done = stage.run(*verb)
        said = done.out + done.err
        assert done.code == 1, said
        assert "Traceback" not in said
        for problem in ("rules.yaml:11:.*10%", "rules.yaml:12:.*metrik", "rules.yaml:13:.*\\(a"):
            assert re.search(problem, said), (problem, said)
    assert not stage.state.path.exists()


def test_a_missing_variable_is_named_and_no_value_is_shown(stage: Any) -> None:
    stage.env |= {"CLOUD": "http://127.0.0.1:1", "CHATT": "json://user:hush-hush@127.0.0.1:1/chat"}

    done = stage.run("run", stage.rules(), "--state", stage.state.path)

    assert done.code == 1
    assert "CHAT is not set" in done.err
    assert "hush" not in done.err + done.out
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("walk",),
        ("run", "--stat", "x"),
        ("run", "a", "b"),
        ("once", "--jsn"),
        ("demo", "--speed", "fast"),
        ("test",),
    ],
)
def test_a_wrong_command_line_is_one_line_and_2(arguments: tuple[str, ...], stage: Any) -> None:
    done = stage.run(*arguments)

    assert done.code == 2
    (line,) = done.err.splitlines()
    assert line.startswith("watchdog: ")
    assert done.out == ""


def test_a_rule_file_that_is_not_there_is_one_line(stage: Any) -> None:
    done = stage.run("run", "nowhere.yaml", "--state", stage.state.path)

    assert done.code == 1
    (line,) = done.err.splitlines()
    assert "nowhere.yaml" in line


def damaged(stage: Any) -> None:
    stage.state.path.write_bytes(b"SQLite format 3\x00" + os.urandom(8192))


def foreign(stage: Any) -> None:
    stage.state.path.write_text("my diary\n" * 1000)


def folder(stage: Any) -> None:
    stage.state.path.mkdir()


@pytest.mark.parametrize("spoil", [damaged, foreign, folder])
def test_a_state_file_that_cannot_be_used_is_one_line_and_left_alone(spoil: Any, stage: Any) -> None:
    stage.env |= {"CLOUD": "http://127.0.0.1:1", "CHAT": "json://127.0.0.1:1/chat"}
    spoil(stage)
    before = stage.state.path.read_bytes() if stage.state.path.is_file() else b""

    done = stage.run("run", stage.rules(), "--state", stage.state.path)

    assert done.code == 1
    (line,) = done.err.splitlines()
    assert str(stage.state.path) in line
    assert (stage.state.path.read_bytes() if stage.state.path.is_file() else b"") == before


def test_a_state_file_that_may_only_be_read_is_one_line(stage: Any) -> None:
    stage.env |= {"CLOUD": "http://127.0.0.1:1", "CHAT": "json://127.0.0.1:1/chat"}
    rules = stage.rules()
    stage.state.path.touch(mode=0o400)
    stage.folder.chmod(0o500)
    try:
        done = stage.run(
            "run", rules, "--state", stage.state.path, before=(sys.executable, "-c", UNPRIVILEGED)
        )
    finally:
        stage.folder.chmod(0o700)

    assert done.code == 1
    (line,) = done.err.splitlines()
    assert str(stage.state.path) in line
    assert "ermission" in line or "read-only" in line
