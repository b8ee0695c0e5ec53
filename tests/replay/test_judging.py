"""What makes a scenario fail, and what is shown then (H5)."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from watchdog.replay.files import Played
from watchdog.replay.timeline import judge, side_by_side

Play = Callable[[str], Played]

SCENARIO = """
description: Low from T+0 for 10 minutes, twice.
length: 60m
rules:
  - {{ name: low, metric: gpu, below: 20%, for: 5m }}
series:
  - {{ metric: gpu, values: '95% until 0m, 5% until 10m, 95% until 20m, 5% until 30m, 95%' }}
expect:
{expect}
{more}
"""
FIRST = "  - { at: 5m, kind: first, rule: low, incident: a }"
CLOSED = "  - { at: 10m, kind: closed, rule: low, incident: a }"
AGAIN = "  - { at: 25m, kind: first, rule: low, incident: b }"
CLOSED_AGAIN = "  - { at: 30m, kind: closed, rule: low, incident: b }"


def scenario(*expect: str, more: str = "") -> str:
    return SCENARIO.format(expect="\n".join(expect) or "  []", more=more)


def test_what_is_expected_passes_in_any_order(play_text: Play) -> None:
    played = play_text(scenario(AGAIN, CLOSED_AGAIN, CLOSED, FIRST))
    assert played.verdict.passed
    assert played.verdict.failures == ()
    assert all(wanted and sent and not why for wanted, sent, why in played.verdict.pairs)


def test_a_wrong_time_fails_and_shows_both_timelines_side_by_side(play_text: Play) -> None:
    played = play_text(scenario(FIRST.replace("5m", "17m"), CLOSED, AGAIN, CLOSED_AGAIN))
    assert played.verdict.failures == (
        "line 9: expected T+17m chat first [low]: came at T+5m",
        "sent, but not expected: T+5m chat first [low] WARNING · low · job",
    )
    assert side_by_side(played.verdict) == [
        ("", "T+5m chat first [low] WARNING · low · job", "not expected"),
        ("T+10m chat closed [low]", "T+10m chat closed [low] Recovered · low · job (was WARNING)", ""),
        ("T+17m chat first [low]", "", "came at T+5m"),
        ("T+25m chat first [low]", "T+25m chat first [low] WARNING · low · job", ""),
        ("T+30m chat closed [low]", "T+30m chat closed [low] Recovered · low · job (was WARNING)", ""),
    ]


def test_a_message_that_is_not_expected_fails(play_text: Play) -> None:
    played = play_text(scenario(FIRST, CLOSED, AGAIN))
    assert played.verdict.failures == (
        "sent, but not expected: T+30m chat closed [low] Recovered · low · job (was WARNING)",
    )


def test_others_are_welcome_if_the_file_says_so(play_text: Play) -> None:
    assert play_text(scenario(FIRST, more="others: true")).verdict.passed
    assert not play_text(scenario(FIRST.replace("5m", "6m"), more="others: true")).verdict.passed


def test_one_message_answers_one_expectation(play_text: Play) -> None:
    played = play_text(scenario(FIRST, FIRST, CLOSED, AGAIN, CLOSED_AGAIN))
    assert len(played.verdict.failures) == 1
    assert "line 10: expected T+5m chat first [low]" in played.verdict.failures[0]


@pytest.mark.parametrize(
    ("letters", "said"),
    [
        ("a a a a", "is about another incident than the earlier 'a'"),
        ("a b b b", "is about the same incident as 'a'"),
    ],
)
def test_wrong_incident_letters_fail(play_text: Play, letters: str, said: str) -> None:
    rows = [
        row[: row.index("incident: ")] + f"incident: {letter} }}"
        for row, letter in zip((FIRST, CLOSED, AGAIN, CLOSED_AGAIN), letters.split(), strict=True)
    ]
    failures = play_text(scenario(*rows)).verdict.failures
    assert any(said in failure for failure in failures)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (FIRST.replace("rule: low", "rule: low, contains: 99 %"), "the text lacks '99 %'"),
        (FIRST.replace("rule: low", "rule: low, lacks: GPU-7"), "the text has 'GPU-7'"),
        (FIRST.replace("rule: low", "rule: lower"), "nearest is about low of job"),
        (FIRST.replace("rule: low", "task: other"), "nearest is about low of job"),
        (FIRST.replace("first", "reminder"), "nearest is T+5m chat first [low]"),
    ],
)
def test_wrong_words_fail_and_say_which(play_text: Play, row: str, said: str) -> None:
    failures = play_text(scenario(row, CLOSED, AGAIN, CLOSED_AGAIN)).verdict.failures
    assert said in failures[0]


def test_a_broken_silence_fails_even_if_the_message_is_expected(play_text: Play) -> None:
    rows = (FIRST, CLOSED, AGAIN, CLOSED_AGAIN)
    assert play_text(scenario(*rows, more="none_between: [11m..24m, 31m..60m]")).verdict.passed
    played = play_text(scenario(*rows, more="none_between: 20m..26m"))
    assert played.verdict.failures == (
        "sent between T+20m and T+26m: T+25m chat first [low] WARNING · low · job",
    )


def test_a_span_takes_what_comes_within_it(play_text: Play) -> None:
    assert play_text(scenario(FIRST.replace("5m", "4m..7m"), CLOSED, AGAIN, CLOSED_AGAIN)).verdict.passed
    assert not play_text(scenario(FIRST.replace("5m", "6m..7m"), CLOSED, AGAIN, CLOSED_AGAIN)).verdict.passed


def test_nothing_sent_is_said_as_that(play_text: Play) -> None:
    played = play_text(scenario(FIRST, CLOSED, AGAIN, CLOSED_AGAIN))
    verdict = judge(replace(played.prepared.scenario, expect=played.prepared.scenario.expect[:1]), ())
    assert verdict.failures == ("line 9: expected T+5m chat first [low]: nothing more was sent",)
