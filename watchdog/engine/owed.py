"""What is to be said about channels: owed from the attempt that showed it until a slot has said it.

A message that was given up is gone with that attempt. Between it and the next slot the process may die:
so the notice is stored in the attempt's own transaction (T3), as a fact, and the slot that says it drops
the fact in its own (T1). A repeat is possible, a loss is not. Decides nothing about when to speak.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from watchdog.core.alerts import Notice
from watchdog.core.labels import Labels
from watchdog.core.moments import Moment

log = logging.getLogger(__name__)

_PREFIX = "owed // "


@dataclass(slots=True)
class Owed:
    """Notices by the name of their fact, in the order in which they arose."""

    _waiting: dict[str, Notice] = field(default_factory=dict)
    _taken: list[str] = field(default_factory=list)

    def add(self, notices: Iterable[Notice], moment: Moment) -> dict[str, str]:
        """Take up notices. Returns the facts that have to be stored with what gave rise to them."""
        facts: dict[str, str] = {}
        for notice in notices:
            name = f"{_PREFIX}{moment.at.isoformat()} {notice.kind} {notice.subject}"
            self._waiting[name] = notice
            facts[name] = msgspec.json.encode(notice, enc_hook=dict).decode()
        return facts

    def resume(self, memory: Mapping[str, str]) -> tuple[Notice, ...]:
        """Take up what an earlier process owed when it ended, and return it."""
        for name in sorted(name for name in memory if name.startswith(_PREFIX)):
            try:
                self._waiting[name] = msgspec.json.decode(memory[name], type=Notice, dec_hook=_labels)
            except (msgspec.MsgspecError, TypeError):  # of another version
                log.warning("what was to be said of a channel cannot be read fact=%s", name)
                self._taken.append(name)
        return tuple(self._waiting.values())

    def take(self) -> tuple[Notice, ...]:
        """Hand over what this slot is to say."""
        taken, self._waiting = self._waiting, {}
        self._taken += taken
        return tuple(taken.values())

    def said(self) -> tuple[str, ...]:
        """Return the names of the facts that this slot's T1 drops."""
        taken, self._taken = tuple(self._taken), []
        return taken


def _labels(kind: type, value: object) -> object:
    assert kind is Labels
    return Labels(dict(value)) if isinstance(value, dict) else Labels()
