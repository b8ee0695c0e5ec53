"""Reading: follows one log stream page by page, without a cursor on the server's side.

A pure state machine: `plan` says what to ask, `absorb` takes the page, tells the new lines and
the next question. The state it returns is a candidate; only T1 makes it true, and reading anew
from an older state yields the same lines. Knows neither sources nor what lines mean.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum

from watchdog.core.durations import duration_ns
from watchdog.core.logs import LogLine, LogPage, LogQuery, LogRows, Progress, ReadKind, StreamKey, StreamState
from watchdog.core.seen import SeenLines, line_hashes

# One round (a slot): first what was passed over (GAP), then what is new (HEAD, from the cursor minus
# an overlap to now), then, every few minutes, further back (SWEEP). A sweep ends where the newest
# HEAD began, so the two together have read everything visible at that slot, back to `sweep` before
# the previous one: no line that is up to `sweep` late is missed.
_ORDER = (ReadKind.GAP, ReadKind.HEAD, ReadKind.SWEEP)
_ROUND = 50  # a page with a multiple of this many rows may be the server's own, smaller maximum


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingPolicy:
    """How a stream is followed."""

    overlap: timedelta = timedelta(minutes=2)  # re-read at every poll
    sweep: timedelta = timedelta(minutes=10)  # a line this late is still found
    sweep_every: timedelta = timedelta(minutes=5)
    ahead: timedelta = timedelta(minutes=1)  # the source's clock may be this far ahead of ours
    max_lag: timedelta = timedelta(minutes=5)
    limit: int = 500
    max_seen: int = 100_000
    max_pods: int = 4_096


class UnreadReason(StrEnum):
    """Why lines were passed over."""

    CROWDED = "more lines with one time than a page holds"
    BEHIND = "fell behind"
    UNPAGED = "the server did not go on from where it was asked"
    SHORT = "the source shows only its newest lines"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """Lines passed over, from `start_ns` to `end_ns` (both included)."""

    start_ns: int
    end_ns: int
    reason: UnreadReason
    literals: tuple[str, ...] = ()  # lines with one of these are read all the same


@dataclass(frozen=True, slots=True, kw_only=True)
class Absorbed:
    """What one page brought. `new_lines` are in order of time, equal times in the page's order."""

    state: StreamState
    new_lines: Sequence[LogLine]
    next_query: LogQuery | None  # None: this round is done
    late: int = 0  # new lines older than what was already consumed, and than the overlap
    lag_ns: int = 0  # how far the reader is behind the slot; 0 = it reached the end
    unread: tuple[Unread, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fallback:
    """A reader that gave up reading everything: its state, and what stays unread."""

    state: StreamState
    unread: tuple[Unread, ...]


_DEFAULT = ReadingPolicy()


def first_run(key: StreamKey, at_ns: int, *, bookmark: str = "") -> StreamState:
    """Return the state of a stream never read before: it begins now; what stands there is no news."""
    progress = Progress(floor_ns=at_ns, complete_ns=at_ns, swept_ns=at_ns)
    return StreamState(key=key, cursor_ns=at_ns, bookmark=bookmark, progress=progress)


def taken_over(
    key: StreamKey, before: Sequence[StreamState], policy: ReadingPolicy = _DEFAULT
) -> StreamState:
    """Return the state of a stream that goes on where others of the same task stop being read.

    before: at least one. It begins an overlap before the end that they all reached, and knows the
    lines that any of them consumed there: none is skipped, and none comes twice.
    """
    before = [_known(state) for state in before]
    seen: dict[int, tuple[int, int]] = {}
    for state in before:
        for value, (time_ns, count) in state.seen.items():
            seen[value] = (time_ns, max(count, seen.get(value, (0, 0))[1]))
    reached_ns = min(state.progress.complete_ns or state.cursor_ns for state in before)
    floor_ns = max(
        reached_ns - duration_ns(policy.overlap), *(state.progress.floor_ns for state in before), 0
    )
    begun = first_run(key, reached_ns)
    progress = replace(begun.progress, floor_ns=floor_ns)
    return replace(
        begun, seen=SeenLines.of(seen), progress=progress, lines=max(state.lines for state in before)
    )


def baseline_query(key: StreamKey, since_ns: int, at_ns: int, policy: ReadingPolicy = _DEFAULT) -> LogQuery:
    """Return the first question for counting what stands in the log before watching begins."""
    return LogQuery(start_ns=since_ns, end_ns=at_ns, limit=policy.limit, pod=key.pod, contains=key.prefilter)


def count_baseline(query: LogQuery, page: LogPage) -> tuple[int, LogQuery | None]:
    """Return how many rows of this page the next one will not show again, and the next question."""
    following = _step(query, page).following
    if following is None:
        return len(page.lines), None
    if following.start_ns == query.start_ns:  # the same span again, in a smaller piece
        return 0, following
    return sum(time_ns < following.start_ns for time_ns in LogRows.of(page.lines).times), following


def plan(state: StreamState, at_ns: int, policy: ReadingPolicy = _DEFAULT) -> LogQuery:
    """Return the first question of a round. `at_ns`: the slot, the same for the whole round."""
    state = _known(state)
    return _next_query(state, at_ns, policy) or _fresh_head(state, at_ns, policy)


def absorb(
    state: StreamState, query: LogQuery, page: LogPage, at_ns: int, policy: ReadingPolicy = _DEFAULT
) -> Absorbed:
    """Take the answer to `query`, which `plan` or the last `absorb` asked.

    Ask on while `next_query` is not None, or stop after any page: the next round goes on there.
    """
    state = _begun(_known(state), query, at_ns, policy)
    seen, new_lines = _unseen(state, query, page)
    step = _step(query, page)
    others = [q for q in state.progress.pending if (q.kind, q.contains) != (query.kind, query.contains)]
    if step.following is not None:
        others.append(step.following)
    progress = replace(state.progress, pending=tuple(sorted(others, key=_urgency)))
    if step.following is None:
        progress = _finished(progress, query, at_ns, policy)
    moved = replace(
        _noted(state, new_lines, at_ns, policy),
        seen=seen,
        cursor_ns=_cursor(state, query, step, new_lines),
        bookmark=(page.bookmark if query.kind is ReadKind.HEAD else "") or state.bookmark,
        progress=progress,
    )
    after = _pruned(moved, policy)
    horizon_ns = min(state.cursor_ns, at_ns - duration_ns(policy.overlap))
    return Absorbed(
        state=after,
        new_lines=new_lines,
        next_query=_next_query(after, at_ns, policy),
        late=0 if query.kind is ReadKind.GAP else bisect_left(new_lines.times, horizon_ns),
        lag_ns=_lag(after, at_ns),
        unread=(*step.unread, *_lost(page)),
    )


def behind(state: StreamState, at_ns: int, policy: ReadingPolicy = _DEFAULT) -> bool:
    """Whether an unfinished round left the reader too far behind; time for a `fallback`."""
    return _lag(state, at_ns) > duration_ns(policy.max_lag)


def fallback(
    state: StreamState, literals: Iterable[str], at_ns: int, policy: ReadingPolicy = _DEFAULT
) -> Fallback:
    """Give up reading every line up to now: read on at `at_ns`, and of what is passed over only
    the lines that hold one of `literals` (see `core.literals`), as the server filters them.

    A passed-over stretch that was not filtered to its end yet is given up with it.
    """
    state = _known(state)
    wanted = tuple(dict.fromkeys(literals))
    given_up = tuple(
        Unread(start_ns=q.start_ns, end_ns=_until(q), reason=UnreadReason.BEHIND)
        for q in state.progress.pending
        if q.kind is ReadKind.GAP
    )
    start_ns = min(_head_start(state, policy), at_ns)
    gaps = tuple(
        LogQuery(
            start_ns=start_ns,
            end_ns=at_ns,
            limit=policy.limit,
            pod=state.key.pod,
            contains=literal,
            kind=ReadKind.GAP,
        )
        for literal in wanted
    )
    progress = replace(
        state.progress,
        floor_ns=max(at_ns, state.progress.floor_ns),
        swept_ns=at_ns,
        head_from_ns=at_ns,
        head_began_ns=at_ns,
        pending=gaps,
    )
    moved = replace(state, cursor_ns=max(state.cursor_ns, at_ns), progress=progress)
    passed = Unread(start_ns=start_ns, end_ns=at_ns, reason=UnreadReason.BEHIND, literals=wanted)
    return Fallback(state=_pruned(moved, policy), unread=(*given_up, passed))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """How a run of pages goes on after one page."""

    following: LogQuery | None
    unread: tuple[Unread, ...] = ()


def _step(query: LogQuery, page: LogPage) -> _Step:
    times = LogRows.of(page.lines).times
    if not page.full and (not times or len(times) % _ROUND):
        return _Step(following=_next_piece(query))
    newest = max(times, default=query.start_ns)
    if newest < query.start_ns:
        unread = Unread(start_ns=query.start_ns, end_ns=_until(query), reason=UnreadReason.UNPAGED)
        return _Step(following=None, unread=(unread,) if page.full else ())
    if newest == query.start_ns:
        return _over(query, page)
    if not page.full or _ascending(times):
        start_ns = min(newest, query.end_ns)
        return _Step(following=replace(query, start_ns=start_ns, until_ns=_until(query)))
    # Out of order: which rows are missing is unknown, so ask for a smaller piece until it is whole.
    half = query.start_ns + (min(newest, query.end_ns) - query.start_ns) // 2
    return _Step(following=replace(query, end_ns=half, until_ns=_until(query)))


def _lost(page: LogPage) -> tuple[Unread, ...]:
    if page.lost_ns is None:
        return ()
    return (Unread(start_ns=page.lost_ns[0], end_ns=page.lost_ns[1], reason=UnreadReason.SHORT),)


def _over(query: LogQuery, page: LogPage) -> _Step:
    """Step over one moment that fills a whole page: there is no way to page through it."""
    crowded = Unread(start_ns=query.start_ns, end_ns=query.start_ns, reason=UnreadReason.CROWDED)
    unread = (crowded,) if page.full else ()
    if query.start_ns < query.end_ns:
        return _Step(following=replace(query, start_ns=query.start_ns + 1), unread=unread)
    return _Step(following=_next_piece(query), unread=unread)


def _next_piece(query: LogQuery) -> LogQuery | None:
    until = _until(query)
    if query.end_ns >= until:
        return None
    start_ns = query.end_ns if query.end_ns > query.start_ns else query.end_ns + 1
    return replace(query, start_ns=start_ns, end_ns=until)


def _ascending(times: Sequence[int]) -> bool:
    return list(times) == sorted(times)


def _until(query: LogQuery) -> int:
    return query.until_ns or query.end_ns


def _urgency(query: LogQuery) -> int:
    return _ORDER.index(query.kind)


def _known(state: StreamState) -> StreamState:
    """Make up for progress that was never stored: what was seen is all that is known."""
    if state.progress.floor_ns or state.progress.swept_ns:
        return state
    oldest = min((time_ns for time_ns, _ in state.seen.values()), default=state.cursor_ns + 1)
    progress = replace(state.progress, floor_ns=oldest - 1, swept_ns=state.cursor_ns)
    return replace(state, progress=progress)


def _head_start(state: StreamState, policy: ReadingPolicy) -> int:
    for query in state.progress.pending:
        if query.kind is ReadKind.HEAD:
            return query.start_ns
    return max(state.cursor_ns - duration_ns(policy.overlap), state.progress.floor_ns + 1)


def _fresh_head(state: StreamState, at_ns: int, policy: ReadingPolicy) -> LogQuery:
    """From the cursor minus the overlap to now; a clock set back must not hide new lines."""
    until = max(at_ns, state.cursor_ns) + duration_ns(policy.ahead)
    return LogQuery(
        start_ns=_head_start(state, policy),
        end_ns=until,
        limit=policy.limit,
        pod=state.key.pod,
        contains=state.key.prefilter,
        bookmark=state.bookmark,
    )


def _next_query(state: StreamState, at_ns: int, policy: ReadingPolicy) -> LogQuery | None:
    pending = list(state.progress.pending)
    fresh = _fresh_head(state, at_ns, policy)
    heads = [query for query in pending if query.kind is ReadKind.HEAD]
    if heads:  # an unfinished one goes on where it stopped, but to today's end
        pending.remove(heads[0])
        until = max(fresh.end_ns, _until(heads[0]))
        end = until if heads[0].end_ns >= _until(heads[0]) else heads[0].end_ns
        pending.append(replace(heads[0], end_ns=end, until_ns=until))
    elif state.progress.complete_ns != at_ns:
        pending.append(fresh)
    return min(pending, key=_urgency, default=None)


def _begun(state: StreamState, query: LogQuery, at_ns: int, policy: ReadingPolicy) -> StreamState:
    """Note where a HEAD began, if this is its first page."""
    going_on = any(pending.kind is ReadKind.HEAD for pending in state.progress.pending)
    if query.kind is not ReadKind.HEAD or going_on:
        return state
    progress = replace(state.progress, head_from_ns=query.start_ns, head_began_ns=at_ns)
    return replace(state, progress=progress)


def _unseen(state: StreamState, query: LogQuery, page: LogPage) -> tuple[SeenLines, LogRows]:
    """Return what was seen with this page, and the rows beyond what was seen before, in order of time.

    A page shows every row of a moment, save the last one of a full page; the count within one
    page is therefore never too high, and reading a page twice changes nothing.
    """
    rows = _wanted(state, query, LogRows.of(page.lines).in_order())
    seen, fresh = SeenLines.of(state.seen).with_page(line_hashes(rows), rows.times)
    return seen, rows if len(fresh) == len(rows) else rows.picked(fresh)


def _wanted(state: StreamState, query: LogQuery, rows: LogRows) -> LogRows:
    """Return those of some lines, which are in order of time, that are what was asked for."""
    if query.kind is ReadKind.GAP:
        rows = rows[bisect_left(rows.times, query.start_ns) : bisect_right(rows.times, _until(query))]
        return rows.picked([n for n, text in enumerate(rows.texts) if state.key.prefilter in text])
    return rows[bisect_left(rows.times, state.progress.floor_ns + 1) :]


def _cursor(state: StreamState, query: LogQuery, step: _Step, new_lines: LogRows) -> int:
    if query.kind is not ReadKind.HEAD or not new_lines:
        return state.cursor_ns
    # Not past what is still to be read, and not to a moment that lies in the future.
    limit = _until(query) if step.following is None else step.following.start_ns
    return max(state.cursor_ns, min(new_lines.times[-1], limit))


def _noted(state: StreamState, new_lines: LogRows, at_ns: int, policy: ReadingPolicy) -> StreamState:
    if not new_lines:
        return state
    newest, arrived = dict(state.newest_ns), dict(state.arrived_ns)
    for pod, time_ns in dict(
        zip(new_lines.pods, new_lines.times, strict=True)
    ).items():  # the last one of each
        newest[pod] = max(newest.get(pod, time_ns), time_ns)
        arrived[pod] = at_ns  # also if our clock was set back
    if len(arrived) > policy.max_pods:
        kept = sorted(arrived, key=lambda pod: (arrived[pod], newest[pod]))[-policy.max_pods :]
        newest, arrived = {pod: newest[pod] for pod in kept}, {pod: arrived[pod] for pod in kept}
    return replace(state, newest_ns=newest, arrived_ns=arrived, lines=state.lines + len(new_lines))


def _finished(progress: Progress, query: LogQuery, at_ns: int, policy: ReadingPolicy) -> Progress:
    """Close a run of pages; after a HEAD, begin a sweep if one is due."""
    if query.kind is ReadKind.SWEEP:
        return replace(progress, swept_ns=progress.sweep_began_ns)
    if query.kind is ReadKind.GAP:
        return progress
    progress = replace(progress, complete_ns=at_ns)
    began_ns = progress.head_began_ns
    due = not 0 <= began_ns - progress.swept_ns < duration_ns(policy.sweep_every)
    if not due or any(pending.kind is ReadKind.SWEEP for pending in progress.pending):
        return progress
    # By the lines' own times too: our clock may be ahead of the source's.
    lines_ns = progress.head_from_ns + duration_ns(policy.overlap - policy.sweep_every)
    start_ns = min(progress.swept_ns, began_ns, lines_ns) - duration_ns(policy.sweep)
    start_ns = max(start_ns, progress.floor_ns + 1)
    if start_ns >= progress.head_from_ns:  # the HEAD itself began far enough back
        return replace(progress, swept_ns=began_ns)
    sweep = replace(query, kind=ReadKind.SWEEP, start_ns=start_ns, end_ns=progress.head_from_ns, until_ns=0)
    return replace(progress, sweep_began_ns=began_ns, pending=(*progress.pending, sweep))


def _pruned(state: StreamState, policy: ReadingPolicy) -> StreamState:
    """Forget the lines that no later question can show again; if there are too many, the oldest.

    Whatever is forgotten lies below the floor, so that it is never taken for new.
    """
    progress = state.progress
    starts = [query.start_ns for query in progress.pending if query.kind is not ReadKind.GAP]
    gaps = [query.start_ns for query in progress.pending if query.kind is ReadKind.GAP]
    overlap, sweep = duration_ns(policy.overlap), duration_ns(policy.sweep)
    late = sweep + duration_ns(policy.sweep_every)
    reach_ns = min(state.cursor_ns - max(overlap, late), progress.swept_ns - sweep, *starts)
    floor_ns = max(progress.floor_ns, reach_ns - 1)
    needed = SeenLines.of(state.seen).since(min(floor_ns + 1, *gaps) if gaps else floor_ns + 1)
    kept, whole_from_ns = needed.capped(policy.max_seen)
    if whole_from_ns:
        heads = (query.start_ns - 1 for query in progress.pending if query.kind is ReadKind.HEAD)
        floor_ns = max(floor_ns, min(whole_from_ns - 1, state.cursor_ns, *heads))
    evicted = progress.evicted + len(needed) - len(kept)
    return replace(state, seen=kept, progress=replace(progress, floor_ns=floor_ns, evicted=evicted))


def _lag(state: StreamState, at_ns: int) -> int:
    starts = (query.start_ns for query in state.progress.pending if query.kind is ReadKind.HEAD)
    return max(at_ns - min(starts, default=at_ns), 0)
