"""`watchdog history`: incidents, open ones first, then the newest."""

from functools import partial
from typing import Annotated

import typer

from watchdog.cli.client import NOT_RUNNING, AsJson, Daemon, StateOption
from watchdog.cli.output import standard_output
from watchdog.cli.telling import Teller, print_json


def history(
    rule: Annotated[str, typer.Option("--rule", help="Only of this rule (a glob).")] = "",
    task: Annotated[str, typer.Option("--task", help="Only of this task (a glob).")] = "",
    only_open: Annotated[bool, typer.Option("--open", help="Only what has not ended.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=500, help="At most so many.")] = 50,
    as_json: AsJson = False,
    state: StateOption = None,
) -> int:
    """List incidents: what happened, when, for how long, how it ended. They are kept for 30 days.

    Notices of the watchdog about itself are incidents too; their rules begin with watchdog/.

    Exit code 0: listed. 3: listed from the state file, since the daemon is not running. 1: it cannot be
    asked.

    Example: watchdog history --task 'pretrain-*' --rule gpu-idle
    """
    from watchdog.cli.loading import read_settings
    from watchdog.cli.offline import look
    from watchdog.engine import protocol, records, stored
    from watchdog.engine.views import HistoryView

    daemon = Daemon.of(read_settings().settings, state=state)
    request = protocol.History(limit=limit, rule=rule, task=task, open=only_open)
    wanted = records.Filter(limit=limit, rule=rule, task=task, only_open=only_open)
    question = partial(stored.stored_history, wanted=wanted)
    view, remark = look(daemon, request, HistoryView, question)
    output = standard_output()
    if as_json:
        print_json(output, view)
    else:
        teller = Teller(output, view.timezone, view.at)
        teller.stored(live=view.live, at=view.at, remark=remark)
        if view.incidents:
            teller.incident_rows(view.incidents)
        else:
            output.line("no incidents")
    return 0 if view.live else NOT_RUNNING
