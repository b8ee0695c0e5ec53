"""The rule file of a daemon: looked at, judged, kept as good, and what a start uses."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

import pytest

from watchdog.config.build import Knowledge, Loaded, loads
from watchdog.config.rulefile import RuleFile, digest_of, snapshot_path
from watchdog.errors import ConfigError
from watchdog.text.patterns import Re2Engine

GOOD = 'channels: { team: { url: "${TEAM}" } }\nrules: [ { name: idle, metric: gpu, below: 10% } ]\n'
BAD = GOOD.replace("below: 10%", "belo: 10%")
SECRET = "json://user:hunter2secret@host/"


class Bed:
    """A folder with a rule file, a state, and an environment."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "rules.yaml"
        self.state = folder / "state" / "state.db"
        self.state.parent.mkdir()
        self.names: dict[str, str] = {"TEAM": SECRET}

    def write(self, text: str) -> None:
        self.path.write_text(text, encoding="utf-8")

    def file(self) -> RuleFile:
        return RuleFile(self.path, self.state, self._parse)

    def _parse(self, content: bytes, name: str) -> Loaded:
        env: Mapping[str, str] = self.names
        return loads(content, file=name, env=env, knowledge=Knowledge(engine=Re2Engine(), kinds={}))


@pytest.fixture
def bed(tmp_path: Path) -> Bed:
    made = Bed(tmp_path)
    made.write(GOOD)
    return made


def test_a_good_file_is_kept_as_written_and_only_for_us(bed: Bed) -> None:
    file = bed.file()
    file.keep(file.judge())
    assert file.snapshot.read_text(encoding="utf-8") == GOOD
    assert stat.S_IMODE(file.snapshot.stat().st_mode) == 0o600
    assert [path.name for path in bed.state.parent.iterdir()] == [file.snapshot.name]


def test_keeping_the_same_again_leaves_its_time(bed: Bed) -> None:
    file = bed.file()
    file.keep(file.judge())
    os.utime(file.snapshot, (1_000, 1_000))
    file.keep(file.judge())
    assert file.snapshot.stat().st_mtime == 1_000


def test_a_start_with_a_broken_file_uses_the_last_good_one_and_says_why(bed: Bed) -> None:
    file = bed.file()
    file.keep(file.judge())
    bed.write(BAD)
    start = bed.file().start()
    assert start.loaded.ruleset.rules[-1].name == "idle"
    assert start.used.kept is not None
    assert "belo" in str(start.rejected[0])
    assert start.digest == digest_of(BAD.encode())


def test_a_start_without_anything_good_fails_with_the_problems_of_the_file(bed: Bed) -> None:
    bed.write(BAD)
    with pytest.raises(ConfigError, match="belo"):
        bed.file().start()


def test_a_missing_secret_spoils_the_last_good_one_too(bed: Bed) -> None:
    file = bed.file()
    file.keep(file.judge())
    bed.names.clear()
    with pytest.raises(ConfigError, match="TEAM is not set") as caught:
        bed.file().start()
    assert str(file.snapshot) in str(caught.value)


def test_a_missing_file_is_replaced_by_what_was_good_of_it_but_not_by_another_files(bed: Bed) -> None:
    file = bed.file()
    file.keep(file.judge())
    bed.path.unlink()
    assert bed.file().start().rejected
    bed.path = bed.path.with_name("mistyped.yaml")
    with pytest.raises(ConfigError, match="cannot be read"):
        bed.file().start()


def test_every_value_ever_used_stays_hidden(bed: Bed) -> None:
    file = bed.file()
    file.judge()
    bed.names["TEAM"] = "json://user:anothersecret9@host/"
    file.judge()
    said = file.secrets.redact("hunter2secret anothersecret9")
    assert "hunter2secret" not in said
    assert "anothersecret9" not in said


def test_the_environment_is_looked_up_at_each_judgement(bed: Bed) -> None:
    file = bed.file()
    bed.names.clear()
    assert file.judge().loaded is None
    bed.names["TEAM"] = SECRET
    assert file.judge().loaded is not None


def test_a_look_sees_a_swapped_symlink(bed: Bed, tmp_path: Path) -> None:
    one, two, link = tmp_path / "one.yaml", tmp_path / "two.yaml", tmp_path / "link.yaml"
    one.write_text(GOOD)
    two.write_text(GOOD.replace("idle", "busy"))
    link.symlink_to(one)
    bed.path = link
    file = bed.file()
    before = file.look()
    swapped = tmp_path / "swapped"
    swapped.symlink_to(two)
    swapped.replace(link)
    assert file.look() == digest_of(two.read_bytes()) != before


def test_a_close_look_reads_what_neither_size_nor_time_tell(bed: Bed) -> None:
    file = bed.file()
    before = file.look()
    found = bed.path.stat()
    bed.write(GOOD.replace("idle", "busy"))
    os.utime(bed.path, ns=(found.st_atime_ns, found.st_mtime_ns))
    file._looked = (
        (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, bed.path.stat().st_ctime_ns),
        before,
    )
    assert file.look() == before
    assert file.look(closely=True) == digest_of(bed.path.read_bytes())


def test_what_cannot_be_read_has_no_digest(bed: Bed) -> None:
    bed.path.unlink()
    assert bed.file().look() == ""
    assert bed.file().judge().digest == ""


def test_a_failed_write_leaves_the_old_snapshot_and_nothing_else(bed: Bed) -> None:
    file = bed.file()
    file.keep(file.judge())
    bed.write(GOOD.replace("idle", "busy"))
    judged = file.judge()
    bed.state.parent.chmod(0o500)
    try:
        if os.access(bed.state.parent, os.W_OK):
            return  # as root nothing is refused
        with pytest.raises(OSError, match="ermission"):
            file.keep(judged)
    finally:
        bed.state.parent.chmod(0o700)
    assert file.snapshot.read_text() == GOOD
    assert len(list(bed.state.parent.iterdir())) == 1


def test_each_state_and_rule_file_has_a_snapshot_of_its_own(tmp_path: Path) -> None:
    places = {
        snapshot_path(tmp_path / rules, tmp_path / state) for rules in ("a", "b") for state in ("s", "t")
    }
    assert len(places) == 4
