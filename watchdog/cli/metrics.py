"""`watchdog metrics`: what a task offers, asked now."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from watchdog.cli.client import AsJson, Daemon, NotRunningError, StateOption
from watchdog.cli.output import Style, standard_output
from watchdog.cli.telling import DASH, Teller, print_json

if TYPE_CHECKING:
    from watchdog.config.settings import LoadedSettings
    from watchdog.engine.views_asked import MetricsView, OfferView


def metrics(
    source: Annotated[str, typer.Argument(help="A source of the rule file.")],
    task: Annotated[str, typer.Argument(help="A task's name, id or key; an id need not be watched.")],
    rules: Annotated[Path | None, typer.Option("--rules", help="The rule file, without a daemon.")] = None,
    as_json: AsJson = False,
    state: StateOption = None,
) -> int:
    """List every metric a task offers: its unit, by what its series differ and how many there are, the newest
    value, which rules read it, and what the source remarks.

    The running daemon is asked; without one, the source itself, as the rule file says.

    Exit code 0: listed. 1: a metric could not be had, or there is no such source.

    Example: watchdog metrics alaya 1234567890
    """
    from watchdog.cli.loading import read_settings
    from watchdog.engine import protocol
    from watchdog.engine.views_asked import MetricsView

    settings = read_settings()
    daemon = Daemon.of(settings.settings, state=state)
    request = protocol.Metrics(source=source, task=task)
    try:
        view = daemon.ask(request, MetricsView, slow=True)
    except NotRunningError:
        view = asyncio.run(_ask(source, task, rules, settings))
    output = standard_output()
    if as_json:
        print_json(output, view)
    else:
        _show(view, Teller(output, view.timezone, view.at))
    return 1 if any(one.error for one in view.metrics) else 0


async def _ask(source: str, task: str, rules: Path | None, settings: "LoadedSettings") -> "MetricsView":
    """Ask the source without a daemon."""
    from watchdog.building import build_outside
    from watchdog.cli.client import RefusedError
    from watchdog.cli.loading import read_rules
    from watchdog.clock import SystemClock
    from watchdog.core.resolving import resolve
    from watchdog.engine.offers import any_task, offered

    ruleset = read_rules(rules or settings.settings.rules_path, settings.names).ruleset
    specs = tuple(spec for spec in ruleset.sources if spec.name == source)
    if not specs:
        known = ", ".join(spec.name for spec in ruleset.sources) or "none"
        raise RefusedError("not found", f"there is no source {source!r}: there are {known}")
    clock = SystemClock()
    only = type(ruleset)(sources=specs, watch=ruleset.watch, channels=(), rules=ruleset.rules)
    adapter = build_outside(only, clock).sources[source]
    watched = [one for one in resolve(ruleset.watch, {}, {}) if one.source == source]
    named = [one for one in watched if task in (one.key, one.id, one.name)]
    try:
        found = named[-1] if named else await any_task(adapter, task)
        readers = [rule for rule in ruleset.rules if rule.applies(found)]
        return await offered(adapter, found, readers, clock, ruleset.timezone)
    finally:
        await adapter.close()


def _show(view: "MetricsView", teller: Teller) -> None:
    teller.line(f"{view.source}, task {view.task}, asked at {teller.time(view.at)} {teller.voice.zone_name}")
    errors = {one.error for one in view.metrics}
    if len(view.metrics) > 1 and len(errors) == 1 and "" not in errors:
        teller.line(f"none of {len(view.metrics)} metrics could be had: {errors.pop()}")
        return
    rows = [
        (
            one.metric,
            one.unit or DASH,
            " ".join(one.per) or DASH,
            str(one.series or DASH),
            teller.time(one.newest),
            _value(one, teller),
            ", ".join(one.rules) or DASH,
            one.error or "; ".join(one.remarks),
        )
        for one in view.metrics
    ]
    teller.output.table(("METRIC", "UNIT", "PER", "SERIES", "NEWEST", "VALUE", "RULES", ""), rows)
    if not rows:
        teller.line("the source names no metric")
    if view.not_offered:
        teller.line(f"not offered here: {', '.join(view.not_offered)}", Style.DIM)


def _value(one: "OfferView", teller: Teller) -> str:
    if one.low is None or one.high is None or one.mean is None:
        return DASH
    if one.low == one.high:
        return teller.value(one.low, one.unit)
    low, high = teller.value(one.low, one.unit), teller.value(one.high, one.unit)
    return f"{low} to {high}, mean {teller.value(one.mean, one.unit)}"
