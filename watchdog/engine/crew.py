"""The loops that run beside the slots: one a source, one a channel; and how they take turns at a reload.

A source or channel that stays the same object keeps its loop. Who leaves is not cut off: what is in
flight is answered first. Decides nothing.
"""

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field

from watchdog.engine.collector import Collector
from watchdog.engine.inbox import Inbox
from watchdog.engine.relay import Relay

log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class Crew:
    """Collectors and relay loops of one life of the engine."""

    relay: Relay
    collectors: tuple[Collector, ...]
    _group: asyncio.TaskGroup | None = None
    _collecting: dict[str, asyncio.Task[None]] = field(default_factory=dict)  # by source
    _leaving: set[asyncio.Task[None]] = field(default_factory=set)

    def start(self, group: asyncio.TaskGroup) -> None:
        """Start every loop."""
        self._group = group
        for collector in self.collectors:
            self._collect(collector)
        for channel in self.relay.notifiers:
            self._deliver(channel)

    def take_over(self, collectors: tuple[Collector, ...], channels: Iterable[str]) -> None:
        """Go on with other collectors, and start delivering to `channels`, whose notifiers are new.

        A channel's old loop ends by itself once its notifier is not in force any more.
        """
        before, self.collectors = self.collectors, collectors
        for collector in before:
            if not any(collector is one for one in collectors):
                self._dismiss(collector)
        for collector in collectors:
            if not any(collector is one for one in before):
                self._collect(collector)
        for channel in channels:
            self._deliver(channel)

    async def close(self) -> None:
        """Disconnect from every source, also from those that left."""
        await asyncio.gather(*self._leaving, *(collector.close() for collector in self.collectors))

    def _collect(self, collector: Collector) -> None:
        name = collector.source.name
        if self._group is not None:
            self._collecting[name] = self._group.create_task(collector.run(), name=f"collector {name}")

    def _deliver(self, channel: str) -> None:
        if self._group is not None:
            loop = self.relay.run(channel, self.relay.notifiers[channel])
            self._group.create_task(loop, name=f"relay {channel}")

    def _dismiss(self, collector: Collector) -> None:
        loop = self._collecting.pop(collector.source.name, None)
        if loop is not None:
            loop.cancel()
        collector.inbox = Inbox()  # what it still asks is answered to nobody
        leaving = asyncio.ensure_future(_closed(collector))
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)


async def _closed(collector: Collector) -> None:
    try:
        await collector.close()
    except Exception:  # an adapter's bug while it leaves must not stop the others
        log.exception("a source could not be closed source=%s", collector.source.name)
