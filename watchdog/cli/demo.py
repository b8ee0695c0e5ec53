"""`watchdog demo`: the real daemon against the stand-in cloud, on a clock that runs fast.

Everything is real but the cloud and the speed of time: HTTP on loopback, the rules of
rules.example.yaml as they are, the state file, the channels.
"""

import asyncio
import logging
import os
import tempfile
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from watchdog.cli.demo_clouds import VARIABLES, CloudName, DemoCloud, rules_for
from watchdog.cli.output import Output, Style, safe, standard_output

if TYPE_CHECKING:
    from watchdog.clock import FastClock
    from watchdog.core.notifications import DeliveryResult, Message
    from watchdog.core.ruleset import Ruleset
    from watchdog.engine.engine import Engine
    from watchdog.ports import Notifier

SPEED = 130.0
AFTERMATH = timedelta(minutes=6)  # of the demo's time, for the last messages


def demo(
    channel: Annotated[
        str, typer.Option(help="Where messages go: the terminal, an Apprise URL's variable as env:NAME.")
    ] = "console",
    rules: Annotated[
        Path | None, typer.Option(help="Another rule file.", show_default="rules.example.yaml")
    ] = None,
    speed: Annotated[float, typer.Option(help="How many times faster than real time.")] = SPEED,
    cloud: Annotated[CloudName, typer.Option(help="Which cloud plays.")] = CloudName.ALAYA,
) -> int:
    """Watch a training run of the stand-in cloud for two minutes. Needs no account and no network.

    A run of four pods goes well, loses a pod to an NCCL error, idles, is restarted, fills its VRAM,
    has a slow pod, recovers and ends; the daemon tells what it sees.

    Examples: watchdog demo; watchdog demo --cloud siflow; TEAM=slack://… watchdog demo --channel env:TEAM
    """
    if not 1 <= speed <= 600:
        raise typer.BadParameter("--speed takes a number from 1 to 600")
    output = standard_output()
    ruleset = _ruleset(rules, channel, cloud)
    with tempfile.TemporaryDirectory(prefix="watchdog-demo-") as folder:
        return asyncio.run(_Demo(ruleset, output, speed, Path(folder), cloud).run())


def _ruleset(rules: Path | None, channel: str, cloud: CloudName) -> "Ruleset":
    from watchdog.cli.loading import knowledge, read_rules
    from watchdog.config.build import loads
    from watchdog.core.ruleset import ChannelSpec, Secret
    from watchdog.errors import ConfigError, Problem

    url = "console://terminal"
    if channel.startswith("env:"):
        url = os.environ.get(channel.removeprefix("env:"), "")
        if not url:
            problem = (
                f"{channel.removeprefix('env:')} is not set: --channel env:NAME takes its URL from there"
            )
            raise ConfigError([Problem(file="environment", message=problem)])
    elif channel != "console":
        raise typer.BadParameter(
            "--channel takes console or env:NAME (a URL is a secret: keep it in a variable)"
        )
    names: Mapping[str, str] = {**os.environ, "TEAM_CHAT_URL": url, "ONCALL_URL": url, **VARIABLES}
    if rules is not None:
        ruleset = read_rules(rules, names).ruleset
    else:
        packaged = resources.files("watchdog.demo") / "rules.example.yaml"
        text = rules_for(cloud, packaged.read_text(encoding="utf-8"))
        ruleset = loads(text, file=packaged.name, env=names, knowledge=knowledge()).ruleset
    spec = ChannelSpec(name="team", url=Secret(url))
    # The rules are played as written; only whom they notify is the demo's.
    own = tuple(replace(rule, notify=()) for rule in ruleset.rules)
    return replace(ruleset, rules=own, channels=(spec,))


@dataclass(slots=True)
class _Demo:
    """One performance."""

    ruleset: "Ruleset"
    output: Output
    speed: float
    folder: Path
    where: CloudName
    told: Counter[str] = field(default_factory=Counter)

    async def run(self) -> int:
        """Play it to its end; returns the exit code."""
        import watchdog.app  # noqa: F401 - takes a second to load: not a second of the demo's time
        from watchdog.clock import FastClock
        from watchdog.demo.story import demo as story

        logging.getLogger().setLevel(logging.ERROR)
        clock = FastClock(self.speed)
        cloud = DemoCloud(self.where, story(), clock)
        async with cloud.server:
            self._introduce(cloud)
            engine = await self._watch(cloud, clock)
        self._summary(engine, cloud)
        return 0

    async def _watch(self, cloud: DemoCloud, clock: "FastClock") -> "Engine":
        from watchdog.app import build_engine
        from watchdog.building import build_outside
        from watchdog.demo.story import ACTS, END
        from watchdog.errors import SourceError
        from watchdog.store.sqlite import SqliteStore
        from watchdog.threads import StoreThread

        ruleset = self._of_cloud(cloud)
        store = SqliteStore.open(self.folder / "state.db", started=clock.now())
        outside = build_outside(ruleset, clock)
        for source in outside.sources.values():  # an SDK's process starts at real speed: not the demo's time
            with suppress(SourceError):
                await source.list_tasks()
        heard = {name: _Heard(notifier, self.told) for name, notifier in outside.notifiers.items()}
        thread = StoreThread()
        engine = build_engine(ruleset, replace(outside, notifiers=heard), store, clock, thread)
        life = asyncio.ensure_future(engine.run())
        try:
            for second, text in ACTS:
                await self._until(clock, second, life)
                self._say(second, text)
            await self._until(clock, END + AFTERMATH.total_seconds(), life)
        finally:
            life.cancel()
            await asyncio.gather(life, return_exceptions=True)
            await engine.stop()
            thread.close()
        return engine

    async def _until(self, clock: "FastClock", second: float, life: "asyncio.Task[None]") -> None:
        """Let the demo's time pass; a daemon that dies on the way ends the demo with its error."""
        timer = asyncio.ensure_future(clock.sleep(timedelta(seconds=second) - clock.monotonic()))
        await asyncio.wait([timer, life], return_when=asyncio.FIRST_COMPLETED)
        timer.cancel()
        if life.done():
            await life

    def _of_cloud(self, cloud: DemoCloud) -> "Ruleset":
        """The rules as they are, pointed at the stand-in cloud and its tasks."""
        from watchdog.core.ruleset import SourceSpec, WatchEntry

        spec = next((spec for spec in self.ruleset.sources if spec.kind == cloud.name), None)
        options = {**(spec.options if spec else {}), **cloud.options}
        name = spec.name if spec else str(cloud.name)
        source = SourceSpec(name=name, kind=cloud.name, options=options, poll=timedelta(seconds=60))
        watch = (WatchEntry(source=name, name="pretrain-*"),)
        return replace(self.ruleset, sources=(source,), watch=watch)

    def _introduce(self, cloud: DemoCloud) -> None:
        self.output.line(cloud.introduction)
        self.output.line(
            f"Time runs {self.speed:g} times faster: a minute in {60 / self.speed:.1f} s. Ctrl-C ends it."
        )
        self.output.line()

    def _say(self, second: float, text: str) -> None:
        minutes = int(second // 60)
        line = f"--- {minutes // 60}:{minutes % 60:02d} h  {text}"
        self.output.line(self.output.styled(safe(line), Style.BLUE))
        self.output.line()
        self.output.stream.flush()

    def _summary(self, engine: "Engine", cloud: DemoCloud) -> None:
        requests = cloud.server.counts()
        asked = ", ".join(f"{count} {what}" for what, count in sorted(requests.items()))
        told = ", ".join(f"{count} {kind}" for kind, count in sorted(self.told.items()))
        left = sum(1 for incident in engine.world.book.open.values() if not incident.event)
        self.output.line(self.output.styled("Summary", Style.BOLD))
        self.output.line(f"  {engine.slots} slots evaluated, {engine.missed} missed")
        self.output.line(f"  requests to the cloud: {asked}")
        self.output.line(f"  messages: {told or 'none'}")
        self.output.line(f"  incidents still open: {left}; undelivered messages: {len(engine.relay.rows)}")
        self.output.line()
        self.output.line("Next, for a run of your own: watchdog init")
        self.output.stream.flush()


class _Heard:
    """A channel that counts what was delivered."""

    def __init__(self, inner: "Notifier", told: Counter[str]) -> None:
        self._inner = inner
        self._told = told
        self.name = inner.name
        self.limits = inner.limits

    async def send(self, message: "Message") -> "DeliveryResult":
        """Send, and count."""
        result = await self._inner.send(message)
        self._told[message.kind] += result.answer == "ok"
        return result

    async def close(self) -> None:
        """Stop."""
        await self._inner.close()
