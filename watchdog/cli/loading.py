"""Loads settings and rule files for the verbs, with everything the loader has to be handed.

The one place of the command line that brings configuration, patterns, sources and channels together.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from watchdog.config.build import Knowledge, Loaded, load, loads
from watchdog.config.rulefile import RuleFile
from watchdog.config.settings import LoadedSettings, Settings, load_settings, names_now
from watchdog.core.ruleset import SourceSpec


def read_settings(given: Settings | None = None) -> LoadedSettings:
    """Read the program's own settings, or go on from the given ones; raises ConfigError."""
    from watchdog.sources.registry import SOURCE_KINDS

    options = {
        option.name for kind in SOURCE_KINDS.values() for option in kind.options if option.type == "secret"
    }
    return load_settings(options, given)


def read_rules(path: Path, names: Mapping[str, str]) -> Loaded:
    """Read a rule file; raises ConfigError with all its problems."""
    return load(path, env=names, knowledge=knowledge())


def rule_file(path: Path, state: Path, settings: LoadedSettings) -> RuleFile:
    """Return a daemon's rule file; each time it is read, `${NAME}` is looked up anew."""
    known = knowledge()

    def parse(content: bytes, name: str) -> Loaded:
        return loads(content, file=name, env=names_now(settings.settings), knowledge=known)

    return RuleFile(path, state, parse)


def knowledge() -> Knowledge:
    """Return what the other parts know and a rule file is checked against."""
    from watchdog.notifiers.registry import inspect_channel
    from watchdog.sources.registry import SOURCE_KINDS
    from watchdog.text.patterns import Re2Engine

    return Knowledge(
        engine=Re2Engine(), kinds=SOURCE_KINDS, inspect_url=inspect_channel, inspect_source=inspect_source
    )


def inspect_source(spec: SourceSpec) -> Sequence[str]:
    """Return why a source cannot be built; empty if it can."""
    from watchdog.clock import SystemClock
    from watchdog.sources.registry import SOURCE_KINDS

    try:
        SOURCE_KINDS[spec.kind].build(spec, SystemClock())
    except ValueError as error:
        return (f"cannot be used: {error}",)
    return ()
