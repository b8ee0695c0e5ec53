"""No secret is found in anything the daemon leaves behind or shows, at the highest log level."""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

Wait = Callable[..., Any]

API_KEY = "ak-9f8e7d6c5b4a39281706Zq"
WEBHOOK = "whk5TrQm2ZsX8vNc4LpD"
BEARER = "eyJhbGciOiJIUzI1NiJ9.c2VjcmV0LWJlYXJlcg.k3Y7pQ9wErTyUiOpAsDf"
PASSWORD = "hunter2-correct-horse"
MAIL = "mailto://robot:{password}@127.0.0.1:{port}/?from=wd@example.test&to=ops@example.test&mode=insecure"
SECRETS = (API_KEY, WEBHOOK, BEARER, PASSWORD, "stand-in-api-key")
RULES = r"""
channels:
  chat: { url: "${CHAT}" }
  mail: { url: "${MAIL}" }
rules:
  - { name: gpu-low, metric: gpu, below: 10% }
  - { name: errors, log: { match: '\bERROR\b', by: pod } }
"""


def test_planted_secrets_are_nowhere(stage: Any, wait_until: Wait, a_port: int) -> None:
    cloud, receiver = stage.cloud("--auth", "bearer"), stage.receiver()
    stage.env |= {
        "JOB_WATCHDOG_ALAYA_API_KEY": API_KEY,
        "JOB_WATCHDOG_LOG_LEVEL": "debug",
        "CHAT": receiver.channel(WEBHOOK),
        "MAIL": MAIL.format(password=PASSWORD, port=a_port),
    }
    daemon = stage.daemon(stage.rules(RULES))
    wait_until(stage.state.slot, "a slot, with a key that is refused", alive=daemon)
    # The key is wrong for this cloud: every answer is a failure that might quote it.
    wait_until(lambda: "cannot read" in receiver.texts(), "blindness to be told", alive=daemon)
    seen = arguments(daemon.pid)
    daemon.signal(signal.SIGTERM)
    assert daemon.wait() == 0

    stage.env["JOB_WATCHDOG_ALAYA_API_KEY"] = "stand-in-api-key"
    daemon = stage.watching(stage.rules(RULES))
    cloud.say(f"ERROR GET /data failed, Authorization: Bearer {BEARER}", pod="worker-1")
    cloud.say(f"ERROR export HF_TOKEN={BEARER} password={PASSWORD}", pod="worker-2")
    wait_until(lambda: receiver.texts().count("ERROR") >= 2, "the lines", alive=daemon)
    wait_until(
        lambda: stage.state.rows("SELECT 1 FROM attempts WHERE answer <> 'ok'"), "a failure", alive=daemon
    )
    seen += arguments(daemon.pid)
    daemon.kill()  # the write-ahead log stays

    messages = "".join(f"{one.title}\n{one.body}\n" for one in receiver.told())
    places = {"messages": messages, "process list": seen}
    for path in left_behind(stage):
        places[path.name] = path.read_bytes().decode("latin-1")
    assert {"state.db", "state.db-wal", "daemon-0.err", "daemon-1.err"} <= places.keys()
    for place, text in places.items():
        for secret in SECRETS:
            assert secret not in text, f"{secret} is in {place}"
    assert "DEBUG" in places["daemon-1.err"]
    assert "ERROR GET /data failed" in messages


def left_behind(stage: Any) -> list[Path]:
    """Every file in the test's folder, save what the stand-ins wrote down."""
    return [
        path
        for path in stage.folder.rglob("*")
        if path.is_file() and not path.name.startswith(("received", "cloud", "receiver"))
    ]


def arguments(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text() if Path("/proc").is_dir() else ""


def test_once_and_check_show_none_either(stage: Any, a_port: int) -> None:
    stage.env |= {
        "CLOUD": f"http://127.0.0.1:{a_port}",
        "JOB_WATCHDOG_ALAYA_API_KEY": API_KEY,
        "CHAT": f"json://127.0.0.1:{a_port}/{WEBHOOK}",
        "MAIL": MAIL.format(password=PASSWORD, port=a_port),
    }
    rules = stage.rules(RULES)

    for verb in (("once", rules), ("check", "--probe", rules), ("check", "--probe", "--json", rules)):
        done = stage.run(*verb)
        assert done.code in (1, 3), done
        for secret in SECRETS:
            assert secret not in done.out + done.err
