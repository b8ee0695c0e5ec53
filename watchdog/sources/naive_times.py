"""Times of APIs that write them without a zone, and back. Pure; shared by sources."""

from datetime import UTC, datetime, timedelta, tzinfo

from watchdog.core.durations import EPOCH, SECOND_NS, to_ns

MILLISECONDS = 1e11  # numbers from here on are no seconds
MICROSECONDS = 1e14
NANOSECONDS = 1e17
LAST_YEAR = 2250
LATEST_NS = 8_900_000_000_000_000_000  # in 2252


def read_time(value: object, zone: tzinfo) -> datetime | None:
    """Read a time of an API as UTC; a text without a zone is in `zone`. None if there is none."""
    moment: datetime | None
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value.strip())
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            moment = EPOCH + timedelta(seconds=value / 1000 if abs(value) > MILLISECONDS else value)
        else:
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=zone)
        moment = moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    # Zero dates stand for "never", those far ahead for "for ever": int64 nanoseconds end in 2262.
    return moment if 2000 <= moment.year < LAST_YEAR else None


def read_time_ns(value: object, zone: tzinfo) -> int | None:
    """Read a time in any unit, by its size, or as text, as ns since the epoch; integers stay exact."""
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
        value = int(value.strip()[:19])
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        moment = read_time(value, zone)
        return None if moment is None else to_ns(moment)
    for limit, unit in ((MILLISECONDS, SECOND_NS), (MICROSECONDS, 10**6), (NANOSECONDS, 10**3), (9e18, 1)):
        if 0 < value < limit:
            time_ns = value * unit if isinstance(value, int) else round(value * unit)
            return time_ns if time_ns < LATEST_NS else None
    return None


def write_naive(moment: datetime, zone: tzinfo) -> str:
    """Write a time naively, in the API's zone, to the second."""
    return moment.astimezone(zone).strftime("%Y-%m-%d %H:%M:%S")
