"""Which notifier serves which channel. Apprise is imported only when a channel needs it."""

from datetime import timedelta
from pathlib import Path

from watchdog.core.ruleset import ChannelSpec
from watchdog.core.scanning import OWN_LINE
from watchdog.notifiers.console import ConsoleNotifier
from watchdog.notifiers.threaded import DEADLINE
from watchdog.ports import Clock, Notifier

CONSOLE_SCHEMA = "console"
FOR_PEOPLE = "console://terminal"  # people read it, even through a pipe: no mark before each line


def build_notifier(
    spec: ChannelSpec, clock: Clock, *, storage: Path | None = None, deadline: timedelta = DEADLINE
) -> Notifier:
    """Build a channel's notifier; raises ConfigError if its URL cannot be used.

    storage: a private folder in which services keep what they need in order to close their own
    incidents after a restart (Opsgenie, Jira); None keeps it in memory. The first call for a channel
    that is not the console imports Apprise (about half a second): build before the loop is busy.
    """
    if is_console(spec.url):
        mark = "" if spec.url.strip() == FOR_PEOPLE else OWN_LINE
        return ConsoleNotifier(spec.name, clock, mark=mark, deadline=deadline)
    from watchdog.notifiers.apprise import AppriseNotifier

    return AppriseNotifier(
        spec.name, spec.url, clock, deadline=deadline, max_bytes=spec.max_bytes, storage=storage
    )


def inspect_channel(url: str) -> tuple[str, ...]:
    """Return what `check` has to say about a channel's URL, errors first; empty = nothing."""
    if is_console(url):
        return ()
    from watchdog.notifiers.apprise import inspect_url

    return inspect_url(url)


def is_console(url: str) -> bool:
    """Whether a channel's URL means standard output."""
    return url.strip().partition("://")[0].lower() == CONSOLE_SCHEMA
