"""Following a log that can only be asked for its newest lines: what is new, in which order, what was missed.

Pure. A page is compared with the one before: lines that both have are known, late ones between them are
found, and no line of the old page in a full new one means that some were never seen. Lines without a time
get the moment they were first seen, once; a bookmark lets a later process find the place again.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from operator import attrgetter

from watchdog.core.durations import from_ns
from watchdog.core.logs import LogLine, LogPage, LogQuery
from watchdog.sources.naive_times import read_time_ns
from watchdog.sources.siflow_wire import LogRow, LogRows

STEP_NS = 1_000  # between lines that were seen at once
KEPT_NS = 30 * 60 * 1_000_000_000  # longer than any re-reading looks back, but for one after an outage
MOST_KEPT = 50_000
MARKED = 128  # lines that a bookmark holds …
HASH_DIGITS = 8  # … and how much of each
LEAST_SHARED = 3  # fewer common lines than this may be chance
TOO_LATE = "log lines came long after their own time and were not read"
FAR_NS = 24 * 3600 * 1_000_000_000  # a line this far in the future has no time worth the name


@dataclass(frozen=True, slots=True)
class _Line:
    """One line of an answer. time_ns: the source's, 0 = it tells none."""

    text: str
    pod: str
    time_ns: int

    @property
    def digest(self) -> str:
        """What it is recognised by."""
        content = f"{self.pod}\x00{self.time_ns}\x00{self.text}".encode("utf-8", "surrogatepass")
        return hashlib.blake2b(content, digest_size=HASH_DIGITS // 2).hexdigest()


@dataclass(frozen=True, slots=True)
class _Kept:
    """A line that was told, with the time it has been given."""

    line: LogLine
    digest: str


@dataclass(slots=True)
class LogTail:
    """What is known of one task's log. Nothing is known at first; then `take` every page and serve queries.

    page: digests of the newest page. whole: it may have shown all there was. before: digests of the lines
    before `kept`, as far as bookmarks need them. lost_ns: where lines may have been that were never seen, for
    the next query. awaited: new lines that no query has asked for yet, by their time, with when they came.
    """

    limit: int
    zone: tzinfo
    page: tuple[str, ...] | None = None
    whole: bool = False
    before: tuple[str, ...] = ()
    kept: list[_Kept] = field(default_factory=list)
    looked_ns: int = 0
    lost_ns: tuple[int, int] | None = None
    awaited: list[tuple[int, int]] = field(default_factory=list)
    remarks: tuple[str, ...] = ()

    def take(self, rows: LogRows, query: LogQuery, now_ns: int) -> None:
        """Take in the newest lines, asked for on behalf of a query.

        What is new and has no time of its own was written by now, and not after the query's end. The query's
        bookmark counts with the first page.
        """
        lines = [line for row in _oldest_first(rows) for line in self._lines(row)]
        seen_ns = min(now_ns, query.end_ns)
        looked_ns, self.looked_ns = self.looked_ns or query.start_ns, seen_ns
        if not lines:
            return  # a log that has not begun, or one that is replaced: the next page will tell
        digests = tuple(line.digest for line in lines)
        first, overlap = self._new(lines, digests, query.bookmark)
        full = len(rows.rows) >= self.limit
        if not overlap and full:
            self.lost_ns = looked_ns, seen_ns
        self.awaited += [(time_ns, seen_ns) for time_ns in self._early(lines, first, query)]
        self.page, self.whole = digests, not full
        self._keep([(lines[place], digests[place]) for place in first], query, seen_ns)

    def serve(self, query: LogQuery) -> LogPage:
        """Answer a query from what is known: a page of lines, oldest first."""
        wanted = [
            kept
            for kept in self.kept
            if query.start_ns <= kept.line.time_ns <= query.end_ns
            and query.pod in ("", kept.line.pod)
            and query.contains in kept.line.text
        ]
        self.awaited = [one for one in self.awaited if not query.start_ns <= one[0] <= query.end_ns]
        shown = wanted[: query.limit]
        full = len(wanted) >= query.limit
        lost, self.lost_ns = self.lost_ns, None
        remarks, self.remarks = self.remarks, ()
        return LogPage(
            lines=tuple(kept.line for kept in shown),
            full=full,
            remarks=remarks,
            lost_ns=lost,
            bookmark=self._bookmark(shown[-1].line.time_ns if full and shown else None),
        )

    # --- what is new

    def _new(
        self, lines: Sequence[_Line], digests: Sequence[str], bookmark: str
    ) -> tuple[Sequence[int], bool]:
        """Return the places of new lines, and whether the page reaches back to lines seen before."""
        everything = range(len(lines))
        if self.page is None:
            if not bookmark:
                return everything, True
            place, sure = _anchor(digests, bookmark)
            if place is None or all(line.time_ns for line in lines):  # times tell what is new
                return everything, sure
            self.before = tuple(digests[: place + 1][-MARKED:])
            return everything[place + 1 :], sure
        shared = _shared(self.page, digests)
        in_sight = Counter(self.page[len(self.page) - shared :])
        told = Counter(self.page) | Counter(kept.digest for kept in self.kept)  # with a time none is like it
        new = []
        for place, digest in enumerate(digests):
            left = told if lines[place].time_ns else in_sight
            left[digest] -= 1
            if left[digest] < 0:
                new.append(place)
        return new, shared >= min(LEAST_SHARED, len(self.page))

    def _early(self, lines: Sequence[_Line], new: Sequence[int], query: LogQuery) -> list[int]:
        """Return the times of lines that are certainly new, from before what a query asks for.

        None of the first page: times tell what of it is news. What stands at the beginning of a page may be
        older lines that came into sight again, if the page before did not show all.
        """
        if self.page is None:
            return []
        begin = next((number for number, place in enumerate(new) if number != place), len(new))
        certain = new if self.whole else new[begin:]
        return [lines[place].time_ns for place in certain if 0 < lines[place].time_ns < query.start_ns]

    def _lines(self, row: LogRow) -> list[_Line]:
        time_ns = read_time_ns(row.time, self.zone) or 0
        texts = row.text.replace("\x00", "\ufffd").rstrip("\n").split("\n")
        return [_Line(text, row.pod or "", time_ns) for text in texts]

    # --- what is kept

    def _keep(self, new: Sequence[tuple[_Line, str]], query: LogQuery, seen_ns: int) -> None:
        newest = self.kept[-1].line.time_ns if self.kept else 0
        first = max(newest + STEP_NS, seen_ns - (len(new) - 1) * STEP_NS)
        for place, (line, digest) in enumerate(new):
            told_ns = line.time_ns if line.time_ns < seen_ns + FAR_NS else 0
            time_ns = told_ns or first + place * STEP_NS
            self.kept.append(_Kept(LogLine(time_ns, line.pod, line.text), digest))
        self.kept.sort(key=attrgetter("line.time_ns"))
        oldest = min((self.kept[-1].line.time_ns if self.kept else 0) - KEPT_NS, query.start_ns)
        self._pass_over(oldest, seen_ns)
        begin = next((n for n, kept in enumerate(self.kept) if kept.line.time_ns >= oldest), 0)
        begin = max(begin, len(self.kept) - MOST_KEPT)
        self.before = (*self.before, *(kept.digest for kept in self.kept[:begin][-MARKED:]))[-MARKED:]
        self.kept = self.kept[begin:]

    def _pass_over(self, oldest_ns: int, seen_ns: int) -> None:
        """Say which new lines nobody will ask for any more: when they came, their own time was long ago."""
        gone = [one for one in self.awaited if one[0] < oldest_ns or one[1] < seen_ns - KEPT_NS]
        if gone:
            self.awaited = [one for one in self.awaited if one not in gone]
            newest = f"{from_ns(max(gone)[0]):%Y-%m-%d %H:%M:%SZ}"
            self.remarks = (f"{TOO_LATE}: {len(gone)}, the newest is dated {newest}",)

    def _bookmark(self, until_ns: int | None) -> str:
        """What a later process needs to go on after the line at `until_ns` (None = the last one)."""
        told = [kept.digest for kept in self.kept if until_ns is None or kept.line.time_ns <= until_ns]
        return "".join((*self.before, *told[-MARKED:])[-MARKED:])


def _oldest_first(rows: LogRows) -> Sequence[LogRow]:
    """The items in the order they were written; one that says no order is taken to be in it."""
    return rows.rows[::-1] if rows.newest_first else rows.rows


def _shared(before: Sequence[str], now: Sequence[str]) -> int:
    """Return how many of the last lines of `before` are all in `now`, whatever came between them."""
    left = Counter(now)
    for number, digest in enumerate(reversed(before)):
        if not left[digest]:
            return number
        left[digest] -= 1
    return len(before)


def _anchor(digests: Sequence[str], bookmark: str) -> tuple[int | None, bool]:
    """Return the place of the last known line in a page, None if it is not there, and whether that is sure.

    The longest run of the bookmark's last lines decides, the last one if there are several. A very short one
    may be chance: it counts only where the page begins with it, which is what a page that slid on looks like.
    """
    marks = [bookmark[n : n + HASH_DIGITS] for n in range(0, len(bookmark), HASH_DIGITS)]
    best, length = None, 0
    for place in range(len(digests) - 1, -1, -1):
        run = 0
        while run < min(len(marks), place + 1) and digests[place - run] == marks[-1 - run]:
            run += 1
        if run > length:
            best, length = place, run
    sure = length >= min(LEAST_SHARED, len(marks))
    return (best if sure or best == length - 1 else None), sure
