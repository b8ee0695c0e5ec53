"""A daemon at rest: what it costs to be there, to begin and to end; its programs' help; and a month of it."""

import json
import os
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

HERE = Path(__file__).parent
FULL = os.environ.get("WATCHDOG_BENCH") == "full"
COMMAND = Path(sys.executable).with_name("watchdog")
MONTH = ("38", "30", "100") if FULL else ("3", "60", "6")  # days, minutes from slot to slot, tasks
REST = 120 if FULL else 0  # seconds
CLOUD = """
import asyncio, sys
from watchdog.demo.cloud import StandInCloud
from watchdog.demo.play import Level, Phase, Play, TaskPlay

async def main(count):
    levels = tuple(Level(metric=name, value=0.9) for name in ("gpu", "vram", "cpu", "memory"))
    tasks = tuple(
        TaskPlay(id=str(1000000000 + n), name=f"run-{n}", gpus_per_pod=8, phases=(
            Phase(start=-3600.0, pods=(f"run-{n}-worker-0",), levels=levels, chatter=1 / 60),))
        for n in range(count))
    async with StandInCloud(Play(tasks=tasks, step=60)) as cloud:
        print(cloud.url, flush=True)
        await asyncio.sleep(3600)

asyncio.run(main(int(sys.argv[1])))
"""
RULES = """
defaults: { interval: 60s, poll: 60s, timezone: UTC }
sources: { alaya: { kind: alaya, base_url: "URL", rate: 1000 } }
watch: [ { source: alaya, name: "run-*" } ]
channels: { chat: { url: "json://127.0.0.1:9/chat" } }
rules:
  - { name: gpu-low, metric: gpu, avg_over: 1h, below: 10% }
  - { name: vram-full, metric: vram, above: 95%, by: gpu }
  - { name: errors, log: { match: 'ERROR' } }
"""


def cpu(command: Sequence[object]) -> float:
    """CPU seconds of a command, run to its end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([str(word) for word in command], stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def resident(pid: int) -> dict[str, float]:
    """MiB that a process holds, all and anonymous."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    pairs = (line.split()[:2] for line in lines if line.startswith(("VmRSS", "RssAnon")))
    return {name.rstrip(":"): round(int(kib) / 1024, 1) for name, kib in pairs}


@contextmanager
def running(*command: object, **more: object) -> Iterator[subprocess.Popen[str]]:
    """A process that ends with the block at the latest."""
    words = [str(word) for word in command]
    with subprocess.Popen(words, text=True, start_new_session=True, **more) as process:  # type: ignore[call-overload]
        try:
            yield process
        finally:
            process.kill()


def test_help_costs_little_more_than_an_interpreter() -> None:
    bare, ours = [], []
    for _ in range(15 if FULL else 5):
        bare.append(cpu([sys.executable, "-c", "pass"]))
        ours.append(cpu([COMMAND, "--help"]))
    ratio = statistics.median(ours) / statistics.median(bare)
    print(f"\nbare interpreter {statistics.median(bare) * 1e3:.0f} ms of CPU, --help {ratio:.1f} times that")
    assert ratio < 6


def test_a_daemon_begins_rests_and_ends(tmp_path: Path) -> None:
    tasks = 100 if FULL else 3
    with ExitStack() as stack:
        cloud = stack.enter_context(running(sys.executable, "-c", CLOUD, tasks, stdout=subprocess.PIPE))
        assert cloud.stdout is not None
        (tmp_path / "rules.yaml").write_text(RULES.replace("URL", cloud.stdout.readline().strip()))
        ear = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        ear.bind(str(tmp_path / "ear"))
        ear.settimeout(100)
        env = {
            **os.environ,
            "NOTIFY_SOCKET": str(tmp_path / "ear"),
            "JOB_WATCHDOG_ALAYA_API_KEY": "stand-in-api-key",
        }
        errors = stack.enter_context((tmp_path / "err").open("w"))
        began = time.monotonic()
        daemon = stack.enter_context(
            running(
                COMMAND, "run", tmp_path / "rules.yaml", "--state", tmp_path / "s.db", env=env, stderr=errors
            )
        )
        while b"READY=1" not in ear.recv(4096):
            pass
        ready = time.monotonic() - began
        spent = sum(map(int, Path(f"/proc/{daemon.pid}/stat").read_text().rpartition(")")[2].split()[11:13]))
        time.sleep(REST)
        held = resident(daemon.pid)
        began = time.monotonic()
        daemon.send_signal(signal.SIGTERM)
        assert daemon.wait(60) == 0
        print(
            f"\n{tasks} tasks: ready after {ready:.2f} s ({spent / os.sysconf('SC_CLK_TCK'):.2f} s of CPU), "
            f"at rest {held}, ended {time.monotonic() - began:.2f} s after SIGTERM"
        )
    assert held["RssAnon"] < 100


def test_peers_at_rest(tmp_path: Path) -> None:
    peers = {
        "prometheus": ("prometheus", "--config.file=p.yml", "--web.listen-address=127.0.0.1:0"),
        "alertmanager": ("prometheus-alertmanager", "--config.file=a.yml", "--web.listen-address=127.0.0.1:0",
                         "--cluster.listen-address="),
    }  # fmt: skip
    (tmp_path / "p.yml").write_text("global: {}\n")
    (tmp_path / "a.yml").write_text("route: { receiver: x }\nreceivers: [ { name: x } ]\n")
    for name, command in peers.items():
        if FULL and shutil.which(command[0]):
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            with running(*command, cwd=tmp_path, **quiet) as process:
                time.sleep(10)
                print(f"\n{name}: {resident(process.pid)}")


def test_a_month_leaves_it_as_it_was(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", str(HERE / "month.py"), str(tmp_path), *MONTH]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    days = [json.loads(line) for line in ran.stdout.splitlines()]
    for day in days:
        print(day)
    first, last = days[len(days) // 8], days[-1]
    assert last["told"] > first["told"] > 0
    assert last["RssAnon"] - first["RssAnon"] < 8
    assert last["state_mib"] < 25
