"""`watchdog test`: scenario files on a virtual clock."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from watchdog.cli.output import Output, Style, cut, safe, standard_error, standard_output

if TYPE_CHECKING:
    from watchdog.replay.files import Played

PASSED, FAILED = "ok    ", "FAILED"


def scenarios(
    files: Annotated[list[Path], typer.Argument(help="Scenario files.")],
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show every message in full.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> int:
    """Play scenario files through the live engine, in virtual time.

    A scenario passes if the messages it expects are delivered, at their times and in their words, and
    no others. Of one that fails, both timelines are shown, and in what they differ. The format is
    described in docs/scenarios.md.

    Exit code 0: all passed. 1: one failed, or a file cannot be read.

    Example: watchdog test tests/scenarios/*.yaml
    """
    from watchdog.cli.loading import knowledge
    from watchdog.errors import ConfigError
    from watchdog.replay.files import play, prepare
    from watchdog.text.templates import compile_template

    output, known = standard_output(), knowledge()
    results: list[dict[str, object]] = []
    failed = 0
    for number, path in enumerate(files, 1):
        _progress(number, len(files), path)
        try:
            played = play(prepare(path, known), known, compile_template)
        except ConfigError as error:
            failed += 1
            results.append({"file": str(path), "passed": False, "problems": [str(p) for p in error.problems]})
            if not as_json:
                _unreadable(path, [str(problem) for problem in error.problems], output)
            continue
        failed += not played.verdict.passed
        results.append(_values(path, played))
        if not as_json:
            _show(path, played, output, verbose=verbose)
    _progress(0, 0, Path())
    if as_json:
        output.json(results)
    else:
        more = "" if verbose or not failed else "; -v shows every message in full"
        output.line(f"{len(files) - failed} passed, {failed} failed{more}")
    return 1 if failed else 0


def _progress(number: int, of: int, path: Path) -> None:
    """On a terminal, say which file is being played."""
    error = standard_error()
    if error.terminal and of > 1:
        error.stream.write(f"\r\x1b[K{number}/{of} {safe(path.name)}")
    elif error.terminal and not of:
        error.stream.write("\r\x1b[K")
    error.stream.flush()


def _unreadable(path: Path, problems: Sequence[str], output: Output) -> None:
    output.line(f"{output.styled(FAILED, Style.RED)} {safe(str(path))}: cannot be read")
    for problem in problems:
        output.line(f"       {safe(problem)}")


def _show(path: Path, played: "Played", output: Output, *, verbose: bool) -> None:
    from watchdog.cli.timeline import show_messages, show_timeline

    words = f" {safe(str(path))}: {safe(played.prepared.scenario.description)}"
    if played.verdict.passed:
        room = output.width - len(PASSED)
        output.line(output.styled(PASSED, Style.GREEN) + (cut(words, room) if output.terminal else words))
    else:
        output.line(output.styled(FAILED, Style.RED) + words)
        show_timeline(played, output)
    if verbose:
        show_messages(played, output)


def _values(path: Path, played: "Played") -> dict[str, object]:
    return {
        "file": str(path),
        "passed": played.verdict.passed,
        "failures": list(played.verdict.failures),
        "slots": played.slots,
        "log": [
            {
                "at_seconds": remark.at.total_seconds(),
                "level": remark.level,
                "text": remark.text,
                "times": remark.times,
            }
            for remark in played.remarks
        ],
        "sent": [
            {
                "at_seconds": message.at.total_seconds(),
                "channel": message.channel,
                "kind": message.kind,
                "rule": message.rule,
                "task": message.task,
                "incident": message.incident,
                "title": message.title,
                "body": message.body,
            }
            for message in played.sent
        ],
    }
