"""Collects everything that is wrong with one file, so that all of it is told at once.

Owns the order and the removal of doubles. Messages quote what the file says, never a value from outside.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from watchdog.errors import Problem

_LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")


def split_lines(text: str) -> list[str]:
    """Return the lines as YAML counts them."""
    return _LINE_BREAK.split(text)


def shorten(text: str, length: int = 60) -> str:
    """Return the text, cut to `length` characters with a mark that it was cut."""
    return text if len(text) <= length else text[: length - 1] + "…"


class Mark(NamedTuple):
    """A place in a file, counted from 1; line 0 means the whole file."""

    line: int = 0
    column: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """The problems of one file so far. `scoped` copies share the list and add words in front."""

    file: str
    scope: str = ""
    quiet: bool = False
    found: list[Problem] = field(default_factory=list)

    def error(self, mark: Mark, message: str, hint: str = "") -> None:
        """Add an error: the file cannot be used."""
        self._add(mark, message, hint, warning=False)

    def warning(self, mark: Mark, message: str, hint: str = "") -> None:
        """Add a warning: the file can be used, but says something its author may not mean."""
        self._add(mark, message, hint, warning=True)

    def scoped(self, scope: str) -> "Report":
        """Return a view that begins every message with `scope`."""
        return replace(self, scope=f"{self.scope}{scope}: ")

    def without_warnings(self) -> "Report":
        """Return a view that takes errors only: for what is switched off."""
        return replace(self, quiet=True)

    @property
    def errors(self) -> int:
        """How many errors were found so far."""
        return sum(not problem.warning for problem in self.found)

    def problems(self, redact: Callable[[str], str]) -> tuple[Problem, ...]:
        """Return all problems in file order, without doubles (an alias is read more than once)."""
        unique = dict.fromkeys(
            replace(problem, message=redact(problem.message), hint=redact(problem.hint))
            for problem in self.found
        )
        return tuple(sorted(unique, key=lambda problem: (problem.line, problem.column, problem.warning)))

    def _add(self, mark: Mark, message: str, hint: str, *, warning: bool) -> None:
        if warning and self.quiet:
            return
        self.found.append(
            Problem(
                file=self.file,
                line=mark.line,
                column=mark.column,
                message=self.scope + message,
                hint=hint,
                warning=warning,
            )
        )
