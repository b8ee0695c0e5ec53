"""`watchdog history`: incidents, open ones first, then the newest."""

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from watchdog.cli.client import AsJson, StateOption
from watchdog.cli.telling import Teller

if TYPE_CHECKING:
    from watchdog.engine.views import HistoryView


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
    from watchdog.cli.offline import answer
    from watchdog.engine import protocol, records, stored
    from watchdog.engine.views import HistoryView

    request = protocol.History(limit=limit, rule=rule, task=task, open=only_open)
    wanted = records.Filter(limit=limit, rule=rule, task=task, only_open=only_open)
    question = partial(stored.stored_history, wanted=wanted)
    return answer(request, HistoryView, question, _show, state=state, as_json=as_json)


def _show(view: "HistoryView", teller: Teller) -> None:
    if view.incidents:
        teller.incident_rows(view.incidents)
    else:
        teller.line("no incidents")
