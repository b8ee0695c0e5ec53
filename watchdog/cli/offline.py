"""What reading verbs do when no daemon answers: they read its state file, and say so."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from watchdog.cli.client import NOT_RUNNING, Daemon, NotRunningError, RefusedError
from watchdog.engine.protocol import AnyRequest, Refusal
from watchdog.errors import StoreError, WatchdogError
from watchdog.ports import StateReader

T = TypeVar("T")

_HOLDER = re.compile(r"pid (\d+) on host (\S+)")
_HOLDER_SIZE = 500


class NothingKnownError(WatchdogError):
    """Neither a daemon nor a state file can tell anything."""

    exit_code = NOT_RUNNING


def look(
    daemon: Daemon, request: AnyRequest, view: type[T], question: Callable[[StateReader], T]
) -> tuple[T, str]:
    """Ask the daemon, or its state file if none answers; return the view, and why it is not live.

    Raises:
        RefusedError: there is no such thing, or we may not ask.
        NothingKnownError: there is no daemon and no state file.
    """
    try:
        return daemon.ask(request, view), ""
    except NotRunningError as error:
        silent = error
    from watchdog.store.reader import ask

    try:
        return ask(daemon.state, question), remark(daemon)
    except StoreError as error:
        raise NothingKnownError(f"{silent}; {error}") from error
    except Refusal as refusal:
        raise RefusedError(refusal.code, f"{refusal} ({remark(daemon)})") from refusal


def remark(daemon: Daemon) -> str:
    """Say what is known of a daemon that does not answer."""
    pid = holder(daemon.state)
    if pid:
        return f"no daemon answers, though process {pid} holds the state (is its socket elsewhere?)"
    return "the daemon is not running"


def holder(state: Path) -> int:
    """Return the process that says it holds a state file, if it is alive on this machine; else 0."""
    from watchdog.store.lock import lock_path

    try:
        with lock_path(state).open(encoding="utf-8", errors="replace") as file:
            found = _HOLDER.match(file.read(_HOLDER_SIZE))
    except OSError:
        return 0
    if found is None or found[2] != os.uname().nodename:
        return 0
    pid = int(found[1])
    return pid if Path(f"/proc/{pid}").exists() else 0
