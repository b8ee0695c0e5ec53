"""Matching beside ripgrep on one core, by CPU, in the same run; needs `rg`, which `.ci/ripgrep` installs."""

import resource
import statistics
import subprocess
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

from watchdog.text.patterns import Re2Engine

ROUNDS = 5
LEAST = 60_000_000  # bytes of the file that ripgrep is given: its start must not count


def test_matching_keeps_up_with_ripgrep(
    tmp_path: Path, log_lines: list[str], patterns: list[str], read_through: Callable[..., Any]
) -> None:
    text = "\n".join(log_lines) + "\n"
    copies = max(LEAST // len(text), 1)
    log, wanted = tmp_path / "train.log", tmp_path / "patterns.txt"
    log.write_text(text * copies, encoding="utf-8")
    wanted.write_text("\n".join(patterns) + "\n", encoding="utf-8")
    engine = Re2Engine()
    ours = engine.compile_set([engine.compile(pattern) for pattern in patterns])

    def ripgrep() -> tuple[float, int]:
        began = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = ["rg", "-j1", "--no-config", "-c", "-f", str(wanted), str(log)]
        found = subprocess.run(command, capture_output=True, text=True, check=True)
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = ended.ru_utime - began.ru_utime + ended.ru_stime - began.ru_stime
        return cpu / copies, int(found.stdout) // copies

    def matching() -> tuple[float, int]:
        began = process_time()
        found = len(ours.scan(log_lines))
        return process_time() - began, found

    rounds = [(ripgrep(), matching()) for _ in range(ROUNDS)]
    theirs, own = (
        len(text) / statistics.median(cpu for cpu, _ in column) / 1e6 for column in zip(*rounds, strict=True)
    )
    readers = sorted((read_through(log_lines, patterns) for _ in range(3)), key=lambda read: read.seconds)

    print(f"\nripgrep -j1 -f {theirs:,.0f} MB/s, matching {own:,.0f} MB/s, {own / theirs:.2f} x")
    print(readers[1])
    assert {count for pair in rounds for _, count in pair} == {readers[0].matching}
    assert own > 0.3 * theirs
