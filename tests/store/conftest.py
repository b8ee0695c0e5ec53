"""Small commits that the store's tests share."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from watchdog.core.alerts import Alert, Change, Incident, Phase, Transition
from watchdog.core.labels import Labels
from watchdog.core.moments import Moment
from watchdog.core.rules import Severity
from watchdog.ports import SlotCommit
from watchdog.store.sqlite import SqliteStore

T0 = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)


@pytest.fixture
def t0() -> datetime:
    return T0


@pytest.fixture
def burst() -> Callable[[int, int], SlotCommit]:
    """Build a slot with `count` alerts, incidents and transitions, numbered from `first`."""

    def build(first: int, count: int) -> SlotCommit:
        at = T0 + timedelta(minutes=first)
        labels = [
            Labels.of(source="alaya", task="alaya/1", pod=f"pod-{n}") for n in range(first, first + count)
        ]
        ids = [f"incident-{n}" for n in range(first, first + count)]
        return SlotCommit(
            moment=Moment(at=at, watched=timedelta(minutes=first)),
            alerts=tuple(
                Alert(id=f"alert-{key}", rule="idle", labels=own, phase=Phase.FIRING, since=at, incident=key)
                for key, own in zip(ids, labels, strict=True)
            ),
            incidents=tuple(
                Incident(
                    id=key,
                    rule="idle",
                    labels=own,
                    severity=Severity.WARNING,
                    event=False,
                    opened_at=at,
                    since=at,
                    updated_at=at,
                    description="GPU average below 10 % for 1 h",
                )
                for key, own in zip(ids, labels, strict=True)
            ),
            transitions=tuple(Transition(incident=key, change=Change.OPENED, at=at) for key in ids),
        )

    return build


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "watchdog.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore.open(path, started=T0, busy=timedelta(milliseconds=20))
    yield opened
    opened.close()
