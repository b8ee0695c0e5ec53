"""What the YAML parser's complaints mean, in words that say what to change.

Owns the wording only; the parser stops at its first complaint, so there is one per file.
"""

import re

import yaml

from watchdog.config.report import Mark, Report, split_lines

_BARE_REFERENCE = re.compile(r"[\s:,\[](\$\{[A-Za-z_][A-Za-z0-9_]*(?::-[^}\"']*)?\})")
QUOTES = "put the text in quotes"
INDENTATION = "check the indentation of this line and the one above"


def explain(error: yaml.YAMLError, text: str, report: Report) -> None:
    """Report one parser error where the author has to look."""
    if not isinstance(error, yaml.MarkedYAMLError):
        report.error(Mark(), f"not YAML: {error}")
        return
    at = _mark(error.problem_mark or error.context_mark, text)
    start = _mark(error.context_mark or error.problem_mark, text)
    if _explain_reference(text, start, at, report):
        return
    what = f"{error.context or ''} {error.problem or ''}"
    for words, spoken in _SPOKEN.items():
        if words in what:
            mark = start if spoken.at_start else at
            report.error(mark, spoken.message.replace("LINE", str(at.line)), spoken.hint)
            return
    if "cannot start any token" in what:
        _explain_character(text, at, report)
        return
    since = f", within what begins in line {start.line}" if start.line != at.line else ""
    report.error(at, f"not YAML: {error.problem}{since}", INDENTATION)


class _Spoken:
    """One complaint in our words; `at_start`: told where the unfinished thing begins."""

    __slots__ = ("at_start", "hint", "message")

    def __init__(self, message: str, hint: str, *, at_start: bool = False) -> None:
        self.message = message
        self.hint = hint
        self.at_start = at_start


_SPOKEN = {
    "quoted scalar found unexpected end of stream": _Spoken(
        "the quote that opens here is never closed", "", at_start=True
    ),
    "quoted scalar found unexpected document indicator": _Spoken(
        "the quote that opens here is not closed before line LINE", "", at_start=True
    ),
    "unknown escape character": _Spoken(
        "in double quotes a backslash begins an escape, and this one is unknown",
        "write patterns in single quotes: '\\bERROR\\b'",
    ),
    "expected ',' or ']'": _Spoken("the [ that opens here is not closed before line LINE", "", at_start=True),
    "expected ',' or '}'": _Spoken("the { that opens here is not closed before line LINE", "", at_start=True),
    "mapping values are not allowed": _Spoken(
        "a second ': ' in one value, or a key indented further than its neighbours",
        "put a text with ': ' in quotes, else check the indentation",
    ),
    "could not find expected ':'": _Spoken(
        "this is neither 'key: value' nor '- item'", INDENTATION, at_start=True
    ),
    "did not find expected <document start>": _Spoken("this line belongs to nothing above it", INDENTATION),
    "did not find expected key": _Spoken("expected a key here", INDENTATION),
    "did not find expected '-' indicator": _Spoken(
        "expected another '- ' of the list begun above", INDENTATION
    ),
    "while scanning an alias": _Spoken(
        "a text that begins with * needs quotes", 'write "*" or "*-worker"', at_start=True
    ),
    "while scanning an anchor": _Spoken("a text that begins with & needs quotes", QUOTES, at_start=True),
    "maximum nesting depth": _Spoken("nested far too deep", ""),
}


def _explain_reference(text: str, start: Mark, at: Mark, report: Report) -> bool:
    """Report the likeliest cause, if it is there: in `{ url: ${NAME} }` the inner } closes the outer {."""
    lines = split_lines(text)
    for number in range(start.line, at.line + 1):
        line = lines[number - 1] if number <= len(lines) else ""
        bare = _BARE_REFERENCE.search(line)
        if bare is not None and ("{" in line[: bare.start()] or "[" in line[: bare.start()]):
            mark = Mark(number, bare.start(1) + 1)
            report.error(mark, "within { } or [ ], a ${NAME} needs quotes", f'write "{bare[1]}"')
            return True
    return False


def _explain_character(text: str, at: Mark, report: Report) -> None:
    lines = split_lines(text)
    line = lines[at.line - 1] if at.line <= len(lines) else ""
    character = line[at.column - 1 : at.column]
    if "\t" in line[: at.column]:
        report.error(at, "a tab is used for indentation", "YAML wants spaces")
        return
    report.error(at, f"a text cannot begin with {character}", QUOTES)


def _mark(mark: yaml.Mark | None, text: str) -> Mark:
    """Return a place of the parser's; the end of the last line where it means the end of the file."""
    if mark is None:
        return Mark()
    lines = split_lines(text)
    if mark.line < len(lines):
        return Mark(line=mark.line + 1, column=mark.column + 1)
    return Mark(line=len(lines), column=len(lines[-1]) + 1)
