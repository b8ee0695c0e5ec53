"""The image, built from the Dockerfile and run. Run by name, by .ci/container: it needs root and podman.

There is no image registry here: the base image is made from Debian's own packages (Python 3.11 too)
under the name that the Dockerfile asks for. Everything lies in a folder that is gone afterwards.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Wait = Callable[..., Any]
ROOT = Path(__file__).resolve().parent.parent.parent
IMAGE = "job-watchdog:test"
BASE = "docker.io/library/python:3.11-slim-bookworm"
DEBIAN = "docker.io/library/debian:bookworm-slim"
PACKAGES = "ca-certificates,python3,python3-venv,python3-pip"
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
SETTINGS = """\
[containers]
default_ulimits = ["nofile=1024:4096", "nproc=4096:4096"]
[engine]
cgroup_manager = "cgroupfs"
runtime = "runc"
"""
# What the official image has and Debian's lacks: the short names, and pip outside of any environment.
LIKE_THE_OFFICIAL = f"""\
FROM {DEBIAN}
COPY ca-certificates.crt {CERTIFICATES}
RUN ln -s /usr/bin/python3 /usr/local/bin/python && ln -s /usr/bin/python3 /usr/local/bin/python3 \\
 && rm -f /usr/lib/python3*/EXTERNALLY-MANAGED && printf '[global]\\ncert = {CERTIFICATES}\\n' > /etc/pip.conf
"""
RULES = r"""
defaults: { interval: 1s, poll: 1s }
sources:
  alaya: { kind: alaya, base_url: "${CLOUD}", rate: 1000 }
watch:
  - { source: alaya, task: "1234567890", name: calm-run }
channels:
  chat: { url: "${CHAT}" }
rules:
  - { name: gpu-full, metric: gpu, above: 50%, for: 1s }
"""


class Podman:
    """podman with storage of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "containers.conf").write_text(SETTINGS)
        self._env = {**os.environ, "CONTAINERS_CONF": str(folder / "containers.conf")}
        self._words = ["podman", "--root", str(folder / "pod"), "--runroot", str(folder / "podrun")]
        self._words += ["--storage-driver", "overlay", "--cgroup-manager", "cgroupfs"]

    def __call__(
        self, *words: object, check: bool = True, patience: float = 600
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*self._words, *map(str, words)],
            env=self._env,
            capture_output=True,
            text=True,
            check=False,
            timeout=patience,
        )
        assert not check or done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    def build(self, name: str, context: Path) -> None:
        options = ("--quiet", "--format", "docker", "--pull=never", "--network=host", "--isolation=chroot")
        self("build", *options, "-t", name, context)

    def compose(self, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
        """podman-compose with the file as it is, and the one change that this machine asks for.

        podman-compose knows no `--root`: it gets a `podman` that has it.
        """
        wrapper = folder / "bin" / "podman"
        wrapper.parent.mkdir(exist_ok=True)
        wrapper.write_text(f'#!/bin/sh\nexec {shutil.which("podman")} {" ".join(self._words[1:])} "$@"\n')
        wrapper.chmod(0o755)
        files = ("-f", "compose.yaml", "-f", "here.yaml")
        done = subprocess.run(
            [sys.executable, "-m", "podman_compose", "-p", "wdtest", *files, *words],
            env={**self._env, "PATH": f"{wrapper.parent}:{os.environ['PATH']}"},
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    def inspect(self, name: str, what: str) -> Any:
        return json.loads(self("inspect", "--format", f"{{{{json {what}}}}}", name).stdout)

    def clean(self) -> None:
        self("rm", "--all", "--force", "--time", 0, check=False)
        self("system", "reset", "--force", check=False)


@pytest.fixture(scope="module")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Podman]:
    assert os.geteuid() == 0, "needs root"
    assert shutil.which("podman"), "see .ci/container for the packages"
    folder = tmp_path_factory.mktemp("podman")
    made = Podman(folder)
    try:
        tarball = folder / "base.tar"
        with tarball.open("wb") as out:
            words = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={PACKAGES}", "bookworm", "-"]
            subprocess.run(words, stdout=out, check=True, timeout=600)
        made("import", "--quiet", tarball, DEBIAN)
        tarball.unlink()
        context = folder / "base"
        context.mkdir()
        shutil.copy(CERTIFICATES, context / "ca-certificates.crt")
        (context / "Containerfile").write_text(LIKE_THE_OFFICIAL)
        made.build(BASE, context)
        made.build(IMAGE, ROOT)
        yield made
    finally:
        made.clean()


@pytest.fixture
def places(stage: Any) -> Any:
    """A cloud, a chat, rules, and secrets as files that only the container's user may read."""
    stage.cloud(), stage.receiver()
    secrets = stage.folder / "secrets"
    secrets.mkdir()
    for name, value in (
        ("CLOUD", stage.env["CLOUD"]),
        ("CHAT", stage.env["CHAT"]),
        ("JOB_WATCHDOG_ALAYA_API_KEY", "stand-in-api-key"),
    ):
        (secrets / name).write_text(f"{value}\n")
        (secrets / name).chmod(0o400)
        os.chown(secrets / name, 10001, 10001)
    stage.rules(RULES, head="").chmod(0o644)
    return stage


@pytest.fixture
def volume(podman: Podman) -> Iterator[str]:
    podman("volume", "create", "state")
    yield "state"
    podman("rm", "--all", "--force", "--time", 0)
    podman("volume", "rm", "state")


def start(podman: Podman, stage: Any, volume: str, name: str = "wd", *more: object) -> None:
    hard = ("--read-only", "--read-only-tmpfs=false", "--cap-drop=all", "--security-opt=no-new-privileges")
    mounts = (
        f"--volume={stage.folder / 'rules.yaml'}:/etc/job-watchdog/rules.yaml:ro",
        f"--volume={stage.folder / 'secrets'}:/run/secrets:ro",
        f"--volume={volume}:/var/lib/job-watchdog",
    )
    podman(
        "run",
        "--detach",
        "--name",
        name,
        "--network=host",
        "--health-interval=disable",
        *hard,
        *mounts,
        *more,
        IMAGE,
    )


def receiver(stage: Any) -> Path:
    return next(Path(stage.folder).glob("received-*.jsonl"), Path("/nonexistent"))


def told(stage: Any) -> list[str]:
    """Title and incident of every message."""
    path = receiver(stage)
    bodies = [json.loads(line)["body"] for line in path.read_text().splitlines()] if path.exists() else []
    return [f"{body['title']} {body['message'].rpartition('Incident ')[2]}" for body in bodies]


def test_the_image_says_what_it_is(podman: Podman) -> None:
    config = podman.inspect(IMAGE, ".Config")
    assert config["User"] == "10001:10001"
    assert config["Entrypoint"] == ["watchdog"]
    assert config["Cmd"] == ["run"]
    assert list(config["Volumes"]) == ["/var/lib/job-watchdog"]
    assert config["StopSignal"] == "SIGTERM"
    assert podman("run", "--rm", "--network=none", IMAGE, "version").stdout.startswith("job-watchdog 0.")


def test_the_image_holds_no_installer_and_nothing_that_its_user_can_change(podman: Podman) -> None:
    shell = ("run", "--rm", "--network=none", "--entrypoint=sh", IMAGE, "-c")
    assert podman(*shell, "ls /opt/job-watchdog/bin").stdout.find("pip") < 0
    assert podman(*shell, "find /opt /etc /usr -xdev -user 10001 -o -perm -o+w ! -type l | head").stdout == ""


def test_without_a_rule_file_it_says_so_and_ends(podman: Podman) -> None:
    done = podman("run", "--rm", "--network=none", IMAGE, check=False)
    assert done.returncode == 1
    assert "/etc/job-watchdog/rules.yaml" in done.stderr
    assert "Traceback" not in done.stderr


def test_it_watches_and_tells_from_a_read_only_root(
    podman: Podman, places: Any, volume: str, wait_until: Wait
) -> None:
    start(podman, places, volume)
    wait_until(lambda: told(places), "a message")
    assert "gpu-full" in told(places)[0]
    assert podman("exec", "wd", "id", "-u").stdout.strip() == "10001"
    assert podman("exec", "wd", "touch", "/etc/x", check=False).returncode != 0
    logs = podman("logs", "wd")
    assert "[job-watchdog] watching: 1 task" in logs.stderr
    assert "stand-in-api-key" not in logs.stderr + logs.stdout + json.dumps(podman.inspect("wd", "."))


def test_sigterm_ends_it_with_0_soon(podman: Podman, places: Any, volume: str, wait_until: Wait) -> None:
    start(podman, places, volume)
    wait_until(lambda: told(places), "a message")
    podman("stop", "--time", 60, "wd")
    assert podman.inspect("wd", ".State.ExitCode") == 0  # 137 if it had been killed


def test_the_state_survives_the_containers_replacement(
    podman: Podman, places: Any, volume: str, wait_until: Wait
) -> None:
    start(podman, places, volume, "first")
    wait_until(lambda: told(places), "a message")
    first = told(places)
    podman("rm", "--force", "first")
    start(podman, places, volume, "second")
    wait_until(lambda: "1 firing" in podman("logs", "second").stderr, "the old alert, still firing")
    assert [one for one in told(places) if "gpu-full" in one] == first


def test_the_healthcheck_follows_the_watching(
    podman: Podman, places: Any, volume: str, wait_until: Wait
) -> None:
    start(podman, places, volume)
    wait_until(lambda: told(places), "a message")
    assert podman.inspect(IMAGE, ".HealthCheck.Test") == ["CMD", "watchdog", "status", "--quiet"]

    def healthy() -> bool:
        return podman("healthcheck", "run", "wd", check=False).returncode == 0

    wait_until(healthy, "a healthy container")
    podman("kill", "--signal=STOP", "wd")
    wait_until(lambda: not healthy(), "an unhealthy container")
    podman("kill", "--signal=CONT", "wd")
    wait_until(healthy, "a healthy container again")


def test_the_compose_file_starts_as_it_is(podman: Podman, places: Any, wait_until: Wait) -> None:
    """docs/compose.yaml, unchanged; the stand-in cloud listens on this machine's loopback only."""
    shutil.copy(ROOT / "docs" / "compose.yaml", places.folder / "compose.yaml")
    (places.folder / "here.yaml").write_text("services: { watchdog: { network_mode: host } }\n")
    podman("tag", IMAGE, "job-watchdog:latest")
    try:
        podman.compose(places.folder, "up", "--detach", "--no-build")
        (name,) = podman("ps", "--format", "{{.Names}}").stdout.split()
        wait_until(lambda: told(places), "a message")

        def healthy() -> bool:
            return podman("healthcheck", "run", name, check=False).returncode == 0

        wait_until(healthy, "a healthy container")
        host = podman.inspect(name, ".HostConfig")
        assert (host["ReadonlyRootfs"], host["CapAdd"], host["Memory"]) == (True, [], 2 << 30)
        assert host["PidsLimit"] == 512
        assert podman.inspect(name, ".EffectiveCaps") in (None, [])
        assert podman("exec", name, "touch", "/etc/x", check=False).returncode != 0
        assert "firing" in podman("exec", name, "watchdog", "status").stdout
        podman.compose(places.folder, "stop")
        assert podman.inspect(name, ".State.ExitCode") == 0
        podman.compose(places.folder, "down")
        assert podman("ps", "--all", "--quiet").stdout == ""
        assert "wdtest_state" in podman("volume", "ls", "--quiet").stdout  # what it knew is kept
    finally:
        podman("rm", "--all", "--force", "--time", 0, check=False)
        podman("volume", "rm", "--all", "--force", check=False)
