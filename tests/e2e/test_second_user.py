"""The bare process, without systemd: whoever shares its group may ask it, and nobody else. As root only.

The users need no entry in any list of users. They can run this interpreter wherever it lies: its folders are
handed over open, since those above them may be closed to other users.
"""

import contextlib
import json
import os
import shutil
import site
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import watchdog

Wait = Callable[..., Any]

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")

OWNER, MATE, STRANGER = 61_001, 61_002, 61_003
GROUP, OTHER_GROUP = 61_000, 61_009
MAIN = """
import sys
count = int(sys.argv[1])
sys.path[:0] = sys.argv[2 : 2 + count]
sys.argv[1:] = sys.argv[2 + count :]
from watchdog.cli.main import main
main()
"""


@dataclass
class Place:
    """A folder of the owner's that its group may enter, and the program as any user may run it."""

    folder: Path
    env: dict[str, str]

    @contextlib.contextmanager
    def program(self, *arguments: object) -> Iterator[tuple[list[str], dict[str, Any]]]:
        """The words of a command, and the options of `subprocess` that let anybody run it."""
        base = Path(sys.base_prefix)
        places = dict.fromkeys(
            (base, Path(watchdog.__file__).parent.parent, *map(Path, site.getsitepackages()))
        )
        fds = [os.open(place, os.O_RDONLY | os.O_DIRECTORY) for place in places if place.is_dir()]
        home, *folders = (f"/proc/self/fd/{fd}" for fd in fds)
        python = f"{home}/bin/python{sys.version_info[0]}.{sys.version_info[1]}"
        words = [python, "-s", "-P", "-c", MAIN, str(len(folders)), *folders, *map(str, arguments)]
        env = {**self.env, "HOME": "/nonexistent", "PYTHONHOME": home, "LD_LIBRARY_PATH": f"{home}/lib"}
        try:
            yield words, {"pass_fds": fds, "cwd": "/", "env": env, "stdin": subprocess.DEVNULL}
        finally:
            for fd in fds:
                os.close(fd)

    def ask(self, user: int, groups: Sequence[int], *arguments: object) -> subprocess.CompletedProcess[str]:
        """Run a verb as somebody."""
        with self.program(*arguments) as (words, options):
            return subprocess.run(
                words,
                user=user,
                group=groups[0],
                extra_groups=list(groups[1:]),
                capture_output=True,
                text=True,
                check=False,
                timeout=120,
                **options,
            )


@pytest.fixture
def place(stage: Any) -> Iterator[Place]:
    cloud, receiver = stage.cloud(), stage.receiver()
    assert cloud
    assert receiver
    folder = Path(tempfile.mkdtemp(prefix="wd-"))
    try:
        shutil.copy(stage.rules(), folder / "rules.yaml")
        for path, mode in ((folder / "rules.yaml", 0o640), (folder, 0o750)):
            path.chmod(mode)
            os.chown(path, OWNER, GROUP)
        kept = {name: value for name, value in stage.env.items() if name not in ("HOME", "PYTHONWARNINGS")}
        yield Place(folder, {**kept, "JOB_WATCHDOG_STATE": str(folder / "state.db")})
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def daemon(place: Place, wait_until: Wait) -> Iterator[subprocess.Popen[bytes]]:
    """The daemon, as its owner."""
    running = place.program("run", place.folder / "rules.yaml")
    with running as (words, options), (place.folder / "log").open("wb") as log:
        process = subprocess.Popen(
            words, user=OWNER, group=GROUP, extra_groups=[], umask=0o077, stdout=log, stderr=log, **options
        )
    try:
        wait_until(lambda: process.poll() is not None or (place.folder / "control.sock").exists(), "a socket")
        assert process.poll() is None, (place.folder / "log").read_text()
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.usefixtures("daemon")
def test_a_second_user_of_the_group_may_ask_and_a_stranger_is_told_so_in_one_line(place: Place) -> None:
    socket = place.folder / "control.sock"
    found = socket.stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (OWNER, GROUP, 0o660)

    for user, groups in ((OWNER, (GROUP,)), (MATE, (GROUP,)), (MATE, (OTHER_GROUP, GROUP))):
        asked = place.ask(user, groups, "status", "--json")
        assert (asked.returncode, asked.stderr) == (0, ""), asked
        assert json.loads(asked.stdout)["live"] is True
    assert place.ask(MATE, (GROUP,), "status").stdout.startswith("watchdog ")

    for verb in (("status",), ("history",), ("reload",), ("status", "--quiet"), ("show", "x")):
        refused = place.ask(STRANGER, (OTHER_GROUP,), *verb)
        assert (refused.returncode, refused.stdout) == (1, ""), refused
        assert refused.stderr == (
            f"watchdog: {socket}: permission denied: ask as the daemon's user, or join its group\n"
        )


@pytest.mark.usefixtures("daemon")
def test_a_stranger_who_may_enter_the_folder_is_refused_by_the_socket_itself(place: Place) -> None:
    place.folder.chmod(0o755)
    refused = place.ask(STRANGER, (OTHER_GROUP,), "status")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.count("\n") == 1
    assert "permission denied: ask as the daemon's user, or join its group" in refused.stderr


def test_the_state_of_a_daemon_that_is_gone_is_its_users_alone(
    place: Place, daemon: subprocess.Popen[bytes], wait_until: Wait
) -> None:
    wait_until((place.folder / "state.db").exists, "a state file")
    daemon.terminate()
    assert daemon.wait(60) == 0
    assert place.ask(OWNER, (GROUP,), "status").returncode == 3
    for user, group in ((MATE, GROUP), (STRANGER, OTHER_GROUP)):
        refused = place.ask(user, (group,), "status")
        assert refused.returncode in (1, 3), refused
        assert refused.stdout == ""
        assert refused.stderr.count("\n") == 1, refused
        assert "Traceback" not in refused.stderr
