"""The curves of SiFlow's metrics for a played task: native names and units, derived from the one story.

A pod's cards, devices and node follow its four ratios unless a level of the play says otherwise. Pure; knows
no query and no form of answer.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from watchdog.demo.play import DEVICES, chance
from watchdog.demo.stage import StagedTask

GIB = 1024**3
CARD_MEMORY = 80 * GIB
NOISE = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Native:
    """A metric: unit, how a pod's curves become one, the ratio it follows and how.

    per: card, device, node or pod. follows: gpu, vram, cpu or memory.
    """

    name: str
    unit: str
    per: str
    follows: str
    made: Callable[[float], float]
    mean: bool = True
    chinese: str = ""


def _times(factor: float, base: float = 0.0) -> Callable[[float], float]:
    return lambda ratio: base + factor * ratio


NATIVES: Mapping[str, Native] = {
    one.name: one
    for one in (
        Native(
            name="GpuCoreUsage",
            unit="percent",
            per="card",
            follows="gpu",
            made=_times(100),
            chinese="GPU核心使用率",
        ),
        Native(
            name="GpuMemoryUsage",
            unit="percent",
            per="card",
            follows="vram",
            made=_times(100),
            chinese="显存使用率",
        ),
        Native(name="GpuMemoryUsed", unit="Bytes", per="card", follows="vram", made=_times(CARD_MEMORY)),
        Native(name="SmActive", unit="percent", per="card", follows="gpu", made=_times(88)),
        Native(name="TensorActive", unit="percent", per="card", follows="gpu", made=_times(46)),
        Native(name="GpuTemp", unit="°C", per="card", follows="gpu", made=_times(34, 38), chinese="GPU温度"),
        Native(name="PowerUsage", unit="W", per="card", follows="gpu", made=_times(560, 95), mean=False),
        Native(name="XidErrors", unit="count", per="card", follows="", made=_times(0), mean=False),
        Native(name="EccSbe", unit="count", per="card", follows="gpu", made=_times(0), mean=False),
        Native(name="EccDbe", unit="count", per="card", follows="gpu", made=_times(0), mean=False),
        Native(name="GpuUtilStraggler", unit="", per="pod", follows="gpu", made=_times(0)),
        Native(name="RdmaHealth", unit="", per="device", follows="gpu", made=_times(0, 1), mean=False),
        Native(
            name="RdmaTxBytes", unit="Bytes/s", per="device", follows="gpu", made=_times(21e9), mean=False
        ),
        Native(
            name="RdmaRxBytes", unit="Bytes/s", per="device", follows="gpu", made=_times(21e9), mean=False
        ),
        Native(name="CpuUsageOfRequest", unit="percent", per="pod", follows="cpu", made=_times(100)),
        Native(name="MemUsageOfRequest", unit="percent", per="pod", follows="memory", made=_times(100)),
        Native(name="CpuUsageOfNode", unit="percent", per="node", follows="cpu", made=_times(86, 4)),
        Native(name="MemUsageOfNode", unit="percent", per="node", follows="memory", made=_times(92, 3)),
        Native(name="NetworkTxBytes", unit="Bytes/s", per="pod", follows="cpu", made=_times(3e7), mean=False),
        Native(name="NetworkRxBytes", unit="Bytes/s", per="pod", follows="cpu", made=_times(5e7), mean=False),
        Native(name="GpfsReadBytes", unit="Bytes/s", per="pod", follows="cpu", made=_times(8e8), mean=False),
        Native(name="DiskIoUtil", unit="percent", per="node", follows="cpu", made=_times(40)),
    )
}
IN_DIMENSION: Mapping[str, frozenset[str]] = {
    "task": frozenset(n for n, one in NATIVES.items() if one.per in ("card", "pod")) - {"XidErrors"},
    "pod": frozenset(n for n, one in NATIVES.items() if one.per in ("card", "pod")) - {"XidErrors", "EccSbe"},
    "node": frozenset(n for n, one in NATIVES.items() if one.per != "pod"),
    "all_pods": frozenset(n for n, one in NATIVES.items() if one.per in ("card", "pod")) - {"XidErrors"},
    "all_nodes": frozenset(n for n, one in NATIVES.items() if one.per != "pod") - {"XidErrors"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One curve at its finest: of a card, a device, a node or a pod."""

    pod: str
    node: str
    gpu: str | None = None
    device: str | None = None
    extra: str | None = None
    times: Sequence[int]
    values: Sequence[float]


def curves(
    task: StagedTask, metric: str, pods: Sequence[str], window: tuple[datetime, datetime], now: datetime
) -> list[Curve]:
    """Return the curves of a metric for some pods, at their finest."""
    native = NATIVES.get(metric)
    if native is None:
        return []
    if metric == "XidErrors":
        return list(_xids(task, pods, window, now))
    if native.per == "pod" and metric.endswith("Straggler"):
        return list(_stragglers(task, native, pods, window, now))
    return list(_derived(task, native, pods, window, now))


def node_of(task: StagedTask, pod: str) -> str:
    """The node a pod runs on."""
    pods = task.play.pods()
    return task.play.nodes.get(pod, f"node-{pods.index(pod):02d}" if pod in pods else "")


def custom(task: StagedTask, now: datetime) -> list[dict[str, object]]:
    """The metrics that the task itself exposes, with their last samples, up to five minutes old."""
    phase = task.phase(now)
    if not phase.pods:
        return []
    sampled = int(now.timestamp()) // 300 * 300
    loss = 1.6 + 0.05 * chance(task.play.id, sampled)
    sample = {"sample_time": sampled, "labels": {"pod_name": phase.pods[0], "phase": "train"}}
    return [
        {"metric": "train_loss", "sample_value": round(loss, 4), **sample},
        {"metric": "requests_total", "sample_value": str(sampled % 100_000), **sample},
    ]


def merged(parts: Sequence[Curve], *, mean: bool) -> tuple[list[int], list[float]]:
    """Return one curve of several: their mean, or sum, at each time."""
    found: dict[int, list[float]] = {}
    for part in parts:
        for time, value in zip(part.times, part.values, strict=True):
            found.setdefault(time, []).append(value)
    times = sorted(found)
    return times, [sum(found[time]) / (len(found[time]) if mean else 1) for time in times]


def _derived(
    task: StagedTask, native: Native, pods: Sequence[str], window: tuple[datetime, datetime], now: datetime
) -> Iterator[Curve]:
    start, end = window
    own = task.series(native.name, start, end, now)  # where a level of the play says otherwise
    for (pod, gpu), (times, ratios) in task.series(native.follows, start, end, now).items():
        if pod not in pods or (native.per in ("device", "node") and gpu not in (None, 0)):
            continue
        for number in range(DEVICES) if native.per == "device" else (gpu,):
            told = dict(zip(*own.get((pod, number), ((), ())), strict=True))
            values = [
                told.get(t, native.made(r) * _noise(native, pod, number, t))
                for t, r in zip(times, ratios, strict=True)
            ]
            yield Curve(
                pod=pod,
                node=node_of(task, pod),
                gpu=str(gpu) if native.per == "card" else None,
                device=f"mlx5_{number}" if native.per == "device" else None,
                times=times,
                values=values,
            )


def _noise(native: Native, pod: str, number: int | None, time: int) -> float:
    """A little that differs; the ratios themselves are shown as they are."""
    if native.made(0.0) == native.made(1.0) or native.unit == "percent":
        return 1.0
    return 1 + NOISE * (2 * chance(native.name, pod, number, time) - 1)


def _xids(
    task: StagedTask, pods: Sequence[str], window: tuple[datetime, datetime], now: datetime
) -> Iterator[Curve]:
    """A curve at 0 for every card, and one for each code that was reported, from then on."""
    start, end = window
    for (pod, gpu), (times, _) in task.series("gpu", start, end, now).items():
        if pod not in pods:
            continue
        place = {"pod": pod, "node": node_of(task, pod), "gpu": str(gpu)}
        yield Curve(**place, times=times, values=[0.0] * len(times))
        codes = {xid.code for xid in task.play.xids if (xid.pod, xid.gpu) == (pod, gpu)}
        for code in sorted(codes):
            counts = [(t, _count(task, pod, gpu, code, t)) for t in times]
            shown = [(t, count) for t, count in counts if count]
            if shown:
                seen, values = zip(*shown, strict=True)
                yield Curve(**place, extra=code, times=seen, values=values)


def _count(task: StagedTask, pod: str, gpu: int | None, code: str, time: int) -> float:
    """How often a code was reported until a time."""
    own = (xid for xid in task.play.xids if (xid.pod, xid.gpu, xid.code) == (pod, gpu, code))
    return float(sum(xid.count for xid in own if task.time_ns(xid.at) <= time * 1_000_000_000))


def _stragglers(
    task: StagedTask, native: Native, pods: Sequence[str], window: tuple[datetime, datetime], now: datetime
) -> Iterator[Curve]:
    """1 for a pod that does less than half of the mean (what the real values mean is not documented)."""
    own: dict[str, list[Curve]] = {}
    for curve in _derived(task, NATIVES["GpuCoreUsage"], pods, window, now):
        own.setdefault(curve.pod, []).append(curve)
    means = {pod: dict(zip(*merged(parts, mean=True), strict=True)) for pod, parts in own.items()}
    for pod, values in means.items():
        slow = []
        for time, value in values.items():
            others = [other[time] for other in means.values() if time in other]
            slow.append(float(value < 0.5 * sum(others) / len(others)))
        yield Curve(pod=pod, node=node_of(task, pod), times=list(values), values=slow)
