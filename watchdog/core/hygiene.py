"""Hygiene: turns rows as a source serves them into clean single lines.

Splits at line breaks and carriage returns, folds the updates of a progress bar into the last one,
drops terminal codes and control characters, cuts what is too long and says so, and finds the
prefix a launcher put before each rank's lines. Pure; knows neither rules nor secrets.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from watchdog.core.logs import LogLine

SCANNED = 16_384  # characters of one line that patterns see
SHOWN = 4_096  # characters of one line that are kept and shown
_TAIL = 4  # of what is kept, one part in four is the end of the line

# Terminal codes: CSI, closed OSC/DCS/PM/APC strings, character sets, two-character codes.
_CODES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|\x1b[\]P^_X][^\x07\x1b]*(?:\x07|\x1b\\)"
    r"|\x1b[ -/]+[0-~]?"
    r"|\x1b[0-~]?"
)
# Control characters, and the marks that turn or break the text a person sees.
_CONTROL = "\x00-\x08\x0a-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff"
_DIRTY = re.compile(f"[{_CONTROL}]")
_CONTROLS = re.compile(f"[{_CONTROL}]+")
_PREFIX = re.compile(
    r"\[(?:rank|default|Rank)?[ ]?(?P<a>\d{1,6})\]:?[ ]?"
    r"|\[\d{1,6},(?P<b>\d{1,6})\]<std(?:out|err)>:[ ]?"
    r"|[ ]{0,5}(?P<c>\d{1,6}):[ ]"
    r"|\((?:\w{1,60}[ ])?(?:pid=(?P<d>\d{1,9}))(?:,[ ]ip=[\w.:]{1,60})?\)[ ]?"
)
_MARK = re.compile(r" \[…(?P<count>[\d,]{1,15}) characters cut…\] ")
_BAR = str.maketrans("", "", "0123456789 .,:#=>-+|/\\?█▉▊▋▌▍▎▏░▒▓━╸╺╍*%")


@dataclass(frozen=True, slots=True)
class CleanLine:
    """One line, fit to be matched. `text` holds its prefix; `body` begins behind it."""

    time_ns: int
    pod: str
    text: str
    prefix: str = ""  # as written: "[rank3]: "
    rank: str = ""  # the number in it
    cut: int = 0  # characters of the line that nobody looked at

    @property
    def body(self) -> str:
        """The line without the launcher's prefix."""
        return self.text[len(self.prefix) :]


def clean(rows: Iterable[LogLine]) -> tuple[CleanLine, ...]:
    """Return the lines of some rows, in order, empty ones left out."""
    return tuple(line for row in rows for line in _lines(row))


def shown(text: str) -> str:
    """Return a line cut to what is kept: its beginning and its end, and how much is missing."""
    return shortened(text, SHOWN)


def shortened(text: str, limit: int) -> str:
    """Return the beginning and the end of a line, and how much is missing, earlier cuts included."""
    return _cut(text, limit)[0]


def _lines(row: LogLine) -> Iterator[CleanLine]:
    for piece in row.text.split("\n"):
        for segment in _states(piece) if "\r" in piece else (piece,):
            text, cut = _cut(segment, SCANNED) if len(segment) > SCANNED else (segment, 0)
            if _DIRTY.search(text):
                text = _CONTROLS.sub("", _CODES.sub("", text))
            text = text.rstrip()
            if text:
                prefix, rank = _peeled(text)
                yield CleanLine(row.time_ns, row.pod, text, prefix, rank, cut)


def _states(piece: str) -> Iterator[str]:
    """Yield what a terminal line showed, one of a run of updates that differ in numbers only."""
    last, last_shape = "", ""
    for segment in piece.split("\r"):
        if not segment or segment.isspace():
            continue
        shape = segment.translate(_BAR)
        if last and shape != last_shape:
            yield last
        last, last_shape = segment, shape
    if last:
        yield last


def _cut(text: str, limit: int) -> tuple[str, int]:
    if len(text) <= limit:
        return text, 0
    tail = limit // _TAIL
    gone = text[limit - tail : -tail]
    missing = len(gone)
    for mark in _MARK.finditer(gone):
        missing += int(mark["count"].replace(",", "")) - len(mark[0])
    return f"{text[: limit - tail]} […{missing:,} characters cut…] {text[-tail:]}", missing


def _peeled(text: str) -> tuple[str, str]:
    """Return the launcher's prefixes (torchrun may add two) and the innermost rank."""
    end, rank = 0, ""
    for _ in range(3):
        match = _PREFIX.match(text, end)
        if match is None or match.end() == len(text):
            break
        end, rank = match.end(), match[match.lastgroup or 0]
    return text[:end], rank
