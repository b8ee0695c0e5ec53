"""`watchdog reload`: have the running daemon load its rule file anew."""

from typing import TYPE_CHECKING

from watchdog.cli.client import AsJson, Daemon, StateOption
from watchdog.cli.output import Output, Style, safe, standard_output
from watchdog.cli.telling import print_json

if TYPE_CHECKING:
    from watchdog.engine.views_asked import ReloadView

_WHAT = (("added", "+"), ("removed", "-"), ("changed", "~"))


def reload(as_json: AsJson = False, state: StateOption = None) -> int:
    """Load the rule file anew, all or nothing: with any error in it, the rules stay as they are.

    What an edit does not concern goes on undisturbed: what is pending or firing, connections, channels.
    `systemctl reload` and SIGHUP do the same, without an answer.

    Exit code 0: in force, or nothing had changed. 1: rejected, with every problem. 3: the daemon is not
    running.

    Example: watchdog check /etc/job-watchdog/rules.yaml && watchdog reload
    """
    from watchdog.cli.loading import read_settings
    from watchdog.cli.problems import count_words, show_problems
    from watchdog.engine import protocol
    from watchdog.engine.views_asked import ReloadView
    from watchdog.errors import Problem

    daemon = Daemon.of(read_settings().settings, state=state)
    view = daemon.ask(protocol.Reload(), ReloadView, slow=True)
    output = standard_output()
    if as_json:
        print_json(output, view)
        return 1 if view.outcome == "rejected" else 0
    problems = [
        Problem(file=p.file, line=p.line, column=p.column, message=p.message, hint=p.hint, warning=p.warning)
        for p in view.problems
    ]
    show_problems(problems, output, {})
    if view.outcome == "rejected":
        word = output.styled("rejected", Style.RED)
        output.line(f"{word}: {safe(view.file)}: {count_words(problems)}; the rules stay as they are")
        return 1
    _edits(view, output)
    word = output.styled(view.outcome, Style.GREEN)
    output.line(f"{word}: {safe(view.file)}")
    if view.not_kept:
        output.line(safe(f"it could not be remembered as the last good one: {view.not_kept}"))
    return 0


def _edits(view: "ReloadView", output: Output) -> None:
    for section, edits in view.edits.items():
        parts = [f"{sign}{name}" for kind, sign in _WHAT for name in getattr(edits, kind)]
        output.line(safe(f"{section}: {' '.join(parts)}"))
    if view.settings:
        output.line(safe(f"settings: {' '.join(view.settings)}"))
