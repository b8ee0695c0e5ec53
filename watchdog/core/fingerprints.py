"""Fingerprints: what two log lines have in common when only their particulars differ.

Numbers, times, addresses, paths, ids, ranks and the pod's own name are masked, so that 512 ranks
with one error are one kind of line. Pure, linear, and for grouping only: never shown.
"""

import re

from watchdog.core.hygiene import CleanLine
from watchdog.core.labels import fingerprint

_LONGEST = 400  # characters of a shape; what follows does not make a line another kind

_CODES = re.compile(  # numbers that say what happened, not where
    r"(?i)(\[?errno[ :]{1,2}|\bs?xid[^,\n]{0,60}?: |exitcode[ :]{0,3}"
    r"|exit(?:ed with)? ?(?:code|status)[ :]{0,3}|\bsignal[ :]{1,3}|\bhttp[/ ](?:\d\.\d )?)(-?\d{1,5})\b"
)
_LETTERS = str.maketrans("0123456789-", "zabcdefghin")
_PATH = re.compile(r"(?<![\w/])(?:~|\.{1,2})?(?:/[\w.@+=%~-]+)+/?")
_WORD = re.compile(r"[\w.@-]+")
_LOOSE = re.compile(r"#(?:[\s:,/|%<>()\[\]+-]{0,3}#)+")
_UNIT = re.compile(r"# ?(?:/(?:s|it)|[KMGTP]i?B|bytes|ms|us|µs|ns|s)\b")
_BLOCKS = re.compile(r"(?<=\|)[ #=>█▉▊▋▌▍▎▏░▒▓━╸╺╍-]{1,400}(?=\|)|[█▉▊▋▌▍▎▏░▒▓━╸╺╍]+")
_BARS = re.compile(r"[=*_#>~-]{4,}")


def shape(text: str, pod: str = "") -> str:
    """Return the line with all particulars masked; `#` stands for a word with a digit in it."""
    if len(text) > 4 * _LONGEST:
        text = text[: 4 * _LONGEST]
    if pod:
        text = text.replace(pod, "<pod>")
    text = _CODES.sub(_spelled, text)
    text = _PATH.sub("<path>", text)
    text = _WORD.sub(_masked, text)
    text = _BARS.sub("~", _BLOCKS.sub("", text))
    text = _UNIT.sub("#", _LOOSE.sub("#", text))
    return " ".join(text.split())[:_LONGEST]


def line_fingerprint(line: CleanLine) -> str:
    """Return the 16-digit fingerprint of one line, whatever rank or pod it came from."""
    return fingerprint(shape(line.body, line.pod))


def _spelled(match: re.Match[str]) -> str:
    """Spell a code in letters, which are not masked."""
    return match[1] + match[2].translate(_LETTERS)


def _masked(match: re.Match[str]) -> str:
    word = match[0]
    return "#" if any(character.isdigit() for character in word) else word
