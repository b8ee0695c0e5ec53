"""What was said of things that the rule file no longer names, or that nobody asks for any more."""

from datetime import UTC, datetime, timedelta

import pytest

from watchdog.core.alerts import CloseReason, Notice, NoticeKind
from watchdog.core.endings import close_stale_notices, close_unasked, forget_task
from watchdog.core.incidents import Book, apply
from watchdog.core.labels import Labels
from watchdog.core.moments import Moment, Tick
from watchdog.core.notices import advance_notices

T0 = datetime(2026, 11, 30, 10, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
TICK = Tick(moment=Moment(at=T0, watched=MINUTE), elapsed=MINUTE, run=MINUTE, interval=MINUTE)
NAMES = {"rules": ["idle"], "sources": ["alaya"], "channels": ["team"]}


def book_of(*notices: Notice) -> Book:
    return apply(Book(), advance_notices(notices, Book(), TICK))


def said(kind: NoticeKind, subject: str, **params: str) -> Notice:
    return Notice(kind=kind, subject=subject, params=params)


@pytest.mark.parametrize(
    ("kept", "stale"),
    [
        (
            said(NoticeKind.RULE_THIN, "idle/a/1", rule="idle"),
            said(NoticeKind.RULE_THIN, "low/a/1", rule="low"),
        ),
        (said(NoticeKind.RULE_SLOW, "alaya"), said(NoticeKind.RULE_SLOW, "siflow")),
        (said(NoticeKind.RULE_SLOW, "idle"), said(NoticeKind.RULE_SLOW, "low")),
        (said(NoticeKind.CHANNEL_BROKEN, "team"), said(NoticeKind.CHANNEL_BROKEN, "mail")),
    ],
)
def test_only_what_is_gone_ends_and_not_as_recovered(kept: Notice, stale: Notice) -> None:
    step = close_stale_notices(book_of(kept, stale), T0, **NAMES)  # type: ignore[arg-type]
    assert [one.params["subject"] for one in step.incidents] == [stale.subject]
    assert step.incidents[0].close_reason is CloseReason.UNWATCHED


def test_what_nobody_asks_for_any_more_ends_and_not_as_recovered() -> None:
    book = book_of(
        said(NoticeKind.SOURCE_BLIND, "alaya/metrics"), said(NoticeKind.SOURCE_BLIND, "alaya/logs")
    )
    step = close_unasked(book, {"alaya/metrics"}, (), T0)
    assert [(one.params["subject"], one.close_reason) for one in step.incidents] == [
        ("alaya/logs", CloseReason.UNWATCHED)
    ]


def test_what_is_about_none_of_them_stays() -> None:
    book = book_of(said(NoticeKind.STATE_NOT_STORED, "state"), said(NoticeKind.LOG_LAG, "a/1"))
    assert close_stale_notices(book, T0, **NAMES).empty  # type: ignore[arg-type]


def test_a_forgotten_task_takes_everything_about_it_along() -> None:
    mine, other = Labels.of(source="a", task="a/1"), Labels.of(source="a", task="a/2")
    book = book_of(
        Notice(kind=NoticeKind.NO_LOG_LINE, subject="a/1", labels=mine),
        Notice(kind=NoticeKind.NO_LOG_LINE, subject="a/2", labels=other),
    )
    step = forget_task(book, "a/1", T0)
    assert [(one.labels["task"], one.close_reason) for one in step.incidents] == [
        ("a/1", CloseReason.FORGOTTEN)
    ]
