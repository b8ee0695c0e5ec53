"""The composition root: builds everything from the configuration and runs it.

The only module that knows every adapter. `run` is the daemon, `evaluate_once` the verb `once`,
`probe` asks every source and channel. Owns signals; knows no command line.
"""

import asyncio
import logging
import random
import signal
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

from watchdog.clock import SystemClock
from watchdog.config.build import Knowledge, Loaded, load
from watchdog.core.notifications import Answer, DeliveryResult, Message, MessageKind
from watchdog.core.rules import Severity
from watchdog.core.ruleset import ChannelSpec, Ruleset, Secret, SourceSpec
from watchdog.engine.engine import Engine, Parts
from watchdog.engine.looks import renderer
from watchdog.errors import SourceError
from watchdog.notifiers.registry import build_notifier, is_console
from watchdog.ports import Clock, Notifier, Source, Store
from watchdog.sources.registry import SOURCE_KINDS
from watchdog.store.memory import MemoryState
from watchdog.store.sqlite import SqliteStore
from watchdog.text.patterns import Re2Engine
from watchdog.text.templates import compile_template

log = logging.getLogger(__name__)

T = TypeVar("T")

CONSOLE = ChannelSpec(name="console", url=Secret("console://"))
STOP_PATIENCE = timedelta(seconds=3)


def knowledge() -> Knowledge:
    """What a rule file is checked against: this program's own engines and adapters."""
    return Knowledge(engine=Re2Engine(), kinds=SOURCE_KINDS, inspect_url=_inspect_url)


def load_rules(path: Path, env: Mapping[str, str]) -> Loaded:
    """Load a rule file; without channels, messages go to the terminal.

    Raises:
        ConfigError: with everything that is wrong with it.
    """
    loaded = load(path, env=env, knowledge=knowledge())
    if loaded.ruleset.channels:
        return loaded
    return replace(loaded, ruleset=replace(loaded.ruleset, channels=(CONSOLE,)))


def _inspect_url(url: str) -> tuple[str, ...]:
    if is_console(url):
        return ()
    from watchdog.notifiers.apprise import inspect_url

    return tuple(inspect_url(url))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """The adapters of one ruleset."""

    sources: Mapping[str, Source]
    notifiers: Mapping[str, Notifier]


def build_outside(ruleset: Ruleset, clock: Clock, *, storage: Path | None = None) -> Outside:
    """Build every source and channel.

    Raises:
        ConfigError: a channel's URL cannot be used.
        ValueError: a source's options cannot be used; names the option.
    """
    return Outside(
        sources={spec.name: SOURCE_KINDS[spec.kind].build(spec, clock) for spec in ruleset.sources},
        notifiers={spec.name: build_notifier(spec, clock, storage=storage) for spec in ruleset.channels},
    )


class StoreThread:
    """Runs blocking calls (the store's) on one thread. A call that has begun is never abandoned."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store")

    async def __call__(self, call: Callable[[], T]) -> T:
        """Run a call; its exception is raised here."""
        return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._pool, call))

    def close(self) -> None:
        """Wait for the call in progress."""
        self._pool.shutdown(wait=True)


async def run(ruleset: Ruleset, state: Path, *, on_start: Callable[[Engine], None] = lambda _: None) -> None:
    """Run the daemon until SIGTERM or SIGINT.

    Raises:
        StateHeldError: another daemon holds the state.
        StoreError: the state cannot be read.
    """
    clock = SystemClock()
    store = SqliteStore.open(state, started=clock.now())
    try:
        outside = build_outside(ruleset, clock, storage=state.parent / "channels")
    except BaseException:
        store.close()
        raise
    thread = StoreThread()
    engine = _engine(ruleset, outside, store, clock, thread)
    on_start(engine)
    try:
        await _until_told(engine)
    finally:
        thread.close()


def _engine(ruleset: Ruleset, outside: Outside, store: Store, clock: Clock, thread: StoreThread) -> Engine:
    return Engine(
        parts=Parts(
            ruleset=ruleset,
            sources=outside.sources,
            notifiers=outside.notifiers,
            store=store,
            clock=clock,
            patterns=Re2Engine(),
            render=renderer(ruleset, compile_template),
            run_blocking=thread,
            jitter=random.random,
        )
    )


async def _until_told(engine: Engine) -> None:
    """Run an engine until a signal; a second signal changes nothing."""
    loop = asyncio.get_running_loop()
    life = asyncio.ensure_future(engine.run())
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, life.cancel)
    try:
        await life
    except asyncio.CancelledError:
        log.info("stopping")
    finally:
        await engine.stop(STOP_PATIENCE)


async def evaluate_once(ruleset: Ruleset) -> Engine:
    """Ask every source once, run one slot on an empty state, and return the engine to look at."""
    clock = SystemClock()
    outside = build_outside(replace(ruleset, channels=()), clock)
    thread = StoreThread()
    engine = _engine(replace(ruleset, channels=()), outside, MemoryState().open(), clock, thread)
    try:
        await engine.resume()
        await engine.slot(clock.monotonic())
    finally:
        await engine.stop()
        thread.close()
    return engine


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """What one source or channel answered."""

    what: str  # "source alaya", "channel team"
    ok: bool
    answer: str


async def probe(ruleset: Ruleset) -> tuple[ProbeResult, ...]:
    """Ask every source for what it knows, and send every channel a test message."""
    clock = SystemClock()
    outside = build_outside(ruleset, clock)
    sources = [_probe_source(spec, outside.sources[spec.name]) for spec in ruleset.sources]
    channels = [_probe_channel(spec, outside.notifiers[spec.name]) for spec in ruleset.channels]
    results = await asyncio.gather(*sources, *channels)
    await asyncio.gather(*(source.close() for source in outside.sources.values()))
    await asyncio.gather(*(notifier.close() for notifier in outside.notifiers.values()))
    return tuple(results)


async def _probe_source(spec: SourceSpec, source: Source) -> ProbeResult:
    what = f"source {spec.name}"
    try:
        listing = await source.list_tasks()
    except SourceError as error:
        return ProbeResult(what=what, ok=False, answer=str(error))
    more = "" if listing.complete else ", the list may be incomplete"
    return ProbeResult(what=what, ok=True, answer=f"{len(listing.tasks)} tasks in the list{more}")


async def _probe_channel(spec: ChannelSpec, notifier: Notifier) -> ProbeResult:
    result = await notifier.send(TEST_MESSAGE)
    return ProbeResult(what=f"channel {spec.name}", ok=result.answer is Answer.OK, answer=_said(result))


TEST_MESSAGE = Message(
    title="Test · watchdog",
    body="This is a test message. If you can read it, this channel works.",
    severity=Severity.INFO,
    kind=MessageKind.FIRST,
    incident="test",
)


def _said(result: DeliveryResult) -> str:
    return " ".join(filter(None, (str(result.answer), result.code, result.detail)))
