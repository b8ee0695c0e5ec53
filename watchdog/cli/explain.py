"""`watchdog explain`: why a rule does or does not fire."""

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from watchdog.cli.client import AsJson, StateOption
from watchdog.cli.output import Style, safe
from watchdog.cli.telling import DASH, Teller, joined

if TYPE_CHECKING:
    from watchdog.engine.views_asked import ExplainTaskView, ExplainView, LabelsetView, SeenView

_PHASES = {"firing": Style.RED, "pending": Style.YELLOW}


def explain(
    rule: Annotated[str, typer.Argument(help="The rule's name.")],
    task: Annotated[str, typer.Argument(help="A task's name, id or key, or a glob.")] = "",
    as_json: AsJson = False,
    state: StateOption = None,
) -> int:
    """Say why a rule does or does not fire, as of the newest evaluation.

    What it sees of each task, and how much of it; value and limit; since when; and what follows.

    Exit code 0: explained. 3: only what is stored of it, since the daemon is not running. 1: there is no such
    rule or task, or it cannot be asked.

    Example: watchdog explain gpu-idle llama-70b
    """
    from watchdog.cli.offline import answer
    from watchdog.engine import protocol, stored
    from watchdog.engine.views_asked import ExplainView

    question = partial(stored.stored_explain, rule=rule, task=task)
    request = protocol.Explain(rule=rule, task=task)
    return answer(request, ExplainView, question, _show, state=state, as_json=as_json)


def _show(view: "ExplainView", teller: Teller) -> None:
    about = ", ".join(filter(None, (view.kind, view.looks_at, view.severity)))
    teller.output.line(f"{teller.output.styled(safe(view.rule), Style.BOLD)}  {safe(about)}")
    if view.description:
        teller.line(view.description)
    if view.judged is not None and view.live:
        teller.line(f"as of the evaluation at {teller.voice.time(view.judged, seconds=True)}")
    for task in view.tasks:
        _task(task, teller)
    if not view.tasks:
        teller.line("no watched task is what this rule is about" if view.live else "nothing is stored of it")
    if view.not_about and view.tasks:
        teller.line()
        teller.line(f"{view.not_about} other watched tasks are not what it is about (select)")


def _task(task: "ExplainTaskView", teller: Teller) -> None:
    teller.heading(f"{task.task} ({task.status or 'status unknown'})")
    if task.why:
        teller.line(f"  {task.why}")
    if task.incident and task.incident not in task.why:
        teller.line(f"  incident {task.incident} is open")
    for seen in task.seen:
        teller.line(f"  sees {_sight(seen, teller)}")
    for labelset in task.labelsets:
        _labelset(labelset, teller)
    for outcome, count in task.more.items():
        teller.line(f"    and {count} more: {outcome}")


def _sight(seen: "SeenView", teller: Teller) -> str:
    parts = [f"{seen.what}: {seen.standing}"]
    if seen.failure:
        parts.append(seen.failure)
    if seen.series:
        pods = "pod" if seen.series == 1 else "pods"
        parts.append(f"{seen.series} {'series' if seen.what not in ('log', 'status') else pods}")
    if seen.newest is not None:
        parts.append(
            f"newest at {teller.voice.time(seen.newest, seconds=True)} ({teller.age(seen.newest)} ago)"
        )
    if seen.detail:
        parts.append(seen.detail)
    return ", ".join(parts)


def _labelset(one: "LabelsetView", teller: Teller) -> None:
    where = joined(one.labels)
    phase = teller.output.styled(one.phase, _PHASES[one.phase]) if one.phase in _PHASES else one.phase
    name = "" if where == DASH else f"{safe(where)}: "
    teller.output.line(f"    {name}{phase}, {one.outcome}: {safe(one.why)}")
    if one.said:
        counted = f" ({one.affected} of {one.of} affected, {one.covered} with data)" if one.of > 1 else ""
        teller.line(f"        {one.said}{counted}")
