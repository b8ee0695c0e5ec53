"""What a new rule file changes: the names of what came, went and is said otherwise.

Compares values only. What an edit means for alerts is `lifecycle` and `endings`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from watchdog.core.ruleset import Ruleset, WatchEntry

_DEFAULTS = ("interval", "timezone", "language", "forget_after", "auto_reload", "http", "heartbeat")


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits:
    """The names of one section's entries, each in the order of the file that has them."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether the section says what it said."""
        return not (self.added or self.removed or self.changed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """What is not as it was. `settings`: names of single values (`interval`, `timezone`, …)."""

    rules: Edits = field(default_factory=Edits)
    sources: Edits = field(default_factory=Edits)
    watch: Edits = field(default_factory=Edits)
    channels: Edits = field(default_factory=Edits)
    settings: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether nothing changed but, perhaps, comments and blanks."""
        parts = (self.rules, self.sources, self.watch, self.channels)
        return not self.settings and all(part.empty for part in parts)


def differences(before: Ruleset, after: Ruleset) -> Differences:
    """Compare two rulesets. An entry whose place in the file changed is the same entry."""
    return Differences(
        rules=_edits({r.name: r for r in before.rules}, {r.name: r for r in after.rules}),
        sources=_edits({s.name: s for s in before.sources}, {s.name: s for s in after.sources}),
        watch=_edits(_named(before.watch), _named(after.watch)),
        channels=_edits({c.name: c for c in before.channels}, {c.name: c for c in after.channels}),
        settings=tuple(name for name in _DEFAULTS if getattr(before, name) != getattr(after, name)),
    )


def _named(entries: Iterable[WatchEntry]) -> dict[str, WatchEntry]:
    return {entry.key if entry.id else f"{entry.source}/{entry.name}": entry for entry in entries}


def _edits(before: Mapping[str, object], after: Mapping[str, object]) -> Edits:
    return Edits(
        added=tuple(name for name in after if name not in before),
        removed=tuple(name for name in before if name not in after),
        changed=tuple(name for name in after if name in before and before[name] != after[name]),
    )
