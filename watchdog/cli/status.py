"""`watchdog status`: how everything stands, from the running daemon or from what it stored."""

from typing import TYPE_CHECKING, Annotated

import typer

from watchdog.cli.client import AsJson, Daemon, StateOption
from watchdog.cli.output import Style, standard_output
from watchdog.cli.telling import DASH, Teller, joined

if TYPE_CHECKING:
    from watchdog.engine.views import AlertView, DaemonView, SourceView, StatusView

_STYLES = {
    "firing": Style.RED,
    "pending": Style.YELLOW,
    "critical": Style.RED,
    "warning": Style.YELLOW,
    "good": Style.GREEN,
    "ok": Style.GREEN,
    "failing": Style.RED,
    "settling": Style.YELLOW,
    "broken": Style.RED,
    "throttled": Style.YELLOW,
}


def status(
    as_json: AsJson = False,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet", "-q", help="Say only why it is not healthy; the exit code tells whether it is."
        ),
    ] = False,
    state: StateOption = None,
) -> int:
    """Show how everything stands: tasks, rules, alerts, sources, channels and what waits to be told.

    If the daemon is not running, what it stored last is shown, marked as such.

    Exit code 0: it runs (with --quiet: and is healthy). 3: it does not. 1: it cannot be asked (or is not).

    Example: watchdog status --json | jq '.alerts[] | select(.phase == "firing")'
    """
    from watchdog.cli.loading import read_settings
    from watchdog.cli.offline import answer
    from watchdog.engine import protocol, stored
    from watchdog.engine.views import StatusView

    if quiet:
        return _health(Daemon.of(read_settings().settings, state=state).ask(protocol.Status(), StatusView))
    return answer(protocol.Status(), StatusView, stored.stored_status, _show, state=state, as_json=as_json)


def _health(view: "StatusView") -> int:
    """What a health check wants: silence and 0, or the reasons and 1."""
    if view.daemon is not None and view.daemon.healthy:
        return 0
    output = standard_output()
    for remark in view.daemon.remarks if view.daemon is not None else ():
        output.line(remark)
    return 1


def _show(view: "StatusView", teller: Teller) -> None:
    if view.daemon is not None:
        _daemon(view.daemon, teller)
    _tasks(view, teller)
    _alerts(view, teller)
    if view.incidents:
        teller.heading("OPEN INCIDENTS" + _more(view, "incidents"))
        teller.incident_rows(view.incidents)
    _rules(view, teller)
    _sources(view, teller)
    _channels(view, teller)


def _daemon(daemon: "DaemonView", teller: Teller) -> None:
    output = teller.output
    word = (
        output.styled("healthy", Style.GREEN) if daemon.healthy else output.styled("NOT healthy", Style.RED)
    )
    ran = f"watchdog {daemon.version}, process {daemon.pid}, running for {teller.age(daemon.started)}"
    output.line(f"{ran}: {word}")
    missed = f", {daemon.missed} missed" if daemon.missed else ""
    teller.line(
        f"every {teller.seconds(daemon.interval_s)}: {daemon.slots} evaluations{missed}, "
        f"the last at {teller.time(daemon.last_slot)} {teller.voice.zone_name}"
    )
    auto = ", loaded anew when it changes" if daemon.auto_reload else ""
    teller.line(f"rules of {daemon.rule_file}, since {teller.time(daemon.rules_since)}{auto}")
    for remark in daemon.remarks:
        teller.line(f"! {remark}", Style.YELLOW)
    if daemon.not_stored:
        teller.line(f"! the state is not stored: {daemon.not_stored}", Style.RED)
    if daemon.rules_rejected:
        teller.line("! the rule file, as it stands, cannot be used; other rules are in force:", Style.RED)
        for problem in daemon.rules_rejected:
            teller.line(f"    {problem}")
    if daemon.rules_not_kept:
        teller.line(f"! the rule file could not be remembered: {daemon.rules_not_kept}", Style.YELLOW)


def _tasks(view: "StatusView", teller: Teller) -> None:
    teller.heading("TASKS" + _more(view, "tasks"))
    if not view.tasks:
        teller.line("none is watched")
        return
    rows = [
        (
            task.name,
            task.status,
            teller.time(task.status_since),
            str(task.attempt),
            f"{task.pods}/{task.gpus}",
            str(task.firing or DASH),
            str(task.pending or DASH),
            " ".join(filter(None, (task.status_text, task.reason))),
        )
        for task in view.tasks
    ]
    head = ("TASK", "STATUS", "SINCE", "ATTEMPT", "PODS/GPUS", "FIRING", "PENDING", "THE CLOUD SAYS")
    teller.output.table(head, rows)


def _alerts(view: "StatusView", teller: Teller) -> None:
    if not view.alerts:
        return
    teller.heading("ALERTS" + _more(view, "alerts"))
    groups: dict[tuple[str, ...], list[AlertView]] = {}
    for alert in view.alerts:
        groups.setdefault((alert.phase, alert.severity, alert.rule, alert.task, alert.incident), []).append(
            alert
        )
    rows = [
        (
            *key[:4],
            joined(alerts[0].labels) + (f" and {len(alerts) - 1} more" if len(alerts) > 1 else ""),
            teller.time(min(alert.since for alert in alerts)),
            _held(alerts, teller),
            key[4] or DASH,
        )
        for key, alerts in groups.items()
    ]
    head = ("STATE", "SEVERITY", "RULE", "TASK", "WHERE", "SINCE", "TRUE FOR", "INCIDENT")
    teller.output.table(head, rows, _STYLES)


def _held(alerts: "list[AlertView]", teller: Teller) -> str:
    """Say for how long the condition has been true, of how long it must be; the longest of several."""
    held = teller.seconds(max(alert.held_s for alert in alerts))
    hold = alerts[0].hold_s
    return f"{held} of {teller.seconds(hold)}" if hold and alerts[0].phase == "pending" else held


def _rules(view: "StatusView", teller: Teller) -> None:
    if not view.live:
        return
    teller.heading("RULES" + _more(view, "rules"))
    rows = [
        (
            rule.name,
            rule.looks_at,
            rule.severity,
            str(rule.tasks),
            str(rule.firing or DASH),
            str(rule.pending or DASH),
            str(rule.unjudged or DASH),
            "built in" if rule.builtin else "",
        )
        for rule in view.rules
    ]
    head = ("RULE", "LOOKS AT", "SEVERITY", "TASKS", "FIRING", "PENDING", "UNJUDGED", "")
    teller.output.table(head, rows)


def _sources(view: "StatusView", teller: Teller) -> None:
    if not view.sources:
        return
    teller.heading("SOURCES")
    rows = [row for source in view.sources for row in _source(source, teller)]
    teller.output.table(("SOURCE", "CAPABILITY", "STATE", "FAILING", "LAST GOOD", "WHY"), rows, _STYLES)


def _source(source: "SourceView", teller: Teller) -> list[tuple[str, ...]]:
    name = f"{source.name} ({source.kind})" if source.kind not in ("", source.name) else source.name
    if not source.capabilities:
        return [(name, DASH, DASH, DASH, DASH, "")]
    return [
        (
            name if number == 0 else "",
            one.capability,
            one.standing,
            f"{one.failing} of {one.asked}" if one.failing or one.blind else DASH,
            teller.time(one.last_good),
            ": ".join(filter(None, (one.failure, one.detail)))
            + (f" (since {teller.time(one.since)})" if one.since and one.failing else ""),
        )
        for number, one in enumerate(source.capabilities)
    ]


def _channels(view: "StatusView", teller: Teller) -> None:
    teller.heading("CHANNELS")
    rows = [
        (
            one.name,
            one.service or DASH,
            one.state,
            one.min_severity or DASH,
            str(one.waiting or DASH),
            teller.time(one.newest_at),
            one.newest_answer + (f"; rests for {teller.seconds(one.rests_s)}" if one.rests_s else ""),
        )
        for one in view.channels
    ]
    if rows:
        head = ("CHANNEL", "SERVICE", "STATE", "FROM", "WAITING", "LAST ATTEMPT", "ANSWER")
        teller.output.table(head, rows, _STYLES)
    box = view.outbox
    said = f"{box.waiting + box.in_flight} waiting" if box.waiting + box.in_flight else "nothing waits"
    said += f", the oldest for {teller.seconds(box.oldest_s)}" if box.waiting + box.in_flight else ""
    said += f"; {box.given_up} given up" if box.given_up else ""
    teller.line(f"outbox: {said}")


def _more(view: "StatusView", name: str) -> str:
    return f" (and {view.more[name]} more)" if name in view.more else ""
