"""Time zones by name, with a hint for the ways people abbreviate them."""

import zoneinfo

from watchdog.config.kinds import Kind, scalar
from watchdog.config.report import Report
from watchdog.config.suggest import near
from watchdog.config.yaml_nodes import Node


def zone() -> Kind[str]:
    """The name of an IANA time zone that this machine (or the tzdata package) knows."""

    def read(node: Node, report: Report) -> str | None:
        value = scalar(node, report, "a time zone such as Asia/Shanghai")
        if value is None:
            return None
        if is_zone(value.text):
            return value.text
        similar = nearest_zone(value.text) if not value.expanded else ""
        hint = f"did you mean {similar}?" if similar else "such as Asia/Shanghai or UTC"
        report.error(value.mark, f"{value.shown!r} is not a time zone this machine knows", hint)
        return None

    return Kind(words="time zone", read=read, schema={"type": "string", "minLength": 1})


def is_zone(name: str) -> bool:
    """Whether a time zone of this name can be loaded."""
    try:
        zoneinfo.ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # unknown; absolute or with "..", a directory
        return False
    return True


def nearest_zone(name: str) -> str:
    """Return the known time zone that was probably meant, by its name or its city, "" if none is near."""
    known = _names_and_cities()
    similar = near(name, known)
    return known[similar] if similar else ""


def _names_and_cities() -> dict[str, str]:
    """Return every known name, and every city alone, each with the full name."""
    names = {name: name for name in sorted(zoneinfo.available_timezones()) if not name.startswith("Etc/")}
    return {name.rpartition("/")[2]: name for name in names if "/" in name} | names
