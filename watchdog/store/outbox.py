"""T2's and T3's tables: the outbox, its attempts, the ledger, the planner's mark; and pruning.

Functions of an open transaction. A row is known by its id, which the engine may have given it while
nothing could be stored, or by (channel, incident, kind, moment of the decision).
"""

import sqlite3
from dataclasses import replace
from datetime import datetime, timedelta

from watchdog.core.moments import Moment
from watchdog.core.notifications import Answer, Delivery, DeliveryResult, DeliveryState, LedgerEntry
from watchdog.ports import AttemptCommit, PlanCommit
from watchdog.store import codec, queries, slots

INTERRUPTED = DeliveryResult(
    answer=Answer.UNKNOWN, detail="the watchdog stopped before the answer came: it may have arrived"
)
KEEP_INCIDENTS = timedelta(days=30)  # after they closed
KEEP_FINISHED = timedelta(days=7)  # outbox rows and planned transitions, after the decision

_INSERT = """
    INSERT INTO outbox
        (id, channel, incident, kind, decided_us, state, created_us, not_before_us, attempts, body)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (channel, incident, kind, decided_us) DO NOTHING
"""
_UPDATE = "UPDATE outbox SET state = ?, created_us = ?, not_before_us = ?, attempts = ?, body = ? "
_ATTEMPT = """
    INSERT OR IGNORE INTO attempts
        (delivery, number, at_us, watched_us, answer, code, body)
    VALUES (?, ?, ?, ?, ?, ?, ?)
"""
_PRUNE = (
    "DELETE FROM transitions WHERE seq <= :mark AND at_us < :finished",
    # Of an open incident the messages that opened and raised it stay; reminders and updates go.
    """
    DELETE FROM outbox
    WHERE state IN ('done', 'dead', 'superseded') AND decided_us < :finished AND NOT (
        state <> 'superseded' AND kind IN ('first', 'combined', 'escalation')
        AND EXISTS (SELECT 1 FROM incidents WHERE id = outbox.incident AND closed_us IS NULL)
    )
    """,
    """
    DELETE FROM incidents
    WHERE closed_us < :incidents
        AND id NOT IN (SELECT incident FROM outbox WHERE state IN ('pending', 'inflight'))
        AND id NOT IN (SELECT incident FROM transitions WHERE seq > :mark)
    """,
    "DELETE FROM ledger WHERE told_us < :incidents AND incident NOT IN (SELECT id FROM incidents)",
)

Key = tuple[str, str, str, int]


def write_plan(connection: sqlite3.Connection, commit: PlanCommit) -> tuple[Delivery, ...]:
    """Write what the planner decided; return the rows with their ids.

    A row that is already there is returned as it stands, so that planning twice sends once.
    """
    rows = tuple(_append(connection, delivery) for delivery in commit.deliveries)
    connection.executemany(
        "UPDATE outbox SET state = 'superseded' WHERE id = ? AND state = 'pending'",
        ((number,) for number in commit.superseded),
    )
    mark = max(commit.mark, queries.mark(connection))
    connection.execute("INSERT OR REPLACE INTO meta (name, value) VALUES ('mark', ?)", (mark,))
    return rows


def write_start(connection: sqlite3.Connection, delivery: Delivery) -> None:
    """Mark a row as in flight."""
    _put(connection, replace(delivery, state=DeliveryState.INFLIGHT))


def write_attempt(connection: sqlite3.Connection, commit: AttemptCommit) -> None:
    """Write one attempt's end, the ledger if the channel was told, and what is owed to be said of it."""
    row = _put(connection, commit.delivery)
    _append_attempt(connection, row, commit.delivery.attempts, commit.at, commit.result)
    if commit.ledger is not None:
        _put_ledger(connection, commit.ledger)
    slots.put_memory(connection, commit.memory)


def interrupted(delivery: Delivery) -> Delivery:
    """Return a row that was in flight when the process ended as it must be taken up again."""
    return replace(
        delivery,
        state=DeliveryState.PENDING,
        attempts=delivery.attempts + 1,
        last_result=INTERRUPTED,
        notification=replace(delivery.notification, maybe_repeat=True),
    )


def write_interrupted(connection: sqlite3.Connection, delivery: Delivery, moment: Moment) -> None:
    """Write a row that `interrupted` returned; `moment`: the last one known to have been watched."""
    _put(connection, delivery)
    _append_attempt(connection, delivery.id, delivery.attempts, moment, INTERRUPTED)


def prune(connection: sqlite3.Connection, now: datetime) -> None:
    """Drop by age what neither a decision nor a reader needs any more."""
    bounds = {
        "mark": queries.mark(connection),
        "finished": codec.moment_us(now - KEEP_FINISHED),
        "incidents": codec.moment_us(now - KEEP_INCIDENTS),
    }
    for statement in _PRUNE:
        connection.execute(statement, bounds)


def _append(connection: sqlite3.Connection, delivery: Delivery) -> Delivery:
    key = _key(delivery)
    done = connection.execute(_INSERT, (delivery.id or None, *key, *_columns(delivery)))
    if done.rowcount == 0:
        return queries.delivery_by_key(connection, key)
    assert done.lastrowid is not None
    return replace(delivery, id=done.lastrowid)


def _put(connection: sqlite3.Connection, delivery: Delivery) -> int:
    columns = _columns(delivery)
    if delivery.id > 0 and connection.execute(_UPDATE + "WHERE id = ?", (*columns, delivery.id)).rowcount:
        return delivery.id
    key = _key(delivery)
    where = "WHERE channel = ? AND incident = ? AND kind = ? AND decided_us = ?"
    if not connection.execute(_UPDATE + where, (*columns, *key)).rowcount:
        connection.execute(_INSERT, (delivery.id or None, *key, *columns))
    return queries.delivery_by_key(connection, key).id


def _key(delivery: Delivery) -> Key:
    told = delivery.notification
    return (
        codec.clean(told.channel),
        codec.clean(told.incident.id),
        told.kind.value,
        codec.moment_us(told.decided_at),
    )


def _columns(delivery: Delivery) -> tuple[str, int, int, int, str]:
    return (
        delivery.state.value,
        codec.span_us(delivery.created),
        codec.span_us(delivery.not_before),
        delivery.attempts,
        codec.encode(delivery),
    )


def _append_attempt(
    connection: sqlite3.Connection, row: int, number: int, at: Moment, result: DeliveryResult
) -> None:
    times = (codec.moment_us(at.at), codec.span_us(at.watched))
    texts = (result.answer.value, codec.clean(result.code), codec.encode(result))
    connection.execute(_ATTEMPT, (row, number, *times, *texts))


def _put_ledger(connection: sqlite3.Connection, entry: LedgerEntry) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO ledger (incident, channel, told_us, body) VALUES (?, ?, ?, ?)",
        (
            codec.clean(entry.incident),
            codec.clean(entry.channel),
            codec.moment_us(entry.told_at),
            codec.encode(entry),
        ),
    )
