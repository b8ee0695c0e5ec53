"""A stream that goes on where another of the same task stops being read."""

from watchdog.core.logs import LogLine, LogPage, LogQuery, StreamKey, StreamState
from watchdog.core.reading import absorb, first_run, plan, taken_over

SECOND = 1_000_000_000
T0 = 1_800_000_000 * SECOND
ALL, ERRORS, WARNINGS = (StreamKey(task="a/1", prefilter=text) for text in ("", "ERROR", "WARN"))


def follow(state: StreamState, at: int, log: list[LogLine]) -> tuple[StreamState, list[str]]:
    """One round at second `at`, on a server that filters."""
    told: list[str] = []
    query: LogQuery | None = plan(state, T0 + at * SECOND)
    while query is not None:
        rows = [
            line
            for line in log
            if query.start_ns <= line.time_ns <= min(query.end_ns, T0 + at * SECOND)
            and query.contains in line.text
        ]
        step = absorb(state, query, LogPage(lines=tuple(rows), full=False), T0 + at * SECOND)
        told += [line.text for line in step.new_lines]
        state, query = step.state, step.next_query
    return state, told


def at(second: int, text: str) -> LogLine:
    return LogLine(T0 + second * SECOND, "p", text)


def test_a_narrower_stream_neither_skips_nor_repeats() -> None:
    log = [at(10, "ERROR a"), at(59, "ERROR b"), at(61, "ERROR c"), at(70, "other")]
    wide, told = follow(first_run(ALL, T0), 60, log)
    assert told == ["ERROR a", "ERROR b"]
    narrow, told = follow(taken_over(ERRORS, [wide]), 120, log)
    assert told == ["ERROR c"]
    assert narrow.key == ERRORS


def test_a_wider_stream_tells_no_line_that_a_narrow_one_told() -> None:
    log = [at(10, "ERROR a"), at(50, "plain"), at(100, "ERROR b")]
    narrow, told = follow(first_run(ERRORS, T0), 60, log)
    assert told == ["ERROR a"]
    _, told = follow(taken_over(ALL, [narrow]), 120, log)
    assert told == ["plain", "ERROR b"]


def test_of_two_streams_it_goes_on_at_the_end_of_the_slower_one() -> None:
    log = [at(10, "ERROR a"), at(20, "WARN a"), at(130, "ERROR b"), at(140, "WARN b")]
    errors, _ = follow(first_run(ERRORS, T0), 200, log)
    warnings, _ = follow(first_run(WARNINGS, T0), 60, log)
    _, told = follow(taken_over(ALL, [errors, warnings]), 260, log)
    assert told == ["WARN b"]


def test_nothing_from_before_the_earlier_stream_began_is_new() -> None:
    log = [at(-20, "ERROR old"), at(10, "ERROR a")]
    wide, _ = follow(first_run(ALL, T0), 30, log)
    _, told = follow(taken_over(ERRORS, [wide]), 60, log)
    assert told == []
