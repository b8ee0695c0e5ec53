"""The verdict in one line: what was measured against which limit, and how many are affected."""

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from enum import StrEnum

from watchdog.core.alerts import Incident
from watchdog.core.durations import parse_duration
from watchdog.core.evidence import lead
from watchdog.core.hygiene import shortened
from watchdog.core.labels import GPU, NODE, POD, Labels
from watchdog.core.outcomes import Evidence, EvidenceLine, Outcome
from watchdog.core.wording.voice import RATIO, Voice

LINE_SIZE = 400  # characters of one log line

# The summaries that conditions write, see `core.conditions`; what is not here is said as written.
_ACROSS = re.compile(r"(?P<across>max|min|sum|median) of (?P<rest>.+)")
_AGGREGATED = re.compile(r"(?P<aggregate>[\w ]+?)(?: over (?P<window>\S+))?")
_SHARE = re.compile(r"share of (?P<window>\S+) (?P<side>above|below) (?P<level>.+)")
_PEERS = re.compile(r"(?P<rest>.+), against (?P<ratio>\S+) of the (?P<middle>median|mean) of its task")
_COUNT = re.compile(r"matching lines within (?P<window>\S+)")
_ABSENT = re.compile(r"no point of (?P<metric>\S+) for")
_SLOPE = "slope per hour"
_SILENT = re.compile(r"no line for")
_STATUS = re.compile(r"status is (?P<status>\w+)")
_ENTERED = re.compile(r"(?P<before>\w+) → (?P<after>\w+)")
_STEPPED = re.compile(r"(?P<metric>\S+) (?P<before>\S+) → (?P<after>\S+)")


class _So(StrEnum):
    """How what was measured stands to the limit."""

    IS = "is"
    NO_LONGER = "no longer"
    NOT = "not"
    BETWEEN = "not clear of it"
    UNKNOWN = "unknown"


_STANDS = {Outcome.TRUE: _So.IS, Outcome.FALSE: _So.NOT, Outcome.BETWEEN: _So.BETWEEN}


def verdict(evidence: Evidence, voice: Voice, *, over: bool = False) -> str:
    """Say what was found: `GPU average 4.1 % over 1 h, below 10 %`. Empty if there is nothing to say.

    over: it is so no longer; the limit is said as passed.
    """
    return _said(evidence, voice, _So.NO_LONGER if over else _So.IS)


def finding(evidence: Evidence, outcome: Outcome, voice: Voice) -> str:
    """Say what was found, whatever came of it: `GPU average 94 % over 1 h, not below 10 %`.

    Of what could not be judged, only what was measured, without a limit. Empty if there is nothing to say.
    """
    return _said(evidence, voice, _STANDS.get(outcome, _So.UNKNOWN))


def _said(evidence: Evidence, voice: Voice, so: _So) -> str:
    if not (evidence.summary or evidence.metric or evidence.value is not None):
        return ""
    for say in (_waiting, _share, _status, _peers, _counted):
        text = say(evidence, voice, so)
        if text is not None:
            return text
    return _compared(_measured(evidence, evidence.summary, voice), evidence, voice, so)


def _waiting(evidence: Evidence, voice: Voice, so: _So) -> str | None:
    """Data or lines that do not come: the value is how long, in seconds."""
    words = voice.words
    absent = _ABSENT.fullmatch(evidence.summary)
    if absent is None and not _SILENT.fullmatch(evidence.summary):
        return None
    if so in (_So.NO_LONGER, _So.UNKNOWN):
        return ""
    metric = metric_name(absent["metric"], voice) if absent else ""
    if evidence.value is None:
        return words.never_absent.format(metric=metric) if absent else words.never_silent
    waited = seconds(evidence.value, voice)
    if so is _So.IS:
        text = words.verdict_absent if absent else words.verdict_silent
    else:
        text = words.newest_data if absent else words.newest_line
    text = text.format(metric=metric, value=waited)
    if absent or evidence.threshold is None:
        return text
    bound = words.limit_is.format(threshold=seconds(evidence.threshold, voice))
    return words.compared.format(verdict=text, limit=bound)


def _share(evidence: Evidence, voice: Voice, _so: _So) -> str | None:
    match = _SHARE.fullmatch(_bare(evidence))
    if match is None:
        return None
    words = voice.words
    side = words.above if match["side"] == "above" else words.below
    text = words.verdict_share.format(
        metric=metric_name(evidence.metric, voice),
        side=side.format(threshold=_level(match["level"], voice)),
        value=voice.value(evidence.value, evidence.unit, beside=evidence.threshold),
        window=_window(match["window"], voice),
    )
    if evidence.threshold is None:
        return text
    bound = words.limit_is.format(
        threshold=voice.value(evidence.threshold, evidence.unit, beside=evidence.value)
    )
    return words.compared.format(verdict=text, limit=bound)


def _status(evidence: Evidence, voice: Voice, so: _So) -> str | None:
    words = voice.words
    status = _STATUS.fullmatch(evidence.summary)
    if status is not None:
        return (
            ""
            if so is _So.NO_LONGER
            else words.verdict_status.format(status=_status_word(status["status"], voice))
        )
    entered = _ENTERED.fullmatch(evidence.summary)
    if entered is not None:
        return words.verdict_entered.format(
            before=_status_word(entered["before"], voice), after=_status_word(entered["after"], voice)
        )
    stepped = _STEPPED.fullmatch(evidence.summary)
    if stepped is not None:
        return words.verdict_stepped.format(
            metric=metric_name(stepped["metric"], voice), before=stepped["before"], after=stepped["after"]
        )
    return None


def _peers(evidence: Evidence, voice: Voice, so: _So) -> str | None:
    match = _PEERS.fullmatch(evidence.summary)
    if match is None:
        return None
    words = voice.words
    text = _compared(_measured(evidence, match["rest"], voice), evidence, voice, so)
    middle = words.middles[match["middle"]]
    return words.verdict_peers.format(verdict=text, ratio=_level(match["ratio"], voice), middle=middle)


def _counted(evidence: Evidence, voice: Voice, so: _So) -> str | None:
    match = _COUNT.fullmatch(evidence.summary)
    if match is None or evidence.value is None:
        return None
    value = voice.value(evidence.value, "", beside=evidence.threshold)
    noun = voice.words.nouns["line"].of(math.ceil(evidence.value))
    window = _window(match["window"], voice)
    text = voice.words.verdict_count.format(value=value, noun=noun, window=window)
    return _compared(text, evidence, voice, so)


def _measured(evidence: Evidence, summary: str, voice: Voice) -> str:
    words = voice.words
    across = _ACROSS.fullmatch(summary)
    bare = across["rest"] if across else summary
    match = _AGGREGATED.fullmatch(bare)
    aggregate = words.aggregates.get(match["aggregate"]) if match else None
    parts = {
        "metric": metric_name(evidence.metric, voice),
        "summary": voice.phrase(summary),
        "value": voice.value(evidence.value, evidence.unit, beside=evidence.threshold),
    }
    if evidence.value is None:
        if match is not None and aggregate is not None and match["window"]:
            window = _window(match["window"], voice)
            return words.verdict_unmeasured.format(**parts, aggregate=aggregate, window=window)
        return " ".join(words.verdict_plain.format(**parts).split())
    if match is None or aggregate is None:
        template = words.verdict_other if summary else words.verdict_newest
        return " ".join(template.format(**parts).split())
    if match["window"] is None:
        text = words.verdict_newest.format(**parts)
    else:
        window = _window(match["window"], voice)
        template = words.verdict_slope if match["aggregate"] == _SLOPE else words.verdict_window
        text = template.format(**parts, aggregate=aggregate, window=window)
    if across and across["across"] != match["aggregate"]:
        text = words.verdict_across.format(verdict=text, across=words.acrosses[across["across"]])
    return text


def _compared(text: str, evidence: Evidence, voice: Voice, so: _So) -> str:
    stated = limit(evidence, voice) if evidence.value is not None else ""
    if not stated or not text or so is _So.UNKNOWN:
        return text
    if so is not _So.IS:
        words = {
            _So.NO_LONGER: voice.words.no_longer,
            _So.NOT: voice.words.not_so,
            _So.BETWEEN: voice.words.not_clear,
        }
        stated = words[so].format(limit=stated)
    return voice.words.compared.format(verdict=text, limit=stated)


def _bare(evidence: Evidence) -> str:
    across = _ACROSS.fullmatch(evidence.summary)
    return across["rest"] if across else evidence.summary


def metric_name(metric: str, voice: Voice) -> str:
    """Say a metric's name; one of a source's own stays as it is."""
    return voice.words.metrics.get(metric, metric)


def seconds(value: float, voice: Voice) -> str:
    """Say a number of seconds as a duration."""
    try:
        return voice.duration(timedelta(seconds=round(value)))
    except (OverflowError, ValueError):
        return voice.value(value, "s")


def waits(evidence: Evidence) -> bool:
    """Whether the verdict is about data or lines that do not come."""
    return bool(_ABSENT.fullmatch(evidence.summary) or _SILENT.fullmatch(evidence.summary))


def steps(evidence: Evidence) -> bool:
    """Whether an event is a step from one status or count to another, rather than a log line."""
    return bool(_ENTERED.fullmatch(evidence.summary) or _STEPPED.fullmatch(evidence.summary))


def course_unit(evidence: Evidence, voice: Voice) -> str:
    """Return the unit of the metric itself, where the verdict's value is something else."""
    if waits(evidence) or _SHARE.fullmatch(_bare(evidence)):
        return RATIO if evidence.metric in voice.words.metrics else ""
    return evidence.unit


def _level(text: str, voice: Voice) -> str:
    return voice.words.percent.format(number=text[:-1]) if text.endswith("%") else text


def _status_word(status: str, voice: Voice) -> str:
    return voice.words.statuses.get(status, status)


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


def turned(before: Evidence, after: Evidence) -> bool:
    """Whether a task has left the status that it was about."""
    found = [_STATUS.fullmatch(one.summary) for one in (before, after)]
    return None not in found and before.summary != after.summary


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
    return quoted(replace(first, text=shortened(first.text, LINE_SIZE)), voice)


def quoted(line: EvidenceLine, voice: Voice) -> str:
    """Say one log line: time, pod, text."""
    return " ".join(filter(None, (voice.log_time(line.time_ns), line.pod and f"{line.pod}:", line.text)))


def _window(text: str, voice: Voice) -> str:
    try:
        return voice.duration(parse_duration(text))
    except (ValueError, OverflowError):
        return text
