"""Crashes at every point of every slot: nothing decided is lost, and a repeat says that it may be one."""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta

import pytest

from watchdog.config.scenario_schema import CrashPoint
from watchdog.replay.files import Played
from watchdog.replay.world import Sent

Play = Callable[[str], Played]

SCENARIO = """
description: One alert that fires and recovers and two ERROR lines, with a crash somewhere.
length: 25m
begin: -3m
channels: {{ chat: {{}}, mail: {{}} }}
rules:
  - {{ name: low, metric: gpu, below: 20%, for: 4m }}
  - {{ name: errors, log: {{ match: '\\bERROR\\b' }} }}
series: [ {{ metric: gpu, values: '95% until 0m, 5% until 10m, 95%' }} ]
logs:
  - {{ at: -2m30s, text: 'step {{n}}', every: 30s }}
  - {{ at: 4m, text: ERROR one }}
  - {{ at: 10m, text: ERROR of another kind }}
events: [ {{ at: {at}s, crash: {point}, down: {down}s }}, {{ at: {later}s, kill: 10s }} ]
expect: []
others: true
"""


def told(sent: tuple[Sent, ...], channel: str) -> list[Sent]:
    return [message for message in sent if message.channel == channel]


@pytest.mark.parametrize("point", CrashPoint)
@pytest.mark.parametrize("at", range(0, 16 * 60, 75))
def test_a_crash(play_text: Play, point: CrashPoint, at: int) -> None:
    text = SCENARIO.format(at=at, point=point, down=20 + at % 50, later=at + 130)
    sent = play_text(text).sent
    for channel in ("chat", "mail"):
        own = told(sent, channel)
        first = [m for m in own if m.rule == "low" and m.kind in ("first", "combined")]
        closed = [m for m in own if m.rule == "low" and m.kind in ("closed", "combined")]
        assert first
        assert closed
        assert len({m.incident for m in own if m.rule == "low"}) == 1
        assert min(m.at for m in closed) >= timedelta(minutes=10)
        text_of_errors = "\n".join(m.text for m in own if m.rule == "errors")
        assert "ERROR one" in text_of_errors
        assert "ERROR of another kind" in text_of_errors
        said = Counter((m.incident, m.kind) for m in own)
        for key, times in said.items():
            again = [m for m in own if (m.incident, m.kind) == key][1:]
            assert times <= 2
            assert all("may be a repeat" in m.text for m in again), (key, again)
