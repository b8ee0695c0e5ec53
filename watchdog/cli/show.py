"""`watchdog show`: one incident with the evidence kept from the moment it fired."""

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from watchdog.cli.client import AsJson, StateOption
from watchdog.cli.output import Style, safe
from watchdog.cli.telling import DASH, Teller, ended, joined

if TYPE_CHECKING:
    from watchdog.engine.views import ShowView

MEMBERS = 30


def show(
    incident: Annotated[str, typer.Argument(help="Its id, or a beginning of it that no other has.")],
    as_json: AsJson = False,
    state: StateOption = None,
) -> int:
    """Show one incident: the verdict, the course of the metric, the log lines and the task, as they were when
    it fired, and how it stands now.

    Exit code 0: shown. 3: shown from the state file, since the daemon is not running. 1: there is none, or it
    cannot be asked.

    Example: watchdog show 7gzb
    """
    from watchdog.cli.offline import answer
    from watchdog.engine import protocol, stored
    from watchdog.engine.views import ShowView

    question = partial(stored.stored_show, beginning=incident)
    request = protocol.Show(incident=incident)
    return answer(request, ShowView, question, _show, state=state, as_json=as_json)


def _show(view: "ShowView", teller: Teller) -> None:
    one, zone = view.incident, teller.voice.zone_name
    what = teller.output.styled(safe(f"{one.rule} · {one.task or DASH}"), Style.BOLD)
    teller.output.line(f"{one.id}  {teller.severity(one.severity)}  {what}")
    if one.closed is None:
        teller.line(f"open since {teller.time(one.opened)} {zone}; it began at {teller.time(one.since)}")
    else:
        lasted = teller.seconds((one.closed - one.since).total_seconds())
        teller.line(f"{teller.time(one.opened)} to {teller.time(one.closed)} {zone} ({lasted}): {ended(one)}")
    if one.event and one.count > 1:
        teller.line(f"happened {one.count} times")
    for text in (view.description, *(f"{name}: {text}" for name, text in view.annotations.items())):
        if text:
            teller.line(text)
    if one.notice:
        teller.line(one.said)
        for name, text in view.params.items():
            for number, line in enumerate(text.splitlines()):
                teller.line(f"  {name + ':' if number == 0 else ' ' * (len(name) + 1)} {line}")
        return
    teller.heading("WHEN IT FIRED")
    teller.evidence(view.first)
    _situation(view, teller)
    if view.latest is not None:
        teller.heading("NOW" if one.closed is None else "AT THE END")
        teller.evidence(view.latest)
    _members(view, teller)


def _situation(view: "ShowView", teller: Teller) -> None:
    if view.situation:
        teller.heading("THE TASK, THEN")
        for name, text in view.situation.items():
            teller.line(f"  {name}: {teller.voice.param(text)}")
    if view.task is not None:
        teller.heading("THE TASK, NOW")
        task = view.task
        said = " ".join(filter(None, (task.status_text, task.reason)))
        teller.line(f"  {task.status} since {teller.time(task.status_since)}{f' ({said})' if said else ''}")
        teller.line(f"  attempt {task.attempt}, {task.pods} pods and {task.gpus} GPUs expected")


def _members(view: "ShowView", teller: Teller) -> None:
    if len(view.members) < 2 and not any(member.labels for member in view.members):
        return
    teller.heading(f"MEMBERS ({view.incident.active} of {view.incident.members} still firing)")
    rows = [
        (
            joined(member.labels),
            teller.time(member.since),
            teller.time(member.until),
            teller.value(member.value, view.first.unit),
            member.reason,
        )
        for member in view.members[:MEMBERS]
    ]
    teller.output.table(("WHICH", "SINCE", "UNTIL", "VALUE", "WHY IT LEFT"), rows)
    left = view.incident.members - len(rows)
    if left > 0:
        teller.line(f"and {left} more (--json lists them)")
