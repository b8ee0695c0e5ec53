"""Damping: what comes and goes and comes again is said at most once an hour.

A lasting notice (a blind source, a full disk) that has been said is not said again within the hour,
however often it ends and begins; if it is still so after that, it is said then. Endings are said at once.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import timedelta

from watchdog.core.alerts import Notice, NoticeKind
from watchdog.core.incidents import IncidentKey
from watchdog.core.notices import notice_rule

REST = timedelta(hours=1)  # watched

# Said as often as it happens: each is the answer to something a person has just done.
UNDAMPED = frozenset({NoticeKind.RULES_REJECTED})

# A param: messages of a broken channel that were given up. Nothing else tells of them, so it does not wait.
LOST = "lost"


@dataclass(slots=True)
class Damper:
    """Remembers when each lasting notice was last let through. A start forgets it."""

    _said: dict[IncidentKey, timedelta] = field(default_factory=dict)
    _held: dict[IncidentKey, Notice] = field(default_factory=dict)

    def damped(
        self, notices: Iterable[Notice], opened: Collection[IncidentKey], watched: timedelta
    ) -> list[Notice]:
        """Return what may be said in this slot. opened: the keys of the open incidents."""
        found = [notice for notice in notices if self._passes(notice, opened, watched)]
        for key in [key for key in self._held if self._rested(key, watched)]:
            self._said[key] = watched
            found.append(self._held.pop(key))
        self._said = {key: at for key, at in self._said.items() if watched - at < REST}
        return found

    def _passes(self, notice: Notice, opened: Collection[IncidentKey], watched: timedelta) -> bool:
        if not notice.lasting or notice.kind in UNDAMPED:
            return True
        key = (notice_rule(notice.kind), notice.subject)
        if not notice.active:
            self._held.pop(key, None)
            return True
        if key in opened:
            return True
        if self._rested(key, watched) or LOST in notice.params:
            self._said[key] = watched
            self._held.pop(key, None)
            return True
        self._held[key] = notice
        return False

    def _rested(self, key: IncidentKey, watched: timedelta) -> bool:
        said = self._said.get(key)
        return said is None or watched - said >= REST
