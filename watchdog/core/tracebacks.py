"""Tracebacks: which lines belong to one Python traceback, and which line names the exception.

Joins per pod and launcher prefix, so that ranks may be interleaved; ranks that write through one
another without any prefix end up in one block that has an exception line for each. Chained
exceptions are one block; the last exception line is the one that reached the top. Pure; holds
nothing back: what is still open when the lines end is handed over to the next call.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from watchdog.core.durations import MINUTE_NS
from watchdog.core.hygiene import CleanLine, CleanLines

Key = tuple[str, str]  # pod, launcher prefix

_START = "Traceback (most recent call last)"
_CHAIN = ("During handling of the above exception", "The above exception was the direct cause")
_NAMED = re.compile(  # the names that exceptions have
    r"(?:[A-Za-z_]\w*\.)*(?:Exception|[A-Za-z_]\w*"
    r"(?:Error|Exception|Warning|Interrupt|Exit|Failure|Failed|Timeout|Group|Iteration|Fault|NotFound|Denied))"
    r"(?::\s|:?\Z)"
)
_ANY = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*[a-z]\w*(?::\s|:?\Z)")  # right behind a frame only
_PATIENCE = 60  # foreign lines of the same writer before an open block is given up
_CHAIN_GAP = 3  # lines between an exception line and the chain's next word
_LONGEST = 500  # lines of one block
_OLDEST_NS = 5 * MINUTE_NS
_MOST_OPEN = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One traceback, as far as its lines are at hand. Numbers are positions in the lines given."""

    key: Key
    lines: tuple[int, ...]
    finals: tuple[int, ...]  # its exception lines, the one that counts last
    chained: bool = False  # the exceptions caused one another
    carried: bool = False  # it began in an earlier call
    open: bool = False  # its exception line has not come yet

    @property
    def final(self) -> int | None:
        """The line that names the exception which reached the top."""
        return self.finals[-1] if self.finals else None

    @property
    def told(self) -> tuple[int, ...]:
        """The exception lines to tell: of a chain only the last, of interleaved ranks each."""
        return self.finals[-1:] if self.chained else self.finals


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenBlock:
    """A traceback whose exception line has not come yet."""

    depth: int  # how many exception lines are to come
    foreign: int
    time_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """The tracebacks among some lines, and what is still open after them."""

    blocks: tuple[Block, ...]
    open: Mapping[Key, OpenBlock]


def join(lines: CleanLines, before: Mapping[Key, OpenBlock] | None = None) -> Joined:
    """Find the tracebacks in lines that are in order. `before`: what the previous call left open."""
    drafts = {
        key: _Draft(key, depth=left.depth, foreign=left.foreign, time_ns=left.time_ns, carried=True)
        for key, left in (before or {}).items()
    }
    writing = Counter(pod for pod, _ in drafts)  # the pods with a block that may go on
    found: list[_Draft] = []
    for number, starts in _concerned(lines, writing):
        line = lines[number]
        key = (line.pod, line.prefix.strip())
        draft = drafts.get(key)
        if draft is not None and not draft.takes(number, line, starts=starts):
            found.append(drafts.pop(key))
            draft = None
            writing[line.pod] -= 1
            if not writing[line.pod]:
                del writing[line.pod]
        if draft is None and starts:
            drafts[key] = _Draft(key, depth=1, lines=[number], time_ns=line.time_ns)
            writing[line.pod] += 1
    left = _left(drafts, max(lines.times, default=0) if drafts else 0)
    ended = [draft.block(still_open=False) for draft in found]
    lasting = [draft.block(still_open=key in left) for key, draft in drafts.items()]
    blocks = sorted((b for b in (*ended, *lasting) if b.lines), key=lambda block: block.lines[0])
    return Joined(blocks=tuple(blocks), open=left)


def _concerned(lines: CleanLines, writing: Mapping[str, int]) -> Iterator[tuple[int, bool]]:
    """Yield each line that may belong to a block, and whether it starts one.

    writing: the pods with a block that may go on, which changes meanwhile; without any, all lines up to
    the next start are passed over.
    """
    begin = 0
    for start in (*lines.holding(_START), len(lines)):
        for number in range(begin, start):
            if not writing:
                break
            if lines.pods[number] in writing:
                yield number, False
        if start < len(lines):
            yield start, True
        begin = start + 1


def _left(drafts: Mapping[Key, "_Draft"], newest_ns: int) -> Mapping[Key, OpenBlock]:
    """Return what is still open, the youngest if there is too much of it."""
    left = {
        key: OpenBlock(depth=draft.depth, foreign=draft.foreign, time_ns=draft.time_ns)
        for key, draft in drafts.items()
        if draft.depth and newest_ns - draft.time_ns < _OLDEST_NS
    }
    kept = sorted(left, key=lambda key: left[key].time_ns)[-_MOST_OPEN:]
    return {key: left[key] for key in kept}


@dataclass(slots=True)
class _Draft:
    """A block while it is put together."""

    key: Key
    depth: int
    lines: list[int] = field(default_factory=list)
    finals: list[int] = field(default_factory=list)
    foreign: int = 0  # lines of the same writer since the last one of the block
    chained: bool = False  # its next traceback is caused by this one
    was_chained: bool = False
    time_ns: int = 0
    carried: bool = False

    def takes(self, number: int, line: CleanLine, *, starts: bool) -> bool:
        """Add the line, or pass over it as foreign; False if the block is over before this line."""
        body = line.body
        grouped = body.lstrip().startswith(("|", "+"))
        if line.time_ns - self.time_ns > _OLDEST_NS or len(self.lines) >= _LONGEST:
            return False
        if starts:
            if not (self.depth or self.chained or grouped):
                return False
            self.depth += 1
            self.chained = False
        elif body.lstrip().startswith(_CHAIN):
            self.chained = self.was_chained = True
        elif self.depth and self._is_final(body.lstrip(" |") if grouped else body):
            self.depth -= 1
            self.finals.append(number)
        elif not (self.depth or grouped) or not body[:1].isspace():
            self.foreign += 1
            return self.foreign <= (_PATIENCE if self.depth else _CHAIN_GAP)
        self.lines.append(number)
        self.foreign = 0
        self.time_ns = line.time_ns
        return True

    def _is_final(self, body: str) -> bool:
        if body[:1].isspace():
            return False
        return _NAMED.match(body) is not None or (not self.foreign and _ANY.match(body) is not None)

    def block(self, *, still_open: bool) -> Block:
        """Return the finished value."""
        return Block(
            key=self.key,
            lines=tuple(self.lines),
            finals=tuple(self.finals),
            chained=self.was_chained,
            carried=self.carried,
            open=still_open,
        )
