"""`watchdog why`: what was decided and tried for one incident, with the providers' answers."""

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from watchdog.cli.client import AsJson, StateOption
from watchdog.cli.output import Style, safe
from watchdog.cli.telling import DASH, Teller

if TYPE_CHECKING:
    from watchdog.engine.views import ChannelWhyView, DeliveryView, WhyView


def why(
    incident: Annotated[str, typer.Argument(help="Its id, or a beginning of it that no other has.")],
    as_json: AsJson = False,
    state: StateOption = None,
) -> int:
    """Show why who was told what of an incident: each change, each message decided, each attempt with the
    provider's answer, and for each channel why it was or was not meant.

    Exit code 0: shown. 3: shown from the state file, since the daemon is not running. 1: there is none, or it
    cannot be asked.

    Example: watchdog why 7gzb
    """
    from watchdog.cli.offline import answer
    from watchdog.engine import protocol, stored
    from watchdog.engine.views import WhyView

    question = partial(stored.stored_why, beginning=incident)
    request = protocol.Why(incident=incident)
    return answer(request, WhyView, question, _show, state=state, as_json=as_json)


def _show(view: "WhyView", teller: Teller) -> None:
    one = view.incident
    what = teller.output.styled(safe(f"{one.rule} · {one.task or DASH}"), Style.BOLD)
    teller.output.line(f"{one.id}  {teller.severity(one.severity)}  {what}")
    for change in view.changes:
        teller.line(f"  {teller.voice.time(change.at, seconds=True)}  {change.change}")
    if not view.changes:
        teller.line("  its changes are no longer kept (a week)")
    for channel in view.channels:
        _channel(channel, teller)
    if not view.channels:
        teller.line("no channel was told, and none is known")


def _channel(channel: "ChannelWhyView", teller: Teller) -> None:
    teller.heading(channel.channel + (f": {channel.meant}" if channel.meant else ""))
    if channel.told:
        reminders = f", {channel.reminders} reminders" if channel.reminders else ""
        teller.line(f"  told ({channel.told}) at {teller.time(channel.told_at)}{reminders}")
    else:
        teller.line("  told nothing")
    for delivery in channel.deliveries:
        _delivery(delivery, teller)


def _delivery(delivery: "DeliveryView", teller: Teller) -> None:
    when = teller.voice.time(delivery.decided, seconds=True)
    number = f" {delivery.reminder}" if delivery.kind == "reminder" else ""
    wait = "" if delivery.next_try_s is None else f", tried again in {teller.seconds(delivery.next_try_s)}"
    teller.line(f"  {when}  {delivery.kind}{number}: {_STATES.get(delivery.state, delivery.state)}{wait}")
    for attempt in delivery.attempts:
        answer = " ".join(dict.fromkeys(filter(None, (attempt.answer, attempt.code, attempt.detail))))
        style = None if attempt.answer == "ok" else Style.YELLOW
        teller.line(
            f"      {teller.voice.time(attempt.at, seconds=True)}  attempt {attempt.number}: {answer}", style
        )


_STATES = {
    "pending": "waiting",
    "inflight": "being sent",
    "done": "delivered",
    "dead": "given up",
    "superseded": "not sent: a later message says it too",
}
