"""`watchdog version`: which version this is, and on what it runs."""

import platform
import sqlite3
from importlib import metadata
from typing import Annotated

import typer

from watchdog import __version__
from watchdog.cli.output import standard_output

_LIBRARIES = ("apprise", "httpx", "google-re2", "pydantic", "PyYAML", "numpy")


def version(
    as_json: Annotated[bool, typer.Option("--json", help="Print the versions as JSON.")] = False,
) -> int:
    """Print the version, and those of what it runs on: for bug reports."""
    output = standard_output()
    parts = {
        "job-watchdog": __version__,
        "Python": platform.python_version(),
        "SQLite": sqlite3.sqlite_version,
        **{name: metadata.version(name) for name in _LIBRARIES},
        "platform": platform.platform(),
    }
    if as_json:
        output.json(parts)
        return 0
    for name, number in parts.items():
        output.line(f"{name} {number}")
    return 0
