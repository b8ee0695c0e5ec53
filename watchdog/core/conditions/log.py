"""Log conditions: what a scan found becomes occurrences of an event rule, or samples to count.

One occurrence per labelset and kind of line, the earliest first, so that a cause leads the many
consequences. Knows nothing of reading or patterns.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from watchdog.core.conditions.kinds import By, LogCount, LogEvent
from watchdog.core.durations import duration_ns, from_ns, to_ns
from watchdog.core.labels import POD, Labels
from watchdog.core.outcomes import Evidence, EvidenceLine, Member, Occurrence
from watchdog.core.rules import Rule
from watchdog.core.scanning import Finding, RuleHits
from watchdog.core.tasks import Task

KINDS_A_SLOT = 20  # occurrences per labelset and scan; what is beyond is counted
LATE = timedelta(minutes=2)  # a line that became visible later than this is told as late
PODS_NAMED = 3
EXAMPLES = 3  # lines of one kind shown beside the first


def log_occurrences(rule: Rule, task: Task, hits: RuleHits, at: datetime) -> tuple[Occurrence, ...]:
    """Return what a LogEvent rule saw, in order of time.

    at: the slot. One occurrence per labelset and fingerprint; `evidence.lines` leads with the
    earliest line and its context, like lines are folded into `repeated`.

    Raises:
        TypeError: the rule is no LogEvent.
    """
    condition = rule.condition
    if not isinstance(condition, LogEvent):
        raise TypeError(f"{rule.name}: not a rule about new log lines")
    occurrences = []
    for labels, findings in _by_labels(task, condition.by, hits).items():
        members, affected = _pods(hits, findings)
        for fingerprint, kind in _by_kind(findings).items():
            lines, more = _lines(hits, kind, condition)
            happened_ns = hits.page.lines[kind[0].leads[0]].time_ns
            evidence = Evidence(lines=lines, more_lines=more, members=members, affected=affected)
            occurrences.append(
                Occurrence(
                    rule=rule.name,
                    labels=labels,
                    at=from_ns(happened_ns),
                    fingerprint=fingerprint,
                    count=sum(finding.count for finding in kind),
                    evidence=evidence,
                    late=to_ns(at) - happened_ns > duration_ns(LATE),
                )
            )
    return tuple(sorted(occurrences, key=lambda one: one.at))


def log_samples(rule: Rule, task: Task, hits: RuleHits) -> tuple[tuple[int, Labels, float], ...]:
    """Return (time in ns, labels of task and pod, number of matching lines) for a LogCount rule.

    The pod is named whatever the rule's `by`: each pod's lines are late in their own way. Lines with
    the same time and labels are one sample.

    Raises:
        TypeError: the rule is no LogCount.
    """
    condition = rule.condition
    if not isinstance(condition, LogCount):
        raise TypeError(f"{rule.name}: not a rule that counts log lines")
    counts: dict[tuple[int, Labels], float] = {}
    for line in hits.lines():
        key = (line.time_ns, _labels(task, By.POD, line.pod))
        counts[key] = counts.get(key, 0.0) + 1.0
    return tuple((time_ns, labels, count) for (time_ns, labels), count in sorted(counts.items()))


def _labels(task: Task, by: By, pod: str) -> Labels:
    return task.identity if by is By.TASK else task.identity.plus({POD: pod})


def _by_labels(task: Task, by: By, hits: RuleHits) -> dict[Labels, list[Finding]]:
    groups: dict[Labels, list[Finding]] = {}
    for finding in hits.findings:
        labels = _labels(task, by, hits.page.lines[finding.number].pod)
        groups.setdefault(labels, []).append(finding)
    return groups


def _by_kind(findings: Sequence[Finding]) -> dict[str, list[Finding]]:
    """Group by fingerprint, in order of first sight; too many kinds are folded into the last."""
    kinds: dict[str, list[Finding]] = {}
    for finding in findings:
        fingerprint = finding.fingerprint
        if fingerprint not in kinds and len(kinds) >= KINDS_A_SLOT:
            fingerprint = next(reversed(kinds))
        kinds.setdefault(fingerprint, []).append(finding)
    return kinds


def _pods(hits: RuleHits, findings: Sequence[Finding]) -> tuple[tuple[Member, ...], int]:
    """Return the first pods concerned and their number; nothing if it is one, which its line names."""
    pods = list(dict.fromkeys(hits.page.lines[finding.number].pod for finding in findings))
    if len(pods) < 2:
        return (), 0
    members = (Member(labels=Labels({POD: pod}), value=None) for pod in pods[:PODS_NAMED])
    return tuple(members), len(pods)


def _lines(
    hits: RuleHits, kind: Sequence[Finding], condition: LogEvent
) -> tuple[tuple[EvidenceLine, ...], int]:
    """Show the first finding with its context; later ones of the same text fold into its lead.

    Of those with another text (another number in it) a few and the last are shown, the rest is counted.
    """
    first = kind[0]
    numbers = hits.shown_numbers(first, condition.before, condition.after)
    own = {number for finding in kind for number in finding.leads}
    told = {number for finding in hits.findings for number in finding.leads} - own  # by their own kind
    context = {number: hits.page.evidence(number) for number in numbers if number not in told}
    leads: dict[str, list[int]] = {}
    for number in (number for finding in kind for number in finding.leads):
        leads.setdefault(_text(hits, number), []).append(number)
    shown = {}
    for position, same in enumerate(leads.values()):
        if position < EXAMPLES or position == len(leads) - 1 or same[0] in first.leads:
            shown[same[0]] = hits.page.evidence(same[0], matched=True, repeated=len(same))
    folded = {number for same in leads.values() for number in same} - shown.keys()
    lines = {number: line for number, line in context.items() if number not in folded} | shown
    more = sum(len(same) for same in leads.values()) - sum(line.repeated for line in shown.values())
    return tuple(lines[number] for number in sorted(lines)), more


def _text(hits: RuleHits, number: int) -> str:
    """What makes two leads the same for a reader: the line without its rank."""
    return hits.page.lines[number].body
