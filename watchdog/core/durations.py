"""Times and durations: parsing, printing, and the int64 nanoseconds that columns use.

Inside the program a moment is an aware UTC `datetime` or int64 nanoseconds since the Unix
epoch (`*_ns`); nanoseconds exceed 2**53 and therefore never pass through a float.
"""

import re
from datetime import UTC, datetime, timedelta

SECOND_NS = 1_000_000_000
MINUTE_NS = 60 * SECOND_NS
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_UNITS = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|[smhdw]))+\Z")
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhdw])")


def to_ns(moment: datetime) -> int:
    """Return nanoseconds since the Unix epoch of an aware datetime, exactly."""
    delta = moment - EPOCH
    return (delta.days * 86_400 + delta.seconds) * SECOND_NS + delta.microseconds * 1_000


def from_ns(time_ns: int) -> datetime:
    """Return the UTC datetime of nanoseconds since the epoch (rounded down to microseconds)."""
    return EPOCH + timedelta(microseconds=time_ns // 1_000)


def duration_ns(duration: timedelta) -> int:
    """Return a duration in nanoseconds, exactly."""
    return (duration.days * 86_400 + duration.seconds) * SECOND_NS + duration.microseconds * 1_000


def parse_duration(text: str) -> timedelta:
    """Parse `90s`, `1h30m`, `1.5h`, `2d`, `500ms`, `1w` or a signless `0s`.

    Raises:
        ValueError: the text is no such duration; the message says what was expected.
    """
    if not _DURATION.match(text):
        raise ValueError(
            f"{text!r} is not a duration: write a number and a unit, such as 90s, 15m, 1h30m or 2d"
        )
    return sum((float(number) * _UNITS[unit] for number, unit in _PART.findall(text)), timedelta())


def format_duration(duration: timedelta) -> str:
    """Return the shortest text `parse_duration` reads back: `1h30m`, `45s`, `2d`, `0s`."""
    total_ms = duration // timedelta(milliseconds=1)
    if total_ms < 0:
        return "-" + format_duration(-duration)
    parts = []
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)):
        count, total_ms = divmod(total_ms, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"
