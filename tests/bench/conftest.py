"""What benchmarks share: a training log, 30 patterns and rules of them; a server in a process of its own."""

import gc
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from time import process_time

import pytest

from watchdog.core.conditions.kinds import LogEvent, LogMatch
from watchdog.core.conditions.log import log_occurrences
from watchdog.core.durations import from_ns
from watchdog.core.logs import LogLine, LogQuery, LogRows, StreamKey
from watchdog.core.reading import absorb, first_run, plan
from watchdog.core.rules import Rule
from watchdog.core.scanning import LogScanner
from watchdog.core.tasks import Task
from watchdog.engine.log_reader import PAGES_A_ROUND
from watchdog.sources.alaya_wire import read_logs, read_reply
from watchdog.sources.answers import HttpAnswer
from watchdog.text.patterns import Re2Engine

START = 1_800_000_000 * 10**9
LINE_NS = 10**6  # a thousand lines a second
ROWS = 500
FULL = os.environ.get("WATCHDOG_BENCH") == "full"
MEGABYTES = 100 if FULL else 3
INCIDENTS = (
    "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 3; 79.15 GiB total capacity)",
    "CUDA error: an illegal memory access was encountered",
    "[rank3]:[E ProcessGroupNCCL.cpp:607] [Rank 3] Watchdog caught collective operation timeout",
    "node-7:231:412 [3] misc/socket.cc:45 NCCL WARN Net : Connection closed by remote peer",
    "loss: nan at step 20481, grad_norm: nan",
    "OSError: [Errno 28] No space left on device: '/checkpoints/step_20000.pt'",
    "ERROR    trainer: failed to push metrics",
    "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.",
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: train.py FAILED",
)
TRACEBACK = (
    "Traceback (most recent call last):",
    '  File "/app/train.py", line 412, in <module>',
    "    main()",
    '  File "/opt/conda/lib/python3.11/site-packages/torch/nn/module.py", line 1553, in _wrapped_call_impl',
    "    return self._call_impl(*args, **kwargs)",
)

# Answers on a port that it prints, for as long as it lives. Before it stands what it answers:
# `async def answer(head: bytes, reader: StreamReader) -> bytes`, which reads a body if it cares for one.
SERVER = r"""
import asyncio

async def serve(reader, writer):
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            writer.write(await answer(head, reader))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()

async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""


def training_log(dice: random.Random, count: int) -> Iterator[str]:
    """Yield lines: 55 % steps, 25 % progress bars, 15 % NCCL, a few others, one incident in ten thousand."""
    for step in range(count):
        at = f"2025-03-01 {step // 36000 % 24:02d}:{step // 600 % 60:02d}:{step // 10 % 60:02d}"
        kind, value = dice.random(), dice.random()
        if kind < 0.55:
            yield (
                f"{at},{step % 1000:03d} INFO     trainer: step {step} | epoch {step // 50000}"
                f" | loss: {2 + value:.4f} | grad_norm: {value:.3f} | lr: {3e-4 * value:.3e}"
                f" | tokens/s: {18000 + 2000 * value:.0f} | mfu: {40 + value:.1f}%"
            )
        elif kind < 0.80:
            done = int(value * 100)
            bar = "#" * (done // 10) + " " * (10 - done // 10)
            yield (
                f"Epoch {step // 50000}: {done:3d}%|{bar}| {done * 500}/50000"
                f" [{done // 2:02d}:{done % 60:02d}<{50 - done // 2:02d}:{done % 60:02d}"
                f", {1 + value * 2:.2f}it/s, loss={2 + value:.3f}]"
            )
        elif kind < 0.95:
            yield (
                f"node-{step % 8}:231:412 [{step % 8}] NCCL INFO Channel {step % 32:02d}/0 :"
                f" {step % 8}[{step % 8}] -> {(step + 1) % 8}[{(step + 1) % 8}] via P2P/CUMEM/read"
            )
        elif kind < 0.9999:
            yield f"{at} WARNING  data: shard {step % 997} slow read {value:.2f} s, retrying"
        else:
            if value < 0.25:
                yield from TRACEBACK
                at = ""
            yield f"{at} {dice.choice(INCIDENTS)}".lstrip()


@pytest.fixture(autouse=True)
def _only_own_garbage() -> Iterator[None]:
    """Keep the collector from what other tests of this process hold: that walk would be measured, too."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def serve() -> Iterator[Callable[[str], int]]:
    """Start a server that answers by a program's `answer`, in a process of its own; returns its port."""
    with ExitStack() as running:

        def start(program: str) -> int:
            command = [sys.executable, "-c", program + SERVER]
            process = running.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            running.callback(process.kill)
            assert process.stdout is not None
            return int(process.stdout.readline())

        yield start


@pytest.fixture(scope="session")
def patterns() -> list[str]:
    """Thirty patterns that people look for in such logs."""
    return (Path(__file__).parent / "patterns.txt").read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="session")
def log_lines() -> list[str]:
    """A training log of so many megabytes, the same in each run."""
    lines, size = [], 0
    for line in training_log(random.Random(7), 10**9):
        size += len(line) + 1
        lines.append(line)
        if size >= MEGABYTES * 1_000_000:
            break
    return lines


@dataclass(frozen=True)
class Read:
    """What reading a log through came to. `size`: bytes of the log itself; `decoding`: part of `seconds`."""

    lines: int
    size: int
    matching: int
    occurrences: int
    seconds: float
    decoding: float

    def __str__(self) -> str:
        rate = self.size / self.seconds / 1e6
        undecoded = self.size / (self.seconds - self.decoding) / 1e6
        return (
            f"{self.size / 1e6:.0f} MB, {self.lines:,} lines, {self.matching} matching:"
            f" whole reader {rate:.0f} MB/s, without decoding the answer {undecoded:.0f} MB/s"
        )


@pytest.fixture(scope="session")
def read_through() -> Callable[[Sequence[str], Sequence[str]], Read]:
    """Read a log of eight pods page by page as the log reader does, from the answers' bytes to occurrences.

    A round is forty pages, as in the reader, and what it brought is scanned at once, as in a slot. Making the
    answers is not counted.
    """
    return _read_through


def _read_through(texts: Sequence[str], patterns: Sequence[str]) -> Read:
    engine = Re2Engine()
    task = Task(key="alaya/1", source="alaya", id="1", name="llama")
    matches = [LogMatch(match=(engine.compile(text),)) for text in patterns]
    rules = [Rule(name=f"rule-{n}", condition=LogEvent(lines=match)) for n, match in enumerate(matches)]
    scanner = LogScanner(rules, engine)
    scanner.scan(task, [LogLine(1, "p", "warm up")])
    rows = [
        {"timestamp": str(START + n * LINE_NS), "podName": f"worker-{n % 8}", "log": text}
        for n, text in enumerate(texts)
    ]
    at_ns = START + len(rows) * LINE_NS
    state = first_run(StreamKey(task=task.key), START - 1)
    query: LogQuery | None = plan(state, at_ns)
    seconds = decoding = 0.0
    lines, matching, occurrences = 0, 0, 0
    pages = iter(range(0, len(rows), ROWS - 1))  # a page begins with the last moment of the one before
    while query is not None:
        bodies = [_body(rows[first : first + ROWS]) for first in islice(pages, PAGES_A_ROUND)]
        new: list[LogRows] = []
        began = process_time()
        for body in bodies:
            asked = process_time()
            page = read_logs(read_reply(HttpAnswer(status=200, body=body)).data, query)
            decoding += process_time() - asked
            absorbed = absorb(state, query, page, at_ns)
            state, query = absorbed.state, absorbed.next_query
            new.append(LogRows.of(absorbed.new_lines))
            if query is None:
                break
        rows_new = LogRows.joined(new)
        hits = scanner.scan(task, rows_new)
        found = [
            log_occurrences(rule, task, own, from_ns(at_ns)) for rule in rules if (own := hits.of(rule.name))
        ]
        seconds += process_time() - began
        lines += len(rows_new)
        matching += len({number for own in hits.by_rule.values() for number in own.matched})
        occurrences += sum(map(len, found))
        if not bodies:
            break
    size = sum(map(len, texts)) + len(texts)
    return Read(lines, size, matching, occurrences, seconds, decoding)


def _body(rows: Sequence[object]) -> bytes:
    return json.dumps({"status": 200, "message": "success", "data": rows}).encode()
