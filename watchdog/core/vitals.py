"""Vitals: from what the engine knows of itself to one verdict, healthy or why not.

The same verdict answers the health pages, the dead man's switch, systemd and `status`, so that they
cannot disagree. Pure; how the facts are collected is `engine.vitals`.
"""

from dataclasses import dataclass
from datetime import timedelta

from watchdog.core.durations import format_duration

LATE_SHARE = 0.5  # of an interval: how late a slot may be …
LATE_LEAST = timedelta(seconds=30)  # … though a busy machine is no stall
OUTBOX_OLD = timedelta(minutes=30)  # watched; the outbox tries at least every 10 minutes


@dataclass(frozen=True, slots=True, kw_only=True)
class Vitals:
    """What is known at one moment.

    slots: evaluated since the start. since_slot: since the newest one ended (since the start, if there
    was none). asked, answered: questions of the last cycle, and how many had a usable answer. oldest:
    age of the oldest message that waits for a channel that takes messages. not_stored: why the state
    cannot be written, "" = it can.
    """

    interval: timedelta
    slots: int
    since_slot: timedelta
    asked: int = 0
    answered: int = 0
    not_stored: str = ""
    waiting: int = 0
    oldest: timedelta = timedelta()
    channels: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()  # channels that take no messages
    tasks: int = 0
    rules: int = 0
    firing: int = 0  # open incidents of rules that last
    blind: tuple[str, ...] = ()  # "alaya: metrics"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether the watching can be relied on. reasons: why not. remarks: what is wrong, but not fatal."""

    ready: bool  # slots are evaluated, on time
    reasons: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def healthy(self) -> bool:
        """Whether nothing speaks against it."""
        return not self.reasons


def allowance(interval: timedelta) -> timedelta:
    """Return how much later than an interval the next slot may end without being a stall."""
    return max(interval * LATE_SHARE, LATE_LEAST)


def judge(vitals: Vitals) -> Verdict:
    """Say whether the watching can be relied on at this moment."""
    stalled = _stalled(vitals)
    reasons = [stalled, _unseeing(vitals), _unstored(vitals), *_untold(vitals)]
    remarks = [f"channel {name} takes no messages" for name in vitals.broken]
    remarks += [f"cannot read {what}" for what in vitals.blind]
    return Verdict(
        ready=not stalled,
        reasons=tuple(reason for reason in reasons if reason),
        remarks=tuple(remarks),
    )


def summary(vitals: Vitals) -> str:
    """Return one line: what is watched, what fires, what waits."""
    counts = (
        (vitals.tasks, "task", "tasks"),
        (vitals.rules, "rule", "rules"),
        (vitals.firing, "firing", "firing"),
        (vitals.waiting, "message waiting", "messages waiting"),
    )
    return ", ".join(f"{count} {one if count == 1 else many}" for count, one, many in counts)


def _stalled(vitals: Vitals) -> str:
    if vitals.since_slot <= vitals.interval + allowance(vitals.interval):
        return "" if vitals.slots else "nothing has been evaluated yet"
    return (
        f"no evaluation has ended for {_whole(vitals.since_slot)}; "
        f"one is due every {format_duration(vitals.interval)}"
    )


def _unseeing(vitals: Vitals) -> str:
    if not vitals.slots or vitals.answered:
        return ""
    if not vitals.asked:
        return "nothing is being asked: no task is watched"
    return f"no source gives a usable answer: {'; '.join(vitals.blind) or 'every question fails'}"


def _unstored(vitals: Vitals) -> str:
    return f"the state is not stored: {vitals.not_stored}" if vitals.not_stored else ""


def _untold(vitals: Vitals) -> tuple[str, ...]:
    if vitals.channels and set(vitals.broken) >= set(vitals.channels):
        return (f"no channel takes messages; {vitals.waiting} waiting",)
    if vitals.oldest > OUTBOX_OLD:
        return (f"a message has been waiting for {_whole(vitals.oldest)}",)
    return ()


def _whole(duration: timedelta) -> str:
    return format_duration(timedelta(seconds=round(duration.total_seconds())))
