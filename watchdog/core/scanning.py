"""Scanning: which new lines match which log rules, in one pass over all of them.

Owns the compiled set of a ruleset, what is ignored, joining with tracebacks, and masked lines with
their context. Pure apart from one memory: tracebacks that a page left open. Losing it loses a
detail, never a match: every match is told at once.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import islice

from watchdog.core.conditions.kinds import LogCount, LogEvent, LogMatch
from watchdog.core.fingerprints import line_fingerprint
from watchdog.core.hygiene import CleanLine, CleanLines, clean, shown
from watchdog.core.logs import LogLine, LogRows
from watchdog.core.masking import mask, mask_all
from watchdog.core.outcomes import EvidenceLine
from watchdog.core.protocols import Pattern, PatternEngine
from watchdog.core.rules import Rule
from watchdog.core.tasks import Task
from watchdog.core.tracebacks import Block, Key, OpenBlock, join

OWN_LINE = "[job-watchdog]"
"""Every log line of our own bears this, and a line that bears it never matches."""

_KEY_BLOCK = "PRIVATE KEY-----"
_NEAR = 1_000  # lines looked through for a pod's next ones, before all lines are sorted by pod
_BLOCK_SHOWN = 6  # last lines of a traceback before its exception line


class Page:
    """Clean lines in order of time, with what is known about them. Made per scan, then read only."""

    def __init__(self, lines: CleanLines, blocks: Iterable[Block]) -> None:
        self.lines = lines
        self._blocks = {number: block for block in blocks for number in block.lines}
        self._by_pod: dict[str, list[int]] = {}  # made when first asked for
        self._masked: dict[int, str] = {}
        if lines.holding(_KEY_BLOCK):
            for numbers in self._pods().values():
                texts = mask_all(lines.texts[number] for number in numbers)
                self._masked.update(zip(numbers, texts, strict=True))

    def block_of(self, number: int) -> Block | None:
        """The traceback a line is part of."""
        return self._blocks.get(number)

    def around(self, number: int, before: int, after: int) -> tuple[int, ...]:
        """The numbers of the lines around one, of the same pod, itself included."""
        earlier = self._next(number, before, -1)
        later = self._next(number, after, 1)
        return (*reversed(earlier), number, *later)

    def _next(self, number: int, count: int, step: int) -> Sequence[int]:
        """The numbers of the next lines of the same pod in one direction, nearest first."""
        pods = self.lines.pods
        pod = pods[number]
        near = range(number + step, min(max(number + step * _NEAR, -1), len(pods)), step)
        found = list(islice((n for n in near if pods[n] == pod), count))
        if len(found) == count or near.stop in (-1, len(pods)):
            return found
        own = self._pods()[pod]
        place = bisect_left(own, number)
        return own[place + 1 : place + 1 + count] if step > 0 else own[max(place - count, 0) : place][::-1]

    def _pods(self) -> dict[str, list[int]]:
        """The numbers of each pod's lines."""
        if not self._by_pod:
            for number, pod in enumerate(self.lines.pods):
                self._by_pod.setdefault(pod, []).append(number)
        return self._by_pod

    def evidence(self, number: int, *, matched: bool = False, repeated: int = 1) -> EvidenceLine:
        """Return one line as people see it: masked, then cut."""
        line = self.lines[number]
        if number not in self._masked:
            self._masked[number] = mask(line.text)
        return EvidenceLine(
            time_ns=line.time_ns,
            pod=line.pod,
            text=shown(self._masked[number]),
            matched=matched,
            repeated=repeated,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing a rule found: a matching line, or a traceback with one or more of them.

    leads: the lines to name as the reason (a traceback's exception lines, else the match).
    count: how many matches it stands for; 0 = only the end of a traceback told before.
    """

    number: int  # of the first matching line
    leads: tuple[int, ...]
    fingerprint: str
    count: int
    block: Block | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleHits:
    """What one rule found in one scan."""

    page: Page
    matched: tuple[int, ...]  # every matching line
    findings: tuple[Finding, ...]  # in order of time

    def lines(self) -> tuple[CleanLine, ...]:
        """The matching lines, secrets not masked: not for showing or storing."""
        return tuple(self.page.lines[number] for number in self.matched)

    def shown_numbers(self, finding: Finding, before: int, after: int) -> tuple[int, ...]:
        """The numbers of the lines to show for a finding, in order: context and leads."""
        if finding.block is None:
            return self.page.around(finding.number, before, after)
        own = finding.block.lines[-_BLOCK_SHOWN - len(finding.leads) :]
        earlier = self.page.around(finding.block.lines[0], before, 0)
        later = self.page.around(finding.block.lines[-1], 0, after)
        return tuple(sorted({*earlier, *own, *later, *finding.leads}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Hits:
    """What all rules found in one scan."""

    by_rule: Mapping[str, RuleHits] = field(default_factory=dict)
    lines: int = 0  # looked at
    own: int = 0  # of ourselves, passed over
    cut: int = 0  # too long to be looked at in full

    def of(self, rule: str) -> RuleHits | None:
        """What this rule found; None = nothing."""
        return self.by_rule.get(rule)


@dataclass(slots=True)
class _Open:
    """The tracebacks a task's newest lines left open, and the rules that have hit them."""

    blocks: Mapping[Key, OpenBlock] = field(default_factory=dict)
    rules: dict[Key, frozenset[str]] = field(default_factory=dict)


class LogScanner:
    """The log rules of a ruleset, compiled once."""

    def __init__(self, rules: Iterable[Rule], engine: PatternEngine) -> None:
        self._rules = tuple(rule for rule in rules if isinstance(rule.condition, LogEvent | LogCount))
        users: dict[Pattern, list[int]] = {}
        for position, rule in enumerate(self._rules):
            for pattern in dict.fromkeys(_match_of(rule).match):
                users.setdefault(pattern, []).append(position)
        self._users = tuple(tuple(positions) for positions in users.values())
        self._set = engine.compile_set(tuple(users))
        self._open: dict[str, _Open] = {}

    def scan(self, task: Task, rows: Sequence[LogLine]) -> Hits:
        """Match one task's new rows against every rule that is about it.

        rows: as the source served them; cleaned here, and put in order of time.
        """
        everything = clean(LogRows.of(rows).in_order())
        lines = everything.without(everything.holding(OWN_LINE))
        before = self._open.get(task.key, _Open())
        joined = join(lines, before.blocks)
        page = Page(lines, joined.blocks)
        matched = self._matched(task, lines)
        found = {
            rule.name: RuleHits(page=page, matched=tuple(numbers), findings=_findings(page, numbers))
            for rule, numbers in matched
        }
        _tell_ends(found, page, joined.blocks, before)
        self._remember(task.key, joined.open, found, before)
        return Hits(
            by_rule=found,
            lines=len(lines),
            own=len(everything) - len(lines),
            cut=len(lines.cuts),
        )

    def _matched(self, task: Task, lines: CleanLines) -> list[tuple[Rule, list[int]]]:
        applies = [rule.applies(task) for rule in self._rules]
        numbers: dict[int, list[int]] = {}
        for number, patterns in self._set.scan(lines.texts):
            users = sorted({position for pattern in patterns for position in self._users[pattern]})
            for position in users:
                if applies[position] and _wanted(_match_of(self._rules[position]), lines[number]):
                    numbers.setdefault(position, []).append(number)
        return [(self._rules[position], numbers[position]) for position in sorted(numbers)]

    def _remember(
        self, task: str, blocks: Mapping[Key, OpenBlock], found: Mapping[str, RuleHits], before: _Open
    ) -> None:
        if not blocks:
            self._open.pop(task, None)
            return
        rules = {key: before.rules[key] for key in blocks if key in before.rules}
        for name, hits in found.items():
            for finding in hits.findings:
                if finding.block is not None and finding.block.open and finding.block.key in blocks:
                    key = finding.block.key
                    rules[key] = rules.get(key, frozenset()) | {name}
        self._open[task] = _Open(blocks, rules)


def _match_of(rule: Rule) -> LogMatch:
    assert isinstance(rule.condition, LogEvent | LogCount)
    return rule.condition.lines


def _wanted(match: LogMatch, line: CleanLine) -> bool:
    """Whether a line that matches is also one that the rule looks at."""
    if match.pods and not fnmatchcase(line.pod, match.pods):
        return False
    if match.prefilter not in line.text:
        return False
    return not any(pattern.search(line.text) for pattern in match.ignore)


def _findings(page: Page, numbers: Sequence[int]) -> tuple[Finding, ...]:
    """Make one finding of each matching line, and one of each traceback however many match in it."""
    findings: list[Finding] = []
    taken: set[tuple[int, ...]] = set()
    for number in numbers:
        block = page.block_of(number)
        if block is None:
            mark = line_fingerprint(page.lines[number])
            findings.append(Finding(number=number, leads=(number,), fingerprint=mark, count=1))
        elif block.lines not in taken:
            taken.add(block.lines)
            findings.append(_finding_of_block(page, number, block))
    return tuple(findings)


def _finding_of_block(page: Page, number: int, block: Block) -> Finding:
    leads = block.told or (number,)
    return Finding(
        number=number,
        leads=leads,
        fingerprint=line_fingerprint(page.lines[leads[-1]]),
        count=len(leads),
        block=block,
    )


def _tell_ends(found: dict[str, RuleHits], page: Page, blocks: Iterable[Block], before: _Open) -> None:
    """Add the exception lines of tracebacks that a rule hit in an earlier scan."""
    for block in blocks:
        if not block.carried or not block.told:
            continue
        for name in before.rules.get(block.key, ()):
            hits = found.get(name, RuleHits(page=page, matched=(), findings=()))
            if any(finding.block is block for finding in hits.findings):
                continue
            mark = line_fingerprint(page.lines[block.told[-1]])
            end = Finding(number=block.told[-1], leads=block.told, fingerprint=mark, count=0, block=block)
            findings = sorted((*hits.findings, end), key=lambda finding: finding.number)
            found[name] = RuleHits(page=page, matched=hits.matched, findings=tuple(findings))
