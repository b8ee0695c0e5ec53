"""The state file as a file: modes, settings, refusals, locks, failing and growing disks."""

import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from watchdog.core.moments import Moment
from watchdog.core.notifications import Delivery, DeliveryState, MessageKind, Notification
from watchdog.errors import StoreError
from watchdog.ports import PlanCommit, SlotCommit
from watchdog.store.reader import SqliteReader
from watchdog.store.sqlite import SqliteStore

Burst = Callable[[int, int], SlotCommit]

HOLD_THE_FILE = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.readline()
connection.execute("ROLLBACK")
"""

# A file size limit is a full disk that needs no privileges: the kernel refuses to let a file grow.
FILL_THE_DISK = """
import resource, sys
from datetime import timedelta
from pathlib import Path
from watchdog.core.durations import from_ns
from watchdog.core.moments import Moment
from watchdog.errors import StoreError
from watchdog.ports import SlotCommit
from watchdog.store.sqlite import SqliteStore

path = Path(sys.argv[1])
store = SqliteStore.open(path, started=from_ns(0))

def commit(number):
    moment = Moment(at=from_ns(0), watched=timedelta(seconds=number))
    store.commit_slot(SlotCommit(moment=moment, memory={f"fact {number}": "x" * 20_000}))

hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, hard))
stored, refusals = 0, []
while len(refusals) < 3:
    try:
        commit(stored)
        stored += 1
    except StoreError as error:
        refusals.append(str(error))
assert len(store.load().memory) == stored
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
commit(stored)
print(stored + 1, "|", refusals[0])
"""

# As full as a disk can be from the start: not even the WAL's shared index finds room.
START_ON_A_FULL_DISK = """
import resource, sys
from datetime import timedelta
from pathlib import Path
from watchdog.core.durations import from_ns
from watchdog.core.moments import Moment
from watchdog.errors import StoreError
from watchdog.ports import SlotCommit
from watchdog.store.reader import SqliteReader
from watchdog.store.sqlite import SqliteStore

path = Path(sys.argv[1])

def commit(number):
    moment = Moment(at=from_ns(0), watched=timedelta(seconds=number))
    store.commit_slot(SlotCommit(moment=moment, memory={f"fact {number}": "kept"}))

hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
store = SqliteStore.open(path, started=from_ns(0))
assert len(store.load().memory) == 1
try:
    commit(1)
except StoreError as error:
    print(error)
assert len(store.load().memory) == 1
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
commit(2)
commit(3)
reader = SqliteReader.open(path)  # is let in again, beside the writer
assert set(reader.load().memory) == {"fact 0", "fact 2", "fact 3"}
reader.close()
store.close()
"""


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_nobody_else_can_read_the_state(store: SqliteStore, path: Path, burst: Burst) -> None:
    store.commit_slot(burst(0, 1))

    assert mode(path.parent) == 0o700
    names = {file.name: mode(file) for file in path.parent.iterdir()}
    assert names == dict.fromkeys(
        ("watchdog.db", "watchdog.db-wal", "watchdog.db-shm", "watchdog.db.lock"), 0o600
    )


def test_a_file_that_others_could_read_is_closed_to_them(path: Path, t0: datetime) -> None:
    SqliteStore.open(path, started=t0).close()
    path.chmod(0o644)

    SqliteStore.open(path, started=t0).close()

    assert mode(path) == 0o600


def test_a_commit_survives_power_loss_by_its_settings(store: SqliteStore) -> None:
    with store._database.plain() as connection:
        found = {
            name: connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "foreign_keys", "auto_vacuum", "busy_timeout")
        }

    assert found == {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "auto_vacuum": 2,
        "busy_timeout": 20,
    }


def test_a_file_of_a_newer_version_is_refused_and_left_alone(path: Path, t0: datetime) -> None:
    SqliteStore.open(path, started=t0).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = path.read_bytes()

    with pytest.raises(StoreError, match=r"written by a newer watchdog \(schema 99, this one knows \d+\)"):
        SqliteStore.open(path, started=t0)
    with pytest.raises(StoreError, match="newer watchdog"):
        SqliteReader.open(path)

    assert path.read_bytes() == before


def test_a_database_of_another_program_is_refused(path: Path, t0: datetime) -> None:
    path.parent.mkdir()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()

    with pytest.raises(StoreError, match="of another program"):
        SqliteStore.open(path, started=t0)


@pytest.mark.parametrize("damage", ["text", "hole", "cut", "page"])
def test_a_damaged_file_is_refused_in_one_line_and_never_deleted(
    path: Path, t0: datetime, burst: Burst, damage: str
) -> None:
    store = SqliteStore.open(path, started=t0)
    store.commit_slot(burst(0, 300))
    store.close()
    whole = path.read_bytes()
    broken = {
        "text": b"this is no database\n" * 500,
        "hole": whole[:8192] + bytes(len(whole) - 16_384) + whole[-8192:],
        "cut": whole[: len(whole) // 2],
        "page": _without_the_page_of(b"alert-incident-150", whole),
    }[damage]
    path.write_bytes(broken)

    with pytest.raises(StoreError, match=r"is damaged.*move the file away") as refusal:
        SqliteStore.open(path, started=t0)

    assert "\n" not in str(refusal.value)
    assert path.read_bytes() == broken
    path.write_bytes(whole)
    SqliteStore.open(path, started=t0).close()  # the refusal let go of the lock


def _without_the_page_of(text: bytes, whole: bytes) -> bytes:
    start = whole.index(text) // 4096 * 4096
    return whole[:start] + bytes(4096) + whole[start + 4096 :]


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path, t0: datetime) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(StoreError, match="cannot make the folder"):
        SqliteStore.open(tmp_path / "file" / "state.db", started=t0)


def test_a_folder_in_place_of_the_file_is_said(path: Path, t0: datetime) -> None:
    path.mkdir(parents=True)

    with pytest.raises(StoreError, match="cannot open the state file"):
        SqliteStore.open(path, started=t0)


def test_a_link_that_leads_to_itself_is_said(path: Path, t0: datetime) -> None:
    path.parent.mkdir()
    path.symlink_to(path.name)

    with pytest.raises(StoreError, match="symbolic links"):
        SqliteStore.open(path, started=t0)
    with pytest.raises(StoreError, match="there is no state file"):
        SqliteReader.open(path)


def test_a_file_removed_while_open_is_noticed(store: SqliteStore, path: Path, burst: Burst) -> None:
    store.commit_slot(burst(0, 1))
    aside = path.with_name("aside")
    path.rename(aside)

    with pytest.raises(StoreError, match="removed or replaced"):
        store.commit_slot(burst(1, 1))
    aside.rename(path)
    store.commit_slot(burst(2, 1))

    assert len(store.load().alerts) == 2


def test_a_lock_of_another_process_is_said_and_nothing_is_lost(
    store: SqliteStore, path: Path, burst: Burst
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD_THE_FILE, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(StoreError, match="locked by another process"):
            store.commit_slot(burst(0, 2))
        other.communicate("go\n")

    store.commit_slot(burst(0, 2))
    assert len(store.load().transitions) == 2


def test_a_short_lock_is_waited_for(path: Path, t0: datetime, burst: Burst) -> None:
    patient = SqliteStore.open(path, started=t0, busy=timedelta(seconds=60))
    with subprocess.Popen(
        [sys.executable, "-c", HOLD_THE_FILE, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        writer = threading.Thread(target=patient.commit_slot, args=(burst(0, 1),))
        writer.start()
        other.communicate("go\n")
        writer.join()

    assert len(patient.load().alerts) == 1
    patient.close()


def test_a_full_disk_is_said_and_writing_goes_on_when_space_returns(path: Path, t0: datetime) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FILL_THE_DISK, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    stored, refusal = done.stdout.split(" | ")

    assert int(stored) > 3
    assert "check the disk, its quota and the file size limit" in refusal
    store = SqliteStore.open(path, started=t0)
    assert set(store.load().memory) == {f"fact {number}" for number in range(int(stored))}
    store.close()


def test_a_start_on_a_full_disk_reads_everything_and_writes_when_space_returns(
    path: Path, t0: datetime
) -> None:
    store = SqliteStore.open(path, started=t0)
    store.commit_slot(SlotCommit(moment=Moment(at=t0, watched=timedelta()), memory={"fact 0": "kept"}))
    store.close()

    done = subprocess.run(
        [sys.executable, "-c", START_ON_A_FULL_DISK, str(path)], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert "check the disk, its quota and the file size limit" in done.stdout


def test_a_file_that_may_not_grow_is_called_full(store: SqliteStore, burst: Burst) -> None:
    with store._database.plain() as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")

    with pytest.raises(StoreError, match="the disk is full: free some space"):
        store.commit_slot(burst(0, 500))

    with store._database.plain() as connection:
        connection.execute("PRAGMA max_page_count = 1000000")
    store.commit_slot(burst(0, 500))
    assert len(store.load().alerts) == 500


def test_months_of_incidents_leave_the_file_flat(
    store: SqliteStore, path: Path, t0: datetime, burst: Burst
) -> None:
    sizes = []
    for month in range(4):
        minutes = month * 50_000
        for part in range(10):
            _live_through(store, burst(minutes + part * 200, 200))
        store.prune(t0 + timedelta(minutes=minutes, days=31))
        sizes.append(sum(file.stat().st_size for file in path.parent.iterdir()))

    assert sizes[-1] < 1.5 * sizes[0]


def test_space_that_a_storm_took_is_given_back(
    store: SqliteStore, path: Path, t0: datetime, burst: Burst
) -> None:
    _live_through(store, burst(0, 2_000))
    store.prune(t0)
    full = path.stat().st_size

    store.prune(t0 + timedelta(days=60))

    assert path.stat().st_size < full / 4


def _live_through(store: SqliteStore, commit: SlotCommit) -> None:
    """Open, tell and close every incident of a burst."""
    changes = store.commit_slot(commit)
    rows = tuple(
        Delivery(
            notification=Notification(
                channel="team", kind=MessageKind.FIRST, incident=incident, decided_at=commit.moment.at
            ),
            created=commit.moment.watched,
            not_before=commit.moment.watched,
            state=DeliveryState.DONE,
        )
        for incident in commit.incidents
    )
    store.commit_plan(PlanCommit(mark=changes[-1].seq, deliveries=rows))
    closed = tuple(replace(incident, closed_at=incident.opened_at) for incident in commit.incidents)
    gone = tuple(alert.id for alert in commit.alerts)
    store.commit_slot(SlotCommit(moment=commit.moment, incidents=closed, dropped_alerts=gone))


def test_a_reader_works_beside_the_daemon_and_cannot_write(
    store: SqliteStore, path: Path, burst: Burst
) -> None:
    store.commit_slot(burst(0, 1))
    reader = SqliteReader.open(path)

    before = len(reader.load().alerts)
    store.commit_slot(burst(1, 1))
    after = len(reader.load().alerts)

    assert (before, after) == (1, 2)
    with pytest.raises(StoreError, match="cannot be written"), reader._database.plain() as connection:
        connection.execute("DELETE FROM alerts")
    reader.close()


def test_a_reader_needs_no_daemon(path: Path, t0: datetime, burst: Burst) -> None:
    store = SqliteStore.open(path, started=t0)
    store.commit_slot(burst(0, 1))
    store.close()

    reader = SqliteReader.open(path)

    assert len(reader.load().alerts) == 1
    reader.close()


def test_a_reader_manages_where_the_folder_takes_no_new_files(path: Path, t0: datetime, burst: Burst) -> None:
    store = SqliteStore.open(path, started=t0)
    store.commit_slot(burst(0, 1))
    store.close()
    path.with_name(path.name + "-shm").mkdir()  # as good as a read-only folder, for root too

    reader = SqliteReader.open(path)

    assert len(reader.load().alerts) == 1
    reader.close()


def test_a_reader_says_what_is_missing(path: Path) -> None:
    with pytest.raises(StoreError, match="there is no state file"):
        SqliteReader.open(path)
    path.parent.mkdir()
    path.touch()
    with pytest.raises(StoreError, match="has not run yet"):
        SqliteReader.open(path)


def test_descriptors_are_all_given_back(path: Path, t0: datetime, burst: Burst) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))

    store = SqliteStore.open(path, started=t0)
    store.commit_slot(burst(0, 1))
    reader = SqliteReader.open(path)
    reader.load()
    reader.close()
    store.close()

    assert len(list(Path("/proc/self/fd").iterdir())) == before
