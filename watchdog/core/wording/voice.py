"""A language in a time zone: how numbers, times, durations and ready-made phrases are said.

Everything here is total: any float, any datetime and any text has a form.
"""

import math
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo

from watchdog.core.durations import from_ns, parse_duration
from watchdog.core.wording.shape import Wording

RATIO = "ratio"
_BYTES = {"Bytes": "B", "bytes": "B", "B": "B", "Bytes/s": "B/s", "bytes/s": "B/s", "B/s": "B/s"}
_MULTIPLES = ("", "k", "M", "G", "T", "P")
_UNSAID = frozenset({"count", "1"})  # of what is counted, the metric's name says enough
_MOST_DIGITS = 6
_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
_MOST_PARTS = 2
_DAYS_FROM = 2 * 86_400  # 24 h is said in hours


@dataclass(frozen=True, slots=True, kw_only=True)
class Voice:
    """Who speaks: the words, the listener's zone, and the day on which it is said."""

    words: Wording
    zone: tzinfo
    today: date

    @property
    def zone_name(self) -> str:
        """The zone as configured: `Asia/Shanghai`, `UTC`."""
        return str(self.zone)

    def value(self, value: float | None, unit: str, *, beside: float | None = None) -> str:
        """Say a value in its unit: a ratio as percent, bytes in a multiple that is read at a glance.

        beside: a number it is compared with: enough digits are used to tell the two apart.
        """
        if value is None:
            return self.words.no_value
        if unit in _BYTES:
            return self._bytes(value, _BYTES[unit], beside)
        scale = 100.0 if unit == RATIO else 1.0
        number = _apart(value * scale, None if beside is None else beside * scale)
        if unit == RATIO:
            return self.words.percent.format(number=number)
        said = "" if unit in _UNSAID else unit
        return self.words.quantity.format(number=number, unit=said) if said else number

    def _bytes(self, value: float, unit: str, beside: float | None) -> str:
        """Say a number of bytes in the multiple that a person reads: `6.5 GB/s`."""
        size = abs(value) if math.isfinite(value) else 0.0
        power = min(int(math.log10(size) // 3), len(_MULTIPLES) - 1) if size >= 1 else 0
        scale = 1000.0**power
        number = _apart(value / scale, None if beside is None else beside / scale)
        return self.words.quantity.format(number=number, unit=_MULTIPLES[power] + unit)

    def duration(self, duration: timedelta) -> str:
        """Say a duration in its two largest units: `1 h 12 min`."""
        seconds = max(0, round(duration.total_seconds()))
        if not seconds and duration > timedelta():
            milliseconds = duration // timedelta(milliseconds=1)
            return self.words.durations["ms"].format(count=milliseconds)
        parts = []
        for name, size in _UNITS if seconds >= _DAYS_FROM else _UNITS[1:]:
            count, seconds = divmod(seconds, size)
            if count:
                parts.append(self.words.durations[name].format(count=count))
            if len(parts) == _MOST_PARTS or (parts and not count):
                break
        return " ".join(parts) or self.words.durations["s"].format(count=0)

    def time(self, moment: datetime, *, seconds: bool = False) -> str:
        """Say a moment in the listener's zone: the time, with the date unless it is today.

        An hour that the clocks show twice is told apart by its distance to UTC.
        """
        local = _local(moment, self.zone)
        text = local.strftime("%H:%M:%S" if seconds else "%H:%M") + _which(local)
        return text if local.date() == self.today else f"{local.date().isoformat()} {text}"

    def log_time(self, time_ns: int) -> str:
        """Say the time of a log line, to the second; empty for one that has none."""
        if time_ns <= 0:
            return ""
        try:
            return self.time(from_ns(time_ns), seconds=True)
        except OverflowError:
            return ""

    def phrase(self, text: str) -> str:
        """Say a phrase that another part of core wrote in English, if its translation is known."""
        for pattern, template in self.words.phrases:
            match = re.fullmatch(pattern, text)
            if match is not None:
                found = {name: self._part(part or "") for name, part in match.groupdict().items()}
                return template.format(**found)
        return text

    def param(self, text: str) -> str:
        """Say a notice's param: times, durations and known names in the listener's way."""
        words = self.words
        for known in (words.failures, words.capabilities, words.statuses):
            if text in known:
                return known[text]
        said = self.phrase(text)
        return self._part(text) if said == text else said

    def _part(self, text: str) -> str:
        sign = text[:1] if text[:1] in ("+", "-") else ""
        try:
            return sign + self.duration(parse_duration(text[len(sign) :]))
        except (ValueError, OverflowError):
            pass
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            return text
        return self.time(moment) if moment.tzinfo is not None else text


def voice_of(words: Wording, zone: tzinfo, now: datetime) -> Voice:
    """Return a voice that speaks now."""
    return Voice(words=words, zone=zone, today=_local(now, zone).date())


def _local(moment: datetime, zone: tzinfo) -> datetime:
    try:
        return moment.astimezone(zone)
    except (OverflowError, ValueError):
        return moment.replace(tzinfo=UTC)


def _which(local: datetime) -> str:
    """Say which of two, where the clocks go back and a time comes twice: ` (UTC+02:00)`."""
    if local.replace(fold=0).utcoffset() == local.replace(fold=1).utcoffset():
        return ""
    offset = local.strftime("%z")
    return f" (UTC{offset[:3]}:{offset[3:]})"


def _apart(value: float, other: float | None) -> str:
    """Print a number with as many digits as needed to differ from another."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("∞" if value > 0 else "-∞")
    text = _number(value, 0)
    if other is None or not math.isfinite(other) or value == other:
        return text
    for extra in range(_MOST_DIGITS):
        text = _number(value, extra)
        if text != _number(other, extra):
            return text
    return text


def _number(value: float, extra: int) -> str:
    """Print at most four digits, more of them with `extra`; no exponent for everyday sizes."""
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(value)))
    if not -4 <= magnitude < 15:
        return f"{value:.{2 + extra}e}"
    decimals = 1 if magnitude >= 0 else 1 - magnitude
    if magnitude >= 3:
        decimals = 0
    text = f"{value:.{decimals + extra}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text
