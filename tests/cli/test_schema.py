import json
from pathlib import Path

from jsonschema import Draft7Validator


def test_the_schema_is_printed_as_json(watchdog) -> None:
    ran = watchdog("schema")

    schema = json.loads(ran.out)
    Draft7Validator.check_schema(schema)
    assert ran.code == 0
    assert set(schema["properties"]) >= {"defaults", "sources", "watch", "channels", "rules"}


def test_the_tables_of_a_document_are_renewed(watchdog, tmp_path: Path) -> None:
    document = tmp_path / "rules.md"
    document.write_text("before\n<!-- keys: levels -->\nold\n<!-- end -->\nafter\n", encoding="utf-8")

    ran = watchdog("schema", "--docs", str(document))

    text = document.read_text(encoding="utf-8")
    assert ran.code == 0
    assert "old" not in text
    assert "| `for` | duration | required |" in text
    assert text.startswith("before\n")
    assert text.endswith("<!-- end -->\nafter\n")


def test_a_document_that_is_not_there_is_one_line(watchdog) -> None:
    ran = watchdog("schema", "--docs", "gone.md")

    assert (ran.code, ran.err) == (1, "watchdog: gone.md: No such file or directory\n")


def test_a_document_that_is_no_text_or_never_ends_is_one_line(watchdog, tmp_path: Path) -> None:
    (tmp_path / "noise").write_bytes(b"\xff\xfe\x00")

    for path, words in ((tmp_path / "noise", "it is not UTF-8 text"), (Path("/dev/zero"), "is no document")):
        ran = watchdog("schema", "--docs", str(path))
        assert (ran.code, ran.out) == (1, "")
        assert words in ran.err
        assert ran.err.count("\n") == 1
