"""Migrations: append-only, whole or not at all, and old files open with what they held."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from watchdog.core.alerts import Change, Transition
from watchdog.core.moments import Moment
from watchdog.core.notifications import Answer, DeliveryState
from watchdog.core.tasks import Status
from watchdog.store import schema
from watchdog.store.sqlite import SqliteStore

V1 = Path(__file__).parent / "frozen" / "v1.sql"
T0 = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        yield made


@pytest.fixture
def old_file(path: Path) -> Path:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(V1.read_text(encoding="utf-8"))
    return path


def test_a_file_of_version_1_opens_with_all_it_held_and_defaults_for_the_rest(old_file: Path) -> None:
    store = SqliteStore.open(old_file, started=T0)
    stored = store.load()
    store.close()

    assert stored.moment == Moment(at=T0 + timedelta(microseconds=123_456), watched=timedelta(hours=1))
    assert stored.mark == 3
    assert stored.memory == {"fact": "值"}
    assert [(alert.id, alert.labels["pod"], alert.held) for alert in stored.alerts] == [
        ("a1", "p-0", timedelta())
    ]
    assert [(found.id, found.repeat, found.members) for found in stored.incidents] == [
        ("aaaa", timedelta(hours=4), ())
    ]
    assert stored.transitions == (Transition(incident="aaaa", change=Change.GREW, at=T0, seq=4),)
    (row,) = stored.outbox
    assert (row.id, row.state, row.attempts) == (7, DeliveryState.PENDING, 1)
    assert (row.not_before, row.notification.incident.id) == (timedelta(minutes=61), "aaaa")
    assert row.last_result is not None
    assert row.last_result.answer is Answer.RETRY
    assert [(entry.channel, entry.reminders) for entry in stored.ledger] == [("oncall", 0)]
    assert [(state.task.name, state.status) for state in stored.tasks] == [("llama", Status.UNKNOWN)]
    assert [probe.failures for probe in stored.probes] == [0]
    (stream,) = stored.streams
    assert stream.cursor_ns == stream.newest_ns["p-0"] == 1_796_025_600_123_456_789
    assert stream.seen == {5: (1_796_025_600_123_456_789, 2), 2**64 - 1: (6, 1)}
    assert [(sample.metric, sample.value) for sample in stored.samples] == [("log:errors", 1.0)]


def test_a_released_migration_is_not_edited() -> None:
    assert schema.migrations()[0] in V1.read_text(encoding="utf-8")


def test_each_step_runs_once_and_in_order(connection: sqlite3.Connection) -> None:
    first = "CREATE TABLE t (a); -- a comment; with a semicolon\nINSERT INTO t VALUES (1);\n"
    second = "ALTER TABLE t ADD COLUMN b DEFAULT 2;\n"

    schema.migrate(connection, (first,))
    schema.migrate(connection, (first, second))
    schema.migrate(connection, (first, second))

    assert schema.version(connection) == 2
    assert connection.execute("SELECT a, b FROM t").fetchall() == [(1, 2)]


def test_a_step_that_fails_leaves_the_version_before_it(connection: sqlite3.Connection) -> None:
    first = "CREATE TABLE t (a);\n"

    with pytest.raises(sqlite3.OperationalError):
        schema.migrate(connection, (first, "CREATE TABLE u (a);\nCREATE TABLE t (a);\n"))

    assert schema.version(connection) == 1
    assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("t",)]
