"""Endings and changes that no verdict decides: a rule removed, a task no longer watched, a member
forgotten, an edited rule's new wording. None of them claims that anything recovered.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from watchdog.core.alerts import Alert, Change, CloseReason, Incident, IncidentMember, NoticeKind
from watchdog.core.incidents import SUBJECT, Book, Step, closed, closed_alike, transition, with_members
from watchdog.core.labels import GPU, POD, SOURCE, TASK, Labels
from watchdog.core.rules import Rule


def close_rule_removed(book: Book, rules: Iterable[Rule], at: datetime) -> Step:
    """End what belongs to rules that are gone, or that turned from a state into an event or back.

    rules: all rules in force.
    """
    kinds = {rule.name: rule.is_event for rule in rules}

    def gone(incident: Incident) -> bool:
        return incident.notice is None and kinds.get(incident.rule) is not incident.event

    dropped = [alert for alert in book.all_alerts() if kinds.get(alert.rule) is not False]
    return _close(book, gone, dropped, CloseReason.RULE_REMOVED, at)


def close_unwatched(
    book: Book, watched: Collection[str], at: datetime, *, sources: Collection[str] | None = None
) -> Step:
    """End what belongs to tasks that are no longer watched, notices about them included.

    watched: the keys of all tasks that are. sources: the names of all sources still asked (None =
    all of them are); what was said about another one ends too.
    """

    def gone(incident: Incident) -> bool:
        if TASK in incident.labels:
            return incident.labels[TASK] not in watched
        source = incident.labels.get(SOURCE)
        return sources is not None and source is not None and source not in sources

    dropped = [alert for alert in book.all_alerts() if alert.labels.get(TASK) not in watched]
    return _close(book, gone, dropped, CloseReason.UNWATCHED, at)


def close_stale_notices(
    book: Book,
    at: datetime,
    *,
    rules: Collection[str],
    sources: Collection[str],
    channels: Collection[str],
) -> Step:
    """End what was said about rules, sources and channels that the rule file does not name any more.

    rules, sources, channels: the names of all in force.
    """

    def gone(incident: Incident) -> bool:
        match incident.notice:
            case NoticeKind.RULE_THIN:
                return incident.params.get("rule") not in rules
            case NoticeKind.RULE_SLOW:
                return incident.params.get(SUBJECT) not in (*rules, *sources)
            case NoticeKind.CHANNEL_BROKEN:
                return incident.params.get(SUBJECT) not in channels
        return False

    return _close(book, gone, [], CloseReason.UNWATCHED, at)


def close_unasked(book: Book, known: Collection[str], ended: Collection[str], at: datetime) -> Step:
    """End what was said to be unreadable and is asked by nobody any more: it was not seen again.

    known: the subjects of everything that is, or was, unreadable and is asked. ended: keys of tasks
    that are over.
    """
    gone = [
        incident
        for incident in book.open.values()
        if incident.notice is NoticeKind.SOURCE_BLIND and incident.params.get(SUBJECT) not in known
    ]
    reasons = {True: CloseReason.TASK_ENDED, False: CloseReason.UNWATCHED}
    closings = [closed(one, reasons[one.labels.get(TASK) in ended], at) for one in gone]
    return Step(
        incidents=tuple(closings), transitions=tuple(transition(one, Change.CLOSED) for one in closings)
    )


def _close(
    book: Book,
    gone: Callable[[Incident], bool],
    dropped: list[Alert],
    reason: CloseReason,
    at: datetime,
) -> Step:
    ended = [closed(incident, reason, at) for incident in book.open.values() if gone(incident)]
    return Step(
        dropped=tuple(dropped),
        incidents=tuple(ended),
        transitions=tuple(transition(incident, Change.CLOSED) for incident in ended),
    )


def forget_task(book: Book, task: str, at: datetime) -> Step:
    """End everything about a task, because somebody said that it is to be forgotten. task: its key."""
    dropped = [alert for alert in book.all_alerts() if alert.labels.get(TASK) == task]
    return _close(
        book, lambda incident: incident.labels.get(TASK) == task, dropped, CloseReason.FORGOTTEN, at
    )


def forget(
    book: Book,
    task: str,
    members: Collection[Labels],
    at: datetime,
    reason: CloseReason = CloseReason.FORGOTTEN,
    alerts: Iterable[Alert] | None = None,
) -> Step:
    """End the alerts of a task about members (`{pod}` or `{pod, gpu}`) that are expected no more.

    alerts: those of the task, where they are known (see `Book.by_task`): to look for them costs as many looks
    as there are alerts.
    """
    dropped: list[Alert] = []
    leaving: dict[str, list[Alert]] = {}
    gone = frozenset(members)
    for alert in book.all_alerts() if alerts is None else alerts:
        if alert.labels.get(TASK) == task and _covered(alert.labels, gone):
            dropped.append(alert)
            leaving.setdefault(alert.rule, []).append(alert)
    incidents: list[Incident] = []
    for rule, own in leaving.items():
        incident = book.open.get((rule, task))
        if incident is None:
            continue
        inside = {member.labels: member for member in incident.active}
        left = {
            alert.labels: replace(inside[alert.labels], until=at, reason=reason)
            for alert in own
            if alert.labels in inside
        }
        if left:
            incidents.append(_without(incident, left, at))
    return Step(
        dropped=tuple(dropped),
        incidents=tuple(incidents),
        transitions=tuple(transition(one, Change.CLOSED) for one in incidents if not one.open),
    )


def _without(incident: Incident, left: Mapping[Labels, IncidentMember], at: datetime) -> Incident:
    incident = replace(with_members(incident, left), updated_at=at)
    return incident if incident.active else closed_alike(incident, at)


def _covered(labels: Labels, members: Collection[Labels]) -> bool:
    """Whether a labelset is one of these members, or a part of one."""
    parts = (labels.only(names) for names in ((POD,), (POD, GPU), (GPU,)))
    return any(part in members for part in parts if part)


def renew(book: Book, rules: Iterable[Rule]) -> Step:
    """After a reload: open incidents take over what their rule now says of wording and telling."""
    by_name = {rule.name: rule for rule in rules}
    renewed: list[Incident] = []
    for incident in book.open.values():
        rule = by_name.get(incident.rule)
        if rule is None:
            continue
        after = replace(
            incident,
            description=rule.description,
            annotations=rule.annotations,
            rule_labels=rule.labels,
            notify=rule.notify,
            repeat=rule.repeat,
        )
        if after != incident:
            renewed.append(after)
    return Step(incidents=tuple(renewed))
