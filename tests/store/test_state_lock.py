"""One daemon per state file, whatever became of the last one."""

import os
import signal
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest

from watchdog.errors import StateHeldError, StoreError
from watchdog.store.lock import StateLock, lock_path
from watchdog.store.sqlite import SqliteStore

HOLD_THE_LOCK = """
import sys
from pathlib import Path
from watchdog.core.durations import from_ns
from watchdog.store.lock import StateLock
lock = StateLock(Path(sys.argv[1]), from_ns(0))
print("held", flush=True)
sys.stdin.readline()
"""


def test_a_second_daemon_is_told_who_holds_the_state(path: Path, t0: datetime) -> None:
    store = SqliteStore.open(path, started=t0)

    with pytest.raises(StateHeldError) as refusal:
        SqliteStore.open(path, started=t0)

    store.close()
    host = os.uname().nodename
    assert f"{path} is held by pid {os.getpid()} on host {host} since 2026-11-30 08:00:00 UTC" in str(
        refusal.value
    )


def test_another_name_of_the_same_file_is_the_same_state(path: Path, t0: datetime, tmp_path: Path) -> None:
    store = SqliteStore.open(path, started=t0)
    (tmp_path / "link").symlink_to(path)

    with pytest.raises(StateHeldError):
        SqliteStore.open(tmp_path / "link", started=t0)

    store.close()


def test_a_killed_holder_holds_nothing(path: Path, t0: datetime) -> None:
    path.parent.mkdir()
    command = [sys.executable, "-c", HOLD_THE_LOCK, str(lock_path(path))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(StateHeldError, match=f"held by pid {holder.pid} on host .* since 1970-01-01"):
            SqliteStore.open(path, started=t0)
        holder.send_signal(signal.SIGKILL)

    assert b"pid" in lock_path(path).read_bytes()
    SqliteStore.open(path, started=t0).close()


def test_a_left_over_lock_file_means_nothing(path: Path, t0: datetime) -> None:
    path.parent.mkdir()
    lock_path(path).write_text("pid 1 on host elsewhere since 2020-01-01 00:00:00 UTC\n")

    SqliteStore.open(path, started=t0).close()

    assert lock_path(path).read_text() == ""


def test_a_program_started_by_the_daemon_does_not_keep_the_lock(path: Path, t0: datetime) -> None:
    path.parent.mkdir()
    lock = StateLock(lock_path(path), t0)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, close_fds=False) as child:
        lock.release()

        StateLock(lock_path(path), t0).release()

        assert child.poll() is None
        child.communicate()


def test_a_lock_file_that_is_a_link_is_refused(path: Path, t0: datetime, tmp_path: Path) -> None:
    path.parent.mkdir()
    lock_path(path).symlink_to(tmp_path / "elsewhere")

    with pytest.raises(StoreError, match="cannot make the lock file"):
        SqliteStore.open(path, started=t0)
