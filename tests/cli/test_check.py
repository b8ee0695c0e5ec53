import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
GOOD = "rules:\n  - { name: idle, metric: gpu, below: 10% }\nchannels:\n  here: { url: 'console://' }\n"
BAD = "rules:\n  - name: idle\n    metric: gpu\n    below: 10\n    for: 10\n"


def test_a_good_file_is_told_in_one_line(watchdog, example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOB_WATCHDOG_ALAYA_API_KEY", "some-key-123")
    monkeypatch.setenv("TEAM_CHAT_URL", "json://localhost/hook")

    ran = watchdog("check", str(example))

    assert (ran.code, ran.err) == (0, "")
    assert ran.out == f"ok: {example}: 14 rules, 1 source, 2 watch entries, 1 channel\n"


def test_everything_that_is_missing_outside_is_named_at_once(watchdog, example: Path) -> None:
    ran = watchdog("check", str(example))

    assert ran.code == 1
    assert "sources: alaya: cannot be used: api_key is missing" in ran.out
    assert "JOB_WATCHDOG_ALAYA_API_KEY" in ran.out
    assert "TEAM_CHAT_URL is not set" in ran.out
    assert ran.out.endswith(f"cannot be used: {example}: 2 errors\n")


def test_problems_in_a_pipe_are_one_plain_line_each(watchdog, rule_file: Callable[[str], Path]) -> None:
    path = rule_file(BAD)

    ran = watchdog("check", str(path))

    assert ran.code == 1
    assert ran.out.splitlines() == [
        f"{path}:4:12: rules: idle: below: 10: this metric is a ratio, 1 is 100% (did you mean 10%?)",
        f"{path}:5:10: rules: idle: for: 10 has no unit (write 10s, 10m or 10h)",
        f"cannot be used: {path}: 2 errors",
    ]


def test_on_a_terminal_the_line_is_shown_with_a_caret(on_terminal, rule_file: Callable[[str], Path]) -> None:
    path = rule_file(BAD)

    ran = on_terminal("check", str(path))

    assert "\x1b[1;31merror:\x1b[0m rules: idle: for: 10 has no unit" in ran.out
    assert "\x1b[34m 5 \x1b[0m\x1b[34m│\x1b[0m     for: 10\n" in ran.out
    assert "   \x1b[34m│\x1b[0m          \x1b[1;31m^^\x1b[0m\n" in ran.out


def test_no_color_means_no_colour(on_terminal, rule_file, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    ran = on_terminal("check", str(rule_file(BAD)))

    assert "\x1b" not in ran.out
    assert " 5 │     for: 10\n   │          ^^\n   = write 10s, 10m or 10h\n" in ran.out


def test_secrets_in_the_file_are_not_shown_with_the_line(on_terminal, rule_file) -> None:
    text = (
        "channels: { a: { url: 'slack://hunter2hunter2/x', min_severity: high } }\n"
        "sources: { s: { kind: alaya, api_kye: hunter2, rate: fast } }\n"
    )

    ran = on_terminal("check", str(rule_file(text)))

    assert ran.code == 1
    assert "unknown key 'api_kye'" in ran.out
    assert "hunter2" not in ran.out


def test_json_is_for_programs(watchdog, rule_file) -> None:
    path = rule_file(BAD)

    bad = json.loads(watchdog("check", "--json", str(path)).out)
    good = json.loads(watchdog("check", "--json", str(rule_file(GOOD))).out)

    assert (bad["ok"], good["ok"]) == (False, True)
    assert bad["problems"][1] == {
        "file": str(path),
        "line": 5,
        "column": 10,
        "severity": "error",
        "message": "rules: idle: for: 10 has no unit",
        "hint": "write 10s, 10m or 10h",
    }
    assert good["contents"] == {"rules": 2, "sources": 0, "watch entries": 0, "channels": 1}


def test_warnings_do_not_fail(watchdog, rule_file) -> None:
    ran = watchdog("check", str(rule_file(GOOD)))

    assert ran.code == 0
    assert "warning: there are no sources: nothing is watched" in ran.out
    assert ran.out.endswith("2 rules, 0 sources, 0 watch entries, 1 channel; 1 warning\n")


def test_the_file_of_the_settings_is_the_default(
    watchdog, rule_file, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOB_WATCHDOG_RULES", str(rule_file(GOOD)))
    assert watchdog("check").code == 0

    monkeypatch.setenv("JOB_WATCHDOG_RULES", "gone.yaml")
    ran = watchdog("check")
    assert ran.code == 1
    assert ran.out.startswith("gone.yaml: cannot be read: No such file or directory\n")


def test_variables_that_mean_nothing_are_reported(
    watchdog, rule_file, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOB_WATCHDOG_LOGLEVEL", "debug")

    ran = watchdog("check", str(rule_file(GOOD)))

    assert ran.code == 0
    assert "environment: warning: JOB_WATCHDOG_LOGLEVEL means nothing" in ran.out


def test_a_bad_setting_is_one_line_without_its_value(watchdog, rule_file, monkeypatch) -> None:
    monkeypatch.setenv("JOB_WATCHDOG_LOG_LEVEL", "hunter2")

    ran = watchdog("check", str(rule_file(GOOD)))

    assert ran.code == 1
    assert ran.err == (
        "watchdog: environment: JOB_WATCHDOG_LOG_LEVEL: expected 'debug', 'info', 'warning' or 'error'\n"
    )


def test_probe_asks_every_channel(watchdog, rule_file) -> None:
    path = rule_file(GOOD + "  gone: { url: 'json://127.0.0.1:9/x' }\n")

    ran = watchdog("check", "--probe", str(path))

    assert ran.code == 1
    assert "ok     channel here: ok" in ran.out
    assert "FAILED channel gone: " in ran.out


def test_escape_codes_in_a_file_do_not_reach_the_terminal(on_terminal, rule_file, monkeypatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    ran = on_terminal(
        "check", str(rule_file('rules: [ { name: "a\\e[31m\\u202e", metric: gpu, below: 1% } ]\n'))
    )

    assert "\x1b" not in ran.out
    assert "\u202e" not in ran.out
    assert "holds the control character U+001B" in ran.out


def test_a_file_that_never_ends_is_refused_without_reading_it_to_the_end() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", "from watchdog.cli.main import main; main()", "check", "/dev/zero"],
        cwd=ROOT,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (1, "")
    assert ran.stdout.startswith("/dev/zero: the file is larger than 1024 KiB")
