"""What the service manager hears, over a real datagram socket."""

import asyncio
import os
import socket
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from watchdog.engine.engine import Engine
from watchdog.engine.supervisor import Supervisor

TEXT = """\
description: a quiet task
begin: 0m
length: 5m
series:
  - { metric: gpu, values: '95%' }
rules:
  - { name: low, metric: gpu, below: 20%, for: 1h }
expect: []
"""


class Manager:
    """The other end of the socket."""

    def __init__(self, address: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(address)
        self._socket.setblocking(False)

    def heard(self) -> list[str]:
        found = []
        while True:
            try:
                found.append(self._socket.recv(4096).decode())
            except BlockingIOError:
                return found

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    made = Manager(str(tmp_path / "notify"))
    yield made
    made.close()


def _of(tmp_path: Path, engine: Engine, **environ: str) -> Supervisor:
    settings = {"NOTIFY_SOCKET": str(tmp_path / "notify"), **environ}
    return Supervisor.of(settings, os.getpid(), engine.parts.clock)


def test_ready_comes_after_the_first_slot_and_the_status_only_when_it_changes(
    perform, manager: Manager, tmp_path: Path
) -> None:
    before: list[list[str]] = []

    def attach(engine: Engine) -> None:
        supervisor = _of(tmp_path, engine)
        supervisor.starting()
        before.append(manager.heard())
        engine.on_slot = supervisor.after_slot

    perform(TEXT, attach)
    assert before == [["EXTEND_TIMEOUT_USEC=300000000\nSTATUS=starting"]]
    assert manager.heard() == ["READY=1\nSTATUS=watching; 1 task, 2 rules, 0 firing, 0 messages waiting"]


def test_an_abstract_address_is_heard_too(perform, tmp_path: Path) -> None:
    name = f"job-watchdog-{os.getpid()}"
    manager = Manager(f"\0{name}")

    def attach(engine: Engine) -> None:
        engine.on_slot = _of(tmp_path, engine, NOTIFY_SOCKET=f"@{name}").after_slot

    perform(TEXT, attach)
    assert manager.heard()[0].startswith("READY=1\n")
    manager.close()


def test_the_watchdog_is_fed_three_times_a_period_while_slots_go_on(
    perform, manager: Manager, tmp_path: Path
) -> None:
    def attach(engine: Engine) -> None:
        supervisor = _of(tmp_path, engine, WATCHDOG_USEC="60000000", WATCHDOG_PID=str(os.getpid()))
        feeding.append(asyncio.ensure_future(supervisor.run(engine)))
        engine.on_slot = lambda *_: heard.extend(manager.heard())

    feeding: list[asyncio.Task[None]] = []
    heard: list[str] = []
    perform(TEXT, attach)
    assert heard == ["WATCHDOG=1"] * len(heard)
    assert len(heard) in (15, 16)


def test_it_is_not_fed_once_a_slot_is_overdue(perform, manager: Manager, tmp_path: Path) -> None:
    fed: list[tuple[float, bool]] = []

    def attach(engine: Engine) -> None:
        supervisor = _of(tmp_path, engine, WATCHDOG_USEC="60000000")
        last = engine.parts.clock.monotonic()
        engine.pulse.beat(last, last)
        for seconds in (0, 60, 90, 91, 3600):
            engine.pulse.ended = last - timedelta(seconds=seconds)
            fed.append((seconds, supervisor.progressing(engine)))

    perform(TEXT, attach)
    assert fed == [(0, True), (60, True), (90, True), (91, False), (3600, False)]


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"WATCHDOG_USEC": ""},
        {"WATCHDOG_USEC": "0"},
        {"WATCHDOG_USEC": "x"},
        {"WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "1"},
    ],
)
def test_a_watchdog_that_is_not_for_us_is_not_fed(perform, environ: dict[str, str]) -> None:
    def attach(engine: Engine) -> None:
        assert Supervisor.of(environ, os.getpid(), engine.parts.clock).watchdog is None

    perform(TEXT, attach)


def test_a_reload_is_said_with_its_time_and_ends_however_it_goes(
    perform, manager: Manager, tmp_path: Path
) -> None:
    def attach(engine: Engine) -> None:
        supervisor = _of(tmp_path, engine)
        with pytest.raises(ValueError, match="bad file"), supervisor.reload():
            raise ValueError("bad file")
        supervisor.stopping()

    perform(TEXT, attach)
    reloading, ready, stopping = manager.heard()
    assert reloading == "RELOADING=1\nMONOTONIC_USEC=0\nSTATUS=reloading"
    assert ready.startswith("READY=1\n")
    assert stopping == "STOPPING=1\nSTATUS=stopping"


def test_without_a_manager_or_with_a_deaf_one_nothing_happens(perform, tmp_path: Path) -> None:
    def attach(engine: Engine) -> None:
        for address in ("", str(tmp_path / "nobody"), "relative", "@" + "x" * 300, "vsock:2:1"):
            supervisor = _of(tmp_path, engine, NOTIFY_SOCKET=address)
            supervisor.starting()
            supervisor.stopping()

    perform(TEXT, attach)
