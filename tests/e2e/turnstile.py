"""Kills a daemon between two of its transactions; run as a process of its own.

SQLite lets one writer in at a time. By holding the write lock and giving it back for one
transaction only, this lets the daemon through step by step, looks at what it has stored, and kills
it while it waits for the lock. It then ends without closing the file: closing would tidy the
write-ahead log, and the next start is to find it as the kill left it.

Arguments: state file, process id, window, the receiver's file, seconds of patience.
Prints "hit" or "missed"; or "torn" if a log cursor was ever moved without its slot.
"""

import os
import signal
import sqlite3
import sys
import time
from pathlib import Path

DECIDED = """
    SELECT count(*) FROM transitions t
    WHERE t.change = 'opened' AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.incident = t.incident)
"""
CONSUMED = """
    SELECT (SELECT total(cursor_ns) FROM streams), (SELECT count(*) FROM seen),
        (SELECT value FROM meta WHERE name = 'slot_us')
"""
COUNT = "SELECT count(*) FROM outbox WHERE state = ?"


class Turnstile:
    """Holds the write lock of a state file."""

    def __init__(self, state: Path, received: Path, deadline: float) -> None:
        self._connection = sqlite3.connect(state, isolation_level=None, timeout=0)
        self._received = received
        self._deadline = deadline
        self._done = self._count("done")
        self._consumed = self._connection.execute(CONSUMED).fetchone()
        self.torn = False  # whether lines were ever marked as read by anything but a slot's own transaction
        self._steps = int.from_bytes(os.urandom(1)) % 6

    def hit(self, window: str) -> bool:
        """Let transactions through until the daemon stands in this window; the lock is then held."""
        while time.monotonic() < self._deadline:
            if not self._take():
                continue
            self._compare()
            if self._inside(window):
                return True
            before = self._version()
            self._connection.execute("ROLLBACK")
            until = min(time.monotonic() + 0.5, self._deadline)
            while self._version() == before and time.monotonic() < until:
                time.sleep(0.0001)
        return False

    def _take(self) -> bool:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            time.sleep(0.0002)
            return False
        return True

    def _compare(self) -> None:
        (*before, slot), self._consumed = self._consumed, self._connection.execute(CONSUMED).fetchone()
        *after, now = self._consumed
        self.torn |= before != after and slot == now

    def _inside(self, window: str) -> bool:
        if window == "T1":  # decided, and not planned
            return self._value(DECIDED) > 0
        if window == "T2":  # planned, and nothing has begun to be sent
            return self._count("pending") > 0 and self._count("inflight") == 0
        if window == "started":  # marked as in flight; sent or not
            return self._count("inflight") > 0
        if window == "sent":  # it has arrived, and the answer cannot be stored
            return self._count("inflight") > 0 and self._arrives()
        if window == "step":  # after some transaction, whatever it was
            self._steps -= 1
            return self._steps < 0
        done, self._done = self._done, self._count("done")  # T3
        return self._done > done

    def _arrives(self) -> bool:
        before = self._size()
        until = time.monotonic() + 0.7
        while time.monotonic() < until:
            if self._size() > before:
                return True
            time.sleep(0.001)
        return False

    def _size(self) -> int:
        return self._received.stat().st_size if self._received.exists() else 0

    def _count(self, state: str) -> int:
        return int(self._value(COUNT, state))

    def _value(self, query: str, *values: object) -> int:
        return self._connection.execute(query, values).fetchone()[0] or 0

    def _version(self) -> int:
        return int(self._connection.execute("PRAGMA data_version").fetchone()[0])


def main() -> None:
    state, pid, window, received, patience = sys.argv[1:]
    turnstile = Turnstile(Path(state), Path(received), time.monotonic() + float(patience))
    hit = turnstile.hit(window)
    os.kill(int(pid), signal.SIGKILL)
    sys.stdout.write("torn\n" if turnstile.torn else "hit\n" if hit else "missed\n")
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
