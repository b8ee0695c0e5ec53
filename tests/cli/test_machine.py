from pathlib import Path

import pytest

from watchdog.cli.machine import machine_language, machine_zone


@pytest.fixture
def link(tmp_path: Path) -> Path:
    """A clock setting as Linux and macOS have it: a link into the zone database."""
    target = tmp_path / "usr" / "share" / "zoneinfo" / "Asia" / "Shanghai"
    target.parent.mkdir(parents=True)
    target.touch()
    path = tmp_path / "localtime"
    path.symlink_to(target)
    return path


def test_the_zone_is_the_variable_then_the_link_then_the_file(tmp_path: Path, link: Path) -> None:
    file = tmp_path / "timezone"
    file.write_text("Europe/Berlin\n")
    nothing = tmp_path / "nothing"

    assert machine_zone({"TZ": ":America/New_York"}, link=link, file=file) == "America/New_York"
    assert machine_zone({}, link=link, file=file) == "Asia/Shanghai"
    assert machine_zone({}, link=nothing, file=file) == "Europe/Berlin"
    assert machine_zone({}, link=nothing, file=nothing) == "UTC"


def test_every_spelling_of_utc_is_utc_and_a_rule_is_no_name(tmp_path: Path, link: Path) -> None:
    nothing = tmp_path / "nothing"

    assert machine_zone({"TZ": "Etc/UTC"}, link=link, file=nothing) == "UTC"
    assert machine_zone({"TZ": "CST-8"}, link=link, file=nothing) == "Asia/Shanghai"


@pytest.mark.parametrize(
    ("environ", "language"),
    [
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "en_US.UTF-8"}, "en"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C.UTF-8"}, "en"),
        ({"LANG": "C", "LC_MESSAGES": "zh_TW"}, "zh"),
        ({"LANG": "", "LC_ALL": ""}, "en"),
        ({}, "en"),
    ],
)
def test_the_language_is_the_machines(environ: dict[str, str], language: str) -> None:
    assert machine_language(environ) == language
