"""Deliberate faults, each of which the tests must catch: every one would lie, nag or stay silent.

Each is applied to a copy of the package, and the named tests are run against the copy in a process
of their own. A text that is no longer found, a copy that is not the one imported, and a fault that
breaks more than the behaviour (so that nothing can be imported) all fail here.
"""

import compileall
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

import watchdog

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path(watchdog.__file__).parent
AT_ONCE = 2


@dataclass(frozen=True)
class Fault:
    """One fault: what is written instead of what, what users would notice, which tests must see it."""

    file: str
    old: str
    new: str
    harm: str
    tests: str

    @property
    def id(self) -> str:
        return f"{Path(self.file).stem}: {self.harm}"


LIFECYCLE = "tests/core/test_lifecycle.py"
PLANNING = "tests/core/test_planning.py"
BACKOFF = "tests/core/test_backoff.py"
READING = "tests/core/test_reading.py"
STORE = "tests/contracts/test_store_contract.py"

FAULTS = (
    Fault(
        "core/lifecycle.py",
        "if alert.held < slot.hold:",
        "if alert.held <= slot.hold:",
        "a rule fires a slot after its `for` has passed",
        LIFECYCLE,
    ),
    Fault(
        "core/lifecycle.py",
        "    if sight.outcome in _BLOCKED:\n        return alert\n",
        "    if sight.outcome in _BLOCKED:\n        return CloseReason.RECOVERED\n",
        "an outage of the source is told as a recovery",
        LIFECYCLE,
    ),
    Fault(
        "core/lifecycle.py",
        "return CloseReason.DATA_GONE if no_data else CloseReason.RECOVERED",
        "return CloseReason.RECOVERED",
        "missing data is told as a recovery",
        LIFECYCLE,
    ),
    Fault(
        "core/lifecycle.py",
        "return min(age, self.tick.run)",
        "return age",
        "the time the watchdog was down completes a `for`",
        LIFECYCLE,
    ),
    Fault(
        "core/lifecycle.py",
        "        missing = _missing(alert, slot.tick.elapsed)\n        if missing >= FIRING_MISSING:",
        "        missing = _missing(alert, slot.tick.elapsed)\n        if missing >= timedelta():",
        "one missed poll ends an incident",
        LIFECYCLE,
    ),
    Fault(
        "core/planning.py",
        "news = case.due and case.changes & {Change.OPENED, Change.ESCALATED}",
        "news = False",
        "what fired and ended before a channel could be told is never told",
        PLANNING,
    ),
    Fault(
        "core/planning.py",
        "return not incident.open and not incident.event and incident.close_reason is not CloseReason.QUIET",
        "return not incident.open",
        "an error line is told to have recovered",
        PLANNING,
    ),
    Fault(
        "core/planning.py",
        "if _lasts(incident) and repeat and silent_for >= repeat:",
        "if _lasts(incident) and repeat and silent_for >= UPDATE_PAUSE:",
        "reminders come every few minutes",
        PLANNING,
    ),
    Fault(
        "core/planning.py",
        "incident.severity.rank >= channel.min_severity.rank",
        "incident.severity.rank > channel.min_severity.rank",
        "the on-call channel hears nothing of what is critical",
        PLANNING,
    ),
    Fault(
        "core/backoff.py",
        "if age >= (MAX_AGE_INFO if info else MAX_AGE):",
        "if age >= MAX_AGE_INFO:",
        "an alert is given up after an hour of a channel's outage",
        BACKOFF,
    ),
    Fault(
        "core/backoff.py",
        "heads.setdefault(row.notification.incident.id, row)",
        "heads[row.notification.incident.id] = row",
        "the end of an incident is told before its beginning",
        BACKOFF,
    ),
    Fault(
        "core/backoff.py",
        "    if result.retry_after is not None:\n        return max(FLOOR",
        "    if result.retry_after is not None and jitter < 0:\n        return max(FLOOR",
        "a service that asks for patience is called again at once",
        BACKOFF,
    ),
    Fault(
        "core/reading.py",
        "start_ns = min(newest, query.end_ns)",
        "start_ns = min(newest + 1, query.end_ns)",
        "lines of the moment at which a page ends are skipped",
        READING,
    ),
    Fault(
        "core/seen.py",
        "if key not in before or shown[key] > more.get(key, 1):",
        "if key not in before and shown[key] == 1:",
        "equal lines of one moment are taken for one",
        READING,
    ),
    Fault(
        "core/reading.py",
        "progress = Progress(floor_ns=at_ns, complete_ns=at_ns, swept_ns=at_ns)",
        "progress = Progress(floor_ns=1, complete_ns=at_ns, swept_ns=at_ns)",
        "the first start tells of old errors",
        READING,
    ),
    Fault(
        "core/reading.py",
        "min(new_lines.times[-1], limit)",
        "new_lines.times[-1]",
        "the cursor passes lines that were not read",
        READING,
    ),
    Fault(
        "core/schedule.py",
        "return self._broken(reading, Break.GAP, timedelta(), shift)",
        "return self._broken(reading, Break.GAP, passed, shift)",
        "a stopped process ages reminders and absences",
        "tests/core/test_schedule.py",
    ),
    Fault(
        "core/tracking.py",
        "MISSES_TO_VANISH = 2",
        "MISSES_TO_VANISH = 1",
        "one list without it and a running task is called gone",
        "tests/engine/test_intake.py tests/core/test_tracking.py",
    ),
    Fault(
        "core/blindness.py",
        "if _same_outage(level, state.key, mates):",
        "if False:",
        "one outage is told metric by metric",
        "tests/core/test_blindness.py",
    ),
    Fault(
        "core/health.py",
        "return unnamed or [state for state in asked if state.last_good is not None] or asked",
        "return unnamed or asked",
        "a metric this cloud does not serve keeps pods that left from retiring",
        "tests/core/test_health.py",
    ),
    Fault(
        "engine/intake.py",
        "if before is not probe and (before.failure is None or probe.failure is not None):",
        "if True:",
        "a good answer hides the failure before it in the same slot",
        "tests/engine/test_intake.py",
    ),
    Fault(
        "engine/collector.py",
        "if key not in self._asking and self._pace(key, now).due <= now:",
        "if self._pace(key, now).due <= now:",
        "a hanging cloud is asked the same again and again",
        "tests/engine/test_collector.py",
    ),
    Fault(
        "engine/journal.py",
        "self._slot = commit if self._slot is None else merge(self._slot, commit)",
        "self._slot = commit",
        "what was decided while the disk was full is lost at the next start",
        "tests/engine/test_journal.py",
    ),
    Fault(
        "engine/journal.py",
        "self._seq += len(transitions)",
        "self._seq += 0",
        "two decisions have one number: the second is never told",
        "tests/engine/test_journal.py",
    ),
    Fault(
        "engine/relay.py",
        "await asyncio.shield(attempt)",
        "await attempt",
        "each stop repeats the message that is on its way",
        "tests/engine/test_relay.py",
    ),
    Fault(
        "engine/relay.py",
        "return min(max(max(at, rest) - self.moment().watched, SHORTEST_WAIT), LONGEST_WAIT)",
        "return SHORTEST_WAIT * 100",
        "a channel that waits looks every second",
        "tests/engine/test_relay.py",
    ),
    Fault(
        "store/outbox.py",
        "notification=replace(delivery.notification, maybe_repeat=True),",
        "notification=delivery.notification,",
        "a message that may be a repetition does not say so",
        STORE,
    ),
    Fault(
        "store/outbox.py",
        "mark = max(commit.mark, queries.mark(connection))",
        "mark = commit.mark",
        "a decision is planned anew and told twice",
        STORE,
    ),
    Fault(
        "store/queries.py",
        "UNION SELECT incident FROM outbox WHERE state IN ('pending', 'inflight')",
        "UNION SELECT '' ",
        "the end of an incident that waited for its channel is lost at a restart",
        STORE,
    ),
    Fault(
        "store/slots.py",
        "    _drop_memory(connection, commit.dropped_memory)\n    put_memory(connection, commit.memory)\n",
        "    put_memory(connection, commit.memory)\n    _drop_memory(connection, commit.dropped_memory)\n",
        "what was said once is said again after each restart",
        STORE,
    ),
)


WHERE = """
import watchdog


def test_where() -> None:
    assert watchdog.__file__.startswith({folder!r})
"""


@dataclass(frozen=True)
class Verdict:
    """What came of running tests against a copy."""

    code: int
    output: str

    @property
    def failed(self) -> list[str]:
        return [line for line in self.output.splitlines() if line.startswith("FAILED ")]


def run(folder: Path, tests: str) -> Verdict:
    """Run tests against the package in a folder, and make sure that it is the one imported."""
    where = folder / "test_where.py"
    where.write_text(WHERE.format(folder=str(folder)))
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-x", "-rf", "--tb=no", "-p", "no:cacheprovider"]
    environment = {
        **os.environ,
        "PYTHONPATH": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # two thirds of a start are plugins that nobody needs here
    }
    try:
        done = subprocess.run(
            [*command, "-p", "pytest_asyncio.plugin", "-p", "pytest_timeout", str(where), *tests.split()],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
        )
    except subprocess.TimeoutExpired:
        return Verdict(124, "took too long")
    return Verdict(done.returncode, done.stdout + done.stderr)


def mutate(pristine: Path, folder: Path, fault: Fault) -> None:
    """Copy the package (its compiled files too, which stay valid but for one) and write the fault into it."""
    shutil.copytree(pristine, folder)
    path = folder / "watchdog" / fault.file
    text = path.read_text(encoding="utf-8")
    assert text.count(fault.old) == 1, f"{fault.file} has {text.count(fault.old)} times: {fault.old!r}"
    path.write_text(text.replace(fault.old, fault.new), encoding="utf-8")
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
        compiled.unlink()


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[Fault | None, Verdict]]:
    """The verdict on every fault, and on the package as it is (None)."""
    base = tmp_path_factory.mktemp("mutations")
    pristine = base / "pristine"
    shutil.copytree(PACKAGE, pristine / "watchdog", ignore=shutil.ignore_patterns("__pycache__", "demo"))
    compileall.compile_dir(pristine, quiet=1, workers=AT_ONCE)

    def judged(number: int, fault: Fault | None) -> Verdict:
        folder = base / f"copy-{number}"
        if fault is None:
            shutil.copytree(pristine, folder)
            verdict = run(folder, " ".join(sorted({test for one in FAULTS for test in one.tests.split()})))
        else:
            mutate(pristine, folder, fault)
            verdict = run(folder, fault.tests)
        shutil.rmtree(folder)
        return verdict

    wanted = (None, *FAULTS)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield dict(zip(wanted, pool.map(judged, range(len(wanted)), wanted), strict=True))


@pytest.mark.timeout(600)
def test_the_package_as_it_is_passes(verdicts: Mapping[Fault | None, Verdict]) -> None:
    assert verdicts[None].code == 0, verdicts[None].output[-2000:]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.id)
def test_a_fault_is_caught(fault: Fault, verdicts: Mapping[Fault | None, Verdict]) -> None:
    verdict = verdicts[fault]
    assert verdict.code == 1, f"not caught by {fault.tests}: {verdict.output[-2000:]}"
    assert verdict.failed
    assert not any("test_where" in line for line in verdict.failed)


def test_there_are_many_of_them_and_none_twice() -> None:
    assert len({(fault.file, fault.new) for fault in FAULTS}) == len(FAULTS) >= 20
