"""The incremental lifecycle against an oracle that judges the whole history anew.

The oracle is written from DESIGN §6 alone: it keeps no counters, it looks back over all slots of a
life and adds up watched time. Histories hold restarts (state through the store's own encoding),
gaps, settling slots and uneven slots; two labelsets share one incident.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from watchdog.core.alerts import Change, CloseReason, Phase
from watchdog.core.conditions.kinds import Aggregate, By, Comparison, Threshold
from watchdog.core.durations import to_ns
from watchdog.core.incidents import Book, apply
from watchdog.core.lifecycle import advance
from watchdog.core.membership import Verdicts
from watchdog.core.moments import Moment, Tick
from watchdog.core.outcomes import Evaluation, Evidence, Outcome
from watchdog.core.rules import Level, OnNoData, Rule, Severity
from watchdog.core.tasks import Status, Task, TaskState
from watchdog.core.unchanged import Unchanged
from watchdog.store import codec

T0 = datetime(2026, 3, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
ZERO = timedelta()
TASK = Task(key="s/t", source="s", id="t", name="run")
LABELS = (TASK.identity.plus({"pod": "a"}), TASK.identity.plus({"pod": "b"}))
TASKS = {TASK.key: TaskState(task=TASK, status=Status.RUNNING)}
BLOCKED = (Outcome.THIN, Outcome.ERROR)


@dataclass(frozen=True, kw_only=True)
class Past:
    """One slot as it was: what was seen of each labelset, and how the clocks stood."""

    outcomes: tuple[Outcome, ...]
    age: timedelta  # how long it has been TRUE by the data, if it is
    elapsed: timedelta
    run: timedelta
    at: datetime
    watched: timedelta
    settling: bool
    restart: bool


# The oracle --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Life:
    """One labelset's way from TRUE to its end; numbers are slots."""

    born: int
    fired: int | None = None
    ended: int | None = None
    reason: CloseReason | None = None
    severities: tuple[tuple[int, Severity], ...] = ()  # from firing on


def lives(rule: Rule, history: Sequence[Past], which: int) -> list[Life]:
    seen = [(number, past, _counts_as(rule, past.outcomes[which])) for number, past in enumerate(history)]
    seen = [row for row in seen if not row[1].settling]
    found: list[Life] = []
    position = 0
    while position < len(seen):
        if seen[position][2] is not Outcome.TRUE:
            position += 1
            continue
        life, position = _live(rule, seen, position)
        found.append(life)
    return found


Row = tuple[int, Past, Outcome]


def _counts_as(rule: Rule, outcome: Outcome) -> Outcome:
    fires = outcome is Outcome.NODATA and rule.on_no_data is OnNoData.FIRE
    return Outcome.TRUE if fires else outcome


def _live(rule: Rule, seen: list[Row], start: int) -> tuple[Life, int]:
    born = seen[start][0]
    hold = rule.levels[0].hold if rule.levels else rule.hold
    for now in range(start, len(seen)):
        span = seen[start : now + 1]
        if span[-1][2] is Outcome.TRUE and _true_for(span, pending=True) >= hold:
            return _fire(rule, seen, start, now)
        if now > start and _dies_pending(rule, span):
            return Life(born=born, ended=seen[now][0]), now + 1
    return Life(born=born), len(seen)


def _true_for(span: Sequence[Row], *, pending: bool) -> timedelta:
    """Head start of the first slot, and the watched time of all later ones that count.

    What was waited for may have come between two slots that are TRUE: then it began anew.
    """
    counted = (Outcome.TRUE, Outcome.NODATA) if pending else (Outcome.TRUE,)
    span = span[_anew(span) :] if pending else span
    first = span[0][1]
    return min(first.age, first.run) + sum(
        (past.elapsed for _, past, outcome in span[1:] if outcome in counted), ZERO
    )


def _anew(span: Sequence[Row]) -> int:
    """The last slot that is TRUE from a later moment on than the ones before it."""
    start, since = 0, span[0][1].at - span[0][1].age
    for number, (_, past, outcome) in enumerate(span):
        if outcome is Outcome.TRUE and past.age and past.at - past.age > since:
            start, since = number, past.at - past.age
    return start


def _dies_pending(rule: Rule, span: Sequence[Row]) -> bool:
    last = span[-1][2]
    if last in (Outcome.FALSE, Outcome.BETWEEN):
        return True
    newest_true = max(index for index, row in enumerate(span) if row[2] is Outcome.TRUE)
    after = span[newest_true + 1 :]
    if last in BLOCKED:
        return sum((past.elapsed for _, past, outcome in after if outcome in BLOCKED), ZERO) >= 60 * MINUTE
    if last is Outcome.NODATA:
        return rule.on_no_data is OnNoData.OK or _unbroken(after, Outcome.NODATA) >= 2 * MINUTE
    return False


def _unbroken(span: Sequence[Row], wanted: Outcome) -> timedelta:
    """Watched time from the first to the last of the newest unbroken run; blocked slots stand still."""
    judged = [row for row in span if row[2] not in BLOCKED]
    run: list[Past] = []
    for _, past, outcome in reversed(judged):
        if outcome is not wanted:
            break
        run.append(past)
    return sum((past.elapsed for past in run[:-1]), ZERO)


def _fire(rule: Rule, seen: list[Row], start: int, fired: int) -> tuple[Life, int]:
    severities: list[tuple[int, Severity]] = []
    for now in range(fired, len(seen)):
        number, _, outcome = seen[now]
        if outcome is Outcome.TRUE:
            severities.append((number, _level(rule, _held_while_firing(seen, start, fired, now))))
        reason = _closes(rule, seen[fired : now + 1])
        if reason is not None:
            life = Life(born=seen[start][0], fired=seen[fired][0], ended=number, reason=reason)
            return replace(life, severities=tuple(severities)), now + 1
    life = Life(born=seen[start][0], fired=seen[fired][0], severities=tuple(severities))
    return life, len(seen)


def _held_while_firing(seen: list[Row], start: int, fired: int, now: int) -> timedelta:
    breaks = [i for i in range(fired, now) if seen[i][2] in (Outcome.FALSE, Outcome.BETWEEN)]
    if not breaks:
        before = _true_for(seen[start : fired + 1], pending=True)
        return before + sum(
            (row[1].elapsed for row in seen[fired + 1 : now + 1] if row[2] is Outcome.TRUE), ZERO
        )
    anew = next(i for i in range(breaks[-1] + 1, now + 1) if seen[i][2] is Outcome.TRUE)
    return _true_for(seen[anew : now + 1], pending=False)


def _level(rule: Rule, held: timedelta) -> Severity:
    return max(
        (level for level in rule.levels if level.hold <= held),
        key=lambda level: level.hold,
        default=Level(hold=ZERO, severity=rule.severity),
    ).severity


def _closes(rule: Rule, span: Sequence[Row]) -> CloseReason | None:
    last = span[-1][2]
    if last is Outcome.NODATA and rule.on_no_data is OnNoData.HOLD:
        return CloseReason.DATA_GONE if _unbroken(span, last) >= 30 * MINUTE else None
    if last not in (Outcome.FALSE, Outcome.NODATA):
        return None
    as_false = [
        (
            number,
            past,
            Outcome.FALSE if outcome is Outcome.NODATA and rule.on_no_data is OnNoData.OK else outcome,
        )
        for number, past, outcome in span
    ]
    if _unbroken(as_false, Outcome.FALSE) < rule.keep_firing_for:
        return None
    return CloseReason.RECOVERED if last is Outcome.FALSE else CloseReason.DATA_GONE


def expected_story(rule: Rule, history: Sequence[Past]) -> list[tuple[int, str]]:
    """What is told of the task's incidents, from the lives of its labelsets."""
    all_lives = [(which, life) for which in range(len(LABELS)) for life in lives(rule, history, which)]
    story: list[tuple[int, str]] = []
    inside: dict[int, CloseReason | None] = {}  # of the open incident: labelset → why it left
    severity: Severity | None = None
    for slot in range(len(history)):
        fired = [(which, life) for which, life in all_lives if life.fired == slot]
        left = [(which, life) for which, life in all_lives if life.ended == slot and life.fired is not None]
        levels = [
            reached
            for _, life in all_lives
            for number, reached in life.severities
            if number == slot and (life.fired is not None and life.fired <= slot)
        ]
        if not inside and not fired:
            continue
        opened, known = not inside, set(inside)
        inside.update({which: None for which, _ in fired})
        inside.update({which: life.reason for which, life in left})
        worst = max([*levels, *([severity] if severity else [])], key=lambda one: one.rank, default=None)
        if not any(reason is None for reason in inside.values()):
            well = all(reason is CloseReason.RECOVERED for reason in inside.values())
            story.append((slot, "recovered" if well else "closed"))
            inside, severity = {}, None
            continue
        if opened:
            story.append((slot, f"opened {worst}"))
        elif worst is not severity:
            story.append((slot, f"escalated {worst}"))
        elif set(inside) - known:
            story.append((slot, "grew"))
        severity = worst
    return story


# The real one ------------------------------------------------------------------------------------


def real_story(rule: Rule, history: Sequence[Past]) -> tuple[list[tuple[int, str]], Book]:
    book, unchanged = Book(), Unchanged()
    story: list[tuple[int, str]] = []
    for slot, past in enumerate(history):
        if past.restart:
            book = _through_the_store(book)
        before = ({name: dict(known) for name, known in book.alerts.items()}, dict(book.open))
        tick = Tick(
            moment=Moment(at=past.at, watched=past.watched),
            elapsed=past.elapsed,
            run=past.run,
            interval=MINUTE,
            settling=past.settling,
        )
        seen = Verdicts(rule, _evaluation(past), 0, tick, TASKS)
        idle = unchanged.holds(seen, book)
        step = advance(seen, book)
        assert step.empty or not idle, "a slot that changes something was passed over"
        assert before == (book.alerts, book.open), "the input was changed in place"
        incidents = {incident.id: incident for incident in step.incidents}
        for one in step.transitions:
            incident = incidents[one.incident]
            words = {
                Change.OPENED: f"opened {incident.severity}",
                Change.ESCALATED: f"escalated {incident.severity}",
                Change.GREW: "grew",
                Change.CLOSED: "recovered" if incident.close_reason is CloseReason.RECOVERED else "closed",
            }
            story.append((slot, words[one.change]))
        book = apply(book, step)
    return story, book


def _evaluation(past: Past) -> Evaluation:
    since = to_ns(past.at - past.age) if past.age else 0
    return Evaluation(
        rule="r",
        labels=LABELS,
        outcome=np.array([[int(outcome)] for outcome in past.outcomes], np.int8),
        value=np.full((len(LABELS), 1), np.nan),
        since_ns=np.full((len(LABELS), 1), since, np.int64),
        explain=lambda g, t: Evidence(),
    )


def _through_the_store(book: Book) -> Book:
    return Book.of(
        (codec.decode(codec.ALERT, codec.encode(alert), "an alert") for alert in book.all_alerts()),
        (codec.decode(codec.INCIDENT, codec.encode(one), "an incident") for one in book.open.values()),
    )


# Histories ---------------------------------------------------------------------------------------


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    minutes = st.sampled_from([0, 1, 3, 6])
    first = draw(minutes) * MINUTE
    levels = (
        Level(hold=first, severity=Severity.INFO),
        Level(hold=first + 4 * MINUTE, severity=Severity.WARNING),
        Level(hold=first + 9 * MINUTE, severity=Severity.CRITICAL),
    )
    return Rule(
        name="r",
        condition=Threshold(
            metric="gpu",
            aggregate=Aggregate.LAST,
            window=None,
            comparison=Comparison(above=False, threshold=0.1),
            by=By.POD,
        ),
        hold=first,
        keep_firing_for=draw(minutes) * MINUTE,
        levels=draw(st.sampled_from([(), levels])),
        on_no_data=draw(st.sampled_from(OnNoData)),
    )


@st.composite
def histories(draw: st.DrawFn) -> list[Past]:
    """Runs of like slots, so that holds, the 30 minutes and the hour are really reached."""
    history: list[Past] = []
    at, watched, run = T0, ZERO, ZERO
    for _ in range(draw(st.integers(1, 12))):
        outcomes = tuple(draw(st.sampled_from(Outcome)) for _ in LABELS)
        seconds = draw(st.sampled_from([60, 60, 60, 45, 150, 600]))
        kind = draw(st.sampled_from(["on", "on", "on", "on", "restart", "settling"]))
        age = draw(st.sampled_from([0, 0, 2, 90])) * MINUTE
        for number in range(draw(st.sampled_from([1, 1, 2, 3, 5, 9]))):
            broken = not history or (number == 0 and kind != "on")
            settling = bool(history) and kind == "settling" and number < 2
            elapsed = ZERO if broken or settling else timedelta(seconds=seconds)
            away = timedelta(hours=7) if broken else ZERO
            at, watched = at + timedelta(seconds=seconds) + away, watched + elapsed
            run = ZERO if broken or settling else run + elapsed
            history.append(
                Past(
                    outcomes=outcomes,
                    age=age,
                    elapsed=elapsed,
                    run=run,
                    at=at,
                    watched=watched,
                    settling=settling,
                    restart=broken and kind == "restart",
                )
            )
    return history


@given(rules(), histories())
@settings(max_examples=250, deadline=None)
def test_the_lifecycle_tells_what_the_whole_history_says(rule: Rule, history: list[Past]) -> None:
    story, book = real_story(rule, history)
    assert story == expected_story(rule, history)
    for which, labels in enumerate(LABELS):
        newest = [life for life in lives(rule, history, which) if life.ended is None]
        alert = book.known("r").get(labels)
        if not newest:
            assert alert is None
            continue
        assert alert is not None
        assert alert.phase is (Phase.PENDING if newest[0].fired is None else Phase.FIRING)
        if newest[0].fired is not None:
            assert alert.fired_at == history[newest[0].fired].at
            assert alert.incident in {incident.id for incident in book.open.values()}


@given(rules(), histories(), st.integers(0, 200))
@settings(max_examples=60, deadline=None)
def test_a_restart_at_any_instant_changes_nothing_that_is_told(
    rule: Rule, history: list[Past], cut: int
) -> None:
    """State that went through the store decides as state that never left memory."""
    number = cut % len(history)
    stored = [replace(past, restart=past.restart or index == number) for index, past in enumerate(history)]
    assert real_story(rule, stored) == real_story(rule, history)
