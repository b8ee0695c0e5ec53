"""Lists in a message: members worst first, log lines with their context, each able to shrink."""

from collections.abc import Sequence
from dataclasses import replace

from watchdog.core.alerts import Incident
from watchdog.core.defang import defang_line
from watchdog.core.hygiene import shortened
from watchdog.core.labels import GPU, NODE, OF_TASK, POD, Labels
from watchdog.core.outcomes import MEMBERS_SHOWN, Evidence, EvidenceLine, Member
from watchdog.core.trimming import Block
from watchdog.core.wording.verdicts import LINE_SIZE, quoted, steps, verdict, waits
from watchdog.core.wording.voice import Voice

LINES_SHOWN = 40
PODS_NAMED = 3
NEAR_LINES = 4  # context that matters more than further matches

RANK_LOG, RANK_MEMBERS = 0, 1


def members_block(incident: Incident, evidence: Evidence, voice: Voice) -> Block | None:
    """Return the members behind the verdict, worst first; many GPUs are told pod by pod."""
    members = _members(incident, evidence)
    members = [member for member in members if _name(member.labels)]
    if not members:
        return None
    total = max(evidence.affected, len(members))
    grouped = _by_pod(members, evidence, voice) if len(members) > MEMBERS_SHOWN else None
    words = voice.words
    if grouped is not None:
        lines = grouped[:MEMBERS_SHOWN]
        total = len(grouped)
    else:
        lines = [
            words.member.format(
                name=defang_line(_name(member.labels)),
                value=_value(member.value, evidence, voice),
            ).rstrip()
            for member in members[:MEMBERS_SHOWN]
        ]

    def remark(shown: Sequence[int]) -> str:
        return words.members_more.format(count=total - len(shown)) if total > len(shown) else ""

    return Block(
        lines=tuple(lines),
        head=_members_head(members, evidence, voice) if len(lines) > 1 else "",
        remark=remark,
        rank=RANK_MEMBERS,
        floor=1,
        apart=True,
    )


def _members_head(members: Sequence[Member], evidence: Evidence, voice: Voice) -> str:
    """Without values there is no worst one."""
    ranked = not waits(evidence) and any(member.value is not None for member in members)
    return voice.words.members_head if ranked else voice.words.members_plain


def _members(incident: Incident, evidence: Evidence) -> list[Member]:
    if len(incident.active) <= len(evidence.members):
        return list(evidence.members)
    members = [Member(labels=one.labels, value=one.value) for one in incident.active]
    valued = [member for member in members if member.value is not None]
    valued.sort(key=lambda member: member.value or 0.0, reverse=evidence.above)
    return valued + [member for member in members if member.value is None]


def _value(value: float | None, evidence: Evidence, voice: Voice) -> str:
    """Say a member's own value; of a member that gives no data there is none worth saying."""
    return (
        ""
        if value is None or waits(evidence)
        else voice.value(value, evidence.unit, beside=evidence.threshold)
    )


def _name(labels: Labels) -> str:
    parts = [labels.get(POD, ""), f"gpu {labels[GPU]}" if GPU in labels else ""]
    shown = (*OF_TASK, POD, GPU, NODE)
    parts += [f"{name} {value}" for name, value in labels.pairs if name not in shown]  # a source's own
    name = " ".join(filter(None, parts))
    node = labels.get(NODE, "")
    if not node:
        return name
    return f"{name} ({node})" if name else node


def _by_pod(members: Sequence[Member], evidence: Evidence, voice: Voice) -> list[str] | None:
    pods: dict[str, list[Member]] = {}
    for member in members:
        pods.setdefault(member.labels.get(POD, ""), []).append(member)
    if "" in pods or len(pods) == len(members):
        return None
    lines = []
    for pod, group in pods.items():
        values = [member.value for member in group if member.value is not None]
        low, high = (min(values), max(values)) if values else (None, None)
        text = voice.words.pod_group.format(
            count=len(group),
            noun=voice.words.nouns[GPU].of(len(group)),
            low=voice.value(low, evidence.unit, beside=evidence.threshold),
            high=voice.value(high, evidence.unit, beside=evidence.threshold),
        )
        lines.append(voice.words.member.format(name=defang_line(pod), value=text))
    return lines


def log_block(incident: Incident, evidence: Evidence, voice: Voice) -> Block | None:
    """Return the log lines in order of time; like lines are folded, matching ones marked.

    What is not shown is counted over the incident's whole life, as its other numbers are.
    """
    lines = evidence.lines
    if steps(evidence):  # a status or a counter: no log lines, but what happened one by one
        lines = tuple(replace(line, text=verdict(_only(line, evidence), voice)) for line in lines)
    folded = _folded(lines)
    if not folded or (len(folded) == 1 and not evidence.more_lines and folded[0][0].repeated == 1):
        return None
    total = sum(line.repeated for line in evidence.lines if line.matched) + max(0, evidence.more_lines)
    total = max(total, incident.count) if incident.event else total
    words = voice.words
    noun, template = ("event", words.events_shown) if steps(evidence) else ("line", words.log_shown)

    def remark(shown: Sequence[int]) -> str:
        told = sum(folded[index][0].repeated for index in shown if folded[index][0].matched)
        if told >= total:
            return ""
        return template.format(shown=told, total=total, noun=words.nouns[noun].of(total))

    return Block(
        lines=tuple(_said(line, pods, voice) for line, pods in folded),
        head=words.events_head if steps(evidence) else words.log_head,
        keep=_by_importance([line for line, _ in folded]),
        remark=remark,
        rank=RANK_LOG,
        floor=1,
        apart=True,
    )


def _only(line: EvidenceLine, evidence: Evidence) -> Evidence:
    return Evidence(metric=evidence.metric, summary=line.text)


def _folded(lines: Sequence[EvidenceLine]) -> list[tuple[EvidenceLine, tuple[str, ...]]]:
    """Fold matching lines of the same text, whatever their pod; the earliest stands for all."""
    ordered = sorted(enumerate(lines), key=lambda row: (row[1].time_ns, row[0]))
    folded: dict[object, tuple[EvidenceLine, list[str]]] = {}
    for number, line in ordered:
        key: object = line.text if line.matched else number
        if key not in folded:
            folded[key] = (line, [line.pod])
            continue
        first, pods = folded[key]
        if line.pod not in pods:
            pods.append(line.pod)
        folded[key] = (replace(first, repeated=first.repeated + line.repeated), pods)
    whole = [(line, tuple(filter(None, pods))) for line, pods in folded.values()]
    if len(whole) <= LINES_SHOWN:
        return whole
    kept = sorted(_by_importance([line for line, _ in whole])[:LINES_SHOWN])
    return [whole[index] for index in kept]


def _said(line: EvidenceLine, pods: Sequence[str], voice: Voice) -> str:
    words = voice.words
    text = replace(line, text=shortened(line.text, LINE_SIZE))
    parts = ["> " if line.matched else "  ", quoted(text, voice)]
    if line.repeated > 1:
        parts.append(" " + words.repeated.format(count=line.repeated))
    if len(pods) > 1:
        named = ", ".join(pods[:PODS_NAMED]) + (", …" if len(pods) > PODS_NAMED else "")
        parts.append(f" {words.in_pods.format(count=len(pods))} ({named})")
    return defang_line("".join(parts)) if line.matched else "  " + defang_line("".join(parts))


def _by_importance(lines: Sequence[EvidenceLine]) -> tuple[int, ...]:
    """The cause (earliest match) and what surrounds it, then other matches, then other context."""
    matched = [index for index, line in enumerate(lines) if line.matched]
    cause = matched[0] if matched else 0
    context = [index for index, line in enumerate(lines) if not line.matched]
    context.sort(key=lambda index: (abs(index - cause), index))
    near, far = context[:NEAR_LINES], context[NEAR_LINES:]
    return (*matched[:1], *near, *matched[1:], *far)
