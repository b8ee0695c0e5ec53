"""Makes bad input out of good: trees (what JSON and YAML hold), texts and bytes."""

import json
import math
import random
from collections.abc import Callable
from typing import Any

Tree = Any

NASTY_TEXTS = (
    "",
    " ",
    "\n",
    "\t",
    "\0",
    "a\0b",
    "\r\n",
    "\x85",
    "\u2028",
    "\ufeff",
    "\u202e",
    "中文",
    "é" * 300,
    "\U0001f4a5",
    "\u0301" * 40,
    "nan",
    "-nan",
    "inf",
    "-inf",
    "Infinity",
    "1e400",
    "-1",
    "0",
    "00",
    "0x1f",
    "1_000",
    "0o7",
    "1.7976931348623157e308",
    "9" * 25,
    "9" * 400,
    "9" * 5000,
    "-" * 50,
    "None",
    "null",
    "true",
    "no",
    "~",
    "12:30",
    "2026-09-10 04:00:00",
    "2026-09-10T04:00:00+08:00",
    "0000-00-00 00:00:00",
    "9999-12-31T23:59:59-23:59",
    "0001-01-01T00:00:00+23:59",
    "2300-01-01T00:00:00Z",
    "1970-01-01",
    "24:00",
    "<html>",
    "<!channel>",
    "@all",
    "{{ value }}",
    "{% for %}",
    "${HOME}",
    "${",
    "%s%n",
    "%",
    "../../etc/passwd",
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title",
    "*" * 60,
    "(" * 60,
    "[",
    "\\",
    "'",
    '"',
    "a" * 5000,
    "１２",
    "٣",
    "running ",
    "RUNNING",
)
NASTY_NUMBERS = (
    0,
    1,
    -1,
    2,
    5,
    0.5,
    -0.0,
    1e-320,
    1e300,
    -1e300,
    1e308,
    2**31,
    2**53,
    2**53 + 1,
    2**63 - 1,
    2**63,
    -(2**63),
    2**64,
    10**19,
    10**25,
    10**40,
    10**400,
    1.5e9,
    1789012800,
    1789012800.5,
    1789012800000,
    1789012800000000,
    1789012800000000000,
    9999999999,
    99999999999,
    10**11,
    10**14,
    math.nan,
    math.inf,
    -math.inf,
    True,
    False,
)
ODD_KEYS = (
    "",
    "type",
    "data",
    "metric",
    "values",
    "name",
    "id",
    "status",
    "\ud800",
    "__class__",
    "for",
    "中",
    "x" * 200,
)


def nasty(dice: random.Random, depth: int = 0) -> Tree:
    """Return any value at all."""
    kind = dice.randrange(9 if depth < 3 else 6)
    if kind < 2:
        return dice.choice(NASTY_TEXTS)
    if kind < 4:
        return dice.choice(NASTY_NUMBERS)
    if kind == 4:
        return None
    if kind == 5:
        return text(dice, 20)
    if kind == 6:
        return [nasty(dice, depth + 1) for _ in range(dice.choice((0, 1, 1, 2, 5)))]
    if kind == 7:
        return {dice.choice(ODD_KEYS): nasty(dice, depth + 1) for _ in range(dice.choice((0, 1, 2, 4)))}
    return deep(dice.choice((5, 50, 200)), dice)


def deep(depth: int, dice: random.Random) -> Tree:
    """Return something nested so deep."""
    inner: Tree = dice.choice(NASTY_NUMBERS)
    for _ in range(depth):
        inner = [inner] if dice.random() < 0.5 else {"data": inner}
    return inner


def text(dice: random.Random, longest: int) -> str:
    """Return characters from everywhere, lone surrogates included."""
    planes = (
        (0, 0x20),
        (0x20, 0x7F),
        (0x20, 0x7F),
        (0x80, 0x800),
        (0x800, 0x3100),
        (0x4E00, 0x9FFF),
        (0xD7F0, 0xE010),
        (0xFE00, 0x10000),
        (0x1F300, 0x1F700),
    )
    return "".join(chr(dice.randrange(*dice.choice(planes))) for _ in range(dice.randrange(longest + 1)))


def swapped(value: Tree, dice: random.Random) -> Tree:
    """Return the same thing as another type, or nearly the same."""
    changes: list[Callable[[], Tree]] = [
        lambda: str(value)[:200],
        lambda: [value],
        lambda: {"value": value},
        lambda: None,
        lambda: nasty(dice),
    ]
    if isinstance(value, str):
        changes += [
            value.upper,
            lambda: value + dice.choice(NASTY_TEXTS),
            lambda: value[: len(value) // 2],
            lambda: f" {value}\t",
            lambda: value.replace(dice.choice(value), dice.choice(NASTY_TEXTS)) if value else "x",
            lambda: value * 50,
        ]
    elif isinstance(value, (int, float)):
        changes += [
            lambda: -value,
            lambda: value * 1000,
            lambda: value * 10**9,
            lambda: value + 0.5 if abs(value) < 1e300 else 0,
            lambda: dice.choice(NASTY_NUMBERS),
            lambda: str(value)[:50] + "x",
        ]
    elif isinstance(value, list):
        changes += [
            list,
            lambda: value[::-1],
            lambda: value + value,
            lambda: dict(enumerate(map(str, value))),
            lambda: value * 20 if len(value) < 20 else [],
        ]
    elif isinstance(value, dict):
        changes += [
            dict,
            lambda: list(value.items()),
            lambda: {str(k).upper(): v for k, v in value.items()},
        ]
    return dice.choice(changes)()


def copied(tree: Tree) -> Tree:
    if isinstance(tree, dict):
        return {key: copied(value) for key, value in tree.items()}
    return [copied(value) for value in tree] if isinstance(tree, list) else tree


def mutated(tree: Tree, dice: random.Random, times: int = 0) -> Tree:
    """Return a changed copy: keys and items dropped, doubled, renamed, moved; values swapped."""
    try:
        return _mutated(copied(tree), dice, times)
    except RecursionError:  # deep in deep in deep
        return nasty(dice)


def _mutated(tree: Tree, dice: random.Random, times: int) -> Tree:
    for _ in range(times or dice.choice((1, 1, 1, 2, 3, 6))):
        places = list(_places(tree))
        if not places:
            return swapped(tree, dice)
        holder, key = dice.choice(places)
        _change(holder, key, places, dice)
    return tree


def _places(tree: Tree, most: int = 400) -> list[tuple[Tree, Any]]:
    found: list[tuple[Tree, Any]] = []
    waiting = [tree]
    while waiting and len(found) < most:
        node = waiting.pop()
        inside = (
            list(node.items())
            if isinstance(node, dict)
            else list(enumerate(node))
            if isinstance(node, list)
            else []
        )
        for key, value in inside:
            found.append((node, key))
            if isinstance(value, (dict, list)):
                waiting.append(value)
    return found


def _change(holder: Tree, key: Any, places: list[tuple[Tree, Any]], dice: random.Random) -> None:
    what = dice.randrange(7)
    if what == 0:
        del holder[key]
    elif what == 1 and isinstance(holder, dict):
        holder[dice.choice(ODD_KEYS)] = holder.pop(key)
    elif what == 1:
        holder.insert(key, copied(holder[key]))
    elif what == 2:
        other, place = dice.choice(places)
        try:
            holder[key] = copied(other[place])
        except (KeyError, IndexError):
            holder[key] = nasty(dice)
    elif what == 3:
        holder[key] = nasty(dice)
    elif what == 4 and isinstance(holder, dict):
        holder[dice.choice(ODD_KEYS)] = nasty(dice)
    else:
        holder[key] = swapped(holder[key], dice)


def as_json(tree: Tree, dice: random.Random) -> bytes:
    """Write a tree as JSON the way a careless server may: NaN, doubled keys, surrogates, a BOM."""
    style = dice.randrange(6)
    try:
        written = json.dumps(tree, ensure_ascii=style < 3, separators=(",", ":") if style % 2 else None)
    except (ValueError, RecursionError):  # a number too long to be written
        written = "{}"
    if style == 5 and '"' in written:
        at = written.index('"')
        written = written[:at] + '"data":1,' + written[at:]
    content = written.encode("utf-8", "surrogatepass")
    return b"\xef\xbb\xbf" + content if dice.randrange(20) == 0 else content


BYTES = (
    b"\0",
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\xef\xbb\xbf",
    b"\r\n",
    b"\r",
    b"\t",
    b'"',
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\\u",
    b"\\ud800",
    b"null",
    b"NaN",
    b"1e999",
    b"-",
    b"9" * 30,
    b"[" * 2000,
    b'{"a":' * 600,
    b"\x1b[",
    b"'",
    b"\\",
    b"#",
    b"&a ",
    b"*a",
    b"<<: ",
)


def garbled(content: bytes, dice: random.Random, pieces: tuple[bytes, ...] = BYTES) -> bytes:
    """Return changed bytes: cut, cut off, something put in, moved, or nothing of it left."""
    for _ in range(dice.choice((1, 1, 2, 5))):
        at = dice.randrange(len(content) + 1)
        length = dice.choice((1, 1, 2, 8, 40))
        what = dice.randrange(7)
        if what == 0:
            content = content[:at]
        elif what == 1:
            content = content[:at] + content[at + length :]
        elif what == 2:
            content = content[:at] + dice.choice(pieces) + content[at:]
        elif what == 3:
            content = content[:at] + dice.randbytes(length) + content[at + length :]
        elif what == 4:
            other = dice.randrange(len(content) + 1)
            content = content[:at] + content[other : other + length] + content[at:]
        elif what == 5 and content and at < len(content):
            content = content[:at] + bytes([content[at] ^ (1 << dice.randrange(8))]) + content[at + 1 :]
        elif dice.randrange(30) == 0:
            content = dice.randbytes(dice.choice((0, 1, 3, 200)))
    return content
