"""What core asks of engines that live elsewhere: patterns and renderers.

`text/` implements these; core never imports a regex or template engine.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol


class Pattern(Protocol):
    """One compiled, linear-time pattern. Equality and repr are those of its source text."""

    @property
    def text(self) -> str:
        """The pattern as written in the rule file."""
        ...

    def search(self, line: str) -> bool:
        """Whether it matches anywhere in the line."""
        ...

    def groups(self, line: str) -> Mapping[str, str] | None:
        """The named groups of the first match, or None without a match."""
        ...


class PatternSet(Protocol):
    """Many patterns matched in one pass over a block of lines."""

    def scan(self, lines: Sequence[str]) -> Sequence[tuple[int, tuple[int, ...]]]:
        """Return (line index, indices of the patterns that match it), hits only, in order."""
        ...


class PatternEngine(Protocol):
    """Compiles patterns and sets of them."""

    def compile(self, text: str) -> Pattern:
        """Compile one pattern; raises ValueError with the engine's reason if it cannot run in linear time."""
        ...

    def compile_set(self, patterns: Sequence[Pattern]) -> PatternSet:
        """Compile a set; indices of `scan` are positions in `patterns`."""
        ...


class Template(Protocol):
    """A compiled message template."""

    def render(self, values: Mapping[str, object]) -> str:
        """Render; raises ValueError if the template fails (the caller falls back to plain text)."""
        ...
