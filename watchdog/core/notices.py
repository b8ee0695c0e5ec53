"""Notices: what the watchdog says about itself, as incidents that never nag.

The same (kind, subject) is one incident. A lasting one opens and closes; the others are said once,
and about the same subject again an hour later at the earliest.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta

from watchdog.core.alerts import Change, CloseReason, Incident, Notice, NoticeKind, Transition, incident_id
from watchdog.core.events import FINGERPRINTS_KEPT, NOTICE_QUIET
from watchdog.core.incidents import SUBJECT, Book, Step, closed, join, take_in, transition
from watchdog.core.moments import Tick


def notice_rule(kind: NoticeKind) -> str:
    """Return the rule name that a notice's incident carries."""
    return f"watchdog/{kind}"


def advance_notices(notices: Iterable[Notice], book: Book, tick: Tick) -> Step:
    """Decide what this slot's notices change. What nobody mentions stays as it is."""
    steps: list[Step] = []
    opened = dict(book.open)
    now = Book(alerts=book.alerts, open=opened)  # our own copy, which each notice changes
    for notice in notices:
        step = _advance(notice, now, tick)
        take_in(opened, step.incidents)
        steps.append(step)
    return join(steps)


def _advance(notice: Notice, book: Book, tick: Tick) -> Step:
    before = book.open.get((notice_rule(notice.kind), notice.subject))
    if not notice.lasting:
        return _said_once(notice, before, tick)
    if not notice.active:
        return Step() if before is None else _over(notice, before, tick)
    return _opened(notice, tick) if before is None else _going_on(notice, before, tick)


def _said_once(notice: Notice, before: Incident | None, tick: Tick) -> Step:
    if not notice.active:
        return Step()
    if before is None:
        return _opened(notice, tick)
    if before.event and tick.moment.watched - before.touched < NOTICE_QUIET:
        return _said_again(notice, before, tick)
    quiet = closed(before, CloseReason.QUIET, tick.at)
    ended = Step(incidents=(quiet,), transitions=(transition(quiet, Change.CLOSED),))
    return join((ended, _opened(notice, tick)))


def _said_again(notice: Notice, before: Incident, tick: Tick) -> Step:
    """Count it; if it is about something else than before, that is told too."""
    facts = tuple(dict.fromkeys((*before.fingerprints, *notice.concerned)))[-FINGERPRINTS_KEPT:]
    after = replace(before, count=before.count + 1)
    if facts == before.fingerprints:
        return Step(incidents=(after,))
    after = replace(
        after,
        fingerprints=facts,
        params=_stretched(before.params, notice.params, after.count),
        updated_at=tick.at,
    )
    return Step(incidents=(after,), transitions=(transition(after, Change.GREW),))


def _stretched(before: Mapping[str, str], now: Mapping[str, str], count: int) -> Mapping[str, str]:
    """Return the params of several: of stretches of time from the first to the last, of messages all."""
    params = {**before, **now}
    if {"messages", "incidents"} <= before.keys() & now.keys():
        incidents = (*before["incidents"].split(", "), *now["incidents"].split(", "))
        params["messages"] = str(int(before["messages"]) + int(now["messages"]))
        params["incidents"] = ", ".join(dict.fromkeys(incidents))
    if {"from", "to"} <= now.keys():
        begins = (before.get("first") or before.get("from", ""), now["from"])
        ends = (before.get("last") or before.get("to", ""), now["to"])
        params |= {"first": min(filter(None, begins)), "last": max(ends), "stretches": str(count)}
        params |= {"from": "", "to": ""}
    return params


def _opened(notice: Notice, tick: Tick) -> Step:
    rule = notice_rule(notice.kind)
    incident = Incident(
        id=incident_id(rule, notice.subject, tick.at),
        rule=rule,
        labels=notice.labels,
        severity=notice.severity,
        event=not notice.lasting,
        opened_at=tick.at,
        since=tick.at,
        updated_at=tick.at,
        count=0 if notice.lasting else 1,
        exclude=notice.exclude,
        repeat=timedelta(),
        notice=notice.kind,
        params={**notice.params, SUBJECT: notice.subject},
        touched=tick.moment.watched,
        fingerprints=notice.concerned,
    )
    return Step(incidents=(incident,), transitions=(transition(incident, Change.OPENED),))


def _going_on(notice: Notice, before: Incident, tick: Tick) -> Step:
    """Keep what will be said at the end up to date; a higher severity is told, and who else is concerned."""
    concerned = tuple(dict.fromkeys((*before.fingerprints, *notice.concerned)))
    params = {**before.params, **notice.params}
    if "since" in before.params and "since" in notice.params:  # those who were first may see again already
        params["since"] = min(before.params["since"], notice.params["since"])
    worse = notice.severity.rank > before.severity.rank
    after = replace(
        before,
        severity=notice.severity if worse else before.severity,
        params=params,
        exclude=notice.exclude,
        fingerprints=concerned,
    )
    if after == before:
        return Step()
    after = replace(after, updated_at=tick.at)
    transitions: tuple[Transition, ...] = ()
    if worse:
        transitions = (transition(after, Change.ESCALATED),)
    elif concerned != before.fingerprints:
        transitions = (transition(after, Change.GREW),)
    return Step(incidents=(after,), transitions=transitions)


def _over(notice: Notice, before: Incident, tick: Tick) -> Step:
    params = {**before.params, **notice.params}
    incident = closed(replace(before, params=params), CloseReason.RECOVERED, tick.at)
    return Step(incidents=(incident,), transitions=(transition(incident, Change.CLOSED),))
