"""`watchdog run`: the daemon."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from watchdog.cli.defaults import DEFAULT_FILE
from watchdog.cli.output import standard_error


def run(
    file: Annotated[
        Path | None,
        typer.Argument(help="The rule file.", show_default=DEFAULT_FILE),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(help="The state file.", show_default="$JOB_WATCHDOG_STATE, else in the state folder"),
    ] = None,
) -> int:
    """Watch until stopped: poll, judge, store, tell.

    Logs to standard error; messages go to the channels of the rule file (without any, to standard
    output). SIGTERM and Ctrl-C end it cleanly. One daemon a state file.

    Example: watchdog run rules.yaml --state /var/lib/job-watchdog/state.db
    """
    from watchdog.app import audible, serve
    from watchdog.cli.loading import read_rules, read_settings
    from watchdog.cli.logs import configure
    from watchdog.cli.problems import show_problems

    settings = read_settings()
    path = file or settings.settings.rules_path
    loaded = read_rules(path, settings.names)
    redact = loaded.secrets.redact
    show_problems((*settings.warnings, *loaded.warnings), standard_error(), {}, redact)
    configure(settings.settings.log_level, settings.settings.log_format, redact)
    asyncio.run(serve(audible(loaded.ruleset), state or settings.settings.state_path))
    return 0
