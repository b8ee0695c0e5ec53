import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from watchdog.text.patterns import Re2Engine

ENGINE = Re2Engine()


def scan(patterns: list[str], lines: list[str]) -> list[tuple[int, tuple[int, ...]]]:
    return list(ENGINE.compile_set([ENGINE.compile(text) for text in patterns]).scan(lines))


@pytest.mark.parametrize(
    ("text", "reason", "hint"),
    [
        (r"ERROR(?!_HANDLING)", "(?!", "`ignore:`"),
        (r"(?<!_)ERROR", "(?<!", "`ignore:`"),
        (r"(?=x)x", "(?=", "`ignore:`"),
        (r"(a)\1", r"\1", "back-reference"),
        (r"(?P<x>a)(?P=x)", "(?P", "cannot be referred to again"),
        (r"a++", "++", "possessive"),
        (r"(?>a)b", "(?>", "not supported"),
        (r"x{1001}", "1001", "1000"),
        (r"foo\Z", r"\Z", "$"),
        (r"(foo", "missing )", r"\("),
        (r"[foo", "missing ]", r"\["),
        (r"*foo", "*", "repetition"),
        (r"(?:\pL{1000}){100}", "invalid repetition", "1000"),
        (r"\u4e00", r"\u", r"\x{4e00}"),
        (r"\pL{1000}\pL{1000}", "too large", "smaller"),
        ("foo\\", "trailing", r"\\"),
    ],
)
def test_what_cannot_run_in_linear_time_is_refused_with_reason_and_hint(
    text: str, reason: str, hint: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)) as refusal:
        ENGINE.compile(text)

    assert hint in str(refusal.value)


@pytest.mark.parametrize("text", ["", "a*", "^", "$", "^$", "foo|", r"\s*", "(?i)", "(foo)?"])
def test_what_matches_every_line_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="every line"):
        ENGINE.compile(text)


@pytest.mark.parametrize("text", ["a\\nb", "a\nb", r"[\n]", r"foo\n$"])
def test_what_can_never_match_one_line_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="line break"):
        ENGINE.compile(text)


@pytest.mark.parametrize("text", [r"[^\n]+ failed", r"failed(?:\n|$)", r"x\s+y"])
def test_a_harmless_line_break_is_allowed(text: str) -> None:
    assert ENGINE.compile(text).text == text


@pytest.mark.parametrize("text", [r"\b错误", r"内存不足\b", r"\b(?:ERROR|错误)\b", r"\b(?P<what>错误)"])
def test_a_word_boundary_beside_chinese_text_is_refused_because_it_never_holds(text: str) -> None:
    with pytest.raises(ValueError, match="ASCII"):
        ENGINE.compile(text)


@pytest.mark.parametrize("text", [r"\bCUDA错误", r"\\b错误", "错误|失败"])
def test_chinese_patterns_are_fine_otherwise(text: str) -> None:
    assert ENGINE.compile(text).text == text


def test_broken_characters_in_a_pattern_are_refused() -> None:
    with pytest.raises(ValueError, match="surrogate"):
        ENGINE.compile("a\ud800b")


def test_patterns_are_known_by_their_text() -> None:
    one, same, other = ENGINE.compile("a+"), ENGINE.compile("a+"), ENGINE.compile("b+")

    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert one != "a+"
    assert repr(one) == repr("a+")


def test_named_groups_of_the_first_match() -> None:
    pattern = ENGINE.compile(r"step[ :=]+(?P<step>\d+)(?: loss (?P<loss>\S+))?")

    assert pattern.groups("a step: 12 loss 1.5 step: 13") == {"step": "12", "loss": "1.5"}
    assert pattern.groups("step 7") == {"step": "7"}
    assert pattern.groups("nothing") is None


def test_groups_keep_text_that_is_not_ascii() -> None:
    assert ENGINE.compile("损失=(?P<v>.+)").groups("x 损失=\udc80很大") == {"v": "\udc80很大"}


def test_refusals_write_nothing_to_stderr() -> None:
    code = (
        "from watchdog.text.patterns import Re2Engine\n"
        "try: Re2Engine().compile('(?=a)')\n"
        "except ValueError: pass\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_a_set_tells_which_pattern_hit_which_line() -> None:
    patterns = ["ERROR", "Traceback", "(?i)out of memory", "内存不足"]
    lines = ["step 1", "ERROR: CUDA Out Of Memory", "", "Traceback", "显存 内存不足", "ok"]

    assert scan(patterns, lines) == [(1, (0, 2)), (3, (1,)), (4, (3,))]


def test_an_empty_set_or_no_lines_hit_nothing() -> None:
    assert scan([], ["ERROR"]) == []
    assert scan(["ERROR"], []) == []


def test_anchors_mean_the_line_not_the_block() -> None:
    patterns = ["^b", "b$", r"\Ab", r"b\z", "(?-m:^b)", r"^b$"]

    assert scan(patterns, ["ab", "bc", "b"]) == [
        (0, (1, 3)),
        (1, (0, 2, 4)),
        (2, (0, 1, 2, 3, 4, 5)),
    ]


def test_a_match_never_reaches_into_the_next_line() -> None:
    assert scan([r"x\s+y", "x[^a]y", "(?s)x.*y", r"x\Dy"], ["x", "y", "x", "y"]) == []
    assert scan([r"x\s+y"], ["x", "x  y"]) == [(1, (0,))]


def test_flags_stay_with_their_own_pattern() -> None:
    assert scan(["(?i)error", "Fatal"], ["fatal", "ERROR", "Fatal"]) == [(1, (0,)), (2, (1,))]


def test_an_open_quote_does_not_swallow_the_other_patterns() -> None:
    assert scan([r"\Qa.b", "c"], ["a.b", "c", "axb"]) == [(0, (0,)), (1, (1,))]


def test_lines_with_odd_characters_are_scanned() -> None:
    lines = ["\x00ERROR", "ER\x00ROR", "\udc80 ERROR \ud800", "a\nERROR", "ERROR" * 3]

    assert scan(["ERROR"], lines) == [(0, (0,)), (2, (0,)), (3, (0,)), (4, (0,))]


def test_hits_in_many_blocks_keep_their_line_numbers() -> None:
    lines = [f"line {n}" + (" ERROR" if n % 700 == 1 else "") for n in range(5_000)]

    assert scan(["ERROR"], lines) == [(n, (0,)) for n in range(1, 5_000, 700)]


def test_an_exponential_pattern_on_a_long_line_is_harmless() -> None:
    pattern = ENGINE.compile(r"(a+)+$")
    assert not pattern.search("a" * 40 + "!")
    assert ENGINE.compile(r".*\b(error|fail)\b.*").search("x" * 1_000_000 + " fail")


PARTS = ["a", "b", " ", "^", "$", "x+", "[ab]", "[^a]", r"\bb", "(?:a|b)", "(?i)A", r"\s", ".", r"\d?", "错"]


@settings(max_examples=300, deadline=None)
@given(
    texts=st.lists(st.lists(st.sampled_from(PARTS), min_size=1, max_size=5).map("".join), max_size=4),
    lines=st.lists(st.text("abAx1 \t\x00错\udc80", max_size=6), max_size=8),
)
def test_scanning_blocks_equals_searching_each_line(texts: list[str], lines: list[str]) -> None:
    patterns = []
    for text in texts:
        try:
            patterns.append(ENGINE.compile(text))
        except ValueError:
            continue

    expected = [
        (index, hits)
        for index, line in enumerate(lines)
        if (hits := tuple(n for n, pattern in enumerate(patterns) if pattern.search(line)))
    ]
    assert list(ENGINE.compile_set(patterns).scan(lines)) == expected


def test_patterns_too_large_to_join_are_joined_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("watchdog.text.patterns._SET_MEMORY", 1 << 19)
    texts = [rf"(?i)\pL{{9}}{letter}\pL{{9}}" for letter in "abcdefgh"]

    assert scan(texts, ["é" * 9 + "F" + "é" * 9, "none"]) == [(0, (5,))]
