"""The vendor's example programs, run against the stand-in SDK, beside our rules: same pods, GPUs and values.

The programs are the documented analyses, cut down to their decisions. They run in a process of their own,
since `siflow` must not be importable here.
"""

import asyncio
import json
import sys
import textwrap
from datetime import timedelta

import numpy as np
import pytest

from watchdog.core.conditions.kinds import (
    Aggregate,
    By,
    Changes,
    Comparison,
    Middle,
    Peers,
    Threshold,
)
from watchdog.core.durations import to_ns
from watchdog.core.evaluation import View, evaluate, occurrences
from watchdog.core.health import Standing
from watchdog.core.outcomes import Outcome
from watchdog.core.rules import Rule
from watchdog.core.series import SeriesStore
from watchdog.core.tasks import Status, TaskState
from watchdog.demo.play import Level, Phase, Play, TaskPlay, Xid
from watchdog.demo.siflow_cloud import SDK_PATH, StandInSiflow

PODS = tuple(f"run-worker-{n}" for n in range(6))
START, END = "2026-09-10 11:30:00", "2026-09-10 12:00:00"  # in the cloud's zone; the clock's now is the end

HEAD = """
    import json, sys
    sys.path.insert(0, sys.argv[1])
    from siflow import SiFlow
    client = SiFlow(region=sys.argv[2], cluster="auriga", access_key_id="stand-in-ak",
                    access_key_secret="stand-in-sk", timeout=20, max_retries=0)
    task, pod, start, end = sys.argv[3:]
    times = {"start_time": start, "end_time": end}
"""
SLOW_PODS = """
    resp = client.tasks.all_pods_metric(task_name=task, metric="GpuCoreUsage", **times)
    latest = {s.labels.pod: s.values[-1].value for s in resp.metrics[0].series if s.values}
    avg = sum(latest.values()) / len(latest)
    found = [pod for pod, value in sorted(latest.items(), key=lambda item: item[1]) if value < avg * 0.5]
"""
SUSPICIOUS = """
    resp = client.tasks.node_metrics(pod_name=pod, metrics=["GpuTemp", "XidErrors"], **times)
    found = {"node": resp.node_name, "hot": [], "xid": []}
    for metric in resp.metrics:
        for series in metric.series:
            if not series.values:
                continue
            peak = max(point.value for point in series.values)
            if metric.metric == "GpuTemp" and peak > 85:
                found["hot"].append(series.labels.gpu)
            if metric.metric == "XidErrors" and peak > 0:
                found["xid"].append([series.labels.gpu, series.labels.extra])
"""
PRESSURE = """
    def latest_values(response):
        result = {}
        for metric in response.metrics:
            for series in metric.series:
                if series.values:
                    result[metric.metric] = series.values[-1].value
                    break
        return result
    asked = ["CpuUsageOfRequest", "MemUsageOfRequest"], ["CpuUsageOfNode", "MemUsageOfNode"]
    found = {**latest_values(client.tasks.pod_metrics(pod_name=pod, metrics=asked[0], **times)),
             **latest_values(client.tasks.node_metrics(pod_name=pod, metrics=asked[1], **times))}
"""


async def program(body: str, cloud: StandInSiflow, pod: str = ""):
    """Run one of the programs; returns what it found."""
    text = "\n".join(map(textwrap.dedent, (HEAD, body, "print(json.dumps(found))")))
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-c", text, str(SDK_PATH), cloud.region, "run-x7k2p", pod, START, END),
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0
    return json.loads(output)


class Rules:
    """What our source says, and what rules make of it."""

    def __init__(self, source, task, clock) -> None:
        self.source, self.task, self.clock = source, task, clock
        self.store = SeriesStore()
        self.nodes: dict[str, str] = {}

    async def fetch(self, *metrics: str) -> None:
        now = self.clock.now()
        since = now - timedelta(minutes=30)
        self.nodes = dict((await self.source.status(self.task)).nodes)
        asked = [self.source.metric(self.task, metric, since=since, now=now) for metric in metrics]
        for metric, answer in zip(metrics, await asyncio.gather(*asked), strict=True):
            self.store.keep("siflow", metric, timedelta(hours=1))
            self.store.intake("siflow", metric, answer.series, to_ns(now), tasks={self.task.key})

    def view(self) -> View:
        state = TaskState(task=self.task, status=Status.RUNNING, nodes=self.nodes)
        return View(series=self.store, tasks={self.task.key: state}, standing=lambda _: Standing.GOOD)

    def firing(self, condition) -> list:
        slots = np.array([to_ns(self.clock.now())], np.int64)
        found = evaluate(Rule(name="r", condition=condition), self.view(), slots)
        return [
            (labels, float(value))
            for labels, outcome, value in zip(
                found.labels, found.outcome[:, 0], found.value[:, 0], strict=True
            )
            if outcome == Outcome.TRUE
        ]

    def changed(self, condition) -> list:
        rule = Rule(name="r", condition=condition)
        return list(occurrences(rule, self.view(), to_ns(self.clock.now()), timedelta(minutes=1)))


def played(*levels: Level, xids: tuple[Xid, ...] = ()) -> Play:
    calm = (
        Level(metric="gpu", value=0.9, wobble=0.05),
        Level(metric="vram", value=0.6),
        Level(metric="cpu", value=0.4, wobble=0.1),
        Level(metric="memory", value=0.5, wobble=0.1),
    )
    phases = (Phase(start=-7200.0, pods=PODS, levels=(*calm, *levels), chatter=0),)
    task = TaskPlay(id="task-uuid-1", name="run-x7k2p", gpus_per_pod=4, phases=phases, xids=xids)
    return Play(tasks=(task,), step=60)


def low(value: float, pods: str) -> Level:
    return Level(metric="gpu", value=value, pods=pods, wobble=0.01)


SLOW = {
    "nobody": (),
    "one": (low(0.2, "*-3"),),
    "two": (low(0.2, "*-[13]"),),
    "just above half of the mean": (low(0.46, "*-3"),),
    "just below half of the mean": (low(0.4, "*-3"),),
    "all": (low(0.2, "*"),),
    "one does everything": (low(0.05, "*"), Level(metric="gpu", value=0.95, pods="*-0", wobble=0.01)),
    "idle": (Level(metric="gpu", value=0.0, wobble=0.0),),
}


@pytest.mark.parametrize("levels", SLOW.values(), ids=SLOW.keys())
@pytest.mark.parametrize("detail", ["gpu", "pod"])
async def test_slow_pods_are_those_of_the_vendors_program(levels, detail, build, task, clock) -> None:
    async with StandInSiflow(played(*levels), clock=clock) as cloud:
        theirs = await program(SLOW_PODS, cloud)
        rules = Rules(build(cloud, detail=detail), task, clock)
        await rules.fetch("gpu")
    ours = rules.firing(
        Peers(
            metric="gpu",
            aggregate=Aggregate.LAST,
            window=None,
            above=False,
            ratio=0.5,
            by=By.POD,
            middle=Middle.MEAN,
        )
    )
    assert sorted(labels["pod"] for labels, _ in ours) == sorted(theirs)


HOT = {
    "cool": (),
    "one hot": (Level(metric="GpuTemp", value=91, pods="*-2", gpus=(1,), wobble=0),),
    "two hot, two not quite": (
        Level(metric="GpuTemp", value=84.9, pods="*-2", wobble=0),
        Level(metric="GpuTemp", value=85.1, pods="*-2", gpus=(0, 3), wobble=0),
    ),
    "climbing": (Level(metric="GpuTemp", value=70, to=95, pods="*-2", gpus=(2,), wobble=0),),
}
XIDS = (
    Xid(at=-600.0, pod=PODS[2], gpu=1, code="79"),
    Xid(at=-300.0, pod=PODS[2], gpu=1, code="48", count=2),
    Xid(at=-300.0, pod=PODS[2], gpu=3, code="48"),
    Xid(at=-300.0, pod=PODS[4], gpu=0, code="31"),
)


@pytest.mark.parametrize("levels", HOT.values(), ids=HOT.keys())
async def test_suspicious_gpus_are_those_of_the_vendors_program(levels, build, task, clock) -> None:
    async with StandInSiflow(played(*levels, xids=XIDS), clock=clock) as cloud:
        rules = Rules(build(cloud), task, clock)
        clock.advance(timedelta(minutes=-31))
        await rules.fetch("XidErrors")  # the watching begins before the errors do
        rules.store.mark()
        clock.advance(timedelta(minutes=31))
        await rules.fetch("GpuTemp", "XidErrors")
        theirs = {pod: await program(SUSPICIOUS, cloud, pod) for pod in (PODS[2], PODS[4])}
    peak = Threshold(
        metric="GpuTemp",
        aggregate=Aggregate.MAX,
        window=timedelta(minutes=30),
        comparison=Comparison(above=True, threshold=85),
        by=By.GPU,
    )
    hot = [labels for labels, _ in rules.firing(peak)]
    events = rules.changed(Changes(metric="XidErrors", by=By.GPU))
    codes = [(member.labels, member.labels["xid"]) for event in events for member in event.evidence.members]
    for pod, found in theirs.items():
        assert rules.nodes[pod] == found["node"]
        assert sorted(labels["gpu"] for labels in hot if labels["pod"] == pod) == sorted(found["hot"])
        ours = {(labels["gpu"], code) for labels, code in codes if labels["pod"] == pod}
        assert ours == {(gpu, code) for gpu, code in found["xid"]}
    assert {labels["pod"] for labels in hot} <= {PODS[2]}


@pytest.mark.parametrize("pod", PODS[:3])
async def test_node_pressure_shows_the_same_values(pod, build, task, clock) -> None:
    names = ("CpuUsageOfRequest", "MemUsageOfRequest", "CpuUsageOfNode", "MemUsageOfNode")
    async with StandInSiflow(played(), clock=clock) as cloud:
        theirs = await program(PRESSURE, cloud, pod)
        rules = Rules(build(cloud), task, clock)
        await rules.fetch(*names, "cpu", "memory")
    ours = {}
    for name in names:
        any_value = Threshold(
            metric=name,
            aggregate=Aggregate.LAST,
            window=None,
            comparison=Comparison(above=True, threshold=-1),
            by=By.POD,
        )
        ours[name] = {labels["pod"]: value for labels, value in rules.firing(any_value)}[pod]
    assert ours == pytest.approx(theirs)
    ratio = Threshold(
        metric="cpu",
        aggregate=Aggregate.LAST,
        window=None,
        comparison=Comparison(above=True, threshold=-1),
        by=By.POD,
    )
    values = {labels["pod"]: value for labels, value in rules.firing(ratio)}
    assert values[pod] == pytest.approx(theirs["CpuUsageOfRequest"] / 100)
