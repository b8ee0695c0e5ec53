"""Who is told what, when: one behaviour a test, on hand-made inputs."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from watchdog.core.alerts import (
    Change,
    CloseReason,
    Incident,
    IncidentMember,
    NoticeKind,
    Transition,
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
from watchdog.core.outcomes import Evidence, EvidenceLine
from watchdog.core.planning import PlanDecision, PlanInput, plan
from watchdog.core.rules import Severity
from watchdog.core.ruleset import ChannelSpec, Secret

T = datetime(2026, 9, 17, 2, 0, tzinfo=UTC)
TASK = Labels.of(source="alaya", task="alaya/1", task_name="llama")
TEAM = ChannelSpec(name="team", url=Secret("x://"))
ONCALL = ChannelSpec(name="oncall", url=Secret("y://"), min_severity=Severity.CRITICAL)


def at(minutes: float) -> Moment:
    return Moment(at=T + timedelta(minutes=minutes), watched=timedelta(hours=1, minutes=minutes))


def members(count: int) -> tuple[IncidentMember, ...]:
    return tuple(IncidentMember(labels=TASK.plus({"pod": f"p{n}"}), since=T) for n in range(count))


def incident(**changes: object) -> Incident:
    plain = Incident(
        id="abc",
        rule="gpu-idle",
        labels=TASK,
        severity=Severity.WARNING,
        event=False,
        opened_at=T,
        since=T,
        updated_at=T,
        members=members(1),
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def closed(reason: CloseReason = CloseReason.RECOVERED, **changes: object) -> Incident:
    return incident(closed_at=T + timedelta(minutes=9), close_reason=reason, **changes)


def row(
    kind: MessageKind = MessageKind.FIRST,
    about: Incident | None = None,
    channel: str = "team",
    number: int = 1,
    **changes: object,
) -> Delivery:
    said = Notification(channel=channel, kind=kind, incident=about or incident(), decided_at=T)
    plain = Delivery(id=number, notification=said, created=at(0).watched, not_before=at(0).watched)
    return replace(plain, **changes)  # type: ignore[arg-type]


def unsure(delivery: Delivery) -> Delivery:
    return replace(delivery, notification=replace(delivery.notification, maybe_repeat=True))


def told(kind: MessageKind = MessageKind.FIRST, minutes: float = 0, **changes: object) -> LedgerEntry:
    plain = LedgerEntry(
        incident="abc",
        channel="team",
        kind=kind,
        told_at=at(minutes).at,
        told_watched=at(minutes).watched,
        severity=Severity.WARNING,
        members=1,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def decide(
    about: Incident,
    changes: Iterable[Change] = (),
    *,
    minutes: float = 0,
    channels: tuple[ChannelSpec, ...] = (TEAM,),
    rows: tuple[Delivery, ...] = (),
    ledger: LedgerEntry | None = None,
    **more: object,
) -> PlanDecision:
    transitions = tuple(
        Transition(incident=about.id, change=change, at=T, seq=seq) for seq, change in enumerate(changes, 1)
    )
    state = PlanInput(
        mark=0,
        transitions=transitions,
        incidents={about.id: about},
        channels=channels,
        outbox=rows,
        ledger={(ledger.incident, ledger.channel): ledger} if ledger else {},
    )
    return plan(replace(state, **more), at(minutes))  # type: ignore[arg-type]


def kinds(decision: PlanDecision) -> list[tuple[str, str]]:
    return [(one.notification.channel, one.notification.kind.value) for one in decision.deliveries]


def test_an_opened_incident_is_told_to_every_channel() -> None:
    decision = decide(incident(), [Change.OPENED], channels=(TEAM, replace(TEAM, name="mail")))

    assert kinds(decision) == [("team", "first"), ("mail", "first")]
    assert decision.mark == 1
    assert decision.deliveries[0].not_before == at(0).watched


def test_notify_exclude_and_min_severity_choose_the_channels() -> None:
    both = (TEAM, ONCALL)

    assert kinds(decide(incident(), [Change.OPENED], channels=both)) == [("team", "first")]
    assert kinds(decide(incident(notify=("oncall",)), [Change.OPENED], channels=both)) == []
    critical = incident(severity=Severity.CRITICAL)
    assert kinds(decide(critical, [Change.OPENED], channels=both)) == [("team", "first"), ("oncall", "first")]
    without = replace(critical, exclude=("team",))
    assert kinds(decide(without, [Change.OPENED], channels=both)) == [("oncall", "first")]


def test_an_escalation_is_told_at_once_and_is_a_first_word_where_nothing_was_said() -> None:
    worse = incident(severity=Severity.CRITICAL)

    decision = decide(worse, [Change.ESCALATED], minutes=1, channels=(TEAM, ONCALL), ledger=told())

    assert kinds(decision) == [("team", "escalation"), ("oncall", "first")]


def test_an_escalation_goes_into_a_first_word_that_still_waits() -> None:
    worse = incident(severity=Severity.CRITICAL)

    decision = decide(worse, [Change.ESCALATED], minutes=1, rows=(row(),))

    assert kinds(decision) == [("team", "first")]
    assert decision.superseded == (1,)
    assert decision.deliveries[0].created == row().created


def test_an_escalation_queues_behind_a_first_word_that_may_be_arriving() -> None:
    worse = incident(severity=Severity.CRITICAL)

    for first in (row(state=DeliveryState.INFLIGHT), unsure(row())):
        decision = decide(worse, [Change.ESCALATED], minutes=1, rows=(first,))
        assert kinds(decision) == [("team", "escalation")]
        assert decision.superseded == ()


def test_growth_is_told_at_most_every_five_minutes_but_never_forgotten() -> None:
    grown = incident(members=members(8))

    assert kinds(decide(grown, [Change.GREW], minutes=4, ledger=told())) == []
    assert kinds(decide(grown, minutes=5, ledger=told())) == [("team", "update")]
    assert kinds(decide(grown, minutes=5, ledger=told(members=8))) == []


def test_a_new_fingerprint_is_growth_and_more_of_the_same_is_not() -> None:
    event = incident(event=True, members=(), count=500, fingerprints=("a", "b"))
    known = told(members=0, count=1, fingerprints=("a",))

    assert kinds(decide(event, minutes=6, ledger=known)) == [("team", "update")]
    assert kinds(decide(event, minutes=6, ledger=replace(known, fingerprints=("b", "a")))) == []


def test_growth_replaces_a_waiting_first_word_and_a_waiting_update() -> None:
    grown = incident(members=members(8))

    first = decide(grown, [Change.GREW], minutes=1, rows=(row(),))
    assert (kinds(first), first.superseded) == ([("team", "first")], (1,))
    update = row(MessageKind.UPDATE, incident(members=members(3)))
    again = decide(grown, [Change.GREW], minutes=9, rows=(update,), ledger=told())
    assert (kinds(again), again.superseded) == ([("team", "update")], (1,))


def test_what_replaces_a_waiting_row_keeps_its_wait() -> None:
    throttled = DeliveryResult(answer=Answer.RETRY, code="429", retry_after=timedelta(minutes=2))
    waiting = row(not_before=at(2).watched, last_result=throttled)

    decision = decide(closed(), [Change.CLOSED], minutes=1, rows=(waiting,))

    assert kinds(decision) == [("team", "combined")]
    assert decision.deliveries[0].not_before == at(2).watched


def test_the_end_is_told_to_those_who_were_told_whatever_the_channels_filter_says_now() -> None:
    decision = decide(
        closed(notify=("mail",)), [Change.CLOSED], minutes=9, channels=(TEAM, ONCALL), ledger=told()
    )

    assert kinds(decision) == [("team", "closed")]


def test_the_end_makes_waiting_words_needless() -> None:
    reminder = row(MessageKind.REMINDER)

    decision = decide(closed(), [Change.CLOSED], minutes=9, rows=(reminder,), ledger=told())

    assert (kinds(decision), decision.superseded) == ([("team", "closed")], (1,))


def test_fired_and_over_before_the_channel_could_be_told_is_one_message() -> None:
    late = decide(closed(), [Change.CLOSED], minutes=9, rows=(row(),))
    at_once = decide(closed(), [Change.OPENED, Change.CLOSED], minutes=9)

    assert (kinds(late), late.superseded) == ([("team", "combined")], (1,))
    assert kinds(at_once) == [("team", "combined")]


def test_the_end_queues_behind_a_first_word_that_may_have_arrived() -> None:
    for first in (row(state=DeliveryState.INFLIGHT), unsure(row())):
        behind = row(MessageKind.ESCALATION, number=2)
        decision = decide(closed(), [Change.CLOSED], minutes=9, rows=(first, behind))
        assert (kinds(decision), decision.superseded) == ([("team", "closed")], (2,))


def test_an_end_behind_a_first_word_that_did_not_arrive_becomes_one_message_with_it() -> None:
    end = row(MessageKind.CLOSED, closed(), number=2, created=at(9).watched)

    decision = decide(closed(), minutes=10, rows=(row(), end))

    assert (kinds(decision), decision.superseded) == ([("team", "combined")], (1, 2))


def test_after_a_first_word_was_given_up_nothing_more_is_said() -> None:
    assert kinds(decide(closed(), [Change.CLOSED], minutes=9)) == []
    orphan = row(MessageKind.CLOSED, closed())
    decision = decide(closed(), minutes=10, rows=(orphan,))
    assert (kinds(decision), decision.superseded) == ([], (1,))


def test_a_channel_that_is_new_learns_of_no_end() -> None:
    decision = decide(
        closed(), [Change.CLOSED], minutes=9, channels=(TEAM, replace(TEAM, name="new")), ledger=told()
    )

    assert kinds(decision) == [("team", "closed")]


def test_quiet_ends_and_ends_of_events_are_not_told() -> None:
    quiet = closed(CloseReason.QUIET, event=True)
    ended = closed(CloseReason.TASK_ENDED, event=True)

    assert kinds(decide(quiet, [Change.CLOSED], minutes=9, ledger=told())) == []
    assert kinds(decide(ended, [Change.CLOSED], minutes=9, ledger=told())) == []
    assert kinds(decide(quiet, [Change.OPENED, Change.CLOSED], minutes=9)) == [("team", "first")]


def test_reminders_are_numbered_and_counted_from_what_was_delivered() -> None:
    assert kinds(decide(incident(), minutes=239, ledger=told())) == []
    first = decide(incident(), minutes=240, ledger=told())
    assert kinds(first) == [("team", "reminder")]
    assert first.deliveries[0].notification.reminder == 1
    late = told(MessageKind.REMINDER, minutes=300, reminders=1)
    assert kinds(decide(incident(), minutes=500, ledger=late)) == []
    assert decide(incident(), minutes=540, ledger=late).deliveries[0].notification.reminder == 2


def test_no_reminder_for_events_for_repeat_zero_or_while_something_waits() -> None:
    assert kinds(decide(incident(event=True), minutes=999, ledger=told())) == []
    assert kinds(decide(incident(repeat=timedelta()), minutes=999, ledger=told())) == []
    waiting = row(MessageKind.REMINDER)
    assert kinds(decide(incident(), minutes=999, rows=(waiting,), ledger=told())) == []
    assert kinds(decide(incident(), minutes=999)) == []


def test_a_lasting_notice_is_reminded_of_daily() -> None:
    notice = incident(notice=NoticeKind.SOURCE_BLIND, repeat=timedelta(), members=())

    assert kinds(decide(notice, minutes=23 * 60, ledger=told(members=0))) == []
    assert kinds(decide(notice, minutes=24 * 60, ledger=told(members=0))) == [("team", "reminder")]


def test_a_channel_that_refuses_is_tried_again_at_the_reminders_pace() -> None:
    refused = {("abc", "team"): at(10).watched}

    assert kinds(decide(incident(), minutes=60, given_up=refused)) == []
    assert kinds(decide(incident(), minutes=250, given_up=refused)) == [("team", "first")]
    overdue = decide(incident(), minutes=245, ledger=told(minutes=-600), given_up=refused)
    assert kinds(overdue) == []


def test_what_could_not_be_stored_says_so() -> None:
    decision = decide(incident(), [Change.OPENED], not_stored=True)

    assert decision.deliveries[0].notification.not_stored


def test_planning_again_after_the_decision_was_applied_adds_nothing() -> None:
    grown = incident(members=members(4), severity=Severity.CRITICAL)
    first = decide(grown, [Change.OPENED, Change.GREW, Change.ESCALATED], channels=(TEAM, ONCALL))
    rows = tuple(replace(one, id=number) for number, one in enumerate(first.deliveries, 1))

    again = decide(grown, channels=(TEAM, ONCALL), rows=rows, mark=first.mark)

    assert again == PlanDecision(mark=first.mark)


def test_a_row_is_never_replaced_in_the_moment_it_was_decided() -> None:
    """T2 knows a row by incident, channel, kind and moment: a twin would be taken for it."""
    decision = decide(incident(members=members(5)), [Change.GREW], minutes=0, rows=(row(),))

    assert decision.deliveries == ()
    assert decision.superseded == ()


def test_a_combined_message_on_its_way_or_told_is_the_last_word() -> None:
    waiting = row(MessageKind.COMBINED, closed())
    flying = replace(waiting, state=DeliveryState.INFLIGHT)

    assert kinds(decide(closed(), [Change.CLOSED], minutes=10, rows=(waiting,))) == []
    assert kinds(decide(closed(), [Change.CLOSED], minutes=10, rows=(flying,))) == []
    assert kinds(decide(closed(), [Change.CLOSED], minutes=10, ledger=told(MessageKind.COMBINED))) == []


def test_the_end_is_queued_once() -> None:
    end = row(MessageKind.CLOSED, closed(), number=2)
    flying = row(state=DeliveryState.INFLIGHT)

    assert kinds(decide(closed(), [Change.CLOSED], minutes=10, rows=(flying, end))) == []
    assert kinds(decide(closed(), [Change.CLOSED], minutes=10, rows=(end,), ledger=told())) == []


def test_rows_that_are_done_or_dead_do_not_count() -> None:
    dead = row(state=DeliveryState.DEAD)

    assert kinds(decide(incident(), [Change.OPENED], minutes=1, rows=(dead,))) == [("team", "first")]


@pytest.mark.parametrize(("updates", "pause"), [(0, 5), (1, 10), (2, 20), (3, 40), (4, 60), (7, 60)])
def test_the_pause_between_updates_doubles_up_to_an_hour(updates: int, pause: int) -> None:
    grown, entry = incident(members=members(8)), told(updates=updates)

    assert decide(grown, minutes=pause - 0.1, ledger=entry).deliveries == ()
    (update,) = decide(grown, minutes=pause, ledger=entry).deliveries
    assert (update.notification.kind, update.notification.update) == (MessageKind.UPDATE, updates + 1)


def test_after_two_hours_without_a_message_updates_begin_anew() -> None:
    grown = incident(members=members(8))

    (update,) = decide(grown, minutes=120, ledger=told(updates=7)).deliveries

    assert update.notification.update == 1


def news(*texts: str) -> tuple[EvidenceLine, ...]:
    return tuple(
        EvidenceLine(time_ns=number, pod="p0", text=text, matched=True, kind=text)
        for number, text in enumerate(texts, 1)
    )


def errors(*texts: str, **changes: object) -> Incident:
    lines = news(*texts)
    return incident(
        event=True,
        members=(),
        fingerprints=texts,
        news=lines,
        first=Evidence(lines=lines[:1]),
        latest=Evidence(lines=lines[-1:]),
        **changes,
    )


def shown(decision: PlanDecision) -> list[str]:
    (row,) = decision.deliveries
    about = row.notification.incident
    update = row.notification.kind is MessageKind.UPDATE
    return [line.text for line in (about.latest if update else about.first).lines]


def test_an_update_shows_every_kind_of_line_that_the_channel_was_not_told_of() -> None:
    decision = decide(errors("a", "b", "c", "d"), minutes=5, ledger=told(members=0, fingerprints=("a",)))
    assert shown(decision) == ["b", "c", "d"]


def test_a_first_word_that_waited_shows_every_kind_of_line() -> None:
    waiting = row(about=errors("a"))
    assert shown(decide(errors("a", "b", "c"), [Change.GREW], minutes=2, rows=(waiting,))) == ["a", "b", "c"]


def test_what_goes_quiet_is_told_in_full_before() -> None:
    quiet = errors("a", "b", closed_at=T + timedelta(minutes=3), close_reason=CloseReason.QUIET)

    assert shown(decide(quiet, [Change.CLOSED], minutes=3, ledger=told(members=0, fingerprints=("a",)))) == [
        "b"
    ]
    assert (
        decide(quiet, [Change.CLOSED], minutes=3, ledger=told(members=0, fingerprints=("a", "b"))).deliveries
        == ()
    )
