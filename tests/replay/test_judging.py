"""What makes a scenario fail, and what is shown then (H5)."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from watchdog.replay.files import Played
from watchdog.replay.timeline import judge

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
    assert all(row.wanted and row.sent and not row.differences for row in played.verdict.rows)


def rows(played: Played) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(row.expected, row.came_shortly, row.differences) for row in played.verdict.rows]


def test_a_wrong_time_fails_and_shows_the_message_that_was_meant_beside_it(play_text: Play) -> None:
    played = play_text(
        scenario(FIRST.replace("5m", "4m"), CLOSED.replace("10m", "17m..18m"), AGAIN, CLOSED_AGAIN)
    )
    assert played.verdict.failures == (
        "line 9: expected T+4m chat first [low]: it came at T+5m, 1m late",
        "line 10: expected T+17m..T+18m chat closed [low]: it came at T+10m, 7m early",
    )
    assert rows(played) == [
        ("T+4m chat first [low]", "T+5m", ("it came at T+5m, 1m late",)),
        ("T+17m..T+18m chat closed [low]", "T+10m", ("it came at T+10m, 7m early",)),
        ("T+25m chat first [low]", "T+25m", ()),
        ("T+30m chat closed [low]", "T+30m", ()),
    ]


def test_an_expectation_is_compared_with_the_nearest_message_of_its_kind(play_text: Play) -> None:
    late = CLOSED_AGAIN.replace("30m", "29m")
    played = play_text(scenario(late, AGAIN.replace("25m", "24m"), FIRST, CLOSED.replace("10m", "11m")))
    assert [(row.line, row.came_shortly) for row in played.verdict.rows] == [
        (11, "T+5m"),
        (12, "T+10m"),
        (10, "T+25m"),
        (9, "T+30m"),
    ]


def test_everything_in_which_a_message_differs_is_said(play_text: Play) -> None:
    text = "rule: low, contains: ['GPU 6 %, below 20 %', Affected, 'no such words'], lacks: 8 GPUs"
    played = play_text(
        scenario(FIRST.replace("rule: low", text).replace("5m", "6m"), CLOSED, AGAIN, CLOSED_AGAIN)
    )
    assert played.verdict.rows[0].differences == (
        "it came at T+5m, 1m early",
        "the text lacks 'GPU 6 %, below 20 %'; it says 'GPU 5 %, below 20 %'",
        "the text lacks 'no such words'",
        "the text has '8 GPUs': 'Affected: 8 of 8 GPUs'",
    )


def test_of_a_very_long_line_the_part_that_matters_is_quoted(play_text: Play) -> None:
    text = f"""
description: One line of 5000 letters.
length: 5m
rules: [ {{ name: err, log: {{ match: ERROR }} }} ]
logs: [ {{ at: 1m, text: 'ERROR {"lorem " * 800}the disk /data is full {"ipsum " * 200}' }} ]
expect: [ {{ at: 1m, kind: first, lacks: lorem ipsum, contains: the disk /home is full }} ]
"""
    difference = "; ".join(play_text(text).verdict.rows[0].differences)
    assert len(difference) < 300
    assert "the text lacks 'the disk /home is full'" in difference


def test_a_message_that_is_not_expected_fails(play_text: Play) -> None:
    played = play_text(scenario(FIRST, CLOSED, AGAIN))
    assert played.verdict.failures == (
        "sent, but not expected: T+30m chat closed [low job] Recovered · low · job (was WARNING)",
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
        (FIRST.replace("rule: low", "rule: lower"), "it is about low, not lower"),
        (FIRST.replace("rule: low", "task: other"), "it is about job, not other"),
        (FIRST.replace("first", "reminder"), "its kind is first, not reminder"),
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
        "sent between T+20m and T+26m: T+25m chat first [low job] WARNING · low · job",
    )


def test_a_span_takes_what_comes_within_it(play_text: Play) -> None:
    assert play_text(scenario(FIRST.replace("5m", "4m..7m"), CLOSED, AGAIN, CLOSED_AGAIN)).verdict.passed
    assert not play_text(scenario(FIRST.replace("5m", "6m..7m"), CLOSED, AGAIN, CLOSED_AGAIN)).verdict.passed


def test_nothing_sent_is_said_as_that(play_text: Play) -> None:
    played = play_text(scenario(FIRST, CLOSED, AGAIN, CLOSED_AGAIN))
    verdict = judge(replace(played.prepared.scenario, expect=played.prepared.scenario.expect[:1]), ())
    assert verdict.failures == ("line 9: expected T+5m chat first [low]: nothing like it was sent",)
