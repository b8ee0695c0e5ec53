"""SiFlow's metric answers as series with our labels and units; pure.

Owns units, labels, what the cloud's warnings mean, and the zero before a counter that appears late. Knows
neither which queries were sent nor the SDK.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo

import numpy as np
from numpy.typing import NDArray

from watchdog.core.durations import MINUTE_NS, SECOND_NS, to_ns
from watchdog.core.health import Failure
from watchdog.core.labels import GPU, NODE, POD, Labels
from watchdog.core.series import SeriesPoints
from watchdog.core.tasks import Task
from watchdog.ports import MetricAnswer
from watchdog.sources.answers import failure
from watchdog.sources.naive_times import LATEST_NS, read_time_ns
from watchdog.sources.siflow_catalogue import OUR_NAMES, PERCENT, RATIO, unit_text
from watchdog.sources.siflow_wire import Custom, MetricRow, SeriesRow, Time

DEVICE, EXTRA, XID = "device", "extra", "xid"
LONGEST_LABEL = 120
TEXT_SHOWN = 160

_CUT = re.compile(
    r"truncat|cut off|only the (first|last)|too many|limited to|exceed|截断|上限|超过|超出", re.IGNORECASE
)
_NOTHING = re.compile(
    r"no (data|pods?|points?|samples?|series)\b|not found|没有|暂无|无数据|无可", re.IGNORECASE
)

Columns = tuple[NDArray[np.int64], NDArray[np.float64]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One metric of one answer, and whom was asked about ("" = the whole task). warnings: of the answer."""

    row: MetricRow | None  # None: the answer leaves it out
    pod: str = ""
    node: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(slots=True)
class Counted:
    """What was read of one counter of one task before: its pods, and its curves."""

    pods: set[str] = field(default_factory=set)
    curves: set[Labels] = field(default_factory=set)

    def learn(self, pods: Collection[str], series: Sequence[SeriesPoints]) -> None:
        """Note a healthy answer about these pods."""
        self.pods.update(pods)
        self.curves.update(one.labels for one in series)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What was asked, for reading the answers: our name of the metric, and all points newer than `since`."""

    task: Task
    metric: str
    unit: str  # where an answer names none
    since: datetime
    zone: tzinfo
    pods: Collection[str] = ()  # of the task, as far as they are known
    nodes: Mapping[str, str] = field(default_factory=dict)  # pod → node
    counted: Counted | None = None  # what was read of a counter before


@dataclass(slots=True)
class _Notes:
    """What is odd, so that each is said once. `cut`: data is missing that the cloud has."""

    said: dict[str, None] = field(default_factory=dict)
    suspect: list[float] = field(default_factory=list)
    bad_times: int = 0
    points: int = 0
    failed: list[str] = field(default_factory=list)
    cut: bool = False

    def say(self, text: str) -> None:
        self.said.setdefault(text[:TEXT_SHOWN])

    def texts(self, metric: str) -> tuple[str, ...]:
        if self.suspect:
            worst = max(self.suspect, key=abs)
            self.say(f"suspect values of {metric}: outside 0 to 100 %, such as {worst:.0%}; kept as sent")
        if self.bad_times:
            self.say(f"points of {metric} without a readable time: {self.bad_times}; dropped")
        return tuple(self.said)


def read_metric(question: Question, found: Sequence[Found]) -> MetricAnswer:
    """Read all answers about one metric into one: a series for each set of labels.

    No data at all is a healthy, empty answer.

    Raises:
        SourceError: the unit is no ratio although it must be one, no time can be read, or the cloud warns
            of the metric and shows nothing of it.
    """
    notes = _Notes()
    parts: dict[Labels, list[Columns]] = {}
    for one in found:
        _warned(one, notes)
        if one.row is None:
            continue
        factor = _factor(question, one.row.unit or question.unit)
        for row in one.row.series:
            labels = _labels(question, one, row)
            if labels is not None:
                columns = _columns(row, question, factor, notes)
                parts.setdefault(labels, []).extend([columns] if columns else [])
    if notes.points and notes.bad_times == notes.points:
        raise failure(Failure.MALFORMED, f"no point of {question.metric} has a readable time")
    series = tuple(_merged(labels, columns) for labels, columns in parts.items() if columns)
    if notes.failed and not series:
        raise failure(Failure.SERVER_ERROR, f"{question.metric}: {notes.failed[0]}")
    if question.counted is not None:
        series = tuple(_from_zero(one, question.counted) for one in series)
    complete = not (notes.cut or notes.failed)
    return MetricAnswer(series=series, remarks=notes.texts(question.metric), complete=complete)


def read_custom(question: Question, entries: Sequence[Custom]) -> MetricAnswer:
    """Read the last samples of a custom metric, one series for each set of its own labels."""
    own = [entry for entry in entries if entry.metric == question.metric]
    if not own:
        text = f"{question.metric}: neither a metric of the platform nor, by now, one that the task exposes"
        return MetricAnswer(series=(), remarks=(text,))
    parts: dict[Labels, list[Columns]] = {}
    since_ns = to_ns(question.since)
    for entry in own:
        time = read_time_ns(entry.time, question.zone)
        if time is None or entry.value is None or time <= since_ns:
            continue
        given = {name: _label(value) for name, value in entry.labels.items()}
        renamed = {POD: given.pop("pod_name", ""), NODE: given.pop("node_name", "")}
        labels = Labels({**given, **{name: value for name, value in renamed.items() if value}})
        columns = np.array([time], np.int64), np.array([entry.value])
        parts.setdefault(labels.plus(question.task.identity), []).append(columns)
    return MetricAnswer(series=tuple(_merged(labels, columns) for labels, columns in parts.items()))


def _warned(found: Found, notes: _Notes) -> None:
    """Sort the cloud's warnings: data that was cut, a metric that failed, and what is merely said."""
    row = found.row
    own = row.warning if row is not None else None
    for text in (*found.warnings, *([own] if own else ())):
        if _CUT.search(text):
            notes.cut = True
            notes.say(f"the source cut its answer, what is missing is not judged: {text}")
        elif not _NOTHING.search(text):  # no data is an answer
            notes.say(f"the source warns: {text}")
    empty = row is not None and not any(series.values for series in row.series)
    if own and empty and not _NOTHING.search(own) and not _CUT.search(own):
        notes.failed.append(own)


def _factor(question: Question, unit: str) -> float | None:
    """What to multiply a value by; None: not at all."""
    if question.metric not in OUR_NAMES:
        return None
    word = unit_text(unit)
    if word == PERCENT:
        return 0.01
    if word.lower() in (RATIO, "1"):
        return 1.0
    raise failure(Failure.MALFORMED, f"the unit of {question.metric} is {word[:20]!r}, which is no ratio")


def _labels(question: Question, found: Found, row: SeriesRow) -> Labels | None:
    """The labels of a curve; None for another task's, which shares the node."""
    given = row.labels
    pod = _label(given.pod)
    if pod and found.pod and pod != found.pod and (not question.pods or pod not in question.pods):
        return None
    pod = pod or found.pod
    extra = _label(given.extra)
    return question.task.identity.plus(
        {
            POD: pod,
            NODE: _label(given.node) or found.node or question.nodes.get(pod, ""),
            GPU: _label(given.gpu),
            DEVICE: _label(given.device),
            (XID if question.metric == "XidErrors" else EXTRA): extra,
        }
    )


def _label(text: str | None) -> str:
    word = "".join(c if c.isprintable() else " " for c in text or "").strip()[:LONGEST_LABEL]
    return "" if word.lower() in ("none", "null", "-") else word


def _columns(row: SeriesRow, question: Question, factor: float | None, notes: _Notes) -> Columns | None:
    """Points as columns sorted by time, the last of equal times; None without a new one."""
    since_ns = to_ns(question.since)
    found: dict[int, float] = {}
    for time, value in zip(row.times, row.values, strict=False):
        notes.points += 1
        time_ns = _time_ns(time, question.zone)
        if time_ns is None:
            notes.bad_times += 1
        elif value is not None and time_ns > since_ns:
            found[time_ns] = value
    if not found:
        return None
    times = np.fromiter(found.keys(), np.int64, len(found))
    values = np.fromiter(found.values(), np.float64, len(found))
    if factor is not None:
        values = values * factor
        outside = values[(values < 0.0) | (values > 1.0 + 1e-9)]
        notes.suspect += outside.tolist()
    order = np.argsort(times, kind="stable")
    return times[order], values[order]


def _time_ns(time: Time, zone: tzinfo) -> int | None:
    if isinstance(time, int) and 0 < time < LATEST_NS // SECOND_NS:  # as documented; the rest is caution
        return time * SECOND_NS
    return read_time_ns(time, zone)


def _merged(labels: Labels, parts: Sequence[Columns]) -> SeriesPoints:
    """Join answers about the same curve; of equal times the last one counts."""
    if len(parts) == 1:
        return SeriesPoints(labels=labels, times=parts[0][0], values=parts[0][1])
    found: dict[int, float] = {}
    for times, values in parts:
        found.update(zip(times.tolist(), values.tolist(), strict=True))
    order = sorted(found)
    return SeriesPoints(
        labels=labels, times=np.array(order, np.int64), values=np.array([found[time] for time in order])
    )


def _from_zero(series: SeriesPoints, counted: Counted) -> SeriesPoints:
    """Let a counter begin at 0 if it is new and its pod is not: until it appeared, it had counted nothing.

    Without this, the first error of a kind would be the first value ever seen, which is no change.
    Pods read for the first time may be on a node with old errors: what they show is where they begin.
    """
    if series.labels in counted.curves or series.labels.get(POD, "") not in counted.pods:
        return series
    gaps = np.sort(np.diff(series.times))  # np.median would load numpy.ma, for ever
    step = int(gaps[gaps.size // 2]) if gaps.size else MINUTE_NS
    return SeriesPoints(
        labels=series.labels,
        times=np.concatenate((series.times[:1] - step, series.times)),
        values=np.concatenate(([0.0], series.values)),
    )
