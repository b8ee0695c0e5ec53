"""A storm of alerts must not cost a disk sync each: one commit against single syncs, same disk, same run."""

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from time import perf_counter

from watchdog.core.alerts import Alert, Change, Incident, Phase, Transition
from watchdog.core.labels import Labels
from watchdog.core.moments import Moment
from watchdog.core.rules import Severity
from watchdog.ports import SlotCommit
from watchdog.store.sqlite import SqliteStore

T0 = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)
ALERTS = 1_000
ROUNDS = 3


def storm(number: int) -> SlotCommit:
    at = T0 + timedelta(minutes=number)
    alerts, incidents = [], []
    for index in range(ALERTS):
        labels = Labels.of(source="alaya", task=f"alaya/{index}", pod=f"pod-{index}", gpu="0")
        alert = Alert(
            id=f"{number}-{index}", rule="idle", labels=labels, phase=Phase.FIRING, since=at, fired_at=at
        )
        alerts.append(alert)
        incidents.append(
            Incident(
                id=alert.id,
                rule="idle",
                labels=labels,
                severity=Severity.CRITICAL,
                event=False,
                opened_at=at,
                since=at,
                updated_at=at,
            )
        )
    return SlotCommit(
        moment=Moment(at=at, watched=timedelta(minutes=number)),
        alerts=tuple(alerts),
        incidents=tuple(incidents),
        transitions=tuple(Transition(incident=i.id, change=Change.OPENED, at=at) for i in incidents),
    )


def seconds(work: Callable[[int], object]) -> float:
    taken = []
    for number in range(ROUNDS):
        start = perf_counter()
        work(number)
        taken.append(perf_counter() - start)
    return median(taken)


def test_a_thousand_alerts_in_one_commit_are_far_cheaper_than_a_thousand_syncs(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    descriptor = os.open(tmp_path / "probe", os.O_RDWR | os.O_CREAT, 0o600)

    def syncs(_: int) -> None:
        for _ in range(ALERTS):
            os.write(descriptor, bytes(4_096))
            os.fdatasync(descriptor)

    store = SqliteStore.open(tmp_path / "state.db", started=T0)
    storms = [storm(number) for number in range(ROUNDS)]

    one_by_one = seconds(syncs)
    burst = seconds(lambda number: store.commit_slot(storms[number]))
    start = perf_counter()
    for alert in storm(ROUNDS).alerts:
        store.commit_slot(SlotCommit(moment=storms[0].moment, alerts=(alert,)))
    singles = perf_counter() - start

    store.close()
    os.close(descriptor)
    record_property("1000 x (4 KiB + fdatasync), s", round(one_by_one, 3))
    record_property("1000 x T1 of one alert, s", round(singles, 3))
    record_property("T1 of 1000 alerts, incidents, transitions, s", round(burst, 3))
    print(f"\n1000 syncs {one_by_one:.3f} s, 1000 commits {singles:.3f} s, one commit of 1000 {burst:.3f} s")
    assert burst < singles  # three rows for each alert beside one: where a sync is nearly free, a third of it


def test_a_slot_in_which_nothing_happens_costs_a_few_syncs(tmp_path: Path) -> None:
    """One of each in turn and the median of both, so that a disk busy with others slows both alike."""
    descriptor = os.open(tmp_path / "probe", os.O_RDWR | os.O_CREAT, 0o600)
    store = SqliteStore.open(tmp_path / "state.db", started=T0)
    syncs, slots = [], []

    for index in range(200):
        start = perf_counter()
        os.write(descriptor, bytes(4_096))
        os.fdatasync(descriptor)
        between = perf_counter()
        at = Moment(at=T0 + timedelta(seconds=index), watched=timedelta(seconds=index))
        store.commit_slot(SlotCommit(moment=at))
        syncs.append(between - start)
        slots.append(perf_counter() - between)

    store.close()
    os.close(descriptor)
    print(f"\none sync {median(syncs) * 1e3:.2f} ms, one empty slot {median(slots) * 1e3:.2f} ms")
    assert median(slots) < 10 * median(syncs) + 0.001  # where a sync is nearly free, the work itself remains
