"""T1's tables: alerts, incidents, transitions, tasks, log streams, probes, samples, memory.

Functions of an open transaction. Each can be repeated with the same values and then changes nothing.
"""

import math
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from watchdog.core.alerts import Alert, Incident, Transition
from watchdog.core.health import ProbeState
from watchdog.core.labels import TASK
from watchdog.core.logs import StreamKey, StreamState
from watchdog.core.moments import Moment
from watchdog.core.tasks import TaskState
from watchdog.ports import LogSample, SlotCommit
from watchdog.store import codec, queries

_ALERT = "INSERT OR REPLACE INTO alerts (id, rule, task, phase, incident, body) VALUES (?, ?, ?, ?, ?, ?)"
_INCIDENT = """
    INSERT INTO incidents (id, rule, task, opened_us, closed_us, body) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET
        rule = excluded.rule, task = excluded.task, opened_us = excluded.opened_us,
        closed_us = excluded.closed_us, body = excluded.body
"""
_TRANSITION = """
    INSERT INTO transitions (seq, incident, change, at_us) VALUES (?, ?, ?, ?)
    ON CONFLICT (incident, change, at_us) DO NOTHING
"""
_STREAM = """
    INSERT INTO streams (task, pod, prefilter, cursor_ns, body) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (task, pod, prefilter) DO UPDATE SET cursor_ns = excluded.cursor_ns, body = excluded.body
"""
_SAMPLE = """
    INSERT OR REPLACE INTO samples (metric, labels, time_ns, slot_us, ordinal, value)
    VALUES (?, ?, ?, ?, ?, ?)
"""


def write_slot(connection: sqlite3.Connection, commit: SlotCommit) -> tuple[Transition, ...]:
    """Write all that one slot decided; return its transitions with their seq."""
    _drop_alerts(connection, commit.dropped_alerts)
    _put_alerts(connection, commit.alerts)
    _put_incidents(connection, commit.incidents)
    stored = _append_transitions(connection, commit.transitions)
    # Before, for what a task of the same key left behind; after, for what this commit says of one now gone.
    _drop_tasks(connection, commit.dropped_tasks)
    kept = {state.task.key for state in commit.tasks}
    _put_tasks(connection, commit.tasks)
    _drop_streams(connection, commit.dropped_streams)
    for stream in commit.streams:
        _put_stream(connection, stream)
    _put_probes(connection, commit.probes)
    _drop_tasks(connection, [key for key in commit.dropped_tasks if key not in kept])
    _put_samples(connection, commit.samples, commit.moment.at)
    if commit.forget_samples_before_ns:
        connection.execute("DELETE FROM samples WHERE time_ns < ?", (commit.forget_samples_before_ns,))
    _drop_memory(connection, commit.dropped_memory)
    put_memory(connection, commit.memory)
    _put_moment(connection, commit.moment)
    return stored


def _drop_alerts(connection: sqlite3.Connection, ids: Iterable[str]) -> None:
    connection.executemany("DELETE FROM alerts WHERE id = ?", ((codec.clean(key),) for key in ids))


def _put_alerts(connection: sqlite3.Connection, alerts: Iterable[Alert]) -> None:
    rows = (
        (
            codec.clean(alert.id),
            codec.clean(alert.rule),
            codec.clean(alert.labels.get(TASK, "")),
            alert.phase.value,
            codec.clean(alert.incident),
            codec.encode(alert),
        )
        for alert in alerts
    )
    connection.executemany(_ALERT, rows)


def _put_incidents(connection: sqlite3.Connection, incidents: Iterable[Incident]) -> None:
    rows = (
        (
            codec.clean(incident.id),
            codec.clean(incident.rule),
            codec.clean(incident.labels.get(TASK, "")),
            codec.moment_us(incident.opened_at),
            None if incident.closed_at is None else codec.moment_us(incident.closed_at),
            codec.encode(incident),
        )
        for incident in incidents
    )
    connection.executemany(_INCIDENT, rows)


def _append_transitions(
    connection: sqlite3.Connection, transitions: Sequence[Transition]
) -> tuple[Transition, ...]:
    numbered: dict[int, Transition] = {}
    for change in transitions:
        key = (codec.clean(change.incident), change.change.value, codec.moment_us(change.at))
        done = connection.execute(_TRANSITION, (change.seq or None, *key))
        seq = done.lastrowid if done.rowcount else _seq_of(connection, key)
        assert seq is not None
        numbered[seq] = replace(change, seq=seq)
    return tuple(numbered[seq] for seq in sorted(numbered))


def _seq_of(connection: sqlite3.Connection, key: tuple[str, str, int]) -> int:
    query = "SELECT seq FROM transitions WHERE incident = ? AND change = ? AND at_us = ?"
    return int(connection.execute(query, key).fetchone()[0])


def _put_tasks(connection: sqlite3.Connection, tasks: Iterable[TaskState]) -> None:
    rows = ((codec.clean(state.task.key), codec.encode(state)) for state in tasks)
    connection.executemany("INSERT OR REPLACE INTO tasks (key, body) VALUES (?, ?)", rows)


def _drop_tasks(connection: sqlite3.Connection, keys: Sequence[str]) -> None:
    for key in map(codec.clean, keys):
        connection.execute("DELETE FROM tasks WHERE key = ?", (key,))
        connection.execute("DELETE FROM streams WHERE task = ?", (key,))
        connection.execute("DELETE FROM probes WHERE task = ?", (key,))


def _drop_streams(connection: sqlite3.Connection, keys: Iterable[StreamKey]) -> None:
    connection.executemany(
        "DELETE FROM streams WHERE task = ? AND pod = ? AND prefilter = ?",
        ((codec.clean(key.task), codec.clean(key.pod), codec.clean(key.prefilter)) for key in keys),
    )


def _put_stream(connection: sqlite3.Connection, stream: StreamState) -> None:
    key = (codec.clean(stream.key.task), codec.clean(stream.key.pod), codec.clean(stream.key.prefilter))
    connection.execute(_STREAM, (*key, stream.cursor_ns, codec.encode(replace(stream, seen={}))))
    query = "SELECT id FROM streams WHERE task = ? AND pod = ? AND prefilter = ?"
    number = connection.execute(query, key).fetchone()[0]
    _put_seen(connection, number, stream.seen)


def _put_seen(connection: sqlite3.Connection, stream: int, seen: Mapping[int, tuple[int, int]]) -> None:
    # Tens of thousands of hashes stay the same from slot to slot: only what differs is written.
    stored = queries.seen_of(connection, stream)
    connection.executemany(
        "DELETE FROM seen WHERE stream = ? AND hash = ?",
        ((stream, codec.hash_column(value)) for value in stored.keys() - seen.keys()),
    )
    connection.executemany(
        "INSERT OR REPLACE INTO seen (stream, hash, time_ns, count) VALUES (?, ?, ?, ?)",
        (
            (stream, codec.hash_column(value), *entry)
            for value, entry in seen.items()
            if stored.get(value) != entry
        ),
    )


def _put_probes(connection: sqlite3.Connection, probes: Iterable[ProbeState]) -> None:
    rows = (
        (
            codec.clean(probe.key.source),
            probe.key.capability.value,
            codec.clean(probe.key.task),
            codec.clean(probe.key.item),
            codec.encode(probe),
        )
        for probe in probes
    )
    connection.executemany(
        "INSERT OR REPLACE INTO probes (source, capability, task, item, body) VALUES (?, ?, ?, ?, ?)", rows
    )


def _put_samples(connection: sqlite3.Connection, samples: Iterable[LogSample], slot: datetime) -> None:
    same: Counter[tuple[str, str, int]] = Counter()
    slot_us = codec.moment_us(slot)
    rows = []
    for sample in samples:
        key = (codec.clean(sample.metric), codec.encode(sample.labels), sample.time_ns)
        value = None if math.isnan(sample.value) else sample.value
        rows.append((*key, slot_us, same[key], value))
        same[key] += 1
    connection.executemany(_SAMPLE, rows)


def _drop_memory(connection: sqlite3.Connection, names: Iterable[str]) -> None:
    connection.executemany("DELETE FROM memory WHERE name = ?", ((codec.clean(name),) for name in names))


def put_memory(connection: sqlite3.Connection, memory: Mapping[str, str]) -> None:
    """Write small facts by their names."""
    rows = ((codec.clean(name), codec.clean(value)) for name, value in memory.items())
    connection.executemany("INSERT OR REPLACE INTO memory (name, value) VALUES (?, ?)", rows)


def _put_moment(connection: sqlite3.Connection, moment: Moment) -> None:
    rows = (
        ("slot_us", codec.moment_us(moment.at)),
        ("slot_watched_us", codec.span_us(moment.watched)),
    )
    connection.executemany("INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)", rows)
