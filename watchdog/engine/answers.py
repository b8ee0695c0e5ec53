"""Answers: one method a verb, from a typed request to a view. What the control socket serves.

Reading verbs look at the engine between two slots, and at the state file on a thread of its own; the few that
act do so through the engine, the reloader and the channels. Knows no socket.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import TypeVar

from watchdog.core.labels import POD
from watchdog.core.tasks import TaskState
from watchdog.engine import records
from watchdog.engine.engine import Engine
from watchdog.engine.explaining import explain, named
from watchdog.engine.live import Process, context_of, near, status_of
from watchdog.engine.offers import any_task, offered
from watchdog.engine.protocol import (
    AnyRequest,
    ErrorCode,
    Explain,
    Forget,
    History,
    Metrics,
    Names,
    Refusal,
    Reload,
    Show,
    Status,
    TestNotify,
    Why,
)
from watchdog.engine.reloading import Reloaded, Reloader
from watchdog.engine.showing import seconds
from watchdog.engine.trying import try_channels
from watchdog.engine.views_asked import (
    EditsView,
    ForgetView,
    MetricsView,
    NamesView,
    ProblemView,
    ReloadView,
    TestNotifyView,
)
from watchdog.errors import Problem, StoreError
from watchdog.ports import StateReader

log = logging.getLogger(__name__)

T = TypeVar("T")

NAMES = 200  # of one kind, for completion


AskStore = Callable[[Callable[[StateReader], object]], Awaitable[object]]
"""Puts a question to the state file off the event loop; raises StoreError."""


@dataclass(slots=True, kw_only=True)
class Answers:
    """Answers the requests to one running daemon."""

    engine: Engine
    reloader: Reloader
    process: Process
    ask_store: AskStore
    _trying: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def __call__(self, request: AnyRequest) -> object:
        """Return the view that answers a request.

        Raises:
            Refusal: it cannot be answered; says why.
        """
        match request:
            case Status():
                return status_of(self.engine, self.reloader, self.process)
            case Explain():
                return explain(self.engine, request.rule, request.task)
            case Names():
                return self._names()
            case Forget():
                return self._forget(request)
            case Metrics():
                return await self._metrics(request)
            case Reload():
                # Once begun it ends, whatever becomes of the client that asked.
                done = await asyncio.shield(asyncio.ensure_future(self.reloader.reload("asked to")))
                return _reloaded(done, self.reloader)
            case TestNotify():
                return await self._test_notify(request)
            case History() | Show() | Why():
                return await self._recorded(request)

    async def _recorded(self, request: History | Show | Why) -> object:
        context = context_of(self.engine)
        question: Callable[[StateReader], object]
        match request:
            case History():
                wanted = records.Filter(
                    limit=request.limit, rule=request.rule, task=request.task, only_open=request.open
                )
                question = partial(records.history, context=context, wanted=wanted)
            case Show():
                question = partial(records.show, context=context, beginning=request.incident)
            case Why():
                question = partial(records.why, context=context, beginning=request.incident)
        try:
            return await self.ask_store(question)
        except StoreError as error:
            raise Refusal(ErrorCode.FAILED, f"the state file cannot be read: {error}") from error

    async def _metrics(self, request: Metrics) -> MetricsView:
        world = self.engine.world
        source = world.sources.get(request.source)
        if source is None:
            known = near(request.source, world.sources) or f": there are {', '.join(world.sources) or 'none'}"
            raise Refusal(ErrorCode.NOT_FOUND, f"there is no source {request.source!r}{known}")
        states = [one for one in named(world.states.values(), request.task) if one.task.source == source.name]
        task = states[0].task if states else await any_task(source, request.task)
        rules = [rule for rule in world.ruleset.rules if rule.applies(task)]
        return await offered(source, task, rules, self.engine.parts.clock, world.ruleset.timezone)

    async def _test_notify(self, request: TestNotify) -> TestNotifyView:
        parts = self.engine.parts
        channels = parts.ruleset.channels
        if request.channel:
            channels = tuple(spec for spec in channels if spec.name == request.channel)
        if not channels:
            known = ", ".join(spec.name for spec in parts.ruleset.channels)
            raise Refusal(ErrorCode.NOT_FOUND, f"there is no channel {request.channel!r}: there are {known}")
        if self._trying.locked():
            raise Refusal(ErrorCode.BUSY, "samples are being sent already")
        async with self._trying:
            return await try_channels(channels, parts.notifiers, parts.ruleset, parts.render, parts.clock)

    def _forget(self, request: Forget) -> ForgetView:
        world = self.engine.world
        state = self._one_task(request.task)
        pods = sorted({member.labels[POD] for member in state.expected if POD in member.labels})
        if request.pod and request.pod not in pods:
            known = near(request.pod, pods) or f": it is expected to have {', '.join(pods[:10]) or 'none'}"
            raise Refusal(ErrorCode.NOT_FOUND, f"{state.task.name} has no pod {request.pod!r}{known}")
        world.forget_soon(state.task.key, request.pod)
        schedule, clock = self.engine.schedule, self.engine.parts.clock
        wait = schedule.next_due(clock.monotonic()) - clock.monotonic()
        return ForgetView(
            task=state.task.name,
            pods=(request.pod,) if request.pod else (),
            within_s=seconds(max(wait, timedelta())),
        )

    def _one_task(self, wanted: str) -> TaskState:
        states = self.engine.world.states
        found = [one for one in states.values() if wanted in (one.task.key, one.task.name, one.task.id)]
        if not found:
            names = [one.task.name for one in states.values()]
            raise Refusal(ErrorCode.NOT_FOUND, f"no task {wanted!r} is watched{near(wanted, names)}")
        if len(found) > 1:
            keys = ", ".join(one.task.key for one in found)
            raise Refusal(ErrorCode.AMBIGUOUS, f"{wanted!r} may mean {keys}: write the key")
        return found[0]

    def _names(self) -> NamesView:
        world = self.engine.world
        opened = sorted(world.book.open.values(), key=lambda one: one.opened_at, reverse=True)
        return NamesView(
            rules=tuple(rule.name for rule in world.ruleset.rules)[:NAMES],
            tasks=tuple(dict.fromkeys(one.task.name for one in world.states.values()))[:NAMES],
            sources=tuple(world.sources)[:NAMES],
            channels=tuple(spec.name for spec in world.ruleset.channels)[:NAMES],
            incidents=tuple(one.id for one in opened)[:NAMES],
        )


def _reloaded(done: Reloaded, reloader: Reloader) -> ReloadView:
    changed = done.differences
    edits = {
        "rules": changed.rules,
        "sources": changed.sources,
        "watch": changed.watch,
        "channels": changed.channels,
    }
    return ReloadView(
        outcome=done.outcome,
        file=reloader.file,
        problems=problem_views(done.problems),
        edits={
            name: EditsView(added=one.added, removed=one.removed, changed=one.changed)
            for name, one in edits.items()
            if not one.empty
        },
        settings=changed.settings,
        not_kept=reloader.not_kept,
    )


def problem_views(problems: tuple[Problem, ...]) -> tuple[ProblemView, ...]:
    """Return problems as plain values."""
    return tuple(
        ProblemView(
            file=problem.file,
            line=problem.line,
            column=problem.column,
            message=problem.message,
            hint=problem.hint,
            warning=problem.warning,
        )
        for problem in problems
    )
