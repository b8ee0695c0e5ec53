"""What SiFlow can be asked for: the documented metrics, our names for four of them, and where to ask each.

Pure. The catalogue that the cloud answers with is the authority (it differs per dimension); the table here is
what is known before asking, and how finely a metric can be had. Units here are documented or assumed; the one
that comes with an answer counts.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from watchdog.ports import MetricInfo

PERCENT = "%"
RATIO = "ratio"
CUSTOM_STEP = timedelta(minutes=5)  # the platform samples custom metrics this often


class Dimension(StrEnum):
    """The five dimensions of the catalogue, each with a query of its own, and the two other ways to ask."""

    TASK = "task"
    POD = "pod"
    NODE = "node"
    ALL_PODS = "all_pods"
    ALL_NODES = "all_nodes"
    RESOURCE = "resource"  # the generic query about one pod
    CUSTOM = "custom"  # the last sample, from the list of custom metrics


class Scope(StrEnum):
    """What a metric has a curve for, at its finest."""

    CARD = "card"
    DEVICE = "device"
    NODE = "node"
    POD = "pod"
    ANY = "any"  # nobody said


class Detail(StrEnum):
    """How finely utilisation is asked for."""

    GPU = "gpu"
    POD = "pod"
    TASK = "task"


@dataclass(frozen=True, slots=True)
class Known:
    """A documented metric."""

    scope: Scope
    unit: str = ""


KNOWN: Mapping[str, Known] = {
    **{
        name: Known(Scope.CARD, PERCENT)
        for name in ("GpuCoreUsage", "GpuMemoryUsage", "SmActive", "TensorActive")
    },
    "GpuMemoryUsed": Known(Scope.CARD),
    "GpuTemp": Known(Scope.CARD, "°C"),
    "PowerUsage": Known(Scope.CARD, "W"),
    **{name: Known(Scope.CARD) for name in ("XidErrors", "EccSbe", "EccDbe")},
    **{
        f"{what}Straggler": Known(Scope.ANY)
        for what in ("GpuUtil", "GpuMemory", "NvlinkTraffic", "PcieTraffic", "RdmaTraffic")
    },
    "RdmaHealth": Known(Scope.DEVICE),
    **{name: Known(Scope.DEVICE, "Bytes/s") for name in ("RdmaTxBytes", "RdmaRxBytes")},
    **{name: Known(Scope.POD, PERCENT) for name in ("CpuUsageOfRequest", "MemUsageOfRequest")},
    **{name: Known(Scope.NODE, PERCENT) for name in ("CpuUsageOfNode", "MemUsageOfNode")},
    **{
        name: Known(Scope.POD, "Bytes/s")
        for name in ("NetworkTxBytes", "NetworkRxBytes", "GpfsReadBytes", "GpfsWriteBytes")
    },
    "GpfsOperations": Known(Scope.POD),
    **{name: Known(Scope.NODE, "Bytes/s") for name in ("DiskReadBytes", "DiskWriteBytes")},
    "DiskIoUtil": Known(Scope.NODE, PERCENT),
}
OUR_NAMES: Mapping[str, str] = {
    "gpu": "GpuCoreUsage",
    "vram": "GpuMemoryUsage",
    "cpu": "CpuUsageOfRequest",
    "memory": "MemUsageOfRequest",
}
COUNTED = frozenset(
    {"XidErrors", "EccSbe", "EccDbe"}
)  # a series that appears late had counted nothing before

_PER = {
    Scope.CARD: ("pod", "node", "gpu"),
    Scope.DEVICE: ("pod", "node", "device"),
    Scope.NODE: ("pod", "node"),
    Scope.POD: ("pod",),
    Scope.ANY: ("pod",),
}
_BY_ONE_POD = (Dimension.ALL_PODS, Dimension.POD, Dimension.RESOURCE)
_BY_CARD = (Dimension.NODE, Dimension.ALL_PODS, Dimension.POD, Dimension.ALL_NODES, Dimension.TASK)
_FINE: Mapping[Scope, Sequence[Dimension]] = {
    Scope.CARD: (*_BY_CARD, Dimension.RESOURCE),
    Scope.DEVICE: (*_BY_CARD, Dimension.RESOURCE),
    Scope.NODE: (Dimension.NODE, Dimension.ALL_NODES, Dimension.POD, Dimension.ALL_PODS, Dimension.TASK),
    Scope.POD: (*_BY_ONE_POD, Dimension.TASK, Dimension.NODE, Dimension.ALL_NODES),
    Scope.ANY: (Dimension.ALL_PODS, Dimension.NODE, Dimension.POD, Dimension.ALL_NODES, Dimension.TASK),
}
_COARSE: Mapping[Scope, Sequence[Dimension]] = {
    Scope.NODE: (Dimension.ALL_NODES, Dimension.NODE, Dimension.TASK, *_BY_ONE_POD),
    Scope.DEVICE: (Dimension.ALL_PODS, Dimension.ALL_NODES, Dimension.NODE, Dimension.POD, Dimension.TASK),
}
_POD_FIRST = (*_BY_ONE_POD, Dimension.ALL_NODES, Dimension.NODE, Dimension.TASK)

METHOD_OF: Mapping[Dimension, str] = {
    Dimension.TASK: "tasks.metrics",
    Dimension.POD: "tasks.pod_metrics",
    Dimension.NODE: "tasks.node_metrics",
    Dimension.ALL_PODS: "tasks.all_pods_metric",
    Dimension.ALL_NODES: "tasks.all_nodes_metric",
    Dimension.RESOURCE: "metrics.query",
    Dimension.CUSTOM: "tasks.metrics_catalog_full",
}
LISTED = (Dimension.TASK, Dimension.POD, Dimension.NODE, Dimension.ALL_PODS, Dimension.ALL_NODES)


def native(metric: str) -> str:
    """Return the cloud's name of a metric."""
    return OUR_NAMES.get(metric, metric)


def unit_text(unit: str) -> str:
    """Return a unit in one spelling; the vendor's pages write `%` and `percent`."""
    word = unit.strip()
    return PERCENT if word.lower() in (PERCENT, "percent", "percentage", "pct") else word


def documented() -> tuple[MetricInfo, ...]:
    """Return the metrics known without asking: our four ratios, then the documented names."""
    ours = tuple(
        MetricInfo(name=ours, unit=RATIO, per=_PER[KNOWN[name].scope]) for ours, name in OUR_NAMES.items()
    )
    return ours + tuple(
        MetricInfo(name=name, unit=known.unit, per=_PER[known.scope]) for name, known in KNOWN.items()
    )


def order(metric: str, detail: Detail) -> Sequence[Dimension]:
    """Return where to ask for a metric, the best place first."""
    scope = KNOWN[metric].scope if metric in KNOWN else Scope.ANY
    if detail is Detail.GPU:
        return _FINE[scope]
    coarse = _COARSE.get(scope, _POD_FIRST)
    if detail is Detail.POD:
        return coarse
    return (Dimension.TASK, *(place for place in coarse if place is not Dimension.TASK))


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What this cloud and this SDK offer. features: methods. listed: dimension → metric → unit, as answered.

    A dimension that is not in `listed` could not be asked: then anything may be in it.
    """

    features: Collection[str] = ()
    listed: Mapping[Dimension, Mapping[str, str]] = field(default_factory=dict)

    def place(self, metric: str, detail: Detail) -> Dimension | None:
        """Return where to ask for a built-in metric; None if it is nowhere."""
        assumed = metric in KNOWN or not self.listed
        for dimension in order(metric, detail):
            if METHOD_OF[dimension] not in self.features:
                continue
            names = self.listed.get(dimension)
            if dimension is Dimension.RESOURCE:
                offered = assumed or self.has(metric)
            else:
                offered = assumed if names is None else metric in names
            if offered:
                return dimension
        return None

    def has(self, metric: str) -> bool:
        """Whether the cloud listed the metric anywhere."""
        return any(metric in names for names in self.listed.values())

    def unit(self, metric: str) -> str:
        """Return the unit as listed, else as documented."""
        told = next((names[metric] for names in self.listed.values() if names.get(metric)), "")
        return unit_text(told) or (KNOWN[metric].unit if metric in KNOWN else "")
