"""The relay: takes due outbox rows to their channels, and writes down what came of them (T3).

One loop a channel, so that a hanging one delays no other. Which row is next, when to try again
and when to give up is decided in `core.backoff`; wording in `core.rendering`.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta

from watchdog.core.alerts import Incident, NoticeKind
from watchdog.core.backoff import (
    REMOVED,
    AttemptDecision,
    ChannelHealth,
    after_answer,
    after_attempt,
    channel_removed,
    channel_removed_notice,
    next_due,
    next_wake,
    undelivered_notice,
)
from watchdog.core.incidents import SUBJECT
from watchdog.core.moments import Moment
from watchdog.core.notifications import (
    Answer,
    Delivery,
    DeliveryResult,
    DeliveryState,
    LedgerEntry,
    Message,
    Notification,
)
from watchdog.core.planning import Pair
from watchdog.engine.journal import Journal
from watchdog.engine.owed import Owed
from watchdog.ports import AttemptCommit, Clock, Notifier

log = logging.getLogger(__name__)

LONGEST_WAIT = timedelta(seconds=60)
SHORTEST_WAIT = timedelta(milliseconds=10)
LONG_AGO = timedelta(days=-36_500)  # watched: whatever was given up then may be tried again now

Render = Callable[[Notification, Notifier], Message]


@dataclass(slots=True, kw_only=True)
class Relay:
    """Owns the live outbox rows and the ledger."""

    journal: Journal
    notifiers: Mapping[str, Notifier]
    render: Render
    clock: Clock
    moment: Callable[[], Moment]
    jitter: Callable[[], float]
    rows: dict[int, Delivery] = field(default_factory=dict)
    ledger: dict[Pair, LedgerEntry] = field(default_factory=dict)
    given_up: dict[Pair, timedelta] = field(default_factory=dict)
    health: dict[str, ChannelHealth] = field(default_factory=dict)
    owed: Owed = field(default_factory=Owed)  # what the next slot is to say of channels
    sent: int = 0
    answers: Counter[tuple[str, Answer]] = field(default_factory=Counter)  # (channel, answer) of each attempt
    newest: dict[str, tuple[Moment, DeliveryResult]] = field(default_factory=dict)  # by channel
    _wake: dict[str, asyncio.Event] = field(default_factory=dict)
    _attempts: set[asyncio.Task[None]] = field(default_factory=set)

    def supersede(self, ids: Iterable[int]) -> None:
        """Drop pending rows that new ones say too; at once, before anybody could start to send them."""
        for row in ids:
            self.rows.pop(row, None)

    def add(self, deliveries: Iterable[Delivery]) -> None:
        """Take over rows that the planner decided and T2 stored."""
        for delivery in deliveries:
            self.rows[delivery.id] = delivery
            self._event(delivery.notification.channel).set()

    def forget(self, incidents: frozenset[str]) -> None:
        """Drop ledger entries of incidents that are over and told."""
        self.ledger = {pair: entry for pair, entry in self.ledger.items() if pair[0] not in incidents}
        self.given_up = {pair: at for pair, at in self.given_up.items() if pair[0] not in incidents}

    def resume(self, outbox: Iterable[Delivery], ledger: Iterable[LedgerEntry]) -> None:
        """Take up what the store holds."""
        self.rows = {row.id: row for row in outbox}
        self.ledger = {(entry.incident, entry.channel): entry for entry in ledger}

    def recall(self, incidents: Iterable[Incident], memory: Mapping[str, str]) -> None:
        """After a start: a channel of which it was said that it takes no messages has to prove otherwise.

        The same goes for what the earlier process had found out, and did not come to say.
        """
        for incident in incidents:
            if incident.notice is NoticeKind.CHANNEL_BROKEN and incident.open:
                self._believe(incident.params.get(SUBJECT, ""), incident.params, broken=True)
        for notice in self.owed.resume(memory):
            if notice.kind is NoticeKind.CHANNEL_BROKEN:
                self._believe(notice.subject, notice.params, broken=notice.active)

    def _believe(self, channel: str, said: Mapping[str, str], *, broken: bool) -> None:
        failures, lost = int(said.get("failures", 0)), int(said.get("lost", 0))
        health = ChannelHealth(failures=failures, broken=True, lost=lost)
        self.health[channel] = health if broken else ChannelHealth()

    def adopt(self, notifiers: Mapping[str, Notifier], render: Render) -> tuple[str, ...]:
        """Go on with other channels. Returns the names of those whose notifier is new.

        What waited for a channel with a new address is tried there at once. Rows of a channel that is
        gone stay until `give_up_removed`. A send in flight ends on the notifier it began with.
        """
        now = self.moment().watched
        fresh = tuple(name for name, own in notifiers.items() if self.notifiers.get(name) is not own)
        self.notifiers, self.render = notifiers, render
        self.health = {
            name: replace(health, not_before=timedelta()) if name in fresh else health
            for name, health in self.health.items()
            if name in notifiers
        }
        for row in list(self.rows.values()):
            if row.notification.channel in fresh and row.state is DeliveryState.PENDING:
                self.rows[row.id] = replace(row, not_before=min(row.not_before, now), last_result=None)
        for event in self._wake.values():
            event.set()
        self._wake = {}
        return fresh

    def invite(self, pairs: Iterable[Pair]) -> None:
        """Let channels that begin to be for an open incident be told of it, if they were not before."""
        self.given_up.update((pair, LONG_AGO) for pair in pairs if pair not in self.ledger)

    async def give_up_removed(self) -> None:
        """Give up, and report, what waits for channels that are not there any more."""
        untold: dict[str, list[Delivery]] = {}
        for row in list(self.rows.values()):
            channel = row.notification.channel
            if channel not in self.notifiers and row.state is DeliveryState.PENDING:
                untold.setdefault(channel, []).append(row)
        for channel, rows in untold.items():
            moment, notice = self.moment(), channel_removed_notice(channel, rows)
            facts = self.owed.add([notice] if notice is not None else [], moment)
            decisions = [channel_removed(row) for row in rows]
            for decision in decisions:
                self._remember(decision)
            log.warning("messages given up channel=%s reason=removed count=%d", channel, len(rows))
            for decision in decisions:
                await self.journal.attempt(
                    AttemptCommit(delivery=decision.delivery, result=REMOVED, at=moment, memory=facts)
                )
                facts = {}  # stored: a slot may say it before the next one is, and drop it for good

    async def run(self, channel: str, notifier: Notifier) -> None:
        """Deliver to one channel, until it is cancelled or the channel has another notifier."""
        try:
            while self.notifiers.get(channel) is notifier:
                event = self._event(channel)
                event.clear()
                if not await self.step(channel):
                    await self._rest(channel, event)
        finally:
            if self.notifiers.get(channel) is not notifier:
                await notifier.close()

    async def _rest(self, channel: str, event: asyncio.Event) -> None:
        """Wait until a row can become due, or something changes."""
        waiting = asyncio.ensure_future(event.wait())
        timer = asyncio.ensure_future(self.clock.sleep(self._wait(channel)))
        try:
            await asyncio.wait([waiting, timer], return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            timer.cancel()

    async def step(self, channel: str) -> bool:
        """Try the next due row of a channel, if there is one. Returns whether there was."""
        moment = self.moment()
        health = self.health.get(channel, ChannelHealth())
        if health.not_before > moment.watched:
            return False
        row = next_due(self.rows.values(), channel, moment, self.ledger)
        if row is None:
            return False
        notifier = self.notifiers[channel]
        row = replace(row, state=DeliveryState.INFLIGHT)
        self.rows[row.id] = row
        attempt = asyncio.ensure_future(self._attempt(row, notifier))
        self._attempts.add(attempt)
        attempt.add_done_callback(self._attempts.discard)
        await asyncio.shield(attempt)  # when this loop is cancelled the attempt goes on: see `drain`
        return True

    async def drain(self, patience: timedelta) -> None:
        """After the loops were cancelled: wait shortly for attempts in flight, then leave them.

        What did not end in time may have arrived; the next start sends it again and says so.
        """
        if self._attempts and patience > timedelta():
            timer = asyncio.ensure_future(self.clock.sleep(patience))
            ended = asyncio.ensure_future(asyncio.wait(list(self._attempts)))
            await asyncio.wait([timer, ended], return_when=asyncio.FIRST_COMPLETED)
            timer.cancel()
            ended.cancel()
        left = list(self._attempts)
        for attempt in left:
            attempt.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def close(self) -> None:
        """Stop every channel."""
        await asyncio.gather(*(notifier.close() for notifier in self.notifiers.values()))

    async def _attempt(self, row: Delivery, notifier: Notifier) -> None:
        await self.journal.started(row)
        try:
            result = await notifier.send(self.render(row.notification, notifier))
        except Exception as error:  # supervisor site: one message or adapter must not stop the rest
            log.exception("a channel failed in an unforeseen way channel=%s", notifier.name)
            result = DeliveryResult(answer=Answer.UNKNOWN, detail=f"unforeseen {type(error).__name__}")
        await self._settle(row, result)

    async def _settle(self, row: Delivery, result: DeliveryResult) -> None:
        moment, channel = self.moment(), row.notification.channel
        self.answers[channel, result.answer] += 1
        decision = after_attempt(row, result, moment, self.jitter())
        self.newest[channel] = (moment, result)
        self._remember(decision)
        self.health[channel], notice = after_answer(
            channel, self.health.get(channel, ChannelHealth()), decision, moment
        )
        if channel not in self.notifiers:
            notice = None  # it left while this was in flight
        alone = decision.gave_up and not self.health[channel].broken
        notices = [notice, undelivered_notice(decision.delivery) if alone else None]
        facts = self.owed.add([found for found in notices if found is not None], moment)
        _log(decision, result)
        await self.journal.attempt(
            AttemptCommit(
                delivery=decision.delivery, result=result, at=moment, ledger=decision.ledger, memory=facts
            )
        )
        if channel not in self.notifiers:
            self.health.pop(channel, None)
            await self.give_up_removed()

    def _remember(self, decision: AttemptDecision) -> None:
        row = decision.delivery
        pair = (row.notification.incident.id, row.notification.channel)
        if row.state is DeliveryState.PENDING:
            self.rows[row.id] = row
        else:
            self.rows.pop(row.id, None)
        if decision.ledger is not None:
            self.ledger[pair] = decision.ledger
            self.sent += 1
        if decision.gave_up:
            self.given_up[pair] = self.moment().watched

    def _wait(self, channel: str) -> timedelta:
        """How long until a row of this channel can become due by itself."""
        at = next_wake(self.rows.values(), channel, self.ledger)
        if at is None:
            return LONGEST_WAIT
        rest = self.health.get(channel, ChannelHealth()).not_before
        return min(max(max(at, rest) - self.moment().watched, SHORTEST_WAIT), LONGEST_WAIT)

    def _event(self, channel: str) -> asyncio.Event:
        return self._wake.setdefault(channel, asyncio.Event())


def _log(decision: AttemptDecision, result: DeliveryResult) -> None:
    """Each failure once at its edge, the recovery once; repeats only for those who look closely."""
    row = decision.delivery
    if result.answer is Answer.OK:
        what, level = "delivered", logging.INFO if row.attempts > 1 else logging.DEBUG
    elif decision.gave_up:
        what, level = "message given up", logging.ERROR
    else:
        what, level = "not delivered", logging.WARNING if row.attempts <= 1 else logging.DEBUG
    said = row.notification
    log.log(
        level,
        "%s channel=%s incident=%s kind=%s attempt=%d code=%s answer=%s",
        what,
        said.channel,
        said.incident.id,
        said.kind,
        row.attempts,
        result.code,
        result.detail,
    )
