"""The catalogue: every file in tests/scenarios passes on the live engine."""

from collections.abc import Callable
from pathlib import Path

import pytest

from watchdog.replay.files import Played

FILES = sorted((Path(__file__).parents[1] / "scenarios").glob("*.yaml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_scenario(path: Path, play_file: Callable[[Path], Played], table: Callable[[Played], str]) -> None:
    played = play_file(path)
    failures = "\n".join(played.verdict.failures)
    assert played.verdict.passed, f"{failures}\n\n{table(played)}"


def test_the_catalogue_is_there() -> None:
    assert len(FILES) > 60
