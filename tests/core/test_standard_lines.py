"""What frameworks, drivers and launchers really print, against sensible rules."""

import json
from pathlib import Path

import pytest

from watchdog.core.conditions.kinds import LogEvent, LogMatch
from watchdog.core.conditions.log import log_occurrences
from watchdog.core.durations import from_ns
from watchdog.core.literals import required_literals
from watchdog.core.logs import LogLine
from watchdog.core.masking import mask
from watchdog.core.rules import Rule
from watchdog.core.scanning import LogScanner
from watchdog.core.tasks import Task
from watchdog.text.patterns import Re2Engine

LINES = json.loads((Path(__file__).parent / "standard_lines.json").read_text(encoding="utf-8"))
MESSAGES: list[tuple[str, str]] = [tuple(pair) for pair in LINES["messages"] if pair[0] in LINES["match"]]
HARMLESS: list[str] = LINES["harmless"]
ENGINE = Re2Engine()
TASK = Task(key="alaya/1", source="alaya", id="1", name="llama")
IGNORE = tuple(map(ENGINE.compile, LINES["ignore"]))
RULES = [
    Rule(name=name, condition=LogEvent(lines=LogMatch(match=(ENGINE.compile(text),), ignore=IGNORE)))
    for name, text in LINES["match"].items()
]


@pytest.fixture(scope="module")
def scanner() -> LogScanner:
    return LogScanner(RULES, ENGINE)


def test_every_standard_message_is_found_by_its_own_rule(scanner: LogScanner) -> None:
    hits = scanner.scan(TASK, [LogLine(n, "p", text) for n, (_, text) in enumerate(MESSAGES)])

    missed = []
    for number, (name, text) in enumerate(MESSAGES):
        own = hits.of(name)
        if own is None or number not in {line.time_ns for line in own.lines()}:
            missed.append((name, text))
    assert missed == []
    assert len(MESSAGES) > 90


def test_no_harmless_line_is_found_by_any_rule(scanner: LogScanner) -> None:
    hits = scanner.scan(TASK, [LogLine(n, "p", text) for n, text in enumerate(HARMLESS)])

    assert {name: [line.text for line in own.lines()] for name, own in hits.by_rule.items()} == {}
    assert len(HARMLESS) == 50


def test_masking_leaves_all_of_them_readable() -> None:
    texts = [text for _, text in MESSAGES] + HARMLESS

    assert [mask(text) for text in texts] == texts


def test_evidence_of_standard_messages_is_what_was_printed(scanner: LogScanner) -> None:
    hits = scanner.scan(TASK, [LogLine(n, "p", text) for n, (_, text) in enumerate(MESSAGES)])

    for rule in RULES:
        own = hits.of(rule.name)
        if own is not None:
            for one in log_occurrences(rule, TASK, own, from_ns(0)):
                assert any(line.matched for line in one.evidence.lines)
                assert one.count > 0


def test_literals_of_sensible_patterns_are_in_the_messages_they_match() -> None:
    with_literals = 0
    for name, text in MESSAGES:
        literals = required_literals(LINES["match"][name])
        with_literals += bool(literals)
        assert not literals or any(literal in text for literal in literals)
    assert with_literals > 30
