"""Unchanged: the slots in which nothing happens to a rule's alerts, as in almost all.

Knows from slot to slot where the alerts of each rule stand in its evaluation; whether they all go on is
then a matter of a few array operations, however many they are. What happens otherwise is `lifecycle`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from operator import is_

import numpy as np

from watchdog.core.alerts import Alert, Phase
from watchdog.core.columns import Bools, Ints
from watchdog.core.incidents import Book
from watchdog.core.labels import TASK, Labels
from watchdog.core.lifecycle import Gate, gate, next_look
from watchdog.core.membership import Verdicts
from watchdog.core.outcomes import Outcome
from watchdog.core.rules import OnNoData, Rule
from watchdog.core.tasks import TaskState

_TRUE, _NODATA = int(Outcome.TRUE), int(Outcome.NODATA)


@dataclass(frozen=True, slots=True)
class _Places:
    """Where a rule's alerts stand; good while rule, labelsets and alerts are the same objects.

    rows: of all alerts in the evaluation; pending: of those that do not fire yet.
    until: watched time at which one of them changes by itself.
    """

    rule: Rule
    labels: tuple[Labels, ...]
    known: Mapping[Labels, Alert]
    tasks: tuple[str, ...]
    rows: Ints
    pending: Ints
    until: timedelta

    @classmethod
    def of(cls, seen: Verdicts, known: Mapping[Labels, Alert], true: Bools) -> "_Places | None":
        """Find the alerts among what is TRUE; None if that is others, or if one does not go on by itself."""
        labels = seen.evaluation.labels
        rows = {labels[g]: g for g in np.flatnonzero(true).tolist()}
        identity = seen.rule.identity
        looks = [next_look(seen.rule, identity, alert) for alert in known.values()]
        due = [look for look in looks if look is not None]
        if len(due) < len(known) or known.keys() != rows.keys():
            return None
        pending = [rows[own] for own, alert in known.items() if alert.phase is Phase.PENDING]
        return cls(
            rule=seen.rule,
            labels=labels,
            known=known,
            tasks=tuple({own.get(TASK, ""): None for own in known}),
            rows=np.array(list(rows.values()), np.int64),
            pending=np.array(pending, np.int64),
            until=min(due, default=timedelta.max),
        )

    def still(self, seen: Verdicts, known: Mapping[Labels, Alert]) -> bool:
        """Whether these places are those of this slot."""
        if self.rule is not seen.rule or self.known is not known:
            return False
        # With several sources the tuple is a new one of the same objects: comparing them is cheap.
        return self.labels is seen.evaluation.labels or self.labels == seen.evaluation.labels


class Unchanged:
    """Tells, rule by rule, whether `advance` would change anything. What it remembers is checked."""

    def __init__(self) -> None:
        self._places: dict[str, _Places] = {}
        self._judged: dict[str, list[TaskState | None]] = {}  # tasks as they were when all were

    def holds(self, seen: Verdicts, book: Book) -> bool:
        """Whether a slot changes nothing: exactly the known alerts are TRUE, and none of them is due."""
        known = book.known(seen.rule.name)
        codes = seen.evaluation.outcome[:, seen.column]
        true = codes == _TRUE
        if seen.tick.settling or np.count_nonzero(true) != len(known):
            return False
        if seen.rule.on_no_data is OnNoData.FIRE and (codes == _NODATA).any():
            return False
        if not known:
            return True
        places = self._places.get(seen.rule.name)
        if places is None or not places.still(seen, known):
            places = _Places.of(seen, known, true)
            if places is None:
                return False
            self._places[seen.rule.name] = places
        return (
            seen.tick.moment.watched < places.until
            and bool(true[places.rows].all())
            and not seen.evaluation.since_ns[places.pending, seen.column].any()
            and self._all_judged(seen, places.tasks)
        )

    def _all_judged(self, seen: Verdicts, tasks: Sequence[str]) -> bool:
        """Whether the rule judges all these tasks. An open gate stays open to a task that does not change."""
        states = [seen.tasks.get(task) for task in tasks]
        before = self._judged.get(seen.rule.name, [])
        if len(before) == len(states) and all(map(is_, before, states)):
            return True
        found = all(gate(seen.rule, state, seen.tick.at) is Gate.OPEN for state in states)
        self._judged[seen.rule.name] = states if found else []
        return found
