"""Reading against an honest log server: what is visible in time is delivered, and never twice."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from watchdog.core.logs import LogLine, LogPage, LogQuery, StreamKey, StreamState
from watchdog.core.reading import ReadingPolicy, Unread, absorb, first_run, plan

SECOND = 1_000_000_000
START = 1_800_000_000 * SECOND
POLL = 60 * SECOND
LAST = 20 * 60  # seconds
KEY = StreamKey(task="alaya/1")


@dataclass(frozen=True)
class Row:
    line: LogLine
    visible_ns: int


@dataclass
class Server:
    """Answers as the documented log calls do: no cursor, no total, bounds included."""

    rows: list[Row]
    page_size: int
    unsorted: bool = False

    def answer(self, query: LogQuery, now_ns: int) -> LogPage:
        found = [
            row.line
            for row in self.rows
            if row.visible_ns <= now_ns and query.start_ns <= row.line.time_ns <= query.end_ns
        ]
        found = [line for line in found if query.contains in line.text and query.pod in ("", line.pod)]
        found.sort(key=lambda line: line.time_ns)
        limit = min(query.limit, self.page_size)
        page = found[:limit]
        if self.unsorted:
            page.sort(key=lambda line: (line.pod, -line.time_ns))
        return LogPage(lines=tuple(page), full=len(found) >= limit)


@dataclass
class Reader:
    """A daemon: reads rounds of pages and now and then dies before its commit."""

    server: Server
    policy: ReadingPolicy
    stored: StreamState
    told: Counter[LogLine] = field(default_factory=Counter)  # what was committed with the state
    unread: list[Unread] = field(default_factory=list)

    def round(self, at_ns: int, budget: int, *, commits: bool) -> None:
        state = self.stored
        lines: list[LogLine] = []
        unread: list[Unread] = []
        query: LogQuery | None = plan(state, at_ns, self.policy)
        while query is not None and budget:
            budget -= 1
            page = self.server.answer(query, at_ns)
            absorbed = absorb(state, query, page, at_ns, self.policy)
            state, query = absorbed.state, absorbed.next_query
            lines += absorbed.new_lines
            unread += absorbed.unread
        if commits:
            self.stored = state
            self.told.update(lines)
            self.unread += unread


@st.composite
def rows(draw: st.DrawFn, *, most_late: int) -> list[Row]:
    """Lines of twenty minutes, from few moments, pods and texts, so that many are alike."""
    drawn = draw(
        st.lists(
            st.tuples(
                st.integers(1, LAST),
                st.sampled_from(["a", "b"]),
                st.sampled_from(["step", "ERROR x"]),
                st.one_of(st.just(0), st.integers(0, most_late)),
                st.integers(1, 3),
            ),
            max_size=40,
        )
    )
    return [
        Row(LogLine(START + second * SECOND, pod, text), START + (second + late) * SECOND)
        for second, pod, text, late, copies in drawn
        for _ in range(copies)
    ]


ROUNDS = st.lists(st.tuples(st.integers(1, 6), st.booleans()), min_size=3, max_size=20)
POLICY = ReadingPolicy(limit=500)


def _run(server: Server, rounds: list[tuple[int, bool]], policy: ReadingPolicy = POLICY) -> Reader:
    reader = Reader(server, policy, first_run(KEY, START))
    at_ns = START
    for wait, commits in rounds:
        at_ns += wait * POLL
        reader.round(at_ns, 10_000, commits=commits)
    while at_ns < START + (LAST + 600 + 6 * 60) * SECOND:  # the last line and a sweep behind it
        at_ns += POLL
        reader.round(at_ns, 10_000, commits=True)
    return reader


@settings(max_examples=80, deadline=None)
@given(rows=rows(most_late=600), rounds=ROUNDS, page=st.sampled_from([7, 50, 500]), unsorted=st.booleans())
def test_lines_up_to_the_sweep_late_are_told_exactly_once(
    rows: list[Row], rounds: list[tuple[int, bool]], page: int, unsorted: bool
) -> None:
    reader = _run(Server(rows, page, unsorted), rounds)

    crowded = {unread.start_ns for unread in reader.unread}
    expected = Counter(row.line for row in rows if row.line.time_ns not in crowded)
    told = Counter({line: n for line, n in reader.told.items() if line.time_ns not in crowded})
    assert told == expected


@settings(max_examples=50, deadline=None)
@given(rows=rows(most_late=4000), rounds=ROUNDS, budget=st.integers(1, 4))
def test_nothing_is_told_more_often_than_it_was_written(
    rows: list[Row], rounds: list[tuple[int, bool]], budget: int
) -> None:
    server = Server(rows, 5)
    reader = Reader(server, POLICY, first_run(KEY, START))
    at_ns = START

    for wait, commits in rounds:
        at_ns += wait * POLL
        reader.round(at_ns, budget, commits=commits)

    written = Counter(row.line for row in rows)
    assert all(count <= written[line] for line, count in reader.told.items())


@settings(max_examples=50, deadline=None)
@given(rows=rows(most_late=0), rounds=ROUNDS, budget=st.integers(1, 4))
def test_a_small_page_budget_delays_but_loses_nothing(
    rows: list[Row], rounds: list[tuple[int, bool]], budget: int
) -> None:
    reader = Reader(Server(rows, 6), POLICY, first_run(KEY, START))
    at_ns = START

    for wait, commits in rounds:
        at_ns += wait * POLL
        reader.round(at_ns, budget, commits=commits)
    for _ in range(200):
        at_ns += POLL
        reader.round(at_ns, budget, commits=True)

    crowded = {unread.start_ns for unread in reader.unread}
    missing = Counter(row.line for row in rows) - reader.told
    assert {line.time_ns for line in missing} <= crowded


@settings(max_examples=30, deadline=None)
@given(rows=rows(most_late=600), rounds=ROUNDS)
def test_reading_again_from_an_older_state_brings_the_same_lines(
    rows: list[Row], rounds: list[tuple[int, bool]]
) -> None:
    server = Server(rows, 50)
    first = _run(server, [(wait, True) for wait, _ in rounds])
    crashing = _run(server, rounds)

    assert first.told == crashing.told


@pytest.mark.parametrize("late_minutes", [0, 1, 3, 5, 7, 9, 10])
@pytest.mark.parametrize("offset", [1, 59])
def test_a_lone_late_line_in_a_busy_stream_is_found(late_minutes: int, offset: int) -> None:
    busy = [Row(LogLine(START + s * SECOND, "a", f"step {s}"), START + s * SECOND) for s in range(1, 2400, 7)]
    for minute in range(11, 17):
        time_ns = START + (minute * 60 + offset) * SECOND
        late = Row(LogLine(time_ns, "b", "ERROR x"), time_ns + late_minutes * 60 * SECOND)
        reader = Reader(Server([*busy, late], 500), ReadingPolicy(), first_run(KEY, START))
        for slot in range(1, 33):
            reader.round(START + slot * POLL, 100, commits=True)

        assert reader.told[late.line] == 1


def test_the_sweep_policy_can_be_shorter_than_the_default() -> None:
    policy = ReadingPolicy(sweep=timedelta(minutes=3), sweep_every=timedelta(minutes=1))
    row = Row(LogLine(START + 60 * SECOND, "b", "ERROR x"), START + 230 * SECOND)

    reader = _run(Server([row], 500), [(1, True)] * 10, policy)

    assert reader.told[row.line] == 1
