"""The verdict in one line: what was measured against which limit, and how many are affected."""

import re
from collections.abc import Sequence
from dataclasses import replace

from watchdog.core.alerts import Incident
from watchdog.core.durations import parse_duration
from watchdog.core.evidence import lead
from watchdog.core.labels import GPU, NODE, POD, Labels
from watchdog.core.notifications import LimitUnit
from watchdog.core.outcomes import Evidence, EvidenceLine
from watchdog.core.trimming import cut
from watchdog.core.wording.voice import Voice

LINE_SIZE = 400  # characters of one log line

_WINDOWED = re.compile(r"(?P<aggregate>\w+)(?: over (?P<window>[0-9.a-z]+))?")


def verdict(evidence: Evidence, voice: Voice, *, over: bool = False) -> str:
    """Say what was found: `GPU average 4.1 % over 1 h, below 10 %`. Empty if there is nothing to say.

    over: it is so no longer; the limit is said as passed.
    """
    words = voice.words
    value = voice.value(evidence.value, evidence.unit, beside=evidence.threshold)
    parts = {
        "metric": words.metrics.get(evidence.metric, evidence.metric),
        "summary": voice.phrase(evidence.summary),
        "value": value,
    }
    windowed = _WINDOWED.fullmatch(evidence.summary)
    aggregate = words.aggregates.get(windowed["aggregate"]) if windowed else None
    if evidence.value is None:
        text = words.verdict_plain.format(**parts)
    elif aggregate is None:
        text = (words.verdict_other if evidence.summary else words.verdict_newest).format(**parts)
    elif windowed is None or windowed["window"] is None:
        text = words.verdict_newest.format(**parts)
    else:
        window = _window(windowed["window"], voice)
        text = words.verdict_window.format(**parts, aggregate=aggregate, window=window)
    text = " ".join(text.split())
    stated = limit(evidence, voice) if evidence.value is not None else ""
    if not stated or not text:
        return text
    if over:
        stated = words.no_longer.format(limit=stated)
    return words.compared.format(verdict=text, limit=stated)


def limit(evidence: Evidence, voice: Voice) -> str:
    """Say the limit: `below 10 %`; empty without one."""
    if evidence.threshold is None:
        return ""
    side = voice.words.above if evidence.above else voice.words.below
    return side.format(threshold=voice.value(evidence.threshold, evidence.unit, beside=evidence.value))


def passed(evidence: Evidence) -> bool:
    """Whether the value is on the good side of the limit."""
    if evidence.value is None or evidence.threshold is None:
        return False
    return evidence.value <= evidence.threshold if evidence.above else evidence.value >= evidence.threshold


def affected(evidence: Evidence, noun: str, voice: Voice) -> list[str]:
    """Say how many are affected, and from how many there was data."""
    words = voice.words
    counted = count_affected(evidence, noun, voice)
    lines = [words.affected.format(counted=counted)] if counted else []
    if 0 < evidence.covered < evidence.of:
        lines.append(words.data_from.format(counted=_of(evidence.covered, evidence.of, noun, voice)))
    return lines


def count_affected(evidence: Evidence, noun: str, voice: Voice) -> str:
    """Say `56 of 64 GPUs`; empty where there is only one thing to count."""
    if evidence.affected > 0 and evidence.of > 1:
        return _of(evidence.affected, evidence.of, noun, voice)
    if evidence.affected > 1:
        many = voice.words.nouns[noun].of(evidence.affected)
        return voice.words.counted.format(count=evidence.affected, noun=many)
    return ""


def _of(count: int, total: int, noun: str, voice: Voice) -> str:
    return voice.words.counted_of.format(count=count, total=total, noun=voice.words.nouns[noun].of(total))


def noun_of(incident: Incident, evidence: Evidence) -> str:
    """Return what is counted: the finest label that the members have."""
    labelsets: Sequence[Labels] = [member.labels for member in evidence.members]
    labelsets = labelsets or [member.labels for member in incident.members]
    for name in (GPU, POD, NODE):
        if any(name in labels for labels in labelsets):
            return name
    return "member"


def leading_line(evidence: Evidence, voice: Voice) -> str:
    """Say the earliest matching log line with its pod; empty without one."""
    first = lead(evidence)
    if first is None:
        return ""
    return quoted(replace(first, text=cut(first.text, LINE_SIZE, LimitUnit.CHARACTERS)), voice)


def quoted(line: EvidenceLine, voice: Voice) -> str:
    """Say one log line: time, pod, text."""
    return " ".join(filter(None, (voice.log_time(line.time_ns), line.pod and f"{line.pod}:", line.text)))


def _window(text: str, voice: Voice) -> str:
    try:
        return voice.duration(parse_duration(text))
    except (ValueError, OverflowError):
        return text
