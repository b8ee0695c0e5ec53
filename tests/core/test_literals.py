import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from watchdog.core.literals import literals_of, required_literal, required_literals


@pytest.mark.parametrize(
    ("pattern", "literal"),
    [
        (r"\bERROR\b", "ERROR"),
        (r"Traceback \(most recent call last\)", "Traceback (most recent call last)"),
        (r"CUDA out of memory", "CUDA out of memory"),
        (r"step[ :=]+(?P<step>\d+)", "step"),
        (r"NVRM: Xid \(PCI:[0-9a-fA-F:.]+\): (?P<xid>\d+)", "NVRM: Xid (PCI:"),
        (r"DataLoader worker \(pid(?:\(s\))? [\d, ]+\) (?:is killed|exited)", "DataLoader worker (pid"),
        (r"colou?r", "colo"),
        (r"ab+cdef", "cdef"),
        (r"fooo*bar", "foo"),
        (r"xyz{0,3}w", None),
        (r"abc{2}", "abc"),
        (r"a{b,c", "a{b,c"),
        (r"(?:out of memory)+ now", "out of memory"),
        (r"(?:out of memory)? now", " now"),
        (r"(?s)abc.def", "abc"),
        (r"错误：显存", "错误：显存"),
        (r"[]abc]def", "def"),
        (r"[[:alpha:]]+xyz", "xyz"),
        (r"\x{41}bcd\pLefg", "bcd"),
        (r"ERROR|FATAL", None),
        (r"(?i)error", None),
        (r"(?:a|b)", None),
        (r"\d+", None),
        (r"ab", None),
        (r"\Qa.b.c\E", None),
        (r"[unclosed", None),
        (r"(unclosed", None),
        (r"a)bcde", None),
    ],
)
def test_the_text_a_match_must_contain(pattern: str, literal: str | None) -> None:
    assert required_literal(pattern) == literal


def test_alternatives_need_one_literal_each() -> None:
    assert required_literals(r"\bERROR\b|Traceback \(") == ("ERROR", "Traceback (")
    assert required_literals(r"ERROR|\d+") == ()


def test_few_literals_cover_many_patterns_and_the_rest_is_named() -> None:
    literals, uncovered = literals_of([r"\bERROR\b", "ERROR: disk", "Traceback", r"(?i)oom", "Traceback"])

    assert literals == ("ERROR", "Traceback")
    assert uncovered == (r"(?i)oom",)


ATOMS = st.sampled_from(
    [
        "a",
        "bc",
        "def",
        r"\.",
        r"\(",
        "[xy]",
        r"\d",
        ".",
        "(?:gh)",
        "(?:ij|k)",
        "(lmn)",
        "(?P<n>opq)",
        "^",
        "$",
        r"\b",
        "{",
    ]
)
REPEATS = st.sampled_from(["", "", "", "+", "*", "?", "{2}", "{0,2}", "{1,}", "+?", "*?"])


@settings(max_examples=200, deadline=None)
@given(st.data(), st.lists(st.tuples(ATOMS, REPEATS), min_size=1, max_size=6), st.booleans())
def test_every_match_contains_the_literal(
    data: st.DataObject, parts: list[tuple[str, str]], alternative: bool
) -> None:
    named = iter(range(99))
    text = "".join(atom + repeat for atom, repeat in parts) + ("|zzz" if alternative else "")
    text = re.sub(r"\(\?P<n>", lambda _: f"(?P<n{next(named)}>", text)
    try:
        compiled = re.compile(text)
    except re.error:
        return
    literals = required_literals(text)
    if not literals:
        return

    matching = data.draw(st.from_regex(compiled).filter(lambda line: compiled.search(line) is not None))

    assert any(literal in matching for literal in literals)
