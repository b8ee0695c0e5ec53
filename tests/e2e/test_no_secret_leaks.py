"""No secret is found in anything the daemon leaves behind or shows, at the highest log level."""

import json
import signal
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Wait = Callable[..., Any]

API_KEY = "ak-9f8e7d6c5b4a39281706Zq"
WEBHOOK = "whk5TrQm2ZsX8vNc4LpD"
BEARER = "eyJhbGciOiJIUzI1NiJ9.c2VjcmV0LWJlYXJlcg.k3Y7pQ9wErTyUiOpAsDf"
PASSWORD = "hunter2-correct-horse"
MAIL = "mailto://robot:{password}@127.0.0.1:{port}/?from=wd@example.test&to=ops@example.test&mode=insecure"
PAGES = ("/metrics", "/healthz", "/readyz", "/", "/status?token=x")
SECRETS = (API_KEY, WEBHOOK, BEARER, PASSWORD, "stand-in-api-key")
RULES = r"""
http: { listen: "127.0.0.1:PORT" }
channels:
  chat: { url: "${CHAT}" }
  mail: { url: "${MAIL}" }
rules:
  - { name: gpu-low, metric: gpu, below: 10% }
  - { name: errors, log: { match: '\bERROR\b', by: pod } }
"""


@pytest.mark.timeout(600)  # a score of verbs, each of which a busy machine starts in seconds
def test_planted_secrets_are_nowhere(stage: Any, wait_until: Wait, a_port: int, another_port: int) -> None:
    cloud, receiver = stage.cloud("--auth", "bearer"), stage.receiver()
    stage.env |= {
        "JOB_WATCHDOG_ALAYA_API_KEY": API_KEY,
        "JOB_WATCHDOG_LOG_LEVEL": "debug",
        "CHAT": receiver.channel(WEBHOOK),
        "MAIL": MAIL.format(password=PASSWORD, port=a_port),
    }
    rules = stage.rules(RULES.replace("PORT", str(another_port)))
    daemon = stage.daemon(rules)
    wait_until(stage.state.slot, "a slot, with a key that is refused", alive=daemon)
    # The key is wrong for this cloud: every answer is a failure that might quote it.
    wait_until(lambda: "cannot read" in receiver.texts(), "blindness to be told", alive=daemon)
    seen = arguments(daemon.pid)
    daemon.signal(signal.SIGTERM)
    assert daemon.wait() == 0

    stage.env["JOB_WATCHDOG_ALAYA_API_KEY"] = "stand-in-api-key"
    daemon = stage.watching(rules)
    cloud.say(f"ERROR GET /data failed, Authorization: Bearer {BEARER}", pod="worker-1")
    cloud.say(f"ERROR export HF_TOKEN={BEARER} password={PASSWORD}", pod="worker-2")
    wait_until(lambda: receiver.texts().count("ERROR") >= 2, "the lines", alive=daemon)
    wait_until(
        lambda: stage.state.rows("SELECT 1 FROM attempts WHERE answer <> 'ok'"), "a failure", alive=daemon
    )
    seen += arguments(daemon.pid)
    shown = {f"page {page}": fetched(another_port, page) for page in PAGES} | answered(stage, live=True)
    shown["reload"] = refused_reload(stage, rules)
    daemon.kill()  # the write-ahead log stays
    shown |= answered(stage, live=False)

    messages = "".join(f"{one.title}\n{one.body}\n" for one in receiver.told())
    places = {"messages": messages, "process list": seen, **shown}
    for path in left_behind(stage):
        places[path.name] = path.read_bytes().decode("latin-1")
    assert {"state.db", "state.db-wal", "daemon-0.err", "daemon-1.err"} <= places.keys()
    for place, text in places.items():
        for secret in SECRETS:
            assert secret not in text, f"{secret} is in {place}"
    assert "DEBUG" in places["daemon-1.err"]
    assert "job_watchdog_healthy" in places["page /metrics"]
    assert "Bearer ****" in places["show --json, live"]
    assert "Bearer ****" in places["show --json, stored"]
    assert "ERROR GET /data failed" in messages


def answered(stage: Any, *, live: bool) -> dict[str, str]:
    """What every reading verb answers, and those that try something, as people and programs get it."""
    where = ("--state", stage.state.path)
    listed = stage.run("history", "--rule", "errors", "--json", *where).out
    incident = next(one["id"] for one in json.loads(listed)["incidents"] if "GET /data" in json.dumps(one))
    verbs: dict[str, tuple[str, ...]] = {
        "status": (),
        "history": (),
        "show": (incident,),
        "why": (incident,),
        "explain": ("gpu-low",) if live else ("errors",),
    }
    if live:
        verbs |= {"metrics": ("alaya", "calm-run"), "test-notify": ("mail",)}
    word = "live" if live else "stored"
    said = {f"history --rule, {word}": listed}
    for verb, arguments in verbs.items():
        for options in ((), ("--json",)) if verb in ("show", "test-notify") else (("--json",),):
            done = stage.run(verb, *arguments, *options, *where)
            assert done.out or done.err, verb
            said[" ".join((verb, *options)) + f", {word}"] = done.out + done.err
    return said


def refused_reload(stage: Any, rules: Path) -> str:
    """What is said of a rule file whose mistakes are next to secrets, and inside of what they fill in."""
    broken = (
        rules.read_text().replace("json", "jsn")
        + r"""
  - { name: wrong, metric: gpu, below: "${CHAT}", severity: "${MAIL}" }
  - { name: "${JOB_WATCHDOG_ALAYA_API_KEY}", metric: gpu, below: 10% }
  - { name: "${JOB_WATCHDOG_ALAYA_API_KEY}", metric: gpu, below: 10%, notify: ["${CHAT}"] }
"""
    )
    rules.write_text(broken)
    told = [stage.run("reload", "--state", stage.state.path), stage.run("check", rules)]
    told.append(stage.run("check", rules, "--json"))
    assert all(done.code == 1 for done in told), told
    return "".join(done.out + done.err for done in told)


def fetched(port: int, page: str) -> str:
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
            f"http://127.0.0.1:{port}{page}", timeout=60
        ) as response:
            return response.read().decode()
    except urllib.error.HTTPError as error:
        return error.read().decode()


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
        "JOB_WATCHDOG_DEBUG": "1",
        "JOB_WATCHDOG_LOG_LEVEL": "debug",
    }
    rules = stage.rules(RULES.replace("PORT", str(a_port)))

    for verb in (("once", rules), ("check", "--probe", rules), ("check", "--probe", "--json", rules)):
        done = stage.run(*verb)
        assert done.code in (1, 3), done
        for secret in SECRETS:
            assert secret not in done.out + done.err
