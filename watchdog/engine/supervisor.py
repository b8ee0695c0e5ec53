"""Speaks to the service manager that started us (systemd's notification protocol); silent without one.

READY after the first slot; the watchdog is fed only while slots go on, so that a loop that hangs is
killed and started anew, and so is one whose slots hang while the loop still turns.
"""

import contextlib
import logging
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Self

from watchdog.core.moments import Tick
from watchdog.core.vitals import allowance, judge, summary
from watchdog.engine.engine import Engine
from watchdog.engine.vitals import vitals_of
from watchdog.ports import Clock

log = logging.getLogger(__name__)

SLOW_START = timedelta(minutes=5)  # a large state file, a first round of answers
FEEDS = 3  # a watchdog period
PATIENCE = timedelta(seconds=2)  # with a full queue: a lost READY would be the end of us
MICROSECOND = timedelta(microseconds=1)


@dataclass(slots=True, kw_only=True)
class Supervisor:
    """One process's word to its service manager. address: "" = there is none."""

    clock: Clock
    address: str = ""
    watchdog: timedelta | None = None  # killed when not fed for so long
    ready: bool = False
    _status: str = ""

    @classmethod
    def of(cls, environ: Mapping[str, str], pid: int, clock: Clock) -> Self:
        """Return what a service manager has left in the environment."""
        usec = environ.get("WATCHDOG_USEC", "")
        ours = environ.get("WATCHDOG_PID", str(pid)) == str(pid)
        fed = ours and usec.isascii() and usec.isdigit() and int(usec) > 0
        return cls(
            clock=clock,
            address=environ.get("NOTIFY_SOCKET", ""),
            watchdog=int(usec) * MICROSECOND if fed else None,
        )

    def starting(self) -> None:
        """Ask for patience: reading the state and the first answers may take a while."""
        self._send(f"EXTEND_TIMEOUT_USEC={SLOW_START // MICROSECOND}", "STATUS=starting")

    def after_slot(self, engine: Engine, tick: Tick) -> None:
        """Say that we are ready after the first slot, and how things stand after each."""
        del tick
        status = _status(engine)
        if not self.ready:
            self.ready = True
            self._send("READY=1", f"STATUS={status}")
        elif status != self._status:
            self._send(f"STATUS={status}")
        self._status = status

    async def run(self, engine: Engine) -> None:
        """Feed the watchdog as long as slots go on. Ends only by cancellation."""
        if self.watchdog is None or not self.address:
            return
        while True:
            if self.progressing(engine):
                self._send("WATCHDOG=1")
            await self.clock.sleep(self.watchdog / FEEDS)

    def progressing(self, engine: Engine) -> bool:
        """Whether the next slot is not overdue."""
        interval = engine.schedule.interval
        return engine.pulse.since_slot(self.clock.monotonic()) <= interval + allowance(interval)

    @contextlib.contextmanager
    def reload(self) -> Iterator[None]:
        """Say that a reload begins and, however it ends, that it has ended."""
        self._send(
            "RELOADING=1", f"MONOTONIC_USEC={self.clock.monotonic() // MICROSECOND}", "STATUS=reloading"
        )
        try:
            yield
        finally:
            self._send("READY=1", f"STATUS={self._status}")

    def stopping(self) -> None:
        """Say that we are on our way out."""
        self._send("STOPPING=1", "STATUS=stopping")

    def _send(self, *lines: str) -> None:
        if not self.address:
            return
        address = f"\0{self.address[1:]}" if self.address.startswith("@") else self.address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
                channel.settimeout(PATIENCE.total_seconds())
                channel.sendto("\n".join(lines).encode(), address)
        except OSError as error:
            log.debug("the service manager cannot be told reason=%s", error.strerror)


def _status(engine: Engine) -> str:
    """One line for `systemctl status`."""
    vitals = vitals_of(engine)
    reasons = judge(vitals).reasons
    return "; ".join((f"not healthy: {'; '.join(reasons)}" if reasons else "watching", summary(vitals)))
