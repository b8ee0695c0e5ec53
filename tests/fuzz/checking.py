"""What must be true of whatever a source hands on: fit for columns, SQLite, messages and pages."""

import math
from datetime import datetime, timedelta

import numpy as np

from watchdog.core.durations import to_ns
from watchdog.core.logs import LogPage, LogQuery, StreamKey
from watchdog.core.reading import absorb, first_run
from watchdog.core.series import SeriesStore
from watchdog.core.tasks import TaskObservation
from watchdog.errors import SourceError
from watchdog.ports import MetricAnswer

LONGEST_DETAIL = 400


def check_error(error: SourceError, *secrets: str) -> None:
    """An error says what failed, in one short line without a secret."""
    text = str(error)
    assert text.strip(), "an error without words"
    assert "\n" not in text, f"an error of several lines: {text!r}"
    assert len(text) <= LONGEST_DETAIL, f"an error of {len(text)} characters"
    assert not [secret for secret in secrets if secret in text], "an error with a secret"
    text.encode("utf-8")


def check_series(answer: MetricAnswer, now: datetime) -> None:
    """Points can be stored, and judged by."""
    for one in answer.series:
        assert one.times.dtype == np.int64
        assert one.values.dtype == np.float64
        assert len(one.times) == len(one.values) > 0
        assert (np.diff(one.times) > 0).all(), "times that do not ascend"
        assert (one.times > 0).all(), "a time before 1970"
        assert all(map(math.isfinite, one.values.tolist())), "a value that is no number"
        check_texts(*(text for pair in one.labels.pairs for text in pair))
    check_texts(*answer.remarks)
    store = SeriesStore()
    store.keep("s", "gpu", timedelta(hours=1))
    tasks = {one.labels["task"] for one in answer.series}
    store.intake("s", "gpu", answer.series, to_ns(now), tasks=tasks)
    for one in answer.series:
        store.points("s", "gpu", one.labels)


def check_page(page: LogPage, query: LogQuery) -> None:
    """Lines are in order, within what was asked for, and can be followed."""
    times = [line.time_ns for line in page.lines]
    assert times == sorted(times)
    assert all(query.start_ns <= time <= query.end_ns for time in times)
    check_texts(*page.remarks)
    for line in page.lines:
        assert isinstance(line.pod, str)
        assert "\0" not in line.text
    state = first_run(StreamKey(task="s/1"), query.start_ns - 1)
    absorbed = absorb(state, query, page, query.end_ns)
    assert len(absorbed.new_lines) <= len(page.lines)


def check_observation(one: TaskObservation) -> None:
    """A task can be stored and shown."""
    assert one.task.id
    assert len(one.reason) <= LONGEST_DETAIL
    for moment in (one.started, one.ended):
        assert moment is None or moment.utcoffset() == timedelta(0)
        assert moment is None or 0 < to_ns(moment) < 1 << 63, "a time that no column holds"
    check_texts(*one.extra.values(), *one.nodes.values(), *(one.pods or ()))


def check_texts(*texts: str) -> None:
    for text in texts:
        assert isinstance(text, str)
