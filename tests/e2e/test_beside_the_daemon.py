"""Health pages, metrics, the dead man's switch and the service manager beside the real daemon."""

import json
import signal
import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Wait = Callable[..., Any]
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))

BESIDE = """
channels:
  chat: { url: "${CHAT}" }
rules:
  - { name: gpu-low, metric: gpu, below: 10%, for: 1s }
  - { name: errors, log: { match: '\\bERROR\\b', by: pod } }
  - { name: pod-gone, enabled: false }
http: { listen: "127.0.0.1:${PORT}" }
heartbeat: { url: "${OUTSIDE}", every: 2s }
"""


@pytest.fixture
def port(stage: Any) -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        found = int(listener.getsockname()[1])
    stage.env["PORT"] = str(found)
    return found


def page(port: int, path: str) -> tuple[int, str]:
    """Status and body; (0, "") while nobody listens."""
    try:
        with OPENER.open(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


def healthy(port: int) -> bool:
    return page(port, "/healthz")[0] == 200


def calls(receiver: Any) -> list[tuple[str, str]]:
    """What the dead man's switch heard: (word, body)."""
    if not receiver.file.exists():
        return []
    lines = [json.loads(line) for line in receiver.file.read_text().splitlines()]
    found = [line for line in lines if line["path"].startswith("/ping/")]
    return [(line["path"].removeprefix("/ping/secret-key"), line["body"]) for line in found]


def start(stage: Any) -> tuple[Any, Any, Any, Any]:
    """A cloud, a chat, an outside, and the daemon."""
    cloud, chat, outside = stage.cloud(), stage.receiver(), stage.receiver()
    stage.env["OUTSIDE"] = f"{outside.url}/ping/secret-key"
    return cloud, chat, outside, stage.watching(stage.rules(BESIDE))


def test_pages_and_heartbeat_say_the_same_while_the_cloud_fails_and_recovers(
    stage: Any, port: int, wait_until: Wait
) -> None:
    cloud, _, receiver, daemon = start(stage)
    wait_until(lambda: healthy(port), "a healthy daemon", alive=daemon)
    wait_until(lambda: len(calls(receiver)) >= 3, "three calls", alive=daemon)
    assert [word for word, _ in calls(receiver)][:3] == ["/start", "", ""]
    assert "1 task, 2 rules" in calls(receiver)[1][1]

    cloud.fault("key expired")
    wait_until(lambda: not healthy(port), "an unhealthy daemon", alive=daemon)
    wait_until(lambda: "/fail" in [word for word, _ in calls(receiver)], "a failure outside", alive=daemon)
    assert page(port, "/readyz")[0] == 200
    reason = json.loads(page(port, "/healthz")[1])["reasons"][0]
    assert reason.startswith("no source gives a usable answer")
    assert dict(calls(receiver))["/fail"].startswith("no source gives a usable answer")
    asked = stage.run("status", "--quiet", "--state", stage.state.path)
    assert asked.code == 1
    assert asked.out.startswith("no source gives a usable answer")  # which questions fail may grow meanwhile
    told = len(calls(receiver))

    cloud.heal()
    wait_until(lambda: healthy(port), "a healthy daemon again", alive=daemon)
    wait_until(lambda: "" in [word for word, _ in calls(receiver)[told:]], "a useful cycle", alive=daemon)
    asked = stage.run("status", "--quiet", "--state", stage.state.path)
    assert (asked.code, asked.out, asked.err) == (0, "", "")
    assert "secret-key" not in daemon.err
    daemon.signal(signal.SIGTERM)
    assert daemon.wait() == 0
    assert page(port, "/healthz") == (0, "")
    asked = stage.run("status", "--quiet", "--state", stage.state.path)
    assert (asked.code, asked.out) == (3, "")


def test_metrics_show_the_series_and_the_deliveries(stage: Any, port: int, wait_until: Wait) -> None:
    cloud, chat, _, daemon = start(stage)
    cloud.say("ERROR out of luck", pod="worker-0")
    wait_until(chat.texts, "the message", alive=daemon)
    delivered = 'job_watchdog_delivery_attempts_total{answer="ok",channel="chat"} 1.0'
    wait_until(lambda: delivered in page(port, "/metrics")[1], "the delivery in the metrics", alive=daemon)
    text = page(port, "/metrics")[1]
    assert 'job_watchdog_series_gpu_ratio{gpu="' in text
    assert "job_watchdog_healthy 1.0" in text
    assert 'job_watchdog_incidents_open{rule="errors",severity="warning"} 1.0' in text


def test_a_taken_port_stops_nobody_and_is_had_once_it_is_free(
    stage: Any, port: int, wait_until: Wait
) -> None:
    with socket.create_server(("127.0.0.1", port)):
        _, _, receiver, daemon = start(stage)
        wait_until(lambda: len(calls(receiver)) >= 3, "the watching goes on", alive=daemon)
        assert daemon.err.count("cannot serve pages, trying again") == 1
    wait_until(lambda: healthy(port), "pages on the port that is free now", alive=daemon)


class Manager:
    """The service manager's end of NOTIFY_SOCKET."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        self._socket.settimeout(30)
        self.lines: list[str] = []

    def next(self) -> str:
        text = self._socket.recv(4096).decode()
        self.lines += text.splitlines()
        return text

    def until(self, line: str) -> None:
        while line not in self.lines:
            self.next()

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def manager(stage: Any) -> Iterator[Manager]:
    path = stage.folder / "notify"
    made = Manager(path)
    stage.env["NOTIFY_SOCKET"] = str(path)
    stage.env["WATCHDOG_USEC"] = "600000"
    yield made
    made.close()


def test_the_service_manager_hears_of_start_progress_and_end(stage: Any, manager: Manager) -> None:
    stage.cloud(), stage.receiver()
    daemon = stage.daemon(stage.rules())
    assert manager.next().startswith("EXTEND_TIMEOUT_USEC=")
    manager.until("READY=1")
    assert any(line.startswith("STATUS=watching; 1 task, 2 rules") for line in manager.lines)
    assert stage.state.slot() > 0
    manager.lines.clear()
    manager.until("WATCHDOG=1")

    daemon.signal(signal.SIGTERM)
    manager.until("STOPPING=1")
    assert daemon.wait() == 0


def listening(pid: int) -> list[str]:
    """The TCP addresses that a process listens on, as the kernel writes them."""
    own = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        try:
            own.add(str(descriptor.readlink()))
        except FileNotFoundError:
            continue
    found = []
    for table in ("tcp", "tcp6"):
        for row in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = row.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in own:
                found.append(fields[1])
    return found


def test_no_port_is_open_unless_it_is_asked_for(stage: Any) -> None:  # I6
    stage.cloud(), stage.receiver()
    assert listening(stage.watching(stage.rules()).pid) == []


def test_the_port_that_is_asked_for_is_the_only_one(stage: Any, port: int, wait_until: Wait) -> None:  # I6
    _, _, _, daemon = start(stage)
    wait_until(lambda: page(port, "/readyz")[0] == 200, "a ready daemon", alive=daemon)
    assert listening(daemon.pid) == [f"0100007F:{port:04X}"]
    request = urllib.request.Request(f"http://127.0.0.1:{port}/healthz", data=b"{}", method="POST")
    with pytest.raises(urllib.error.HTTPError) as refused:
        OPENER.open(request, timeout=10)
    assert refused.value.code == 405
    refused.value.close()
