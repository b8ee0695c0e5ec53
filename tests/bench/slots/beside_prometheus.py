"""One slot of ours beside one rule cycle of a real Prometheus, by CPU, over the same series in the same run.

    python tests/bench/slots/beside_prometheus.py [GPUS] [CYCLES]

Needs Debian's `prometheus` (with `promtool`). Prometheus gets 70 minutes of history as blocks and scrapes
the same series once a minute from then on, as it does in life; what is measured is a cycle of its four rules
into which no scrape fell. Ours takes in what a poll brings of each series, judges the same four rules,
advances alerts and commits T1 to SQLite.
"""

import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
from fleet import Fleet

CONFIG = """global: {{scrape_interval: 60s, scrape_timeout: 30s, evaluation_interval: 10s}}
rule_files: [rules.yml]
scrape_configs:
- job_name: gpus
  honor_labels: true
  static_configs: [{{targets: ['127.0.0.1:{port}']}}]
  metric_relabel_configs: [{{action: labeldrop, regex: 'instance|job'}}]
"""
RULES = """groups:
- name: bench
  interval: 10s
  rules:
  - {alert: GpuLow,    expr: 'avg_over_time(gpu[1h]) < 0.1', for: 30m}
  - {alert: VramHigh,  expr: 'max_over_time(vram[5m]) > 0.95'}
  - {alert: Absent,    expr: 'absent(gpu{task="t0"})', for: 5m}
  - alert: Straggler
    expr: 'avg by (task,pod) (gpu) < on(task) group_left() 0.5 * avg by (task) (gpu)'
    for: 10m
"""


def series(gpus: int, points: int) -> Iterator[tuple[str, list[float]]]:
    """Yield each series of the fleet: its name with labels, and some points."""
    random = np.random.default_rng(1)
    for metric, odd, strange, usual, noise in (("gpu", 7, 0.03, 0.9, 0.01), ("vram", 9, 0.96, 0.8, 0.03)):
        for n in range(gpus):
            labels = f'{metric}{{task="t{n // 80}",pod="p{n // 8}",gpu="{n % 8}"}}'
            level = strange if n % 100 == odd else usual
            yield labels, (level + random.random(points) * noise).tolist()


def history(path: Path, gpus: int, first: int, minutes: int) -> None:
    """Write the fleet's series as OpenMetrics."""
    times = [str(first + 60 * n) for n in range(minutes)]
    with path.open("w", encoding="utf-8") as file:
        kind = ""
        for labels, values in series(gpus, minutes):
            if labels.split("{")[0] != kind:
                kind = labels.split("{")[0]
                file.write(f"# TYPE {kind} gauge\n")
            file.writelines(f"{labels} {v:.6g} {t}\n" for v, t in zip(values, times, strict=True))
        file.write("# EOF\n")


@contextmanager
def target(gpus: int) -> Iterator[int]:
    """Serve the newest point of each series; yields the port."""
    body = "".join(f"{labels} {value:.6g}\n" for labels, (value,) in series(gpus, 1)).encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/plain; version=0.0.4")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def cpu(pid: int) -> float:
    """CPU seconds of a process, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def prometheus(folder: Path, gpus: int) -> Iterator[tuple[int, str]]:
    """Run one over the history and a target; yields its pid and address."""
    text = folder / "history.om"
    history(text, gpus, int(time.time()) - 70 * 60, 70)
    subprocess.run(
        ["promtool", "tsdb", "create-blocks-from", "openmetrics", text, folder / "data"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    text.unlink()
    (folder / "rules.yml").write_text(RULES, encoding="utf-8")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    command = ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    with target(gpus) as port:
        (folder / "prometheus.yml").write_text(CONFIG.format(port=port), encoding="utf-8")
        process = subprocess.Popen(
            [*command, f"--web.listen-address={address}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield process.pid, address
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)


def evaluated(address: str) -> tuple[str, dict[str, int]]:
    """When the rules were last evaluated, and how many alerts each has; "" = never yet."""
    try:
        with urllib.request.urlopen(f"http://{address}/api/v1/rules", timeout=30) as answer:
            group = json.load(answer)["data"]["groups"][0]
    except (OSError, IndexError):
        return "", {}
    at = group["lastEvaluation"]
    return "" if at.startswith("0001") else at, {one["name"]: len(one["alerts"]) for one in group["rules"]}


def theirs(folder: Path, gpus: int, cycles: int) -> tuple[float, dict[str, int]]:
    """CPU seconds of one rule cycle of Prometheus: the median of some, each between two ends of cycles.

    A scrape falls into one of six, and costs more than the median shows.
    """
    with prometheus(folder, gpus) as (pid, address):
        seen, alerts = "", {}
        taken: list[float] = []
        before = 0.0
        while len(taken) < cycles + 1:
            time.sleep(0.5)
            at, alerts = evaluated(address)
            if at and at != seen:
                now = cpu(pid)
                taken.append(now - before)
                seen, before = at, now
        return statistics.median(taken[1:]), alerts


def ours(folder: Path, gpus: int, points: int, *, columns: bool) -> float:
    """CPU seconds of one slot: the median of thirty."""
    fleet = Fleet(folder, gpus, columns=columns)
    for _ in range(5):
        fleet.slot(points)
    return statistics.median(fleet.slot(points) for _ in range(30))


def main() -> None:
    gpus = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    cycles = int(sys.argv[2]) if len(sys.argv) > 2 else 7
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        peer, alerts = theirs(folder, gpus, cycles)
        print(f"Prometheus, one rule cycle over {gpus} GPUs: {peer * 1e3:.0f} ms CPU  {alerts}")
        for columns in (True, False):
            for points in (1, 6):
                (own := folder / f"{columns}{points}").mkdir()
                took = ours(own, gpus, points, columns=columns)
                form = "as columns" if columns else "series by series"
                print(
                    f"ours, one slot, {points} points of each series, {form}: {took * 1e3:.1f} ms CPU,"
                    f" {peer / took:.0f} times less"
                )


if __name__ == "__main__":
    main()
