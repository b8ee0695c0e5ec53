"""`watchdog init` as a person has it: the installed command on a terminal of its own (a pty)."""

import fcntl
import os
import pty
import re
import select
import stat
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from watchdog.demo.receiver import Answer

COMMAND = Path(sys.executable).with_name("watchdog")
KEY = "stand-in-api-key"
TASK = "1234567890"
PATIENCE = 60.0  # seconds; only ever reached when something hangs
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
# Makes the pty the controlling terminal, then becomes the program: Ctrl-C and hidden input are real.
TAKE_TERMINAL = (
    "import fcntl,os,sys,termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)
HIDDEN_KEY, HIDDEN_URL = "api_key (hidden): ", "Its URL (hidden): "


@dataclass
class Person:
    """Types on the terminal and reads what is on the screen."""

    process: "subprocess.Popen[bytes]"
    master: int
    screen: str = ""
    _read: int = field(default=0)

    def sees(self, text: str) -> str:
        """Wait until a text comes, after what was seen before; returns what came up to it."""
        deadline = time.monotonic() + PATIENCE
        while (at := self.screen.find(text, self._read)) < 0:
            left = deadline - time.monotonic()
            assert left > 0, f"waited in vain for {text!r} on:\n{self.screen}"
            assert self._more(left), f"ended before {text!r} on:\n{self.screen}"
        came = self.screen[self._read : at]
        self._read = at + len(text)
        return came

    def types(self, text: str) -> None:
        """Type, as a person does: once the program waits for it.

        A SIGINT in the microseconds between a prompt and CPython's wait for a key is held back until
        the next key (`readline_until_enter_or_signal` looks for signals only after an interrupted wait).
        """
        self._waits()
        os.write(self.master, text.encode())

    def answers(self, question: str, text: str) -> None:
        """Wait for a question, then type an answer and Enter."""
        self.sees(question)
        self.types(f"{text}\n")

    def code(self) -> int:
        """Read to the end; returns the exit code."""
        while self._more(PATIENCE):
            pass
        return self.process.wait(PATIENCE)

    def _waits(self) -> None:
        """Wait until the program's main thread sleeps; proc(5): the state follows the command's name."""
        status = Path(f"/proc/{self.process.pid}/stat")
        deadline = time.monotonic() + PATIENCE
        while status.read_text().rpartition(")")[2].split()[0] != "S":
            assert time.monotonic() < deadline, f"busy for {PATIENCE} s behind:\n{self.screen}"
            time.sleep(0.001)

    def _more(self, patience: float) -> bool:
        if not select.select([self.master], [], [], patience)[0]:
            return True
        try:
            part = os.read(self.master, 65536)
        except OSError:  # how Linux says that the other side is closed
            return False
        self.screen += ESCAPES.sub("", part.decode())
        return bool(part)


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Callable[..., Person]]:
    """Start `watchdog` on a terminal of 100 × 40, in an empty folder with an empty environment."""
    people: list[Person] = []

    def start(*arguments: str, **environment: str) -> Person:
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        env = {
            "PATH": f"{COMMAND.parent}:{os.environ['PATH']}",
            "HOME": str(tmp_path),
            "TERM": "xterm",
            "LANG": "C.UTF-8",
            "TZ": "Asia/Shanghai",
            "NO_PROXY": "*",
            **environment,
        }
        process = subprocess.Popen(
            [sys.executable, "-c", TAKE_TERMINAL, str(COMMAND), *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=tmp_path,
            env=env,
            start_new_session=True,
        )
        os.close(slave)
        people.append(Person(process, master))
        return people[-1]

    yield start
    for one in people:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()
        os.close(one.master)


@pytest.fixture
def starts(person: Callable[..., Person], outside: Any) -> Callable[..., Person]:
    """Start `watchdog init` at the stand-in cloud; the person has answered up to the key."""

    def start(*arguments: str, key: str = KEY, **environment: str) -> Person:
        someone = person("init", "--cloud", "alaya", *arguments, **environment)
        someone.answers("base_url [https://api.alayanew.com]: ", outside.cloud.url)
        someone.answers("auth (bearer, hmac, plain) [bearer]: ", "")
        if key:
            someone.answers(HIDDEN_KEY, key)
        return someone

    return start


def test_from_a_key_to_a_tested_channel(
    starts: Callable[..., Person], outside: Any, tmp_path: Path, watchdog: Any
) -> None:
    someone = starts()
    someone.sees("ok  the cloud answers: 2 tasks in its list\n")
    table = someone.sees("or an id: ")
    someone.types("1 pretrain-eval-*\n")
    someone.sees("ok  pretrain-llama-70b: 32 series of gpu")
    someone.answers(HIDDEN_URL, outside.channel)
    someone.sees("ok  test message sent: json answered HTTP 200 from 127.0.0.1\n")
    someone.answers("Time zone of the times in them [Asia/Shanghai]: ", "")
    someone.answers("Language (en, zh) [en]: ", "zh")

    assert someone.code() == 0
    assert re.search(r"\n   #  NAME +STATUS +GPUS  FOR +ID\n   1  pretrain-llama-70b +running +32 ", table)
    assert re.search(r"\n   2  pretrain-eval-7b +queued ", table)
    assert "watchdog run " in someone.screen.partition("\nNext\n")[2]
    assert [one.body["title"] for one in outside.receiver.received] == ["Test · watchdog"]
    for secret in (KEY, outside.channel):
        assert secret not in someone.screen
    text = (tmp_path / "rules.yaml").read_text()
    assert f'- {{ source: alaya, task: "{TASK}", name: "pretrain-llama-70b" }}\n' in text
    assert '- { source: alaya, name: "pretrain-eval-*" }\n' in text
    assert KEY not in text
    assert (
        tmp_path / ".env"
    ).read_text() == f"JOB_WATCHDOG_ALAYA_API_KEY={KEY}\nTEAM_CHAT_URL={outside.channel}\n"
    assert stat.S_IMODE((tmp_path / ".env").stat().st_mode) == 0o600
    assert watchdog("check", "--probe").code == 0
    assert sorted(one.name for one in tmp_path.iterdir()) == [".env", "rules.yaml"]


def test_a_wrong_key_is_named_and_asked_for_again(starts: Callable[..., Person], tmp_path: Path) -> None:
    someone = starts("--name", "pretrain-*", "--channel", "console", key="wrong-key-4711")
    someone.sees("FAILED  the task list cannot be read: key unknown")
    someone.sees("The cloud refuses this key.")
    someone.answers("(again, key, settings, id) [key]: ", "")
    someone.answers(HIDDEN_KEY, KEY)
    someone.sees("ok  the cloud answers")
    someone.answers("[Asia/Shanghai]: ", "")
    someone.answers("[en]: ", "")

    assert someone.code() == 0
    assert (tmp_path / ".env").read_text() == f"JOB_WATCHDOG_ALAYA_API_KEY={KEY}\n"
    assert "4711" not in someone.screen


def test_a_key_of_this_shell_that_is_refused_wins_over_the_file_and_that_is_said(
    starts: Callable[..., Person],
) -> None:
    someone = starts(
        "--name", "pretrain-*", "--channel", "console", key="", JOB_WATCHDOG_ALAYA_API_KEY="old-one"
    )
    someone.sees("api_key: taken from JOB_WATCHDOG_ALAYA_API_KEY\n")
    someone.answers("[key]: ", "key")
    someone.answers(HIDDEN_KEY, KEY)
    someone.answers("[Asia/Shanghai]: ", "")
    someone.answers("[en]: ", "")

    assert someone.code() == 0
    assert "wins over .env: unset JOB_WATCHDOG_ALAYA_API_KEY" in " ".join(someone.screen.split())


def test_a_web_page_instead_of_the_list_leads_to_an_id_by_hand(
    starts: Callable[..., Person], outside: Any, tmp_path: Path
) -> None:
    outside.cloud.faults.add("html", "list")

    someone = starts("--channel", "console")
    someone.sees("FAILED  the task list cannot be read: not JSON")
    someone.sees("A web page came where data should be")
    someone.answers("(again, key, settings, id) [id]: ", "")
    someone.answers("Its id, as the cloud's console shows it: ", "pretrain-*")
    someone.sees("note  names are found through the task list, which cannot be read: give an id")
    someone.answers("Its id, as the cloud's console shows it: ", "99999")
    someone.sees("FAILED  99999: metrics cannot be read: not found")
    someone.answers("Watch it all the same? (yes, no) [no]: ", "")
    someone.answers("Its id, as the cloud's console shows it: ", TASK)
    someone.sees(f"ok  {TASK}: 32 series of gpu")
    someone.answers("[Asia/Shanghai]: ", "")
    someone.answers("[en]: ", "")

    assert someone.code() == 0
    assert f'- {{ source: alaya, task: "{TASK}" }}\n' in (tmp_path / "rules.yaml").read_text()


def test_the_cloud_is_chosen_and_its_address_can_be_changed_after_a_failure(
    person: Callable[..., Person], outside: Any, tmp_path: Path
) -> None:
    someone = person("init", "--channel", "console", "--name", "p*", JOB_WATCHDOG_ALAYA_API_KEY=KEY)
    someone.answers("Which cloud? ", "al")
    someone.answers("base_url [https://api.alayanew.com]: ", "http://127.0.0.1:9")
    someone.answers("auth (bearer, hmac, plain) [bearer]: ", "")
    someone.sees("FAILED  the task list cannot be read: unreachable")
    someone.answers("[again]: ", "settings")
    someone.answers("base_url [http://127.0.0.1:9]: ", outside.cloud.url)
    someone.answers("[bearer]: ", "")
    someone.sees("ok  the cloud answers")
    someone.answers("[Asia/Shanghai]: ", "")
    someone.answers("[en]: ", "")

    assert someone.code() == 0
    assert f'base_url: "{outside.cloud.url}"' in (tmp_path / "rules.yaml").read_text()


def test_without_any_task_a_name_can_be_given_for_later(
    starts: Callable[..., Person], outside: Any, tmp_path: Path
) -> None:
    for task in outside.cloud.tasks.values():
        task.listed = False

    someone = starts("--channel", "console")
    someone.sees("No task runs or waits.\n")
    someone.answers("A name or glob that will come (pretrain-*), or an id: ", "7")
    someone.sees("note  7 is no id\n")
    someone.answers("A name or glob that will come (pretrain-*), or an id: ", "sft-*")
    someone.sees("note  sft-* fits no task now")
    someone.answers("Watch it all the same? (yes, no) [no]: ", "y")
    someone.answers("[Asia/Shanghai]: ", "")
    someone.answers("[en]: ", "")

    assert someone.code() == 0
    assert '- { source: alaya, name: "sft-*" }\n' in (tmp_path / "rules.yaml").read_text()


def test_a_channel_is_asked_for_until_one_takes_a_message(
    starts: Callable[..., Person], outside: Any, tmp_path: Path
) -> None:
    outside.receiver.answers.append(Answer(status=403))

    someone = starts("--name", "pretrain-*")
    someone.answers(HIDDEN_URL, "hunter2")
    someone.sees("note  cannot be used: it is not a URL\n")
    someone.answers(HIDDEN_URL, "slack://hunter2")
    someone.sees("note  cannot be used: ")
    someone.answers(HIDDEN_URL, "env:NOT_SET")
    someone.sees("note  NOT_SET is not set")
    someone.answers(HIDDEN_URL, outside.channel)
    someone.sees("FAILED  test message refused: HTTP 403")
    someone.answers("(other, again, keep) [other]: ", "again")
    someone.sees("ok  test message sent")
    someone.answers("[Asia/Shanghai]: ", "Shanghai")
    someone.sees("did you mean Asia/Shanghai?")
    someone.answers("[Asia/Shanghai]: ", "")
    someone.answers("[en]: ", "english")
    someone.sees("note  one of en, zh\n")
    someone.answers("[en]: ", "")

    assert someone.code() == 0
    assert len(outside.receiver.received) == 2
    assert "hunter2" not in someone.screen
    assert f"TEAM_CHAT_URL={outside.channel}\n" in (tmp_path / ".env").read_text()


def test_a_channel_that_never_took_a_message_may_be_kept_and_that_is_said(
    starts: Callable[..., Person], outside: Any
) -> None:
    outside.receiver.answers.append(Answer(status=403, times=0))

    someone = starts("--name", "pretrain-*")
    someone.answers(HIDDEN_URL, outside.channel)
    someone.answers("[other]: ", "keep")
    someone.answers("[Asia/Shanghai]: ", "")
    someone.answers("[en]: ", "")

    assert someone.code() == 0
    assert "note  the channel has taken no message yet" in someone.screen


def test_what_is_set_already_is_offered_and_an_env_file_is_kept(
    starts: Callable[..., Person], outside: Any, tmp_path: Path
) -> None:
    before = f"# ours\nOTHER='a b'\n\nTEAM_CHAT_URL={outside.channel}\n"
    (tmp_path / ".env").write_text(before)
    (tmp_path / ".env").chmod(0o644)

    someone = starts("--name", "pretrain-*")
    someone.answers("TEAM_CHAT_URL is set already (json://…). Use it? (yes, no) [yes]: ", "")
    someone.answers("[Asia/Shanghai]: ", "")
    someone.answers("[en]: ", "")

    assert someone.code() == 0
    assert "DingTalk" not in someone.screen  # examples are for whoever has to type
    assert (tmp_path / ".env").read_text() == f"{before}JOB_WATCHDOG_ALAYA_API_KEY={KEY}\n"
    assert stat.S_IMODE((tmp_path / ".env").stat().st_mode) == 0o600


def test_another_channel_than_the_one_that_is_set_gets_a_name_of_its_own(
    starts: Callable[..., Person], outside: Any, tmp_path: Path
) -> None:
    (tmp_path / ".env").write_text("TEAM_CHAT_URL=json://localhost/others\n")

    someone = starts("--name", "pretrain-*")
    someone.answers("Use it? (yes, no) [yes]: ", "no")
    someone.answers(HIDDEN_URL, outside.channel)
    someone.answers("[Asia/Shanghai]: ", "")
    someone.answers("[en]: ", "")

    assert someone.code() == 0
    assert 'team: { url: "${TEAM_CHAT_URL_2}" }' in (tmp_path / "rules.yaml").read_text()
    env = (tmp_path / ".env").read_text()
    assert "TEAM_CHAT_URL=json://localhost/others\n" in env
    assert f"TEAM_CHAT_URL_2={outside.channel}\n" in env


@pytest.mark.parametrize("end", ["\x03", "\x04"], ids=["Ctrl-C", "Ctrl-D"])
@pytest.mark.parametrize("question", [HIDDEN_URL, "or an id: "], ids=["hidden", "shown"])
def test_stopping_changes_no_file(
    starts: Callable[..., Person], tmp_path: Path, question: str, end: str
) -> None:
    (tmp_path / ".env").write_text("OTHER=1\n")

    someone = starts(*(("--task", TASK) if question == HIDDEN_URL else ()))
    someone.sees(question)
    someone.types(end)

    assert someone.code() == 130
    assert someone.screen.endswith("Stopped; no file was changed.\n")
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [(".env", "OTHER=1\n")]


def test_an_existing_rule_file_is_refused_before_any_question(
    person: Callable[..., Person], tmp_path: Path
) -> None:
    (tmp_path / "rules.yaml").write_text("mine\n")

    someone = person("init")

    assert someone.code() == 1
    assert "watchdog: rules.yaml: is there already (--force writes over it" in someone.screen
    assert (tmp_path / "rules.yaml").read_text() == "mine\n"


def test_a_rule_file_that_came_meanwhile_is_left_alone(starts: Callable[..., Person], tmp_path: Path) -> None:
    someone = starts("--task", TASK, "--channel", "console")
    someone.sees("[Asia/Shanghai]: ")
    (tmp_path / "rules.yaml").write_text("mine\n")
    someone.types("\n")
    someone.answers("[en]: ", "")

    assert someone.code() == 1
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("rules.yaml", "mine\n")]


def test_yes_asks_nothing_even_on_a_terminal(person: Callable[..., Person]) -> None:
    someone = person("init", "--cloud", "alaya", "--yes")

    assert someone.code() == 2
    assert "nobody can be asked here; also needed: JOB_WATCHDOG_ALAYA_API_KEY" in someone.screen
