"""The shipped unit under a real systemd. Run by name: it needs root and `systemd-container` (see .ci/run).

systemd-nspawn boots an overlay of this machine's own root, with a network of its own that has only a
loopback; whatever it writes is gone afterwards. The program is this one, at the place the unit names.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import watchdog

ROOT = Path(__file__).resolve().parent.parent.parent
UNIT = "job-watchdog"
PATIENCE = 90.0
HOME = "/opt/job-watchdog"
KEY = "stand-in-api-key"
CLOUD, CHAT = 18099, 18098
RECEIVED = "/root/received"
# ProtectHome hides an interpreter under /root or /home, so it is also found at /opt/python.
SCRIPT = f"""#!/bin/sh
export PYTHONPATH={HOME}/src LD_LIBRARY_PATH=/opt/python/lib
exec {HOME}/bin/python -c 'from watchdog.cli.main import main; main()' "$@"
"""
RULES = r"""
defaults: { interval: 1s, poll: 1s }
sources:
  alaya: { kind: alaya, base_url: "http://127.0.0.1:18099", rate: 1000 }
watch:
  - { source: alaya, task: "1234567890", name: calm-run }
channels:
  chat: { url: "${TEAM_CHAT_URL}" }
rules:
  - { name: gpu-low, metric: gpu, below: 10%, for: 1s }
  - { name: gpu-full, metric: gpu, above: 50%, for: 1s }
"""
# A minute between two feeds would make the tests slow; everything else is the unit as shipped.
QUICK = """[Service]
WatchdogSec=6
RestartSec=1
ExecStopPost=/bin/sh -c 'echo ended: $SERVICE_RESULT $EXIT_CODE $EXIT_STATUS'
"""


def run(*words: object, check: bool = True) -> str:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def until(condition: Callable[[], object], what: str, patience: float = PATIENCE) -> object:
    deadline = time.monotonic() + patience
    while not (value := condition()):
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.1)
    return value


class Machine:
    """A booted system."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "root"
        self._layer = folder / "layer"
        self._process: subprocess.Popen[bytes] | None = None
        self._inside = 0

    def __enter__(self) -> "Machine":
        self.root.mkdir()
        self._layer.mkdir()
        run("mount", "-t", "tmpfs", "-o", "size=2g", "tmpfs", self._layer)
        (self._layer / "up").mkdir()
        (self._layer / "work").mkdir()
        layers = f"lowerdir=/,upperdir={self._layer / 'up'},workdir={self._layer / 'work'}"
        run("mount", "-t", "overlay", "overlay", "-o", layers, self.root)
        self._furnish()
        self._boot()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self.sh("systemctl poweroff", check=False)
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        run("umount", self.root, check=False)
        run("umount", self._layer, check=False)
        for hierarchy in ("systemd", "unified"):  # what nspawn leaves behind, empty
            for part in ("payload", "supervisor"):
                run("rmdir", f"/sys/fs/cgroup/{hierarchy}/{part}", check=False)

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        """Write a file of the machine, whole at once."""
        place = self.root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        draft = place.with_name(f"{place.name}.new")
        draft.write_text(text)
        draft.chmod(mode)
        draft.replace(place)

    def sh(self, command: str, *, check: bool = True) -> str:
        """Run a command inside, as root."""
        done = subprocess.run(
            ["nsenter", "-t", str(self._inside), "-a", "bash", "-c", command],
            capture_output=True,
            text=True,
            check=False,
        )
        assert not check or done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def journal(self, *options: str) -> str:
        return self.sh(f"journalctl -u {UNIT} --no-pager -o cat {' '.join(options)}")

    def show(self, name: str) -> str:
        return self.sh(f"systemctl show {UNIT} -p {name} --value").strip()

    def _furnish(self) -> None:
        """Put in place what an installation puts in place."""
        for folder in ("wants", "requires"):  # else every server that is installed here starts
            for place in (self.root / "etc/systemd/system").glob(f"*.{folder}"):
                shutil.rmtree(place)
        (self.root / "etc/machine-id").write_text("")
        home = self.root / HOME.lstrip("/")
        (home / "bin").mkdir(parents=True)
        (home / "src").mkdir()
        base = "/usr" if sys.base_prefix == "/usr" else "/opt/python"
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        (home / "pyvenv.cfg").write_text(f"home = {base}/bin\ninclude-system-site-packages = false\n")
        (home / "bin/python").symlink_to(f"{base}/bin/{version}")
        (home / f"lib/{version}/site-packages").mkdir(parents=True)
        self.binds = [f"--bind-ro={Path(watchdog.__file__).parent}:{HOME}/src/watchdog"]
        packages = Path(sys.prefix) / f"lib/{version}/site-packages"
        self.binds.append(f"--bind-ro={packages}:{HOME}/lib/{version}/site-packages")
        if base != "/usr":
            (self.root / "opt/python").mkdir()
            self.binds.append(f"--bind-ro={sys.base_prefix}:/opt/python")
        self.write(f"{HOME}/bin/watchdog", SCRIPT, 0o755)
        self.write(f"/etc/systemd/system/{UNIT}.service", (ROOT / f"systemd/{UNIT}.service").read_text())
        self.write(f"/etc/sysusers.d/{UNIT}.conf", (ROOT / f"systemd/{UNIT}.sysusers.conf").read_text())
        self.write(f"/etc/{UNIT}/{UNIT}.env", (ROOT / f"systemd/{UNIT}.env.example").read_text())
        self.write(f"/etc/{UNIT}/rules.yaml", RULES)
        self.write("/etc/credstore/JOB_WATCHDOG_ALAYA_API_KEY", KEY, 0o600)
        self.write("/etc/credstore/TEAM_CHAT_URL", f"json://127.0.0.1:{CHAT}/chat", 0o600)

    def _boot(self) -> None:
        words = [
            "systemd-nspawn",
            "-q",
            "-D",
            self.root,
            "--boot",
            "--register=no",
            "--keep-unit",
            "--machine=wdtest",
        ]
        words += ["--private-network", "--console=pipe", *self.binds]
        with (self.folder / "nspawn.log").open("wb") as log:
            self._process = subprocess.Popen(
                [str(word) for word in words], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self._inside = int(str(until(self._child, "the machine's own init")))
        running = "systemctl is-system-running"
        until(lambda: self.sh(running, check=False).strip() in ("running", "degraded"), "a booted system")
        self.sh("systemd-sysusers")

    def _child(self) -> str:
        assert self._process is not None
        assert self._process.poll() is None, (self.folder / "nspawn.log").read_text()
        return run("pgrep", "-P", self._process.pid, check=False).strip()


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    assert os.geteuid() == 0, "needs root"
    assert shutil.which("systemd-nspawn"), "apt-get install --no-install-recommends systemd-container"
    with Machine(tmp_path_factory.mktemp("machine")) as booted:
        python = f"{HOME}/bin/python"
        source = f"--setenv=PYTHONPATH={HOME}/src"
        booted.sh(
            f"systemd-run -q --unit=cloud {source} {python} -m watchdog.demo.cloud --play calm --port {CLOUD}"
        )
        chat = f"{python} -m watchdog.demo.receiver --port {CHAT} --out {RECEIVED}"
        booted.sh(f"systemd-run -q --unit=chat {source} {chat}")
        yield booted


@pytest.fixture
def service(machine: Machine) -> Iterator[Machine]:
    """The unit, started anew with the shipped rules, an empty state and nothing told."""
    machine.write(f"/etc/{UNIT}/rules.yaml", RULES)
    machine.write(f"/etc/systemd/system/{UNIT}.service.d/quick.conf", QUICK)
    machine.sh(f"rm -rf /var/lib/{UNIT}; : > {RECEIVED}; systemctl daemon-reload; systemctl reset-failed")
    machine.sh(f"systemctl start {UNIT}")
    yield machine
    machine.sh(f"systemctl stop {UNIT}", check=False)


def told(machine: Machine) -> list[str]:
    """Title and incident of every message that the chat got."""
    lines = [json.loads(line) for line in machine.sh(f"cat {RECEIVED}").splitlines()]
    return [
        f"{line['body']['title']} {line['body']['message'].split('Incident ')[-1].split()[0]}"
        for line in lines
    ]


def test_the_unit_is_written_without_a_mistake(machine: Machine) -> None:
    assert machine.sh(f"systemd-analyze verify /etc/systemd/system/{UNIT}.service 2>&1", check=False) == ""


def test_it_is_exposed_to_little(machine: Machine) -> None:
    unit = f"/etc/systemd/system/{UNIT}.service"
    machine.sh(f"systemd-analyze security --no-pager --offline=true --threshold=15 {unit}")


@pytest.mark.parametrize("example", sorted(path.name for path in (ROOT / "systemd/examples").glob("*.conf")))
def test_the_examples_are_written_without_a_mistake(machine: Machine, example: str) -> None:
    """Verified as the drop-in it is meant to be."""
    folder = f"/root/verify-{example}"
    machine.write(f"{folder}/{UNIT}.service", (ROOT / f"systemd/{UNIT}.service").read_text())
    machine.write(f"{folder}/{UNIT}.service.d/{example}", (ROOT / "systemd/examples" / example).read_text())
    assert machine.sh(f"systemd-analyze verify {folder}/{UNIT}.service 2>&1", check=False) == ""


def test_it_is_ready_once_it_has_evaluated_and_says_how_it_stands(service: Machine) -> None:
    assert service.sh(f"systemctl is-active {UNIT}").strip() == "active"
    assert service.show("StatusText").startswith("watching; 1 task, 3 rules")
    until(lambda: "gpu-full" in "".join(told(service)), "a message")
    assert service.sh(f"stat -c '%a %U %G' /var/lib/{UNIT} /run/{UNIT}").splitlines() == [
        f"700 {UNIT} {UNIT}",
        f"750 {UNIT} {UNIT}",
    ]
    assert service.sh(f"find /var/lib/{UNIT} -type f -perm /077") == ""
    pid = service.show("MainPID")
    assert service.sh(f"stat -c %U /proc/{pid}").strip() == UNIT
    assert KEY not in service.sh(
        f"cat /proc/{pid}/environ /proc/{pid}/cmdline | tr '\\0' ' '; systemctl show {UNIT}"
    )


def test_its_log_has_priorities_and_no_secret(service: Machine) -> None:
    until(lambda: "watching" in service.journal("-p", "info"), "a line of its own")
    assert "watching" not in service.journal("-p", "warning")
    assert KEY not in service.journal()
    assert "<6>" not in service.journal()


def test_people_of_its_group_may_ask_it_and_nobody_else(service: Machine) -> None:
    for name, groups in (("alice", f"-G {UNIT}"), ("bob", "")):
        service.sh(f"id {name} 2>/dev/null || useradd {groups} {name}")
    ask = f"{HOME}/bin/watchdog status --quiet 2>&1; echo code $?"
    until(lambda: service.sh(f"cd /; runuser -u alice -- sh -c '{ask}'") == "code 0\n", "a healthy answer")
    assert "permission denied" in service.sh(f"cd /; runuser -u bob -- sh -c '{ask}'")


def test_a_stalled_process_is_killed_started_anew_and_remembers(service: Machine) -> None:
    until(lambda: told(service), "a message")
    before, first = service.show("MainPID"), told(service)
    service.sh(f"kill -STOP {before}")
    until(
        lambda: service.show("NRestarts") == "1" and service.show("MainPID") not in ("0", before), "a restart"
    )
    until(lambda: service.sh(f"systemctl is-active {UNIT}", check=False).strip() == "active", "a new life")
    assert "Watchdog timeout" in service.journal()
    assert "ended: watchdog" in service.journal()
    until(lambda: service.show("StatusText").startswith("watching"), "an evaluation")
    assert told(service)[: len(first)] == first
    assert not [one for one in told(service)[len(first) :] if "gpu-full" in one]


def test_a_process_that_goes_on_is_not_killed(service: Machine) -> None:
    pid = service.show("MainPID")
    time.sleep(15)  # two watchdog periods and a half
    assert (service.show("MainPID"), service.show("NRestarts")) == (pid, "0")


def test_sigterm_ends_it_with_0_in_less_than_5_seconds(service: Machine) -> None:
    began = time.monotonic()
    service.sh(f"systemctl stop {UNIT}")
    assert time.monotonic() - began < 5
    assert re.findall("ended: .*", service.journal())[-1] == "ended: success exited 0"


def test_a_killed_process_comes_back(service: Machine) -> None:
    before = service.show("MainPID")
    service.sh(f"kill -KILL {before}")
    until(lambda: service.show("NRestarts") == "1" and service.show("SubState") == "running", "a new life")


def test_a_reload_with_a_good_file_takes_and_one_with_a_bad_file_leaves_things_as_they_are(
    service: Machine,
) -> None:
    until(lambda: told(service), "a message")
    pid = service.show("MainPID")
    service.write(f"/etc/{UNIT}/rules.yaml", RULES.replace("name: gpu-low,", "name: gpu-low, above_: 3,"))
    service.sh(f"systemctl reload {UNIT}", check=False)
    until(lambda: "rejected" in "".join(told(service)), "a word on the bad file")
    assert service.show("MainPID") == pid
    assert service.sh(f"systemctl is-active {UNIT}").strip() == "active"

    service.write(
        f"/etc/{UNIT}/rules.yaml", RULES + "  - { name: fresh, metric: gpu, above: 40%, for: 1s }\n"
    )
    service.sh(f"systemctl reload {UNIT}")
    until(lambda: "fresh" in "".join(told(service)), "a message of the new rule")
    until(lambda: "1 task, 4 rules" in service.show("StatusText"), "a status")
    assert service.show("MainPID") == pid


def test_firing_stays_firing_over_a_stop_and_a_start(service: Machine) -> None:
    until(lambda: told(service), "a message")
    first = told(service)
    service.sh(f"systemctl stop {UNIT}; systemctl start {UNIT}")
    until(
        lambda: re.search(r"watching; 1 task, 3 rules, 1 firing", service.show("StatusText")), "the old alert"
    )
    assert [one for one in told(service) if "gpu-full" in one] == first
