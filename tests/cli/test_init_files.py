import os
import stat
from collections.abc import Mapping
from io import StringIO
from pathlib import Path

import pytest
import yaml
from dotenv import dotenv_values
from hypothesis import example as sample
from hypothesis import given
from hypothesis import strategies as st

from watchdog.cli.init_files import (
    ESSENTIALS,
    Draft,
    example,
    merged_dotenv,
    quoted,
    read_text,
    rule_blocks,
    rule_file,
    write_whole,
)
from watchdog.core.ruleset import WatchEntry
from watchdog.errors import ConfigError

BY_ID = WatchEntry(source="alaya", id="42", name="llama-70b")


def draft(*watch: WatchEntry, options: Mapping[str, str] | None = None) -> Draft:
    return Draft(
        source="alaya",
        kind="alaya",
        options=options or {},
        variables=("JOB_WATCHDOG_ALAYA_API_KEY",),
        watch=watch,
        channel="${TEAM_CHAT_URL}",
        timezone="Asia/Shanghai",
        language="en",
    )


def test_the_rules_are_those_of_the_example_word_for_word() -> None:
    text = example()

    blocks = rule_blocks(text, ESSENTIALS)

    assert [rule["name"] for rule in yaml.safe_load("rules:\n" + blocks)["rules"]] == list(ESSENTIALS)
    parts = blocks.strip("\n").split("\n\n")
    assert all(part in text for part in parts)
    assert len(parts) == len(set(parts))


def test_a_heading_without_rules_is_left_out() -> None:
    blocks = rule_blocks(example(), ("task-done",))

    assert blocks.startswith("  # -- What does the cloud say of it? --")
    assert blocks.count("# --") == 1


def test_the_file_says_what_the_draft_says() -> None:
    entries = (BY_ID, WatchEntry(source="alaya", name="pretrain-*"))

    found = yaml.safe_load(rule_file(draft(*entries, options={"base_url": "http://x/", "auth": "hmac"})))

    assert found["sources"] == {"alaya": {"kind": "alaya", "base_url": "http://x/", "auth": "hmac"}}
    assert found["watch"] == [
        {"source": "alaya", "task": "42", "name": "llama-70b"},
        {"source": "alaya", "name": "pretrain-*"},
    ]
    assert found["channels"] == {"team": {"url": "${TEAM_CHAT_URL}"}}
    assert found["defaults"]["timezone"] == "Asia/Shanghai"


@pytest.mark.parametrize("name", ["run[1]", "a\x1b[31mb", "x\x85y"])
def test_beside_an_id_a_name_that_the_loader_would_refuse_is_left_out(name: str) -> None:
    entry = WatchEntry(source="alaya", id="42", name=name)

    assert yaml.safe_load(rule_file(draft(entry)))["watch"] == [{"source": "alaya", "task": "42"}]


@given(st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp", "Cn", "Co"))))
@sample('a "quoted" \\ name: #1, ${HOME}')
def test_a_quoted_text_is_read_back_and_nothing_in_it_is_filled_in(text: str) -> None:
    shown = quoted(text)

    assert yaml.safe_load(shown).replace("$${", "${") == text.replace("$${", "${")
    assert "${" not in yaml.safe_load(shown).replace("$${", "")


VALUES = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1).filter(
    lambda text: text == text.strip()
)


@given(VALUES)
@sample("mailtos://me:p'w\"d\\x@smtp.example.com?to=you@example.com&name=a b#c$d")
@sample("${HOME}")
def test_a_value_in_the_env_file_is_read_back(value: str) -> None:
    text = merged_dotenv("", {"NAME": value})

    assert dotenv_values(stream=StringIO(text), interpolate=False) == {"NAME": value}
    assert text.count("\n") == 1


def test_an_address_needs_no_quotes_in_the_env_file() -> None:
    assert merged_dotenv("", {"A": "json://h/x?a=1&b=%40"}) == "A=json://h/x?a=1&b=%40\n"


def test_everything_else_in_an_env_file_stays_as_it_is() -> None:
    before = "# ours\nexport OTHER='a b' # why\n\nKEY=old\nLONG=\"two\nKEY=lines\"\nLAST=1"

    after = merged_dotenv(before, {"KEY": "new", "MORE": "x"})

    assert after == ("# ours\nexport OTHER='a b' # why\n\nKEY=new\nLONG=\"two\nKEY=lines\"\nLAST=1\nMORE=x\n")


def test_a_name_that_stands_twice_stands_once_afterwards() -> None:
    assert merged_dotenv("KEY=1\nKEY=2\n", {"KEY": "3"}) == "KEY=3\n"


def test_a_value_that_cannot_be_written_is_refused_without_showing_it() -> None:
    with pytest.raises(ConfigError) as caught:
        merged_dotenv("", {"KEY": "hunter2\x00\r"})

    assert "KEY cannot be written" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_a_file_is_whole_and_has_its_mode_whatever_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "file"
    before = os.umask(0o077)
    try:
        write_whole(path, "text\n", 0o644)
        write_whole(path, "other\n", 0o644)
    finally:
        os.umask(before)

    assert path.read_text() == "other\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert list(tmp_path.iterdir()) == [path]


def test_behind_a_link_the_target_is_written(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "real", tmp_path / "link"
    target.write_text("before")
    link.symlink_to(target)

    write_whole(link, "after", 0o600)

    assert link.is_symlink()
    assert target.read_text() == "after"


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_write_that_is_broken_off_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    path = tmp_path / "file"
    path.write_text("before")

    def fail(_: int) -> None:
        raise error

    monkeypatch.setattr("os.fsync", fail)

    with pytest.raises((ConfigError, KeyboardInterrupt)) as caught:
        write_whole(path, "after", 0o600)

    assert isinstance(caught.value, KeyboardInterrupt) or "No space left on device" in str(caught.value)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    assert read_text(path) == ""
    path.write_bytes(b"\xff\xfe")

    with pytest.raises(ConfigError, match=r"\.env: cannot be read: it is not UTF-8 text"):
        read_text(path)
