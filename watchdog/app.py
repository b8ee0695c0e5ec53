"""The composition root: builds everything from the configuration and runs it.

The only module that knows every adapter. `serve` is the daemon, `evaluate_once` the verb `once`,
`probe` asks every source and channel. Owns signals; knows no command line.
"""

import asyncio
import logging
import os
import random
import signal
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from watchdog import __version__
from watchdog.building import Outside, RuleFileLoader, audible, build_outside
from watchdog.clock import SystemClock
from watchdog.config.build import Loaded
from watchdog.config.rulefile import RuleFile, Start
from watchdog.config.settings import LoadedSettings
from watchdog.core.conditions.kinds import Capability
from watchdog.core.notifications import Answer, DeliveryResult
from watchdog.core.protocols import Template
from watchdog.core.ruleset import Ruleset
from watchdog.engine.answers import Answers
from watchdog.engine.control import Control
from watchdog.engine.engine import Engine, Parts
from watchdog.engine.live import Process
from watchdog.engine.looks import renderer
from watchdog.engine.once import ask_everything
from watchdog.engine.reloading import Reloader
from watchdog.notifiers.calls import call_url
from watchdog.notifiers.registry import build_notifier
from watchdog.notifiers.sample import TEST_MESSAGE
from watchdog.ports import Clock, Store
from watchdog.service import Service
from watchdog.store.memory import MemoryState
from watchdog.store.reader import ask
from watchdog.store.sqlite import SqliteStore
from watchdog.text.patterns import Re2Engine
from watchdog.threads import LeavableThreads, StoreThread

log = logging.getLogger(__name__)

STOP_PATIENCE = timedelta(seconds=2)  # with what is in flight; all in all a stop may take five


async def serve(file: RuleFile, start: Start, state: Path, control: Path) -> None:
    """Run the daemon until SIGTERM or SIGINT; SIGHUP loads the rule file anew.

    control: where verbs reach it.

    Raises:
        StateHeldError: another daemon holds the state.
        StoreError: the state cannot be read.
    """
    asyncio.get_running_loop().set_default_executor(LeavableThreads())
    clock, ruleset = SystemClock(), audible(start.loaded.ruleset)
    storage = state.parent / "channels"
    store = SqliteStore.open(state, started=clock.now())
    try:
        outside = build_outside(ruleset, clock, storage=storage)
    except BaseException:
        store.close()
        raise
    thread = StoreThread()
    engine = build_engine(ruleset, outside, store, clock, thread)
    service = Service.beside(engine, call_url, os.environ, os.getpid())
    loader = RuleFileLoader(file=file, clock=clock, storage=storage, compile_template=compile_template)
    reloader = Reloader(
        engine=engine,
        file=str(file.path.absolute()),
        prepare=loader.prepare,
        look=loader.look,
        judged=start.digest,
        since=clock.now(),
        rejected=start.rejected,
        around=service.supervisor.reload,
    )
    if not start.rejected:
        reloader.not_kept = await loader.keep(start.used)
    reloader.begin(start.used.kept)
    questions = StoreThread()
    process = Process(version=__version__, pid=os.getpid(), started=clock.now())
    answers = Answers(
        engine=engine,
        reloader=reloader,
        process=process,
        ask_store=lambda question: questions(lambda: ask(state, question)),
    )
    socket = Control(path=control, answer=answers, clock=clock, redact=file.secrets.redact)
    try:
        await _until_told(engine, service, reloader, socket)
    finally:
        questions.close()
        thread.close()


def compile_template(text: str) -> Template:
    """Compile a rule's own words. Jinja2 is loaded at the first: most rule files have none."""
    from watchdog.text.templates import compile_template as compiled

    return compiled(text)


def build_engine(
    ruleset: Ruleset, outside: Outside, store: Store, clock: Clock, thread: StoreThread
) -> Engine:
    """Build an engine over these adapters, with this program's own patterns and templates."""
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


async def _until_told(engine: Engine, service: Service, reloader: Reloader, control: Control) -> None:
    """Run an engine, and what stands beside it, until a signal; a second signal changes nothing."""
    loop = asyncio.get_running_loop()
    life = asyncio.ensure_future(_live(engine, service, reloader, control))
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, life.cancel)
    loop.add_signal_handler(signal.SIGHUP, reloader.ask)
    try:
        await life
    except asyncio.CancelledError:
        log.info("stopping")
    finally:
        service.supervisor.stopping()
        await engine.stop(STOP_PATIENCE)


async def _live(engine: Engine, service: Service, reloader: Reloader, control: Control) -> None:
    async with asyncio.TaskGroup() as lives:
        lives.create_task(engine.run(), name="engine")
        lives.create_task(service.run(), name="service")
        lives.create_task(reloader.run(), name="reloader")
        lives.create_task(control.run(), name="control")


async def evaluate_once(ruleset: Ruleset) -> Engine:
    """Ask every source once, run one slot on an empty state, and return the engine to look at."""
    clock = SystemClock()
    outside = build_outside(replace(ruleset, channels=()), clock)
    thread = StoreThread()
    engine = build_engine(replace(ruleset, channels=()), outside, MemoryState().open(), clock, thread)
    try:
        await ask_everything(engine)
    finally:
        await engine.stop()
        thread.close()
    return engine


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeAnswer:
    """What asking one source or channel gave. `subject`: "source alaya: metrics", "channel team"."""

    subject: str
    ok: bool
    detail: str


async def probe(loaded: Loaded, settings: LoadedSettings) -> tuple[ProbeAnswer, ...]:
    """Ask every source for all that the rules need, and send every channel a test message."""
    del settings  # the state is not touched
    clock = SystemClock()
    ruleset = audible(loaded.ruleset)
    notifiers = [build_notifier(spec, clock) for spec in ruleset.channels]
    engine, results = await asyncio.gather(
        evaluate_once(ruleset), asyncio.gather(*(notifier.send(TEST_MESSAGE) for notifier in notifiers))
    )
    await asyncio.gather(*(notifier.close() for notifier in notifiers))
    channels = (
        ProbeAnswer(subject=f"channel {notifier.name}", ok=result.answer is Answer.OK, detail=_said(result))
        for notifier, result in zip(notifiers, results, strict=True)
    )
    return (*_source_answers(engine), *channels)


def _source_answers(engine: Engine) -> Iterator[ProbeAnswer]:
    """What each source said to each kind of question, and which rules will wait for data in vain."""
    world = engine.world
    for name, source in world.sources.items():
        prefixes = sorted(set(getattr(source, "prefixes", {}).values()))
        where = f" (under {', '.join(prefixes)})" if prefixes else ""
        for capability in Capability:
            states = [
                s
                for s in world.health.states.values()
                if (s.key.source, s.key.capability) == (name, capability)
            ]
            failed = [state for state in states if state.failures]
            if not states:
                continue
            detail = f"{len(states)} of {len(states)} questions answered{where}"
            if failed:
                one = failed[0]
                about = f"{one.key.task}: " if one.key.task else ""
                said = ": ".join(filter(None, (str(one.failure), one.detail)))
                detail = f"{len(failed)} of {len(states)} questions failed; {about}{said}"
            yield ProbeAnswer(subject=f"source {name}: {capability}", ok=not failed, detail=detail)
    if not world.states and world.ruleset.watch:
        yield ProbeAnswer(subject="watch", ok=False, detail="no task was found that fits")
    for rule, task in engine.runner.selfwatch.uncovered(engine.runner.evaluations):
        yield ProbeAnswer(
            subject=f"rule {rule} on {task}",
            ok=False,
            detail="too few points cover its window (step too coarse, retention too short, or just started)",
        )


def _said(result: DeliveryResult) -> str:
    return " ".join(filter(None, (str(result.answer), result.code, result.detail)))
