"""Rule files and scenario files, bent: a file that can be used, or every problem with its place.

Promises: never another exception; each error has words and a place within the file (those about the whole
file aside); no value from outside is shown; what can be used really can: scenarios that are read are played.
"""

import itertools
import json
import random
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.fuzz.mutating import garbled, mutated, nasty
from tests.fuzz.running import Shown
from watchdog.config.build import Knowledge, loads
from watchdog.config.jsonschema import json_schema
from watchdog.config.report import split_lines
from watchdog.errors import ConfigError, Problem
from watchdog.replay.files import play, prepare
from watchdog.sources.registry import SOURCE_KINDS
from watchdog.text.patterns import Re2Engine
from watchdog.text.templates import compile_template

ROOT = Path(__file__).resolve().parent.parent.parent
KNOWLEDGE = Knowledge(engine=Re2Engine(), kinds=SOURCE_KINDS)
ENV = {"TEAM_CHAT_URL": "json://localhost/swordfish-2000", "JOB_WATCHDOG_ALAYA_API_KEY": "hunter2-hunter2"}
SECRETS = ("swordfish", "hunter2")
EXPECTED = ("usable", "refused")
_Dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

WHOLE_FILE = ("larger than", "the file is empty", "the file is UTF-16")
TEXTS = (  # what YAML, or the rule language, may stumble over
    "${",
    "${TEAM_CHAT_URL}",
    "}",
    "{",
    "[",
    "]",
    "- ",
    ": ",
    "\n",
    "  ",
    "\t",
    "#",
    "&a ",
    "*a",
    "<<: ",
    "!!",
    "!!python/object:os.system ",
    "'",
    '"',
    "|",
    ">",
    "|2-\n",
    "%YAML 1.2\n",
    "@",
    "`",
    "\0",
    "\x85",
    "\u2028",
    "\ufeff",
    "中",
    "no",
    "12:30",
    "1e3",
    "~",
    "null",
    "0x1",
    ".nan",
    "9" * 400,
    "-1",
    "by: gpu",
    "for: 10",
    "levels: []",
    "name: ",
    "enabled: false",
    "---\n",
    "...\n",
    "? ",
    "\\b",
    "(?=x)",
    "*" * 50,
    "x" * 300,
    "[" * 45,
    "{a: " * 45,
    "&b [*b]",
    "\r",
    "\r\n",
)
PIECES = tuple(text.encode() for text in TEXTS)
NO_UTF8 = (b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xff\xfe")
VALUES = (
    "10%",
    "90%",
    "0.5",
    "150%",
    "1h",
    "30m",
    "0s",
    "90s",
    "1ms",
    "9999d",
    "-5m",
    "10",
    "gpu",
    "vram",
    "XidErrors",
    "pod",
    "task",
    "node",
    "running",
    "queued",
    "failed",
    "critical",
    "warning",
    "team",
    "chat",
    "llama-70b",
    "*",
    "[a-",
    "\\bERROR\\b",
    "(",
    "a{1000}",
    "(?P<x>a)",
    "^$",
    "UTC",
    "Asia/Shanghai",
    "Mars/Olympus",
    "en",
    "zh",
    "alaya",
    "siflow",
    "json://localhost/x",
    "{{ value }}",
    "{{",
    "09:00",
    "127.0.0.1:9595",
    "any",
    "hold",
    "fire",
    "last",
    "max",
    "median",
)


def rules_case(dice: random.Random, shown: Shown) -> str:
    kind = dice.randrange(4)
    if kind == 0:
        tree: Any = _instance(_schema(), dice, 0)
        content = _dumped(tree, dice)
    elif kind == 1:
        content = _bomb(dice)
    else:
        tree = _file(dice)
        if dice.randrange(3):
            tree = mutated(tree, dice)
        content = _dumped(tree, dice)
        if kind == 2:
            content = _respelled(garbled(content, dice, (*PIECES, *NO_UTF8)), dice)
    shown(content)
    return _load(content)


def _load(content: bytes) -> str:
    try:
        loaded = loads(content, file="rules.yaml", env=ENV, knowledge=KNOWLEDGE)
    except ConfigError as error:
        assert any(not problem.warning for problem in error.problems), "no error"  # noqa: PT017
        _check(error.problems, content, "rules.yaml")
        return "refused"
    _check(loaded.warnings, content, "rules.yaml")
    assert all(problem.warning for problem in loaded.warnings)
    return "usable"


def _check(problems: tuple[Problem, ...] | list[Problem], content: bytes, file: str) -> None:
    """Every problem has words and a place, and shows no secret."""
    lines: list[str] | None = None
    for problem in problems:
        said = str(problem)
        assert problem.message.strip()
        assert problem.file == file
        assert not [secret for secret in SECRETS if secret in said], "a secret is shown"
        if problem.warning or any(words in problem.message for words in WHOLE_FILE):
            continue
        assert problem.line >= 1, f"an error without a place: {said}"
        assert problem.column >= 1, f"an error without a place: {said}"
        lines = lines if lines is not None else split_lines(content.decode("utf-8", "replace"))
        assert problem.line <= len(lines), f"an error behind the end: {said}"
        assert problem.column <= len(lines[problem.line - 1]) + 2, f"an error behind the line's end: {said}"


# --- what files are made of


@cache
def _example() -> Any:
    return yaml.load((ROOT / "rules.example.yaml").read_text(encoding="utf-8"), Loader=_Loader)


@cache
def _schema() -> Any:
    return json.loads(json.dumps(json_schema(SOURCE_KINDS)))


def _file(dice: random.Random) -> Any:
    """A small good file: the example's places, and some of its rules."""
    whole = _example()
    tree = {name: whole[name] for name in ("sources", "watch", "channels")}
    if dice.randrange(2):
        tree["defaults"] = whole["defaults"]
    if dice.randrange(6) == 0:
        tree |= {
            "http": {"listen": "127.0.0.1:9595"},
            "heartbeat": {"url": "http://localhost/x", "every": "5m", "daily_note": "09:00"},
        }
    tree["rules"] = dice.sample(whole["rules"], dice.choice((1, 1, 2, 3)))
    return tree


def _instance(schema: Any, dice: random.Random, depth: int) -> Any:
    """Something that the schema allows, or nearly."""
    if dice.randrange(60) == 0 or depth > 8:
        return nasty(dice)
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return _instance(dice.choice(schema[several][:1] * 3 + schema[several]), dice, depth)
    if "enum" in schema:
        return dice.choice(schema["enum"])
    if "const" in schema:
        return schema["const"]
    kind = schema.get("type")
    if kind == "object":
        known = schema.get("properties", {})
        names = set(schema.get("required", ())) | {
            name for name in known if dice.randrange(len(known) // 3 + 1) == 0
        }
        found = {name: _instance(known[name], dice, depth + 1) for name in sorted(names) if name in known}
        extra = schema.get("additionalProperties")
        for _ in range(dice.choice((1, 2)) if isinstance(extra, dict) else 0):
            found[dice.choice(VALUES)] = _instance(extra, dice, depth + 1)
        return found
    if kind == "array":
        return [_instance(schema.get("items", {}), dice, depth + 1) for _ in range(dice.choice((0, 1, 1, 2)))]
    if kind in ("number", "integer"):
        return dice.choice((0, 1, 2, 0.5, 20, 1000, schema.get("minimum", -1), schema.get("maximum", 10)))
    return dice.random() < 0.5 if kind == "boolean" else dice.choice(VALUES)


def _dumped(tree: Any, dice: random.Random) -> bytes:
    options = {
        "default_flow_style": dice.choice((None, True, False)),
        "allow_unicode": dice.randrange(2) == 0,
        "sort_keys": False,
    }
    try:
        return yaml.dump(tree, Dumper=_Dumper, encoding="utf-8", **options)
    except (yaml.YAMLError, ValueError, UnicodeEncodeError, RecursionError):
        return (
            json.dumps(tree, default=str, skipkeys=True).encode("utf-8", "replace")
            if _writable(tree)
            else b"{}"
        )


def _writable(tree: Any) -> bool:
    try:
        json.dumps(tree, default=str, skipkeys=True)
    except (ValueError, RecursionError, TypeError):
        return False
    return True


def _respelled(content: bytes, dice: random.Random) -> bytes:
    """The same in another spelling: line ends, tabs, byte order marks, other encodings."""
    match dice.randrange(10):
        case 0:
            return content.replace(b"\n", b"\r\n")
        case 1:
            return content.replace(b"\n", b"\r")
        case 2:
            return content.replace(b"  ", b"\t")
        case 3:
            return b"\xef\xbb\xbf" + content
        case 4:
            return content.decode("utf-8", "replace").encode(
                dice.choice(("utf-16", "utf-16-le", "gbk", "utf-32")), "replace"
            )
    return content


def _bomb(dice: random.Random) -> bytes:
    """A file that is small and wants to be large, or deep, or wide."""
    size = dice.choice((3, 9, 30, 300, 3000))
    kind = dice.randrange(9)
    if kind == 0:
        rows = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9) if n else 'x'}]" for n in range(min(size, 60))]
        return "\n".join(rows).encode()
    if kind == 1:
        rows = [
            f"m{n}: &m{n} {{ <<: [{', '.join([f'*m{n - 1}'] * 3) if n else ''}], k{n}: 1 }}"
            for n in range(min(size, 60))
        ]
        return "\n".join(rows).encode()
    if kind == 2:
        return dice.choice((b"[", b"{a: ", b"- ", b"? ", b"&a [", b"!!seq [")) * size
    if kind == 3:
        return b"rules:\n" + b"  - { name: r, metric: gpu, below: 10% }\n" * size
    if kind == 4:
        return (
            b"rules: [{ name: r, log: { match: ['"
            + dice.choice((b"(", b"a*", b"(a|b)*", b"[a-z]{1000}", b"(?i)\\pL{50}", b".{100}"))
            * min(size, 300)
            + b"'] } }]"
        )
    if kind == 5:
        return (
            b"defaults: { language: "
            + dice.choice((b"${", b"${X:-", b"${TEAM_CHAT_URL}", b"$${")) * size
            + b" }"
        )
    if kind == 6:
        return b"rules:\n" + b"\n".join(b"  k%d: v" % n for n in range(size))
    if kind == 7:
        return b"# " + b"x" * size * 400 + b"\nrules: []\n" + b"\n" * size
    return b"rules: [{ name: r, metric: gpu, below: " + b"9" * size + b"%, for: " + b"9" * size + b"d }]"


# --- scenario files

LONGEST_S = 1800
SCENARIOS = tuple(sorted((ROOT / "tests" / "scenarios").glob("*.yaml")))
_names = itertools.count()


@cache
def _scenario(path: Path) -> Any:
    return yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)


def scenarios_case(dice: random.Random, shown: Shown) -> str:
    tree = mutated(_scenario(dice.choice(SCENARIOS)), dice, 1)
    content = _dumped(tree, dice)
    if dice.randrange(8) == 0:
        content = garbled(content, dice, (*PIECES, *NO_UTF8))
    shown(content)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.yaml"
        path.write_bytes(content)
        try:
            prepared = prepare(path, KNOWLEDGE)
        except ConfigError as error:
            assert error.problems  # noqa: PT017
            _check(error.problems, content, str(path))
            return "refused"
    scenario, ruleset = prepared.scenario, prepared.ruleset
    slots = (scenario.length - scenario.begin) / ruleset.interval
    width = len(scenario.script.series) + len(scenario.script.lines) / 10
    if slots > 150 or width > 60:
        return "usable"
    play(prepared, KNOWLEDGE, compile_template)
    return "played"
