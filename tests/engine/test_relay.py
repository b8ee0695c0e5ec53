"""The relay: one loop a channel; nothing is sent twice, late or while it waits, and nobody looks in vain."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

import pytest

from watchdog.core.alerts import Incident, NoticeKind
from watchdog.core.labels import Labels
from watchdog.core.moments import Moment
from watchdog.core.notifications import (
    Answer,
    Delivery,
    DeliveryResult,
    DeliveryState,
    Message,
    MessageKind,
    Notification,
)
from watchdog.core.rules import Severity
from watchdog.engine.journal import Journal
from watchdog.engine.relay import Relay
from watchdog.ports import Notifier, PlanCommit, SlotCommit
from watchdog.replay.virtual import VirtualWorld
from watchdog.store.memory import MemoryState

T = TypeVar("T")
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
RETRY = DeliveryResult(answer=Answer.RETRY, code="503")
REFUSED = DeliveryResult(answer=Answer.PERMANENT, code="404")


class Chat(Protocol):
    name: str
    sent: list[tuple[float, Message]]
    answers: list[DeliveryResult]
    takes: timedelta
    tries: list[float]
    raises: Exception | None


class Bench(Protocol):
    world: VirtualWorld
    chat: Chat
    state: MemoryState

    def run(self, main: Callable[[], Coroutine[object, object, T]]) -> T: ...


async def inline(call: Callable[[], T]) -> T:
    return call()


def render(notification: Notification, notifier: Notifier) -> Message:
    return Message(
        title=f"{notification.kind} {notification.incident.id}",
        body="",
        severity=notification.incident.severity,
        kind=notification.kind,
        incident=notification.incident.id,
    )


class Lab:
    def __init__(self, bench: Bench) -> None:
        self.bench, self.world, self.chat = bench, bench.world, bench.chat
        self.mail: Chat = type(bench.chat)(bench.world, "mail")  # type: ignore[call-arg]
        self.looked = 0
        self.relay = self.make()

    def make(self) -> Relay:
        self.journal = Journal(store=self.bench.state.open(), run=inline)
        return Relay(
            journal=self.journal,
            notifiers={"chat": self.chat, "mail": self.mail},
            render=render,
            clock=self.world,
            moment=self.moment,
            jitter=lambda: 1.0,
        )

    def moment(self) -> Moment:
        self.looked += 1
        return Moment(at=self.world.now(), watched=self.world.monotonic())

    def row(
        self,
        name: str,
        kind: MessageKind = MessageKind.FIRST,
        *,
        channel: str = "chat",
        severity: Severity = Severity.WARNING,
        wait: timedelta = timedelta(),
    ) -> Delivery:
        at: datetime = self.world.now()
        incident = Incident(
            id=name,
            rule="low",
            labels=Labels.of(source="src", task="src/1", task_name="run"),
            severity=severity,
            event=False,
            opened_at=at,
            since=at,
            updated_at=at,
        )
        said = Notification(channel=channel, kind=kind, incident=incident, decided_at=at)
        watched = self.world.monotonic()
        return Delivery(notification=said, created=watched, not_before=watched + wait)

    async def add(self, *rows: Delivery) -> tuple[Delivery, ...]:
        """T2, and hand the rows over."""
        known = self.journal.identified(rows)
        await self.journal.plan(PlanCommit(mark=0, deliveries=known))
        self.relay.add(known)
        return known

    def deliver(
        self, *steps: tuple[timedelta, Callable[[], Coroutine[object, object, object]]], end: timedelta
    ) -> None:
        """Run both channels' loops, do each step at its time, stop at the end."""

        async def main() -> None:
            loops = [
                asyncio.ensure_future(self.relay.run(name, own)) for name, own in self.relay.notifiers.items()
            ]
            for at, step in steps:
                await self.world.sleep(at - self.world.monotonic())
                await step()
            await self.world.sleep(end - self.world.monotonic())
            for loop in loops:
                loop.cancel()
            failed = await asyncio.gather(*loops, return_exceptions=True)
            assert all(isinstance(one, asyncio.CancelledError) for one in failed), failed

        self.bench.run(main)

    def stored(self) -> dict[int, DeliveryState]:
        return {row.id: row.state for row in self.bench.state.reader().load().outbox}


@pytest.fixture
def lab(bench: Bench) -> Lab:
    return Lab(bench)


def seconds(chat: Chat) -> list[tuple[float, str]]:
    return [(round(minute * 60, 3), message.title) for minute, message in chat.sent]


def test_a_new_row_is_sent_at_once(lab: Lab) -> None:
    lab.deliver((90 * SECOND, lambda: lab.add(lab.row("aaaa"))), end=2 * MINUTE)
    assert seconds(lab.chat) == [(90, "first aaaa")]
    assert lab.relay.rows == {}
    assert lab.relay.ledger["aaaa", "chat"].told_watched == 90 * SECOND
    assert lab.stored() == {}


def test_a_hanging_channel_delays_no_other(lab: Lab) -> None:
    lab.chat.takes = timedelta(hours=5)
    lab.deliver(
        (SECOND, lambda: lab.add(lab.row("aaaa"), lab.row("bbbb"), lab.row("aaaa", channel="mail"))),
        end=timedelta(hours=1),
    )
    assert seconds(lab.mail) == [(1, "first aaaa")]
    assert len(lab.chat.tries) == 1
    assert lab.stored() == {1: DeliveryState.INFLIGHT, 2: DeliveryState.PENDING}


def test_what_is_superseded_before_it_started_is_not_sent(lab: Lab) -> None:
    async def replace_it() -> None:
        first = await lab.add(lab.row("aaaa", wait=SECOND))
        lab.relay.supersede([first[0].id])
        await lab.world.sleep(2 * SECOND)
        await lab.add(lab.row("aaaa", MessageKind.COMBINED))

    lab.deliver((SECOND, replace_it), end=MINUTE)
    assert [title for _, title in seconds(lab.chat)] == ["combined aaaa"]


def test_on_a_slow_channel_a_critical_one_comes_right_after_what_is_on_its_way(lab: Lab) -> None:
    lab.chat.takes = 5 * SECOND
    lab.deliver(
        (SECOND, lambda: lab.add(*(lab.row(name) for name in ("aaaa", "bbbb", "cccc")))),
        (7 * SECOND, lambda: lab.add(lab.row("dddd", severity=Severity.CRITICAL))),
        end=MINUTE,
    )
    assert seconds(lab.chat) == [
        (6, "first aaaa"),
        (11, "first bbbb"),
        (16, "first dddd"),
        (21, "first cccc"),
    ]


def test_after_a_pause_that_a_provider_asks_for_the_critical_one_comes_first(lab: Lab) -> None:
    lab.chat.answers = [DeliveryResult(answer=Answer.RETRY, code="429", retry_after=30 * SECOND)]
    lab.deliver(
        (SECOND, lambda: lab.add(lab.row("aaaa"), lab.row("bbbb"))),
        (10 * SECOND, lambda: lab.add(lab.row("dddd", severity=Severity.CRITICAL))),
        end=MINUTE,
    )
    assert seconds(lab.chat) == [(31, "first dddd"), (31, "first aaaa"), (31, "first bbbb")]


def test_a_failed_row_is_tried_again_later_and_later(lab: Lab) -> None:
    lab.chat.answers = [RETRY] * 4
    lab.deliver((SECOND, lambda: lab.add(lab.row("aaaa"))), end=timedelta(hours=1))
    tries = [round(minute * 60) for minute in lab.chat.tries]
    assert tries == [1, 3, 7, 15, 31]
    assert seconds(lab.chat) == [(31, "first aaaa")]


def test_within_an_incident_messages_keep_their_order(lab: Lab) -> None:
    lab.chat.answers = [RETRY]
    lab.deliver(
        (SECOND, lambda: lab.add(lab.row("aaaa"))),
        (2 * SECOND, lambda: lab.add(lab.row("aaaa", MessageKind.CLOSED), lab.row("bbbb"))),
        end=MINUTE,
    )
    assert [title for _, title in seconds(lab.chat)] == ["first bbbb", "first aaaa", "closed aaaa"]


def test_a_channel_that_waits_does_not_look_again_and_again(lab: Lab) -> None:
    """Its first row backs off for ten minutes; a later one of the same incident is due all the while."""
    lab.chat.answers = [RETRY] * 30
    lab.deliver(
        (SECOND, lambda: lab.add(lab.row("aaaa"))),
        (2 * SECOND, lambda: lab.add(lab.row("aaaa", MessageKind.CLOSED))),
        end=timedelta(hours=3),
    )
    assert len(lab.chat.tries) < 30
    assert lab.looked < 1000, "two channels, a look or two a minute"


def test_an_idle_channel_looks_rarely(lab: Lab) -> None:
    lab.deliver(end=timedelta(hours=1))
    assert lab.looked < 150


def test_the_end_of_what_was_never_told_waits_for_the_planner(lab: Lab) -> None:
    lab.deliver((SECOND, lambda: lab.add(lab.row("aaaa", MessageKind.CLOSED))), end=timedelta(minutes=10))
    assert lab.chat.tries == []
    assert lab.looked < 60


def test_a_message_in_flight_when_the_loops_end_is_waited_for(lab: Lab) -> None:
    lab.chat.takes = 2 * SECOND

    async def main() -> timedelta:
        loop = asyncio.ensure_future(lab.relay.run("chat", lab.chat))
        await lab.add(lab.row("aaaa"))
        await lab.world.sleep(SECOND)
        loop.cancel()
        await asyncio.gather(loop, return_exceptions=True)
        began = lab.world.monotonic()
        await lab.relay.drain(30 * SECOND)
        return lab.world.monotonic() - began

    assert lab.bench.run(main) == SECOND, "not longer than it takes"
    assert [title for _, title in seconds(lab.chat)] == ["first aaaa"]
    assert lab.relay.rows == lab.stored() == {}


def test_what_does_not_end_in_time_is_sent_again_by_the_next_start_and_says_so(lab: Lab) -> None:
    lab.chat.takes = timedelta(hours=1)

    async def main() -> None:
        loop = asyncio.ensure_future(lab.relay.run("chat", lab.chat))
        await lab.add(lab.row("aaaa"))
        await lab.world.sleep(SECOND)
        loop.cancel()
        await asyncio.gather(loop, return_exceptions=True)
        await lab.relay.drain(3 * SECOND)

    lab.bench.run(main)
    (row,) = lab.bench.state.open().load().outbox
    assert row.state is DeliveryState.PENDING
    assert row.notification.maybe_repeat


def test_a_message_that_is_refused_twice_is_given_up_and_reported_elsewhere(lab: Lab) -> None:
    lab.chat.answers = [REFUSED, REFUSED]
    lab.deliver((SECOND, lambda: lab.add(lab.row("aaaa"))), end=timedelta(minutes=20))
    assert lab.relay.rows == {}
    (notice,) = lab.relay.owed.take()
    assert (notice.kind, notice.exclude) == (NoticeKind.UNDELIVERED, ("chat",))
    assert ("aaaa", "chat") in lab.relay.given_up
    assert lab.relay.owed.take() == ()
    lab.relay.forget(frozenset({"aaaa"}))
    assert lab.relay.given_up == {}


def test_what_is_owed_to_be_said_outlives_the_process_until_a_slot_has_said_it(lab: Lab) -> None:
    lab.chat.answers = [REFUSED, REFUSED]
    lab.deliver((SECOND, lambda: lab.add(lab.row("aaaa"))), end=timedelta(minutes=20))
    (notice,) = lab.relay.owed.take()

    after = Lab(lab.bench)
    after.relay.recall([], lab.bench.state.reader().load().memory)
    assert after.relay.owed.take() == (notice,)
    commit = SlotCommit(moment=after.moment(), dropped_memory=after.relay.owed.said())
    lab.bench.run(lambda: after.journal.slot(commit))

    assert lab.bench.state.reader().load().memory == {}
    assert after.relay.owed.said() == ()


def test_what_a_slot_has_said_of_a_removed_channel_is_not_owed_again_by_its_later_rows(lab: Lab) -> None:
    said = []

    async def slot() -> None:  # comes while the first row is being stored, and waits for its turn
        said.extend(lab.relay.owed.take())
        dropped = lab.relay.owed.said()
        await lab.journal.slot(SlotCommit(moment=lab.moment(), dropped_memory=dropped))

    async def slowly(call: Callable[[], T]) -> T:
        await asyncio.sleep(0)
        return call()

    async def main() -> None:
        await lab.add(lab.row("aaaa"), lab.row("bbbb"), lab.row("cccc"))
        lab.relay.notifiers, lab.journal.run = {"mail": lab.mail}, slowly
        beside = asyncio.ensure_future(slot())
        await lab.relay.give_up_removed()
        await beside

    lab.bench.run(main)

    assert [notice.params["messages"] for notice in said] == ["3"]
    assert lab.relay.rows == {}
    assert lab.bench.state.reader().load().memory == {}


def test_a_channel_found_broken_just_before_the_end_has_to_prove_itself_to_the_next_life(lab: Lab) -> None:
    lab.chat.answers = [RETRY] * 5
    lab.deliver((SECOND, lambda: lab.add(lab.row("aaaa"))), end=timedelta(seconds=40))

    after = Lab(lab.bench)
    after.relay.recall([], lab.bench.state.reader().load().memory)
    assert after.relay.health["chat"].broken
    assert after.relay.health["chat"].failures == 5
    after.deliver((MINUTE, lambda: after.add(after.row("bbbb"))), end=timedelta(minutes=2))

    assert [(notice.kind, notice.active) for notice in after.relay.owed.take()] == [
        (NoticeKind.CHANNEL_BROKEN, True),
        (NoticeKind.CHANNEL_BROKEN, False),
    ]


def test_what_another_version_owed_and_nobody_can_read_is_dropped(lab: Lab) -> None:
    lab.relay.recall(
        [], {"owed // 2026 x": "[]", "owed // 2027 y": '{"kind": "news"}', "daily note": "2026-11-30"}
    )

    assert lab.relay.owed.take() == ()
    assert lab.relay.owed.said() == ("owed // 2026 x", "owed // 2027 y")


def test_a_notifier_that_raises_is_an_unknown_outcome_and_stops_nobody(lab: Lab) -> None:
    lab.chat.raises = RuntimeError("a bug")

    async def mended() -> None:
        lab.chat.raises = None

    lab.deliver(
        (SECOND, lambda: lab.add(lab.row("aaaa"), lab.row("bbbb", channel="mail"))),
        (30 * SECOND, mended),
        end=timedelta(minutes=5),
    )
    assert seconds(lab.mail) == [(1, "first bbbb")]
    assert [title for _, title in seconds(lab.chat)] == ["first aaaa"]
    assert len(lab.chat.tries) > 2


def test_a_broken_channel_is_said_once_and_after_a_restart_its_recovery_too(lab: Lab) -> None:
    lab.chat.answers = [RETRY] * 6
    lab.deliver((SECOND, lambda: lab.add(lab.row("aaaa"))), end=timedelta(minutes=10))
    kinds = [(notice.kind, notice.active) for notice in lab.relay.owed.take()]
    assert kinds == [(NoticeKind.CHANNEL_BROKEN, True), (NoticeKind.CHANNEL_BROKEN, False)]
    opened = replace(
        lab.row("cccc").notification.incident, notice=NoticeKind.CHANNEL_BROKEN, params={"subject": "chat"}
    )
    after = Lab(lab.bench)
    after.relay.recall([opened], {})
    after.deliver((timedelta(minutes=11), lambda: after.add(after.row("dddd"))), end=timedelta(minutes=12))
    assert [(notice.kind, notice.active) for notice in after.relay.owed.take()] == [
        (NoticeKind.CHANNEL_BROKEN, False)
    ]


def test_ledger_entries_of_what_is_over_are_forgotten(lab: Lab) -> None:
    lab.deliver((SECOND, lambda: lab.add(lab.row("aaaa"), lab.row("bbbb"))), end=MINUTE)
    lab.relay.forget(frozenset({"aaaa"}))
    assert set(lab.relay.ledger) == {("bbbb", "chat")}
