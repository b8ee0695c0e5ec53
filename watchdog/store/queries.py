"""Everything that reads the tables, for the daemon's start and for the reading verbs alike.

Functions of a connection; who opened it, and whether it may write, they do not know.
"""

import math
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import replace

from watchdog.core.alerts import Change, Incident, Transition
from watchdog.core.health import ProbeState
from watchdog.core.labels import Labels
from watchdog.core.logs import StreamState
from watchdog.core.moments import Moment
from watchdog.core.notifications import Delivery, DeliveryState, LedgerEntry
from watchdog.ports import AttemptRecord, LogSample, Stored
from watchdog.store import codec

_DELIVERY = "SELECT id, state, created_us, not_before_us, attempts, body FROM outbox "
_TELLABLE = """
    SELECT id FROM incidents WHERE closed_us IS NULL
    UNION SELECT incident FROM outbox WHERE state IN ('pending', 'inflight')
    UNION SELECT incident FROM transitions WHERE seq > ?
"""


def read_all(connection: sqlite3.Connection) -> Stored:
    """Return all that a start needs. A row that was in flight is returned as such."""
    done = mark(connection)
    return Stored(
        moment=moment(connection),
        mark=done,
        alerts=tuple(
            codec.decode(codec.ALERT, body, f"alert {key}")
            for key, body in connection.execute("SELECT id, body FROM alerts ORDER BY rule, id")
        ),
        incidents=tuple(_tellable(connection, done)),
        tasks=tuple(
            codec.decode(codec.TASK, body, f"task {key}")
            for key, body in connection.execute("SELECT key, body FROM tasks ORDER BY key")
        ),
        streams=tuple(_streams(connection)),
        probes=tuple(_probes(connection)),
        samples=tuple(_samples(connection)),
        ledger=tuple(_tellable_ledger(connection, done)),
        outbox=waiting(connection),
        transitions=tuple(transitions_after(connection, done)),
        memory=dict(connection.execute("SELECT name, value FROM memory ORDER BY name")),
        newest_delivery=_newest_delivery(connection),
    )


def _newest_delivery(connection: sqlite3.Connection) -> int:
    """Return the highest outbox id ever given, whether or not its row is still there."""
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'outbox'").fetchone()
    return 0 if row is None else int(row[0])


def mark(connection: sqlite3.Connection) -> int:
    """Return the seq of the newest transition planned."""
    return _meta(connection).get("mark", 0)


def moment(connection: sqlite3.Connection) -> Moment | None:
    """Return the moment of the last slot; None before the first."""
    meta = _meta(connection)
    if "slot_us" not in meta:
        return None
    return Moment(
        at=codec.from_moment_us(meta["slot_us"]), watched=codec.from_span_us(meta["slot_watched_us"])
    )


def transitions_after(connection: sqlite3.Connection, seq: int) -> Iterator[Transition]:
    """Yield the transitions after `seq`, in order."""
    rows = connection.execute(
        "SELECT seq, incident, change, at_us FROM transitions WHERE seq > ? ORDER BY seq", (seq,)
    )
    yield from map(_transition, rows)


def transitions_of(connection: sqlite3.Connection, incident: str) -> tuple[Transition, ...]:
    """Return the transitions of an incident that are still there, in order."""
    rows = connection.execute(
        "SELECT seq, incident, change, at_us FROM transitions WHERE incident = ? ORDER BY seq",
        (codec.clean(incident),),
    )
    return tuple(map(_transition, rows))


def _transition(row: tuple[int, str, str, int]) -> Transition:
    number, incident, change, at_us = row
    return Transition(incident=incident, change=Change(change), at=codec.from_moment_us(at_us), seq=number)


def waiting(connection: sqlite3.Connection) -> tuple[Delivery, ...]:
    """Return the rows that are pending or in flight, oldest first."""
    return _deliveries(connection, "WHERE state IN ('pending', 'inflight') ORDER BY id", ())


def deliveries_of(connection: sqlite3.Connection, incident: str) -> tuple[Delivery, ...]:
    """Return every delivery of an incident, oldest first."""
    return _deliveries(connection, "WHERE incident = ? ORDER BY id", (codec.clean(incident),))


def dead(connection: sqlite3.Connection, limit: int) -> tuple[Delivery, ...]:
    """Return the deliveries that were given up, newest first."""
    return _deliveries(connection, "WHERE state = 'dead' ORDER BY id DESC LIMIT ?", (limit,))


def delivery_by_key(connection: sqlite3.Connection, key: tuple[str, str, str, int]) -> Delivery:
    """Return the row of (channel, incident, kind, decided_us), which exists."""
    where = "WHERE channel = ? AND incident = ? AND kind = ? AND decided_us = ?"
    return _deliveries(connection, where, key)[0]


def attempts_of(connection: sqlite3.Connection, incident: str) -> tuple[AttemptRecord, ...]:
    """Return every attempt of every delivery of an incident, in the order they were made."""
    rows = connection.execute(
        "SELECT delivery, number, at_us, watched_us, body FROM attempts"
        " WHERE delivery IN (SELECT id FROM outbox WHERE incident = ?) ORDER BY seq",
        (codec.clean(incident),),
    )
    return tuple(_attempt(row) for row in rows)


def newest_incidents(connection: sqlite3.Connection, limit: int) -> tuple[Incident, ...]:
    """Return incidents, open ones first, then the newest."""
    rows = connection.execute(
        "SELECT id, body FROM incidents ORDER BY closed_us IS NOT NULL, opened_us DESC, id LIMIT ?", (limit,)
    )
    return tuple(codec.decode(codec.INCIDENT, body, f"incident {key}") for key, body in rows)


def incident_by_id(connection: sqlite3.Connection, incident: str) -> Incident | None:
    """Return one incident; None if it is not known (any more)."""
    row = connection.execute("SELECT body FROM incidents WHERE id = ?", (codec.clean(incident),)).fetchone()
    return codec.decode(codec.INCIDENT, row[0], f"incident {incident}") if row else None


def incident_ids(connection: sqlite3.Connection, beginning: str, limit: int) -> tuple[str, ...]:
    """Return the ids that begin so, the newest first."""
    text = codec.clean(beginning)
    rows = connection.execute(
        "SELECT id FROM incidents WHERE substr(id, 1, ?) = ? ORDER BY opened_us DESC, id LIMIT ?",
        (len(text), text, limit),
    )
    return tuple(row[0] for row in rows)


def ledger_of(connection: sqlite3.Connection, incident: str) -> tuple[LedgerEntry, ...]:
    """Return what each channel was last told of an incident."""
    rows = connection.execute(
        "SELECT incident, body FROM ledger WHERE incident = ? ORDER BY channel", (codec.clean(incident),)
    )
    return tuple(codec.decode(codec.LEDGER, body, f"the ledger of {key}") for key, body in rows)


def _meta(connection: sqlite3.Connection) -> dict[str, int]:
    return dict(connection.execute("SELECT name, value FROM meta"))


def _tellable(connection: sqlite3.Connection, done: int) -> Iterator[Incident]:
    query = f"SELECT id, body FROM incidents WHERE id IN ({_TELLABLE}) ORDER BY opened_us, id"  # noqa: S608 - a constant
    for key, body in connection.execute(query, (done,)):
        yield codec.decode(codec.INCIDENT, body, f"incident {key}")


def _tellable_ledger(connection: sqlite3.Connection, done: int) -> Iterator[LedgerEntry]:
    query = f"SELECT incident, body FROM ledger WHERE incident IN ({_TELLABLE}) ORDER BY incident, channel"  # noqa: S608 - a constant
    for key, body in connection.execute(query, (done,)):
        yield codec.decode(codec.LEDGER, body, f"the ledger of {key}")


def _streams(connection: sqlite3.Connection) -> Iterator[StreamState]:
    rows = connection.execute("SELECT id, task, body FROM streams ORDER BY task, pod, prefilter")
    for number, task, body in rows.fetchall():
        stream = codec.decode(codec.STREAM, body, f"the log stream of {task}")
        yield replace(stream, seen=seen_of(connection, number))


def seen_of(connection: sqlite3.Connection, stream: int) -> dict[int, tuple[int, int]]:
    """Return hash → (time_ns, count) of the lines a stream has already consumed."""
    rows = connection.execute("SELECT hash, time_ns, count FROM seen WHERE stream = ?", (stream,))
    return {int(value): (time_ns, count) for value, time_ns, count in rows}


def _probes(connection: sqlite3.Connection) -> Iterator[ProbeState]:
    rows = connection.execute("SELECT source, body FROM probes ORDER BY source, capability, task, item")
    for source, body in rows:
        yield codec.decode(codec.PROBE, body, f"the health of source {source}")


def _samples(connection: sqlite3.Connection) -> Iterator[LogSample]:
    known: dict[str, Labels] = {}
    rows = connection.execute(
        "SELECT metric, labels, time_ns, value FROM samples"
        " ORDER BY metric, labels, time_ns, slot_us, ordinal"
    )
    for metric, text, time_ns, value in rows:
        if text not in known:
            known[text] = codec.decode(codec.LABELS, text, f"samples of {metric}")
        yield LogSample(
            metric=metric, labels=known[text], time_ns=time_ns, value=math.nan if value is None else value
        )


def _deliveries(
    connection: sqlite3.Connection, where: str, values: Sequence[str | int]
) -> tuple[Delivery, ...]:
    rows = connection.execute(_DELIVERY + where, tuple(values))
    return tuple(_delivery(row) for row in rows)


def _delivery(row: tuple[int, str, int, int, int, str]) -> Delivery:
    number, state, created_us, not_before_us, attempts, body = row
    return replace(
        codec.decode(codec.DELIVERY, body, f"delivery {number}"),
        id=number,
        state=DeliveryState(state),
        created=codec.from_span_us(created_us),
        not_before=codec.from_span_us(not_before_us),
        attempts=attempts,
    )


def _attempt(row: tuple[int, int, int, int, str]) -> AttemptRecord:
    delivery, number, at_us, watched_us, body = row
    return AttemptRecord(
        delivery=delivery,
        number=number,
        at=Moment(at=codec.from_moment_us(at_us), watched=codec.from_span_us(watched_us)),
        result=codec.decode(codec.RESULT, body, f"an attempt of delivery {delivery}"),
    )
