"""Log lines: blocks on RE2 beside the standard library line by line, in the same run, by CPU.

`check_ripgrep.py` puts ripgrep beside it, where that is installed.
"""

import re
from collections.abc import Callable, Sequence
from time import process_time
from typing import Any

import pytest

from watchdog.core.conditions.kinds import LogEvent, LogMatch
from watchdog.core.logs import LogLine
from watchdog.core.rules import Rule
from watchdog.core.scanning import LogScanner
from watchdog.core.tasks import Task
from watchdog.text.patterns import Re2Engine

ENGINE = Re2Engine()
TASK = Task(key="alaya/1", source="alaya", id="1", name="llama")


def best(work: Callable[[], object], repeats: int = 3) -> float:
    """Seconds of process time of the fastest of some runs."""
    times = []
    for _ in range(repeats):
        began = process_time()
        work()
        times.append(process_time() - began)
    return min(times)


def rules_of(patterns: Sequence[str]) -> list[Rule]:
    return [
        Rule(name=f"rule-{n}", condition=LogEvent(lines=LogMatch(match=(ENGINE.compile(text),))))
        for n, text in enumerate(patterns)
    ]


def rows_of(texts: Sequence[str]) -> list[LogLine]:
    return [LogLine(n, "p", text) for n, text in enumerate(texts)]


def test_blocks_on_re2_are_far_faster_than_the_standard_library_per_line(
    log_lines: list[str], patterns: list[str]
) -> None:
    few = log_lines[:3_000]
    one = re.compile("|".join(f"(?:{text})" for text in patterns))
    re2_set = ENGINE.compile_set([ENGINE.compile(text) for text in patterns])
    size, part = (sum(map(len, lines)) + len(lines) for lines in (log_lines, few))

    found = re2_set.scan(log_lines)
    ours = best(lambda: re2_set.scan(log_lines)) / size
    theirs = best(lambda: [one.search(line) for line in few], 1) / part

    print(
        f"\nRE2 blocks {1e-6 / ours:,.0f} MB/s, re per line {1e-6 / theirs:,.0f} MB/s, {theirs / ours:.0f} x"
    )
    expected = [n for n, line in enumerate(few) if one.search(line)]
    assert [n for n, _ in found if n < len(few)] == expected
    assert theirs / ours > 8


def test_the_whole_reader_is_faster_than_the_standard_library_that_only_matches(
    log_lines: list[str], patterns: list[str], read_through: Callable[..., Any]
) -> None:
    few = log_lines[:3_000]
    one = re.compile("|".join(f"(?:{text})" for text in patterns))
    matching = sum(1 for line in log_lines if one.search(line)) if len(log_lines) < 50_000 else None

    reader = read_through(log_lines, patterns)
    theirs = best(lambda: [one.search(line) for line in few], 1) / (sum(map(len, few)) + len(few))

    print(f"\n{reader}\nre per line, matching only: {1e-6 / theirs:,.0f} MB/s")
    assert reader.lines == len(log_lines)
    assert matching in (None, reader.matching)
    assert theirs / (reader.seconds / reader.size) > 2


@pytest.mark.parametrize("count", [3, 30])
def test_ten_times_the_rules_cost_less_than_ten_times_as_much(count: int, patterns: list[str]) -> None:
    texts = [f"{text} *[0-9]*{n}" for n in range(10) for text in patterns]  # other ones, three hundred
    rows = rows_of([f"step {n} of a run that goes well | loss: 1.{n % 997:03}" for n in range(6_000)])
    few, many = (LogScanner(rules_of(texts[:number]), ENGINE) for number in (count, 10 * count))

    of_few, of_many = (best(lambda s=s: s.scan(TASK, rows)) for s in (few, many))  # type: ignore[misc]

    print(f"\n{count} rules {of_few * 1e3:.1f} ms, {10 * count} rules {of_many * 1e3:.1f} ms")
    assert of_many < 10 * of_few


@pytest.mark.parametrize("count", [300, 3_000])
def test_ten_times_the_lines_cost_about_ten_times_as_much(
    count: int, log_lines: list[str], patterns: list[str], read_through: Callable[..., Any]
) -> None:
    lines = log_lines[: 10 * count]

    few, many = (
        min(read_through(lines[:number], patterns).seconds for _ in range(3))
        for number in (count, 10 * count)
    )

    print(f"\n{count} lines {few * 1e3:.1f} ms, {10 * count} lines {many * 1e3:.1f} ms")
    assert many < 20 * few


def test_one_line_of_a_megabyte_costs_less_than_as_much_ordinary_log(
    log_lines: list[str], patterns: list[str]
) -> None:
    scanner = LogScanner(rules_of([*patterns, r"(a+)+$", r".*\b(error|fail)\b.*"]), ENGINE)
    ordinary = rows_of(log_lines[:7_000])
    size = sum(len(row.text) for row in ordinary)
    endless = [LogLine(1, "p", ("a" * 40 + "!" + "x" * 59) * (size // 100))]

    usual = best(lambda: scanner.scan(TASK, ordinary))
    long = best(lambda: scanner.scan(TASK, endless))

    print(f"\n{size:,} characters: {usual:.3f} s as lines, {long:.3f} s as one line")
    assert long < usual


def test_a_progress_bar_of_5000_updates_costs_about_as_much_as_its_updates_as_lines() -> None:
    scanner = LogScanner(rules_of(["ERROR"]), ENGINE)
    updates = [f" {n // 50}%|███ | {n}/5000 [00:0{n % 10}<00:10, 1.6s/it]" for n in range(5_000)]

    as_lines = best(lambda: scanner.scan(TASK, rows_of(updates)))
    as_one = best(lambda: scanner.scan(TASK, [LogLine(1, "p", "\r".join(updates))]))

    print(f"\n{as_lines * 1e3:.1f} ms as lines, {as_one * 1e3:.1f} ms as one")
    assert as_one < 8 * as_lines
