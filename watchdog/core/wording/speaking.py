"""What the watchdog says about itself: a notice's incident turned into a title and lines."""

import string
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from watchdog.core.alerts import CloseReason, Incident
from watchdog.core.labels import SOURCE, TASK_NAME
from watchdog.core.notifications import MessageKind, Notification
from watchdog.core.planning import NOTICE_REPEAT
from watchdog.core.wording.shape import NoticeText
from watchdog.core.wording.voice import Voice

_NAMES = frozenset(
    {"subject", "source", "task", "rule", "channel", "incident", "incidents", "pods", "problems"}
)
# Said elsewhere, or of no use to people.
_UNLISTED = frozenset({"subject", "source", "task", "tasks", "rule", "since", "until", "duration", "kind"})


def notice_title(notification: Notification, voice: Voice) -> str:
    """Return the title of a notice."""
    incident, words = notification.incident, voice.words
    text = _texts(incident, voice)
    fields = _fields(notification, voice)
    over = notification.kind in (MessageKind.CLOSED, MessageKind.COMBINED)
    recovered = over and incident.close_reason is CloseReason.RECOVERED
    said = _first(text.over_title if recovered and text.over_title else text.title, fields)
    said = said or f"{incident.rule} {fields.get('subject', '')}".strip()
    severity = words.severity[incident.severity]
    if recovered:
        return words.notice_over.format(text=said)
    if over and incident.close_reason is not None:
        return words.notice_closed.format(text=said, reason=words.reasons[incident.close_reason])
    title = words.title_notice.format(severity=severity, text=said)
    if notification.kind is MessageKind.REMINDER:
        title += " · " + words.notice_reminder.format(number=notification.reminder)
    if notification.kind is MessageKind.UPDATE:
        title += " · " + words.notice_update
    return title


def notice_lines(notification: Notification, voice: Voice) -> list[str]:
    """Return what there is to say about a notice, the most important first."""
    incident, words = notification.incident, voice.words
    text = _texts(incident, voice)
    fields = _fields(notification, voice)
    over = notification.kind in (MessageKind.CLOSED, MessageKind.COMBINED)
    body = text.over_body if over and text.over_body else text.body
    if over and incident.close_reason is not CloseReason.RECOVERED:  # what it says of a good end is not so
        body = tuple(template for template in body if {"since", "until"} <= _braces(template))
    lines = _all(body, fields)
    used = {name for template in (*text.title, *text.body, *text.over_body) for name in _braces(template)}
    if over and incident.close_reason is not CloseReason.RECOVERED:
        lines.append(words.not_known)
    if not over:
        lines += [
            words.notice_param.format(name=name, value=fields[name])
            for name in sorted(incident.params)
            if name not in used and name not in _UNLISTED and name in fields
        ]
        said = "since" in {name for template in text.body for name in _braces(template)}
        if incident.event:
            lines.append(words.notice_happened.format(**fields))
        elif not said:
            just_begun = notification.decided_at - incident.since < timedelta(seconds=1)
            lines.append((words.since_now if just_begun else words.notice_since).format(**fields))
    return lines


def notice_next(notification: Notification, voice: Voice) -> str:
    """Say what comes next; empty when nothing does."""
    incident = notification.incident
    if incident.event or not incident.open:
        return ""
    return voice.words.notice_next.format(repeat=voice.duration(NOTICE_REPEAT))


def _texts(incident: Incident, voice: Voice) -> NoticeText:
    texts = voice.words.notices
    return texts[incident.notice] if incident.notice is not None else NoticeText(title=(), body=())


def _fields(notification: Notification, voice: Voice) -> Mapping[str, str]:
    incident = notification.incident
    until = incident.closed_at or notification.decided_at
    since = _moment(incident.params.get("since", "")) or incident.since
    fields = {
        "subject": incident.rule,
        "source": incident.labels.get(SOURCE, ""),
        "task": incident.labels.get(TASK_NAME, ""),
        "since": voice.time(since),
        "until": voice.time(until),
        "duration": voice.duration(until - since),
        "zone": voice.zone_name,
    }
    for name, value in incident.params.items():
        if name == "since" or not value:
            continue
        if name == "capability":
            fields[name] = voice.words.listed.join(map(voice.param, value.split(", ")))
        else:
            fields[name] = value if name in _NAMES else voice.param(value)
    if items := incident.params.get("items"):
        fields["capability"] = f"{fields.get('capability', '')} ({items})".strip()
    return {name: value for name, value in fields.items() if value}


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None


def _first(templates: Sequence[str], fields: Mapping[str, str]) -> str:
    return next(iter(_all(templates, fields)), "")


def _all(templates: Sequence[str], fields: Mapping[str, str]) -> list[str]:
    return [template.format(**fields) for template in templates if _braces(template) <= fields.keys()]


def _braces(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}
