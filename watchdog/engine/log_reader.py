"""Reads one log stream: asks page after page as `core.reading` says, and hands lines over.

What is read ahead of T1 is memory only: the durable cursor moves when a slot has consumed the
lines. Each round is bounded; a reader that stays too far behind falls back to the server's filter.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from watchdog.core.durations import duration_ns, to_ns
from watchdog.core.logs import LogLine, LogRows, StreamKey, StreamState
from watchdog.core.reading import (
    Unread,
    absorb,
    baseline_query,
    behind,
    count_baseline,
    fallback,
    first_run,
    plan,
)
from watchdog.core.tasks import Task
from watchdog.engine.inbox import Inbox, LinesArrived
from watchdog.ports import Clock, Source

Literals = tuple[tuple[str, ...], tuple[str, ...]]
"""Substrings that cover the log rules' patterns, and the patterns that none of them covers."""

PAGES_A_ROUND = 40
BASELINE_PAGES = 10
BASELINE_SPAN = timedelta(hours=24)


@dataclass(slots=True, kw_only=True)
class LogReader:
    """One followed stream. `state` runs ahead of what T1 has stored; None = never read.

    retired: nobody wants the stream any more; what is still being read of it is dropped.
    """

    task: Task
    key: StreamKey
    inbox: Inbox
    literals: Callable[[], Literals]  # what the server is to filter by when we fall behind
    state: StreamState | None = None
    retired: bool = False
    _began_ns: int = 0  # when the first read was first tried: what comes from then on is news
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def read(self, source: Source, clock: Clock) -> None:
        """Read what is new. A failure is raised after what came before it was handed over.

        One read at a time: while a source is replaced, the old and the new adapter may both ask.
        """
        async with self._turn:
            await self._read(source, clock)

    async def _read(self, source: Source, clock: Clock) -> None:
        at_ns = to_ns(clock.now())
        if self.state is None:
            self._began_ns = self._began_ns or at_ns
            await self._begin(source, self._began_ns)
            return
        query = plan(self.state, at_ns)
        arrived = _Round()
        try:
            for _ in range(PAGES_A_ROUND):
                page = await source.logs(self.task, query)
                absorbed = absorb(self.state, query, page, at_ns)
                self.state = absorbed.state
                arrived.lines.append(LogRows.of(absorbed.new_lines))
                arrived.unread.extend(absorbed.unread)
                arrived.remarks.extend(page.remarks)
                if absorbed.next_query is None:
                    break
                query = absorbed.next_query
            if behind(self.state, at_ns):
                literals, arrived.unsearched = self.literals()
                given_up = fallback(self.state, literals, at_ns)
                self.state = given_up.state
                arrived.unread.extend(given_up.unread)
        finally:
            self._hand_over(self.state, arrived)

    async def _begin(self, source: Source, at_ns: int) -> None:
        """Start at a moment; look at what stood there by then, so that it can be said what is not told."""
        standing: list[LogLine] = []
        more, bookmark = True, ""
        query = baseline_query(self.key, at_ns - duration_ns(BASELINE_SPAN), at_ns)
        for _ in range(BASELINE_PAGES):
            page = await source.logs(self.task, query)
            rows, following = count_baseline(query, page)
            standing += page.lines[:rows]
            bookmark = page.bookmark or bookmark
            if following is None:
                more = False
                break
            query = following
        self.state = first_run(self.key, at_ns, bookmark=bookmark)
        self._deliver(
            LinesArrived(
                task=self.task, state=self.state, lines=(), standing=tuple(standing), standing_more=more
            )
        )

    def _hand_over(self, state: StreamState, arrived: "_Round") -> None:
        self._deliver(
            LinesArrived(
                task=self.task,
                state=state,
                lines=LogRows.joined(arrived.lines),
                unread=tuple(arrived.unread),
                unsearched=arrived.unsearched,
                remarks=tuple(dict.fromkeys(arrived.remarks)),
            )
        )

    def _deliver(self, lines: LinesArrived) -> None:
        if not self.retired:
            self.inbox.lines.append(lines)


class _Round:
    """What one round of pages brought."""

    __slots__ = ("lines", "remarks", "unread", "unsearched")

    def __init__(self) -> None:
        self.lines: list[LogRows] = []
        self.unread: list[Unread] = []
        self.remarks: list[str] = []
        self.unsearched: tuple[str, ...] = ()
