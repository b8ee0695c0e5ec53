"""SIGKILL at random instants of T1, T2 and T3: what was promised is there, and nothing is half there."""

import contextlib
import os
import random
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from watchdog.core.notifications import Answer, DeliveryState
from watchdog.ports import StateReader, Stored
from watchdog.store.reader import SqliteReader
from watchdog.store.sqlite import SqliteStore

KILLS = 20
CHANNELS = {"team", "mail"}
ENDLESS = 1_000_000


class Writer:
    """The writing process, and everything it was promised."""

    def __init__(self, path: Path) -> None:
        script = Path(__file__).with_name("crash_writer.py")
        self._process = subprocess.Popen(
            [sys.executable, str(script), str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        self.promises: list[tuple[str, ...]] = []
        self._rest = b""

    def run(self, until: int, kill_after: int | None = None, wait: float = 0.0) -> None:
        """Write up to incident `until`; kill after so many promises and, at most, `wait` seconds."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"%d\n" % until)
        pid, seen = 0, 0
        for words in self._lines():
            if words[0] == "BURIED":
                return
            if words[0] == "PID":
                pid = int(words[1])
            else:
                self.promises.append(words)
                seen += 1
            if pid and seen == kill_after:
                select.select([], [], [], wait)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def numbers(self, word: str) -> set[int]:
        return {int(words[1]) for words in self.promises if words[0] == word}

    def pairs(self, word: str) -> set[tuple[int, str]]:
        return {(int(words[1]), words[2]) for words in self.promises if words[0] == word}

    def _lines(self) -> Iterator[tuple[str, ...]]:
        assert self._process.stdout is not None
        while True:
            *lines, self._rest = self._rest.split(b"\n")
            for line in lines:
                yield tuple(line.decode().split())
            block = os.read(self._process.stdout.fileno(), 65_536)
            assert block, "the writing process ended"
            self._rest += block


@pytest.fixture
def writer(path: Path) -> Iterator[Writer]:
    path.parent.mkdir()
    made = Writer(path)
    yield made
    made.close()


def check_nothing_is_half_there(stored: Stored) -> None:
    decided = int(stored.memory.get("decided", "0"))
    numbers = [*range(1, decided + 1)]
    assert sorted(int(alert.id[1:]) for alert in stored.alerts) == numbers
    assert sorted(int(incident.id[1:]) for incident in stored.incidents) == numbers
    assert [sample.time_ns for sample in stored.samples] == numbers
    assert [stream.cursor_ns for stream in stored.streams] == numbers[-1:]
    assert all(stream.seen == {stream.cursor_ns: (stream.cursor_ns, 1)} for stream in stored.streams)


def check_promises(stored: Stored, reader: StateReader, writer: Writer) -> None:
    rows = {
        (int(row.notification.incident.id[1:]), row.notification.channel): row
        for incident in stored.incidents
        for row in reader.deliveries(incident.id)
    }
    told = {(int(entry.incident[1:]), entry.channel) for entry in stored.ledger}
    untold = {int(change.incident[1:]) for change in stored.transitions}
    planned = {number for number, _ in rows}

    assert writer.numbers("T1") <= untold | planned
    assert not untold & planned
    assert all({channel for number, channel in rows if number == one} == CHANNELS for one in planned)
    assert writer.numbers("T2") <= planned
    assert writer.pairs("T3") <= told
    assert told == {key for key, row in rows.items() if row.state is DeliveryState.DONE}
    for key in writer.pairs("START") - told:
        assert rows[key].state is DeliveryState.PENDING
        assert rows[key].notification.maybe_repeat


def test_killed_at_any_instant_nothing_promised_is_lost(path: Path, t0: datetime, writer: Writer) -> None:
    dice = random.Random(11)
    for _ in range(KILLS):
        writer.run(ENDLESS, kill_after=dice.randrange(1, 14), wait=dice.uniform(0.0, 0.004))

        store = SqliteStore.open(path, started=t0)
        stored = store.load()
        reader = SqliteReader.open(path)
        check_nothing_is_half_there(stored)
        check_promises(stored, reader, writer)
        reader.close()
        store.close()

    decided = int(stored.memory["decided"])
    writer.run(decided)

    store = SqliteStore.open(path, started=t0)
    stored = store.load()
    reader = SqliteReader.open(path)
    assert (stored.outbox, stored.transitions) == ((), ())
    assert len(stored.ledger) == len(CHANNELS) * decided
    attempts = [attempt for found in stored.incidents for attempt in reader.attempts(found.id)]
    repeats = [attempt for attempt in attempts if attempt.result.answer is Answer.UNKNOWN]
    assert len(repeats) <= KILLS
    assert len(attempts) == len(CHANNELS) * decided + len(repeats)
    reader.close()
    store.close()
