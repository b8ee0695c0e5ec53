"""Events: what happens and does not recover. Like ones fold into one incident, which ends quietly.

Owns folding, the memory of fingerprints, and when an incident of events (or a notice that is said
once) is over. Events are never frozen: the log cursor moves on, so what was seen must count.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from watchdog.core.alerts import Change, CloseReason, Incident, Transition
from watchdog.core.evidence import headline, lead, of_occurrences
from watchdog.core.incidents import (
    Book,
    Step,
    closed,
    event_subject,
    new_incident,
    task_labels,
    transition,
)
from watchdog.core.labels import Labels
from watchdog.core.moments import Tick
from watchdog.core.outcomes import EvidenceLine, Occurrence
from watchdog.core.rules import Rule

FINGERPRINTS_KEPT = 200
NEWS_KEPT = 40  # kinds of which a line is kept, until every channel was told
MOST_INCIDENTS = 500  # of one rule at once; what comes beside them joins one incident for its whole task
QUIET_DEFAULT = timedelta(minutes=30)  # for an incident whose rule is gone
NOTICE_QUIET = timedelta(hours=1)  # a notice that is said once may be said again after this


def advance_events(rule: Rule, occurrences: Sequence[Occurrence], book: Book, tick: Tick) -> Step:
    """Decide what one slot's occurrences of an event rule change.

    An incident opens, or takes them in; a fingerprint it does not know is told as an update.
    """
    groups = _groups(rule, occurrences, book)
    incidents: list[Incident] = []
    transitions: list[Transition] = []
    for labels, group in groups.items():
        before = book.open.get((rule.name, event_subject(labels)))
        incident = _opened(rule, labels, group, tick) if before is None else _grown(before, group, tick)
        incidents.append(incident)
        if before is None:
            transitions.append(transition(incident, Change.OPENED))
        elif not {one.fingerprint for one in group} <= set(before.fingerprints):
            transitions.append(transition(incident, Change.GREW))
    return Step(incidents=tuple(incidents), transitions=tuple(transitions))


def _groups(rule: Rule, occurrences: Sequence[Occurrence], book: Book) -> dict[Labels, list[Occurrence]]:
    """Return occurrences by the labels of their incident: their own, while there is room for one more."""
    groups: dict[Labels, list[Occurrence]] = {}
    room = MOST_INCIDENTS - sum(name == rule.name for name, _ in book.open) if occurrences else 0
    for occurrence in occurrences:
        labels = occurrence.labels
        if labels not in groups and (rule.name, event_subject(labels)) not in book.open:
            if room <= 0:
                labels = task_labels(labels)
            else:
                room -= 1
        groups.setdefault(labels, []).append(occurrence)
    return groups


def _opened(rule: Rule, labels: Labels, group: Sequence[Occurrence], tick: Tick) -> Incident:
    since = min(one.at for one in group)
    incident = _grown(new_incident(rule, labels, event_subject(labels), tick.at, since), group, tick)
    return replace(incident, first=incident.latest)


def _grown(incident: Incident, group: Sequence[Occurrence], tick: Tick) -> Incident:
    ordered = sorted(group, key=lambda one: one.at)
    fingerprints, evicted = _remembered(incident.fingerprints, [one.fingerprint for one in ordered])
    return replace(
        incident,
        updated_at=tick.at,
        touched=tick.moment.watched,
        since=min(incident.since, ordered[0].at),
        count=incident.count + sum(one.count for one in group),
        fingerprints=fingerprints,
        evicted=incident.evicted + evicted,
        late=incident.late or any(one.late for one in group),
        news=_news(incident, ordered),
        latest=of_occurrences(ordered, _lead(incident)),
    )


def _lead(incident: Incident) -> EvidenceLine | None:
    """The earliest matching line that the incident has shown."""
    lines = [line for line in (lead(incident.first), lead(incident.latest)) if line is not None]
    return min(lines, key=lambda line: line.time_ns, default=None)


def _news(incident: Incident, ordered: Sequence[Occurrence]) -> tuple[EvidenceLine, ...]:
    """Return the kept leading lines, with those of the kinds that this slot saw for the first time.

    A channel may be told of several slots at once; what the newest slot shows is not all it missed.
    """
    known = {*incident.fingerprints, *(line.kind for line in incident.news)}
    fresh = {one.fingerprint: headline(one) for one in reversed(ordered) if one.fingerprint not in known}
    return (*incident.news, *reversed(fresh.values()))[-NEWS_KEPT:]


def _remembered(known: tuple[str, ...], seen: Sequence[str]) -> tuple[tuple[str, ...], int]:
    """Return distinct fingerprints, the ones seen last at the end, and how many older ones were dropped."""
    order = dict.fromkeys(known)
    for fingerprint in seen:
        order.pop(fingerprint, None)
        order[fingerprint] = None
    return tuple(order)[-FINGERPRINTS_KEPT:], max(0, len(order) - FINGERPRINTS_KEPT)


def quiet_expired(book: Book, tick: Tick, rules: Mapping[str, Rule]) -> Step:
    """Close, without a message, events that nothing was added to for their rule's `quiet_for`.

    Also what notices that are said once left open. rules: by name. Time is watched time.
    """
    ended = [
        closed(incident, CloseReason.QUIET, tick.at)
        for incident in book.open.values()
        if incident.event and tick.moment.watched - incident.touched >= _quiet_for(incident, rules)
    ]
    return Step(
        incidents=tuple(ended),
        transitions=tuple(transition(incident, Change.CLOSED) for incident in ended),
    )


def _quiet_for(incident: Incident, rules: Mapping[str, Rule]) -> timedelta:
    if incident.notice is not None:
        return NOTICE_QUIET
    rule = rules.get(incident.rule)
    return QUIET_DEFAULT if rule is None else rule.quiet_for
