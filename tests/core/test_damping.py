"""What comes and goes is said at most once an hour; what lasts is said; endings are said at once."""

from dataclasses import replace
from datetime import timedelta

from watchdog.core.alerts import Notice, NoticeKind
from watchdog.core.damping import Damper
from watchdog.core.notices import notice_rule

KEY = (notice_rule(NoticeKind.STATE_NOT_STORED), "state")


def notice(*, active: bool = True, kind: NoticeKind = NoticeKind.STATE_NOT_STORED, **more: object) -> Notice:
    return Notice(kind=kind, subject="state", active=active, **more)


def play(history: str, *, edges: bool = False, kind: NoticeKind = NoticeKind.STATE_NOT_STORED) -> list[str]:
    """One slot each 10 minutes, `#` = it is so, `.` = it is not. What was said: "10+" opened, "30-" closed.

    edges: it is mentioned only when it changes.
    """
    damper, opened, said = Damper(), False, []
    before = "."
    for slot, now in enumerate(history):
        mentioned = [] if edges and now == before else [notice(active=now == "#", kind=kind)]
        before = now
        key = (notice_rule(kind), "state")
        for one in damper.damped(mentioned, {key} if opened else set(), slot * timedelta(minutes=10)):
            if one.active and not opened:
                said.append(f"{slot * 10}+")
            if not one.active and opened:
                said.append(f"{slot * 10}-")
            opened = one.active
    return said


def test_what_lasts_is_said_once_and_its_end_at_once() -> None:
    assert play(".####.") == ["10+", "50-"]


def test_what_comes_and_goes_is_said_once_an_hour() -> None:
    assert play("#.#.#.#.#.#.#.") == ["0+", "10-", "60+", "70-", "120+", "130-"]


def test_what_came_back_and_stayed_is_said_when_the_hour_is_over() -> None:
    for edges in (False, True):
        assert play("#.#########", edges=edges) == ["0+", "10-", "60+"]


def test_what_came_back_and_went_within_the_hour_is_not_said() -> None:
    for edges in (False, True):
        assert play("#.##.......", edges=edges) == ["0+", "10-"]


def test_after_a_quiet_hour_it_is_said_at_once() -> None:
    assert play("#......#") == ["0+", "10-", "70+"]


def test_each_subject_has_its_own_hour() -> None:
    damper = Damper()
    first = notice()
    other = Notice(kind=NoticeKind.LOG_LAG, subject="alaya/1")
    assert damper.damped([first], (), timedelta()) == [first]
    assert damper.damped([other], (), timedelta(minutes=1)) == [other]


def test_a_rejected_file_is_said_every_time() -> None:
    assert play("#.#.#", kind=NoticeKind.RULES_REJECTED) == ["0+", "10-", "20+", "30-", "40+"]


def test_what_is_said_once_is_none_of_its_business() -> None:
    once = notice(lasting=False)
    assert Damper().damped([once, once], (), timedelta()) == [once, once]


def test_what_a_start_found_open_goes_on() -> None:
    assert Damper().damped([notice()], {KEY}, timedelta()) == [notice()]


def test_it_remembers_nothing_for_longer_than_an_hour() -> None:
    damper = Damper()
    for minute in range(200):
        one = Notice(kind=NoticeKind.LOG_LAG, subject=str(minute))
        damper.damped([one], (), timedelta(minutes=minute))
    assert len(damper._said) <= 60


def test_messages_given_up_are_told_though_the_channel_had_been_broken_within_the_hour() -> None:
    damper = Damper()
    broken = Notice(kind=NoticeKind.CHANNEL_BROKEN, subject="chat", params={"failures": "5"})
    lost = replace(broken, params={"lost": "3"})
    assert damper.damped([broken], (), timedelta()) == [broken]
    assert damper.damped([broken], (), timedelta(minutes=10)) == []
    assert damper.damped([lost], (), timedelta(minutes=20)) == [lost]
    over = replace(lost, active=False)  # nothing of the loss is left to be said
    assert damper.damped([over], (), timedelta(minutes=30)) == [over]
