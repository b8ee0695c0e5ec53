"""A full disk: messages still go out and say that the state is not stored; later all is stored again.

Played on a small file system of its own where we may mount one, else with a limit on the size of the
daemon's files, set and lifted while it runs.
"""

import contextlib
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Wait = Callable[..., Any]
SMALL = 4096  # bytes; less than one frame of the write-ahead log
LIMITED = f"""
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, ({SMALL}, {SMALL}))
os.execv(sys.argv[1], sys.argv[1:])
"""


class SmallDisk:
    """A file system of 2 MiB that can be filled up."""

    def __init__(self, stage: Any) -> None:
        self.place = stage.folder / "disk"
        self.place.mkdir()
        mount(self.place)
        stage.disk = self.place

    def fill(self, _daemon: Any) -> None:
        with (self.place / "filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
            while True:
                filler.write(bytes(512))

    def free(self, _daemon: Any) -> None:
        (self.place / "filler").unlink()

    def end(self) -> None:
        subprocess.run(["umount", self.place], check=True)


class SmallFiles:
    """A limit on how large the daemon's files may be."""

    def __init__(self, _stage: Any) -> None:
        pass

    def fill(self, daemon: Any) -> None:
        resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (SMALL, resource.RLIM_INFINITY))

    def free(self, daemon: Any) -> None:
        if daemon.code is None:
            resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)

    def end(self) -> None:
        pass


def mount(place: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", place], check=True, capture_output=True)


def may_mount() -> bool:
    if os.geteuid() != 0:
        return False
    with tempfile.TemporaryDirectory() as folder:
        try:
            mount(Path(folder))
        except (OSError, subprocess.CalledProcessError):
            return False
        subprocess.run(["umount", folder], check=True)
    return True


@pytest.fixture
def disk(stage: Any) -> Iterator[Any]:
    disk = SmallDisk(stage) if may_mount() else SmallFiles(stage)
    try:
        yield disk
    finally:
        stage.end()
        disk.end()


def fill(disk: Any, daemon: Any, wait_until: Wait) -> None:
    """Fill the disk, and wait until the daemon has met its end: files may have room left inside."""
    said = daemon.err.count("state not stored")
    disk.fill(daemon)
    wait_until(lambda: daemon.err.count("state not stored") > said, "a refused write", alive=daemon)


def test_it_goes_on_telling_and_stores_all_when_there_is_space_again(
    disk: Any, stage: Any, wait_until: Wait
) -> None:
    cloud, receiver = stage.cloud(), stage.receiver()
    cloud.gpu(0.9, chatter=80)
    rules = stage.rules()
    daemon = stage.watching(rules)

    fill(disk, daemon, wait_until)
    cloud.say("ERROR no. 1", pod="worker-1")
    wait_until(lambda: "ERROR no. 1" in receiver.texts(), "a message", alive=daemon)
    cloud.gpu(0.02)
    wait_until(lambda: "· gpu-low ·" in receiver.texts(), "an alarm", alive=daemon)
    wait_until(lambda: "cannot store its state" in receiver.texts(), "the notice", alive=daemon)
    cloud.gpu(0.9)
    cloud.say("ERROR no. 2", pod="worker-2")
    wait_until(lambda: "ERROR no. 2" in receiver.texts(), "another message", alive=daemon)
    wait_until(lambda: "Recovered · gpu-low ·" in receiver.texts(), "a recovery", alive=daemon)
    while_full = receiver.told()
    stored = stage.state.rows("SELECT count(*) FROM incidents WHERE rule = 'errors'")
    disk.free(daemon)
    wait_until(lambda: "stores its state again" in receiver.texts(), "the good news", alive=daemon)
    cloud.say("ERROR no. 3", pod="worker-3")
    wait_until(lambda: "ERROR no. 3" in receiver.texts(), "a message after it", alive=daemon)

    assert stored == [(0,)]
    assert all("(state not stored)" in one.body for one in while_full), while_full
    assert "(state not stored)" not in receiver.told()[-1].body
    assert [one.title for one in receiver.told() if "state" in one.title] == [
        "WARNING · watchdog · cannot store its state",
        "OK · watchdog · stores its state again",
    ]
    wait_until(lambda: not unsent(stage), "an empty outbox", alive=daemon)
    daemon.signal(signal.SIGTERM)
    assert daemon.wait() == 0
    all_is_stored(stage, receiver)
    told = about_the_run(receiver)
    again = stage.watching(rules)
    slot = stage.state.slot()
    wait_until(lambda: stage.state.slot() > slot + 2, "some slots", alive=again)
    assert about_the_run(receiver) == told


def all_is_stored(stage: Any, receiver: Any) -> None:
    assert stage.state.whole()
    rows = stage.state.rows(
        "SELECT o.incident, i.rule, o.kind FROM outbox o JOIN incidents i ON i.id = o.incident"
        " WHERE o.state = 'done' ORDER BY o.id"
    )
    assert sorted(row[0] for row in rows) == sorted(one.incident for one in receiver.told())
    assert stage.state.rows("SELECT count(*) FROM ledger") == [(len({row[0] for row in rows}),)]
    assert stage.state.rows(
        "SELECT count(*) FROM incidents WHERE rule = 'gpu-low' AND closed_us IS NULL"
    ) == [(0,)]


def about_the_run(receiver: Any) -> list[Any]:
    """What was told, without the notice of our own outage, which a slow machine may be worth."""
    return [one for one in receiver.told() if "was not watching" not in one.title]


def unsent(stage: Any) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = stage.state.rows(
        "SELECT 1 FROM outbox WHERE state IN ('pending', 'inflight')"
    )
    return rows


def test_stopped_or_killed_on_a_full_disk_it_repeats_and_loses_nothing(
    disk: Any, stage: Any, wait_until: Wait
) -> None:
    cloud, receiver = stage.cloud(), stage.receiver()
    cloud.gpu(0.9, chatter=80)
    rules = stage.rules()
    daemon = stage.watching(rules)
    for number, way in ((1, signal.SIGTERM), (2, signal.SIGKILL)):
        fill(disk, daemon, wait_until)
        cloud.say(f"ERROR no. {number}", pod=f"worker-{number}")
        wait_until(lambda n=number: f"ERROR no. {n}" in receiver.texts(), "a message", alive=daemon)
        daemon.signal(way)
        assert daemon.wait() == {signal.SIGTERM: 0, signal.SIGKILL: -signal.SIGKILL}[way]
        disk.free(daemon)
        daemon = stage.watching(rules)
        wait_until(lambda n=number: receiver.texts().count(f"ERROR no. {n}") == 2, "a repeat", alive=daemon)
    wait_until(lambda: not unsent(stage), "an empty outbox", alive=daemon)

    assert len([one for one in receiver.told() if "· errors ·" in one.title]) == 4
    assert stage.state.whole()


def test_it_starts_and_tells_on_a_full_disk(stage: Any, wait_until: Wait) -> None:
    cloud, receiver = stage.cloud(), stage.receiver()
    rules = stage.rules()
    stage.watching(rules).kill()
    began = time.time()

    daemon = stage.daemon(rules, before=(sys.executable, "-c", LIMITED))
    wait_until(lambda: "cannot store its state" in receiver.texts(), "the notice", alive=daemon)
    cloud.say("ERROR no. 1", pod="worker-1")
    wait_until(lambda: "ERROR no. 1" in receiver.texts(), "a message", alive=daemon)
    daemon.signal(signal.SIGTERM)

    assert daemon.wait() == 0
    assert stage.state.slot() < began
