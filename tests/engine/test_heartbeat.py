"""The heartbeat beside the live engine: useful cycles only, never in the way, its failures said once."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import time, timedelta

import pytest

from watchdog.core.ruleset import HeartbeatSpec, Ruleset, Secret
from watchdog.engine.engine import Engine
from watchdog.engine.heartbeat import Heartbeat

URL = "https://outside.example/key"
HEALTHY = """\
description: a quiet task
begin: 0m
length: 20m
series:
  - { metric: gpu, values: '95%' }
rules:
  - { name: low, metric: gpu, below: 20%, for: 1h }
expect: []
"""


@dataclass
class Outside:
    """A dead man's switch that answers as told, and writes down what it heard."""

    answer: Callable[[timedelta], str] = lambda _: ""
    hangs: bool = False
    heard: list[tuple[float, str, str]] = field(default_factory=list)
    engine: Engine | None = None

    async def call(self, url: str, body: str) -> str:
        assert self.engine is not None
        passed = self.engine.parts.clock.monotonic()
        self.heard.append((round(passed.total_seconds() / 60, 1), url.removeprefix(URL), body))
        if self.hangs:
            await asyncio.Event().wait()
        return self.answer(passed)

    def attach(self, engine: Engine) -> None:
        self.engine = engine
        heartbeat = Heartbeat(call=self.call)
        engine.on_slot = heartbeat.after_slot
        heartbeat.start(engine)

    @property
    def words(self) -> list[tuple[float, str]]:
        return [(minute, word) for minute, word, _ in self.heard]


def beating(**spec: object) -> Callable[[Ruleset], Ruleset]:
    return lambda ruleset: replace(ruleset, heartbeat=HeartbeatSpec(**{"url": Secret(URL), **spec}))


def test_a_start_and_then_every_useful_cycle_at_its_pace(perform) -> None:
    outside = Outside()
    perform(HEALTHY, outside.attach, beating())
    assert outside.words == [(0, "/start"), (0, ""), (5, ""), (10, ""), (15, ""), (20, "")]
    assert "1 task, 2 rules, 0 firing" in outside.heard[1][2]


def test_without_the_section_nobody_is_called(perform) -> None:
    outside = Outside()
    perform(HEALTHY, outside.attach)
    assert outside.heard == []


def test_a_blind_source_is_silence_first_and_then_a_failure_with_its_reason(perform) -> None:
    outside = Outside()
    blind = HEALTHY.replace(
        "expect: []", "faults:\n  - { from: 3m, until: 9m, failure: key expired }\nexpect: []"
    )
    perform(blind, outside.attach, beating())
    words = [word for _, word in outside.words]
    assert words[:4] == ["/start", "", "/fail", ""]
    minute, _, reason = outside.heard[2]
    assert 8 <= minute <= 10
    assert "no source gives a usable answer: metrics of cloud" in reason
    assert 9 <= outside.heard[3][0] <= 12


def test_a_full_disk_is_no_useful_cycle(perform) -> None:
    outside = Outside()
    full = HEALTHY.replace("expect: []", "events:\n  - { at: 2m, disk_full: 15m }\nexpect: []")
    perform(full, outside.attach, beating())
    assert "/fail" in [word for _, word in outside.words]
    assert not [minute for minute, word in outside.words if word == "" and 3 < minute < 17]


def test_an_outside_that_hangs_delays_no_slot_and_is_not_called_again_meanwhile(perform) -> None:
    outside = Outside(hangs=True)
    done = perform(HEALTHY, outside.attach, beating())
    assert done.engine.slots == 21
    assert done.engine.missed == 0
    assert outside.words == [(0, "/start")]


def test_failed_calls_are_logged_once_told_once_and_tried_again(perform, caplog) -> None:
    outside = Outside(answer=lambda at: "HTTP 404" if at < timedelta(minutes=8) else "")
    with caplog.at_level(logging.INFO, logger="watchdog.engine.heartbeat"):
        done = perform(HEALTHY, outside.attach, beating())
    assert [record.getMessage() for record in caplog.records] == [
        "the heartbeat was not heard reason=HTTP 404",
        "the heartbeat is heard again",
    ]
    assert [kind for _, kind in done.about("watchdog/heartbeat not heard")] == ["first", "closed"]
    assert "HTTP 404" in done.text("watchdog/heartbeat not heard")
    assert URL not in done.text("watchdog/heartbeat not heard") + caplog.text
    assert outside.words[2:5] == [(1, ""), (2, ""), (3, "")]
    assert outside.words[-1][0] - outside.words[-2][0] == 5


def test_the_daily_note_is_said_once_a_day_over_restarts(perform) -> None:
    text = HEALTHY.replace("length: 20m", "length: 26h").replace(
        "expect: []", "events:\n  - { at: 71m, restart: 1m }\nexpect: []"
    )
    done = perform(text, Outside().attach, beating(url=Secret(""), daily_note=time(3, 10)))
    told = [message for message in done.sent if message.rule == "watchdog/still watching"]
    assert [round(message.at.total_seconds() / 60) for message in told] == [71, 71 + 24 * 60]
    assert "still watching: tasks 1, rules 2" in told[0].title


def test_the_daily_note_does_not_hide_what_is_wrong(perform) -> None:
    text = HEALTHY.replace("length: 20m", "length: 90m").replace(
        "expect: []", "faults:\n  - { from: 20m, until: 90m, failure: key expired }\nexpect: []"
    )
    done = perform(text, Outside().attach, beating(url=Secret(""), daily_note=time(3, 0)))
    assert "But: no source gives a usable answer" in done.text("watchdog/still watching")


@pytest.mark.parametrize("at", [time(0, 30), time(4, 0)])
def test_a_note_whose_hour_is_not_now_is_not_said(perform, at: time) -> None:
    done = perform(HEALTHY, Outside().attach, beating(url=Secret(""), daily_note=at))
    assert done.about("watchdog/still watching") == []
