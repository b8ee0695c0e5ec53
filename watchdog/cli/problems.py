"""Shows problems of files: for people with the line and a caret, in a pipe as one line each.

Whatever the line holds, a secret in it is not shown.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from watchdog.cli.output import Output, Style, cut, display_width, safe
from watchdog.errors import Problem

_SECRET_LINE = re.compile(
    r"(?i)((?:pass|secret|token|key|url|cred)[a-z_-]*[\"']?\s*:\s*)(\"[^\"]*\"?|'[^']*'?|\$\{[^}\s]*\}|[^\s,}\]#]+)"
)
_REFERENCE = re.compile(r"^[\"']?\$\{[A-Za-z_][A-Za-z0-9_]*\}[\"']?$")
_TOKEN = re.compile(r"\"[^\"]*\"?|'[^']*'?|[\[{]|[^\s,\]}:]+(?::[^\s,\]}]+)*")
_VALUE = re.compile(r":\s+(\"[^\"]*\"?|'[^']*'?|[^,}]*)")
_UNKNOWN_KEY = "unknown key"


def show_problems(
    problems: Sequence[Problem],
    output: Output,
    sources: Mapping[str, Sequence[str]],
    redact: Callable[[str], str] = str,
) -> None:
    """Write problems in order.

    Args:
        problems: what is wrong.
        output: where to.
        sources: file name to lines, where lines are at hand.
        redact: masks the secrets known so far.
    """
    strangers = {(p.file, p.line, p.column) for p in problems if _UNKNOWN_KEY in p.message}
    for problem in problems:
        if not output.terminal:
            output.line(safe(str(problem)))
            continue
        lines = sources.get(problem.file, ())
        line = lines[problem.line - 1] if 0 < problem.line <= len(lines) else None
        if line is not None:
            columns = [column for *place, column in strangers if place == [problem.file, problem.line]]
            line = redact(_masked(line, columns))
        _show(problem, output, line)


def problem_values(problems: Sequence[Problem]) -> list[dict[str, object]]:
    """Return problems as values for JSON."""
    return [
        {
            "file": problem.file,
            "line": problem.line,
            "column": problem.column,
            "severity": "warning" if problem.warning else "error",
            "message": problem.message,
            "hint": problem.hint,
        }
        for problem in problems
    ]


def count_words(problems: Sequence[Problem]) -> str:
    """Return "2 errors, 1 warning"; "" if there are none."""
    warnings = sum(problem.warning for problem in problems)
    counts = ((len(problems) - warnings, "error"), (warnings, "warning"))
    return ", ".join(f"{count} {word}{'s' * (count > 1)}" for count, word in counts if count)


def _show(problem: Problem, output: Output, line: str | None) -> None:
    where = f"{problem.file}:{problem.line}:{problem.column}" if problem.line else problem.file
    kind, style = ("warning", Style.YELLOW) if problem.warning else ("error", Style.RED)
    head = f"{output.styled(safe(where), Style.BOLD)}: {output.styled(kind + ':', style)}"
    output.line(f"{head} {safe(problem.message)}")
    margin = " " * (len(str(problem.line)) + 2)
    bar = output.styled("│", Style.BLUE)
    if line is not None:
        text, before, length = _excerpt(line, problem, output.width - len(margin) - 4)
        number = output.styled(f" {problem.line} ", Style.BLUE)
        output.line(f"{number}{bar} {text}")
        output.line(f"{margin}{bar} {' ' * before}{output.styled('^' * length, style)}")
    if problem.hint:
        output.line(f"{margin}{output.styled('=', Style.BLUE)} {safe(problem.hint)}")
    output.line()


def _excerpt(line: str, problem: Problem, width: int) -> tuple[str, int, int]:
    """Return (what to show of a line, columns before the caret, length of the caret)."""
    column = max(problem.column - 1, 0)
    token = _TOKEN.match(line, column)
    marked = display_width(safe(token[0])) if token else 1
    before = safe(line[:column])
    if display_width(before) + marked > width:
        start = max(column - width // 2, 0)
        before = "…" + safe(line[start:column])
    place = display_width(before)
    return cut(before + safe(line[column:]), width), place, max(min(marked, width - place), 1)


def _masked(line: str, unknown_keys: Sequence[int]) -> str:
    """Return the line without values that may be secret: of keys that sound so, and of unknown keys.

    Characters are replaced one by one, so that columns (from 1) stay where they are.
    """

    def hidden(match: re.Match[str]) -> str:
        value = match[2]
        return match[1] + (value if _REFERENCE.match(value) else "*" * len(value))

    masked = _SECRET_LINE.sub(hidden, line)
    for column in unknown_keys:
        value = _VALUE.search(masked, column - 1)
        if value is not None:
            masked = masked[: value.start(1)] + "*" * len(value[1]) + masked[value.end(1) :]
    return masked
