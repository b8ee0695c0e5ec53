import asyncio
import io
import logging
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from watchdog.cli.main import run
from watchdog.demo.cloud import StandInCloud
from watchdog.demo.receiver import Receiver
from watchdog.demo.story import demo

ROOT = Path(__file__).resolve().parent.parent.parent
OURS = ("STATE_DIRECTORY", "CREDENTIALS_DIRECTORY", "NO_COLOR", "FORCE_COLOR")


@dataclass(frozen=True)
class Ran:
    """What one command line did."""

    code: int
    out: str
    err: str


Command = Callable[..., Ran]


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def quiet_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """None of our variables, an empty working directory, a terminal of 100 columns."""
    for name in list(os.environ):
        if name.startswith("JOB_WATCHDOG_") or name in OURS:
            monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def watchdog(capsys: pytest.CaptureFixture[str]) -> Command:
    """Run a command line in this process."""

    def command(*arguments: str) -> Ran:
        capsys.readouterr()
        code = run(arguments)
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return command


@pytest.fixture
def on_terminal(monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run a command line with standard output a terminal."""

    def command(*arguments: str) -> Ran:
        screen = Terminal()
        monkeypatch.setattr("sys.stdout", screen)
        return Ran(run(arguments), screen.getvalue(), "")

    return command


@pytest.fixture
def example() -> Path:
    return ROOT / "rules.example.yaml"


@pytest.fixture
def rule_file(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "my.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


@dataclass
class Outside:
    """A stand-in cloud and a webhook receiver, served by a thread."""

    cloud: StandInCloud
    receiver: Receiver

    @property
    def channel(self) -> str:
        """The Apprise URL of the receiver."""
        return self.receiver.url.replace("http", "json", 1) + "/team-room"


@pytest.fixture(scope="module")
def serving() -> Iterator[Outside]:
    """Serve both for the tests of a module."""
    up, down = threading.Event(), asyncio.Event()
    found: list[tuple[Outside, asyncio.AbstractEventLoop]] = []

    async def serve() -> None:
        async with StandInCloud(demo()) as cloud, Receiver() as receiver:
            found.append((Outside(cloud, receiver), asyncio.get_running_loop()))
            up.set()
            await down.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert up.wait(60)
    outside, loop = found[0]
    yield outside
    loop.call_soon_threadsafe(down.set)
    thread.join(60)


@pytest.fixture
def outside(serving: Outside) -> Outside:
    """The stand-ins, without any fault and with nothing received."""
    serving.cloud.faults.clear()
    serving.receiver.answers.clear()
    serving.receiver.received.clear()
    for task in serving.cloud.tasks.values():
        task.listed = True
    return serving


@pytest.fixture
def root_logger() -> Iterator[None]:
    """The root logger as it was, after a verb that configures it."""
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    yield
    root.handlers[:] = before
    root.setLevel(level)
