"""The process ends although a provider hangs, as systemd and people expect."""

import subprocess
import sys

CODE = """
import asyncio, sys
from datetime import timedelta
from watchdog.clock import SystemClock
from watchdog.core.notifications import Message, MessageKind
from watchdog.core.rules import Severity
from watchdog.core.ruleset import ChannelSpec, Secret
from watchdog.notifiers.registry import build_notifier

async def main():
    spec = ChannelSpec(name="mail", url=Secret(sys.argv[1]))
    channel = build_notifier(spec, SystemClock(), deadline=timedelta(milliseconds=200))
    message = Message(title="t", body="b", severity=Severity.INFO, kind=MessageKind.FIRST, incident="i")
    print((await channel.send(message)).answer, channel.stuck)
    await channel.close()

asyncio.run(main())
"""


def test_a_hanging_mail_server_does_not_keep_the_process_alive(silent_port: int) -> None:
    url = f"mailto://127.0.0.1:{silent_port}/?from=wd@example.test&to=ops@example.test&mode=insecure&cto=3600"

    ended = subprocess.run(
        [sys.executable, "-c", CODE, url], capture_output=True, text=True, timeout=60, check=False
    )

    assert ended.returncode == 0
    assert ended.stdout.split() == ["unknown", "1"]
    assert ended.stderr == "send abandoned channel=mail hanging=1\n"
