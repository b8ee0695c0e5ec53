"""Log lines: blocks on RE2 against the standard library line by line, in the same run."""

import json
import re
import time
from collections.abc import Callable
from pathlib import Path

from watchdog.core.conditions.kinds import LogEvent, LogMatch
from watchdog.core.logs import LogLine
from watchdog.core.rules import Rule
from watchdog.core.scanning import LogScanner
from watchdog.core.tasks import Task
from watchdog.text.patterns import Re2Engine

ENGINE = Re2Engine()
TASK = Task(key="alaya/1", source="alaya", id="1", name="llama")
STANDARD = json.loads(
    (Path(__file__).parents[1] / "core" / "standard_lines.json").read_text(encoding="utf-8")
)
PATTERNS: list[str] = list(STANDARD["match"].values())[:30]


def training_log(count: int) -> list[str]:
    """Mostly steps, some progress bars and NCCL chatter, one error in a thousand."""
    lines = []
    for n in range(count):
        if n % 1000 == 7:
            lines.append(
                f"[rank{n % 512}]: RuntimeError: CUDA error: an illegal memory access was encountered"
            )
        elif n % 4 == 0:
            lines.append(f" {n % 100}%|████▌     | {n}/100000 [33:10<4:02:11,  1.65s/it]")
        elif n % 7 == 0:
            lines.append(f"node{n % 64}:311:882 [3] NCCL INFO Channel 02/0 : {n % 8}[3] -> 1[4] via P2P/IPC")
        else:
            lines.append(
                f" iteration {n:8}/ 115311 | consumed samples: {n * 2048:12} | elapsed time (s):"
                f" 104.{n % 100:02} | learning rate: 3.0e-04 | lm loss: 1.{n % 1000:03} | grad norm: 0.5 |"
            )
    return lines


def best(work: Callable[[], object], repeats: int = 3) -> float:
    """Seconds of process time of the fastest of some runs."""
    times = []
    for _ in range(repeats):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return min(times)


def test_blocks_on_re2_are_far_faster_than_the_standard_library_per_line(
    record_property: Callable[[str, object], None],
) -> None:
    lines = training_log(20_000)
    few = lines[:2_000]
    compiled = [re.compile(text) for text in PATTERNS]
    re2_set = ENGINE.compile_set([ENGINE.compile(text) for text in PATTERNS])

    expected = [n for n, line in enumerate(few) if any(one.search(line) for one in compiled)]
    ours = best(lambda: re2_set.scan(lines)) / len(lines)
    theirs = best(lambda: [any(one.search(line) for one in compiled) for line in few], 1) / len(few)

    record_property("re2 lines a second", round(1 / ours))
    record_property("re lines a second", round(1 / theirs))
    print(
        f"\nRE2 blocks {1 / ours:,.0f} lines/s, re per line {1 / theirs:,.0f} lines/s, {theirs / ours:.1f} x"
    )
    assert [n for n, _ in re2_set.scan(few)] == expected
    assert theirs / ours > 4


def test_one_line_of_a_megabyte_costs_less_than_as_much_ordinary_log() -> None:
    rule = Rule(
        name="errors",
        condition=LogEvent(
            lines=LogMatch(
                match=tuple(ENGINE.compile(text) for text in (*PATTERNS, r"(a+)+$", r".*\b(error|fail)\b.*"))
            )
        ),
    )
    scanner = LogScanner([rule], ENGINE)
    ordinary = [LogLine(n, "p", text) for n, text in enumerate(training_log(7_000))]
    size = sum(len(row.text) for row in ordinary)
    endless = [LogLine(1, "p", ("a" * 40 + "!" + "x" * 59) * (size // 100))]

    usual = best(lambda: scanner.scan(TASK, ordinary))
    long = best(lambda: scanner.scan(TASK, endless))

    print(f"\n{size:,} characters: {usual:.3f} s as lines, {long:.3f} s as one line")
    assert long < usual


def test_a_progress_bar_of_5000_updates_costs_less_than_its_updates_as_lines() -> None:
    rule = Rule(name="errors", condition=LogEvent(lines=LogMatch(match=(ENGINE.compile("ERROR"),))))
    scanner = LogScanner([rule], ENGINE)
    updates = [f" {n // 50}%|███ | {n}/5000 [00:0{n % 10}<00:10, 1.6s/it]" for n in range(5_000)]

    as_lines = best(lambda: scanner.scan(TASK, [LogLine(n, "p", text) for n, text in enumerate(updates)]))
    as_one = best(lambda: scanner.scan(TASK, [LogLine(1, "p", "\r".join(updates))]))

    assert as_one < as_lines
