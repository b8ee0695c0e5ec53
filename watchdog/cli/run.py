"""`watchdog run`: its words. What they start is `daemon`, in a process that never imports this."""

from pathlib import Path
from typing import Annotated

import typer

from watchdog.cli.defaults import DEFAULT_FILE


def run(
    file: Annotated[
        Path | None,
        typer.Argument(help="The rule file.", show_default=DEFAULT_FILE),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(help="The state file.", show_default="$JOB_WATCHDOG_STATE, else in the state folder"),
    ] = None,
) -> object:
    """Watch until stopped: poll, judge, store, tell.

    Logs to standard error; messages go to the channels of the rule file (without any, to standard
    output). SIGTERM and Ctrl-C end it cleanly, SIGHUP loads the rule file anew. One daemon a state file.
    A rule file that cannot be used is reported, and the last one that could is used in its place.

    Exit code 0: stopped. 1: it cannot start, and says why.

    Example: watchdog run rules.yaml --state /var/lib/job-watchdog/state.db
    """
    from watchdog.cli.wanted import Wanted
    from watchdog.config.settings import read_environment

    return Wanted(file=file, state=state, settings=read_environment())
