from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

from watchdog.core.logs import LogLine, LogPage, LogQuery, Progress, ReadKind, StreamKey, StreamState
from watchdog.core.reading import (
    Absorbed,
    ReadingPolicy,
    UnreadReason,
    absorb,
    baseline_query,
    behind,
    count_baseline,
    fallback,
    first_run,
    plan,
)

SECOND = 1_000_000_000
MINUTE = 60 * SECOND
T0 = 1_800_000_000 * SECOND
KEY = StreamKey(task="alaya/1")
POLICY = ReadingPolicy()


def line(at_ns: int, text: str = "x", pod: str = "p") -> LogLine:
    return LogLine(T0 + at_ns, pod, text)


def page(*lines: LogLine, full: bool = False) -> LogPage:
    return LogPage(lines=lines, full=full)


def started() -> StreamState:
    return first_run(KEY, T0)


def read(
    state: StreamState, at_ns: int, *pages: LogPage, policy: ReadingPolicy = POLICY
) -> tuple[StreamState, list[Absorbed]]:
    """One round in which the server answers with these pages and then with nothing."""
    answers = list(pages)
    query: LogQuery | None = plan(state, T0 + at_ns, policy)
    steps = []
    while query is not None:
        answer = answers.pop(0) if answers else page()
        steps.append(absorb(state, query, answer, T0 + at_ns, policy))
        state, query = steps[-1].state, steps[-1].next_query
    return state, steps


def new(steps: Iterable[Absorbed]) -> list[str]:
    return [line.text for step in steps for line in step.new_lines]


def test_a_first_run_begins_now_and_old_lines_are_no_news() -> None:
    state = started()

    query = plan(state, T0 + MINUTE)
    _, steps = read(state, MINUTE, page(line(-5, "old"), line(0, "just now"), line(5, "new")))

    assert query.start_ns == T0 + 1
    assert query.end_ns >= T0 + MINUTE
    assert (query.limit, query.kind) == (500, ReadKind.HEAD)
    assert new(steps) == ["new"]


def test_what_stands_in_the_log_is_counted_over_all_pages() -> None:
    rows = [line(-1000 + n // 3, f"ERROR {n}") for n in range(1200)]
    query: LogQuery | None = baseline_query(KEY, T0 - MINUTE, T0)
    count = 0

    while query is not None:
        found = [row for row in rows if query.start_ns <= row.time_ns <= query.end_ns][: query.limit]
        more, query = count_baseline(query, page(*found, full=len(found) == query.limit))
        count += more

    assert count == 1200


def test_the_next_round_reads_the_overlap_again_and_tells_nothing_twice() -> None:
    state, _ = read(started(), 5 * MINUTE, page(line(4 * MINUTE, "a")))

    query = plan(state, T0 + 6 * MINUTE)
    state, steps = read(state, 6 * MINUTE, page(line(4 * MINUTE, "a"), line(5 * MINUTE, "b")))

    assert query.start_ns == T0 + 2 * MINUTE
    assert new(steps) == ["b"]
    assert state.cursor_ns == T0 + 5 * MINUTE


def test_two_identical_rows_count_two_and_stay_two() -> None:
    same = [line(30 * SECOND, "ERROR x")] * 2

    state, first = read(started(), MINUTE, page(*same))
    state, second = read(state, 2 * MINUTE, page(*same))
    state, third = read(state, 3 * MINUTE, page(*same, same[0]))

    assert (new(first), new(second), new(third)) == (["ERROR x"] * 2, [], ["ERROR x"])
    assert state.lines == 3


def test_a_full_page_is_continued_from_its_last_moment() -> None:
    rows = [line(n * SECOND, f"l{n}") for n in range(1, 601)]
    state = started()
    at = 11 * MINUTE

    first = absorb(state, plan(state, T0 + at), page(*rows[:500], full=True), T0 + at)
    assert first.next_query is not None
    second = absorb(first.state, first.next_query, page(*rows[499:]), T0 + at)

    assert first.next_query.start_ns == rows[499].time_ns
    assert first.state.cursor_ns == rows[499].time_ns
    assert first.lag_ns == at - 500 * SECOND
    assert len(first.new_lines) == 500
    assert new([second]) == [f"l{n}" for n in range(501, 601)]
    assert second.lag_ns == 0


def test_a_page_border_through_identical_rows_loses_and_doubles_none() -> None:
    rows = [line(n, "a") for n in range(1, 5)] + [line(9, "same")] * 4 + [line(20, "b")]
    state = started()

    one = absorb(state, plan(state, T0 + MINUTE), page(*rows[:6], full=True), T0 + MINUTE)
    assert one.next_query is not None
    two = absorb(one.state, one.next_query, page(*rows[4:]), T0 + MINUTE)

    assert new([one, two]).count("same") == 4
    assert new([one, two]).count("b") == 1


def test_a_moment_that_fills_a_page_is_stepped_over_and_said() -> None:
    crowd = page(*(line(7, f"c{n}") for n in range(500)), full=True)
    state = started()

    one = absorb(state, plan(state, T0 + MINUTE), crowd, T0 + MINUTE)
    assert one.next_query is not None
    two = absorb(one.state, one.next_query, crowd, T0 + MINUTE)

    assert one.next_query.start_ns == T0 + 7
    assert one.unread == ()
    assert two.next_query is not None
    assert two.next_query.start_ns == T0 + 8
    (unread,) = two.unread
    assert (unread.start_ns, unread.end_ns, unread.reason) == (T0 + 7, T0 + 7, UnreadReason.CROWDED)
    assert two.new_lines == ()


def test_a_server_with_a_smaller_page_of_its_own_is_asked_on() -> None:
    rows = [line(n * SECOND, f"l{n}") for n in range(1, 101)]
    state = started()

    one = absorb(state, plan(state, T0 + 2 * MINUTE), page(*rows), T0 + 2 * MINUTE)

    assert one.next_query is not None
    assert one.next_query.start_ns == rows[-1].time_ns
    assert absorb(one.state, one.next_query, page(rows[-1]), T0 + 2 * MINUTE).next_query is None


def test_an_unsorted_full_page_is_asked_again_in_smaller_pieces() -> None:
    state = started()
    query = plan(state, T0 + MINUTE)
    mixed = page(line(40, "d"), line(10, "a"), full=True)

    one = absorb(state, query, mixed, T0 + MINUTE)
    assert one.next_query is not None
    two = absorb(one.state, one.next_query, page(line(10, "a"), line(15, "b")), T0 + MINUTE)
    assert two.next_query is not None
    three = absorb(two.state, two.next_query, page(line(30, "c"), line(40, "d")), T0 + MINUTE)

    assert one.next_query.end_ns < T0 + 40
    assert one.state.cursor_ns <= one.next_query.start_ns
    assert (two.next_query.start_ns, two.next_query.end_ns) == (one.next_query.end_ns, query.end_ns)
    assert new([one, two, three]) == ["a", "d", "b", "c"]


def test_a_server_that_ignores_the_bounds_ends_the_round_and_is_reported() -> None:
    state = started()
    old = page(*(line(-MINUTE + n) for n in range(500)), full=True)

    step = absorb(state, plan(state, T0 + MINUTE), old, T0 + MINUTE)

    assert step.new_lines == ()
    assert step.next_query is None
    assert step.unread[0].reason is UnreadReason.UNPAGED


def test_a_late_line_within_the_sweep_is_found_and_counted_as_late() -> None:
    state = started()
    for minute in range(1, 8):
        state, _ = read(state, minute * MINUTE, page(line(minute * MINUTE - SECOND, f"step {minute}")))
    late = line(SECOND, "ERROR late")

    kinds = []
    found: list[Absorbed] = []
    for minute in range(8, 14):
        query: LogQuery | None = plan(state, T0 + minute * MINUTE)
        while query is not None:
            kinds.append(query.kind)
            rows = [late] if query.start_ns <= late.time_ns <= query.end_ns else []
            step = absorb(state, query, page(*rows), T0 + minute * MINUTE)
            state, query = step.state, step.next_query
            found.append(step)

    assert new(found) == ["ERROR late"]
    assert sum(step.late for step in found) == 1
    assert ReadKind.SWEEP in kinds


def test_lines_read_after_a_downtime_are_not_late_ones() -> None:
    state, _ = read(started(), MINUTE, page(line(50 * SECOND, "a")))

    state, steps = read(state, 21 * MINUTE, page(line(6 * MINUTE, "ERROR b")))

    assert new(steps) == ["ERROR b"]
    assert sum(step.late for step in steps) == 0


def test_a_busy_stream_sweeps_now_and_then_not_at_every_poll() -> None:
    state = started()
    sweeps = 0
    for minute in range(1, 61):
        state, steps = read(state, minute * MINUTE, page(line(minute * MINUTE, f"step {minute}")))
        sweeps += len(steps) - 1

    assert 8 <= sweeps <= 12


def test_a_round_that_was_cut_short_goes_on_where_it_stopped() -> None:
    state = started()
    at = T0 + 20 * MINUTE
    full = page(*(line(n * SECOND, f"l{n}") for n in range(1, 501)), full=True)

    cut = absorb(state, plan(state, at), full, at).state

    query = plan(cut, at + MINUTE)
    assert query.start_ns == T0 + 500 * SECOND
    assert query.end_ns >= at + MINUTE


def test_reading_again_from_the_old_state_brings_the_same_lines() -> None:
    state, _ = read(started(), MINUTE, page(line(SECOND, "a")))
    rows = page(line(SECOND, "a"), line(70 * SECOND, "b"))

    _, once = read(state, 2 * MINUTE, rows)
    _, again = read(state, 3 * MINUTE, rows)

    assert new(once) == new(again) == ["b"]


def test_arrivals_and_newest_times_are_kept_per_pod() -> None:
    state, _ = read(started(), MINUTE, page(line(SECOND, "a", "p"), line(2 * SECOND, "b", "q")))
    state, _ = read(state, 2 * MINUTE, page(line(65 * SECOND, "c", "q")))

    assert state.arrived_ns == {"p": T0 + MINUTE, "q": T0 + 2 * MINUTE}
    assert state.newest_ns == {"p": T0 + SECOND, "q": T0 + 65 * SECOND}
    assert state.lines == 3


def test_pods_that_come_and_go_for_months_do_not_pile_up() -> None:
    policy = ReadingPolicy(max_pods=3)
    state = started()
    for n in range(1, 9):
        state, _ = read(state, n * MINUTE, page(line(n * MINUTE, "x", f"p{n}")), policy=policy)

    assert set(state.arrived_ns) == set(state.newest_ns) == {"p6", "p7", "p8"}


def test_a_time_in_the_future_does_not_carry_the_cursor_away() -> None:
    state, _ = read(started(), MINUTE, page(line(SECOND, "a"), line(10_000 * MINUTE, "future")))

    assert state.cursor_ns <= T0 + 2 * MINUTE
    assert plan(state, T0 + 2 * MINUTE).start_ns < T0 + MINUTE


def test_a_clock_set_back_does_not_hide_new_lines() -> None:
    state, _ = read(started(), 60 * MINUTE, page(line(60 * MINUTE - SECOND, "a")))

    query = plan(state, T0 + MINUTE)  # an hour back
    _, steps = read(state, MINUTE, page(line(60 * MINUTE + SECOND, "b")))

    assert query.start_ns < query.end_ns
    assert query.end_ns > T0 + 60 * MINUTE
    assert new(steps) == ["b"]


def test_only_lines_a_re_read_may_show_again_are_remembered() -> None:
    state = started()
    for minute in range(1, 121):
        state, _ = read(state, minute * MINUTE, page(line(minute * MINUTE, f"step {minute}")))

    assert len(state.seen) <= 18
    assert min(time_ns for time_ns, _ in state.seen.values()) > T0 + 100 * MINUTE
    assert state.progress.evicted == 0


def test_more_lines_than_are_remembered_are_told_once_and_never_again() -> None:
    policy = ReadingPolicy(max_seen=5_000)
    state, at = started(), T0 + 30 * MINUTE
    rows = [line(n * 50_000_000, f"l{n}") for n in range(1, 20_001)]  # 20 a second
    query: LogQuery | None = plan(state, at, policy)
    told = 0
    while query is not None:
        first = max(0, (query.start_ns - T0) // 50_000_000 - 1)
        found = [row for row in rows[first : first + 502] if row.time_ns >= query.start_ns][:500]
        step = absorb(state, query, page(*found, full=len(found) == 500), at, policy)
        told += len(step.new_lines)
        state, query = step.state, step.next_query

    again = absorb(state, plan(state, at, policy), page(*rows[:500], full=False), at, policy)

    assert told == 20_000
    assert len(state.seen) <= 5_000
    assert state.progress.evicted > 14_000
    assert again.new_lines == ()


def far_behind() -> tuple[StreamState, int]:
    at = T0 + 30 * MINUTE
    full = page(*(line(n * SECOND, f"l{n}") for n in range(1, 501)), full=True)
    return absorb(started(), plan(started(), at), full, at).state, at


def test_a_reader_is_behind_only_while_pages_are_left_unread() -> None:
    state, at = far_behind()
    quiet, _ = read(started(), 30 * MINUTE)

    assert behind(state, at)
    assert not behind(state, at, ReadingPolicy(max_lag=timedelta(hours=1)))
    assert not behind(quiet, at)


def test_a_fallback_reads_only_lines_with_the_literals_and_says_from_when_to_when() -> None:
    state, at = far_behind()

    given_up = fallback(state, ["ERROR", "Traceback", "ERROR"], at)
    _, steps = read(
        given_up.state,
        30 * MINUTE,
        page(line(600 * SECOND, "ERROR a"), line(700 * SECOND, "ERROR Traceback")),
        page(line(700 * SECOND, "ERROR Traceback")),
    )

    (unread,) = given_up.unread
    assert (unread.start_ns, unread.end_ns) == (T0 + 500 * SECOND, at)
    assert (unread.reason, unread.literals) == (UnreadReason.BEHIND, ("ERROR", "Traceback"))
    assert given_up.state.cursor_ns == at
    assert not behind(given_up.state, at)
    assert new(steps) == ["ERROR a", "ERROR Traceback"]


def test_after_a_fallback_the_passed_over_stretch_is_asked_with_the_filter_and_then_now() -> None:
    state, at = far_behind()
    state = fallback(state, ["ERROR", "oom"], at).state
    asked = []
    query: LogQuery | None = plan(state, at + MINUTE)
    while query is not None:
        asked.append((query.kind, query.contains, query.start_ns))
        step = absorb(state, query, page(), at + MINUTE)
        state, query = step.state, step.next_query

    assert asked == [
        (ReadKind.GAP, "ERROR", T0 + 500 * SECOND),
        (ReadKind.GAP, "oom", T0 + 500 * SECOND),
        (ReadKind.HEAD, "", at + 1),
    ]
    assert state.progress.pending == ()


def test_a_passed_over_line_without_a_literal_is_never_told_later() -> None:
    state, at = far_behind()
    state = fallback(state, [], at).state

    for minute in range(31, 45):
        state, steps = read(state, minute * MINUTE, page(line(600 * SECOND, "ERROR a")))
        assert new(steps) == []


def test_a_second_fallback_gives_up_the_first_gap_and_says_so() -> None:
    state, at = far_behind()
    once = fallback(state, ["ERROR"], at)

    twice = fallback(once.state, ["ERROR"], at + 10 * MINUTE)

    assert [(unread.end_ns, unread.literals) for unread in twice.unread] == [
        (at, ()),
        (at + 10 * MINUTE, ("ERROR",)),
    ]
    assert len(twice.state.progress.pending) == 1


def test_a_gap_of_a_prefiltered_stream_keeps_the_prefilter() -> None:
    key = StreamKey(task="alaya/1", prefilter="rank0")
    state = fallback(first_run(key, T0), ["ERROR"], T0 + 30 * MINUTE).state

    query = plan(state, T0 + 30 * MINUTE)
    step = absorb(state, query, page(line(5, "rank1 ERROR"), line(6, "rank0 ERROR")), T0 + 30 * MINUTE)

    assert new([step]) == ["rank0 ERROR"]


def test_a_narrowed_stream_asks_for_its_pod_and_filter() -> None:
    query = plan(first_run(StreamKey(task="t", pod="p-0", prefilter="ERR"), T0), T0 + MINUTE)

    assert (query.pod, query.contains) == ("p-0", "ERR")


def test_progress_that_was_not_stored_is_made_up_from_what_was_seen() -> None:
    state, _ = read(started(), 20 * MINUTE, page(line(19 * MINUTE, "a"), line(19 * MINUTE + 1, "b")))
    bare = replace(state, progress=Progress(), seen=dict(state.seen))

    _, steps = read(
        bare, 21 * MINUTE, page(line(MINUTE, "old"), line(19 * MINUTE, "a"), line(20 * MINUTE, "c"))
    )

    assert new(steps) == ["c"]
