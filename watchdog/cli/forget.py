"""`watchdog forget`: forget what is known of a task, or that it is expected to have a pod."""

from typing import Annotated

import typer

from watchdog.cli.client import AsJson, Daemon, StateOption
from watchdog.cli.output import safe, standard_output
from watchdog.cli.telling import print_json


def forget(
    task: Annotated[str, typer.Argument(help="Its name, id or key.")],
    pod: Annotated[str, typer.Argument(help="Only this pod of it.")] = "",
    as_json: AsJson = False,
    state: StateOption = None,
) -> int:
    """Forget a pod that will not come back, or everything about a task.

    A forgotten pod is not missed any more; one that gives data again is expected again. A forgotten task
    that the rule file still names is watched as if it were new. Open incidents close as "forgotten".

    Exit code 0: it will be forgotten with the next evaluation. 1: there is no such task or pod. 3: the daemon
    is not running.

    Example: watchdog forget llama-70b pod-17
    """
    from watchdog.cli.loading import read_settings
    from watchdog.engine import protocol
    from watchdog.engine.views_asked import ForgetView

    daemon = Daemon.of(read_settings().settings, state=state)
    view = daemon.ask(protocol.Forget(task=task, pod=pod), ForgetView)
    output = standard_output()
    if as_json:
        print_json(output, view)
    else:
        what = f"pod {view.pods[0]} of {view.task}" if view.pods else f"everything about {view.task}"
        output.line(safe(f"{what}: forgotten with the next evaluation, in {view.within_s:.0f} s"))
    return 0
