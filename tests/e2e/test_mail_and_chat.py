"""Messages reach a real mail server and a webhook; one that hangs delays neither the other nor the rules."""

import re
from collections.abc import Callable
from typing import Any

Wait = Callable[..., Any]

TWO_CHANNELS = r"""
channels:
  chat: { url: "${CHAT}" }
  mail: { url: "${MAIL}" }
rules:
  - { name: gpu-low, metric: gpu, below: 10%, for: 1s, severity: critical }
  - { name: errors, log: { match: '\bERROR\b', by: pod } }
  - { name: pod-gone, enabled: false }
"""


def test_a_problem_and_its_end_reach_mail_and_chat(stage: Any, mail_server: Any, wait_until: Wait) -> None:
    cloud, receiver, mail = stage.cloud(), stage.receiver(), mail_server()
    cloud.gpu(0.9)
    daemon = stage.watching(stage.rules(TWO_CHANNELS), env={"MAIL": mail.url})

    cloud.gpu(0.02)
    wait_until(lambda: len(mail.mails) == 1 and receiver.told(), "the alarm", alive=daemon)
    cloud.gpu(0.9)
    wait_until(lambda: len(mail.mails) == 2 and len(receiver.told()) == 2, "its end", alive=daemon)

    fired, over = receiver.told("chat")
    assert fired.title == "CRITICAL · gpu-low · calm-run"
    assert re.search(r"GPU (\d|[\d.]+) %, below 10 %", fired.body)
    assert over.title == "Recovered · gpu-low · calm-run (was CRITICAL)"
    assert fired.incident == over.incident != ""
    assert f"Incident {fired.incident}" in mail.mails[0]
    assert f"Incident {fired.incident}" in mail.mails[1]


def test_greylisting_delays_a_mail_and_loses_nothing(stage: Any, mail_server: Any, wait_until: Wait) -> None:
    cloud, receiver = stage.cloud(), stage.receiver()
    mail = mail_server("451 4.7.1 greylisted, try again later", "250 OK")
    daemon = stage.watching(stage.rules(TWO_CHANNELS), env={"MAIL": mail.url})

    cloud.say("ERROR no such shard", pod="worker-7")
    wait_until(lambda: mail.mails and receiver.told(), "both messages", alive=daemon)
    wait_until(lambda: not waiting(stage), "an empty outbox", alive=daemon)

    assert mail.refused == 1
    assert len(mail.mails) == len(receiver.told()) == 1
    assert "451" in daemon.err


def test_a_mail_server_that_hangs_delays_neither_chat_nor_rules(
    stage: Any, silent_mail_url: str, wait_until: Wait
) -> None:
    cloud, receiver = stage.cloud(), stage.receiver()
    cloud.gpu(0.9)
    daemon = stage.watching(stage.rules(TWO_CHANNELS), env={"MAIL": silent_mail_url})

    cloud.say("ERROR no. 0", pod="worker-0")
    wait_until(lambda: flying(stage) == [("mail",)], "a mail in flight", alive=daemon)
    for number in range(1, 4):
        cloud.say(f"ERROR no. {number}", pod=f"worker-{number}")
        cloud.gpu(0.9 if number % 2 else 0.02)
        slot = stage.state.slot()
        wait_until(lambda n=number: f"ERROR no. {n}" in receiver.texts("chat"), "chat", alive=daemon)
        wait_until(lambda before=slot: stage.state.slot() > before + 3, "four more slots", alive=daemon)
        assert flying(stage) == [("mail",)]

    assert "· gpu-low ·" in receiver.texts("chat")


def waiting(stage: Any) -> list[tuple[str]]:
    rows: list[tuple[str]] = stage.state.rows(
        "SELECT channel FROM outbox WHERE state IN ('pending', 'inflight')"
    )
    return rows


def flying(stage: Any) -> list[tuple[str]]:
    rows: list[tuple[str]] = stage.state.rows("SELECT channel FROM outbox WHERE state = 'inflight'")
    return rows
