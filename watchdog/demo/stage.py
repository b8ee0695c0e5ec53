"""The running state of a played task: points recorded so far, lines said, phases entered live.

Turns a `TaskPlay` (seconds) into wall-clock series and rows. Time is handed in. Knows no HTTP.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from dataclasses import replace as changed
from datetime import datetime, timedelta

from watchdog.core.durations import SECOND_NS, from_ns, to_ns
from watchdog.demo.play import DEVICES, PER_CARD, PER_DEVICE, RATIOS, Phase, TaskPlay

MOST_HISTORY = timedelta(days=30)


@dataclass(slots=True)
class _Recording:
    """One series as the cloud has stored it: Unix seconds, ascending, and values."""

    times: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    until: int = 0  # recorded up to and including this second


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One log row; readable from `visible_ns` on."""

    time_ns: int
    pod: str
    text: str
    visible_ns: int


SeriesKey = tuple[str, int | None]  # pod, number of the GPU or network device


class StagedTask:
    """One task on the stage. What was served once never changes afterwards."""

    def __init__(self, play: TaskPlay, *, started: datetime, speed: float, step: int) -> None:
        """`speed`: play seconds per real second; `step`: real seconds between points."""
        self.play = play
        self.listed = play.listed
        self.restarts: dict[str, int] = {}
        self._started_ns = to_ns(started)
        self._speed = speed
        self._step = step
        self._recordings: dict[tuple[str, str, int | None], _Recording] = {}
        self._said: list[Row] = []

    # --- what a test may do to it while it runs

    def say(self, text: str, *, pod: str = "", time_ns: int, late: timedelta = timedelta()) -> None:
        """Append a log row; without a pod, the first one of the play prints it."""
        pods = self.play.pods()
        row = Row(
            time_ns=time_ns,
            pod=pod or (pods[0] if pods else "pod-0"),
            text=text,
            visible_ns=time_ns + round(late.total_seconds() * SECOND_NS),
        )
        self._said.append(row)

    def enter(self, phase: Phase, now: datetime) -> None:
        """Begin a phase now (its `start` is set); later phases of the play are dropped."""
        second = self.second(now)
        phases = tuple(old for old in self.play.phases if old.start < second)
        self.record(now)
        self.play = changed(self.play, phases=(*phases, changed(phase, start=second)))

    # --- what the API serves

    def second(self, now: datetime) -> float:
        """The play's second at a moment."""
        return (to_ns(now) - self._started_ns) / SECOND_NS * self._speed

    def time_ns(self, second: float) -> int:
        """The moment of a play's second."""
        return self._started_ns + round(second / self._speed * SECOND_NS)

    def phase(self, now: datetime) -> Phase:
        """The current phase."""
        return self.play.phase(self.second(now))

    def phase_since(self, now: datetime) -> datetime:
        """When the run of phases with the current status began, while some of its pods went on.

        A pod that dies does not start the task anew; a wholly new set of pods does.
        """
        since = now
        current = self.phase(now)
        for phase in reversed(self.play.phases):
            if phase.start > self.second(now):
                continue
            went_on = not current.pods or bool(set(phase.pods) & set(current.pods))
            if phase.status != current.status or not went_on:
                break
            since = from_ns(self.time_ns(phase.start))
        return since

    def record(self, now: datetime) -> None:
        """Store every point up to now, as a cloud's metric store does."""
        levels = (level.metric for phase in self.play.phases for level in phase.levels)
        for metric in dict.fromkeys((*RATIOS, *levels)):
            for pod in self.play.pods():
                for gpu in self._gpus(metric):
                    self._recording(metric, pod, gpu, now)

    def series(
        self, metric: str, start: datetime, end: datetime, now: datetime
    ) -> dict[SeriesKey, tuple[Sequence[int], Sequence[float]]]:
        """Return (Unix seconds, values) by pod and GPU, for series with a point in [start, end]."""
        first, last = to_ns(start) / SECOND_NS, to_ns(min(end, now)) // SECOND_NS
        found: dict[SeriesKey, tuple[Sequence[int], Sequence[float]]] = {}
        for pod in self.play.pods():
            for gpu in self._gpus(metric):
                recording = self._recording(metric, pod, gpu, now)
                low, high = bisect_left(recording.times, first), bisect_right(recording.times, last)
                if low < high:
                    found[pod, gpu] = (recording.times[low:high], recording.values[low:high])
        return found

    def rows(self, start_ns: int, end_ns: int, now: datetime, late: timedelta) -> list[Row]:
        """Return the readable rows of [start, end), oldest first; `late` delays all of them."""
        now_ns, late_ns = to_ns(now), round(late.total_seconds() * SECOND_NS)
        rows = [row for row in self._said if start_ns <= row.time_ns < end_ns]
        rows += self._played(start_ns, min(end_ns, now_ns + 1))
        return sorted(
            (row for row in rows if row.visible_ns + late_ns <= now_ns), key=lambda row: row.time_ns
        )

    def _played(self, start_ns: int, end_ns: int) -> list[Row]:
        start, end = ((bound - self._started_ns) / SECOND_NS * self._speed for bound in (start_ns, end_ns))
        lines = [line for line in self.play.lines if start - 1 <= line.at < end + 1]
        for pod in self.play.pods():
            lines.extend(self.play.chatter(pod, start - 1, end + 1))
        rows = []
        for line in lines:
            time_ns = self.time_ns(line.at)
            if start_ns <= time_ns < end_ns:
                visible_ns = time_ns + round(line.late * SECOND_NS)
                rows.append(Row(time_ns=time_ns, pod=line.pod, text=line.text, visible_ns=visible_ns))
        return rows

    def _gpus(self, metric: str) -> Sequence[int | None]:
        if metric in PER_DEVICE:
            return range(DEVICES)
        return range(self.play.gpus_per_pod) if metric in PER_CARD else (None,)

    def _recording(self, metric: str, pod: str, gpu: int | None, now: datetime) -> _Recording:
        recording = self._recordings.setdefault((metric, pod, gpu), _Recording())
        last = to_ns(now) // SECOND_NS
        if not recording.until:
            begin = min((phase.start for phase in self.play.phases), default=0.0)
            oldest = to_ns(now - MOST_HISTORY) // SECOND_NS
            recording.until = max(oldest, self.time_ns(begin) // SECOND_NS - 1)
        first = (recording.until // self._step + 1) * self._step
        for time in range(first, last + 1, self._step):
            second = (time * SECOND_NS - self._started_ns) / SECOND_NS * self._speed
            value = self.play.value(metric, pod, gpu, second)
            if value is not None:
                recording.times.append(time)
                recording.values.append(value)
        recording.until = max(recording.until, last)
        return recording
