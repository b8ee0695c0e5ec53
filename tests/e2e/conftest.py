"""Shared by the end-to-end tests: real processes, started and ended here, and what they say.

The program is run as its users run it: by the installed command, beside this interpreter. Stand-ins
(cloud, webhook receiver) are processes of their own, so that they outlive a daemon that is killed.
"""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # aiosmtpd, on import only
    from aiosmtpd.controller import Controller
    from aiosmtpd.smtp import SMTP

COMMAND = Path(sys.executable).with_name("watchdog")
API_KEY = "stand-in-api-key"
PODS = ("calm-master-0", "calm-worker-0")
PATIENCE = 60.0  # seconds; only ever reached when something hangs
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def until(
    condition: Callable[[], Any], what: str, *, alive: "Child | None" = None, patience: float = PATIENCE
) -> Any:
    """Wait until a condition holds and return its value; fail with `what` if it never does."""
    deadline = time.monotonic() + patience
    while True:
        if value := condition():
            return value
        if alive is not None and alive.code is not None:
            raise AssertionError(f"{alive.name} ended with {alive.code} before {what}:\n{alive.err}")
        if time.monotonic() > deadline:
            said = f":\n{alive.err[-3000:]}" if alive is not None else ""
            raise AssertionError(f"waited {patience:g} s in vain for {what}{said}")
        time.sleep(0.02)


class Child:
    """One process of ours; its output goes to files, so that it can never block on a pipe."""

    def __init__(self, name: str, arguments: Sequence[object], folder: Path, env: Mapping[str, str]) -> None:
        self.name = name
        self._out, self._err = folder / f"{name}.out", folder / f"{name}.err"
        with self._out.open("ab") as out, self._err.open("ab") as err:
            self._process = subprocess.Popen(
                [str(one) for one in arguments],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=folder,
                env=dict(env),
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def code(self) -> int | None:
        """The exit code; None while it runs."""
        return self._process.poll()

    @property
    def out(self) -> str:
        return self._out.read_text(errors="replace")

    @property
    def err(self) -> str:
        return self._err.read_text(errors="replace")

    def first_line(self) -> str:
        """The first line of its output once it is whole; "" before."""
        line, end, _ = self.out.partition("\n")
        return line if end else ""

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def wait(self, patience: float = PATIENCE) -> int:
        return self._process.wait(patience)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    code: int
    out: str
    err: str


def _exchange(url: str, body: object = None, method: str = "") -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, method=method or ("GET" if data is None else "POST"))
    with _OPENER.open(request, timeout=30) as response:
        return json.loads(response.read())


@dataclass
class Cloud:
    """The stand-in cloud in its own process, and its control calls."""

    child: Child
    url: str

    def control(self, verb: str, body: object = None, method: str = "") -> Any:
        return _exchange(f"{self.url}/_control/{verb}", body, method)

    def say(self, text: str, **more: object) -> None:
        self.control("say", {"text": text, **more})

    def gpu(self, value: float, *, chatter: float = 0) -> None:
        """From now on every GPU shows this, and each pod prints `chatter` lines a second."""
        levels = [{"metric": "gpu", "value": value, "wobble": 0.001}]
        self.control("phase", {"pods": list(PODS), "levels": levels, "chatter": chatter})

    def fault(self, kind: str, capability: str = "", **more: object) -> None:
        self.control("faults", {"kind": kind, "capability": capability, **more})

    def heal(self) -> None:
        self.control("faults", method="DELETE")

    def requests(self) -> dict[str, int]:
        counts: dict[str, int] = self.control("requests")["counts"]
        return counts


@dataclass(frozen=True)
class Told:
    """One message as the receiver got it."""

    at: float  # Unix seconds
    channel: str  # the last part of the path
    title: str
    body: str

    @property
    def incident(self) -> str:
        return self.body.rpartition("Incident ")[2].split()[0] if "Incident " in self.body else ""


@dataclass
class Receiver:
    """The webhook receiver in its own process; reads what it wrote down before it answered."""

    child: Child
    url: str
    file: Path
    _offset: int = 0
    _told: list[Told] = field(default_factory=list)

    def channel(self, name: str, query: str = "") -> str:
        """The Apprise URL of a channel."""
        return self.url.replace("http", "json", 1) + f"/{name}{query}"

    def told(self, channel: str = "") -> list[Told]:
        """Everything received so far."""
        if self.file.exists():
            with self.file.open("rb") as file:
                file.seek(self._offset)
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    self._offset += len(line)
                    self._told.append(_told(json.loads(line)))
        return [one for one in self._told if channel in ("", one.channel)]

    def texts(self, channel: str = "") -> str:
        """All of it as one text."""
        return "\n".join(f"{one.title}\n{one.body}\n" for one in self.told(channel))

    def answers(self, *answers: Mapping[str, object]) -> None:
        _exchange(f"{self.url}/_control/answers", list(answers))


def _told(line: Mapping[str, Any]) -> Told:
    return Told(
        at=datetime.fromisoformat(line["at"]).timestamp(),
        channel=str(line["path"]).rpartition("/")[2],
        title=str(line["body"]["title"]),
        body=str(line["body"]["message"]),
    )


class StateFile:
    """The state file as a test sees it: short reads beside the daemon."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Rows of a query; none while there is nothing to read yet."""
        with contextlib.suppress(sqlite3.Error):
            connection = sqlite3.connect(f"{self.path.as_uri()}?mode=ro", uri=True, timeout=5)
            with contextlib.closing(connection):
                return connection.execute(query, values).fetchall()
        return []

    def slot(self) -> float:
        """When the newest stored slot was, in Unix seconds; 0 before the first."""
        rows = self.rows("SELECT value FROM meta WHERE name = 'slot_us'")
        return float(rows[0][0]) / 1e6 if rows else 0.0

    def whole(self) -> bool:
        """Whether SQLite finds nothing wrong with it."""
        return self.rows("PRAGMA integrity_check") == [("ok",)]


RULES = r"""
defaults: { interval: 1s, poll: 1s, timezone: UTC }
sources:
  alaya: { kind: alaya, base_url: "${CLOUD}", rate: 1000 }
watch:
  - { source: alaya, task: "1234567890", name: calm-run }
"""
STANDARD = r"""
channels:
  chat: { url: "${CHAT}" }
rules:
  - { name: gpu-low, metric: gpu, below: 10%, for: 1s }
  - { name: errors, log: { match: '\bERROR\b', by: pod } }
  - { name: pod-gone, enabled: false }
"""


@dataclass
class Stage:
    """One test's folder, processes and environment."""

    folder: Path
    env: dict[str, str]
    children: list[Child] = field(default_factory=list)
    disk: Path | None = None  # where the state file is, if not in the folder

    @property
    def state(self) -> StateFile:
        return StateFile((self.disk or self.folder) / "state.db")

    def start(self, name: str, *arguments: object, env: Mapping[str, str] | None = None) -> Child:
        """Start a process that ends with the test at the latest."""
        child = Child(name, arguments, self.folder, {**self.env, **(env or {})})
        self.children.append(child)
        return child

    def cloud(self, *options: str, play: str = "calm") -> Cloud:
        number = len(self.children)
        child = self.start(
            f"cloud-{number}", sys.executable, "-m", "watchdog.demo.cloud", "--play", play, *options
        )
        url = until(child.first_line, "the cloud's address", alive=child)
        self.env.setdefault("CLOUD", url)
        return Cloud(child, url)

    def receiver(self) -> Receiver:
        file = self.folder / f"received-{len(self.children)}.jsonl"
        child = self.start(
            f"receiver-{len(self.children)}", sys.executable, "-m", "watchdog.demo.receiver", "--out", file
        )
        url = until(child.first_line, "the receiver's address", alive=child)
        receiver = Receiver(child, url, file)
        self.env.setdefault("CHAT", receiver.channel("chat"))
        return receiver

    def rules(self, text: str = STANDARD, *, head: str = RULES, name: str = "rules.yaml") -> Path:
        path = self.folder / name
        path.write_text(head + text)
        return path

    def daemon(self, rules: Path, *options: object, **more: Any) -> Child:
        """Start `watchdog run`, without waiting for it. env: more of it. before: words before the command."""
        number = sum(child.name.startswith("daemon") for child in self.children)
        before: Sequence[object] = more.pop("before", ())
        arguments = (*before, COMMAND, "run", rules, "--state", self.state.path, *options)
        return self.start(f"daemon-{number}", *arguments, **more)

    def watching(self, rules: Path, *options: object, **more: Any) -> Child:
        """Start `watchdog run` and wait until it has stored a slot of this life."""
        began = time.time()
        daemon = self.daemon(rules, *options, **more)
        until(lambda: self.state.slot() > began, "a first slot", alive=daemon)
        return daemon

    def run(self, *arguments: object, before: Sequence[str] = (), patience: float = PATIENCE) -> Done:
        """Run a `watchdog` command to its end."""
        ended = subprocess.run(
            [str(one) for one in (*before, COMMAND, *arguments)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            cwd=self.folder,
            env=self.env,
            timeout=patience,
            check=False,
        )
        return Done(ended.returncode, ended.stdout, ended.stderr)

    def end(self) -> None:
        """End every process that is still there."""
        for child in reversed(self.children):
            if child.code is None:
                child.kill()


def _environment(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "LC_ALL", "TMPDIR")}
    return {
        **kept,
        "HOME": str(folder),
        "NO_PROXY": "*",
        "JOB_WATCHDOG_ALAYA_API_KEY": API_KEY,
        "PYTHONWARNINGS": "default",
    }


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """A folder and an environment of its own; processes started on it end with the test."""
    stage = Stage(tmp_path, _environment(tmp_path))
    try:
        yield stage
    finally:
        stage.end()


@pytest.fixture(scope="session", autouse=True)
def demo(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child | None]:
    """`watchdog demo`, which takes a minute and a half: it runs beside the other tests, if it is wanted."""
    if not any(item.name.startswith("test_the_demo_ends") for item in request.session.items):
        yield None
        return
    folder = tmp_path_factory.mktemp("demo")
    child = Child("demo", (COMMAND, "demo"), folder, _environment(folder))
    try:
        yield child
    finally:
        if child.code is None:
            child.kill()


@pytest.fixture
def wait_until() -> Callable[..., Any]:
    """`wait_until(condition, what, alive=child)`: the one way to wait here."""
    return until


class MailServer(Controller):
    """A real SMTP server in a thread. `rcpt`: its answers to recipients; used up, the last one repeats."""

    def __init__(self, rcpt: Sequence[str]) -> None:
        self.mails: list[str] = []
        self.refused = 0
        self._rcpt = list(rcpt)
        self._connections: list[SMTP] = []
        super().__init__(self, hostname="127.0.0.1", port=free_port())

    @property
    def url(self) -> str:
        return mail_url(self.port)

    async def handle_RCPT(self, _server: Any, _session: Any, envelope: Any, address: str, _opts: Any) -> str:  # noqa: N802
        answer = self._rcpt.pop(0) if len(self._rcpt) > 1 else self._rcpt[0]
        if answer.startswith("2"):
            envelope.rcpt_tos.append(address)
        else:
            self.refused += 1
        return answer

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802
        self.mails.append(envelope.content.decode())
        return "250 queued"

    def factory(self) -> SMTP:
        connection = SMTP(self.handler, **self.SMTP_kwargs)
        self._connections.append(connection)
        return connection

    def stop(self, no_assert: bool = False) -> None:
        """Stop once every client is gone: aiosmtpd complains of connections that are cut."""
        asyncio.run_coroutine_threadsafe(self._gone(), self.loop).result(30)
        super().stop(no_assert)

    async def _gone(self) -> None:
        while any(connection.transport is not None for connection in self._connections):
            await asyncio.sleep(0.01)


def mail_url(port: int) -> str:
    return f"mailto://127.0.0.1:{port}/?from=wd@example.test&to=ops@example.test&mode=insecure"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.fixture
def mail_server(stage: Stage) -> Iterator[Callable[..., MailServer]]:
    """Start SMTP servers: `mail_server("451 later", "250 OK")`."""
    servers: list[MailServer] = []

    def start(*rcpt: str) -> MailServer:
        server = MailServer(rcpt or ["250 OK"])
        server.start()
        servers.append(server)
        return server

    try:
        yield start
    finally:
        stage.end()  # the clients first
        for server in servers:
            server.stop()


@pytest.fixture
def silent_mail_url() -> Iterator[str]:
    """A mail channel whose server takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield mail_url(int(listener.getsockname()[1]))


@pytest.fixture
def a_port() -> int:
    """A port where nobody listens."""
    return free_port()


@pytest.fixture
def another_port() -> int:
    """Another one: to listen there."""
    return free_port()
