"""One daemon per state file: an exclusive flock on a lock file beside it, which names its holder.

The kernel drops the lock when the holder ends, however it ends: a left-over file means nothing. The
file is never removed (that would let two daemons hold two files of one name).
"""

import contextlib
import errno
import fcntl
import os
import socket
from datetime import UTC, datetime
from pathlib import Path

from watchdog.errors import StateHeldError, StoreError

_TEXT_LIMIT = 500


class StateLock:
    """A held lock; `release` gives it back. Children that are executed do not inherit it."""

    def __init__(self, path: Path, started: datetime) -> None:
        """Take the lock at `path`, or say who holds it.

        Raises:
            StateHeldError: another process (or another store of this one) holds it.
            StoreError: the lock file cannot be made or locked here.
        """
        self._path = path
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise StoreError(f"cannot make the lock file {path}: {error.strerror}") from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            text = self._refusal(error)
            os.close(self._descriptor)
            kind = StateHeldError if error.errno in (errno.EWOULDBLOCK, errno.EACCES) else StoreError
            raise kind(text) from None
        self._write(f"pid {os.getpid()} on host {socket.gethostname()} since {_stamp(started)}\n")

    def release(self) -> None:
        """Give the lock back; a second call does nothing."""
        if self._descriptor >= 0:
            self._write("")
            os.close(self._descriptor)
            self._descriptor = -1

    def _refusal(self, error: OSError) -> str:
        state = self._path.with_suffix("")
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            return f"cannot lock {self._path}: {error.strerror} (is it on a network file system?)"
        holder = os.pread(self._descriptor, _TEXT_LIMIT, 0).decode("utf-8", "replace").strip()
        return f"the state file {state} is held by {holder or 'another process'}: two daemons cannot share it"

    def _write(self, text: str) -> None:
        # Naming the holder is a courtesy: a full disk must not keep the daemon from starting.
        with contextlib.suppress(OSError):
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, text.encode(), 0)


def lock_path(state: Path) -> Path:
    """Return where the lock of a state file lives."""
    return state.with_name(state.name + ".lock")


def _stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
