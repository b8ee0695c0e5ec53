"""Plays scenario texts and files through the live engine."""

from collections.abc import Callable
from pathlib import Path

import pytest

from watchdog.config.build import Knowledge
from watchdog.errors import ConfigError
from watchdog.replay.files import Played, play, prepare
from watchdog.text.patterns import Re2Engine
from watchdog.text.templates import compile_template

KNOWLEDGE = Knowledge(engine=Re2Engine(), kinds={})


@pytest.fixture(scope="session")
def root() -> Path:
    return Path(__file__).parents[2]


@pytest.fixture
def play_file() -> Callable[[Path], Played]:
    def played(path: Path) -> Played:
        return play(prepare(path, KNOWLEDGE), KNOWLEDGE, compile_template)

    return played


@pytest.fixture
def play_text(tmp_path: Path, play_file: Callable[[Path], Played]) -> Callable[[str], Played]:
    def played(text: str) -> Played:
        path = tmp_path / "scenario.yaml"
        path.write_text(text, encoding="utf-8")
        return play_file(path)

    return played


@pytest.fixture
def problems(play_text: Callable[[str], Played]) -> Callable[[str], list[str]]:
    """What is wrong with a scenario text: `line:column: message`, one for each problem."""

    def found(text: str) -> list[str]:
        with pytest.raises(ConfigError) as caught:
            play_text(text)
        return [f"{problem.line}:{problem.column}: {problem.message}" for problem in caught.value.problems]

    return found


@pytest.fixture
def table() -> Callable[[Played], str]:
    """Both timelines side by side, as people see them."""

    def drawn(played: Played) -> str:
        rows = [("EXPECTED", "SENT", "")]
        rows += [(row.expected, row.came, "; ".join(row.differences)) for row in played.verdict.rows]
        widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
        return "\n".join(f"{a:<{widths[0]}} | {b:<{widths[1]}} | {why}" for a, b, why in rows)

    return drawn
