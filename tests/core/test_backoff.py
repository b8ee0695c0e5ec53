"""What becomes of an attempt, which row is next, and what is said about channels."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from watchdog.core.alerts import Incident, IncidentMember, NoticeKind
from watchdog.core.backoff import (
    AttemptDecision,
    ChannelHealth,
    after_answer,
    after_attempt,
    next_due,
    undelivered_notice,
)
from watchdog.core.labels import Labels
from watchdog.core.moments import Moment
from watchdog.core.notifications import (
    Answer,
    Delivery,
    DeliveryResult,
    DeliveryState,
    LedgerEntry,
    MessageKind,
    Notification,
)
from watchdog.core.rules import Severity

T = datetime(2026, 9, 17, 2, 0, tzinfo=UTC)
OK = DeliveryResult(answer=Answer.OK, code="200")
FAILED = DeliveryResult(answer=Answer.RETRY, code="503", detail="HTTP 503")
UNKNOWN = DeliveryResult(answer=Answer.UNKNOWN)
REFUSED = DeliveryResult(answer=Answer.PERMANENT, code="403", detail="HTTP 403: token")
TOO_LONG = DeliveryResult(answer=Answer.TOO_LONG)


def at(seconds: float) -> Moment:
    return Moment(at=T + timedelta(seconds=seconds), watched=timedelta(hours=1, seconds=seconds))


def row(
    number: int = 1,
    incident: str = "abc",
    kind: MessageKind = MessageKind.FIRST,
    severity: Severity = Severity.WARNING,
    created: float = 0,
    **changes: object,
) -> Delivery:
    about = Incident(
        id=incident,
        rule="gpu-idle",
        labels=Labels.of(source="a", task="a/1", task_name="llama"),
        severity=severity,
        event=False,
        opened_at=T,
        since=T,
        updated_at=T,
        count=7,
        fingerprints=("x",),
        members=(IncidentMember(labels=Labels(), since=T),),
    )
    said = Notification(channel="team", kind=kind, incident=about, decided_at=T, reminder=3)
    plain = Delivery(
        id=number, notification=said, created=at(created).watched, not_before=at(created).watched
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def wait(decision: AttemptDecision, seconds: float = 0) -> float:
    return (decision.delivery.not_before - at(seconds).watched).total_seconds()


def test_what_was_delivered_is_done_and_in_the_ledger() -> None:
    decision = after_attempt(row(), OK, at(5), 0.5)

    assert decision.delivery.state is DeliveryState.DONE
    assert decision.delivery.attempts == 1
    assert decision.ledger == LedgerEntry(
        incident="abc",
        channel="team",
        kind=MessageKind.FIRST,
        told_at=at(5).at,
        told_watched=at(5).watched,
        severity=Severity.WARNING,
        members=1,
        count=7,
        fingerprints=("x",),
        reminders=3,
        answer="200",
    )


def test_waits_double_with_full_jitter_up_to_ten_minutes() -> None:
    def waited(attempts: int, jitter: float) -> float:
        return wait(after_attempt(row(attempts=attempts), FAILED, at(0), jitter))

    assert [waited(n, 0.5) for n in range(4)] == [1.0, 2.0, 4.0, 8.0]
    assert waited(30, 0.999) < 600
    assert waited(30, 0.5) == 300
    assert waited(3, 0.0) == 1.0


def test_retry_after_is_obeyed_capped_and_no_try() -> None:
    slow = replace(FAILED, code="429", retry_after=timedelta(seconds=120))

    decision = after_attempt(row(attempts=2), slow, at(0), 0.9)

    assert wait(decision) == 120
    assert decision.delivery.attempts == 2
    forever = after_attempt(row(), replace(slow, retry_after=timedelta(days=3)), at(0), 0.9)
    assert wait(forever) == 3600
    bare = after_attempt(row(), replace(FAILED, code="429"), at(0), 0.0)
    assert (wait(bare), bare.delivery.attempts) == (30, 0)


def test_an_unknown_answer_is_retried_as_a_possible_repeat() -> None:
    decision = after_attempt(row(), UNKNOWN, at(0), 0.5)

    assert decision.delivery.state is DeliveryState.PENDING
    assert decision.delivery.notification.maybe_repeat
    assert decision.ledger is None
    assert not after_attempt(row(), FAILED, at(0), 0.5).delivery.notification.maybe_repeat


def test_a_refusal_gets_one_more_try_after_five_minutes() -> None:
    first = after_attempt(row(), REFUSED, at(0), 0.5)
    second = after_attempt(first.delivery, REFUSED, at(300), 0.5)

    assert (first.delivery.state, wait(first), first.gave_up) == (DeliveryState.PENDING, 300, False)
    assert (second.delivery.state, second.gave_up) == (DeliveryState.DEAD, True)
    assert after_attempt(first.delivery, OK, at(300), 0.5).delivery.state is DeliveryState.DONE


def test_a_text_too_long_is_tried_at_half_size_at_once_then_treated_as_refused() -> None:
    first = after_attempt(row(), TOO_LONG, at(0), 0.5)
    assert first.delivery.notification.half_size
    assert wait(first) == 0

    second = after_attempt(first.delivery, TOO_LONG, at(0), 0.5)
    assert (second.delivery.state, wait(second)) == (DeliveryState.PENDING, 300)
    assert after_attempt(second.delivery, TOO_LONG, at(300), 0.5).gave_up


def test_failures_are_given_up_by_age_on_the_watched_clock() -> None:
    day = 24 * 3600

    assert not after_attempt(row(attempts=99), FAILED, at(day - 1), 0.5).gave_up
    assert after_attempt(row(), FAILED, at(day), 0.5).gave_up
    assert after_attempt(row(severity=Severity.INFO), UNKNOWN, at(3600), 0.5).gave_up
    slept = Moment(at=T + timedelta(days=9), watched=at(60).watched)
    assert not after_attempt(row(), FAILED, slept, 0.5).gave_up
    assert after_attempt(row(), OK, at(9 * day), 0.5).delivery.state is DeliveryState.DONE


def test_the_oldest_due_row_of_the_channel_is_next() -> None:
    rows = [row(3, "c", created=3), row(1, "a", created=1), row(2, "b", created=2)]

    assert next_due(rows, "team", at(9)) == rows[1]
    assert next_due(rows, "mail", at(9)) is None
    assert next_due(rows, "team", at(0.5)) is None
    assert next_due([replace(rows[1], state=DeliveryState.DEAD)], "team", at(9)) is None


def test_a_critical_first_word_overtakes_other_incidents_but_a_reminder_does_not() -> None:
    old = row(1, "a", created=1)
    urgent = row(2, "b", severity=Severity.CRITICAL, created=2)
    reminder = replace(urgent, notification=replace(urgent.notification, kind=MessageKind.REMINDER))

    assert next_due([old, urgent], "team", at(9)) == urgent
    assert next_due([old, reminder], "team", at(9)) == old


def test_nothing_overtakes_an_earlier_row_of_the_same_incident() -> None:
    first = row(1, created=1, not_before=at(60).watched)
    escalation = row(2, kind=MessageKind.ESCALATION, severity=Severity.CRITICAL, created=2)

    assert next_due([escalation, first], "team", at(9)) is None
    assert next_due([escalation, first], "team", at(61)) == first
    flying = replace(first, state=DeliveryState.INFLIGHT)
    assert next_due([escalation, flying], "team", at(61)) is None


def test_the_end_of_what_was_never_told_is_passed_over() -> None:
    end = row(2, kind=MessageKind.CLOSED)
    ledger = after_attempt(row(), OK, at(0), 0.5).ledger

    assert next_due([end], "team", at(9), {}) is None
    assert ledger is not None
    assert next_due([end], "team", at(9), {("abc", "team"): ledger}) == end


def test_five_failures_in_a_row_are_a_broken_channel_until_the_first_success() -> None:
    health, said = ChannelHealth(), []
    for seconds in range(7):
        decision = after_attempt(row(attempts=seconds), FAILED, at(seconds), 0.9)
        health, notice = after_answer("team", health, decision, at(seconds))
        said.append(notice)
    assert [notice is not None for notice in said] == [False] * 4 + [True] + [False] * 2
    broken = said[4]
    assert broken is not None
    assert (broken.kind, broken.exclude, broken.active) == (NoticeKind.CHANNEL_BROKEN, ("team",), True)
    assert broken.params["answer"] == "HTTP 503"
    assert health.not_before > at(6).watched

    health, over = after_answer("team", health, after_attempt(row(), OK, at(9), 0.5), at(9))
    assert health == ChannelHealth()
    assert over is not None
    assert not over.active
    assert over.subject == broken.subject


def test_a_throttled_channel_rests_as_a_whole_and_is_not_broken() -> None:
    slow = replace(FAILED, code="429", retry_after=timedelta(seconds=120))
    health = ChannelHealth(failures=4)

    health, notice = after_answer("team", health, after_attempt(row(), slow, at(0), 0.5), at(0))

    assert notice is None
    assert health == ChannelHealth(failures=4, not_before=at(120).watched)


def test_a_message_given_up_is_reported_to_the_other_channels() -> None:
    dead = after_attempt(replace(row(), last_result=REFUSED, attempts=1), REFUSED, at(0), 0.5).delivery

    notice = undelivered_notice(dead)

    assert notice is not None
    assert (notice.kind, notice.exclude, notice.lasting) == (NoticeKind.UNDELIVERED, ("team",), False)
    assert notice.params["incident"] == "abc"
    assert notice.params["answer"] == "HTTP 403: token"
    assert notice.params["attempts"] == "2"


def test_an_undelivered_report_is_not_reported_again() -> None:
    about = replace(row().notification.incident, notice=NoticeKind.UNDELIVERED)
    dead = replace(row(), notification=replace(row().notification, incident=about))

    assert undelivered_notice(dead) is None


def test_a_refusal_says_nothing_about_the_channels_health() -> None:
    health = ChannelHealth(failures=3)

    after = after_answer("team", health, after_attempt(row(), REFUSED, at(0), 0.5), at(0))

    assert after == (health, None)
    assert after_answer("team", health, AttemptDecision(delivery=row()), at(0)) == (health, None)


def test_a_channel_that_refuses_everything_is_broken_and_what_it_loses_is_counted() -> None:
    refused_twice = replace(row(), last_result=REFUSED, attempts=1)
    health, said = ChannelHealth(), []
    for seconds in range(5):
        decision = after_attempt(refused_twice, REFUSED, at(seconds), 0.5)
        health, notice = after_answer("team", health, decision, at(seconds))
        said.append((health.broken, None if notice is None else notice.params.get("lost")))
    assert said == [(False, None), (False, None), (True, "3"), (True, "4"), (True, "5")]
    assert health.not_before == timedelta()

    health, over = after_answer("team", health, after_attempt(row(), OK, at(9), 0.5), at(9))
    assert health == ChannelHealth()
    assert over is not None
    assert (over.active, over.params["lost"], "failures" in over.params) == (False, "5", False)


def test_one_message_taken_makes_earlier_losses_single_ones() -> None:
    refused_twice = replace(row(), last_result=REFUSED, attempts=1)
    health = ChannelHealth(lost=2)
    health, _ = after_answer("team", health, after_attempt(row(), OK, at(0), 0.5), at(0))
    health, notice = after_answer("team", health, after_attempt(refused_twice, REFUSED, at(1), 0.5), at(1))
    assert (health, notice) == (ChannelHealth(lost=1), None)
