"""Shell completion: the bash script in a real bash; what all scripts must hold."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from watchdog.cli.completion import ARGUMENTS, words
from watchdog.cli.main import VERBS

NAMES = {
    "incidents": ["7gzbebt8", "7gzqqqqq", "dumwzqhh"],
    "rules": ["gpu-idle", "gpu idle with blanks"],
    "tasks": ["llama-70b"],
    "sources": ["alaya"],
    "channels": ["team", "oncall"],
}
BASH = r"""
watchdog() {
    [[ $1 == completion && $2 == --names ]] || return 1
    case $3 in
@CASES@
    esac
}
compopt() { local IFS=' '; echo "compopt $*"; }
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_watchdog
printf '%s\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def complete(watchdog: Any, tmp_path: Path) -> Any:
    """What bash offers for a command line; the last word is the one being written."""
    script, main = tmp_path / "completion", tmp_path / "main.sh"
    script.write_text(watchdog("completion", "bash").out)
    cases = "\n".join(
        f"        {kind}) printf '%s\\n' {' '.join(repr(name) for name in names)} ;;"
        for kind, names in NAMES.items()
    )
    main.write_text(BASH.replace("@CASES@", cases))

    def offered(*line: str) -> list[str]:
        ran = subprocess.run(
            ["bash", str(main), str(script), *line], capture_output=True, text=True, check=True, timeout=30
        )
        assert ran.stderr == ""
        return [one for one in ran.stdout.splitlines() if one]

    return offered


def test_verbs(complete: Any) -> None:
    assert set(complete("watchdog", "")) == set(VERBS)
    assert complete("watchdog", "sta") == ["status"]
    assert complete("job-watchdog", "re") == ["reload"]


def test_options_of_the_verb(complete: Any) -> None:
    assert complete("watchdog", "history", "--ru") == ["--rule"]
    assert set(complete("watchdog", "show", "7gz", "--")) == {"--json", "--state", "--help"}


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        (["show", "7gz"], ["7gzbebt8", "7gzqqqqq"]),
        (["show", "--json", "d"], ["dumwzqhh"]),
        (["why", ""], NAMES["incidents"]),
        (["explain", "gpu-"], ["gpu-idle"]),
        (["explain", "gpu "], [r"gpu\ idle\ with\ blanks"]),
        (["explain", "gpu-idle", ""], ["llama-70b"]),
        (["metrics", "alaya", "l"], ["llama-70b"]),
        (["test-notify", "o"], ["oncall"]),
        (["completion", "z"], ["zsh"]),
        (["show", "7gzbebt8", ""], []),
        (["status", ""], []),
    ],
)
def test_names_where_they_belong(complete: Any, line: list[str], offered: list[str]) -> None:
    assert complete("watchdog", *line) == offered


def test_files_where_they_belong(complete: Any) -> None:
    for verb in ("run", "check", "once", "test"):
        assert complete("watchdog", verb, "ru") == ["compopt -o default"]


def test_every_shell_knows_every_verb_and_every_argument(watchdog: Any) -> None:
    for shell in ("bash", "zsh", "fish"):
        script = watchdog("completion", shell).out
        for name in VERBS:
            assert name in script
        for kinds in ARGUMENTS.values():
            for kind in set(kinds) - {"files"}:
                assert f"--names {kind}" in script or f"wanted={kind}" in script
    assert set(ARGUMENTS) <= set(VERBS)


def test_a_syntax_error_of_a_shell_that_is_here_would_be_found(watchdog: Any, tmp_path: Path) -> None:
    checks = {"bash": ["bash", "-n"], "zsh": ["zsh", "-n"], "fish": ["fish", "--no-execute"]}
    for shell, check in checks.items():
        if shutil.which(check[0]):
            script = tmp_path / shell
            script.write_text(watchdog("completion", shell).out)
            subprocess.run([*check, str(script)], check=True, timeout=30)


def test_words_tell_the_options_that_the_verbs_really_have() -> None:
    found = {word.name: {name for name, _ in word.options} for word in words()}
    assert found["metrics"] == {"--rules", "--json", "--state", "--help"}
    assert "--names" not in found["completion"]


def test_without_a_daemon_no_name_is_offered_and_nothing_is_said(watchdog: Any) -> None:
    ran = watchdog("completion", "--names", "incidents")
    assert (ran.code, ran.out, ran.err) == (0, "", "")
