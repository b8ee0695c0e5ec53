"""A play: what the stand-in cloud's tasks do over time, as data.

Seconds count from the play's start and may be negative (history from before the curtain). Pure and
deterministic: the same play gives the same points and lines. Knows no clock and no API.
"""

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

RATIOS = ("gpu", "vram", "cpu", "memory")  # what every cloud has; all else is a native metric of some
PER_CARD = frozenset({"gpu", "vram", "GpuTemp"})
PER_DEVICE = frozenset({"RdmaHealth"})
DEVICES = 4  # network devices of a node
CHATTER = "[INFO] step {step} loss {loss:.4f} tokens/s {speed} grad_norm 0.{grad:03d}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """What one metric shows during a phase: `value`, or a straight line from there to `to`.

    A ratio stays within 0 to 1; a native metric has its own unit, and is derived where no level tells.
    pods: a glob. gpus: card numbers, empty = all. wobble: half the width of the noise.
    """

    metric: str
    value: float
    to: float | None = None
    pods: str = "*"
    gpus: tuple[int, ...] = ()
    wobble: float = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """From `start` on, until the next phase: the task's status, its pods, their levels and chatter.

    chatter: training lines per second and pod; 0 = the log is silent. Of several levels for one
    series the last one counts; a series without a level has no points. retries: how often the platform
    started the task anew until now. held: the command has ended, the pods are kept for debugging.
    """

    start: float
    status: str = "Running"
    reason: str = ""
    pods: tuple[str, ...] = ()
    levels: tuple[Level, ...] = ()
    chatter: float = 1.0
    mute: str = ""  # a glob of pods that print nothing
    retries: int = 0
    held: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """One log row: its second, pod and text; `late` seconds pass before it can be read."""

    at: float
    pod: str
    text: str
    late: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Xid:
    """The driver reports an error of a card, `count` times by then; shown for as long as the pod lives."""

    at: float
    pod: str
    gpu: int
    code: str
    count: int = 1


# (metric, pod, gpu) and a second → ratio, or None for no point
SeriesFunction = Callable[[str, str, int | None, float], float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPlay:
    """One task's part. With `function`, values come from there and levels are not used."""

    id: str
    name: str
    namespace: str = "usr-abcdefgh"
    phases: tuple[Phase, ...] = ()
    lines: tuple[Line, ...] = ()
    xids: tuple[Xid, ...] = ()
    gpus_per_pod: int = 8
    gpu_name: str = "NVIDIA-H800A-NV-80G"
    function: SeriesFunction | None = None
    nodes: Mapping[str, str] = field(default_factory=dict)
    listed: bool = True

    def phase(self, second: float) -> Phase:
        """The phase of a second; before the first one, nothing exists."""
        current = Phase(start=float("-inf"), status="Queued", chatter=0.0)
        for phase in self.phases:
            if phase.start <= second:
                current = phase
        return current

    def phase_end(self, phase: Phase) -> float:
        """When the next phase begins."""
        return min((other.start for other in self.phases if other.start > phase.start), default=float("inf"))

    def pods(self) -> tuple[str, ...]:
        """Every pod of the whole play, in order of appearance."""
        return tuple(dict.fromkeys(pod for phase in self.phases for pod in phase.pods))

    def value(self, metric: str, pod: str, gpu: int | None, second: float) -> float | None:
        """What a series shows at a second; None for no point."""
        phase = self.phase(second)
        if pod not in phase.pods:
            return None
        if self.function is not None:
            return self.function(metric, pod, gpu, second)
        level = _level(phase, metric, pod, gpu)
        if level is None:
            return None
        value = level.value
        if level.to is not None:
            length = self.phase_end(phase) - phase.start
            value += (level.to - level.value) * min(1.0, (second - phase.start) / length)
        noise = level.wobble * (2 * chance(self.id, metric, pod, gpu, round(second * 1000)) - 1)
        return min(1.0, max(0.0, value + noise)) if metric in RATIOS else value + noise

    def chatter(self, pod: str, start: float, end: float) -> Iterator[Line]:
        """The training lines of a pod in [start, end)."""
        for phase in self.phases:
            if phase.chatter <= 0 or pod not in phase.pods or (phase.mute and fnmatchcase(pod, phase.mute)):
                continue
            first, last = max(start, phase.start), min(end, self.phase_end(phase))
            number = max(0, int((first - phase.start) * phase.chatter) - 1)
            while (at := phase.start + (number + _jitter(self.id, pod, number)) / phase.chatter) < last:
                if at >= first:
                    yield Line(at, pod, _training_text(self.id, int(at * 10)))
                number += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """Everything on the stage. `step`: seconds between two points, at least 1."""

    tasks: tuple[TaskPlay, ...] = ()
    step: int = 1


def chance(*parts: object) -> float:
    """A number in [0, 1) that depends on the parts alone."""
    return zlib.crc32(repr(parts).encode()) / 2**32


def _level(phase: Phase, metric: str, pod: str, gpu: int | None) -> Level | None:
    found = None
    for level in phase.levels:
        if level.metric == metric and fnmatchcase(pod, level.pods) and (not level.gpus or gpu in level.gpus):
            found = level
    return found


def _jitter(task: str, pod: str, number: int) -> float:
    return 0.05 + 0.8 * chance(task, pod, "line", number)


def _training_text(task: str, step: int) -> str:
    luck = chance(task, "step", step)
    loss = 1.6 + 3.0 / (1 + max(0, step + 1000) / 500) + 0.05 * luck
    return CHATTER.format(step=step + 10_000, loss=loss, speed=41_000 + int(900 * luck), grad=int(999 * luck))
