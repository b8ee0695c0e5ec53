"""The state as verbs see it: `StateReader` on a connection that cannot write.

Works beside a running daemon and without one; never migrates, repairs or locks out anybody.
"""

import os
import sqlite3
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Self, TypeVar

from watchdog.core.alerts import Incident, Transition
from watchdog.core.notifications import Delivery, LedgerEntry
from watchdog.errors import StoreError
from watchdog.ports import AttemptRecord, StateReader, Stored
from watchdog.store import queries, schema
from watchdog.store.database import BUSY_TIMEOUT, Database, connect_file

T = TypeVar("T")


class SqliteReader:
    """Implements `ports.StateReader`. Use from one thread at a time."""

    def __init__(self, database: Database) -> None:
        """Check that this version can read the database."""
        self._database = database
        known = len(schema.migrations())
        with database.plain() as connection:
            schema.check_ours(connection, database.name, known)
            found = schema.version(connection)
        if found < known:
            raise StoreError(
                f"the state file {database.name} is empty: the watchdog has not run yet"
                if found == 0
                else f"the state file {database.name} was written by an older watchdog (schema {found}; this "
                f"one reads {known}): start this version once, it brings the file up to date"
            )

    @classmethod
    def open(cls, path: Path, *, busy: timedelta = BUSY_TIMEOUT) -> Self:
        """Open a state file for reading.

        Raises:
            StoreError: there is none, or it cannot be read; says why.
        """
        path = Path(os.path.realpath(path))  # also of a link that leads nowhere
        if not path.exists():
            raise StoreError(f"there is no state file {path}: the watchdog has not run with it yet")
        database = Database(lambda: _connect(path, busy), str(path), path)
        try:
            return cls(database)
        except BaseException:
            database.close()
            raise

    def load(self) -> Stored:
        """Everything a start would resume from, as it stands: what is in flight is shown as such."""
        return self._ask(queries.read_all)

    def incidents(self, *, limit: int) -> Sequence[Incident]:
        """The newest incidents, open ones first."""
        return self._ask(lambda connection: queries.newest_incidents(connection, limit))

    def incident(self, incident: str) -> Incident | None:
        """One incident by its id; None if it is not known (any more)."""
        return self._ask(lambda connection: queries.incident_by_id(connection, incident))

    def incident_ids(self, beginning: str, *, limit: int) -> Sequence[str]:
        """The ids that begin so, at most `limit`, the newest first."""
        return self._ask(lambda connection: queries.incident_ids(connection, beginning, limit))

    def transitions(self, incident: str) -> Sequence[Transition]:
        """The changes of an incident, oldest first, as far back as they are kept."""
        return self._ask(lambda connection: queries.transitions_of(connection, incident))

    def deliveries(self, incident: str) -> Sequence[Delivery]:
        """Every delivery of an incident, oldest first."""
        return self._ask(lambda connection: queries.deliveries_of(connection, incident))

    def attempts(self, incident: str) -> Sequence[AttemptRecord]:
        """Every attempt of every delivery of an incident, in the order they ended."""
        return self._ask(lambda connection: queries.attempts_of(connection, incident))

    def ledger(self, incident: str) -> Sequence[LedgerEntry]:
        """What each channel was last told of an incident."""
        return self._ask(lambda connection: queries.ledger_of(connection, incident))

    def undelivered(self, *, limit: int) -> Sequence[Delivery]:
        """The newest deliveries that were given up, over all incidents."""
        return self._ask(lambda connection: queries.dead(connection, limit))

    def close(self) -> None:
        """Release the file."""
        self._database.close()

    def _ask(self, question: Callable[[sqlite3.Connection], T]) -> T:
        with self._database.snapshot() as connection:
            return question(connection)


def ask(path: Path, question: Callable[[StateReader], T]) -> T:
    """Put a question to a state file, whether or not a daemon writes it.

    Raises:
        StoreError: it cannot be read.
    """
    reader = SqliteReader.open(path)
    try:
        return question(reader)
    finally:
        reader.close()


def _connect(path: Path, busy: timedelta) -> sqlite3.Connection:
    connection = connect_file(path, busy, "ro")
    try:
        schema.version(connection)
    except sqlite3.OperationalError:
        connection.close()
        wal = path.with_name(path.name + "-wal")
        if wal.exists() and wal.stat().st_size:
            raise
        # No daemon has it open, and the folder cannot take the WAL's index: nobody writes.
        return connect_file(path, busy, "ro", immutable=True)
    except sqlite3.Error:
        connection.close()
        raise
    return connection
