"""Following a log of which only the newest lines can be had: nothing twice, nothing silently missed."""

from dataclasses import replace
from datetime import UTC, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from watchdog.core.durations import MINUTE_NS, from_ns
from watchdog.core.logs import LogQuery, StreamKey, StreamState
from watchdog.core.reading import UnreadReason, absorb, first_run, plan
from watchdog.sources.siflow_logs import LogTail
from watchdog.sources.siflow_wire import LogRow, LogRows

T0 = 1_789_012_800 * 10**9


class Log:
    """A log that grows, and a reader of it: the real reading of `core`, page by page, once a minute."""

    def __init__(self, limit: int = 20, *, timed: bool = False, page: int = 7) -> None:
        self.limit, self.timed, self.page = limit, timed, page
        self.written: list[tuple[int, str]] = []
        self.minute = 0
        self.tail = LogTail(limit=limit, zone=UTC)
        self.state: StreamState | None = None
        self.told: list[str] = []
        self.unread = 0
        self.remarks: list[str] = []
        self.newest_first = True

    @property
    def now_ns(self) -> int:
        return T0 + self.minute * MINUTE_NS

    def write(self, *texts: str, at: int | None = None) -> None:
        """Add lines; `at`: how many lines from the end they were written late."""
        place = len(self.written) - (at or 0)
        self.written[place:place] = [(self.now_ns + 30 * 10**9 + n, text) for n, text in enumerate(texts)]

    def rows(self) -> LogRows:
        shown = self.written[-self.limit :]
        rows = [LogRow(text=text, time=time if self.timed else None) for time, text in shown]
        return LogRows(rows=rows[::-1] if self.newest_first else rows, newest_first=self.newest_first)

    def poll(self) -> list[str]:
        """One round of the reader, a minute after the last one; returns what it tells."""
        self.minute += 1
        before = len(self.told)
        if self.state is None:
            query = LogQuery(start_ns=self.now_ns - 24 * 60 * MINUTE_NS, end_ns=self.now_ns)
            self.tail.take(self.rows(), query, self.now_ns)
            bookmark = self.tail.serve(query).bookmark
            self.state = first_run(StreamKey(task="t"), self.now_ns, bookmark=bookmark)
            return []
        query = replace(plan(self.state, self.now_ns), limit=self.page)
        taken = False
        while True:
            if not taken:
                self.tail.take(self.rows(), query, self.now_ns)
                taken = True
            page = self.tail.serve(query)
            self.remarks += page.remarks
            done = absorb(self.state, query, page, self.now_ns)
            self.state = done.state
            self.told += [line.text for line in done.new_lines]
            self.unread += sum(one.reason is UnreadReason.SHORT for one in done.unread)
            if done.next_query is None:
                return self.told[before:]
            query = replace(done.next_query, limit=self.page)

    def restart(self) -> None:
        """Another process: only what is stored with the stream is left."""
        self.tail = LogTail(limit=self.limit, zone=UTC)


@pytest.fixture(params=[False, True], ids=["content only", "with times"])
def log(request: pytest.FixtureRequest) -> Log:
    log = Log(timed=request.param)
    log.write("old 1", "old 2")
    log.poll()
    return log


def test_what_stands_there_at_first_is_not_told(log) -> None:
    assert log.poll() == []


def test_new_lines_are_told_once(log) -> None:
    log.write("a", "b")
    assert log.poll() == ["a", "b"]
    assert log.poll() == []
    log.write("c")
    assert log.poll() == ["c"]


def test_equal_lines_are_counted(log) -> None:
    log.write("E", "E")
    assert log.poll() == ["E", "E"]
    log.write("E")
    assert log.poll() == ["E"]
    assert log.poll() == []


def test_more_lines_than_a_page_of_ours_are_read_on(log) -> None:
    lines = [f"line {n}" for n in range(18)]
    log.write(*lines)
    assert log.poll() == lines


def test_lines_that_slide_out_of_sight_are_no_news(log) -> None:
    for number in range(60):
        log.write(*(f"{number}-{n}" for n in range(5)))
        assert log.poll() == [f"{number}-{n}" for n in range(5)]
    assert log.unread == 0


def test_a_late_line_between_known_ones_is_found(log) -> None:
    log.write("a", "b", "c")
    log.poll()
    log.write("late", at=2)
    assert log.poll() == ["late"]
    assert log.poll() == []


def test_more_than_can_be_shown_is_said(log) -> None:
    log.write(*(f"early {n}" for n in range(10)))
    log.poll()
    log.write(*(f"flood {n}" for n in range(50)))
    assert log.poll() == [f"flood {n}" for n in range(30, 50)]
    assert log.unread == 1
    log.poll()
    assert log.unread == 1


def test_after_a_restart_only_what_is_new_is_told(log) -> None:
    log.write("a", "b", "c", "d")
    log.poll()
    log.restart()
    assert log.poll() == []
    log.restart()
    log.write("e", "f")
    assert log.poll() == ["e", "f"]
    assert log.unread == 0
    log.restart()
    assert log.poll() == []


def test_what_was_printed_while_we_were_down_is_told(log) -> None:
    log.write("a", "b", "c")
    log.poll()
    log.write("ERROR while down")
    log.minute += 20
    log.restart()
    assert log.poll() == ["ERROR while down"]


def test_too_much_while_we_were_down_is_said(log) -> None:
    log.write("a", "b", "c", "d")
    log.poll()
    log.write(*(f"flood {n}" for n in range(50)))
    log.minute += 5
    log.restart()
    assert log.poll() == [f"flood {n}" for n in range(30, 50)]
    assert log.unread == 1


def test_the_last_lines_still_in_sight_after_a_restart_are_not_told_again() -> None:
    log = Log()
    log.write(*(f"known {n}" for n in range(20)))
    log.poll()
    log.write(*(f"new {n}" for n in range(18)))
    log.restart()
    assert log.poll() == [f"new {n}" for n in range(18)]
    assert log.unread == 1  # two lines in common may be chance


def test_one_common_line_is_not_taken_for_the_place_where_reading_stopped() -> None:
    log = Log()
    log.write("a", "b", "c", "----")
    log.poll()
    log.poll()
    log.write(*(f"ERROR {n}" for n in range(30)), "----", *(f"after {n}" for n in range(9)))
    log.restart()
    told = log.poll()
    assert told == [*(f"ERROR {n}" for n in range(20, 30)), "----", *(f"after {n}" for n in range(9))]
    assert log.unread == 1


def test_a_log_that_begins_anew_is_read_from_its_beginning(log) -> None:
    log.write("a", "b", "c", "d")
    log.poll()
    log.written = []
    log.write("new attempt", "step 1")
    assert log.poll() == ["new attempt", "step 1"]
    assert log.unread == 0


def test_a_log_that_is_empty_for_a_moment_is_not_told_again(log) -> None:
    log.write("a", "b", "c", "d")
    log.poll()
    kept, log.written = log.written, []
    assert log.poll() == []
    log.restart()
    assert log.poll() == []
    log.written = kept
    assert log.poll() == []


def test_items_of_several_lines_are_lines() -> None:
    tail = LogTail(limit=20, zone=UTC)
    query = LogQuery(start_ns=0, end_ns=T0)
    tail.take(LogRows(rows=[LogRow(text="c\n"), LogRow(text="a\nb\x00")]), query, T0)
    assert [line.text for line in tail.serve(query).lines] == ["a", "b\ufffd", "c"]


def test_an_sdk_that_cannot_be_asked_for_an_order_is_taken_to_be_in_it() -> None:
    log = Log()
    log.newest_first = False
    log.write("a", "b")
    log.poll()
    log.write("c", "d")
    assert log.poll() == ["c", "d"]


def test_times_are_those_of_the_items_where_they_tell_any() -> None:
    tail = LogTail(limit=20, zone=UTC)
    query = LogQuery(start_ns=0, end_ns=T0 + MINUTE_NS)
    rows = [
        LogRow(text="s", time=1_789_012_801, pod="p"),
        LogRow(text="ms", time=1_789_012_802_000),
        LogRow(text="ns", time=str((1_789_012_803 * 10**9) + 7)),
        LogRow(text="naive", time="2026-09-10 04:00:04"),
    ]
    tail.take(LogRows(rows=rows, newest_first=False), query, T0)
    lines = tail.serve(query).lines
    assert [(line.time_ns - T0) for line in lines] == [10**9, 2 * 10**9, 3 * 10**9 + 7, 4 * 10**9]
    assert lines[0].pod == "p"


def test_what_has_no_time_was_never_written_later_than_now() -> None:
    log = Log()
    log.poll()
    for number in range(50):
        log.write(*(f"{number} {n}" for n in range(15)))
        log.poll()
        assert all(kept.line.time_ns <= log.now_ns for kept in log.tail.kept)
        assert len({kept.line.time_ns for kept in log.tail.kept}) == len(log.tail.kept)


def test_only_a_while_is_kept() -> None:
    log = Log(limit=200, page=500)
    log.poll()
    for number in range(120):
        log.write(*(f"{number} {n}" for n in range(100)))
        log.poll()
    assert 3000 <= len(log.tail.kept) <= 3200  # half an hour
    assert log.state is not None
    assert len(log.state.bookmark) <= 1024


steps = st.lists(
    st.one_of(
        st.lists(st.sampled_from("abcE"), max_size=15),  # lines of few kinds, so that many are equal
        st.just("restart"),
        st.just("empty answer"),
    ),
    max_size=25,
)


@settings(max_examples=150, deadline=None)
@given(steps=steps, timed=st.booleans())
def test_every_line_is_told_exactly_once_while_nothing_is_out_of_sight(steps, timed) -> None:
    """A log that is shown whole: what is new follows from counting, whatever is equal."""
    log = Log(limit=1000, timed=timed)
    log.write("begin", "of", "it")
    log.poll()
    expected: list[str] = []
    for number, step in enumerate(steps):
        if step == "restart":
            log.restart()
        elif step == "empty answer":
            kept, log.written = log.written, []
            log.poll()
            log.written = kept
        else:
            lines = [f"{text}{number}" if text != "E" else "E" for text in step]
            log.write(*lines)
            expected += lines
            log.poll()
    log.poll()
    assert sorted(log.told) == sorted(expected)
    assert log.unread == 0


@settings(max_examples=100, deadline=None)
@given(
    counts=st.lists(st.integers(0, 45), max_size=25),
    timed=st.booleans(),
    restarts=st.sets(st.integers(0, 24)),
)
def test_of_lines_that_differ_none_is_told_twice_and_missing_ones_are_said(counts, timed, restarts) -> None:
    log = Log(limit=20, timed=timed)
    log.write(*(f"old {n}" for n in range(20)))
    log.poll()
    written: list[str] = []
    for number, count in enumerate(counts):
        if number in restarts:
            log.restart()
        lines = [f"{number}/{n}" for n in range(count)]
        written += lines
        log.write(*lines)
        log.poll()
    assert len(set(log.told)) == len(log.told)
    assert set(log.told) <= set(written)
    if not log.unread:
        assert log.told == written
    assert log.unread <= sum(count > 16 for count in counts)  # said only where it may be true


def test_the_bookmark_survives_a_night() -> None:
    log = Log()
    log.write(*(f"evening {n}" for n in range(19)))
    log.poll()
    log.write("last")
    log.poll()
    for _ in range(9 * 60):  # nothing is printed; nothing is kept any more
        log.poll()
    log.restart()
    log.write("morning")
    assert log.poll() == ["morning"]
    assert timedelta(hours=9) < timedelta(minutes=log.minute)


def test_a_line_with_a_time_of_the_far_future_is_told_now_and_takes_no_other_with_it() -> None:
    log = Log(timed=True)
    log.poll()
    log.write("before")
    assert log.poll() == ["before"]
    log.write("ERROR garbled")
    log.written[-1] = (T0 + 400 * 24 * 60 * MINUTE_NS, "ERROR garbled")
    log.write("beside it")
    assert sorted(log.poll()) == ["ERROR garbled", "beside it"]
    log.write("after")
    assert log.poll() == ["after"]


@pytest.mark.parametrize("restart", [False, True])
def test_what_was_printed_in_a_long_outage_is_told_from_its_beginning(log, restart: bool) -> None:
    log.write("a", "b", "c")
    log.poll()
    log.limit = 2000
    printed = [f"minute {number}" for number in range(90)]
    for line in printed:
        log.write(line)
        log.minute += 1
    if restart:
        log.restart()

    assert log.poll() == printed
    assert log.poll() == []
    assert (log.unread, log.remarks) == (0, [])


def late_line(log: Log, text: str, minutes: int) -> None:
    """A line that comes now, among those of the newest minute, and is dated so long ago."""
    log.write(text, at=1)
    log.written[-2] = (log.now_ns - minutes * MINUTE_NS, text)


def test_a_line_that_comes_too_late_to_be_read_is_said() -> None:
    log = Log(limit=200, timed=True)
    for number in range(40):
        log.write(f"{number}")
        log.poll()
    late_line(log, "a little late", 8)
    log.write("beside it")
    log.poll()
    for _ in range(6):
        log.poll()
    assert ("a little late" in log.told, log.remarks) == (True, [])

    late_line(log, "ERROR far too late", 45)
    dated = log.written[-2][0]
    log.write("beside that")
    assert log.poll() == ["beside that"]

    assert "ERROR far too late" not in log.told
    (remark,) = log.remarks
    assert remark.startswith("log lines came long after their own time and were not read: 1, ")
    assert remark.endswith(f"the newest is dated {from_ns(dated):%Y-%m-%d %H:%M:%SZ}")
    for number in range(40):
        log.write(f"after {number}")
        log.poll()
    assert len(log.remarks) == 1


def test_a_line_that_comes_too_late_is_said_in_a_log_that_prints_no_more() -> None:
    log = Log(limit=200, timed=True)
    for number in range(20):
        log.write(f"{number}")
        log.poll()
    for _ in range(60):
        log.poll()
    late_line(log, "ERROR", 84)
    for _ in range(60):
        log.poll()

    assert "ERROR" not in log.told
    assert len(log.remarks) == 1


@pytest.mark.parametrize("limit", [12, 60, 2000])
def test_lines_that_come_into_sight_again_are_no_late_ones(limit: int) -> None:
    log = Log(limit=limit, timed=True)
    for number in range(100):
        log.write(f"{number}")
        log.poll()
    del log.written[
        -10:-5
    ]  # a pod's lines are gone: those of the others stand where they stood, or come back
    for number in range(60):
        log.write(f"after {number}")
        log.poll()

    assert len(set(log.told)) == len(log.told)
    assert (log.unread, log.remarks) == (0, [])
