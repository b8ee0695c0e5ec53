"""Flapping: what is true, recovers and is true again, over and over, ends later.

Every end that is told is one message too many if the next incident begins a minute after. Owns when a
rule's incidents about a task come and go too often, and for how long all must then be well. Knows no
verdicts; that an alert stays firing meanwhile is `lifecycle`.
"""

from dataclasses import dataclass, field, replace
from datetime import timedelta

from watchdog.core.alerts import Change, CloseReason, Incident
from watchdog.core.incidents import IncidentKey, Step, key_of

ENDS = 2  # so many recoveries of one rule and task …
WITHIN = timedelta(hours=2)  # … within so long (watched), and the next has to last …
STAYS_WELL = timedelta(minutes=30)  # … so long (watched)


def flaps(incident: Incident) -> bool:
    """Whether an incident is one too many."""
    return incident.returns >= ENDS


def patience(incident: Incident | None) -> timedelta:
    """For how long all must be well before an open incident ends, whatever its rule says."""
    return STAYS_WELL if incident is not None and flaps(incident) else timedelta()


@dataclass(slots=True)
class Flapping:
    """Remembers when incidents recovered. A start forgets it; the open incidents know what they are."""

    _ends: dict[IncidentKey, tuple[timedelta, ...]] = field(default_factory=dict)  # watched

    def noted(self, step: Step, watched: timedelta) -> Step:
        """Remember what a step ends, and mark what it opens with how often that came and went lately."""
        if not step.transitions:
            return step
        opened = {change.incident for change in step.transitions if change.change is Change.OPENED}
        incidents = tuple(
            replace(one, returns=len(self._recent(key_of(one), watched))) if one.id in opened else one
            for one in step.incidents
        )
        for one in filter(_recovered, incidents):
            key = key_of(one)
            times = ENDS if flaps(one) else 1  # it would have ended many times
            self._ends[key] = (*self._recent(key, watched), *[watched] * times)
        return replace(step, incidents=incidents)

    def forget(self, watched: timedelta) -> None:
        """Drop what is too long ago to count; once a slot."""
        self._ends = {key: ends for key in list(self._ends) if (ends := self._recent(key, watched))}

    def _recent(self, key: IncidentKey, watched: timedelta) -> tuple[timedelta, ...]:
        return tuple(end for end in self._ends.get(key, ()) if watched - end < WITHIN)


def _recovered(incident: Incident) -> bool:
    state = not incident.event and incident.notice is None
    return state and incident.close_reason is CloseReason.RECOVERED
