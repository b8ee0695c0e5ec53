"""The kinds of value a key can have: how each is read, named in the docs, and described to editors.

One object is all three, so that they cannot disagree. Reading reports what is wrong and returns None; a
message begins with its key (the report is scoped). Knows no key and no rule.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Generic, TypeVar

from watchdog.config import scalars
from watchdog.config.report import Report, shorten
from watchdog.config.suggest import did_you_mean
from watchdog.config.yaml_nodes import ListNode, MapNode, Node, ScalarNode
from watchdog.core.durations import parse_duration

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)

Schema = dict[str, object]
Pairs = tuple[tuple[ScalarNode, ScalarNode], ...]

LONGEST = timedelta(days=366)
LABEL_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_REFERENCE: Schema = {"type": "string", "pattern": r"\$\{"}
_PERCENT_SCHEMA: Schema = {"type": "string", "pattern": r"^[-+]?[0-9]+(\.[0-9]+)? ?%$"}
_PERCENT = re.compile(r"([-+]?[0-9]{1,12}(?:\.[0-9]{1,12})?) ?%\Z")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_TIME_OF_DAY = re.compile(r"[0-9]+:[0-9:]+\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind(Generic[T_co]):
    """How one value is read, and what is said about it.

    words: the type, for the reference table. read: the value, or None after reporting why not.
    """

    words: str
    read: Callable[[Node, Report], T_co | None]
    schema: Schema


def scalar(node: Node, report: Report, wanted: str) -> ScalarNode | None:
    """Return the node if it is one value; report a list, a mapping, or nothing."""
    if not isinstance(node, ScalarNode):
        what = "a list" if isinstance(node, ListNode) else "a mapping"
        report.error(node.mark, f"needs {wanted}, not {what}")
        return None
    if node.broken:
        return None
    if scalars.is_null(node):
        report.error(node.mark, f"has no value: needs {wanted}")
        return None
    return node


def or_reference(schema: Schema) -> Schema:
    """Return the schema, widened by "or filled in from ${NAME}"."""
    return {"anyOf": [schema, _REFERENCE]}


def text(
    words: str = "text", *, longest: int = 200, multiline: bool = False, pattern: str = "", hint: str = ""
) -> Kind[ScalarNode]:
    """Text that no YAML reader takes for something else; `pattern` is for the whole text, `hint` explains it.

    Read as the node, so that later checks know where it stands.
    """

    def read(node: Node, report: Report) -> ScalarNode | None:
        value = scalar(node, report, words)
        if value is None or not _is_text(value, report):
            return None
        if not value.text.strip():
            report.error(value.mark, "is empty")
        elif len(value.text) > longest:
            report.error(value.mark, f"is longer than {longest} characters")
        elif not multiline and (odd := _CONTROL.search(value.text)):
            report.error(value.mark, _odd_character(odd[0]), "use single quotes: 'like this'")
        elif pattern and re.fullmatch(pattern, value.text) is None:
            report.error(value.mark, f"{value.shown!r} cannot be used here", hint)
        else:
            return value
        return None

    schema: Schema = {"type": "string", "minLength": 1, "maxLength": longest}
    if pattern:
        schema = or_reference(schema | {"pattern": f"^(?:{pattern})$"})
    return Kind(words=words, read=read, schema=schema)


def _is_text(node: ScalarNode, report: Report) -> bool:
    taken_for = scalars.misread(node)
    if taken_for:
        hint = f'write it in quotes: "{node.shown}"'
        report.error(node.mark, f"YAML may read {node.shown} as {taken_for}", hint)
    return not taken_for


def _odd_character(character: str) -> str:
    if character == "\b":
        return r"holds a backspace: in double quotes YAML reads \b as one"
    if character in "\n\r\u2028\u2029\x85":
        return "holds a line break"
    return f"holds the control character U+{ord(character):04X}"


def identifier() -> Kind[ScalarNode]:
    """A task id: opaque text. One that YAML would read as a number is taken as written."""

    def read(node: Node, report: Report) -> ScalarNode | None:
        value = scalar(node, report, "the task's id")
        if value is None:
            return None
        if not value.text.strip() or len(value.text) > 200 or _CONTROL.search(value.text):
            report.error(value.mark, f"{value.shown!r} is no task id")
            return None
        taken_for = scalars.misread(value)
        if taken_for:
            message = f"YAML may read {value.shown} as {taken_for}; taken as written"
            report.warning(value.mark, message, f'quote it: "{value.shown}"')
        return value

    schema: Schema = {"type": ["string", "integer"], "minLength": 1, "maxLength": 200}
    return Kind(words="text", read=read, schema=schema)


def flag() -> Kind[bool]:
    """true or false."""

    def read(node: Node, report: Report) -> bool | None:
        value = scalar(node, report, "true or false")
        if value is None:
            return None
        found = scalars.boolean(value)
        if found is None:
            old = scalars.old_boolean(value)
            hint = "" if old is None else f"did you mean {str(old).lower()}?"
            report.error(value.mark, f"{value.shown} is neither true nor false", hint)
        return found

    return Kind(words="true or false", read=read, schema=or_reference({"type": "boolean"}))


def duration(*, never: bool = False, zero: bool = True) -> Kind[timedelta]:
    """A number and a unit. `never`: that word may stand for zero; `zero`: nothing at all is allowed."""

    def read(node: Node, report: Report) -> timedelta | None:
        value = scalar(node, report, "a duration such as 90s, 15m or 1h30m")
        if value is None:
            return None
        if never and value.text == "never":
            return timedelta()
        found = _parsed(value.text)
        if found is None:
            report.error(value.mark, *_no_duration(value))
        elif found > LONGEST:
            report.error(value.mark, f"{value.shown} is longer than a year")
        elif not found and not zero:
            report.error(value.mark, "must be longer than nothing")
        else:
            return found
        return None

    words = "duration or never" if never else "duration"
    pattern = rf"^(([0-9]+(\.[0-9]+)?(ms|[smhdw]))+{'|never' if never else ''})$"
    return Kind(words=words, read=read, schema=or_reference({"type": "string", "pattern": pattern}))


def _parsed(written: str) -> timedelta | None:
    """Return the duration, None if it is none; one too long for any clock comes back as the longest."""
    try:
        return parse_duration(written) if len(written) <= 40 else None
    except ValueError:
        return None
    except OverflowError:
        return timedelta.max


def _no_duration(value: ScalarNode) -> tuple[str, str]:
    """Return (what is wrong, what to write) of a text that is no duration."""
    shown = value.shown
    number, trouble = scalars.number_text(value)
    if _TIME_OF_DAY.match(value.text):
        parts = value.text.split(":")
        spelled = f"{parts[0]}h{parts[1]}m or {parts[0]}m{parts[1]}s" if len(parts) == 2 else "1h30m10s"
        return f"{shown} is not a duration (old YAML reads it in base 60)", f"write {spelled}"
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", number):
        return f"{shown} has no unit", f"write {shown}s, {shown}m or {shown}h"
    hint = "write a number and a unit: 90s, 15m, 1h30m, 2d"
    if number.startswith("-") or value.text.startswith("-"):
        return f"{shown} is negative", hint
    return f"{shown} is {'a number' if number or trouble else 'text'}, not a duration", hint


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A number as written: `10%` is 0.1 with `percent`."""

    value: float
    percent: bool
    node: ScalarNode


def level() -> Kind[Level]:
    """A threshold: a number in the metric's unit, or a percentage."""

    def read(node: Node, report: Report) -> Level | None:
        value = scalar(node, report, "a number or a percentage")
        if value is None:
            return None
        percent = _PERCENT.match(value.text)
        if percent:
            return Level(value=float(Decimal(percent[1]) / 100), percent=True, node=value)
        number = _number(value, report, "a number or a percentage such as 10%")
        return None if number is None else Level(value=number, percent=False, node=value)

    schema: Schema = {"anyOf": [{"type": "number"}, _PERCENT_SCHEMA, _REFERENCE]}
    return Kind(words="number or percentage", read=read, schema=schema)


def portion(*, zero: bool = True) -> Kind[float]:
    """A ratio from 0 % to 100 %; a bare number is a ratio too (0.8)."""
    read_level = level().read

    def read(node: Node, report: Report) -> float | None:
        found = read_level(node, report)
        if found is None:
            return None
        shown = found.node.shown
        if found.value > 1 and not found.percent:
            report.error(node.mark, f"{shown} is more than 1 = 100%", f"did you mean {shown}%?")
        elif not 0 <= found.value <= 1:
            report.error(node.mark, f"{shown} is not between 0% and 100%")
        elif not found.value and not zero:
            report.error(node.mark, "must be more than 0%")
        else:
            return found.value
        return None

    bounds: Schema = {"type": "number", "minimum": 0, "maximum": 1}
    return Kind(words="percentage", read=read, schema={"anyOf": [bounds, _PERCENT_SCHEMA, _REFERENCE]})


def number(*, low: float = 0, high: float = 1e9, whole: bool = False) -> Kind[float]:
    """A number within bounds; `whole`: without a fraction."""
    words = "whole number" if whole else "number"

    def read(node: Node, report: Report) -> float | None:
        value = scalar(node, report, f"a {words}")
        found = None if value is None else _number(value, report, f"a {words}")
        if value is None or found is None:
            return None
        if whole and found != int(found):
            report.error(value.mark, f"{value.shown} is not a whole number")
        elif not low <= found <= high:
            report.error(value.mark, f"{value.shown} is not between {low:g} and {high:,.0f}")
        else:
            return found
        return None

    schema: Schema = {"type": "integer" if whole else "number", "minimum": low, "maximum": high}
    return Kind(words=words, read=read, schema=or_reference(schema))


def _number(value: ScalarNode, report: Report, wanted: str) -> float | None:
    digits, trouble = scalars.number_text(value)
    if digits and abs(found := float(digits)) < 1e18:
        return found if not digits.startswith("-") else -abs(found)
    if trouble:
        report.error(value.mark, f"{value.shown}: {trouble}", "write plain decimal digits")
    else:
        report.error(value.mark, f"{value.shown!r} is not {wanted}")
    return None


def choice(enum: type[E]) -> Kind[E]:
    """One of a few words."""
    words = ", ".join(enum)

    def read(node: Node, report: Report) -> E | None:
        value = scalar(node, report, f"one of {words}")
        if value is None:
            return None
        if value.text in set(enum):
            return enum(value.text)
        report.error(value.mark, f"{value.shown!r} is not a word for this", did_you_mean(value.raw, enum))
        return None

    return Kind(words=words, read=read, schema=or_reference({"enum": [str(word) for word in enum]}))


def several(kind: Kind[T], words: str = "", *, empty_hint: str = "") -> Kind[tuple[T, ...]]:
    """One value or a list of them, never an empty list. Unreadable ones are reported and left out."""

    def read(node: Node, report: Report) -> tuple[T, ...] | None:
        items = node.items if isinstance(node, ListNode) else (node,)
        if not items:
            report.error(node.mark, "the list is empty", empty_hint)
            return None
        found = [kind.read(item, report) for item in items]
        return tuple(value for value in found if value is not None)

    schema: Schema = {"anyOf": [kind.schema, {"type": "array", "items": kind.schema, "minItems": 1}]}
    return Kind(words=words or f"{kind.words}, or a list", read=read, schema=schema)


def list_of(kind: Kind[T], *, empty: bool = False, title: str = "") -> Kind[tuple[T, ...]]:
    """A list of like entries; unreadable ones are reported and left out.

    empty: it may have none. title: the key whose value names an entry in messages.
    """

    def read(node: Node, report: Report) -> tuple[T, ...] | None:
        if empty and isinstance(node, ScalarNode) and scalars.is_null(node):
            return ()
        if not isinstance(node, ListNode):
            report.error(node.mark, "needs a list: every entry begins with '- '")
            return None
        if not node.items and not empty:
            report.error(node.mark, "the list is empty")
        found = [
            kind.read(item, report.scoped(entry_name(item, index, title)))
            for index, item in enumerate(node.items, 1)
        ]
        return tuple(value for value in found if value is not None)

    array: Schema = {"type": "array", "items": kind.schema}
    schema: Schema = {"anyOf": [array, {"type": "null"}]} if empty else array | {"minItems": 1}
    return Kind(words=f"list of {kind.words}", read=read, schema=schema)


def entry_name(node: Node, index: int, title: str) -> str:
    """Return what messages call an entry of a list: its name, or else its place (from 1)."""
    if title and isinstance(node, MapNode):
        for entry in node.entries:
            if entry.key.text == title and isinstance(entry.value, ScalarNode) and entry.value.raw.strip():
                return shorten(entry.value.raw.strip(), 40)
    return f"#{index}"


def named(kind: Kind[T], *, pattern: str, hint: str) -> Kind[tuple[tuple[ScalarNode, T], ...]]:
    """A mapping of names that the author chooses to like entries; may be empty."""

    def read(node: Node, report: Report) -> tuple[tuple[ScalarNode, T], ...] | None:
        if isinstance(node, ScalarNode) and scalars.is_null(node):
            return ()
        if not isinstance(node, MapNode):
            report.error(node.mark, "needs a mapping of names to entries")
            return None
        found = []
        for entry in node.entries:
            if re.fullmatch(pattern, entry.key.text) is None:
                report.error(entry.key.mark, f"{entry.key.shown!r} cannot be a name", hint)
                continue
            value = kind.read(entry.value, report.scoped(entry.key.text))
            if value is not None:
                found.append((entry.key, value))
        return tuple(found)

    names: Schema = {"pattern": f"^(?:{pattern})$"}
    mapping: Schema = {"type": "object", "propertyNames": names, "additionalProperties": kind.schema}
    schema: Schema = {"anyOf": [mapping, {"type": "null"}]}
    return Kind(words=f"mapping of names to {kind.words}", read=read, schema=schema)


def text_map(*, reserved: tuple[str, ...] = (), longest: int = 200, multiline: bool = False) -> Kind[Pairs]:
    """Label names to texts. `reserved` names are refused."""
    value_kind = text(longest=longest, multiline=multiline)

    def read(node: Node, report: Report) -> Pairs | None:
        if not isinstance(node, MapNode):
            report.error(node.mark, "needs a mapping of names to texts", "such as { team: nlp }")
            return None
        found = []
        for entry in node.entries:
            key = entry.key
            if re.fullmatch(LABEL_NAME, key.text) is None:
                report.error(key.mark, f"{key.shown!r} cannot be a name", "use letters, digits and _")
            elif key.text in reserved:
                report.error(key.mark, f"{key.shown} is set by the program itself", "take another name")
            value = value_kind.read(entry.value, report.scoped(shorten(key.text, 40)))
            if value is not None:
                found.append((key, value))
        return tuple(found)

    names: Schema = {"pattern": f"^(?:{LABEL_NAME})$"}
    if reserved:
        names["not"] = {"enum": list(reserved)}
    schema: Schema = {"type": "object", "propertyNames": names, "additionalProperties": value_kind.schema}
    return Kind(words="mapping of names to texts", read=read, schema=schema)
