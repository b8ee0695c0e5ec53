"""How YAML readers, old and new, would read a bare word: numbers, booleans, dates, base 60.

Owns the warnings about such surprises. We read 1.2 core only, and take text from a bare word only if no
reader would take it for something else.
"""

import re

from watchdog.config.yaml_nodes import ScalarNode

_NULL = re.compile(r"~|null|Null|NULL|\Z")
_BOOLEAN = re.compile(
    r"(true|True|TRUE|yes|Yes|YES|on|On|ON|y|Y)\Z|(false|False|FALSE|no|No|NO|off|Off|OFF|n|N)\Z"
)
_BASE_60 = re.compile(r"[-+]?[0-9]+(:[0-9]{1,2})+(\.[0-9]*)?\Z")
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt \t].*)?\Z")
_NUMBER = re.compile(
    r"[-+]?(0x[0-9a-fA-F_]+|0o[0-7]+|0b[01_]+|([0-9][0-9_]*(\.[0-9_]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?|\.(inf|Inf|INF))\Z"
    r"|\.(nan|NaN|NAN)\Z"
)
_PLAIN_NUMBER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?\Z")
_LONGEST_NUMBER = 32


def is_null(node: ScalarNode) -> bool:
    """Whether nothing was written, or a bare `null` or `~`."""
    return (
        node.plain and _NULL.match(node.text) is not None and node.text in ("", "~", "null", "Null", "NULL")
    )


def boolean(node: ScalarNode) -> bool | None:
    """Return the value of a bare YAML 1.2 boolean, or None."""
    if node.plain or node.expanded:
        return {"true": True, "false": False}.get(node.text.lower())
    return None


def old_boolean(node: ScalarNode) -> bool | None:
    """Return what `yes`, `no`, `on`, `off` meant in YAML 1.1, or None."""
    match = _BOOLEAN.match(node.text)
    return None if match is None else match[1] is not None


def misread(node: ScalarNode) -> str:
    """Return what a YAML reader may take a bare word for ("the boolean false"), or "" for plain text."""
    text = node.text
    if not node.plain:
        return ""
    if _BOOLEAN.match(text):
        return f"the boolean {'true' if old_boolean(node) else 'false'}"
    if _BASE_60.match(text):
        return "a number in base 60"
    if _DATE.match(text):
        return "a date"
    return "a number" if _NUMBER.match(text) else ""


def number_text(node: ScalarNode) -> tuple[str, str]:
    """Return (text, "") of a number that every reader reads alike, else ("", what is wrong with it).

    Both are "" when it is no number at all.
    """
    text = node.text
    if len(text) > _LONGEST_NUMBER:
        return "", ""
    if _PLAIN_NUMBER.match(text):
        return text, ""
    if _BASE_60.match(text):
        return "", "old YAML reads it in base 60"
    if re.match(r"[-+]?0[0-9]", text) and _NUMBER.match(text):
        return "", "a leading zero makes it octal in old YAML"
    if _NUMBER.match(text):
        return "", "not every YAML reader reads it alike"
    return "", ""
