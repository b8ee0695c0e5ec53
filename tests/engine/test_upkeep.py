"""The engine that cannot keep up says so: once, with numbers, and when it is over."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from watchdog.core import lifecycle, series
from watchdog.engine import upkeep
from watchdog.engine.engine import Engine

TEXT = """\
description: a quiet task
begin: 0m
length: 60m
tasks:
  - { name: llama, pods: 2, gpus: 1 }
series:
  - { metric: gpu, values: '95% until 30m, 5% until 40m, 95%' }
logs:
  - { at: 1m, text: 'step {n}', every: 30s }
rules:
  - { name: low, metric: gpu, by: gpu, below: 20% }
  - { name: errors, log: { match: ['ERROR'] } }
expect: []
"""


def slow_disk(engine: Engine, *, begin: int, end: int, takes: timedelta) -> None:
    """Between two minutes, each word with the state file takes so long."""
    clock = engine.parts.clock

    async def run(call: Callable[[], object]) -> object:
        if timedelta(minutes=begin) <= clock.monotonic() < timedelta(minutes=end):
            await clock.sleep(takes)
        return call()

    engine.journal.run = run


def test_evaluations_that_are_left_out_are_told_with_what_took_so_long(perform) -> None:
    done = perform(TEXT, lambda engine: slow_disk(engine, begin=10, end=24, takes=timedelta(seconds=75)))
    (opened, first), (closed, last) = done.about("watchdog/evaluation late")
    assert (first, last) == ("first", "closed")
    assert 13 <= opened <= 20
    assert 30 <= closed <= 40
    text = done.text("watchdog/evaluation late")
    assert "The newest took 1 min 15 s; the interval is 1 min." in text
    assert done.engine.missed >= 3


def test_two_evaluations_left_out_are_no_news(perform) -> None:
    done = perform(TEXT, lambda engine: slow_disk(engine, begin=10, end=12, takes=timedelta(seconds=75)))
    assert done.engine.missed == 1
    assert done.about("watchdog/evaluation late") == []


def slow_rule(engine: Engine, rule: str, takes: timedelta, *, until: int) -> None:
    """Let one rule seem to take long: the clock that measures jumps when it is judged."""
    clock, runner = engine.parts.clock, engine.runner
    names = [one.name for one in runner.world.ruleset.rules]
    calls = 0

    def monotonic() -> timedelta:
        nonlocal calls
        place, after = divmod(calls % (2 * len(names)), 2)
        calls += 1
        slow = names[place] == rule and clock.monotonic() < timedelta(minutes=until)
        return clock.monotonic() + (takes if after and slow else timedelta())

    runner.monotonic = monotonic


def test_a_rule_that_takes_longer_than_the_interval_is_named(perform) -> None:
    done = perform(TEXT, lambda engine: slow_rule(engine, "low", timedelta(seconds=90), until=20))
    (opened, first), (closed, last) = done.about("watchdog/rule slower than its interval")
    assert (opened, first, last) == (2, "first", "closed")
    assert 20 <= closed <= 21
    text = done.text("watchdog/rule slower than its interval")
    assert "rule low is slower than its interval" in text
    assert "Judging it once takes 1 min 30 s; all rules are to be judged every 1 min." in text
    assert "Evaluations are left out meanwhile, and the alerts of every rule come late." in text
    assert "poll" not in text


def test_what_was_said_before_a_restart_is_ended_after_it(perform) -> None:
    lives: list[Engine] = []

    def attach(engine: Engine) -> None:
        lives.append(engine)
        if len(lives) == 1:
            slow_rule(engine, "low", timedelta(seconds=90), until=60)

    done = perform(TEXT.replace("expect: []", "events:\n  - { at: 20m, restart: 1m }\nexpect: []"), attach)
    kinds = [kind for _, kind in done.about("watchdog/rule slower than its interval")]
    assert (len(lives), kinds) == (2, ["first", "closed"])


def test_what_flaps_is_said_once_an_hour(perform) -> None:
    full = "\n".join(f"  - {{ at: {minute}m, disk_full: 3m }}" for minute in range(5, 55, 10))
    done = perform(TEXT.replace("expect: []", f"events:\n{full}\nexpect: []"))
    assert [kind for _, kind in done.about("watchdog/state not stored")] == ["first", "closed"]


def test_a_log_that_is_read_late_is_told_and_so_is_its_end(perform) -> None:
    text = TEXT.replace("every: 30s", "every: 1s, times: 400, until: 12m").replace(
        "begin: 0m", "begin: 0m\npage: 100"
    )
    done = perform(text)
    told = done.about("watchdog/log lag")
    assert [kind for _, kind in told] == ["first", "closed"]
    assert "reads the log of llama late" in done.text("watchdog/log lag")


def test_a_log_that_cannot_be_read_at_all_is_told_as_such_and_not_as_late(perform) -> None:
    faults = "faults:\n  - { from: 5m, until: 40m, capability: logs, failure: server error }\nexpect: []"
    done = perform(TEXT.replace("expect: []", faults))
    assert done.about("watchdog/source blind")
    assert done.about("watchdog/log lag") == []


def test_a_rule_that_is_true_of_too_much_says_how_much_it_leaves_out(
    perform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "MOST_ALERTS", 5)
    monkeypatch.setattr(upkeep, "MOST_ALERTS", 5)
    done = perform(TEXT.replace("pods: 2, gpus: 1", "pods: 4, gpus: 8"))
    assert [kind for _, kind in done.about("watchdog/too many alerts")] == ["first", "closed"]
    assert "Followed: 5. Left out: 27." in done.text("watchdog/too many alerts")
    assert done.about("low")[0][1] == "first"


def test_series_of_pods_long_gone_are_forgotten_hourly(perform) -> None:
    forgotten: list[timedelta] = []

    def attach(engine: Engine) -> None:
        store = engine.world.series
        inner = store.forget_outlived

        def watched(age: timedelta) -> int:
            forgotten.append(age)
            return inner(age)

        store.forget_outlived = watched

    perform(TEXT.replace("length: 60m", "length: 181m"), attach)
    assert forgotten == [timedelta(hours=24)] * 4


def test_a_metric_with_more_series_than_can_be_kept_is_told(perform, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series, "MOST_SERIES", 5)
    monkeypatch.setattr(upkeep, "MOST_SERIES", 5)
    done = perform(TEXT.replace("pods: 2, gpus: 1", "pods: 4, gpus: 8"))
    assert [kind for _, kind in done.about("watchdog/too many series")] == ["first"]
    assert "Kept: 5. Left out of the newest answer: 27." in done.text("watchdog/too many series")
