"""Collects `core.telemetry` from a running engine, without changing anything."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from itertools import islice

import numpy as np

from watchdog.core.columns import BLOCK_ROWS
from watchdog.core.durations import duration_ns, to_ns
from watchdog.core.series import COUNTED, Table
from watchdog.core.telemetry import ChannelLine, SeriesSample, Telemetry
from watchdog.core.vitals import judge
from watchdog.engine.engine import Engine
from watchdog.engine.vitals import vitals_of

MOST_SERIES = 10_000
FRESH = timedelta(minutes=10)  # older points say nothing about now, and Prometheus may refuse them

Pair = tuple[str, str]
Stream = tuple[str, str, str]


def telemetry_of(engine: Engine) -> Telemetry:
    """Return what the engine counts, as it stands right now."""
    world = engine.world
    vitals = vitals_of(engine)
    found = _series(engine)
    series = tuple(islice(found, MOST_SERIES))
    lags, lines = _logs(engine)
    return Telemetry(
        vitals=vitals,
        verdict=judge(vitals),
        missed=engine.missed,
        evaluating=engine.pulse.total,
        evaluated=engine.pulse.took,
        questions=_questions(engine),
        failures=_failures(engine),
        blind=_blind(engine),
        log_lag=lags,
        log_lines=lines,
        channels=_channels(engine),
        alerts=Counter((alert.rule, str(alert.phase)) for alert in world.book.all_alerts()),
        incidents=Counter((one.rule, str(one.severity)) for one in world.book.open.values()),
        series=series,
        left_out=sum(1 for _ in found),
    )


def _questions(engine: Engine) -> dict[Pair, int]:
    return {
        (collector.source.name, str(capability)): count
        for collector in engine.crew.collectors
        for capability, count in collector.asked.items()
    }


def _failures(engine: Engine) -> dict[Stream, int]:
    return {
        (collector.source.name, str(capability), str(failure)): count
        for collector in engine.crew.collectors
        for (capability, failure), count in collector.failed.items()
    }


def _blind(engine: Engine) -> dict[Pair, int]:
    """How many questions are blind, 0 included: a capability that is asked has a line."""
    counts = dict.fromkeys(_questions(engine), 0)
    for state in engine.world.health.states.values():
        pair = (state.key.source, str(state.key.capability))
        counts[pair] = counts.get(pair, 0) + state.blind
    return counts


def _logs(engine: Engine) -> tuple[dict[Stream, timedelta], dict[Stream, int]]:
    """Lag and lines by task; of several streams of a task, the one that lags most, and all lines."""
    now_ns = to_ns(engine.parts.clock.now())
    lags: dict[Stream, timedelta] = {}
    lines: Counter[Stream] = Counter()
    for stream in engine.world.streams.values():
        state = engine.world.states.get(stream.key.task)
        if state is None or not stream.progress.complete_ns:
            continue
        key = (state.task.source, state.task.key, state.task.name)
        lag = timedelta(microseconds=max(0, now_ns - stream.progress.complete_ns) // 1_000)
        lags[key] = max(lag, lags.get(key, lag))
        lines[key] += stream.lines
    return lags, dict(lines)


def _channels(engine: Engine) -> dict[str, ChannelLine]:
    relay = engine.relay
    watched = engine.moment().watched
    lines: dict[str, ChannelLine] = {}
    for channel in relay.notifiers:
        ages = [watched - row.created for row in relay.rows.values() if row.notification.channel == channel]
        lines[channel] = ChannelLine(
            waiting=len(ages),
            oldest=max(ages, default=timedelta()),
            answers={str(answer): n for (name, answer), n in relay.answers.items() if name == channel},
        )
    return lines


def _series(engine: Engine) -> Iterator[SeriesSample]:
    """The newest point of every polled series that is fresh."""
    series = engine.world.series
    oldest_ns = to_ns(engine.parts.clock.now()) - duration_ns(FRESH)
    units = engine.world.units
    for source, metric in series.metrics():
        if not metric.startswith(COUNTED):
            unit = units.get((source, metric), "")
            yield from _newest(series.table(source, metric), metric, unit, oldest_ns)


def _newest(table: Table, metric: str, unit: str, oldest_ns: int) -> Iterator[SeriesSample]:
    rows = np.flatnonzero(table.columns.newest > oldest_ns)
    for place, span in table.columns.spans(rows, BLOCK_ROWS, 1):
        last = span.counts[span.of] - 1
        times = span.times[span.of, last].tolist()
        values = span.values[np.arange(last.size), last].tolist()
        for row, time_ns, value in zip(rows[place].tolist(), times, values, strict=True):
            labels = table.labels[row]
            yield SeriesSample(metric=metric, unit=unit, labels=labels, time_ns=time_ns, value=value)
