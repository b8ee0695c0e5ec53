"""The daemon, once it is known what it is to run; imports nothing that it will not use for months."""

import asyncio
import gc

from watchdog.app import serve
from watchdog.cli.loading import read_settings, rule_file
from watchdog.cli.logs import configure
from watchdog.cli.output import standard_error
from watchdog.cli.problems import show_problems
from watchdog.cli.wanted import Wanted


def live(wanted: Wanted) -> int:
    """Run until stopped; returns the exit code. Raises what keeps it from starting."""
    settings = read_settings(wanted.settings)
    where = wanted.state or wanted.settings.state_path
    rules = rule_file(wanted.file or wanted.settings.rules_path, where, settings)
    start = rules.start()
    redact = rules.secrets.redact
    told = (*settings.warnings, *start.rejected, *start.loaded.warnings)
    show_problems(told, standard_error(), {}, redact)
    configure(wanted.settings.log_level, wanted.settings.log_format, redact)
    gc.freeze()  # all that is there by now is kept; from here on there may be garbage
    gc.enable()
    asyncio.run(serve(rules, start, where, wanted.settings.socket_path(where)))
    return 0
