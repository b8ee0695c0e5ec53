"""Hygiene: turns rows as a source serves them into clean single lines.

Splits at line breaks and carriage returns, folds the updates of a progress bar into the last one,
drops terminal codes and control characters, cuts what is too long and says so, and finds the
prefix a launcher put before each rank's lines. Works on blocks of rows: only a row that a look at
its block finds in need of it is taken apart, and a line becomes an object of its own only where one
is asked for. Pure; knows neither rules nor secrets.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

from watchdog.core.logs import LogLine, LogRows

SCANNED = 16_384  # characters of one line that patterns see
SHOWN = 4_096  # characters of one line that are kept and shown
_BLOCK = 1_024  # rows looked at in one piece
_TAIL = 4  # of what is kept, one part in four is the end of the line

# Terminal codes: CSI, closed OSC/DCS/PM/APC strings, character sets, two-character codes.
_CODES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|\x1b[\]P^_X][^\x07\x1b]*(?:\x07|\x1b\\)"
    r"|\x1b[ -/]+[0-~]?"
    r"|\x1b[0-~]?"
)
# Control characters, and the marks that turn or break the text a person sees.
_RANGES = (
    (0x00, 0x08),
    (0x0A, 0x1F),
    (0x7F, 0x9F),
    (0x200E, 0x200F),
    (0x2028, 0x202E),
    (0x2066, 0x2069),
    (0xFEFF, 0xFEFF),
)
_CONTROL = "".join(f"{chr(first)}-{chr(last)}" for first, last in _RANGES)
_IS_CONTROL = np.zeros(0x10000, np.bool_)  # of a code point; none lies beyond
for _first, _last in _RANGES:
    _IS_CONTROL[_first : _last + 1] = True
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


class CleanLines(Sequence[CleanLine]):
    """Clean lines in columns. A `CleanLine` is made when it is asked for.

    cuts: number of a line → characters nobody looked at.
    """

    __slots__ = ("_blocks", "cuts", "pods", "texts", "times")

    def __init__(self) -> None:
        self.times: list[int] = []
        self.pods: list[str] = []
        self.texts: list[str] = []
        self.cuts: dict[int, int] = {}
        self._blocks: list[tuple[int, str]] = []  # number of its first line, and the lines, joined

    def __len__(self) -> int:
        return len(self.texts)

    @overload
    def __getitem__(self, number: int) -> CleanLine: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[CleanLine]: ...
    def __getitem__(self, number: int | slice) -> CleanLine | Sequence[CleanLine]:
        if isinstance(number, slice):
            return tuple(self[n] for n in range(*number.indices(len(self))))
        text = self.texts[number]
        prefix, rank = _peeled(text)
        cut = self.cuts.get(range(len(self))[number], 0) if self.cuts else 0
        return CleanLine(self.times[number], self.pods[number], text, prefix, rank, cut)

    def holding(self, word: str) -> list[int]:
        """Return the numbers of the lines that hold a word; no line breaks in it."""
        if not self._blocks:
            for first in range(0, len(self), _BLOCK):
                self._blocks.append((first, "\n".join(self.texts[first : first + _BLOCK])))
        numbers: list[int] = []
        for first, block in self._blocks:
            number, counted = first, 0
            place = block.find(word)
            while place >= 0:
                number += block.count("\n", counted, place)
                numbers.append(number)
                counted = block.find("\n", place)
                place = block.find(word, counted) if counted >= 0 else -1
        return numbers

    def without(self, numbers: Iterable[int]) -> "CleanLines":
        """Return all lines but these."""
        gone = set(numbers)
        if not gone:
            return self
        kept = [number for number in range(len(self)) if number not in gone]
        lines = CleanLines()
        lines.add(LogRows(self.times, self.pods, self.texts).picked(kept))
        lines.cuts = {place: self.cuts[number] for place, number in enumerate(kept) if number in self.cuts}
        return lines

    def add(self, rows: LogRows) -> None:
        """Add rows that are clean."""
        self.times += rows.times
        self.pods += rows.pods
        self.texts += rows.texts


def clean(rows: Iterable[LogLine]) -> CleanLines:
    """Return the lines of some rows, in order, empty ones left out."""
    rows = rows if isinstance(rows, LogRows) else LogRows.of(tuple(rows))
    lines = CleanLines()
    for begin in range(0, len(rows), _BLOCK):
        _add_block(lines, rows[begin : begin + _BLOCK])
    return lines


def shown(text: str) -> str:
    """Return a line cut to what is kept: its beginning and its end, and how much is missing."""
    return shortened(text, SHOWN)


def shortened(text: str, limit: int) -> str:
    """Return the beginning and the end of a line, and how much is missing, earlier cuts included."""
    return _cut(text, limit)[0]


def _add_block(lines: CleanLines, rows: LogRows) -> None:
    """Add the lines of some rows: as they are, but for those in need of more than an end without blanks."""
    begin = 0
    for doubtful in (*_doubtful(rows.texts), len(rows)):
        texts = list(map(str.rstrip, rows.texts[begin:doubtful]))
        plain = LogRows(rows.times[begin:doubtful], rows.pods[begin:doubtful], texts)
        lines.add(plain if all(texts) else plain.picked([n for n, text in enumerate(texts) if text]))
        if doubtful < len(rows):
            _add_row(lines, rows[doubtful])
        begin = doubtful + 1


def _doubtful(texts: Sequence[str]) -> list[int]:
    """Return the positions of rows that may hold control characters, or are longer than patterns see."""
    whole = "\n".join(texts)
    if whole.isascii():
        codes: NDArray[np.uint8 | np.uint32] = np.frombuffer(whole.encode("ascii"), np.uint8)
    else:
        codes = np.frombuffer(whole.encode("utf-32-le", "surrogatepass"), np.uint32)
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    ends = np.cumsum(lengths + 1) - 1
    unusual = (codes < 0x20) | (codes >= 0x7F)
    unusual[ends[:-1]] = False  # the line breaks that join them
    places = np.flatnonzero(unusual)
    points = np.minimum(codes[places].astype(np.uint32), 0xFFFF)
    places = places[_IS_CONTROL[points]]
    rows = np.concatenate((np.searchsorted(ends, places), np.flatnonzero(lengths > SCANNED)))
    return sorted(set(rows.tolist()))  # np.unique would load numpy.ma, for ever


def _add_row(lines: CleanLines, row: LogLine) -> None:
    for piece in row.text.split("\n"):
        for segment in _states(piece) if "\r" in piece else (piece,):
            text, cut = _cut(segment, SCANNED) if len(segment) > SCANNED else (segment, 0)
            if _DIRTY.search(text):
                text = _CONTROLS.sub("", _CODES.sub("", text))
            text = text.rstrip()
            if text:
                if cut:
                    lines.cuts[len(lines)] = cut
                lines.add(LogRows((row.time_ns,), (row.pod,), (text,)))


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
