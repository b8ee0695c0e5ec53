"""Which kinds of source there are: one line each, with options and how to build one.

Building imports the adapter; reading this table imports no HTTP library.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from watchdog.core.ruleset import SourceSpec
from watchdog.ports import Clock, MetricInfo, Source
from watchdog.sources.alaya_options import ALAYA_METRICS, ALAYA_OPTIONS
from watchdog.sources.options import SourceOption
from watchdog.sources.siflow_options import SIFLOW_METRICS, SIFLOW_OPTIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceKind:
    """One kind. `build` raises ValueError, naming the option, if the spec cannot be used."""

    name: str
    build: Callable[[SourceSpec, Clock], Source]
    options: tuple[SourceOption, ...]
    metrics: tuple[MetricInfo, ...] = ()  # () = only its answers tell
    all_metrics: bool = True  # `metrics` are all there are


def _alaya(spec: SourceSpec, clock: Clock) -> Source:
    from watchdog.sources.alaya import AlayaSource

    return AlayaSource(spec, clock)


def _siflow(spec: SourceSpec, clock: Clock) -> Source:
    from watchdog.sources.siflow import SiflowSource

    return SiflowSource(spec, clock)


_KINDS = (
    SourceKind(name="alaya", build=_alaya, options=ALAYA_OPTIONS, metrics=ALAYA_METRICS),
    SourceKind(
        name="siflow", build=_siflow, options=SIFLOW_OPTIONS, metrics=SIFLOW_METRICS, all_metrics=False
    ),
)
SOURCE_KINDS: Mapping[str, SourceKind] = {kind.name: kind for kind in _KINDS}
