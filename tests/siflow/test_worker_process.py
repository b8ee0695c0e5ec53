"""The SDK's process: deadlines, crashes, what it is told and by which way, and that it never outlives us."""

import ast
import asyncio
import itertools
import json
import os
import signal
import struct
import subprocess
import sys
import textwrap
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from watchdog.core.health import Failure
from watchdog.demo.siflow_cloud import SDK_PATH
from watchdog.errors import SourceError
from watchdog.sources.siflow_link import PROGRAM, Hello, SiflowLink

ANYTHING = msgspec.json.Decoder(object)


def write_sdk(folder: Path, body: str) -> str:
    """A package `siflow` of one's own."""
    package = folder / "siflow"
    package.mkdir()
    (package / "__init__.py").write_text(textwrap.dedent(body))
    return str(folder)


WORKING = """
    import os, sys, threading, time
    __version__ = "9.9"
    class Wordless(Exception):
        status_code = 10 ** 5000
        def __str__(self):
            raise RuntimeError
    class Odd:
        uuid, name, queue_info = "odd", 10 ** 5000, {"rank_in_pool": 10 ** 400}
        @property
        def status(self):
            raise RuntimeError
        def owner(self):
            return self
    class Tasks:
        def get(self, *, uuid, timeout=None):
            if uuid == "hang":
                threading.Event().wait(1800)
            if uuid == "slow":
                time.sleep(0.6)
            if uuid == "die":
                os._exit(7)
            if uuid == "print":
                print("a progress bar"); sys.stderr.write("x" * 300_000)
            if uuid == "odd":
                return Odd()
            if uuid == "half":
                return {"uuid": uuid, "name": "half a pair " + chr(0xd83d)}
            if uuid == "wordless":
                raise Wordless
            if uuid == "exit":
                sys.exit(3)
            if uuid == "huge":
                return {"uuid": "u", "name": ["x" * 100]}
            return {"uuid": uuid, "name": "run", "timeout": timeout}
        def list(self, *, count):
            return [{"uuid": "u" * 500, "name": "n" * 500, "owner": "o" * 500}] * 20_000
        def query_logs(self, uuid, **more):
            return {"logs": [{"content": chr(0xd800) + "x" * 60_000}] * 400}
    class SiFlow:
        def __init__(self, **values):
            self.tasks = Tasks()
"""


@pytest.fixture
async def connect(clock, tmp_path):
    made = []

    def make(
        sdk: str | None = WORKING, *, python: str = sys.executable, deadline: float = 8.0, threads: int = 3
    ):
        path = "" if sdk is None else write_sdk(tmp_path, sdk)
        hello = Hello(
            region="here",
            cluster="one",
            access_key_id="AK-planted",
            access_key_secret="SK-planted",
            timeout=5.0,
            threads=threads,
            sdk_path=path,
        )
        made.append(SiflowLink(python, hello, clock=clock, deadline=timedelta(seconds=deadline)))
        return made[-1]

    yield make
    for link in made:
        await link.close()


async def get(link, uuid):
    return await link.call("get", {"uuid": uuid}, ANYTHING)


def test_the_program_runs_on_python_3_8_with_nothing_but_the_standard_library() -> None:
    tree = ast.parse(PROGRAM.read_text(encoding="utf-8"), feature_version=(3, 8))
    imported = {
        name.name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (node.names if isinstance(node, ast.Import) else [ast.alias(node.module or "")])
    }
    assert imported - {"siflow"} <= set(sys.stdlib_module_names)


def test_nobody_imports_the_program() -> None:
    package = PROGRAM.parent.parent
    for path in package.rglob("*.py"):
        if path != PROGRAM:
            assert "import siflow_worker" not in path.read_text(encoding="utf-8"), path
            assert "sources.siflow_worker import" not in path.read_text(encoding="utf-8"), path


async def test_it_is_started_by_the_first_call_and_says_what_it_is(connect) -> None:
    link = connect()
    assert link.started == 0
    welcome = await link.ready()
    assert (welcome.sdk, link.started) == ("9.9", 1)
    assert set(welcome.features) == {"tasks.get", "tasks.list", "tasks.query_logs"}
    assert (await get(link, "a"))["uuid"] == "a"


async def test_keys_are_in_neither_its_arguments_nor_its_environment(connect, monkeypatch) -> None:
    monkeypatch.setenv("JOB_WATCHDOG_SIFLOW_ACCESS_KEY_SECRET", "SK-planted")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    link = connect()
    await link.ready()
    (pid,) = link.pids
    command, environment = (Path(f"/proc/{pid}/{name}").read_bytes() for name in ("cmdline", "environ"))
    assert b"planted" not in command + environment
    assert b"PROXY" not in environment.upper()
    assert b"JOB_WATCHDOG" not in environment
    assert os.getpgid(pid) == pid != os.getpgid(0)


async def test_a_call_that_hangs_fails_at_its_deadline_and_the_process_is_replaced(connect, gone) -> None:
    link = connect(deadline=0.5)
    await get(link, "warm")
    (pid,) = link.pids
    with pytest.raises(SourceError) as caught:
        await get(link, "hang")
    assert caught.value.failure is Failure.TIMEOUT
    assert await gone(pid)

    assert (await get(link, "a"))["uuid"] == "a"  # at once: the old one had not failed to answer everything
    assert link.pids not in ((pid,), ())


async def test_others_on_the_way_get_their_answer_before_a_hung_process_is_killed(connect) -> None:
    link = connect(deadline=1.2)
    await get(link, "warm")
    hung = asyncio.ensure_future(get(link, "hang"))
    await asyncio.sleep(0.9)
    slow = asyncio.ensure_future(get(link, "slow"))  # is still on its way when the other's time is over
    with pytest.raises(SourceError):
        await hung
    assert not slow.done()
    assert (await get(link, "b"))["uuid"] == "b"  # by a new process
    assert (await slow)["uuid"] == "slow"


async def test_an_abandoned_call_that_hangs_still_ends_its_process(connect, gone) -> None:
    link = connect(deadline=0.5)
    await link.ready()
    (pid,) = link.pids
    call = asyncio.ensure_future(get(link, "hang"))
    await asyncio.sleep(0.05)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    assert await gone(pid)


@pytest.mark.parametrize("how", ["by itself", "kill -9"])
async def test_a_process_that_ends_fails_what_it_owed_and_is_started_anew(connect, clock, how) -> None:
    link = connect()
    await get(link, "warm")
    (pid,) = link.pids
    call = asyncio.ensure_future(get(link, "die" if how == "by itself" else "hang"))
    if how == "kill -9":
        await asyncio.sleep(0.1)
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(SourceError, match="ended") as caught:
        await call
    assert caught.value.failure is Failure.UNREACHABLE
    assert ("signal 9" if how == "kill -9" else "code 7") in str(caught.value)

    with pytest.raises(SourceError, match="ended"):
        await get(link, "a")  # not at once
    clock.advance(timedelta(seconds=3))
    assert (await get(link, "a"))["uuid"] == "a"
    assert link.started == 2


async def test_a_process_that_always_dies_is_started_ever_more_rarely(connect, clock) -> None:
    link = connect()
    seconds = 0
    starts = []
    while seconds < 1200:
        with pytest.raises(SourceError):
            await get(link, "die")
        if link.started > len(starts):
            starts.append(seconds)
        clock.advance(timedelta(seconds=10))
        seconds += 10
    pauses = [later - earlier for earlier, later in itertools.pairwise(starts)]
    assert pauses == sorted(pauses)
    assert pauses[-1] == 300
    assert len(starts) < 15


async def test_what_the_sdk_prints_does_not_disturb(connect) -> None:
    link = connect()
    assert [(await get(link, "print"))["uuid"] for _ in range(3)] == ["print"] * 3
    assert link.started == 1


@pytest.mark.parametrize(
    ("uuid", "words"),
    [("wordless", r"malformed answer \(Wordless\)"), ("exit", r"malformed answer \(SystemExit: 3\)")],
)
async def test_whatever_the_sdk_raises_is_the_answer_of_that_call(connect, uuid, words) -> None:
    link = connect(threads=1)
    for _ in range(3):
        with pytest.raises(SourceError, match=words):
            await get(link, uuid)
    assert (await get(link, "next"))["uuid"] == "next"
    assert link.started == 1


async def test_a_field_that_cannot_be_had_costs_only_itself(connect) -> None:
    link = connect(threads=1)
    row = await get(link, "odd")
    assert (row["uuid"], row["name"], row["status"], row["queue_rank"]) == ("odd", None, None, None)
    assert link.started == 1


async def test_half_a_surrogate_pair_does_not_end_the_conversation(connect) -> None:
    link = connect(threads=1)
    assert (await get(link, "half"))["name"] == "half a pair ?"
    assert link.started == 1


async def test_an_answer_that_is_too_large_is_an_error_of_that_call_only(connect) -> None:
    link = connect()
    with pytest.raises(SourceError, match="too large"):
        await link.call("logs", {"uuid": "u", "limit": 400}, ANYTHING)
    rows = await link.call("list", {"page": 1, "count": 1, "filters": {}}, ANYTHING)
    assert len(rows["rows"]) == 5000  # a list that long is cut
    assert link.started == 1


@pytest.mark.parametrize(
    ("sdk", "failure", "words"),
    [
        (None, Failure.UNSUPPORTED, "the SiFlow SDK is not installed there: .*python.* -m pip install"),
        ("import nowhere_to_be_found", Failure.UNSUPPORTED, "cannot be used: No module named"),
        ("1 / 0", Failure.UNSUPPORTED, "cannot be used: ZeroDivisionError"),
        ("class Other: ...", Failure.UNSUPPORTED, "it has no SiFlow"),
        (
            "class SiFlow:\n    def __init__(self, **v): raise ValueError('bad ' + v['access_key_secret'])",
            Failure.BAD_REQUEST,
            r"region, cluster or key: bad \*\*\*\*",
        ),
        ("import os; os._exit(3)", Failure.UNREACHABLE, r"ended \(code 3\)"),
        ("import sys; sys.exit('no ' + 'luck')", Failure.UNREACHABLE, r"ended \(code 1\) no luck"),
    ],
    ids=["missing", "broken import", "raises", "another package", "refuses the key", "exits", "says why"],
)
async def test_an_sdk_that_cannot_be_used_is_said_in_one_line(connect, clock, sdk, failure, words) -> None:
    link = connect(sdk)
    for _ in range(3):
        with pytest.raises(SourceError, match=words) as caught:
            await get(link, "a")
        assert caught.value.failure is failure
        assert "\n" not in str(caught.value)
    assert link.started == 1
    clock.advance(timedelta(seconds=5))
    with pytest.raises(SourceError):
        await get(link, "a")
    assert link.started == 2


async def test_an_sdk_that_is_installed_meanwhile_is_found(connect, clock, tmp_path) -> None:
    link = connect("raise ImportError('half copied')")
    with pytest.raises(SourceError):
        await get(link, "a")
    (tmp_path / "siflow" / "__init__.py").write_text(textwrap.dedent(WORKING))
    clock.advance(timedelta(minutes=5))
    assert (await get(link, "a"))["uuid"] == "a"


@pytest.mark.parametrize("python", ["/nowhere/python", "/etc/passwd", "/bin/true"])
async def test_an_interpreter_that_is_none_is_named(connect, python) -> None:
    with pytest.raises(SourceError) as caught:
        await get(connect(python=python), "a")
    assert caught.value.failure in (Failure.UNSUPPORTED, Failure.UNREACHABLE)
    assert python in str(caught.value) or "ended" in str(caught.value)


LIARS = {
    "a giant": struct.pack(">I", 1 << 31) + b"x",
    "no JSON": struct.pack(">I", 4) + b"nope",
    "another form": struct.pack(">I", 7) + b'{"a":1}',
    "half a frame": struct.pack(">I", 90) + b"{",
    "another version": struct.pack(">I", 29) + b'{"id":0,"ok":{"version": 99}}',
}


@pytest.mark.parametrize("said", LIARS.values(), ids=LIARS.keys())
async def test_who_does_not_keep_to_the_protocol_is_killed(connect, tmp_path, gone, said) -> None:
    liar = tmp_path / "liar"
    rest = "" if said.endswith(b"{") else "; import time; time.sleep(600)"
    liar.write_text(
        f"#!{sys.executable}\nimport os, sys\nos.write(1, {said!r}){rest}\n",
    )
    liar.chmod(0o755)
    link = connect(python=str(liar))
    call = asyncio.ensure_future(get(link, "a"))
    while not link.pids and not call.done():
        await asyncio.sleep(0.01)
    pids = link.pids
    with pytest.raises(SourceError):
        await call
    for pid in pids:
        assert await gone(pid)


async def test_closing_kills_it_in_the_middle_of_a_call(connect, gone) -> None:
    link = connect()
    await link.ready()
    (pid,) = link.pids
    call = asyncio.ensure_future(get(link, "hang"))
    await asyncio.sleep(0.05)
    await link.close()
    assert await gone(pid)
    with pytest.raises(SourceError):
        await call
    with pytest.raises(SourceError, match="closed"):
        await get(link, "a")
    await link.close()


async def test_closing_while_it_starts_leaves_nothing(clock) -> None:
    hello = Hello(
        region="loopback-9",
        cluster="auriga",
        access_key_id="k",
        access_key_secret="s",
        timeout=1,
        threads=1,
        sdk_path=str(SDK_PATH),
    )
    for turns in range(12):
        link = SiflowLink(sys.executable, hello, clock=clock, deadline=timedelta(seconds=5))
        call = asyncio.ensure_future(get(link, "a"))
        await asyncio.sleep(0.004 * turns)
        await link.close()
        await asyncio.gather(call, return_exceptions=True)
        assert link.pids == ()


DAEMON = """
    import asyncio, sys
    from datetime import timedelta
    import msgspec
    from watchdog.clock import SystemClock
    from watchdog.sources.siflow_link import Hello, SiflowLink

    async def main():
        hello = Hello(region="r", cluster="c", access_key_id="k", access_key_secret="s", timeout=5, threads=2,
                      sdk_path=sys.argv[1])
        link = SiflowLink(sys.executable, hello, clock=SystemClock(), deadline=timedelta(seconds=60))
        await link.ready()
        hung = asyncio.ensure_future(link.call("get", {"uuid": "hang"}, msgspec.json.Decoder(object)))
        print(*link.pids, flush=True)
        await hung

    asyncio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_it_does_not_outlive_a_daemon_that_is_killed(tmp_path, gone, number) -> None:
    path = write_sdk(tmp_path, WORKING)
    daemon = subprocess.Popen([sys.executable, "-c", textwrap.dedent(DAEMON), path], stdout=subprocess.PIPE)
    try:
        assert daemon.stdout is not None
        pid = int((await asyncio.to_thread(daemon.stdout.readline)).split()[0])
        await asyncio.sleep(0.1)
        daemon.send_signal(number)
        await asyncio.to_thread(daemon.wait)
        assert await gone(pid)
    finally:
        daemon.kill()
        daemon.wait()
        daemon.stdout.close()


async def test_it_ends_with_its_stdin_even_where_the_kernel_does_not_help(tmp_path, gone) -> None:
    path = write_sdk(tmp_path, WORKING)
    worker = subprocess.Popen(
        [sys.executable, "-I", str(PROGRAM)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert worker.stdin is not None
    assert worker.stdout is not None
    hello = dict.fromkeys(("region", "cluster", "access_key_id", "access_key_secret"), "x")
    for message in (
        {**hello, "threads": 1, "timeout": 5, "sdk_path": path},
        {"id": 1, "op": "get", "args": {"uuid": "hang"}},
    ):
        body = json.dumps(message).encode()
        worker.stdin.write(struct.pack(">I", len(body)) + body)
    worker.stdin.flush()
    worker.stdout.read(4)
    worker.stdin.close()
    assert await gone(worker.pid)
    worker.wait()
    worker.stdout.close()
