"""Reloading: from "load the rule file anew" to rules in force, or to a report why not.

One reload at a time; all of it is built before any of it is used. Owns the watch on the file. How a file
is read, checked and turned into parts is handed in; the change itself is the engine's, between two slots.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from watchdog.core.alerts import Notice, NoticeKind
from watchdog.core.differences import Differences, differences
from watchdog.core.rules import Severity
from watchdog.core.ruleset import Ruleset
from watchdog.core.settling import Settling
from watchdog.engine.engine import Engine, Parts
from watchdog.errors import Problem

log = logging.getLogger(__name__)

LOOK_EVERY = timedelta(seconds=1)
LOOK_CLOSELY_EVERY = timedelta(seconds=60)  # whatever size and time of the file say
PROBLEMS_TOLD = 5


class Outcome(StrEnum):
    """What came of a reload."""

    IN_FORCE = "in force"
    UNCHANGED = "unchanged"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What the rule file holds, ready to be used. parts: None = it cannot be used.

    digest: of the content; "" = it cannot be read. keep: remembers the content as the last good one;
    returns "" or why it could not.
    """

    digest: str
    parts: Parts | None
    problems: tuple[Problem, ...] = ()
    keep: Callable[[], Awaitable[str]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reloaded:
    """What one reload did."""

    outcome: Outcome
    problems: tuple[Problem, ...] = ()
    differences: Differences = field(default_factory=Differences)


@dataclass(slots=True, kw_only=True)
class Reloader:
    """Reloads one engine's rule file.

    prepare: reads, checks and builds; a source or channel that is said as before stays the same object.
    look: the digest of what stands in the file, read `closely` or as far as it seems to have changed.
    judged: the digest of the newest content that was looked into, whatever came of it.
    rejected: what is wrong with that content; empty = it is in force, since `since`.
    not_kept: why the content in force could not be remembered; "" = it is.
    """

    engine: Engine
    file: str
    prepare: Callable[[Parts], Awaitable[Prepared]]
    look: Callable[[bool], Awaitable[str]]
    judged: str
    since: datetime
    rejected: tuple[Problem, ...] = ()
    not_kept: str = ""
    around: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext
    listeners: list[Callable[[Ruleset], None]] = field(default_factory=list)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _asked: asyncio.Event = field(default_factory=asyncio.Event)
    _started: bool = False  # what changed between the first read and now has been seen

    def begin(self, kept: datetime | None = None) -> None:
        """After a start: say how it stands with the file. kept: of the snapshot that was started with."""
        self.engine.notify(rejection(self.file, self.rejected, kept=kept))

    def ask(self) -> None:
        """Have the file loaded anew soon; for signal handlers."""
        self._asked.set()

    async def run(self) -> None:
        """Reload when asked to, and when the file changes if the rules say so. Ends only by cancellation.

        A change while we were starting counts in any case: nobody could ask then.
        """
        await asyncio.gather(self._answer(), self._watch())

    async def reload(self, why: str) -> Reloaded:
        """Load the file anew, now."""
        async with self._turn:
            with self.around():
                done = await self._reload()
        _log(self.file, why, done)
        return done

    async def _reload(self) -> Reloaded:
        before = self.engine.parts
        new = await self.prepare(before)
        self.judged = new.digest
        if new.parts is None:
            self.rejected = tuple(problem for problem in new.problems if not problem.warning)
            self.engine.notify(rejection(self.file, self.rejected))
            return Reloaded(outcome=Outcome.REJECTED, problems=new.problems)
        changed = differences(before.ruleset, new.parts.ruleset)
        if not changed.empty:
            await self.engine.adopt(new.parts)
            self.since = self.engine.parts.clock.now()
            for listener in self.listeners:
                listener(new.parts.ruleset)
        if new.keep is not None:
            self.not_kept = await new.keep()
        self.rejected = ()
        self.engine.notify(rejection(self.file, ()))
        outcome = Outcome.UNCHANGED if changed.empty else Outcome.IN_FORCE
        return Reloaded(outcome=outcome, problems=new.problems, differences=changed)

    async def _answer(self) -> None:
        while True:
            await self._asked.wait()
            self._asked.clear()
            await self.reload("asked to")

    async def _watch(self) -> None:
        clock, seen = self.engine.parts.clock, Settling()
        closely = clock.monotonic()
        while True:
            await clock.sleep(LOOK_EVERY)
            now = clock.monotonic()
            if self._started and not self.engine.parts.ruleset.auto_reload:
                seen = Settling()
                continue
            due = now >= closely
            closely = now + LOOK_CLOSELY_EVERY if due else closely
            seen = seen.saw(await self.look(due), now)
            if seen.settled(now):
                self._started = True
                if seen.digest != self.judged:
                    await self.reload("it changed")


def rejection(file: str, problems: tuple[Problem, ...], *, kept: datetime | None = None) -> Notice:
    """Return the notice that a rule file cannot be used, or, without problems, that it can be again."""
    told = [str(problem) for problem in problems[:PROBLEMS_TOLD]]
    if len(problems) > PROBLEMS_TOLD:
        told.append(f"… (+{len(problems) - PROBLEMS_TOLD})")
    params = {"problems": "\n".join(told)}
    if kept is None:
        params["running"] = "yes"
    else:
        params["kept"] = kept.isoformat()
    return Notice(
        kind=NoticeKind.RULES_REJECTED,
        subject=file,
        severity=Severity.WARNING,
        params=params if problems else {},
        active=bool(problems),
    )


def _log(file: str, why: str, done: Reloaded) -> None:
    if done.outcome is Outcome.REJECTED:
        errors = [problem for problem in done.problems if not problem.warning]
        log.error("rule file rejected, the rules stay as they are file=%s problems=%d", file, len(errors))
        for problem in errors[:PROBLEMS_TOLD]:
            log.error("%s", problem)
        return
    log.info("rule file loaded because %s file=%s outcome=%s", why, file, done.outcome)
