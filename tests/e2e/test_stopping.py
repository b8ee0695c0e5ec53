"""A signal ends the daemon cleanly and soon, whatever hangs; and one state file has one daemon."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Wait = Callable[..., Any]
SOON = 15  # seconds; what is promised is 5, on a machine that has nothing else to do

SLOW_MAIL = r"""
channels:
  chat: { url: "${CHAT}" }
  mail: { url: "${MAIL}" }
rules:
  - { name: errors, log: { match: '\bERROR\b', by: pod } }
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_0(number: signal.Signals, stage: Any) -> None:
    stage.cloud(), stage.receiver()
    daemon = stage.watching(stage.rules())

    daemon.signal(number)

    assert daemon.wait(SOON) == 0
    assert "Traceback" not in daemon.err
    assert stage.state.whole()


def test_sigterm_during_the_start_ends_it_too(stage: Any, wait_until: Wait) -> None:
    cloud = stage.cloud()
    stage.receiver()
    cloud.fault("hang")
    daemon = stage.daemon(stage.rules())
    wait_until(lambda: cloud.requests().get("metrics"), "a first question", alive=daemon)

    daemon.signal(signal.SIGTERM)

    assert daemon.wait(SOON) == 0
    assert "Traceback" not in daemon.err


def test_neither_a_hanging_cloud_nor_a_hanging_mail_server_keeps_it(
    stage: Any, silent_mail_url: str, wait_until: Wait
) -> None:
    cloud, receiver = stage.cloud(), stage.receiver()
    daemon = stage.watching(stage.rules(SLOW_MAIL), env={"MAIL": silent_mail_url})
    cloud.say("ERROR out of luck", pod="worker-0")
    wait_until(receiver.told, "the chat message", alive=daemon)
    wait_until(lambda: "mail" in flying(stage), "a mail in flight", alive=daemon)
    cloud.fault("hang")
    asked = cloud.requests()["metrics"]
    wait_until(lambda: cloud.requests()["metrics"] > asked, "a question that hangs", alive=daemon)

    began = time.monotonic()
    daemon.signal(signal.SIGTERM)

    assert daemon.wait(SOON) == 0
    print(f"\nended after {time.monotonic() - began:.1f} s")
    assert "Traceback" not in daemon.err
    assert stage.state.whole()
    assert flying(stage) == ["mail"]  # the next start takes it up, as one that may have arrived


def test_a_file_that_is_never_read_to_its_end_does_not_keep_it(stage: Any, wait_until: Wait) -> None:
    """As on a share that is gone. A name server that does not answer keeps a thread in the same way."""
    stage.cloud(), stage.receiver()
    rules = stage.rules()
    daemon = stage.watching(rules)
    rules.unlink()
    os.mkfifo(rules)
    daemon.signal(signal.SIGHUP)
    pipe = wait_until(lambda: joined(rules), "somebody who reads the file", alive=daemon)

    daemon.signal(signal.SIGTERM)

    assert daemon.wait(SOON) == 0
    os.close(pipe)
    assert "Traceback" not in daemon.err


def joined(pipe: Path) -> int:
    """The writing end of a pipe; 0 as long as nobody waits at the other."""
    try:
        return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return 0


def test_a_message_in_flight_is_waited_for_and_not_repeated(stage: Any, wait_until: Wait) -> None:
    cloud, receiver = stage.cloud(), stage.receiver()
    receiver.answers({"kind": "hang", "value": "0.5", "times": 0})
    rules = stage.rules()
    daemon = stage.watching(rules)
    cloud.say("ERROR first", pod="worker-0")
    wait_until(receiver.told, "a message that is not answered yet", alive=daemon)

    daemon.signal(signal.SIGTERM)
    assert daemon.wait(SOON) == 0

    assert stage.state.rows("SELECT state FROM outbox") == [("done",)]
    cloud.say("ERROR second", pod="worker-1")
    second = stage.watching(rules)
    wait_until(lambda: "ERROR second" in receiver.texts(), "the next message", alive=second)
    assert len(receiver.told()) == 2


def test_a_second_daemon_is_refused_and_told_who_holds_the_state(stage: Any) -> None:
    stage.cloud(), stage.receiver()
    rules = stage.rules()
    first = stage.watching(rules)

    second = stage.run("run", rules, "--state", stage.state.path)

    assert second.code == 1
    (line,) = second.err.splitlines()
    assert f"is held by pid {first.pid} on host " in line
    assert first.code is None


def flying(stage: Any) -> list[str]:
    return [row[0] for row in stage.state.rows("SELECT channel FROM outbox WHERE state = 'inflight'")]
