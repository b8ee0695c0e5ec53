"""The whole daemon with SiFlow: a worker that hangs or is killed, and one rule file on both clouds."""

import asyncio
import os
import signal
import sys
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from watchdog.app import build_engine
from watchdog.building import Outside, build_outside
from watchdog.cli.loading import knowledge
from watchdog.clock import FastClock
from watchdog.config.build import loads
from watchdog.core.notifications import Answer, ChannelLimits, DeliveryResult
from watchdog.demo.cloud import StandInCloud
from watchdog.demo.play import Level, Line, Phase, Play, TaskPlay, Xid
from watchdog.demo.siflow_cloud import SDK_PATH, StandInSiflow
from watchdog.store.memory import MemoryState
from watchdog.threads import StoreThread

SPEED = 60.0  # a minute of the daemon's is a second
SOURCES = """
sources:
  alaya: { kind: alaya, base_url: "${ALAYA_URL}", rate: 1000 }
  siflow:
    kind: siflow
    python: "${PYTHON}"
    sdk_path: "${SDK}"
    region: "${REGION}"
    timeout: "${TIMEOUT}"
    rate: 1000
watch:
  - { source: alaya, name: "run-*" }
  - { source: siflow, name: "run-*" }
channels: { chat: { url: "console://" } }
"""


# What a busy machine makes the watchdog say of itself; no matter of these tests.
BUSY = ("interval", "was not watching", "the clock jumped")


@dataclass
class Heard:
    """A channel that remembers."""

    name: str = "chat"
    limits: ChannelLimits = field(default_factory=lambda: ChannelLimits(body=100_000))
    messages: list[tuple[str, str, str]] = field(default_factory=list)  # kind, title, body

    async def send(self, message) -> DeliveryResult:
        if not any(words in message.title for words in BUSY):
            self.messages.append((str(message.kind), message.title, message.body))
        return DeliveryResult(answer=Answer.OK)

    async def close(self) -> None:
        pass

    def about(self, *words: str) -> list[str]:
        return [kind for kind, title, _ in self.messages if all(word in title for word in words)]


@dataclass
class Stage:
    """Both clouds, and an engine over them."""

    alaya: StandInCloud
    siflow: StandInSiflow
    engine: object
    heard: Heard
    thread: StoreThread
    source: object

    async def until(self, what, *, seconds: float = 60.0) -> None:
        """Wait (real time) for something to become true."""
        for _ in range(round(seconds / 0.05)):
            if what():
                return
            await asyncio.sleep(0.05)
        raise AssertionError(f"did not happen: {what}, heard: {self.heard.messages}")


def build(rules: str, alaya, siflow, clock, *, timeout: str) -> Stage:
    env = {
        "ALAYA_URL": alaya.url,
        "PYTHON": sys.executable,
        "SDK": str(SDK_PATH),
        "REGION": siflow.region,
        "TIMEOUT": timeout,
        "JOB_WATCHDOG_ALAYA_API_KEY": "stand-in-api-key",
        "JOB_WATCHDOG_SIFLOW_ACCESS_KEY_ID": "stand-in-ak",
        "JOB_WATCHDOG_SIFLOW_ACCESS_KEY_SECRET": "stand-in-sk",
    }
    ruleset = loads(SOURCES + rules, file="rules.yaml", env=env, knowledge=knowledge()).ruleset
    built = build_outside(ruleset, clock)
    heard = Heard()
    thread = StoreThread()
    outside = Outside(sources=built.sources, notifiers={"chat": heard})
    engine = build_engine(ruleset, outside, MemoryState().open(), clock, thread)
    return Stage(alaya, siflow, engine, heard, thread, built.sources["siflow"])


def idling() -> Play:
    """One task that idles, and is healthy otherwise."""
    levels = (
        Level(metric="gpu", value=0.05, wobble=0.01),
        Level(metric="vram", value=0.5),
        Level(metric="cpu", value=0.3),
        Level(metric="memory", value=0.4),
    )
    pods = ("run-a-master-0", "run-a-worker-0")
    task = TaskPlay(
        id="1234567890",
        name="run-a",
        gpus_per_pod=2,
        phases=(Phase(start=-7200.0, pods=pods, levels=levels, chatter=1 / 30),),
    )
    return Play(tasks=(task,), step=60)


STEADY = """
rules:
  - { name: idle, metric: gpu, avg_over: 5m, below: 10% }
  - { name: silence, silent: { log: any }, for: 10m }
  - { name: errors, log: { match: ERROR } }
  - { name: gone, status: { enters: [vanished, failed] } }
"""


@pytest.fixture
async def stage():
    clock = FastClock(SPEED)
    async with StandInCloud(idling(), clock=clock) as alaya, StandInSiflow(idling(), clock=clock) as siflow:
        stage = build(STEADY, alaya, siflow, clock, timeout="200ms")
        life = asyncio.ensure_future(stage.engine.run())
        try:
            await stage.until(lambda: stage.heard.about("idle") == ["first"] * 2)
            yield stage
        finally:
            life.cancel()
            await asyncio.gather(life, return_exceptions=True)
            await stage.engine.stop()
            stage.thread.close()
            assert stage.source.worker_pids == ()


async def killing(stage: Stage) -> None:
    """Kill the SDK's process again and again, while it is asked."""
    while True:
        for pid in stage.source.worker_pids:
            os.kill(pid, signal.SIGKILL)
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("how", ["hangs", "is killed"])
async def test_a_worker_that_fails_is_one_blind_source_and_delays_nobody(stage, how) -> None:
    heard, asked = stage.heard, stage.alaya.counts()["metrics"]
    began = asyncio.get_running_loop().time()
    killer = None
    if how == "hangs":
        stage.siflow.faults.add("deaf")
    else:
        killer = asyncio.ensure_future(killing(stage))
    await stage.until(lambda: heard.about("watchdog", "siflow"))
    took = asyncio.get_running_loop().time() - began
    # One question a poll, and a poll is a second here: the other source kept its pace (a busy machine's).
    assert stage.alaya.counts()["metrics"] - asked >= 0.3 * took - 1
    await asyncio.sleep(3)

    assert heard.about("watchdog") == ["first"]
    (blind,) = [body for kind, title, body in heard.messages if "watchdog" in title]
    # On a busy machine, a process that is killed again and again may not even begin within the time-out.
    why = ("no answer within",) if how == "hangs" else ("signal 9", "no answer within")
    assert any(words in blind for words in why), blind
    assert heard.about("idle") == ["first"] * 2  # frozen: neither recovered nor told again

    if killer is not None:
        killer.cancel()
        await asyncio.gather(killer, return_exceptions=True)
    stage.siflow.faults.clear()
    stage.siflow.say("[rank0] ERROR after it came back")
    await stage.until(lambda: "closed" in heard.about("watchdog", "siflow"))
    await stage.until(lambda: heard.about("errors"))
    await asyncio.sleep(3)
    told = Counter((kind, title.split(" · ")[1]) for kind, title, _ in heard.messages)
    assert told == {
        ("first", "idle"): 2,
        ("first", "errors"): 1,
        ("first", "watchdog"): 1,
        ("closed", "watchdog"): 1,
    }


class StepClock:
    """The daemon's time moves when a test says so; waiting takes real time, but not much of it."""

    def __init__(self) -> None:
        self.start = datetime(2026, 9, 10, 4, 0, tzinfo=UTC)
        self.passed = timedelta()

    def now(self) -> datetime:
        return self.start + self.passed

    def monotonic(self) -> timedelta:
        return self.passed

    async def sleep(self, duration: timedelta) -> None:
        await asyncio.sleep(max(0.0, duration.total_seconds()))


BOTH = """
rules:
  - { name: idle, metric: gpu, avg_over: 10m, below: 20%, for: 3m }
  - { name: straggler, metric: gpu, avg_over: 5m, peers: { by: pod, below: 50% } }
  - { name: vram-full, metric: vram, max_over: 5m, above: 95%, clear_below: 90%, by: gpu }
  - { name: host-memory, metric: memory, above: 90%, by: pod }
  - { name: pod-gone, absent: { metric: gpu, by: pod }, for: 3m }
  - { name: errors, log: { match: ERROR } }
  - { name: state, status: { enters: [failed, succeeded, canceled, paused] } }
  - { name: xid, changes: { metric: XidErrors, by: gpu } }
  - { name: hot, metric: GpuTemp, above: 85, by: gpu }
"""
PODS = tuple(f"run-b-{role}" for role in ("master-0", "worker-0", "worker-1", "worker-2"))
MINUTE = 60.0


def troubled(name: str) -> Play:
    """A run that meets everything that both clouds can tell, one after another."""
    calm = (
        Level(metric="gpu", value=0.9),
        Level(metric="vram", value=0.6),
        Level(metric="cpu", value=0.4),
        Level(metric="memory", value=0.5),
    )
    slow = (
        Level(metric="gpu", value=0.25, pods="*-worker-1"),
        Level(metric="GpuTemp", value=93, gpus=(1,), wobble=0),
    )
    full = Level(metric="vram", value=0.98, pods="*-worker-0", wobble=0.005)
    memory = Level(metric="memory", value=0.97, pods="*-master-0", wobble=0.005)
    idle = Level(metric="gpu", value=0.02, wobble=0.01)
    phases = (
        Phase(start=-7200.0, pods=PODS, levels=calm, chatter=1 / 30),
        Phase(start=10 * MINUTE, pods=PODS, levels=(*calm, *slow), chatter=1 / 30),
        Phase(start=25 * MINUTE, pods=PODS, levels=(*calm, full, memory), chatter=1 / 30),
        Phase(start=40 * MINUTE, pods=PODS[:3], levels=calm, chatter=1 / 30),
        Phase(start=55 * MINUTE, pods=PODS[:3], levels=(*calm, idle), chatter=1 / 30),
        Phase(start=90 * MINUTE, status="Failed", reason="PodFailed", chatter=0),
    )
    line = Line(at=50 * MINUTE, pod=PODS[0], text="RuntimeError: ERROR in the loader")
    task = TaskPlay(
        id="1234567890",
        name=name,
        gpus_per_pod=2,
        phases=phases,
        lines=(line,),
        xids=(Xid(at=20 * MINUTE, pod=PODS[2], gpu=1, code="79"),),
    )
    return Play(tasks=(task,), step=60)


async def test_one_rule_file_unchanged_on_both_clouds_at_once() -> None:
    clock = StepClock()
    async with (
        StandInCloud(troubled("run-alaya"), clock=clock) as alaya,
        StandInSiflow(troubled("run-siflow"), clock=clock) as siflow,
    ):
        stage = build(BOTH, alaya, siflow, clock, timeout="20s")
        relay = asyncio.ensure_future(stage.engine.relay.run("chat", stage.heard))
        try:
            await stage.engine.resume()
            for _ in range(100):
                clock.passed += timedelta(minutes=1)
                await stage.engine.slot(clock.passed)
            await stage.until(lambda: not stage.engine.relay.rows, seconds=10)
        finally:
            relay.cancel()
            await asyncio.gather(relay, return_exceptions=True)
            await stage.engine.stop()
            stage.thread.close()
    told: dict[str, list[tuple[str, str]]] = {"run-alaya": [], "run-siflow": []}
    for kind, title, _ in stage.heard.messages:
        _, rule, task = title.split(" · ")
        if rule != "watchdog":
            told[task.partition(":")[0].partition(" ")[0]].append((kind, rule))
    own = [("first", "hot"), ("first", "xid"), ("closed", "hot")]
    assert [one for one in told["run-siflow"] if one in own] == own
    assert [one for one in told["run-siflow"] if one not in own] == told["run-alaya"]
    assert told["run-alaya"] == [
        ("first", "straggler"),
        ("first", "vram-full"),
        ("first", "host-memory"),
        ("closed", "straggler"),
        ("closed", "host-memory"),
        ("first", "pod-gone"),
        ("closed", "vram-full"),
        ("first", "errors"),
        ("first", "idle"),
        ("closed", "pod-gone"),
        ("closed", "idle"),
        ("first", "state"),
    ]
    assert [title for _, title, _ in stage.heard.messages if "watchdog" in title] == []
