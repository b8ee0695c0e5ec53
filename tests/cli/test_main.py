import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from watchdog.cli import main
from watchdog.cli.main import VERBS, Verb, foreign_owner

PACKAGE = Path(main.__file__).resolve().parent.parent


def test_help_lists_every_verb_and_imports_none(watchdog) -> None:
    before = {name for name in sys.modules if name.startswith("watchdog.")}

    ran = watchdog("--help")

    assert ran.code == 0
    assert all(re.search(rf"^  {name} +\S", ran.out, re.MULTILINE) for name in VERBS)
    assert {name for name in sys.modules if name.startswith("watchdog.")} == before


def test_help_needs_no_library() -> None:
    loaded = imported_by("import watchdog.cli.main as main; main.run(['--help'])")

    assert not {"typer", "asyncio", "logging", "dataclasses"} & loaded


def test_what_a_daemon_imports_leaves_out_what_it_may_never_need() -> None:
    loaded = imported_by("import watchdog.cli.main as main; main.run(['--help']); import watchdog.cli.daemon")

    assert "watchdog.app" in loaded
    assert not {"typer", "pydantic", "jinja2", "prometheus_client", "apprise", "requests"} & loaded
    assert not {"dotenv", "difflib"} & loaded


def test_httpx_comes_without_its_command_line() -> None:
    loaded = imported_by("import watchdog.cli.main as main; main.run(['version']); import httpx")

    assert not {"rich", "pygments", "click"} & loaded


def test_numpy_comes_without_threads() -> None:
    script = (
        "import watchdog.cli.main as main; main.run(['version']);"
        "import numpy, os; print(len(os.listdir('/proc/self/task')))"
    )
    env = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    ran = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)

    assert ran.stdout.splitlines()[-1] == "1"


def test_a_daemon_collects_garbage_but_not_among_what_it_imported(tmp_path) -> None:
    script = (
        "import asyncio, gc, sys, watchdog.cli.main as main;"
        "asyncio.run = lambda life: print(gc.isenabled(), gc.get_freeze_count() > 20_000, life.close());"
        "code = main.run(['run', sys.argv[1], '--state', sys.argv[2]]); print(code, gc.isenabled())"
    )
    (tmp_path / "rules.yaml").write_text("rules: []\n")
    command = [sys.executable, "-c", script, tmp_path / "rules.yaml", tmp_path / "state.db"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)

    assert ran.stdout.splitlines() == ["True True None", "0 True"]


def imported_by(statements: str) -> set[str]:
    """Which modules a fresh interpreter has after these statements."""
    script = f"{statements}; import sys; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(ran.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_has_help_of_its_own(watchdog, name: str) -> None:
    ran = watchdog(name, "--help")

    assert ran.code == 0
    assert ran.out.startswith(f"Usage: watchdog {name} ")
    assert "Show this message" in ran.out


def test_without_arguments_the_help_is_shown(watchdog) -> None:
    ran = watchdog()

    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("Usage: watchdog ")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("chek",), "No such command 'chek'. Did you mean 'check'"),
        (("check", "--jso"), "No such option: --jso"),
        (("check", "a", "b"), "Got unexpected extra argument"),
        (("--verbose",), "No such option: --verbose"),
        (("schema", "--docs"), "Option '--docs' requires an argument"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_code_2(
    watchdog, arguments: tuple[str, ...], complaint: str
) -> None:
    ran = watchdog(*arguments)

    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"watchdog: {complaint}")
    assert ran.err.count("\n") == 1
    assert "--help" in ran.err


def test_an_unexpected_error_is_one_line_without_its_text(watchdog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(VERBS, "boom", Verb("tests_cli_boom:boom", "Breaks."))
    monkeypatch.setitem(sys.modules, "tests_cli_boom", sys.modules[__name__])

    ran = watchdog("boom")

    assert ran.code == 70
    assert re.fullmatch(
        r"watchdog: stopped by a bug: RuntimeError in watchdog/cli/main\.py:\d+ "
        r"\(JOB_WATCHDOG_DEBUG=1 shows more; please report it\)\n",
        ran.err,
    )


def test_debug_shows_the_traceback(watchdog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(VERBS, "boom", Verb("tests_cli_boom:boom", "Breaks."))
    monkeypatch.setitem(sys.modules, "tests_cli_boom", sys.modules[__name__])
    monkeypatch.setenv("JOB_WATCHDOG_DEBUG", "1")

    ran = watchdog("boom")

    assert ran.code == 70
    assert "Traceback" in ran.err
    assert "hunter2" in ran.err


def boom() -> int:
    raise RuntimeError("hunter2")


def test_an_interrupt_is_quiet(watchdog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(VERBS, "stop", Verb("tests_cli_stop:stop", "Stops."))
    monkeypatch.setitem(sys.modules, "tests_cli_stop", sys.modules[__name__])

    ran = watchdog("stop")

    assert ran.code == 130
    assert "Traceback" not in ran.err


def stop() -> int:
    raise KeyboardInterrupt


def test_the_version_is_told(watchdog) -> None:
    short, long = watchdog("--version"), watchdog("version")

    assert short.code == 0
    assert short.out.startswith("job-watchdog ")
    assert {line.split()[0] for line in long.out.splitlines()} >= {
        "job-watchdog",
        "Python",
        "apprise",
        "SQLite",
    }


def test_another_owner_of_the_import_name_is_found(tmp_path: Path) -> None:
    (tmp_path / "job_watchdog-0.1.0.dist-info").mkdir()
    assert foreign_owner(PACKAGE, [str(tmp_path), "/nowhere", ""]) == ""

    (tmp_path / "watchdog-6.0.0.dist-info").mkdir()
    assert foreign_owner(PACKAGE, [str(tmp_path)]) == "watchdog-6.0.0"

    (tmp_path / "mixed" / "observers").mkdir(parents=True)
    assert foreign_owner(tmp_path / "mixed", []) == "other files in its folder"


def test_what_the_import_name_check_cannot_look_at_is_nobody_elses() -> None:
    assert foreign_owner(Path("x" * 300), []) == ""  # root may look everywhere, but not at such a name


def test_the_program_refuses_to_start_beside_another_owner(tmp_path: Path) -> None:
    (tmp_path / "watchdog-6.0.0.dist-info").mkdir()
    code = "import sys; sys.argv = ['watchdog', 'version']; from watchdog.cli.main import main; main()"

    ran = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.append({str(tmp_path)!r}); {code}"],
        capture_output=True,
        text=True,
        cwd=PACKAGE.parent,
        check=False,
    )

    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == (
        "watchdog: the import name watchdog is also used by watchdog-6.0.0: install job-watchdog on its own\n"
    )


def test_a_closed_pipe_is_no_error() -> None:
    command = f"{sys.executable} -c 'from watchdog.cli.main import main; main()' schema | head -c 10"

    ran = subprocess.run(
        ["/bin/sh", "-c", command], capture_output=True, text=True, cwd=PACKAGE.parent, check=False
    )

    assert ran.stdout == '{\n  "$sche'
    assert ran.stderr == ""


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("verb", ["version", "schema", "--help"])
def test_a_full_disk_behind_stdout_is_said_and_no_bug_of_ours(verb: str, unbuffered: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", "from watchdog.cli.main import main; main()", verb],
            cwd=PACKAGE.parent,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (1, "watchdog: reading or writing: No space left on device\n")


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from watchdog.cli.main import run; run(['--help']);"
        "heavy = {'rich', 'pydantic', 'yaml', 'numpy', 'httpx', 'apprise', 'asyncio'};"
        "print(sorted(heavy & set(sys.modules)))"
    )

    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=PACKAGE.parent, check=True
    )

    assert ran.stdout.splitlines()[-1] == "[]"
