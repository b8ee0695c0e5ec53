"""Floods: distinct error lines and labelsets without end. Bounded, and counted (K5, K6)."""

import os
import tracemalloc
from datetime import UTC, datetime, timedelta

import numpy as np

from watchdog.core.conditions.kinds import Aggregate, By, Comparison, LogEvent, LogMatch, Threshold
from watchdog.core.conditions.log import KINDS_A_SLOT, log_occurrences
from watchdog.core.durations import to_ns
from watchdog.core.events import FINGERPRINTS_KEPT, advance_events
from watchdog.core.incidents import Book, apply
from watchdog.core.lifecycle import MOST_ALERTS, advance, left_out
from watchdog.core.logs import LogLine
from watchdog.core.membership import Verdicts
from watchdog.core.moments import Moment, Tick
from watchdog.core.outcomes import Evaluation, Evidence, Outcome
from watchdog.core.rules import Rule
from watchdog.core.scanning import LogScanner
from watchdog.core.tasks import Status, Task, TaskState
from watchdog.store.codec import encode
from watchdog.text.patterns import Re2Engine

T0 = datetime(2026, 11, 30, 2, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
TASK = Task(key="s/1", source="s", id="1", name="flood")
ENGINE = Re2Engine()
LINES = int(os.environ.get("FLOOD_LINES", "10000"))  # by hand: a million, within the same bounds
PAGE = LINES // 20


def tick(slot: int) -> Tick:
    passed = slot * MINUTE
    return Tick(moment=Moment(at=T0 + passed, watched=passed), elapsed=MINUTE, run=passed, interval=MINUTE)


def word(number: int) -> str:
    """A text of letters only: numbers would be masked, and all lines one kind."""
    letters = []
    for _ in range(6):
        number, digit = divmod(number, 26)
        letters.append(chr(97 + digit))
    return "".join(letters)


def test_a_flood_of_distinct_lines_is_one_incident_of_bounded_size() -> None:
    rule = Rule(name="errors", condition=LogEvent(lines=LogMatch(match=(ENGINE.compile("ERROR"),))))
    scanner = LogScanner([rule], ENGINE)
    book = Book()
    sizes = []
    tracemalloc.start()
    for slot in range(LINES // PAGE):
        base = to_ns(T0 + slot * MINUTE)
        texts = (f"ERROR cannot open {word(slot * PAGE + n)}" for n in range(PAGE))
        lines = [LogLine(time_ns=base + n, pod="p0", text=text) for n, text in enumerate(texts)]
        hits = scanner.scan(TASK, lines).of("errors")
        assert hits is not None
        book = apply(
            book, advance_events(rule, log_occurrences(rule, TASK, hits, tick(slot).at), book, tick(slot))
        )
        del lines, hits
        sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    (incident,) = book.open.values()
    assert incident.count == LINES
    assert len(incident.fingerprints) == FINGERPRINTS_KEPT
    assert incident.evicted == 20 * KINDS_A_SLOT - FINGERPRINTS_KEPT
    assert len(encode(incident)) < 50_000
    assert sizes[-1] < sizes[1] + 1_000_000


def test_a_bomb_of_labelsets_is_followed_up_to_a_bound_and_counted() -> None:
    condition = Threshold(
        metric="gpu",
        aggregate=Aggregate.LAST,
        window=timedelta(),
        comparison=Comparison(above=False, threshold=0.1),
        by=By.POD,
    )
    rule = Rule(name="idle", condition=condition)
    count = 5 * MOST_ALERTS
    evaluation = Evaluation(
        rule="idle",
        labels=tuple(TASK.identity.plus({"pod": f"p{number}"}) for number in range(count)),
        outcome=np.full((count, 1), int(Outcome.TRUE), np.int8),
        value=np.full((count, 1), 0.01),
        since_ns=np.zeros((count, 1), np.int64),
        explain=lambda _g, _t: Evidence(metric="gpu"),
    )
    tasks = {TASK.key: TaskState(task=TASK, status=Status.RUNNING)}
    book = Book()
    for slot in range(3):
        book = apply(book, advance(Verdicts(rule, evaluation, 0, tick(slot), tasks), book))
        assert len(book.all_alerts()) == MOST_ALERTS
    assert left_out(rule, evaluation, 0, book) == count - MOST_ALERTS
    (incident,) = book.open.values()
    assert len(incident.members) == MOST_ALERTS
