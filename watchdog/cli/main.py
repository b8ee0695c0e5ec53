"""The entry point of `watchdog`: finds the verb, imports only that, and turns every end into an exit code.

Exit codes: 0 all is well, 1 the verb found something wrong, 2 the command line is wrong, 3 the daemon is not
running, 70 a bug of ours, 130 interrupted. No traceback reaches a user unless JOB_WATCHDOG_DEBUG is set.
"""

import contextlib
import gc
import importlib
import os
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

WRONG, USAGE, BUG, INTERRUPTED, BROKEN_PIPE = 1, 2, 70, 130, 141
_NO = ("", "0", "false", "no", "off")


class Verb(NamedTuple):
    """One verb: the module and function to import when it is called, and one line of help."""

    where: str
    help: str


VERBS = {
    "init": Verb("watchdog.cli.init:init", "Set everything up: from a key to a tested channel."),
    "run": Verb("watchdog.cli.run:run", "Watch until stopped: the daemon."),
    "status": Verb("watchdog.cli.status:status", "Show how everything stands."),
    "history": Verb("watchdog.cli.history:history", "List what happened: incidents, open ones first."),
    "show": Verb("watchdog.cli.show:show", "Show one incident with its evidence."),
    "explain": Verb("watchdog.cli.explain:explain", "Say why a rule does or does not fire."),
    "why": Verb("watchdog.cli.why:why", "Show who was told what of an incident, and each answer."),
    "metrics": Verb("watchdog.cli.metrics:metrics", "List what a task offers, asked now."),
    "test-notify": Verb("watchdog.cli.samples:samples", "Send a sample message to the channels."),
    "reload": Verb("watchdog.cli.reload:reload", "Have the daemon load its rule file anew."),
    "forget": Verb("watchdog.cli.forget:forget", "Forget a pod that will not come back, or a task."),
    "once": Verb("watchdog.cli.once:once", "Ask and judge everything once, as a table."),
    "check": Verb("watchdog.cli.check:check", "Check a rule file: every problem at once."),
    "test": Verb("watchdog.cli.scenarios:scenarios", "Play scenario files in virtual time."),
    "demo": Verb(
        "watchdog.cli.demo:demo", "Watch a training run of the stand-in cloud, without any account."
    ),
    "completion": Verb("watchdog.cli.completion:completion", "Print what makes a shell complete our words."),
    "schema": Verb("watchdog.cli.schema:schema", "Print the JSON Schema of the rule file, for editors."),
    "version": Verb("watchdog.cli.version:version", "Print the version, for bug reports."),
}
ABOUT = "Watches long GPU training jobs and tells people when they hang, idle, crash\n  or end."


def main() -> None:
    """Run the command line of this process."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal that lacks a character still shows the rest
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    other = foreign_owner(Path(__file__).resolve().parent.parent, sys.path)
    if other:
        _complain(f"the import name watchdog is also used by {other}: install job-watchdog on its own")
        return USAGE
    try:
        code = _dispatch(arguments)
        sys.stdout.flush()  # here, where a full disk or a closed pipe can still be said
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _give_up_stdout()
        return BROKEN_PIPE
    except Exception as error:  # noqa: BLE001 - the last resort: one line instead of a traceback
        if isinstance(error, OSError) and not error.filename:
            _give_up_stdout()
        return _explain(error)


def _give_up_stdout() -> None:
    """What could not be written would be tried again, and complained of, when the process ends."""
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - until the end


def foreign_owner(package: Path, search_path: Sequence[str]) -> str:
    """Return which other distribution uses our import name beside us, "" if none does.

    Looks at names only: this runs before every command.
    """
    with contextlib.suppress(OSError):  # it may lie where this user may not look
        if (package / "observers").exists() or (package / "events.py").exists():
            return "other files in its folder"
    for entry in search_path:
        try:
            found = next(iter([*Path(entry or ".").glob("[Ww]atchdog-*.dist-info")]), None)
        except OSError:
            continue
        if found is not None:
            return found.name.removesuffix(".dist-info")
    return ""


def _dispatch(arguments: Sequence[str]) -> int:
    if not arguments or list(arguments) in (["--help"], ["-h"]):
        (sys.stdout if arguments else sys.stderr).write(_overview())
        return 0 if arguments else USAGE
    # httpx takes its own command line along where it finds rich and pygments: 5 MiB, 60 ms, for nothing.
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # None: cannot be imported
    # What numpy multiplies with starts a thread for each core, and they spin: 60 ms of CPU, for nothing.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if _wanted(arguments) == "run" and not {"--help", "-h"} & set(arguments):
        return _run(arguments)
    answer = _called(arguments)
    return answer if isinstance(answer, int) else 0


def _wanted(arguments: Sequence[str]) -> str:
    """Return the verb."""
    return next((word for word in arguments if not word.startswith("-")), "")


def _run(arguments: Sequence[str]) -> int:
    """Be the daemon, without what only reads its words and settings (typer, pydantic): 12 MiB."""
    from watchdog.cli.apart import begin

    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until somebody listens to it
    gc.disable()  # what is imported stays: it is not gone through for garbage again and again
    try:
        outcome = begin(partial(_called, arguments))
        from watchdog.cli.daemon import live
        from watchdog.cli.wanted import Wanted

        wanted = outcome()
        return live(wanted) if isinstance(wanted, Wanted) else USAGE
    finally:
        gc.enable()


def _called(arguments: Sequence[str]) -> object:
    """Have typer take the words apart and call the verb; returns what that returned."""
    import typer

    wanted = _wanted(arguments)
    app = typer.Typer(
        help=ABOUT,
        add_completion=False,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_program)
    for name, verb in VERBS.items():
        function = _imported(verb) if name == wanted else _not_wanted
        app.command(name, help=None if name == wanted else verb.help)(function)
    if list(arguments) == ["--version"]:
        arguments = ["version"]
        app.command("version")(_imported(VERBS["version"]))
    return app(args=list(arguments), prog_name="watchdog", standalone_mode=False)


def _overview() -> str:
    """Return the program's own help; made by hand, since it should not wait for imports."""
    verbs = "".join(f"  {name:11}  {verb.help}\n" for name, verb in VERBS.items())
    return (
        f"Usage: watchdog [OPTIONS] COMMAND [ARGS]...\n\n  {ABOUT}\n\n"
        f"Options:\n  -h, --help  Show this message and exit.\n\nCommands:\n{verbs}"
    )


def _imported(verb: Verb) -> Callable[..., object]:
    module, _, name = verb.where.partition(":")
    function: Callable[..., object] = getattr(importlib.import_module(module), name)
    return function


def _program() -> None:
    """Stands for the program itself, which has no options of its own."""


def _not_wanted() -> None:
    """Stands for a verb in the list of verbs; only the one that was asked for is imported."""


def _explain(error: Exception) -> int:
    from watchdog.errors import ConfigError, WatchdogError

    usage = getattr(error, "format_message", None)  # how typer's own errors word themselves
    if callable(usage):
        return _usage(error, usage())
    if type(error).__name__ == "Abort":
        return INTERRUPTED
    if os.environ.get("JOB_WATCHDOG_DEBUG", "").lower() not in _NO:
        import traceback

        traceback.print_exception(error)
        return getattr(error, "exit_code", WRONG) if isinstance(error, WatchdogError) else BUG
    if isinstance(error, ConfigError):
        for problem in error.problems:
            _complain(str(problem))
        return WRONG
    if isinstance(error, WatchdogError):
        _complain(str(error))
        return getattr(error, "exit_code", WRONG)
    if isinstance(error, OSError) and error.strerror:  # without a file: most often what stdout goes to
        _complain(f"{error.filename or 'reading or writing'}: {error.strerror}")
        return WRONG
    _complain(
        f"stopped by a bug: {type(error).__name__} in {_place(error)}"
        " (JOB_WATCHDOG_DEBUG=1 shows more; please report it)"
    )
    return BUG


def _usage(error: Exception, message: str) -> int:
    """Say what is wrong with the command line, in one line; without any words, show the help."""
    if type(error).__name__ == "NoArgsIsHelpError":
        sys.stderr.write(message + "\n")
        return USAGE
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "watchdog"
    message = " ".join(message.removeprefix("Invalid value: ").split())
    _complain(f"{message} ({path} --help says what there is)")
    return USAGE


def _place(error: BaseException) -> str:
    """Return the innermost place in our own code that an error came through."""
    package = Path(__file__).resolve().parent.parent
    place, step = "?", error.__traceback__
    while step is not None:
        path = Path(step.tb_frame.f_code.co_filename)
        if path.is_relative_to(package):
            place = f"{path.relative_to(package.parent)}:{step.tb_lineno}"
        step = step.tb_next
    return place


def _complain(text: str) -> None:
    sys.stderr.write(f"watchdog: {text}\n")
