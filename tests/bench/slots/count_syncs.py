"""How often a slot waits for the disk: counts fsync and fdatasync of real slots with strace.

    python tests/bench/slots/count_syncs.py

Runs itself under `strace -f`. Slots in which nothing happens, one in which a thousand alerts begin, and some
that go on with them; the plan (T2) of the incidents is stored as well. Fails above two a slot on average, or
if the thousand alerts take more than two commits.
"""

import re
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from fleet import Fleet, above_zero

SLOTS = 20  # of each kind
ALERTS = 1_000
MARK = "count-syncs-mark"  # what is opened between two kinds, to be seen in the trace


def mark(name: str) -> None:
    Path(f"/{MARK}/{name}").exists()


def work() -> None:
    """Run the slots; each kind begins with a mark."""
    with tempfile.TemporaryDirectory() as folder:
        fleet = Fleet(Path(folder), ALERTS, per_task=100, points=12, rules=[above_zero()])
        alerts = fleet.world.ruleset
        fleet.world.ruleset = replace(alerts, rules=())
        fleet.slot()
        mark("quiet")
        for _ in range(SLOTS):
            fleet.slot()
            fleet.plan()
        fleet.world.ruleset = alerts
        mark("begin")
        fleet.slot()
        fleet.plan()
        assert len(fleet.commit.alerts) == ALERTS
        mark("going-on")
        for _ in range(SLOTS):
            fleet.slot()
            fleet.plan()
        assert len(fleet.commit.alerts) == ALERTS
        mark("end")
        fleet.store.close()


def main() -> None:
    if "--work" in sys.argv:
        work()
        return
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace"
        calls = "trace=fsync,fdatasync,stat,newfstatat,statx"
        command = ["strace", "-f", "-qq", "-e", calls, "-o", trace, sys.executable, __file__, "--work"]
        subprocess.run(command, check=True, timeout=300)
        counts: dict[str, int] = {}
        kind = ""
        for line in trace.read_text(encoding="utf-8", errors="replace").splitlines():
            if found := re.search(rf"/{MARK}/([a-z-]+)", line):
                kind = found[1]
            elif re.search(r"\bf(data)?sync\(", line):
                counts[kind] = counts.get(kind, 0) + 1
    quiet, begin, on = counts.get("quiet", 0), counts.get("begin", 0), counts.get("going-on", 0)
    print(f"syncs: {quiet / SLOTS:.2f} a quiet slot; {begin} for {ALERTS} alerts that begin in one slot;")
    print(f"       {on / SLOTS:.2f} a slot in which {ALERTS} alerts go on")
    if not 0 < quiet <= 2 * SLOTS or not 0 < on <= 2 * SLOTS or not 0 < begin <= 4:
        sys.exit("a slot waits for the disk more often than twice")


if __name__ == "__main__":
    main()
