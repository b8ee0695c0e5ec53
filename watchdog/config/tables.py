"""Keys and tables: which keys a mapping may hold, and the typed values read from one.

A `Table` is the single source of what is accepted, of the JSON Schema and of the reference in the docs.
Knows no rule; `schema` and `schema_rules` hold the tables themselves.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar, cast

from watchdog.config.kinds import Kind, Schema
from watchdog.config.report import Mark, Report, shorten
from watchdog.config.suggest import did_you_mean
from watchdog.config.yaml_nodes import Entry, MapNode, Node

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Key(Generic[T_co]):
    """One key: its name, what it takes, and what is said about it."""

    name: str
    kind: Kind[T_co]
    meaning: str
    default: str = ""  # as the reference shows it
    required: bool = False
    applies: str = ""  # which rules it is for; "" = all
    secret: bool = False
    variable: str = ""  # environment variable that stands in for a missing value


@dataclass(frozen=True, slots=True)
class Fields:
    """One mapping, read: the good values by key, and where everything stands.

    entries: what is there under a known key, readable or not. strange: keys that were refused.
    """

    mark: Mark
    entries: Mapping[str, Entry]
    values: Mapping[str, object]
    strange: tuple[str, ...] = ()

    def get(self, key: Key[T]) -> T | None:
        """Return the value, or None if it is not there or was reported."""
        return cast("T | None", self.values.get(key.name))

    def value(self, key: Key[T], default: T) -> T:
        """Return the value, or `default` if it is not there or was reported."""
        found = self.get(key)
        return default if found is None else found

    @property
    def readable(self) -> bool:
        """Whether every key that is there is known and has a good value."""
        return not self.strange and len(self.values) == len(self.entries)

    def has(self, key: Key[object]) -> bool:
        """Whether the key is in the file, readable or not."""
        return key.name in self.entries

    def at(self, key: Key[object]) -> Mark:
        """Where the value of a key stands (the mapping itself, if the key is not there)."""
        entry = self.entries.get(key.name)
        return entry.value.mark if entry else self.mark

    def key_at(self, key: Key[object]) -> Mark:
        """Where the key itself stands."""
        entry = self.entries.get(key.name)
        return entry.key.mark if entry else self.mark


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The keys of one mapping.

    elsewhere: keys of other mappings that people write here → where they belong.
    later: known words that this version refuses → why.
    anchors: keys that begin with `x-` are skipped, as a place for YAML anchors.
    alternatives: JSON Schema of what must stand together; the builder checks it with better words.
    """

    name: str
    keys: tuple[Key[object], ...]
    example: str = ""
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    later: Mapping[str, str] = field(default_factory=dict)
    anchors: bool = False
    alternatives: Schema = field(default_factory=dict)

    @property
    def kind(self) -> Kind[Fields]:
        """This mapping as a kind of value."""
        return Kind(words=self.name, read=self.read, schema=self.schema())

    def read(self, node: Node, report: Report) -> Fields | None:
        """Read a mapping; every key that is unknown, missing or unreadable is reported."""
        if not isinstance(node, MapNode):
            report.error(node.mark, "needs a mapping of keys to values", self._such_as())
            return None
        known = {key.name: key for key in self.keys}
        entries: dict[str, Entry] = {}
        values: dict[str, object] = {}
        strange: list[str] = []
        for entry in node.entries:
            key = known.get(entry.key.text)
            if key is None:
                self._unknown(entry, report)
                strange.append(entry.key.text)
                continue
            entries[key.name] = entry
            value = key.kind.read(entry.value, report.scoped(key.name))
            if value is not None:
                values[key.name] = value
        for key in self.keys:
            if key.required and key.name not in entries:
                report.error(node.mark, f"{key.name} is missing", self._such_as())
        return Fields(node.mark, entries, values, tuple(strange))

    def schema(self) -> Schema:
        """Return the JSON Schema of this mapping."""
        properties = {key.name: key.kind.schema | {"description": key.meaning} for key in self.keys}
        found: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
        required = [key.name for key in self.keys if key.required]
        if required:
            found["required"] = required
        if self.anchors:
            found["patternProperties"] = {"^x-": {}}
        return found | self.alternatives

    def _unknown(self, entry: Entry, report: Report) -> None:
        name = entry.key.text
        if self.anchors and name.startswith("x-"):
            return
        if name in self.later:
            report.error(entry.key.mark, f"{name}: {self.later[name]}")
        elif name in self.elsewhere:
            report.error(entry.key.mark, f"{name} does not belong here", self.elsewhere[name])
        else:
            hint = did_you_mean(name, [key.name for key in self.keys])
            report.error(entry.key.mark, f"unknown key {shorten(name)!r}", hint)

    def _such_as(self) -> str:
        return f"such as {self.example}" if self.example else ""
