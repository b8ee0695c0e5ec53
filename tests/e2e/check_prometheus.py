"""Debian's Prometheus scrapes the daemon. Run by name: it needs the package `prometheus` (see .ci/run)."""

import json
import shutil
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from typing import Any

Wait = Callable[..., Any]
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))

BESIDE = """
channels:
  chat: { url: "${CHAT}" }
rules:
  - { name: gpu-low, metric: gpu, below: 10%, for: 1s }
  - { name: errors, log: { match: '\\bERROR\\b' } }
http: { listen: "127.0.0.1:${PORT}" }
"""
SCRAPE = """
global: { scrape_interval: 1s }
scrape_configs:
  - job_name: watchdog
    static_configs: [ { targets: [ "127.0.0.1:%s" ] } ]
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def answer(url: str) -> str:
    try:
        with OPENER.open(url, timeout=10) as found:
            return str(found.read().decode())
    except (OSError, urllib.error.HTTPError):
        return ""


def ask(prometheus: str, path: str, **params: str) -> Any:
    text = answer(f"{prometheus}/api/v1/{path}?{urllib.parse.urlencode(params)}")
    return json.loads(text)["data"] if text else {}


def results(prometheus: str, query: str) -> list[Any]:
    found: list[Any] = ask(prometheus, "query", query=query).get("result", [])
    return found


def test_prometheus_takes_every_sample_with_the_sources_own_times(stage: Any, wait_until: Wait) -> None:
    assert shutil.which("prometheus"), "apt-get install --no-install-recommends prometheus"
    port, own = free_port(), free_port()
    stage.env["PORT"] = str(port)
    cloud, _ = stage.cloud(), stage.receiver()
    daemon = stage.watching(stage.rules(BESIDE))
    cloud.say("ERROR one", pod="worker-0")
    page = f"http://127.0.0.1:{port}/metrics"
    wait_until(lambda: "delivery_attempts_total{" in answer(page), "a delivery in the metrics", alive=daemon)

    text = answer(page)
    linted = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )
    assert (linted.returncode, linted.stdout, linted.stderr) == (0, "", "")

    config = stage.folder / "prometheus.yaml"
    config.write_text(SCRAPE % port)
    prometheus = stage.start(
        "prometheus",
        shutil.which("prometheus"),
        f"--config.file={config}",
        f"--storage.tsdb.path={stage.folder / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{own}",
    )
    url = f"http://127.0.0.1:{own}"
    wait_until(lambda: results(url, "job_watchdog_ready"), "a first sample", alive=prometheus)
    wait_until(lambda: results(url, "count(job_watchdog_series_gpu_ratio)"), "the series", alive=prometheus)

    targets = ask(url, "targets")["activeTargets"]
    assert [(target["health"], target["lastError"]) for target in targets] == [("up", "")]
    exported = text.count("job_watchdog_series_gpu_ratio{")
    assert int(results(url, "count(job_watchdog_series_gpu_ratio)")[0]["value"][1]) == exported > 0
    point = results(url, "job_watchdog_series_gpu_ratio[5m]")[0]
    assert {"source", "task", "task_name", "pod", "gpu"} <= set(point["metric"])
    stamps = {
        int(line.rsplit(" ", 1)[1])
        for line in (text + answer(page)).splitlines()
        if "_series_gpu" in line and line[0] != "#"
    }
    stored = {round(float(at) * 1000) for at, _ in point["values"]}
    assert stored & stamps
    assert results(url, 'job_watchdog_delivery_attempts_total{channel="chat",answer="ok"}')
    dropped = results(url, "prometheus_target_scrapes_sample_duplicate_timestamp_total")
    assert all(float(row["value"][1]) == 0 for row in dropped)
    assert "out-of-order" not in prometheus.err.lower()
    assert "Error on ingesting" not in prometheus.err, prometheus.err
