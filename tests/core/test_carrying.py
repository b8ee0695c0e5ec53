"""An alert that goes on costs nothing, and is told as exactly as if it had been renewed in every slot."""

from dataclasses import replace
from datetime import timedelta

import pytest

from watchdog.core.alerts import Alert, Change
from watchdog.core.lifecycle import advance
from watchdog.core.membership import Verdicts
from watchdog.core.moments import Moment, Tick
from watchdog.core.outcomes import Outcome
from watchdog.core.rules import Level, Severity
from watchdog.core.tasks import Status
from watchdog.core.unchanged import Unchanged
from watchdog.store import codec

from .test_lifecycle import LOW, ME, MINUTE, NOW, Play, gpu

T, F, E = Outcome.TRUE, Outcome.FALSE, Outcome.ERROR


def stored(alert: Alert) -> Alert:
    return codec.decode(codec.ALERT, codec.encode(alert), "an alert")


@pytest.mark.parametrize("rule", [NOW, replace(LOW, hold=timedelta(hours=3))])
def test_what_goes_on_changes_nothing_but_every_ten_minutes(rule) -> None:  # type: ignore[no-untyped-def]
    play = Play(rule)
    changed = [bool(play.slot(T).alerts) for _ in range(101)]
    assert [minute for minute, one in enumerate(changed) if one] == list(range(0, 101, 10))
    assert play.alert is not None
    assert play.alert.held == 100 * MINUTE


@pytest.mark.parametrize("slots", [1, 2, 7, 10, 11, 25])
def test_a_carried_alert_is_exact_when_it_is_looked_at(slots: int) -> None:
    play = Play(LOW)
    for minute in range(slots):
        play.slot(T, value=minute / 100)
    last = play.at
    assert play.alert is not None
    assert (play.alert.held, play.alert.value) == ((slots - 1) * MINUTE, (slots - 1) / 100)
    play.slot(E, value=0.9)
    kept = play.book.known("low")[ME]
    assert (kept.held, kept.value, kept.judged) == ((slots - 1) * MINUTE, (slots - 1) / 100, last)
    assert kept.counting is None


def test_a_restart_neither_adds_nor_loses_time() -> None:
    play = Play(LOW).slots("T" * 8)
    play.book = type(play.book).of(map(stored, play.book.all_alerts()))
    play.restart(minutes=90)
    play.slots("TT")
    assert play.told == []
    assert play.slots("TT").told == [(play.minute, Change.OPENED)]  # 7 min before, 3 after


def test_after_a_crash_a_value_is_as_old_as_it_is() -> None:
    """What the last slots measured is lost: what is kept is the stored value, with the time that it is of."""
    play = Play(NOW)
    began = play.at + MINUTE
    for minute in range(5):
        play.slot(T, value=minute / 100)
    play.restart(minutes=20)
    play.slots("E")
    kept = play.book.known("low")[ME]
    assert (kept.held, kept.value, kept.judged) == (4 * MINUTE, 0.0, began)


def test_what_a_pending_alert_waits_for_may_have_come_and_gone_between_two_slots() -> None:
    play = Play(LOW)
    for _ in range(4):
        play.slot(T)
    play.slot(T, since=play.at + MINUTE)
    play.slots("T" * 9)
    assert play.told == []
    assert play.slots("T").told == [(14, Change.OPENED)]


def test_levels_are_reached_at_the_slot_that_reaches_them() -> None:
    levels = (
        Level(hold=3 * MINUTE, severity=Severity.INFO),
        Level(hold=7 * MINUTE, severity=Severity.WARNING),
        Level(hold=26 * MINUTE, severity=Severity.CRITICAL),
    )
    play = Play(replace(LOW, levels=levels)).slots("T" * 40)
    assert play.told == [(3, Change.OPENED), (7, Change.ESCALATED), (26, Change.ESCALATED)]


def test_a_pause_of_our_own_is_no_time_that_it_held() -> None:
    play = Play(LOW).slots("T" * 5)
    for _ in range(3):
        play.watched += 30 * MINUTE  # the watched clock goes on through a jump
        play.slot(T, settling=True)
    play.slots("T" * 5)
    assert play.told == []
    assert play.alert is not None
    assert play.alert.held == 9 * MINUTE


def test_members_that_go_on_are_told_with_their_newest_values() -> None:
    play = Play(NOW)
    play.slot({gpu(0): T, gpu(1): F}, value={gpu(0): 0.01, gpu(1): 0.5})
    play.slot({gpu(0): T, gpu(1): F}, value={gpu(0): 0.02, gpu(1): 0.5})
    play.slot({gpu(0): T, gpu(1): T}, value={gpu(0): 0.03, gpu(1): 0.04})
    assert {one.labels: one.value for one in play.incident.members} == {gpu(0): 0.03, gpu(1): 0.04}


def test_an_edited_rule_is_noted_at_once() -> None:
    play = Play(NOW).slots("TTT")
    play.rule = replace(NOW, condition=replace(NOW.condition, metric="other"))  # type: ignore[type-var]
    play.slots("T")
    assert play.book.known("low")[ME].rule_identity == play.rule.identity


LATER = (Level(hold=timedelta(hours=2), severity=Severity.CRITICAL),)


@pytest.mark.parametrize("levels", [(), LATER])  # a raised `for` does not un-fire
def test_a_raised_severity_is_told_at_once(levels: tuple[Level, ...]) -> None:
    play = Play(NOW).slots("TTT")
    play.rule = replace(NOW, severity=Severity.CRITICAL, hold=timedelta(hours=2), levels=levels)
    play.slots("T")
    assert play.told == [(0, Change.OPENED), (3, Change.ESCALATED)]
    assert play.incident.severity is Severity.CRITICAL


def test_a_slot_that_changes_nothing_is_known_without_a_look_at_each_alert() -> None:
    play, unchanged = Play(NOW), Unchanged()
    labels = tuple(gpu(number) for number in range(3))
    evaluation = play.evaluation(dict.fromkeys(labels, T), 0.05, None)
    idle = []
    for minute in range(21):
        at = Moment(at=play.at + minute * MINUTE, watched=minute * MINUTE)
        tick = Tick(moment=at, elapsed=MINUTE, run=at.watched, interval=MINUTE)
        seen = Verdicts(NOW, evaluation, 0, tick, play.tasks, evaluation)
        idle.append(unchanged.holds(seen, play.book))
        step = advance(seen, play.book)
        assert step.empty is idle[-1]
        play.take(step)
    assert [minute for minute, one in enumerate(idle) if not one] == [0, 10, 20]
    ended = {key: replace(state, status=Status.FAILED) for key, state in play.tasks.items()}
    assert not unchanged.holds(replace(seen, tasks=ended), play.book)
    assert not unchanged.holds(replace(seen, tick=replace(tick, settling=True)), play.book)
