"""The verbs' end of the control socket: one request, one answer, and a clear word for every failure.

Blocking and small, so that a verb starts fast. Knows no verb.
"""

import errno
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Protocol, TypeVar

import msgspec
import typer

from watchdog.engine.protocol import MAX_ANSWER, AnyRequest, read_answer, write_request
from watchdog.errors import WatchdogError

CONNECT_SECONDS = 3.0
ANSWER_SECONDS = 30.0
SLOW_SECONDS = 180.0  # of verbs that wait for somebody outside
NOT_RUNNING = 3  # exit code

T = TypeVar("T")

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
StateOption = Annotated[
    Path | None,
    typer.Option(
        "--state", help="The daemon's state file.", show_default="$JOB_WATCHDOG_STATE, else its place"
    ),
]


class NotRunningError(WatchdogError):
    """Nobody listens on the control socket."""

    exit_code = NOT_RUNNING


class RefusedError(WatchdogError):
    """The daemon answered that it cannot; `code` says why."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


class Places(Protocol):
    """Where to look for a daemon: what `Settings` has of it."""

    @property
    def state_path(self) -> Path:
        """The state file."""
        ...

    def socket_path(self, state: Path) -> Path:
        """The control socket that belongs to a state file."""
        ...

    def socket_places(self, state: Path) -> tuple[Path, ...]:
        """Where its control socket may be, the likeliest place first."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Daemon:
    """One daemon, running or not: where its socket may be, and its state file."""

    places: tuple[Path, ...]
    state: Path

    @classmethod
    def of(cls, settings: Places, *, state: Path | None) -> "Daemon":
        """Return the daemon that settings mean, or that has this state file."""
        if state is not None:
            return cls(places=(settings.socket_path(state),), state=state)
        return cls(places=settings.socket_places(settings.state_path), state=settings.state_path)

    def ask(self, request: AnyRequest, view: type[T], *, slow: bool = False) -> T:
        """Put a request to it and return the view it answers with.

        Raises:
            NotRunningError: nobody listens.
            RefusedError: it cannot answer, or we may not ask.
        """
        patience = SLOW_SECONDS if slow else ANSWER_SECONDS
        with _connected(self.places) as connection:
            try:
                connection.settimeout(patience)
                connection.sendall(write_request(request))
                line = _line(connection)
            except TimeoutError:
                raise RefusedError("too slow", f"the daemon did not answer in {patience:g} s") from None
            except OSError as error:
                raise RefusedError("failed", f"the daemon hung up: {error.strerror or error}") from error
        return _read(line, view)


def _connected(places: Sequence[Path]) -> socket.socket:
    """Connect to the first place where somebody listens."""
    denied: Path | None = None
    for place in places:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(CONNECT_SECONDS)
            connection.connect(os.fspath(place))
        except OSError as error:
            connection.close()
            if error.errno in (errno.EACCES, errno.EPERM):
                denied = denied or place
            elif isinstance(error, TimeoutError) or error.errno == errno.EAGAIN:
                raise RefusedError("busy", f"the daemon at {place} is too busy to answer") from error
        else:
            return connection
    if denied is not None:
        message = f"{denied}: permission denied: ask as the daemon's user, or join its group"
        raise RefusedError("permission", message)
    raise NotRunningError(f"no daemon listens on {' or '.join(map(str, places))}")


def _line(connection: socket.socket) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while not pieces or not pieces[-1].endswith(b"\n"):
        piece = connection.recv(1 << 16)
        size += len(piece)
        if not piece or size > MAX_ANSWER:
            raise RefusedError("failed", "the daemon hung up in the middle of its answer")
        pieces.append(piece)
    return b"".join(pieces)


def _read(line: bytes, view: type[T]) -> T:
    try:
        answer = read_answer(line)
        if not answer.ok:
            raise RefusedError(answer.code, answer.message)
        return msgspec.json.decode(answer.result, type=view)
    except msgspec.MsgspecError as error:
        raise RefusedError("version", f"the daemon's answer is not understood: {error}") from error
