"""Rows of Alaya's logs as lines: a page at once where every row is as documented, else row by row.

Pure; knows neither the envelope nor what was asked.
"""

import json
from collections.abc import Sequence
from typing import Annotated

import msgspec

from watchdog.core.logs import LogLine, LogRows

_NS = Annotated[int, msgspec.Meta(gt=0, le=(1 << 63) - 1)]


class Row(msgspec.Struct, gc=False, rename="camel"):
    """One row as it came."""

    timestamp: object = None
    log: object = None
    pod_name: object = None


class _Documented(msgspec.Struct, gc=False, rename="camel"):
    timestamp: _NS
    log: str
    pod_name: str = ""


_PAGE = msgspec.json.Decoder(list[_Documented], strict=False)  # not strict: digits within quotes are an int


def documented_lines(data: msgspec.Raw) -> LogRows | None:
    """Return the lines of a page, in its order; None if any row is not quite as documented."""
    try:
        rows = _PAGE.decode(data)
    except (msgspec.MsgspecError, RecursionError):
        return None
    pods, texts = [row.pod_name for row in rows], [row.log for row in rows]
    if "\x00" in "".join(texts) or "\x00" in "".join(pods):
        return None
    return LogRows([row.timestamp for row in rows], pods, texts)


def row_lines(rows: Sequence[Row]) -> tuple[LogRows, int]:
    """Return the rows that have a time and a text as lines, in their order, and how many have no time."""
    timed = [(time, row) for row in rows if (time := _nanoseconds(row.timestamp)) is not None]
    lines = [LogLine(time, _text(row.pod_name), _text(row.log)) for time, row in timed if row.log is not None]
    return LogRows.of(lines), len(rows) - len(timed)


def _nanoseconds(value: object) -> int | None:
    """Read epoch nanoseconds, exactly: text of digits or an integer; never through a float."""
    if isinstance(value, str):
        text = value.strip()
        if not (text.isascii() and text.isdigit()) or len(text) > 19:
            return None
        value = int(text)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 < value < 1 << 63 else None


def _text(value: object) -> str:
    """Return a row's text; structured rows become JSON. NUL would end the text for C libraries."""
    if value is None:
        return ""
    if not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False, default=str)
    return value.replace("\x00", "\ufffd") if "\x00" in value else value
