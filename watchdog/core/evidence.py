"""Evidence put together: the worst member leads, and so does the earliest matching line.

Owns merging only; single evidences come from evaluation and from the log scanner.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from watchdog.core.alerts import IncidentMember
from watchdog.core.durations import to_ns
from watchdog.core.hygiene import shortened
from watchdog.core.labels import NODE, POD, within_task
from watchdog.core.outcomes import MEMBERS_SHOWN, Evidence, EvidenceLine, Member, Occurrence

LINES_SHOWN = 30
HEADLINE = 300  # characters


def worst(rows: Sequence[tuple[int, float | None]], *, above: bool) -> int:
    """Return the number of the row whose value is the most extreme; without values, the first."""
    valued = [(value, number) for number, value in rows if value is not None]
    if not valued:
        return rows[0][0]
    return (max if above else min)(valued, key=lambda row: row[0])[1]


def of_members(
    evidence: Evidence, active: Sequence[IncidentMember], *, expected: int, covered: int
) -> Evidence:
    """Return the evidence of one labelset as that of an incident with several.

    expected, covered: labelsets of the task that are judged, and that have data.
    """
    if not active:
        return evidence
    valued = sorted(
        (member for member in active if member.value is not None),
        key=lambda member: member.value or 0.0,
        reverse=evidence.above,
    )
    rest = [member for member in active if member.value is None]
    shown = [Member(labels=one.labels, value=one.value) for one in (*valued, *rest)[:MEMBERS_SHOWN]]
    return replace(
        evidence,
        members=tuple(shown),
        affected=len(active),
        of=max(expected, len(active)),
        covered=max(covered, 0),
    )


def with_nodes(evidence: Evidence, nodes: Mapping[str, str]) -> Evidence:
    """Return the evidence with the nodes of the members whose pods are known to be on one."""
    if not nodes:
        return evidence
    placed = (
        replace(one, labels=one.labels.plus({NODE: nodes[one.labels[POD]]}))
        if one.labels.get(POD, "") in nodes
        else one
        for one in evidence.members
    )
    return replace(evidence, members=tuple(placed))


def lead(evidence: Evidence) -> EvidenceLine | None:
    """Return the earliest matching line."""
    matched = [line for line in evidence.lines if line.matched]
    return min(matched, key=lambda line: line.time_ns, default=None)


def headline(occurrence: Occurrence) -> EvidenceLine:
    """Return the line that says what happened: the earliest match, or what the condition says."""
    front = lead(occurrence.evidence)
    if front is None:
        time_ns, summary = to_ns(occurrence.at), occurrence.evidence.summary
        front = EvidenceLine(time_ns=time_ns, pod="", text=summary, matched=True)
    return replace(front, text=shortened(front.text, HEADLINE), kind=occurrence.fingerprint)


def with_news(evidence: Evidence, news: Sequence[EvidenceLine]) -> Evidence:
    """Return the evidence with the leading lines of kinds that it does not show."""
    shown = {_place(line) for line in evidence.lines}
    more = [line for line in news if line.text != evidence.summary and _place(line) not in shown]
    if not more:
        return evidence
    lines = sorted((*evidence.lines, *more), key=lambda line: line.time_ns)
    return replace(evidence, lines=tuple(lines))


def _place(line: EvidenceLine) -> tuple[int, str, str]:
    return line.time_ns, line.pod, shortened(line.text, HEADLINE)


def of_occurrences(occurrences: Sequence[Occurrence], earlier: EvidenceLine | None = None) -> Evidence:
    """Merge the evidence of like events: the cause first, then one of each kind, then the rest.

    occurrences: at least one. earlier: the line that the incident already leads with; it stays in
    front if it is older than all of these.
    """
    ordered = sorted(occurrences, key=_happened_ns)
    merged = _of_labelsets(ordered)
    if not any(one.evidence.lines for one in ordered):
        return merged
    lines = _chosen(ordered)
    shown = sum(line.repeated for line in lines if line.matched)
    more = max(0, sum(one.count for one in ordered) - shown)
    front = [line for line in lines if line.matched]
    if earlier is not None and (not front or earlier.time_ns < front[0].time_ns):
        lines = [earlier, *(line for line in lines if _key(line) != _key(earlier))]
    return replace(merged, lines=tuple(lines[:LINES_SHOWN]), more_lines=more)


def _of_labelsets(ordered: Sequence[Occurrence]) -> Evidence:
    """Return the newest evidence, with whom all are about: those of one labelset say the same of that."""
    newest = ordered[-1].evidence
    each = {one.labels: one.evidence for one in ordered}
    if len(each) == 1:
        return newest
    members = [
        member
        for labels, own in each.items()
        for member in own.members or (Member(labels=within_task(labels), value=own.value),)
    ]
    members.sort(key=lambda member: -math.inf if member.value is None else member.value, reverse=newest.above)
    return replace(
        newest,
        members=tuple(members[:MEMBERS_SHOWN]),
        affected=sum(max(own.affected, 1) for own in each.values()),
        of=sum(own.of for own in each.values()),
        covered=sum(own.covered for own in each.values()),
    )


def _chosen(ordered: Sequence[Occurrence]) -> list[EvidenceLine]:
    """Pick lines until there are enough, and put them in order of time.

    First the cause with all that surrounds it, then what matched, one kind after another; then the rest.
    """
    times: dict[str, int] = {}
    ranked: list[tuple[int, int, Occurrence]] = []
    for position, one in enumerate(ordered):
        times[one.fingerprint] = times.get(one.fingerprint, -1) + 1
        ranked.append((times[one.fingerprint], position, one))
    ranked.sort(key=lambda row: row[:2])
    blocks = [one.evidence.lines for _, _, one in ranked]
    reasons = [line for block in blocks[1:] for line in block if line.matched]
    wanted = (*blocks[0], *reasons, *(line for block in blocks[1:] for line in block))
    room = set(list(dict.fromkeys(map(_key, wanted)))[:LINES_SHOWN])
    chosen: dict[tuple[int, str, str], EvidenceLine] = {}
    for one in ordered:
        for line in one.evidence.lines:
            known = chosen.get(_key(line))
            if _key(line) in room and (known is None or (line.matched and not known.matched)):
                chosen[_key(line)] = line
    return list(chosen.values())


def _key(line: EvidenceLine) -> tuple[int, str, str]:
    return line.time_ns, line.pod, line.text


def _happened_ns(one: Occurrence) -> int:
    front = lead(one.evidence)
    return to_ns(one.at) if front is None else front.time_ns
