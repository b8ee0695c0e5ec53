"""Notices: one incident per kind and subject; said once, closed once, never nagging."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from watchdog.core.alerts import Change, CloseReason, Incident, Notice, NoticeKind
from watchdog.core.endings import close_rule_removed, close_unwatched
from watchdog.core.events import quiet_expired
from watchdog.core.incidents import Book, Step, apply
from watchdog.core.labels import Labels
from watchdog.core.moments import Moment, Tick
from watchdog.core.notices import advance_notices, notice_rule
from watchdog.core.rules import Severity

T0 = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
BLIND = Notice(
    kind=NoticeKind.SOURCE_BLIND,
    subject="alaya/metrics",
    labels=Labels.of(source="alaya"),
    params={"failure": "timed out"},
)
JUMP = Notice(kind=NoticeKind.CLOCK_JUMPED, subject="clock", params={"by": "6h"}, lasting=False)
OPENED, ESCALATED, CLOSED = Change.OPENED, Change.ESCALATED, Change.CLOSED


class Play:
    def __init__(self) -> None:
        self.book = Book()
        self.told: list[tuple[int, Change]] = []
        self.closed: list[Incident] = []

    def slot(self, minute: int, *notices: Notice) -> Step:
        moment = Moment(at=T0 + minute * MINUTE, watched=minute * MINUTE)
        tick = Tick(moment=moment, elapsed=MINUTE, run=minute * MINUTE, interval=MINUTE)
        step = advance_notices(notices, self.book, tick)
        for part in (step, quiet_expired(apply(self.book, step), tick, {})):
            self.book = apply(self.book, part)
            self.told += [(minute, one.change) for one in part.transitions]
            self.closed += [one for one in part.incidents if not one.open]
        return step

    @property
    def incident(self) -> Incident:
        return next(iter(self.book.open.values()))


def test_a_lasting_notice_opens_once_and_closes_as_recovered() -> None:
    play = Play()
    for minute in range(300):
        play.slot(minute, BLIND)
    play.slot(300, replace(BLIND, active=False, params={"until": "now"}))
    assert play.told == [(0, OPENED), (300, CLOSED)]
    assert play.closed[0].close_reason is CloseReason.RECOVERED
    assert play.closed[0].params == {"failure": "timed out", "until": "now", "subject": "alaya/metrics"}
    assert play.book.open == {}


def test_what_is_over_and_was_never_said_is_no_news() -> None:
    play = Play()
    assert play.slot(0, replace(BLIND, active=False), replace(JUMP, active=False)).empty


def test_an_incident_of_a_notice_says_what_it_is_about() -> None:
    play = Play()
    play.slot(0, replace(BLIND, severity=Severity.CRITICAL, exclude=("team",)))
    assert play.incident.rule == notice_rule(NoticeKind.SOURCE_BLIND) == "watchdog/source blind"
    assert play.incident.notice is NoticeKind.SOURCE_BLIND
    assert play.incident.labels == BLIND.labels
    assert play.incident.severity is Severity.CRITICAL
    assert play.incident.exclude == ("team",)
    assert play.incident.repeat == timedelta()


def test_new_details_are_kept_without_a_message() -> None:
    play = Play()
    play.slot(0, BLIND)
    assert play.slot(1, BLIND).empty
    play.slot(2, replace(BLIND, params={"failure": "key expired"}))
    assert play.told == [(0, OPENED)]
    assert play.incident.params["failure"] == "key expired"


def test_a_worse_severity_is_told() -> None:
    play = Play()
    play.slot(0, BLIND)
    play.slot(1, replace(BLIND, severity=Severity.CRITICAL))
    play.slot(2, BLIND)
    assert play.told == [(0, OPENED), (1, ESCALATED)]
    assert play.incident.severity is Severity.CRITICAL


def test_what_is_said_once_is_said_again_at_most_hourly() -> None:
    play = Play()
    for minute in range(150):
        play.slot(minute, JUMP)
    assert [minute for minute, change in play.told if change is OPENED] == [0, 60, 120]
    assert {one.close_reason for one in play.closed} == {CloseReason.QUIET}
    assert play.incident.count == 30


def test_what_is_said_once_closes_in_silence() -> None:
    play = Play()
    play.slot(0, JUMP)
    play.slot(60)
    assert play.told == [(0, OPENED), (60, CLOSED)]
    assert play.closed[0].close_reason is CloseReason.QUIET


def test_subjects_and_kinds_do_not_share_incidents() -> None:
    play = Play()
    play.slot(0, BLIND, replace(BLIND, subject="alaya/logs"), JUMP, JUMP)
    assert [change for _, change in play.told] == [OPENED] * 3


def test_open_notices_are_found_again_after_a_restart() -> None:
    play = Play()
    play.slot(0, BLIND, JUMP)
    play.book = Book.of((), play.book.open.values())
    play.slot(1, BLIND, JUMP)
    assert len(play.told) == 2


def test_notices_outlive_rules_but_not_their_task_or_source() -> None:
    play = Play()
    about_task = replace(BLIND, subject="alaya/1/metrics", labels=Labels.of(source="alaya", task="alaya/1"))
    play.slot(0, BLIND, about_task, JUMP)
    assert close_rule_removed(play.book, [], T0).empty
    ended = close_unwatched(play.book, {"alaya/2"}, T0).incidents
    assert [one.labels for one in ended] == [about_task.labels]
    assert ended[0].close_reason is CloseReason.UNWATCHED
    ended = close_unwatched(play.book, {"alaya/1"}, T0, sources={"siflow"}).incidents
    assert [one.labels for one in ended] == [BLIND.labels]
