"""What verbs print: colour and tables on a terminal, plain text in a pipe, JSON where asked.

Owns every escape code. Text from outside is made harmless before it reaches a terminal. Writes to standard
output and error, decides nothing.
"""

import json
import os
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from shutil import get_terminal_size
from typing import TextIO

GAP = "  "


class Style(Enum):
    """How a piece of text stands out; the value is the parameter of the escape code."""

    BOLD = "1"
    DIM = "2"
    RED = "1;31"
    GREEN = "32"
    YELLOW = "33"
    BLUE = "34"


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """One stream. `terminal`: a person looks at it; `colour`: escape codes are wanted."""

    stream: TextIO
    terminal: bool
    colour: bool
    width: int = 100

    def line(self, text: str = "") -> None:
        """Write one line. The text is ours, or went through `safe`."""
        self.stream.write(text + "\n")

    def styled(self, text: str, style: Style) -> str:
        """Return the text in a style, or as it is where no colour is wanted."""
        return f"\x1b[{style.value}m{text}\x1b[0m" if self.colour else text

    def table(
        self, head: Sequence[str], rows: Sequence[Sequence[str]], styles: Mapping[str, Style] | None = None
    ) -> None:
        """Write rows in columns; the last column is cut where the terminal ends.

        styles: how a cell with exactly this text stands out.
        """
        cells = [[safe(cell) for cell in row] for row in rows]
        widths = [max(map(display_width, column)) for column in zip(head, *cells, strict=True)]
        self.line(self.styled(self._columns(head, widths), Style.BOLD))
        for row in cells:
            self.line(self._columns(row, widths, styles or {}))

    def json(self, value: object) -> None:
        """Write a value as JSON, for programs."""
        self.line(json.dumps(value, ensure_ascii=False, indent=2))

    def _columns(
        self, row: Sequence[str], widths: Sequence[int], styles: Mapping[str, Style] | None = None
    ) -> str:
        padded = [cell + " " * (width - display_width(cell)) for cell, width in zip(row, widths, strict=True)]
        text = GAP.join(padded).rstrip()
        text = cut(text, self.width) if self.terminal else text
        if not styles or not self.colour:
            return text
        # From the end, so that places further to the left stay where they are.
        for number in range(len(row) - 1, -1, -1):
            place = sum(map(len, padded[:number])) + len(GAP) * number
            if row[number] in styles and place + len(row[number]) <= len(text):
                end = place + len(row[number])
                text = text[:place] + self.styled(row[number], styles[row[number]]) + text[end:]
        return text


def output_for(stream: TextIO, environ: Mapping[str, str] = os.environ) -> Output:
    """Return the output for a stream: FORCE_COLOR and NO_COLOR decide, else whether it is a terminal."""
    terminal = stream.isatty()
    colour = terminal and environ.get("TERM") != "dumb"
    if environ.get("FORCE_COLOR"):
        colour = True
    if environ.get("NO_COLOR"):
        colour = False
    return Output(stream=stream, terminal=terminal, colour=colour, width=get_terminal_size((100, 24)).columns)


def standard_output() -> Output:
    """Return the output for standard output."""
    return output_for(sys.stdout)


def standard_error() -> Output:
    """Return the output for standard error."""
    return output_for(sys.stderr)


def safe(text: str) -> str:
    """Return text from outside with everything that could steer a terminal made visible."""
    if text.isprintable():
        return text
    return "".join(letter if _harmless(letter) else _escaped(letter) for letter in text)


def _harmless(letter: str) -> bool:
    return letter.isprintable() or unicodedata.category(letter) in ("Zs", "Co", "Cn")


def _escaped(letter: str) -> str:
    return {"\n": "⏎", "\t": "    "}.get(letter, f"\\x{ord(letter):02x}")


def display_width(text: str) -> int:
    """Return how many columns a text takes: Chinese characters take two, combining marks none."""
    return sum(_letter_width(letter) for letter in text)


def cut(text: str, width: int) -> str:
    """Return the text, cut to a number of columns with a mark that it was cut."""
    if display_width(text) <= width:
        return text
    kept, used = [], 1
    for letter in text:
        used += _letter_width(letter)
        if used > width:
            break
        kept.append(letter)
    return "".join(kept) + "…"


def _letter_width(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1
