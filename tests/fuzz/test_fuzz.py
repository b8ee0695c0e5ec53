"""The fuzz program itself, for a moment; `.ci/run` gives it a hundred thousand cases."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


def fuzz(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.fuzz", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("cases", "areas"),
    [
        (600, ["rules", "commands"]),
        (40, ["scenarios"]),
        (300, ["http"]),
        (250, ["logs"]),
        (3000, ["alaya-metrics", "alaya-logs", "alaya-list", "alaya-pod"]),
        (2000, ["siflow-objects", "siflow-frames"]),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else str(value),
)
def test_bad_input_is_survived(cases: int, areas: list[str]) -> None:
    done = fuzz("--cases", str(cases), "--seed", "7", *(word for area in areas for word in ("--only", area)))
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_finding_is_told_with_the_way_to_it() -> None:
    program = """
import sys
from tests.fuzz import areas, __main__ as program
def case(dice, shown):
    shown("the input")
    if dice.randrange(3) == 0:
        raise KeyError("not what was promised")
    return "fine"
areas.AREAS = {"pod": areas.Area(case, 1, ("fine",))}
sys.argv = ["fuzz", "--cases", "50", "--seed", "3"]
sys.exit(program.main())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.count("-- pod: KeyError") == 1
    assert "input: 'the input'" in done.stderr
    assert "again: python -m tests.fuzz --only pod --seed 3 --first " in done.stderr
    assert "seed 3, 50 cases" in done.stdout


def test_a_case_that_stalls_is_a_finding() -> None:
    program = """
import sys
from tests.fuzz import areas, running, __main__ as program
running.LIMIT_S = 0.2
def case(dice, shown):
    while True:
        try:
            while True: pass
        except Exception: pass
areas.AREAS = {"pod": areas.Area(case, 1, ())}
sys.argv = ["fuzz", "--cases", "1"]
sys.exit(program.main())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "StalledError" in done.stderr) == (1, True), done.stderr
