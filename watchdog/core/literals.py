"""Literals: the text that every match of a pattern must contain, so that a server can filter by it.

Reads pattern texts only, and gives up rather than guess: a literal that were not required would
hide lines. Knows RE2's syntax as far as needed; compiling is the engine's business.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

SHORTEST = 3  # characters; a shorter one filters nothing

_FOLDED = re.compile(r"\(\?[A-Za-z]*-?[A-Za-z]*i|\\Q|\\C")  # case ignored, quoted or byte-wise
_QUANTIFIER = re.compile(r"([*?+]|\{(\d+)(?:,\d*)?\})[?]?")
_FLAGS_ONLY = re.compile(r"\(\?[A-Za-z-]+\)")
_GROUP = re.compile(r"\((?:\?(?:P?<\w+>|[A-Za-z-]*:))?")
_ESCAPE = re.compile(r"\\(?:[pP](?:\{[^}]*\}|.)|x(?:\{[^}]*\}|..)|[0-7]{1,3}|.)", re.DOTALL)
_CLASS = re.compile(r"\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]", re.DOTALL)


def required_literal(pattern_text: str) -> str | None:
    """Return the longest text that every matching line contains as written, or None."""
    if _FOLDED.search(pattern_text):
        return None
    branches = _branches(pattern_text)
    if branches is None or len(branches) != 1:
        return None
    return branches[0].longest()


def required_literals(pattern_text: str) -> tuple[str, ...]:
    """Return texts of which every matching line contains at least one; empty = none is required."""
    if _FOLDED.search(pattern_text):
        return ()
    branches = _branches(pattern_text) or []
    found = [branch.longest() for branch in branches]
    return () if None in found else tuple(text for text in found if text is not None)


def literals_of(pattern_texts: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the fewest literals that cover these patterns, and the patterns they do not cover."""
    wanted: dict[str, None] = {}
    uncovered = []
    for text in pattern_texts:
        literals = required_literals(text)
        wanted.update(dict.fromkeys(literals))
        if not literals:
            uncovered.append(text)
    least = [one for one in wanted if not any(other in one for other in wanted if other != one)]
    return tuple(least), tuple(uncovered)


@dataclass(slots=True)
class _Branch:
    """One alternative while it is read: finished runs of plain characters, and the open one."""

    runs: list[str] = field(default_factory=list)
    open: str = ""

    def close(self) -> None:
        self.runs.append(self.open)
        self.open = ""

    def take(self, character: str, quantifier: "re.Match[str] | None") -> None:
        """Add a plain character, unless it may be missing."""
        if quantifier is None:
            self.open += character
            return
        if _optional(quantifier):
            self.close()
            return
        self.open += character
        self.close()

    def longest(self) -> str | None:
        best = max([*self.runs, self.open], key=len)
        return best if len(best) >= SHORTEST else None


def _branches(text: str) -> list[_Branch] | None:
    """Return the top-level alternatives; None if the text is not understood."""
    branches = [_Branch()]
    position = 0
    while position < len(text):
        branch = branches[-1]
        if text[position] == "|":
            branches.append(_Branch())
            position += 1
            continue
        end, plain, inner = _atom(text, position)
        if end is None:
            return None
        quantifier = _QUANTIFIER.match(text, end)
        if plain:
            branch.take(plain, quantifier)
        else:
            branch.close()
            if inner is not None and not (quantifier and _optional(quantifier)):
                branch.runs.append(required_literal(inner) or "")
        position = quantifier.end() if quantifier else end
    return branches


def _atom(text: str, position: int) -> tuple[int | None, str, str | None]:
    """Return the end of the atom that begins here, its plain character, or what a group holds."""
    character = text[position]
    if character == "\\":
        escape = _ESCAPE.match(text, position)
        if escape is None:
            return None, "", None
        plain = escape[0][1:] if len(escape[0]) == 2 and not escape[0][1].isalnum() else ""
        return escape.end(), plain, None
    if character == "[":
        found = _CLASS.match(text, position)
        return (found.end() if found else None), "", None
    if character == "(":
        flags = _FLAGS_ONLY.match(text, position)
        return (flags.end(), "", None) if flags else _group(text, position)
    if character == ")":
        return None, "", None
    return position + 1, "" if character in ".^$" else character, None


def _group(text: str, position: int) -> tuple[int | None, str, str | None]:
    head = _GROUP.match(text, position)
    end = _closing(text, position)
    if head is None or end is None:
        return None, "", None
    return end + 1, "", text[head.end() : end]


def _closing(text: str, position: int) -> int | None:
    """Return where the bracket that opens here is closed."""
    depth = 0
    while position < len(text):
        character = text[position]
        if character in "\\[":
            skipped = (_ESCAPE if character == "\\" else _CLASS).match(text, position)
            if skipped is None:
                return None
            position = skipped.end()
            continue
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return position
        position += 1
    return None


def _optional(quantifier: "re.Match[str]") -> bool:
    least = quantifier[2]
    return quantifier[1] in ("*", "?") or (least is not None and int(least) == 0)
