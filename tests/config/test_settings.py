import os
from pathlib import Path

import pytest

from watchdog.config.settings import LogFormat, LogLevel, load_settings
from watchdog.errors import ConfigError


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty working directory, and none of our variables."""
    for name in list(os.environ):
        if name.startswith("JOB_WATCHDOG_") or name in (
            "STATE_DIRECTORY",
            "CREDENTIALS_DIRECTORY",
            "XDG_STATE_HOME",
        ):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_defaults(bare: Path) -> None:
    settings = load_settings().settings

    assert settings.rules_path == Path("/etc/job-watchdog/rules.yaml")
    assert settings.state_path == bare / ".local/state/job-watchdog/state.db"
    assert (settings.log_level, settings.log_format, settings.debug) == (LogLevel.INFO, LogFormat.TEXT, False)


def test_a_rule_file_in_the_working_directory_is_taken(bare: Path) -> None:
    (bare / "rules.yaml").touch()

    assert load_settings().settings.rules_path == Path("rules.yaml")


def test_the_state_directory_of_systemd_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", "/var/lib/job-watchdog:/var/lib/other")

    assert load_settings().settings.state_path == Path("/var/lib/job-watchdog/state.db")


def test_the_environment_goes_before_the_file(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (bare / ".env").write_text(
        "JOB_WATCHDOG_STATE=/a.db\nJOB_WATCHDOG_LOG_LEVEL=DEBUG\nTEAM=x1\n", encoding="utf-8"
    )
    monkeypatch.setenv("JOB_WATCHDOG_STATE", "/b.db")

    loaded = load_settings()

    assert loaded.settings.state_path == Path("/b.db")
    assert loaded.settings.log_level is LogLevel.DEBUG
    assert loaded.names["TEAM"] == "x1"


def test_secrets_directories_are_searched_in_order(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("own", "first"), ("systemd", "second")):
        (bare / name).mkdir()
        (bare / name / "TOKEN").write_text(value, encoding="utf-8")
    (bare / "systemd" / "ONLY").write_text("there", encoding="utf-8")
    monkeypatch.setenv("JOB_WATCHDOG_SECRETS_DIR", str(bare / "own"))
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(bare / "systemd"))

    names = load_settings().names

    assert (names["TOKEN"], names["ONLY"]) == ("first", "there")


def test_a_bad_value_names_the_variable_and_not_the_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOB_WATCHDOG_LOG_LEVEL", "hunter2")
    monkeypatch.setenv("JOB_WATCHDOG_DEBUG", "hunter2")

    with pytest.raises(ConfigError) as caught:
        load_settings()

    assert str(caught.value).splitlines() == [
        "environment: JOB_WATCHDOG_LOG_LEVEL: expected 'debug', 'info', 'warning' or 'error'",
        "environment: JOB_WATCHDOG_DEBUG: expected a valid boolean, unable to interpret input",
    ]
    assert caught.value.__cause__ is None


def test_an_unknown_variable_of_ours_is_reported(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (bare / ".env").write_text("JOB_WATCHDOG_RULEZ=x\n", encoding="utf-8")
    monkeypatch.setenv("JOB_WATCHDOG_LOGLEVEL", "debug")
    monkeypatch.setenv("JOB_WATCHDOG_ALAYA_API_KEY", "x")
    monkeypatch.setenv("JOB_WATCHDOG_ALAYA_B_API_KEY", "x")

    told = [str(problem) for problem in load_settings(["api_key"]).warnings]

    assert told == [
        "environment: warning: JOB_WATCHDOG_LOGLEVEL means nothing (did you mean JOB_WATCHDOG_LOG_LEVEL?)",
        "environment: warning: JOB_WATCHDOG_RULEZ means nothing (did you mean JOB_WATCHDOG_RULES?)",
    ]


def test_an_env_file_that_is_no_text_is_one_problem(bare: Path) -> None:
    (bare / ".env").write_bytes(b"A=\xff\xfe\n")

    with pytest.raises(ConfigError, match=r"\.env: cannot be read: it is not UTF-8 text"):
        load_settings()


def test_a_line_of_the_env_file_that_sets_nothing_is_named_once_and_not_quoted(
    bare: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (bare / ".env").write_text('A=1\nTOKEN="hunter2\nB=2\n=x\n# fine\n', encoding="utf-8")

    loaded = load_settings()

    told = [str(problem) for problem in loaded.warnings]
    assert told == [
        ".env:2:1: warning: this line is no NAME=value and is ignored (is a quote not closed?)",
        ".env:4:1: warning: this line is no NAME=value and is ignored (is a quote not closed?)",
    ]
    assert (loaded.names["A"], loaded.names["B"]) == ("1", "2")
    assert caplog.text == ""
