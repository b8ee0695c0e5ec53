"""Rendering: a notification becomes the message one channel gets, in its language, zone and size.

Total: whatever an incident holds, a message comes out that fits, names the incident and harms
nobody. Owns what is said in which order; words are `wording`, cuts are `trimming`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, tzinfo

from watchdog.core.alerts import CloseReason, Incident
from watchdog.core.defang import defang, defang_line
from watchdog.core.flapping import STAYS_WELL, WITHIN, flaps
from watchdog.core.labels import TASK, TASK_NAME
from watchdog.core.notifications import (
    ChannelLimits,
    LimitUnit,
    Message,
    MessageKind,
    Notification,
)
from watchdog.core.outcomes import Evidence
from watchdog.core.protocols import Template
from watchdog.core.sparkline import sparkline
from watchdog.core.template_values import template_values
from watchdog.core.trimming import Block, cut, fit
from watchdog.core.wording.excerpts import log_block, members_block
from watchdog.core.wording.languages import wording
from watchdog.core.wording.speaking import notice_lines, notice_next, notice_title
from watchdog.core.wording.verdicts import (
    affected,
    count_affected,
    course_unit,
    leading_line,
    noun_of,
    passed,
    steps,
    turned,
    verdict,
)
from watchdog.core.wording.voice import RATIO, Voice, voice_of

TEXT_SIZE = 2000  # characters of a description or one annotation
NAME_SIZE = 120  # of a rule's or task's name in a title
_RANK_SPARK, _RANK_NEXT, _RANK_TEXT, _RANK_FACTS = 2, 3, 4, 5
_ENDINGS = frozenset({MessageKind.CLOSED, MessageKind.COMBINED})

TemplateCompiler = Callable[[str], Template]
"""From a template's text to the template; raises ValueError if it is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelLook:
    """How one channel wants to be spoken to."""

    language: str = "en"
    timezone: tzinfo = UTC
    limits: ChannelLimits = field(default_factory=ChannelLimits)


def render(
    notification: Notification, look: ChannelLook, compile_template: TemplateCompiler | None = None
) -> Message:
    """Return the message; a plain one if the words fail. Never raises.

    compile_template: makes templates of annotations that contain `{{` or `{%`; without it, and when
    one fails, the annotation is shown as written, with the reason.
    """
    try:
        return compose(notification, look, compile_template)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        # A fault of ours must cost the polish, not the alert.
        return _plain(notification, look, error)


def compose(
    notification: Notification, look: ChannelLook, compile_template: TemplateCompiler | None = None
) -> Message:
    """Return the message as `render` does, without its net."""
    voice = voice_of(wording(look.language), look.timezone, notification.decided_at)
    title = defang_line(_title(notification, voice))
    return _message(notification, look, title, _blocks(notification, voice, compile_template))


def _plain(notification: Notification, look: ChannelLook, error: Exception) -> Message:
    incident = notification.incident
    words = wording(look.language)
    task = incident.labels.get(TASK_NAME, "")
    title = " · ".join((words.severity[incident.severity], _name(incident.rule), _name(task)))
    evidence = incident.latest if incident.latest != Evidence() else incident.first
    facts = f"{notification.kind}: {evidence.metric} {evidence.summary} {evidence.value}"
    blocks = [
        Block(lines=(_text(facts),)),
        Block(lines=(_text(f"(rendering failed: {error!r})"),), rank=_RANK_TEXT),
        Block(lines=(words.incident.format(id=incident.id),)),
    ]
    return _message(notification, look, title, blocks)


def _message(notification: Notification, look: ChannelLook, title: str, blocks: list[Block]) -> Message:
    limits, incident = look.limits, notification.incident
    room = limits.body // 2 if notification.half_size else limits.body
    if limits.title <= 0:
        blocks = [Block(lines=(title,)), *blocks]
    return Message(
        title=cut(title, max(limits.title, 0), limits.unit),
        body=fit(blocks, max(room, 0), limits.unit),
        severity=incident.severity,
        kind=notification.kind,
        incident=incident.id,
        dedup=incident.id,
    )


def _title(notification: Notification, voice: Voice) -> str:
    incident, words = notification.incident, voice.words
    if incident.notice is not None:
        return notice_title(notification, voice)
    fields = {
        "severity": words.severity[incident.severity],
        "rule": _name(incident.rule),
        "task": _name(incident.labels.get(TASK_NAME) or incident.labels.get(TASK, "")),
        "number": notification.reminder,
        "reason": words.reasons[incident.close_reason or CloseReason.QUIET],
    }
    recovered = incident.close_reason is CloseReason.RECOVERED
    template = {
        MessageKind.FIRST: words.title,
        MessageKind.UPDATE: words.title_update_event if incident.event else words.title_update_state,
        MessageKind.ESCALATION: words.title_escalation,
        MessageKind.REMINDER: words.title_reminder,
        MessageKind.CLOSED: words.title_recovered if recovered else words.title_closed,
        MessageKind.COMBINED: words.title_combined if recovered else words.title_combined_closed,
    }[notification.kind]
    return template.format(**fields)


def _name(text: str) -> str:
    return cut(defang_line(text[:TEXT_SIZE]), NAME_SIZE, LimitUnit.CHARACTERS)


def _blocks(
    notification: Notification, voice: Voice, compile_template: TemplateCompiler | None
) -> list[Block]:
    incident = notification.incident
    ending = notification.kind in _ENDINGS
    evidence = _evidence(notification)
    vital = 2 if notification.kind is MessageKind.COMBINED else 1
    parts: list[Block | None] = []
    if incident.notice is not None:
        head = [_text(line) for line in notice_lines(notification, voice)]
    else:
        head = _ending(notification, voice) if ending else _head(notification, evidence, voice)
    parts.append(Block(lines=tuple(head[:vital])))
    parts.append(Block(lines=tuple(head[vital:]), rank=_RANK_FACTS))
    if notification.kind is not MessageKind.CLOSED:
        parts.append(members_block(incident, evidence, voice))
        parts.append(log_block(incident, evidence, voice))
    parts.append(_spark_block(_drawn(notification, evidence), voice))
    if not ending:
        parts.append(_texts_block(notification, evidence, voice, compile_template))
        parts.append(_next_block(notification, voice))
    parts.append(_foot(notification, voice))
    return [_harmless(part) for part in parts if part is not None]


def _drawn(notification: Notification, evidence: Evidence) -> Evidence:
    """What a recovery is drawn from is the newest evidence; an end in the dark is not drawn."""
    incident = notification.incident
    if notification.kind not in _ENDINGS:
        return evidence
    return incident.latest if incident.close_reason is CloseReason.RECOVERED else Evidence()


def _harmless(block: Block) -> Block:
    return Block(
        lines=tuple(defang(line) for line in block.lines),
        head=defang(block.head),
        keep=block.keep,
        remark=block.remark,
        rank=block.rank,
        floor=block.floor,
        apart=block.apart,
    )


def _evidence(notification: Notification) -> Evidence:
    incident = notification.incident
    if incident.event and notification.kind is not MessageKind.UPDATE:
        return incident.first
    if notification.kind in _ENDINGS:
        return incident.first
    return incident.latest if incident.latest != Evidence() else incident.first


def _head(notification: Notification, evidence: Evidence, voice: Voice) -> list[str]:
    """Say what is so: the verdict, how many, since when."""
    incident, words = notification.incident, voice.words
    line = _leading(notification, evidence, voice) if incident.event and not steps(evidence) else ""
    over = notification.kind is MessageKind.REMINDER and passed(evidence)  # it is held a little longer
    measured = "" if line and evidence.value is None else verdict(evidence, voice, over=over)
    lines = [text for text in (line, measured, voice.param(evidence.detail)) if text]
    if incident.event:
        lines += _event_facts(incident, evidence, voice)
    lines += affected(evidence, noun_of(incident, evidence), voice)
    if notification.kind is MessageKind.UPDATE:
        lines.append(words.update_event if incident.event else words.update_state)
    lines.append(_since(notification, voice))
    if flaps(incident):
        within, well = voice.duration(WITHIN), voice.duration(STAYS_WELL)
        lines.append(voice.words.flapping.format(count=incident.returns, within=within, well=well))
    return [_text(text) for text in lines]


def _leading(notification: Notification, evidence: Evidence, voice: Voice) -> str:
    """Say the line that a message is about: the first one, or of an update the first that is new."""
    news = notification.incident.news
    if notification.kind is MessageKind.UPDATE and news:
        return leading_line(Evidence(lines=news[:1]), voice)
    return leading_line(evidence, voice)


def _event_facts(incident: Incident, evidence: Evidence, voice: Voice) -> list[str]:
    if incident.count <= 1:
        return []
    words = voice.words
    if evidence.lines and not steps(evidence):
        return [words.lines.format(count=incident.count, noun=words.nouns["line"].of(incident.count))]
    return [words.events.format(count=incident.count, noun=words.nouns["event"].of(incident.count))]


def _since(notification: Notification, voice: Voice) -> str:
    incident, words = notification.incident, voice.words
    since = voice.time(incident.since, seconds=incident.event)
    fields = {"since": since, "zone": voice.zone_name}
    if incident.event:
        if notification.kind is MessageKind.UPDATE:
            return words.happened_again.format(**fields, at=_newest(incident, voice))
        return (words.late if incident.late else words.happened).format(**fields)
    lasted = notification.decided_at - incident.since
    if lasted.total_seconds() < 1:
        return words.since_now.format(**fields)
    return words.since.format(**fields, duration=voice.duration(lasted))


def _newest(incident: Incident, voice: Voice) -> str:
    """Say when the newest of an event's occurrences was."""
    evidence = incident.latest
    newest_ns = max((line.time_ns for line in evidence.lines if line.matched), default=0)
    if steps(evidence) or newest_ns <= 0:
        return voice.time(incident.updated_at, seconds=True)
    return voice.log_time(newest_ns)


def _ending(notification: Notification, voice: Voice) -> list[str]:
    """Say how it ended, and what it was."""
    incident, words = notification.incident, voice.words
    until = incident.closed_at or notification.decided_at
    reason = incident.close_reason or CloseReason.QUIET
    recovered = reason is CloseReason.RECOVERED
    fields = {
        "until": voice.time(until),
        "since": voice.time(incident.since),
        "duration": voice.duration(until - incident.since),
        "zone": voice.zone_name,
        "reason": words.reasons[reason],
        "note": voice.phrase(incident.close_note),
    }
    if recovered:
        template = words.recovered_note if incident.close_note else words.recovered
    else:
        template = words.closed_note if incident.close_note else words.closed
    lines = [template.format(**fields)]
    if notification.kind is MessageKind.COMBINED:
        fired = voice.time(incident.opened_at)
        lines.insert(0, words.fired.format(fired=fired, zone=voice.zone_name))
    if not recovered:
        lines.append(words.not_known)
    elif passed(incident.latest):
        lines.append(verdict(incident.latest, voice, over=True))
    elif turned(incident.first, incident.latest):
        lines.append(verdict(incident.latest, voice))
    return [_text(text) for text in (*lines, _was(incident, voice)) if text]


def _was(incident: Incident, voice: Voice) -> str:
    said = leading_line(incident.first, voice) or verdict(incident.first, voice)
    counted = count_affected(incident.first, noun_of(incident, incident.first), voice)
    if not said:
        return ""
    template = voice.words.was_affected if counted else voice.words.was
    return template.format(verdict=said, counted=counted)


def _spark_block(evidence: Evidence, voice: Voice) -> Block | None:
    unit = course_unit(evidence, voice)
    known = [value for value in evidence.spark if value is not None and math.isfinite(value)]
    drawn = sparkline(evidence.spark, ratio=unit == RATIO)
    if len(known) < 2 or not drawn:
        return None
    line = voice.words.spark.format(
        spark=drawn,
        low=voice.value(min(known), unit),
        last=voice.value(known[-1], unit),
        high=voice.value(max(known), unit),
        span=voice.duration(evidence.spark_span),
    )
    return Block(lines=(line,), rank=_RANK_SPARK)


def _texts_block(
    notification: Notification,
    evidence: Evidence,
    voice: Voice,
    compile_template: TemplateCompiler | None,
) -> Block | None:
    """Return the rule's own words: description and annotations, templates filled in."""
    incident = notification.incident
    lines = [_text(incident.description)] if incident.description else []
    for name, text in incident.annotations.items():
        filled = _filled(text, notification, evidence, voice, compile_template)
        lines.append(f"{_name(name)}: {_text(filled)}")
    lines = [part for line in lines for part in line.split("\n")]
    return Block(lines=tuple(lines), rank=_RANK_TEXT, apart=True) if lines else None


def _filled(
    text: str,
    notification: Notification,
    evidence: Evidence,
    voice: Voice,
    compile_template: TemplateCompiler | None,
) -> str:
    if compile_template is None or not ("{{" in text or "{%" in text):
        return text
    try:
        return compile_template(text).render(template_values(notification, evidence, voice))
    except Exception as error:  # noqa: BLE001 - a user's template may raise anything; the alert must go out
        return voice.words.template_failed.format(text=text[:TEXT_SIZE], error=str(error)[:NAME_SIZE])


def _next_block(notification: Notification, voice: Voice) -> Block | None:
    incident, words = notification.incident, voice.words
    if incident.notice is not None:
        line = notice_next(notification, voice)
    elif incident.event:
        line = words.next_event
    elif incident.repeat:
        line = words.next_state.format(repeat=voice.duration(incident.repeat))
    else:
        line = words.next_state_silent
    return Block(lines=(line,), rank=_RANK_NEXT, apart=True) if line else None


def _foot(notification: Notification, voice: Voice) -> Block:
    words = voice.words
    parts = [words.incident.format(id=notification.incident.id)]
    if notification.maybe_repeat:
        parts.append(words.may_repeat)
    if notification.not_stored:
        parts.append(words.not_stored)
    return Block(lines=(defang_line("".join(parts)),))


def _text(text: str) -> str:
    return cut(defang(text[: 2 * TEXT_SIZE]).strip("\n"), TEXT_SIZE, LimitUnit.CHARACTERS)
