"""docs/scenarios.md: its tables are those of the reader, its examples do what it says."""

from collections.abc import Callable
from pathlib import Path

from watchdog.config.reference import documented, regenerate, scenario_part_names
from watchdog.config.scenario_schema import SCENARIO
from watchdog.replay.files import Played
from watchdog.sources.registry import SOURCE_KINDS

Play = Callable[[str], Played]


def document(root: Path) -> str:
    return (root / "docs" / "scenarios.md").read_text(encoding="utf-8")


def examples(root: Path) -> list[str]:
    return [part.split("```")[0] for part in document(root).split("```yaml\n")[1:]]


def test_the_tables_are_up_to_date(root: Path) -> None:
    assert regenerate(document(root), SOURCE_KINDS) == document(root), (
        "run: watchdog schema --docs docs/scenarios.md"
    )


def test_every_table_is_there() -> None:
    assert scenario_part_names() >= {"scenario", "scenario expect"}
    assert all(key.meaning.endswith((".", "…")) for key in SCENARIO.keys)


def test_the_document_has_every_table(root: Path) -> None:
    assert documented(document(root)) == scenario_part_names()


def test_the_examples_pass(root: Path, play_text: Play, table: Callable[[Played], str]) -> None:
    found = examples(root)
    assert len(found) == 2
    for text in found:
        played = play_text(text)
        assert played.verdict.passed, table(played)
