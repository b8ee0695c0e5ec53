"""The reference tables of docs/rules.md and docs/scenarios.md, made from the tables the files are read with.

`watchdog schema --docs docs/rules.md` puts them between their marks; a test fails when a document is stale.
Owns the layout of the tables; the words around them are the document's own.
"""

import re
from collections.abc import Mapping

from watchdog.config import scenario_schema as scenarios
from watchdog.config import schema_conditions as inner
from watchdog.config import schema_rules as rules
from watchdog.config import schema_services as services
from watchdog.config.schema import CHANNEL, DEFAULTS, WATCH, SourceKind, rule_file, source_table
from watchdog.config.tables import Key

_BLOCK = re.compile(r"(<!-- keys: (?P<name>[a-z -]+) -->\n).*?(<!-- end -->)", re.DOTALL)

_PARTS: Mapping[str, tuple[Key[object], ...]] = {
    "defaults": DEFAULTS.keys,
    "watch": WATCH.keys,
    "channels": CHANNEL.keys,
    "rule conditions": rules.CONDITION_KEYS,
    "rule metric": rules.METRIC_KEYS,
    "rule common": rules.COMMON_KEYS,
    "share": inner.SHARE.keys,
    "peers": inner.PEERS.keys,
    "log": inner.LOG.keys,
    "count": inner.COUNT.keys,
    "silent": inner.SILENT.keys,
    "absent": inner.ABSENT.keys,
    "status": inner.STATUS.keys,
    "changes": inner.CHANGES.keys,
    "levels": rules.LEVEL.keys,
    "http": services.HTTP.keys,
    "heartbeat": services.HEARTBEAT.keys,
}

_SCENARIO_PARTS: Mapping[str, tuple[Key[object], ...]] = {
    "scenario": scenarios.SCENARIO.keys,
    "scenario tasks": scenarios.SCENARIO_TASK.keys,
    "scenario series": scenarios.SERIES.keys,
    "scenario logs": scenarios.LOG.keys,
    "scenario statuses": scenarios.STATUS.keys,
    "scenario faults": scenarios.FAULT.keys,
    "scenario events": scenarios.EVENT.keys,
    "scenario answers": scenarios.ANSWER.keys,
    "scenario expect": scenarios.EXPECT.keys,
}


def regenerate(document: str, kinds: Mapping[str, SourceKind]) -> str:
    """Return the document with every table between marks made anew.

    Raises:
        KeyError: a mark names a table that does not exist.
    """
    parts = {**_PARTS, **_SCENARIO_PARTS} | {
        f"source {name}": source_table(kind).keys for name, kind in kinds.items()
    }
    parts["sections"] = rule_file(kinds).keys

    def replacement(match: re.Match[str]) -> str:
        return f"{match[1]}{markdown(parts[match['name']])}\n{match[3]}"

    return _BLOCK.sub(replacement, document)


def documented(document: str) -> frozenset[str]:
    """Return the names of the tables that a document has marks for."""
    return frozenset(match["name"] for match in _BLOCK.finditer(document))


def part_names(kinds: Mapping[str, SourceKind]) -> frozenset[str]:
    """Return the names of all tables of the rule file."""
    return frozenset(_PARTS) | {f"source {name}" for name in kinds} | {"sections"}


def scenario_part_names() -> frozenset[str]:
    """Return the names of all tables of a scenario file."""
    return frozenset(_SCENARIO_PARTS)


def markdown(keys: tuple[Key[object], ...]) -> str:
    """Return keys as a Markdown table; the column "applies to" only where keys differ in it."""
    differ = any(key.applies for key in keys)
    defaults = any(key.default or key.required for key in keys)
    head = ["key", "type", *(["default"] if defaults else []), *(["applies to"] if differ else []), "meaning"]
    rows = [_row(key, defaults=defaults, differ=differ) for key in keys]
    return "\n".join(_line(cells) for cells in (head, ["---"] * len(head), *rows))


def _row(key: Key[object], *, defaults: bool, differ: bool) -> list[str]:
    default = "required" if key.required else key.default
    return [
        f"`{key.name}`",
        key.kind.words,
        *([default or "–"] if defaults else []),
        *([key.applies or "all"] if differ else []),
        key.meaning,
    ]


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
