"""What a source may be configured with: a table of options per kind, and reading their values.

The table is data, so that the schema, the reference and the checks come from one place. Values
arrive as text, `Secret` or already typed; secrets are never repeated in an error.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from watchdog.core.durations import parse_duration
from watchdog.core.ruleset import Secret


class OptionType(StrEnum):
    """How an option's value is written in the rule file."""

    TEXT = "text"
    SECRET = "secret"  # noqa: S105 - a type's name
    CHOICE = "choice"
    ZONE = "time zone"
    DURATION = "duration"
    INTEGER = "integer"
    NUMBER = "number"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOption:
    """One option: its name in the rule file, type, default (as written there) and meaning.

    An option of type SECRET may also come from the environment as JOB_WATCHDOG_<SOURCE>_<OPTION>.
    `ask`: `watchdog init` asks for it although it has a default; what is missing it asks for anyway.
    """

    name: str
    type: OptionType
    doc: str
    default: str = ""
    choices: tuple[str, ...] = ()
    ask: bool = False


class OptionReader:
    """Reads the options of one source against its table; every error is a ValueError naming the option."""

    def __init__(self, table: tuple[SourceOption, ...], values: Mapping[str, object]) -> None:
        self._table = {option.name: option for option in table}
        unknown = sorted(set(values) - set(self._table))
        if unknown:
            raise ValueError(f"unknown option {unknown[0]!r}; known are {', '.join(self._table)}")
        self._values = values

    def text(self, name: str) -> str:
        """Return a TEXT or CHOICE option."""
        option = self._table[name]
        value = str(self._value(name)).strip()
        if option.choices and value not in option.choices:
            raise ValueError(f"{name} must be one of {', '.join(option.choices)}")
        return value

    def secret(self, name: str) -> Secret:
        """Return a SECRET option, '' if it was not given."""
        return Secret(str(self._value(name)).strip())

    def zone(self, name: str) -> ZoneInfo:
        """Return a ZONE option."""
        text = str(self._value(name)).strip()
        try:
            return ZoneInfo(text)
        except (KeyError, ValueError, OSError) as error:
            raise ValueError(f"{name}: {text!r} is not a known time zone, such as Asia/Shanghai") from error

    def duration(self, name: str) -> timedelta:
        """Return a DURATION option; it must be longer than nothing."""
        value = self._value(name)
        duration = value if isinstance(value, timedelta) else parse_duration(str(value).strip())
        if duration <= timedelta():
            raise ValueError(f"{name} must be longer than 0s")
        return duration

    def number(self, name: str) -> float:
        """Return a NUMBER option; it must be above 0."""
        try:
            value = float(str(self._value(name)))
        except ValueError as error:
            raise ValueError(f"{name} must be a number") from error
        if not 0 < value < 1e6:
            raise ValueError(f"{name} must be above 0")
        return value

    def integer(self, name: str) -> int:
        """Return an INTEGER option; it must be at least 1."""
        value = self.number(name)
        if value != int(value) or value < 1:
            raise ValueError(f"{name} must be a whole number from 1")
        return int(value)

    def _value(self, name: str) -> object:
        value = self._values.get(name)
        return self._table[name].default if value is None else value
