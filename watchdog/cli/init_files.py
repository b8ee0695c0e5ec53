"""What `watchdog init` writes: the text of a rule file, a merged `.env`, and files that are never half there.

The rules are those of rules.example.yaml, word for word, so that there is one text to keep right. Knows no
question and no network.
"""

import contextlib
import json
import os
import re
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from io import StringIO
from pathlib import Path

from dotenv import dotenv_values
from dotenv.parser import parse_stream

from watchdog.core.ruleset import WatchEntry
from watchdog.errors import ConfigError, Problem

OPEN_MODE, SECRET_MODE = 0o644, 0o600
CHANNEL = "team"
ESSENTIALS = (
    "gpu-idle",
    "gpu-idle-without-pause",
    "straggler",
    "log-silence",
    "vram-nearly-full",
    "error-lines",
    "out-of-memory",
    "task-state",
    "task-done",
    "pod-gone",
)
_GLOB = re.compile(r"[*?\[]")
_RULE = re.compile(r"^  - name: (\S+)", re.MULTILINE)
_QUOTED = re.compile(r"[\s'\"\\#$`]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """All that a new rule file says. `channel`: a URL as the file shows it, such as `${TEAM_CHAT_URL}`."""

    source: str
    kind: str
    options: Mapping[str, str] = field(default_factory=dict)
    variables: Sequence[str] = ()  # where the source's secrets come from
    watch: Sequence[WatchEntry]
    channel: str
    timezone: str
    language: str
    rules: Collection[str] = ESSENTIALS


def example() -> str:
    """Return the text of rules.example.yaml."""
    return (resources.files("watchdog.demo") / "rules.example.yaml").read_text(encoding="utf-8")


def rule_file(draft: Draft, *, file: str = "rules.yaml") -> str:
    """Return the text of the rule file; `file` is what it calls itself."""
    pairs = {"kind": draft.kind, **{name: quoted(value) for name, value in draft.options.items()}}
    options = ", ".join(f"{name}: {value}" for name, value in pairs.items())
    secrets = f"      # secrets: {', '.join(draft.variables)}" if draft.variables else ""
    watch = "\n".join(f"  - {{ {_entry(entry)} }}" for entry in draft.watch)
    return f"""\
# What `watchdog` looks at, what it looks for, and whom it tells. Written by `watchdog init`; yours to edit.
#
# After each edit:  watchdog check {file}
# docs/rules.md explains every key, rules.example.yaml has more rules. For completion in your editor:
# watchdog schema > rules.schema.json
#
# No secret stands in here: ${{NAME}} comes from the environment, a .env file, or a secrets directory.

defaults:
  interval: 60s               # how often the rules are evaluated
  timezone: {draft.timezone:<17} # of the times in messages
  language: {draft.language:<17} # {"or zh" if draft.language == "en" else "or en"}
  repeat: 4h                  # an incident that stays open is told again this often

# Where to ask.
sources:
  {draft.source}: {{ {options} }}{secrets}

# What to look at: a task by its id, or all tasks whose name fits, found through the task list and followed
# across restarts, such as  - {{ source: {draft.source}, name: "pretrain-*" }}
watch:
{watch}

# Whom to tell. One URL with one recipient each (any Apprise URL).
channels:
  {CHANNEL}: {{ url: {json.dumps(draft.channel)} }}
# oncall: {{ url: "${{ONCALL_URL}}", min_severity: critical }}        # only what cannot wait until tomorrow

rules:
{rule_blocks(example(), draft.rules)}"""


def rule_blocks(text: str, names: Collection[str]) -> str:
    """Return the rules of these names as they stand in an example, under its headings."""
    kept: list[str] = []
    heading = ""
    for block in text.partition("\nrules:\n")[2].strip("\n").split("\n\n"):
        found = _RULE.search(block)
        if found is None:
            heading = block
        elif found[1] in names:
            kept += [heading, block] if heading else [block]
            heading = ""
    return "\n\n".join(kept) + "\n"


def quoted(text: str) -> str:
    """Return a text as a YAML scalar in which nothing is filled in."""
    return json.dumps(text.replace("${", "$${"), ensure_ascii=False)


def is_glob(text: str) -> bool:
    """Whether a name stands for every name that fits."""
    return bool(_GLOB.search(text))


def _entry(entry: WatchEntry) -> str:
    words = [f"source: {entry.source}"]
    if entry.id:
        words.append(f"task: {quoted(entry.id)}")
    # Beside an id, a name is for people only; one that looks like a glob would be an error there.
    if entry.name and entry.name.isprintable() and not (entry.id and is_glob(entry.name)):
        words.append(f"name: {quoted(entry.name)}")
    return ", ".join(words)


def merged_dotenv(before: str, values: Mapping[str, str]) -> str:
    """Return the text of a `.env` file with these values in it, everything else as it was.

    Raises:
        ConfigError: a value cannot be written so that it is read back; names the variable only.
    """
    lines: list[str] = []
    left = dict(values)
    for binding in parse_stream(StringIO(before)):
        original = binding.original.string
        if binding.key is None or binding.key not in values:
            lines.append(original)
        elif binding.key in left:
            blank = original[: len(original) - len(original.lstrip())]
            lines.append(f"{blank}{_assignment(binding.key, left.pop(binding.key))}")
    text = "".join(lines)
    if text and not text.endswith("\n"):
        text += "\n"
    text += "".join(_assignment(name, value) for name, value in left.items())
    _check_dotenv(before, text, values)
    return text


def _assignment(name: str, value: str) -> str:
    if _QUOTED.search(value):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        value = f"'{escaped}'"
    return f"{name}={value}\n"


def _check_dotenv(before: str, after: str, values: Mapping[str, str]) -> None:
    """Raise if the text does not say what it should: values with line ends, broken quotes in an old file."""
    wanted = {**dotenv_values(stream=StringIO(before), interpolate=False), **values}
    found = dotenv_values(stream=StringIO(after), interpolate=False)
    wrong = [name for name in wanted if found.get(name) != wanted[name]]
    wrong += [name for name, value in values.items() if "\0" in value or value.splitlines() != [value]]
    if wrong:
        message = (
            f"{', '.join(sorted(set(wrong)))} cannot be written there so that it is read back: set it by hand"
        )
        raise ConfigError([Problem(file=".env", message=message)])


def read_text(path: Path) -> str:
    """Return a file's text, "" if there is none; raises ConfigError if it cannot be read."""
    if path.exists() and not path.is_file():  # a device never ends
        raise ConfigError([Problem(file=str(path), message="cannot be read: it is no file")])
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError([Problem(file=str(path), message=f"cannot be read: {reason}")]) from None


def write_whole(path: Path, text: str, mode: int) -> None:
    """Write a file so that it is there whole or not at all; a link's target is written, its owner kept.

    Raises:
        ConfigError: it cannot be written; what was there before is still there.
    """
    target = Path(os.path.realpath(path))
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            _keep_owner(file.fileno(), target)
            os.fchmod(file.fileno(), mode)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(target)
        temporary = ""
    except OSError as error:
        problem = Problem(file=str(path), message=f"cannot be written: {error.strerror or error}")
        raise ConfigError([problem]) from None
    finally:
        if temporary:
            Path(temporary).unlink(missing_ok=True)


def _keep_owner(handle: int, target: Path) -> None:
    """Give a new file to whom the old one belongs: root may edit what a service's own user reads."""
    with contextlib.suppress(FileNotFoundError, PermissionError):
        old, new = target.stat(), os.fstat(handle)
        if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
            os.fchown(handle, old.st_uid, old.st_gid)
