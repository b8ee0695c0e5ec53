"""`watchdog test-notify`: a sample message to each channel, with the provider's true answer."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from watchdog.cli.client import AsJson, Daemon, NotRunningError, StateOption
from watchdog.cli.output import Style, safe, standard_output
from watchdog.cli.telling import print_json

if TYPE_CHECKING:
    from watchdog.config.settings import LoadedSettings
    from watchdog.engine.views_asked import TestNotifyView


def samples(
    channel: Annotated[str, typer.Argument(help="One channel of the rule file; without it, all.")] = "",
    rules: Annotated[Path | None, typer.Option("--rules", help="The rule file, without a daemon.")] = None,
    as_json: AsJson = False,
    state: StateOption = None,
) -> int:
    """Send a sample of a firing and of a closing message, and print what the provider really answered.

    The running daemon sends it, over the very connection it uses; without one, it is sent from here, as the
    rule file says. Nothing is stored or repeated.

    Exit code 0: everything was accepted. 1: something was not.

    Example: watchdog test-notify team
    """
    from watchdog.cli.loading import read_settings
    from watchdog.engine import protocol
    from watchdog.engine.views_asked import TestNotifyView

    settings = read_settings()
    daemon = Daemon.of(settings.settings, state=state)
    output = standard_output()
    try:
        view = daemon.ask(protocol.TestNotify(channel=channel), TestNotifyView, slow=True)
    except NotRunningError:
        view = asyncio.run(_send(channel, rules, settings))
    if as_json:
        print_json(output, view)
    else:
        for one in view.trials:
            word = output.styled("ok    ", Style.GREEN) if one.ok else output.styled("FAILED", Style.RED)
            said = " ".join(dict.fromkeys(filter(None, (one.answer, one.code, one.detail))))
            about = f"{one.channel} ({one.service}), {_KINDS.get(one.kind, one.kind)}"
            output.line(f"{word} {safe(about)}: {safe(said)} ({one.took_s:.1f} s)")
    return 0 if all(one.ok for one in view.trials) else 1


_KINDS = {"first": "firing", "closed": "closing"}


async def _send(channel: str, rules: Path | None, settings: "LoadedSettings") -> "TestNotifyView":
    """Send without a daemon."""
    from watchdog.building import audible
    from watchdog.cli.client import RefusedError
    from watchdog.cli.loading import read_rules
    from watchdog.clock import SystemClock
    from watchdog.engine.looks import renderer
    from watchdog.engine.trying import try_channels
    from watchdog.notifiers.registry import build_notifier
    from watchdog.text.templates import compile_template

    ruleset = audible(read_rules(rules or settings.settings.rules_path, settings.names).ruleset)
    specs = tuple(spec for spec in ruleset.channels if channel in ("", spec.name))
    if not specs:
        known = ", ".join(spec.name for spec in ruleset.channels)
        raise RefusedError("not found", f"there is no channel {channel!r}: there are {known}")
    clock = SystemClock()
    notifiers = {spec.name: build_notifier(spec, clock) for spec in specs}
    try:
        return await try_channels(specs, notifiers, ruleset, renderer(ruleset, compile_template), clock)
    finally:
        await asyncio.gather(*(notifier.close() for notifier in notifiers.values()))
