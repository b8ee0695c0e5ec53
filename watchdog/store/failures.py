"""SQLite's errors in words a person can act on."""

import sqlite3

_REMEDY = (
    "stop the watchdog, move the file away together with its -wal and -shm files (keep them: "
    "`sqlite3 FILE .recover` may rescue them) and start again; open incidents, unsent messages and "
    "log positions are then forgotten"
)
_LOCKED = "is locked by another process that has it open for writing"
_ADVICE = {
    sqlite3.SQLITE_FULL: "could not be written, the disk is full: free some space",
    sqlite3.SQLITE_IOERR: "could not be read or written: check the disk, its quota and the file size limit",
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_READONLY: "cannot be written: read-only file system, or missing permission",
    sqlite3.SQLITE_PERM: "cannot be used: missing permission",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened: check that it exists, its permissions and its folder's",
    sqlite3.SQLITE_NOTADB: f"is damaged, or no state file at all: {_REMEDY}",
    sqlite3.SQLITE_CORRUPT: f"is damaged: {_REMEDY}",
}


def primary_code(error: BaseException) -> int:
    """Return SQLite's primary result code of an error; 0 if it has none."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def explain(error: BaseException, name: str) -> str:
    """Return one line that says what happened to the state file `name`, and what to do."""
    advice = _ADVICE.get(primary_code(error), "could not be used")
    reason = " ".join(str(error).split())
    code = getattr(error, "sqlite_errorname", type(error).__name__)
    return f"the state file {name} {advice} ({reason}, {code})"


def damaged(name: str, detail: str) -> str:
    """Return the same line for damage that a check found."""
    return f"the state file {name} is damaged ({detail}): {_REMEDY}"
