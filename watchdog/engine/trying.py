"""Trying channels: a sample of a firing and of a closing message, sent now, with the provider's true answer.

Goes past the outbox and the ledger: nothing of it is stored, repeated or counted. Serves the running daemon,
and the verb alone when there is none.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from watchdog.core.alerts import CloseReason, Incident, incident_id
from watchdog.core.incidents import closed
from watchdog.core.labels import TASK, TASK_NAME, Labels
from watchdog.core.notifications import Answer, MessageKind, Notification
from watchdog.core.outcomes import Evidence
from watchdog.core.rules import Severity
from watchdog.core.ruleset import ChannelSpec, Ruleset
from watchdog.engine.relay import Render
from watchdog.engine.showing import seconds
from watchdog.engine.views_asked import TestNotifyView, TrialView
from watchdog.ports import Clock, Notifier

RULE = "test-notify"
LASTED = timedelta(minutes=12)
_TEXTS = {
    "en": "This is a test, asked for by hand: nothing is wrong.",
    "zh": "这是手动发送的测试消息，并没有任何问题。",
}


async def try_channels(
    channels: Sequence[ChannelSpec],
    notifiers: Mapping[str, Notifier],
    ruleset: Ruleset,
    render: Render,
    clock: Clock,
) -> TestNotifyView:
    """Send both samples to each channel, all channels at once, and return what came back."""
    found = await asyncio.gather(
        *(_try(spec, notifiers[spec.name], ruleset, render, clock) for spec in channels)
    )
    return TestNotifyView(trials=tuple(trial for trials in found for trial in trials))


async def _try(
    spec: ChannelSpec, notifier: Notifier, ruleset: Ruleset, render: Render, clock: Clock
) -> list[TrialView]:
    at = clock.now()
    language = spec.language or ruleset.language
    first = sample(spec.name, at, _TEXTS.get(language, _TEXTS["en"]))
    last = closed(replace(first, latest=_well()), CloseReason.RECOVERED, at)
    trials: list[TrialView] = []
    for kind, incident in ((MessageKind.FIRST, first), (MessageKind.CLOSED, last)):
        notification = Notification(channel=spec.name, kind=kind, incident=incident, decided_at=at)
        began = clock.monotonic()
        result = await notifier.send(render(notification, notifier))
        trials.append(
            TrialView(
                channel=spec.name,
                service=spec.url.strip().partition("://")[0].lower(),
                kind=kind,
                ok=result.answer is Answer.OK,
                answer=result.answer,
                code=result.code,
                detail=result.detail,
                took_s=seconds(clock.monotonic() - began),
            )
        )
        if result.answer is not Answer.OK:
            break  # what is wrong with the first is wrong with the second
    return trials


def sample(channel: str, at: datetime, text: str) -> Incident:
    """Return an incident that looks like a real one and says that it is none."""
    return Incident(
        id=incident_id(RULE, channel, at),
        rule=RULE,
        labels=Labels({TASK: RULE, TASK_NAME: "test"}),
        severity=Severity.WARNING,
        event=False,
        opened_at=at,
        since=at - LASTED,
        updated_at=at,
        first=_idle(),
        description=text,
        repeat=timedelta(),
    )


def _idle() -> Evidence:
    spark = (0.94, 0.95, 0.96, 0.93, 0.41, 0.05, 0.04, 0.04, 0.05, 0.04)
    return Evidence(
        metric="gpu",
        summary="avg over 5m",
        value=0.04,
        threshold=0.1,
        unit="ratio",
        affected=8,
        of=8,
        covered=8,
        spark=spark,
        spark_span=LASTED,
    )


def _well() -> Evidence:
    return replace(_idle(), value=0.93, affected=0, spark=(0.05, 0.04, 0.31, 0.9, 0.93))
