"""Patterns on RE2: linear time whatever the pattern and the line, or refused with the reason.

Owns compiling, the wording of refusals, and scanning blocks of lines in one pass. Knows nothing
of rules. A pattern sees one line at a time: `^` and `$` are the ends of the line.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

import re2

from watchdog.core.protocols import Pattern

_PATTERN_MEMORY = 8 << 20  # bytes; also what makes RE2 refuse a pattern that is too large
_SET_MEMORY = 64 << 20
_BLOCK = 1024  # lines scanned in one piece

_HINTS = (
    (
        "invalid perl operator: (?=",
        "look-ahead cannot run in linear time: put what must not be there under `ignore:`",
    ),
    (
        "invalid perl operator: (?!",
        "look-ahead cannot run in linear time: put what must not be there under `ignore:`",
    ),
    (
        "invalid perl operator: (?<",
        "look-behind cannot run in linear time: put what must not be there under `ignore:`",
    ),
    (
        "invalid perl operator: (?P",
        "a named group is written (?P<name>…), and a group cannot be referred to again",
    ),
    (
        "invalid perl operator: (?x",
        "the x flag is not supported: write the pattern without blanks and comments",
    ),
    ("invalid perl operator", "this kind of group is not supported: use (…), (?:…), (?P<name>…) or (?i)"),
    ("invalid escape sequence: \\Z", "write $ for the end of the line"),
    ("invalid escape sequence: \\u", "write the character itself, or \\x{4e00}"),
    ("invalid escape sequence", "a back-reference or an unknown escape; a literal backslash is \\\\"),
    (
        "bad repetition operator",
        "possessive and doubled repetitions are not supported: use one of * + ? {m,n}",
    ),
    ("invalid repetition size", "at most 1000 repetitions, and {m,n} needs m ≤ n"),
    ("no argument for repetition", "nothing stands before the repetition; a literal one is \\* \\+ \\?"),
    ("missing )", "a bracket is not closed; a literal one is \\("),
    ("unexpected )", "a bracket is closed that was not opened; a literal one is \\)"),
    ("missing ]", "a character class is not closed; a literal bracket is \\["),
    ("pattern too large", "the repetitions make it too large: use smaller ones"),
    ("trailing \\", "a literal backslash is \\\\"),
)
_GROUP = r"(?:\((?:\?(?:P?<\w+>|[a-z]*:))?)*"
_BOUNDARY = re.compile(rf"(?<!\\)(?:\\\\)*\\b{_GROUP}[^\x00-\x7f]|[^\x00-\x7f]\)*\\b")
# These mean something else in a block than in a line, or cannot stand inside a larger pattern.
_LINE_ONLY = re.compile(r"\\[AzQ]|\(\?[A-Za-z]*-[A-Za-z]*m")


class Re2Pattern:
    """A compiled pattern; its identity is its text."""

    __slots__ = ("_grouping", "_searching", "text")

    text: str

    def __init__(self, text: str) -> None:
        self.text = text
        self._searching = _compiled(text, capture=False)
        self._grouping = _compiled(text, capture=True)

    @property
    def never(self) -> bool:
        """Whether no line at all can match: RE2 compiled it to nothing but failure."""
        return bool(self._searching.programsize == 1)

    def search(self, line: str) -> bool:
        """Whether it matches anywhere in the line."""
        return self._searching.search(_encoded(line)) is not None

    def groups(self, line: str) -> Mapping[str, str] | None:
        """The named groups of the first match that took part in it, or None without a match."""
        match = self._grouping.search(_encoded(line))
        if match is None:
            return None
        found = {name.decode(): match.group(number) for name, number in self._grouping.groupindex.items()}
        return {name: _decoded(value) for name, value in found.items() if value is not None}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Re2Pattern) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return repr(self.text)


class Re2Engine:
    """Implements `core.protocols.PatternEngine`."""

    def compile(self, text: str) -> Re2Pattern:
        """Compile one pattern.

        Raises:
            ValueError: it cannot run in linear time, or cannot do what it seems to; the text says
                why and what to write instead.
        """
        pattern = _refusing(text)
        if pattern.search(""):
            raise ValueError("it matches the empty text, and therefore every line: make it ask for something")
        return pattern

    def compile_set(self, patterns: Sequence[Pattern]) -> "Re2Set":
        """Compile a set; indices of `scan` are positions in `patterns`."""
        return Re2Set(patterns)


class Re2Set:
    """Many patterns in one pass. Lines are told from each other only where something matches."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        self._patterns = tuple(patterns)
        whole = [n for n, pattern in enumerate(self._patterns) if not _LINE_ONLY.search(pattern.text)]
        self._by_line = tuple(n for n in range(len(self._patterns)) if n not in whole)
        self._by_block = _alternations([(n, self._patterns[n]) for n in whole])

    def scan(self, lines: Sequence[str]) -> Sequence[tuple[int, tuple[int, ...]]]:
        """Return (line index, indices of the patterns that match it), hits only, in order."""
        hits: dict[int, list[int]] = {}
        for start in range(0, len(lines), _BLOCK):
            self._scan_block(lines, start, hits)
        for number in self._by_line:
            search = self._patterns[number].search
            for index, line in enumerate(lines):
                if search(line):
                    hits.setdefault(index, []).append(number)
        return [(index, tuple(sorted(hits[index]))) for index in sorted(hits)]

    def _scan_block(self, lines: Sequence[str], start: int, hits: dict[int, list[int]]) -> None:
        piece = lines[start : start + _BLOCK]
        text = "\n".join(piece)
        if text.count("\n") >= len(piece):  # a line that holds line breaks is one line all the same
            text = "\n".join(line.replace("\n", " ") for line in piece)
        block = _encoded(text)
        for regex, members in self._by_block:
            for offset in _hit_lines(regex, block):
                line = lines[start + offset]
                found = [number for number in members if self._patterns[number].search(line)]
                if found:
                    hits.setdefault(start + offset, []).extend(found)


def _hit_lines(regex: "re2._Regexp", block: bytes) -> Iterator[int]:
    """Yield the number of each line in which the pattern finds something."""
    number = position = 0
    size = len(block)
    while position < size:
        match = regex.search(block, position, size)
        if match is None:
            return
        start = match.start()
        number += block.count(b"\n", position, start)
        yield number
        end = block.find(b"\n", start)
        if end < 0:
            return
        number += 1
        position = end + 1


def _alternations(
    patterns: Sequence[tuple[int, Pattern]],
) -> list[tuple["re2._Regexp", tuple[int, ...]]]:
    """Join patterns into as few large ones as RE2 takes."""
    if not patterns:
        return []
    text = "(?m:" + "|".join(f"(?:{pattern.text})" for _, pattern in patterns) + ")"
    try:
        regex = re2.compile(_encoded(text), _options(capture=False, memory=_SET_MEMORY))
    except re2.error:
        if len(patterns) == 1:
            raise
        half = len(patterns) // 2
        return _alternations(patterns[:half]) + _alternations(patterns[half:])
    return [(regex, tuple(number for number, _ in patterns))]


def _refusing(text: str) -> Re2Pattern:
    if not text:
        raise ValueError("it is empty, and would match every line")
    if _BOUNDARY.search(text):
        raise ValueError(
            r"\b knows ASCII letters, digits and _ only, so it never holds beside any other character:"
            " leave it out there"
        )
    try:
        pattern = Re2Pattern(text)
    except UnicodeEncodeError as error:
        raise ValueError("it holds a broken character (half of a surrogate pair)") from error
    except re2.error as error:
        reason = _reason(error)
        hint = next((hint for start, hint in _HINTS if reason.startswith(start)), "")
        raise ValueError(f"{reason} ({hint})" if hint else reason) from error
    if pattern.never:
        raise ValueError("it asks for a line break, but it is given one line at a time: it could never match")
    return pattern


def _reason(error: Exception) -> str:
    reason = error.args[0] if error.args else ""
    return reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)


def _compiled(text: str, *, capture: bool) -> "re2._Regexp":
    return re2.compile(text.encode("utf-8"), _options(capture=capture, memory=_PATTERN_MEMORY))


def _options(*, capture: bool, memory: int) -> "re2.Options":
    options = re2.Options()
    options.log_errors = False  # RE2 would write to stderr
    options.max_mem = memory
    options.never_nl = True  # a match never reaches into the next line of a block
    options.never_capture = not capture
    return options


def _encoded(line: str) -> bytes:
    return line.encode("utf-8", "surrogatepass")


def _decoded(value: bytes) -> str:
    return value.decode("utf-8", "surrogatepass")
