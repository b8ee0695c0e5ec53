"""The process that the crash tests kill: forks a writer per line it reads, and buries it.

A writer resumes from the state file as the daemon does, then decides, plans and tells one incident
after another, and prints what it was promised: a line per commit that returned.
"""

import os
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from watchdog.core.alerts import Alert, Change, Incident, Phase, Transition
from watchdog.core.durations import from_ns
from watchdog.core.labels import Labels
from watchdog.core.logs import StreamKey, StreamState
from watchdog.core.moments import Moment
from watchdog.core.notifications import (
    Answer,
    Delivery,
    DeliveryResult,
    DeliveryState,
    LedgerEntry,
    MessageKind,
    Notification,
)
from watchdog.core.rules import Severity
from watchdog.ports import AttemptCommit, LogSample, PlanCommit, SlotCommit
from watchdog.store.sqlite import SqliteStore

CHANNELS = ("team", "mail")
OK = DeliveryResult(answer=Answer.OK, code="200")


def promised(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def moment(number: int) -> Moment:
    return Moment(at=from_ns(number * 60 * 10**9), watched=timedelta(minutes=number))


def incident(number: int) -> Incident:
    at = moment(number).at
    labels = Labels.of(source="local", task=f"local/{number}")
    return Incident(
        id=f"i{number}",
        rule="idle",
        labels=labels,
        severity=Severity.WARNING,
        event=False,
        opened_at=at,
        since=at,
        updated_at=at,
        description="x" * 2_000,  # several pages a commit, so that a kill can fall between two writes
    )


def decide(store: SqliteStore, number: int) -> tuple[Transition, ...]:
    opened = incident(number)
    at = moment(number)
    alert = Alert(id=f"a{number}", rule="idle", labels=opened.labels, phase=Phase.FIRING, since=at.at)
    stream = StreamState(
        key=StreamKey(task="local"), cursor_ns=number, seen={number: (number, 1)}, lines=number
    )
    commit = SlotCommit(
        moment=at,
        alerts=(alert,),
        incidents=(opened,),
        transitions=(Transition(incident=opened.id, change=Change.OPENED, at=at.at),),
        streams=(stream,),
        samples=(LogSample(metric="m", labels=Labels(), time_ns=number, value=1.0),),
        memory={"decided": str(number)},
    )
    changes = store.commit_slot(commit)
    promised("T1", number)
    return changes


def plan(store: SqliteStore, changes: tuple[Transition, ...]) -> tuple[Delivery, ...]:
    rows = tuple(
        Delivery(
            notification=Notification(
                channel=channel,
                kind=MessageKind.FIRST,
                incident=incident(int(change.incident[1:])),
                decided_at=change.at,
            ),
            created=timedelta(),
            not_before=timedelta(),
        )
        for change in changes
        for channel in CHANNELS
    )
    stored = store.commit_plan(PlanCommit(mark=max(change.seq for change in changes), deliveries=rows))
    for change in changes:
        promised("T2", change.incident[1:])
    return stored


def tell(store: SqliteStore, row: Delivery) -> None:
    note = row.notification
    number, at = note.incident.id[1:], moment(int(note.incident.id[1:]))
    store.start_attempt(row)
    promised("START", number, note.channel)
    entry = LedgerEntry(
        incident=note.incident.id,
        channel=note.channel,
        kind=note.kind,
        told_at=at.at,
        told_watched=at.watched,
        severity=Severity.WARNING,
    )
    done = replace(row, state=DeliveryState.DONE, attempts=row.attempts + 1, last_result=OK)
    store.commit_attempt(AttemptCommit(delivery=done, result=OK, at=at, ledger=entry))
    promised("T3", number, note.channel)


def write(path: Path, until: int) -> None:
    store = SqliteStore.open(path, started=from_ns(0))
    stored = store.load()
    for row in stored.outbox:
        tell(store, row)
    changes = stored.transitions
    number = int(stored.memory.get("decided", "0"))
    while changes or number < until:
        for row in plan(store, changes) if changes else ():
            tell(store, row)
        number += 1
        changes = decide(store, number) if number <= until else ()
    store.close()


def main() -> None:
    path = Path(sys.argv[1])
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            write(path, int(line))
            os._exit(0)
        promised("PID", child)
        os.waitpid(child, 0)
        promised("BURIED")


if __name__ == "__main__":
    main()
