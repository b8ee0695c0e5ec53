"""The state file: the daemon's `Store` on SQLite.

One writer, WAL, synchronous=FULL; T1, T2 and T3 are one transaction and one fsync each, and each
can be repeated. Owns opening and holding the file; the tables are `slots`, `outbox` and `queries`.
"""

import os
import stat
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Self

from watchdog.core.alerts import Transition
from watchdog.core.durations import EPOCH
from watchdog.core.moments import Moment
from watchdog.core.notifications import Delivery, DeliveryState
from watchdog.errors import StoreError
from watchdog.ports import AttemptCommit, PlanCommit, SlotCommit, Stored
from watchdog.store import outbox, queries, schema, slots
from watchdog.store.database import BUSY_TIMEOUT, Database, connect_file
from watchdog.store.lock import StateLock, lock_path

_LONG_AGO = Moment(at=EPOCH, watched=timedelta())


class SqliteStore:
    """Implements `ports.Store`. Use from one thread at a time."""

    def __init__(self, database: Database, on_close: Callable[[], None] = lambda: None) -> None:
        """Check and migrate an open database. `on_close` runs after the file was closed."""
        self._database = database
        self._on_close = on_close
        prepare(database)

    @classmethod
    def open(cls, path: Path, *, started: datetime, busy: timedelta = BUSY_TIMEOUT) -> Self:
        """Open the state file for the one daemon that may; make it if there is none.

        Args:
            path: the state file; its folder is made too (0700), the file gets mode 0600.
            started: now; told to a second daemon that wants the file.
            busy: how long one call waits for another process that has the file locked.

        Raises:
            StateHeldError: another daemon holds it; the text names it.
            StoreError: it cannot be opened, is damaged, or a newer program wrote it.
        """
        path = Path(os.path.realpath(path))  # also of a link that leads nowhere
        _make_folder(path.parent)
        lock = StateLock(lock_path(path), started)
        try:
            _make_file(path)
            database = Database(lambda: connect_file(path, busy), str(path), path)
            try:
                return cls(database, lock.release)
            except BaseException:
                database.close()
                raise
        except BaseException:
            lock.release()
            raise

    def load(self) -> Stored:
        """Read all that a start needs; what was in flight is pending again, and told so in its text."""
        with self._database.snapshot() as connection:
            stored = queries.read_all(connection)
        flying = {row.id for row in stored.outbox if row.state is DeliveryState.INFLIGHT}
        rows = tuple(outbox.interrupted(row) if row.id in flying else row for row in stored.outbox)
        self._remember_interrupted([row for row in rows if row.id in flying], stored.moment)
        return replace(stored, outbox=rows)

    def commit_slot(self, commit: SlotCommit) -> tuple[Transition, ...]:
        """T1. Returns the transitions with their `seq`: the given one, or a new one for 0."""
        with self._database.transaction() as connection:
            return slots.write_slot(connection, commit)

    def commit_plan(self, commit: PlanCommit) -> tuple[Delivery, ...]:
        """T2. Returns the rows with their ids (a new one for 0); one stored before comes as it stands."""
        with self._database.transaction() as connection:
            return outbox.write_plan(connection, commit)

    def start_attempt(self, delivery: Delivery) -> None:
        """Mark a row as in flight, before anything is sent; a row without an id is added."""
        with self._database.transaction() as connection:
            outbox.write_start(connection, delivery)

    def commit_attempt(self, commit: AttemptCommit) -> None:
        """T3; a row without an id is added, or found by what it says."""
        with self._database.transaction() as connection:
            outbox.write_attempt(connection, commit)

    def prune(self, now: datetime) -> None:
        """Drop what nobody needs any more, by age, and give the space back."""
        with self._database.transaction() as connection:
            outbox.prune(connection, now)
        self._database.tidy()

    def close(self) -> None:
        """Release the file and the lock; a second call does nothing."""
        self._database.close()
        self._on_close()

    def _remember_interrupted(self, rows: list[Delivery], moment: Moment | None) -> None:
        if not rows:
            return
        try:
            with self._database.transaction() as connection:
                for row in rows:
                    outbox.write_interrupted(connection, row, moment or _LONG_AGO)
        except StoreError:
            # A full disk must not keep the daemon from starting: the next start finds the rows as
            # they are now, and the next commit reports the disk.
            return


def prepare(database: Database) -> None:
    """Bring a database into use: modes, identity, integrity, migrations.

    Raises:
        StoreError: it is not ours, damaged, newer, or cannot be written.
    """
    steps = schema.migrations()
    with database.plain() as connection:
        schema.check_ours(connection, database.name, len(steps))
        schema.check_whole(connection, database.name)
        if schema.version(connection) == 0:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # only before the first table
        mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        if mode not in ("wal", "memory"):
            raise StoreError(
                f"the state file {database.name} cannot use a write-ahead log: put it on a local disk"
            )
        schema.migrate(connection, steps)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"cannot make the folder {folder} for the state file: {error.strerror}") from error


def _make_file(path: Path) -> None:
    # Before SQLite opens it: its -wal and -shm files take over the mode.
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if stat.S_IMODE(os.fstat(descriptor).st_mode) & 0o077:
                os.fchmod(descriptor, 0o600)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StoreError(f"cannot open the state file {path}: {error.strerror}") from error
