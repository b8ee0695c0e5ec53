"""The one verdict: each thing that makes the watching useless is named, and nothing else is."""

from dataclasses import replace
from datetime import timedelta

import pytest

from watchdog.core.vitals import OUTBOX_OLD, Vitals, judge, summary

MINUTE = timedelta(minutes=1)
WELL = Vitals(
    interval=MINUTE,
    slots=10,
    since_slot=timedelta(seconds=40),
    asked=6,
    answered=6,
    channels=("team", "oncall"),
    tasks=2,
    rules=12,
)


def test_all_is_well() -> None:
    verdict = judge(WELL)
    assert (verdict.healthy, verdict.ready, verdict.reasons, verdict.remarks) == (True, True, (), ())


def test_before_the_first_evaluation_it_is_neither_healthy_nor_said_to_stall() -> None:
    verdict = judge(replace(WELL, slots=0, asked=0, answered=0, since_slot=timedelta(seconds=5)))
    assert verdict.reasons == ("nothing has been evaluated yet",)
    assert not verdict.ready


@pytest.mark.parametrize(
    ("interval", "since", "stalled"),
    [
        (MINUTE, timedelta(seconds=90), False),
        (MINUTE, timedelta(seconds=91), True),
        (timedelta(seconds=5), timedelta(seconds=35), False),
        (timedelta(seconds=5), timedelta(seconds=36), True),
        (timedelta(minutes=10), timedelta(minutes=15), False),
        (timedelta(minutes=10), timedelta(minutes=15, seconds=1), True),
    ],
)
def test_a_stall_is_a_slot_that_is_late_by_half_an_interval(
    interval: timedelta, since: timedelta, stalled: bool
) -> None:
    verdict = judge(replace(WELL, interval=interval, since_slot=since))
    assert verdict.ready is not stalled
    assert any(reason.startswith("no evaluation has ended for") for reason in verdict.reasons) is stalled


def test_a_start_that_hangs_is_a_stall() -> None:
    verdict = judge(replace(WELL, slots=0, since_slot=timedelta(minutes=3)))
    assert verdict.reasons == ("no evaluation has ended for 3m; one is due every 1m",)


def test_seeing_nothing_is_named_with_what_is_blind() -> None:
    verdict = judge(replace(WELL, answered=0, blind=("metrics of alaya", "logs of alaya")))
    assert verdict.ready
    assert verdict.reasons == ("no source gives a usable answer: metrics of alaya; logs of alaya",)


def test_seeing_something_is_enough() -> None:
    verdict = judge(replace(WELL, answered=1, blind=("logs of alaya",)))
    assert verdict.healthy
    assert verdict.remarks == ("cannot read logs of alaya",)


def test_watching_nothing_is_not_healthy() -> None:
    assert judge(replace(WELL, asked=0, answered=0)).reasons == (
        "nothing is being asked: no task is watched",
    )


def test_a_state_that_is_not_stored_is_not_healthy() -> None:
    reasons = judge(replace(WELL, not_stored="database or disk is full")).reasons
    assert reasons == ("the state is not stored: database or disk is full",)


def test_one_broken_channel_is_a_remark_all_of_them_a_reason() -> None:
    one = judge(replace(WELL, broken=("team",), waiting=3))
    assert (one.healthy, one.remarks) == (True, ("channel team takes no messages",))
    both = judge(replace(WELL, broken=("team", "oncall"), waiting=3))
    assert both.reasons == ("no channel takes messages; 3 waiting",)


def test_a_message_that_waits_for_a_good_channel_too_long_is_a_reason() -> None:
    assert judge(replace(WELL, waiting=1, oldest=OUTBOX_OLD)).healthy
    late = judge(replace(WELL, waiting=1, oldest=OUTBOX_OLD + timedelta(seconds=61)))
    assert late.reasons == ("a message has been waiting for 31m1s",)


def test_the_summary_counts_in_words() -> None:
    assert summary(WELL) == "2 tasks, 12 rules, 0 firing, 0 messages waiting"
    assert summary(replace(WELL, tasks=1, rules=1, firing=1, waiting=1)) == (
        "1 task, 1 rule, 1 firing, 1 message waiting"
    )
