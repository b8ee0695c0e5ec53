"""The connection to the state file: transactions that are whole or nothing, failures in our words.

Knows nothing of tables. After a failed transaction the object stays usable; a connection that
became doubtful is closed and made anew at the next use.
"""

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import msgspec

from watchdog.errors import StoreError
from watchdog.store.failures import explain, primary_code

BUSY_TIMEOUT = timedelta(seconds=5)
_WAL_KEPT = 4 * 1024 * 1024  # bytes that the WAL may keep after a checkpoint
_CACHE = 512  # KiB of pages per connection; the system keeps the file in its own cache, too
_VACUUM_PAGES = 5_000  # given back to the file system per call: 20 MiB
_PASSING = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_WRITE = "BEGIN IMMEDIATE"
_NO_INDEX = frozenset(
    {sqlite3.SQLITE_IOERR_SHMOPEN, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMMAP}
)


class Database:
    """One connection, and how to get another. Without a `path` it lives in memory and is kept open."""

    def __init__(
        self, connect: Callable[[], sqlite3.Connection], name: str, path: Path | None = None
    ) -> None:
        self.name = name
        self._connect = connect
        self._path = path
        self._file: tuple[int, int] | None = None
        self._connection: sqlite3.Connection | None = None

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Everything in the block is committed at its end, with one fsync, or nothing is.

        Raises:
            StoreError: the disk does not take it; it was rolled back.
        """
        with self._scope(_WRITE) as connection:
            yield connection

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """Every read in the block sees the same moment.

        Raises:
            StoreError: the file cannot be read.
        """
        with self._scope("BEGIN") as connection:
            yield connection

    @contextmanager
    def plain(self) -> Iterator[sqlite3.Connection]:
        """Outside a transaction: for pragmas.

        Raises:
            StoreError: it did not work.
        """
        with self._translated():
            yield self._ready()

    def tidy(self) -> None:
        """Give free pages back to the file system and move the WAL into the file; waits for nobody.

        Raises:
            StoreError: the disk does not take it.
        """
        with self.plain() as connection:
            # A step of this pragma frees one page: `execute` would stop after the first.
            connection.executescript(f"PRAGMA incremental_vacuum({_VACUUM_PAGES})")
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def close(self) -> None:
        """Close the connection; never fails."""
        connection, self._connection = self._connection, None
        if connection is not None and self._path is not None:
            with contextlib.suppress(sqlite3.Error):
                connection.close()

    @contextmanager
    def _scope(self, begin: str) -> Iterator[sqlite3.Connection]:
        with self._translated():
            connection = self._ready()
            try:
                connection.execute(begin)
            except sqlite3.Error as error:
                if primary_code(error) not in _PASSING:
                    self.close()
                raise
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                self._roll_back(connection)
                raise
            if begin == _WRITE and _alone(connection):
                self.close()  # there is space again: the next use lets readers in

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, sqlite3.Warning, OverflowError, ValueError, msgspec.MsgspecError) as error:
            raise StoreError(explain(error, self.name)) from error

    def _ready(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._connect()
            self._file = self._identity()
        elif self._file != self._identity():
            # SQLite would go on writing into a file that no restart will ever find.
            raise StoreError(
                f"the state file {self.name} was removed or replaced while open: put it back or restart"
            )
        return self._connection

    def _identity(self) -> tuple[int, int] | None:
        if self._path is None:
            return None
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _roll_back(self, connection: sqlite3.Connection) -> None:
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            self.close()


def connect_file(
    path: Path, busy: timedelta, mode: str = "rw", *, immutable: bool = False
) -> sqlite3.Connection:
    """Connect to an existing file. `mode`: "rw" or "ro"; `immutable`: nobody writes it, take no locks.

    On a disk so full that the WAL's shared index finds no room, a writer does without: it reads all
    there is, and locks readers out until it has written.
    """
    uri = f"{path.as_uri()}?mode={mode}" + ("&immutable=1" if immutable else "")
    if mode != "rw":
        return _connect(uri, busy)
    try:
        return _tried(_connect(uri, busy))
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode not in _NO_INDEX:
            raise
    return _connect(uri, busy, alone=True)


def _connect(uri: str, busy: timedelta, *, alone: bool = False) -> sqlite3.Connection:
    # The engine opens the store in one thread and uses it in another, never in two at once.
    connection = sqlite3.connect(
        uri, uri=True, timeout=busy.total_seconds(), isolation_level=None, check_same_thread=False
    )
    if alone:  # before anything is read
        connection.execute("PRAGMA locking_mode = EXCLUSIVE").fetchone()
    return configured(connection)


def _tried(connection: sqlite3.Connection) -> sqlite3.Connection:
    """Read a first page, which needs the WAL's index; or close the connection."""
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode in _NO_INDEX:
            connection.close()
            raise
    except sqlite3.Error:
        pass  # whoever uses it says what is wrong
    return connection


def _alone(connection: sqlite3.Connection) -> bool:
    """Whether this connection keeps everybody else out."""
    return bool(connection.execute("PRAGMA locking_mode").fetchone()[0] == "exclusive")


def configured(connection: sqlite3.Connection) -> sqlite3.Connection:
    """Set what holds per connection and not per file, or close it."""
    try:
        _configure(connection)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _configure(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute(f"PRAGMA cache_size = -{_CACHE}")
    connection.execute(f"PRAGMA journal_size_limit = {_WAL_KEPT}")
