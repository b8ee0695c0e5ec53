"""`watchdog check`: everything that is wrong with a rule file; with --probe, what is wrong outside."""

import asyncio
import importlib
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Annotated, Protocol

import typer

from watchdog.cli.output import Output, Style, safe, standard_output
from watchdog.cli.problems import count_words, problem_values, show_problems
from watchdog.config.build import Loaded
from watchdog.config.report import split_lines
from watchdog.config.settings import LoadedSettings
from watchdog.errors import ConfigError, Problem


class ProbeAnswer(Protocol):
    """What asking one source or channel gave. `subject`: "source alaya: metrics", "channel team"."""

    @property
    def subject(self) -> str:
        """What was asked."""
        ...

    @property
    def ok(self) -> bool:
        """Whether it works."""
        ...

    @property
    def detail(self) -> str:
        """What it answered, or why not; holds no secret."""
        ...


_DEFAULT_FILE = "$JOB_WATCHDOG_RULES, else ./rules.yaml, else /etc/job-watchdog/rules.yaml"
Probe = Callable[[Loaded, LoadedSettings], Coroutine[None, None, Sequence[ProbeAnswer]]]


def check(
    file: Annotated[Path | None, typer.Argument(help="The rule file.", show_default=_DEFAULT_FILE)] = None,
    probe: Annotated[bool, typer.Option("--probe", help="Also ask every source and channel.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> int:
    """Check a rule file: every problem at once, each with file:line:column.

    Exit code 0: it can be used. 1: it cannot, or --probe found something that does not work.
    """
    from watchdog.cli.loading import read_rules, read_settings

    output = standard_output()
    settings = read_settings()
    path = file or settings.settings.rules_path
    try:
        loaded = read_rules(path, settings.names)
    except ConfigError as error:
        problems = (*settings.warnings, *error.problems)
        _tell(path, None, problems, output, as_json=as_json)
        return 1
    answers = asyncio.run(_probe()(loaded, settings)) if probe else ()
    _tell(path, loaded, (*settings.warnings, *loaded.warnings), output, as_json=as_json, answers=answers)
    return 0 if all(answer.ok for answer in answers) else 1


def _probe() -> Probe:
    found: Probe = importlib.import_module("watchdog.app").probe
    return found


def _tell(
    path: Path,
    loaded: Loaded | None,
    problems: Sequence[Problem],
    output: Output,
    *,
    as_json: bool,
    answers: Sequence[ProbeAnswer] = (),
) -> None:
    if as_json:
        output.json(
            {
                "file": str(path),
                "ok": loaded is not None and all(answer.ok for answer in answers),
                "problems": problem_values(problems),
                **({"contents": contents(loaded)} if loaded else {}),
                **({"probes": [probe_value(answer) for answer in answers]} if answers else {}),
            }
        )
        return
    redact = loaded.secrets.redact if loaded else str
    show_problems(problems, output, {str(path): _lines(path)}, redact)
    show_answers(answers, output)
    output.line(_verdict(path, loaded, problems, output))


def contents(loaded: Loaded) -> dict[str, int]:
    """Return how many of each thing a file holds."""
    ruleset = loaded.ruleset
    return {
        "rules": len(ruleset.rules),
        "sources": len(ruleset.sources),
        "watch entries": len(ruleset.watch),
        "channels": len(ruleset.channels),
    }


def probe_value(answer: ProbeAnswer) -> dict[str, object]:
    """Return one answer as values for JSON."""
    return {"subject": answer.subject, "ok": answer.ok, "detail": answer.detail}


def show_answers(answers: Sequence[ProbeAnswer], output: Output) -> None:
    """Write what was asked and what came back, one line each."""
    for answer in answers:
        mark = output.styled("ok    ", Style.GREEN) if answer.ok else output.styled("FAILED", Style.RED)
        output.line(f"{mark} {safe(answer.subject)}: {safe(answer.detail)}")
    if answers:
        output.line()


def _verdict(path: Path, loaded: Loaded | None, problems: Sequence[Problem], output: Output) -> str:
    found = count_words(problems)
    if loaded is None:
        return f"{output.styled('cannot be used', Style.RED)}: {safe(str(path))}: {found}"
    held = ", ".join(f"{count} {_word(what, count)}" for what, count in contents(loaded).items())
    return f"{output.styled('ok', Style.GREEN)}: {safe(str(path))}: {held}" + (f"; {found}" if found else "")


def _word(plural: str, count: int) -> str:
    if count != 1:
        return plural
    return plural.removesuffix("ies") + "y" if plural.endswith("ies") else plural.removesuffix("s")


def _lines(path: Path) -> list[str]:
    """Return the lines of a file, none if it cannot be read as text."""
    from watchdog.config.yaml_nodes import MAX_BYTES

    try:
        with path.open("rb") as file:  # it may be a device, which never ends
            return split_lines(file.read(MAX_BYTES).decode("utf-8-sig"))
    except (OSError, ValueError):
        return []
