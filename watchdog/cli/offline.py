"""What reading verbs do when no daemon answers: they read its state file, and say so."""

import os
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Protocol, TypeVar

from watchdog.cli.client import NOT_RUNNING, Daemon, NotRunningError, RefusedError
from watchdog.cli.output import standard_output
from watchdog.cli.telling import Teller, print_json
from watchdog.engine.protocol import AnyRequest, Refusal
from watchdog.errors import StoreError, WatchdogError
from watchdog.ports import StateReader


class Dated(Protocol):
    """Any view."""

    @property
    def timezone(self) -> str:
        """The zone it is told in."""

    @property
    def at(self) -> datetime | None:
        """As of when it is; None = unknown."""

    @property
    def live(self) -> bool:
        """Whether a daemon told it."""


T = TypeVar("T")
V = TypeVar("V", bound=Dated)

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


def answer(
    request: AnyRequest,
    view: type[V],
    question: Callable[[StateReader], V],
    show: Callable[[V, Teller], None],
    *,
    state: Path | None,
    as_json: bool,
) -> int:
    """Answer a reading verb: look, then print JSON or what `show` makes of it; return the exit code.

    Raises:
        RefusedError, NothingKnownError: as `look`.
    """
    from watchdog.cli.loading import read_settings

    found, why_stored = look(Daemon.of(read_settings().settings, state=state), request, view, question)
    output = standard_output()
    if as_json:
        print_json(output, found)
    else:
        teller = Teller(output, found.timezone, found.at)
        teller.stored(live=found.live, at=found.at, remark=why_stored)
        show(found, teller)
    return 0 if found.live else NOT_RUNNING


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
