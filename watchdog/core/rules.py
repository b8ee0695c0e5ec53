"""Rules: one entry of the rule file each, as the engine uses them.

Owns the common keys. What a rule looks for is its `condition` (`core.conditions`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import timedelta
from enum import StrEnum
from fnmatch import fnmatchcase

from watchdog.core.conditions.kinds import Condition
from watchdog.core.labels import Labels
from watchdog.core.tasks import Status, Task


class Severity(StrEnum):
    """How urgent; ordered by `rank`."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """0 for info, 2 for critical."""
        return _RANKS[self]


_RANKS = {severity: rank for rank, severity in enumerate(Severity)}


class OnNoData(StrEnum):
    """What NODATA means for a rule."""

    HOLD = "hold"
    FIRE = "fire"
    OK = "ok"


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """From `hold` on (time TRUE without a break), the incident has this severity."""

    hold: timedelta
    severity: Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """Which tasks a rule is for: label name → glob; `task`, `name` and `source` work too."""

    patterns: tuple[tuple[str, str], ...] = ()

    def matches(self, task: Task) -> bool:
        """Whether every pattern fits (a missing label is the empty text)."""
        own: dict[str, str] = {
            **task.labels,
            "source": task.source,
            "task": task.key,
            "id": task.id,
            "name": task.name,
            "task_name": task.name,
        }
        return all(fnmatchcase(own.get(name, ""), glob) for name, glob in self.patterns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One entry of the rule file, defaults applied. Its id is its unique name."""

    name: str
    condition: Condition
    description: str = ""
    select: Selector = field(default_factory=Selector)
    severity: Severity = Severity.WARNING
    hold: timedelta = timedelta()  # `for`
    keep_firing_for: timedelta = timedelta()
    levels: tuple[Level, ...] = ()  # sorted by hold; empty = one level, `severity` after `hold`
    repeat: timedelta = timedelta(hours=4)  # reminder rhythm; 0 = never
    labels: Labels = field(default_factory=Labels)
    annotations: Mapping[str, str] = field(default_factory=dict)
    notify: tuple[str, ...] = ()  # channel names; empty = all
    on_no_data: OnNoData = OnNoData.HOLD
    coverage: float = 0.8
    quorum: float = 0.5
    after_start: timedelta = timedelta()
    while_status: frozenset[Status] | None = None  # None = in any status
    quiet_for: timedelta = timedelta(minutes=30)  # events: closes without a message after this
    builtin: bool = False

    @property
    def is_event(self) -> bool:
        """Whether the condition has no duration (it happens, it does not recover)."""
        return self.condition.is_event

    @property
    def identity(self) -> str:
        """Changes exactly when the condition, `select`, `by`, `coverage` or `quorum` is edited."""
        parts = (self.condition, self.select, self.coverage, self.quorum, self.while_status)
        return ", ".join(map(_stable, parts))

    def applies(self, task: Task) -> bool:
        """Whether the rule is about this task at all."""
        return self.select.matches(task)


def _stable(value: object) -> str:
    """Return a repr with sets in order: their own order differs from one process to the next."""
    if isinstance(value, frozenset):
        return "{" + ", ".join(sorted(map(repr, value))) + "}"
    if is_dataclass(value) and not isinstance(value, type):
        inside = ", ".join(f"{part.name}={_stable(getattr(value, part.name))}" for part in fields(value))
        return f"{type(value).__name__}({inside})"
    return repr(value)
