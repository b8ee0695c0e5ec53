"""What the live engine counts about itself, and its verdict, as faults come and go."""

from watchdog.core.vitals import Verdict, judge
from watchdog.engine import telemetry
from watchdog.engine.engine import Engine
from watchdog.engine.telemetry import telemetry_of
from watchdog.engine.vitals import vitals_of

TEXT = """\
description: two pods that idle, and a log
begin: 0m
length: 12m
tasks:
  - { name: llama, pods: 2, gpus: 1 }
series:
  - { metric: gpu, pod: pod-0, values: '5%' }
  - { metric: gpu, pod: pod-1, values: '7%' }
  - { metric: vram, pod: pod-0, values: '50%' }
logs:
  - { at: 1m, text: 'step {n}', every: 30s }
rules:
  - { name: idle, metric: gpu, by: gpu, below: 10%, for: 5m, severity: critical }
  - { name: full, metric: vram, above: 90% }
  - { name: errors, log: { match: ['ERROR'] } }
expect: []
"""


def test_everything_that_is_counted(perform) -> None:
    done = perform(TEXT)
    found = telemetry_of(done.engine)
    assert found.verdict.healthy
    assert found.vitals.slots == 13
    assert found.alerts == {("idle", "firing"): 2}
    assert found.incidents == {("idle", "critical"): 1}
    assert found.questions["cloud", "metrics"] == 26
    assert found.failures == {}
    assert set(found.blind.values()) == {0}
    assert sum(line.answers.get("ok", 0) for line in found.channels.values()) == 1
    (lines,) = found.log_lines.values()
    assert 20 <= lines <= 24
    assert {(sample.metric, sample.labels.get("pod"), sample.value) for sample in found.series} == {
        ("gpu", "pod-0", 0.05),
        ("gpu", "pod-1", 0.07),
        ("vram", "pod-0", 0.5),
    }
    assert {sample.unit for sample in found.series} == {"ratio"}


def test_the_number_of_exported_series_is_bounded(perform, monkeypatch) -> None:
    monkeypatch.setattr(telemetry, "MOST_SERIES", 2)
    found = telemetry_of(perform(TEXT).engine)
    assert (len(found.series), found.left_out) == (2, 1)


def test_points_that_are_old_are_not_exported(perform) -> None:
    old = TEXT.replace("values: '50%'", "values: '50% until 1m, none'")
    found = telemetry_of(perform(old).engine)
    assert {sample.metric for sample in found.series} == {"gpu"}


def test_failures_are_counted_by_capability_and_why(perform) -> None:
    faulty = TEXT.replace(
        "expect: []",
        "faults:\n  - { from: 3m, until: 6m, failure: key expired, capability: metrics }\nexpect: []",
    )
    found = telemetry_of(perform(faulty).engine)
    assert found.failures["cloud", "metrics", "key expired"] >= 4
    assert ("cloud", "logs", "key expired") not in found.failures


def verdicts(perform, text: str) -> list[Verdict]:
    found: list[Verdict] = []

    def attach(engine: Engine) -> None:
        engine.on_slot = lambda engine, _: found.append(judge(vitals_of(engine)))

    perform(text, attach)
    return found


def test_the_verdict_follows_a_full_disk(perform) -> None:
    told = verdicts(perform, TEXT.replace("expect: []", "events:\n  - { at: 2m, disk_full: 5m }\nexpect: []"))
    healthy = [verdict.healthy for verdict in told]
    assert healthy[:3] == [True] * 3
    assert healthy[3:7] == [False] * 4
    assert healthy[8:] == [True] * len(healthy[8:])
    assert "the disk is full" in told[4].reasons[0]


def test_the_verdict_follows_a_source_that_cannot_be_read_at_all(perform) -> None:
    text = TEXT.replace(
        "expect: []", "faults:\n  - { from: 2m, until: 5m, failure: unreachable }\nexpect: []"
    )
    told = verdicts(perform, text)
    assert [verdict.healthy for verdict in told[:2]] == [True, True]
    assert not told[4].healthy
    assert told[-1].healthy


def test_a_source_that_can_be_read_in_part_is_a_remark(perform) -> None:
    text = TEXT.replace(
        "expect: []",
        "faults:\n  - { from: 2m, until: 12m, failure: forbidden, capability: metrics }\nexpect: []",
    )
    told = verdicts(perform, text)
    assert all(verdict.healthy for verdict in told)
    assert "cannot read metrics of cloud" in told[-1].remarks


def test_channels_that_take_nothing_are_unhealthy_only_when_there_is_no_other(perform) -> None:
    text = TEXT.replace(
        "expect: []", "answers:\n  - { channel: chat, answer: retry, from: 0m, until: 30m }\nexpect: []"
    ).replace("length: 12m", "length: 25m")
    told = verdicts(perform, text)
    assert not told[-1].healthy
    assert told[-1].reasons[0].startswith("no channel takes messages")
