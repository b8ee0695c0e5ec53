"""The program's own log: every line is marked, so that no rule of ours matches it; secrets are hidden."""

import json
import logging
import sys
from collections.abc import Callable
from datetime import datetime

import pytest

from watchdog.cli.logs import _Formatter
from watchdog.config.settings import LogFormat
from watchdog.core.conditions.kinds import LogEvent, LogMatch
from watchdog.core.logs import LogLine
from watchdog.core.rules import Rule
from watchdog.core.scanning import OWN_LINE, LogScanner
from watchdog.core.tasks import Task
from watchdog.text.patterns import Re2Engine

ENGINE = Re2Engine()
ALL = Rule(
    name="all", condition=LogEvent(lines=LogMatch(match=(ENGINE.compile("(?i)error|trace|secret|failed"),)))
)
TASK = Task(key="s/1", source="s", id="1", name="ours")


def record(text: str, level: int = logging.ERROR, *, failing: bool = False) -> logging.LogRecord:
    info = None
    if failing:
        try:
            raise ValueError("Error: failed\nERROR on a second line")
        except ValueError:
            info = sys.exc_info()
    return logging.LogRecord("watchdog.engine", level, "x.py", 1, text, (), info)


@pytest.fixture(params=[(LogFormat.TEXT, False), (LogFormat.TEXT, True), (LogFormat.JSON, False)])
def formatted(request: pytest.FixtureRequest) -> Callable[..., str]:
    style, journal = request.param
    return _Formatter(style, lambda text: text.replace("hunter2", "****"), journal=journal).format


@pytest.mark.parametrize("failing", [False, True])
def test_no_line_of_ours_can_match_a_rule_of_ours(formatted: Callable[..., str], failing: bool) -> None:
    text = formatted(
        record("ERROR: secret failed\nTraceback (most recent call last):\rError", failing=failing)
    )
    lines = [LogLine(time_ns=1, pod="p", text=line) for line in text.split("\n")]
    hits = LogScanner([ALL], ENGINE).scan(TASK, lines)
    assert hits.of("all") is None
    assert hits.own == len(lines)


def test_a_secret_is_hidden(formatted: Callable[..., str]) -> None:
    assert "hunter2" not in formatted(record("the key is hunter2"))


def test_each_line_of_the_journal_has_its_priority() -> None:
    formatter = _Formatter(LogFormat.TEXT, str, journal=True)
    lines = formatter.format(record("first\nsecond")).split("\n")
    assert lines == [f"<3>watchdog.engine: {OWN_LINE} first", f"<3>watchdog.engine: {OWN_LINE}   second"]
    assert formatter.format(record("x", logging.WARNING)).startswith("<4>")
    assert formatter.format(record("x", logging.INFO)).startswith("<6>")


def test_json_is_one_object_a_line() -> None:
    text = _Formatter(LogFormat.JSON, str, journal=False).format(record("first\nsecond", failing=True))
    values = json.loads(text)
    assert "\n" not in text
    assert (values["level"], values["logger"], values["program"]) == ("error", "watchdog.engine", OWN_LINE)
    assert datetime.fromisoformat(values["time"]).tzinfo is not None
    assert values["text"].startswith("first\nsecond\nTraceback")


def test_an_empty_text_is_a_line_too() -> None:
    assert (
        _Formatter(LogFormat.TEXT, str, journal=True).format(record("")) == f"<3>watchdog.engine: {OWN_LINE} "
    )
