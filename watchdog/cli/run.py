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
    output). SIGTERM and Ctrl-C end it cleanly, SIGHUP loads the rule file anew. One daemon a state file.
    A rule file that cannot be used is reported, and the last one that could is used in its place.

    Exit code 0: stopped. 1: it cannot start, and says why.

    Example: watchdog run rules.yaml --state /var/lib/job-watchdog/state.db
    """
    import signal

    from watchdog.app import serve
    from watchdog.cli.loading import read_settings, rule_file
    from watchdog.cli.logs import configure
    from watchdog.cli.problems import show_problems

    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until somebody listens to it
    settings = read_settings()
    where = state or settings.settings.state_path
    rules = rule_file(file or settings.settings.rules_path, where, settings)
    start = rules.start()
    redact = rules.secrets.redact
    told = (*settings.warnings, *start.rejected, *start.loaded.warnings)
    show_problems(told, standard_error(), {}, redact)
    configure(settings.settings.log_level, settings.settings.log_format, redact)
    asyncio.run(serve(rules, start, where, settings.settings.socket_path(where)))
    return 0
