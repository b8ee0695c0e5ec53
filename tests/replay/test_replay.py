"""Playing scenario files: the same every time, on the live engine, with the file's mistakes named."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from watchdog.replay.files import Played

Play = Callable[[str], Played]
Problems = Callable[[str], list[str]]

RULES = "rules: [ { name: low, metric: gpu, below: 20%, for: 5m } ]"
STORM = """
description: Much at once, so that an order that depends on chance would show.
length: 90m
begin: -15m
tasks: [ { name: one, pods: 3 }, { name: two, pods: 2 } ]
channels: { chat: {}, mail: { min_severity: critical }, team: { language: zh } }
rules:
  - name: low
    metric: gpu
    below: 20%
    by: gpu
    levels: [ { for: 2m, severity: warning }, { for: 20m, severity: critical } ]
  - { name: errors, log: { match: '\\bERROR\\b' } }
  - { name: state, status: { enters: [failed, paused] } }
series:
  - { metric: gpu, task: one, values: '95% until 0m, 4%|5%|6% until 50m, 95%' }
  - { metric: gpu, task: two, pod: pod-0, values: '95% until 5m, none' }
  - { metric: gpu, task: two, pod: pod-1, values: '95%' }
logs:
  - { at: 1m, task: one, pod: 'pod-*', text: 'ERROR {n} of many kinds', every: 20s, until: 10m }
statuses: [ { at: 70m, task: two, status: failed } ]
faults: [ { from: 20m, until: 30m } ]
events: [ { at: 3m, crash: after send, down: 40s }, { at: 12m, kill: 2m }, { at: 40m, jump: 2h } ]
answers: [ { channel: team, from: 2m, until: 9m, answer: retry, code: '502' } ]
expect: []
others: true
"""


def test_playing_twice_gives_identical_messages(play_text: Play) -> None:
    first, second = play_text(STORM), play_text(STORM)
    assert first.sent == second.sent
    assert len(first.sent) > 15
    assert first.slots == second.slots


def test_an_event_takes_place_just_after_the_slot_of_its_time(play_text: Play) -> None:
    text = f"""
description: Killed at T+5, when the slot of T+5 has told of the alert.
length: 10m
{RULES}
series: [ {{ metric: gpu, values: '95% until 0m, 5%' }} ]
events: [ {{ at: 5m, kill: 2m }} ]
expect: [ {{ at: 5m, kind: first }} ]
"""
    assert play_text(text).verdict.passed


def test_a_refused_message_is_not_sent_and_an_unknown_one_is(play_text: Play) -> None:
    text = f"""
description: The channel refuses three times, then nobody knows whether it took it, then it takes it.
length: 20m
{RULES}
series: [ {{ metric: gpu, values: '95% until 0m, 5%' }} ]
answers:
  - {{ answer: retry, times: 3 }}
  - {{ answer: unknown, times: 1 }}
expect:
  - {{ at: 5m..6m, kind: first, lacks: may be a repeat, incident: a }}
  - {{ at: 5m..6m, kind: first, contains: may be a repeat, incident: a }}
"""
    played = play_text(text)
    assert played.verdict.passed, played.verdict.failures


def test_a_channel_refuses_what_is_longer_than_it_takes(play_text: Play) -> None:
    text = f"""
description: A tiny channel.
length: 20m
channels: {{ chat: {{ max_bytes: 300 }} }}
{RULES}
series: [ {{ metric: gpu, values: '95% until 0m, 5%' }} ]
expect: [ {{ at: 5m, kind: first, contains: Incident }} ]
"""
    played = play_text(text)
    assert played.verdict.passed, played.verdict.failures
    assert len(played.sent[0].body.encode()) <= 300


def test_rules_can_change_with_a_restart(play_text: Play) -> None:
    text = f"""
description: Restarted with a rule that is stricter.
length: 30m
{RULES}
series: [ {{ metric: gpu, values: '50%' }} ]
events:
  - at: 10m
    restart: 0s
    rules: [ {{ name: half, metric: gpu, below: 60%, for: 5m }} ]
expect: [ {{ at: 15m, kind: first, rule: half }} ]
"""
    assert play_text(text).verdict.passed


@pytest.mark.parametrize(
    ("broken", "where", "said"),
    [
        ("length: 40", "3:9", "has no unit"),
        ("lenght: 40m", "3:1", "unknown key 'lenght'"),
        ("series: [ { metric: gpu, values: '95% until 0m, 5% until 0m' } ]", "3:34", "must grow"),
        ("series: [ { metric: gpu, values: '95%, 5%' } ]", "3:34", "only the last segment"),
        ("series: [ { metric: gpu, task: other, values: '95%' } ]", "3:32", "no task 'other'"),
        ("series: [ { metric: gpu } ]", "3:11", "values is missing"),
        ("faults: [ { from: 5m, failure: boom } ]", "3:32", "boom"),
        ("answers: [ { channel: mail, answer: ok } ]", "3:23", "no channel 'mail'"),
        ("events: [ { at: 5m, crash: never } ]", "3:28", "never"),
        ("none_between: 12m..10m", "3:15", "ends before it begins"),
        ("expect: [ { at: 5m, kind: fired } ]", "3:27", "fired"),
        ("start: '2026-11-30 02:00'", "3:8", "no time with a zone"),
        ("others: maybe", "3:9", "maybe"),
    ],
)
def test_mistakes_are_named_with_their_place(problems: Problems, broken: str, where: str, said: str) -> None:
    base = ["description: A mistake in line 3.", "length: 10m", RULES, "expect: []"]
    key = broken.split(":", maxsplit=1)[0]
    kept = [row for row in base if not row.startswith(f"{key}:")]
    lines = [kept[0], "x-room: 1", broken, *kept[1:]]
    found = problems("\n".join(lines))
    assert any(row.startswith(f"{where}: ") and said in row for row in found), found


def test_all_mistakes_are_named_at_once_also_those_of_rules(problems: Problems) -> None:
    found = problems(
        """description: Three mistakes.
length: 10m
rules:
  - { name: low, metric: gpu, below: 20, for: 5m }
  - { name: other, metric: gpu, below: 20%, fro: 5m }
channels: { chat: { min_severity: loud } }
expect: []
"""
    )
    assert sorted(row.split(":")[0] for row in found) == ["4", "5", "6"]


def test_with_several_tasks_a_row_must_say_which(problems: Problems) -> None:
    found = problems(
        f"""description: Whose points are these?
length: 10m
{RULES}
tasks: [ {{ name: one }}, {{ name: two }} ]
series: [ {{ metric: gpu, values: 5% }} ]
expect: []
"""
    )
    assert found == ["5:11: task is missing"]


def test_a_file_that_is_not_there_is_a_problem(play_file: Callable[[Path], Played], tmp_path: Path) -> None:
    from watchdog.errors import ConfigError

    with pytest.raises(ConfigError, match=re.escape("cannot be read")):
        play_file(tmp_path / "missing.yaml")
