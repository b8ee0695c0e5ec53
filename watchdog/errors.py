"""The program's own exception tree; adapters translate every foreign exception into it.

WatchdogError
  ConfigError       the rule file or a setting cannot be used; carries every problem found
  SourceError       a query failed; says why, and whether asking again can help
  StoreError        the state file cannot be read or written
    StateHeldError  another daemon holds it
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from watchdog.core.health import Failure


class WatchdogError(Exception):
    """Base of all our errors; its text is one clear line for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong in a file: where, what, and what to do."""

    file: str
    line: int = 0  # from 1; 0 = the whole file
    column: int = 0
    message: str
    hint: str = ""
    warning: bool = False

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        kind = "warning: " if self.warning else ""
        return f"{where}: {kind}{self.message}" + (f" ({self.hint})" if self.hint else "")


class ConfigError(WatchdogError):
    """One or more problems in a file or a setting."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))

    def __reduce__(self) -> tuple[type["ConfigError"], tuple[tuple[Problem, ...]]]:
        """Be the same in another process."""
        return (ConfigError, (self.problems,))


class SourceError(WatchdogError):
    """A query failed."""

    def __init__(
        self,
        failure: Failure,
        detail: str = "",
        *,
        retryable: bool = True,
        retry_after: timedelta | None = None,
    ) -> None:
        self.failure = failure
        self.detail = detail
        self.retryable = retryable
        self.retry_after = retry_after
        super().__init__(f"{failure} ({detail})" if detail else str(failure))


class StoreError(WatchdogError):
    """The state file cannot be used right now (full disk, I/O error, locked)."""


class StateHeldError(StoreError):
    """Another daemon holds the state file; the text names it."""
