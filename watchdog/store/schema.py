"""The schema's versions: which one a file has, whether it is ours and whole, and the way forward.

`PRAGMA user_version` holds the version. Migrations are numbered SQL files, append-only; each runs
in one transaction together with the new number. A file from a newer program is refused.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from importlib import resources

from watchdog.errors import StoreError
from watchdog.store.failures import damaged

APPLICATION_ID = 0x4A6F6257  # "JobW"


def migrations() -> tuple[str, ...]:
    """Return the SQL of every migration; the n-th leads to version n."""
    folder = resources.files("watchdog.store.migrations")
    files = sorted(
        (file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name
    )
    for number, file in enumerate(files, start=1):
        assert int(file.name[:4]) == number, f"migration {file.name} breaks the numbering"
    return tuple(file.read_text(encoding="utf-8") for file in files)


def version(connection: sqlite3.Connection) -> int:
    """Return the schema version of a file; 0 = nothing in it yet."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def check_ours(connection: sqlite3.Connection, name: str, known: int) -> None:
    """Refuse a file of a newer program, or one that is not ours.

    Raises:
        StoreError: says which it is, and what to do.
    """
    found = version(connection)
    ours = connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
    empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
    if not ours and not empty:
        raise StoreError(
            f"{name} is a SQLite file of another program: choose another path for the state file"
        )
    if found > known:
        raise StoreError(
            f"the state file {name} was written by a newer watchdog (schema {found}, this one knows {known}):"
            " run that version or a newer one, or choose another path for the state file"
        )


def check_whole(connection: sqlite3.Connection, name: str) -> None:
    """Refuse a damaged file; it is left as it is.

    Raises:
        StoreError: says what was found, and what to do.
    """
    findings = [str(row[0]) for row in connection.execute("PRAGMA quick_check(3)")]
    if findings != ["ok"]:
        raise StoreError(damaged(name, " ".join("; ".join(findings).split())))


def migrate(connection: sqlite3.Connection, steps: Sequence[str]) -> None:
    """Bring a file to the newest version, one transaction a step."""
    for number in range(version(connection) + 1, len(steps) + 1):
        connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in _statements(steps[number - 1]):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {number}")
            connection.execute("COMMIT")
        except sqlite3.Error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def _statements(script: str) -> Iterator[str]:
    # `executescript` would commit first, and a half-done migration must not stay.
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
    assert not pending.strip(), "a migration ends in the middle of a statement"
