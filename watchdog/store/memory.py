"""State without a disk, for `watchdog test` and simulations: the same SQLite code on ":memory:".

A `MemoryState` outlives the stores opened on it, as a file outlives its daemons: opening it anew is
a restart, wherever the previous store was left.
"""

import sqlite3

from watchdog.store.database import Database, configured
from watchdog.store.reader import SqliteReader
from watchdog.store.sqlite import SqliteStore


class MemoryState:
    """One state file that lives in this process."""

    def __init__(self) -> None:
        self._connection = configured(
            sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        )

    def open(self) -> SqliteStore:
        """Open the state as a daemon does at its start; closing the store keeps the state."""
        return SqliteStore(self._database())

    def reader(self) -> SqliteReader:
        """Open the state for reading; it must have been opened as a store before."""
        return SqliteReader(self._database())

    def refuse_writes(self, refused: bool) -> None:
        """Make every write fail from now on as a read-only disk does, or end that."""
        self._connection.execute(f"PRAGMA query_only = {int(refused)}")

    def discard(self) -> None:
        """Forget everything."""
        self._connection.close()

    def _database(self) -> Database:
        return Database(lambda: self._connection, "in memory")
