"""What this machine is set to: its time zone and its language, as defaults for a new rule file."""

import os
from collections.abc import Mapping
from pathlib import Path

from watchdog.config.zones import is_zone

ZONE_FILE = Path("/etc/timezone")
ZONE_LINK = Path("/etc/localtime")
_FOLDER = "zoneinfo/"
_UTC = frozenset({"UTC", "Etc/UTC", "UCT", "Zulu", "Etc/UCT", "Etc/Zulu", "Universal", "Etc/Universal"})


def machine_zone(
    environ: Mapping[str, str] = os.environ, *, link: Path = ZONE_LINK, file: Path = ZONE_FILE
) -> str:
    """Return the name of this machine's time zone, UTC if it has none that has a name."""
    for name in (environ.get("TZ", "").lstrip(":"), _linked(link), _written(file)):
        if name in _UTC:
            return "UTC"
        if name and is_zone(name):
            return name
    return "UTC"


def machine_language(environ: Mapping[str, str] = os.environ) -> str:
    """Return zh where this machine speaks Chinese, else en."""
    names = ("LC_ALL", "LC_MESSAGES", "LANG")
    spoken = next((environ[name] for name in names if environ.get(name)), "")
    return "zh" if spoken.lower().startswith("zh") else "en"


def _linked(link: Path) -> str:
    try:
        return str(link.resolve()).partition(_FOLDER)[2].removeprefix("posix/")
    except OSError:
        return ""


def _written(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return ""
