"""Command lines: verbs, options and values that nobody meant.

Promises: an exit code of the documented ones, never that of a bug; no traceback; whoever is refused is told
why; no secret on the screen. Nothing runs for long: verbs that would (`run`, `init`, `demo`) are refused.
"""

import atexit
import contextlib
import io
import os
import random
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path

import typer

from tests.fuzz.mutating import NASTY_TEXTS, garbled, text
from tests.fuzz.running import Shown
from watchdog.cli import main as program

EXPECTED = ("0", "1", "2", "3")
SECRET = "swordfish-2000"
LONG = ("run", "init", "demo")
WORDS = (
    "alaya",
    "gpu-idle",
    "llama-70b",
    "chat",
    "7gz",
    "bash",
    "zsh",
    "fish",
    "siflow",
    "pod-0",
    "*",
    "a/b",
    "en",
    "zh",
    "5",
    "100",
    "-1",
    "0",
    "1h",
    "10%",
    "json",
    "text",
    "debug",
    "--",
    "-",
    "---",
    "-x",
    "--json",
    "--help",
    "-h",
    "=",
    "--=",
)
RULES = """\
sources:
  alaya: { kind: alaya, base_url: "http://127.0.0.1:9", api_key: "${KEY}" }
watch: [ { source: alaya, task: "1", name: llama-70b } ]
channels: { chat: { url: "console://terminal" }, hook: { url: "json://127.0.0.1:9/${KEY}" } }
rules:
  - { name: gpu-idle, metric: gpu, below: 10%, for: 1h }
"""
DOTENV = b"""\
OTHER="swordfish-2000"
# a comment
JOB_WATCHDOG_LOG_LEVEL=debug
export JOB_WATCHDOG_LOG_FORMAT='text'
JOB_WATCHDOG_RULES=rules.yaml
"""
SCENARIO = """\
length: 5m
rules: [ { name: low, metric: gpu, below: 10% } ]
series: [ { metric: gpu, from: -5m, values: 5% } ]
expect: []
others: true
"""


@cache
def _folder() -> Path:
    """A place with everything that a command line may name; the process moves there, once."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "rules.yaml").write_text(RULES)
    (folder / "broken.yaml").write_text(RULES.replace("below", "bellow"))
    (folder / "s.yaml").write_text(SCENARIO)
    (folder / "empty").write_bytes(b"")
    (folder / "noise").write_bytes(random.Random(1).randbytes(9000))
    (folder / "head.db").write_bytes(b"SQLite format 3\0" + random.Random(2).randbytes(9000))
    (folder / "dir").mkdir()
    (folder / "loop").symlink_to("loop")
    os.chdir(folder)
    for name in [name for name in os.environ if name.startswith("JOB_WATCHDOG_")]:
        del os.environ[name]
    os.environ |= {
        "KEY": SECRET,
        "JOB_WATCHDOG_STATE_DIR": str(folder),
        "JOB_WATCHDOG_ALAYA_BASE_URL": "http://127.0.0.1:9",
        "HOME": str(folder),
        "COLUMNS": "100",
    }
    return folder


PATHS = (
    "rules.yaml",
    "broken.yaml",
    "s.yaml",
    "empty",
    "noise",
    "head.db",
    "dir",
    "loop",
    "nowhere.yaml",
    "no/where",
    "/dev/null",
    "/dev/full",
    "/proc/self/mem",
    "/etc/shadow",
    "x" * 300,
    "rules.yaml/x",
    ".",
    "",
)


@cache
def _options(verb: str) -> tuple[str, ...]:
    """Every option that a verb has."""
    app = typer.Typer(add_completion=False)
    app.command()(program._imported(program.VERBS[verb]))
    command = typer.main.get_command(app)
    return tuple(
        name
        for parameter in command.params
        for name in (*parameter.opts, *parameter.secondary_opts)
        if name.startswith("-")
    )


def case(dice: random.Random, shown: Shown) -> str:
    _folder()
    arguments = _arguments(dice)
    shown(arguments)
    out, err = io.StringIO(), io.StringIO()
    dotenv = Path(".env")
    if dice.randrange(3) == 0:
        dotenv.write_bytes(garbled(DOTENV, dice))
    else:
        dotenv.unlink(missing_ok=True)
    before = sys.stdin
    sys.stdin = io.StringIO(dice.choice(("", "\n", "y\n", "\x04", "q\n" * 50)))
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = program.run(arguments)
    finally:
        sys.stdin = before
    said = out.getvalue() + err.getvalue()
    assert code in (0, 1, 2, 3), f"exit code {code}: {said[-500:]}"
    assert "Traceback" not in said, said[-1500:]
    assert SECRET not in said, "a secret is shown"
    assert code == 0 or "--quiet" in arguments or "-q" in arguments or said.strip(), (
        f"refused without a word: {code}"
    )
    return str(code)


def _arguments(dice: random.Random) -> list[str]:
    verb = dice.choice(list(program.VERBS)) if dice.randrange(12) else _value(dice)
    options = _options(verb) if verb in program.VERBS else ("--json",)
    arguments = [verb]
    for _ in range(dice.choice((0, 1, 1, 2, 3, 6))):
        if options and dice.randrange(2):
            option = dice.choice(options)
            arguments += (
                [f"{option}={_value(dice)}"]
                if dice.randrange(3) == 0
                else [option] + [_value(dice)] * dice.randrange(2)
            )
        else:
            arguments.append(_value(dice))
    if verb in LONG:
        arguments.insert(1, dice.choice(("--no-such-option", "--help")))
    elif dice.randrange(15) == 0:
        dice.shuffle(arguments)
        if set(arguments) & set(LONG):
            arguments = ["--no-such-option", *arguments]
    return [_possible(word) for word in arguments]


def _value(dice: random.Random) -> str:
    kind = dice.randrange(6)
    if kind < 2:
        return dice.choice(PATHS)
    if kind == 2:
        return dice.choice(NASTY_TEXTS)
    return dice.choice(WORDS) if kind < 5 else text(dice, 12)


def _possible(word: str) -> str:
    """What the system can hand over: no NUL, and bytes that are no UTF-8 as Python spells them."""
    return word.replace("\0", "").encode("utf-8", "surrogatepass").decode("utf-8", "surrogateescape")
