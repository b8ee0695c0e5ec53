from datetime import timedelta
from pathlib import Path

import pytest

from watchdog.config.build import Knowledge, Loaded, load
from watchdog.core.conditions.kinds import Absent, LogEvent, Peers, Share, Threshold
from watchdog.core.labels import Labels
from watchdog.core.rules import Level, Severity
from watchdog.core.tasks import Status
from watchdog.errors import ConfigError

ENV = {"TEAM_CHAT_URL": "json://localhost/team-1", "ONCALL_URL": "json://localhost/oncall-2"}
DESIGN = r"""
defaults: { interval: 60s, timezone: Asia/Shanghai, language: en, repeat: 4h, coverage: 80% }
sources:
  alaya:  { kind: alaya }                       # key from JOB_WATCHDOG_ALAYA_API_KEY
watch:
  - { source: alaya, task: "1234567890", name: llama-70b, namespace: default, labels: { team: nlp } }
  - { source: alaya, name: "pretrain-*" }
channels:
  team:   { url: "${TEAM_CHAT_URL}" }           # any Apprise URL
  oncall: { url: "${ONCALL_URL}", min_severity: critical }
rules:
  - name: gpu-idle                              # GPU average below a threshold for 1 h
    metric: gpu
    avg_over: 1h
    below: 10%
    severity: critical
    after_start: 30m
  - name: gpu-idle-without-pause                # below it at every moment of 1 h
    metric: gpu
    below: 10%
    for: 1h
  - name: mostly-idle
    metric: gpu
    share: { of: 1h, below: 10%, at_least: 80% }
  - name: vram-nearly-full
    metric: vram
    max_over: 5m
    above: 95%
    clear_below: 90%
    by: gpu
    levels: [ { for: 0s, severity: warning }, { for: 30m, severity: critical } ]    # one incident that grows
  - name: error-lines                           # new ERROR lines: an event
    log: { match: ['\bERROR\b', 'Traceback \(most recent call last\)'], ignore: ['\b0 errors\b'] }
  - name: error-burst                           # a state
    log: { match: ['\bERROR\b'], count: { above: 20, within: 5m } }
  - name: log-silence
    silent: { log: any }
    for: 15m
  - name: pod-gone
    absent: { metric: gpu, by: pod }
    for: 10m
  - name: task-state                            # an event
    status: { enters: [failed, paused, succeeded, vanished] }
  - name: queued-too-long                       # a state
    status: { is: queued }
    for: 2h
    notify: [team]
  - name: straggler
    metric: gpu
    avg_over: 10m
    peers: { by: pod, below: 50% }
"""


@pytest.fixture(scope="module")
def design(load_text) -> Loaded:
    return load_text(DESIGN, ENV)


def test_the_file_of_the_design_loads_without_a_word(design: Loaded) -> None:
    assert design.warnings == ()
    assert [rule.name for rule in design.ruleset.rules] == [
        "gpu-idle",
        "gpu-idle-without-pause",
        "mostly-idle",
        "vram-nearly-full",
        "error-lines",
        "error-burst",
        "log-silence",
        "pod-gone",
        "task-state",
        "queued-too-long",
        "straggler",
    ]


def test_its_rules_mean_what_they_say(design: Loaded) -> None:
    rules = {rule.name: rule for rule in design.ruleset.rules}

    idle = rules["gpu-idle"]
    assert isinstance(idle.condition, Threshold)
    assert (idle.condition.window, idle.condition.comparison.threshold) == (timedelta(hours=1), 0.1)
    assert (idle.severity, idle.after_start) == (Severity.CRITICAL, timedelta(minutes=30))
    assert isinstance(rules["mostly-idle"].condition, Share)
    assert isinstance(rules["error-lines"].condition, LogEvent)
    assert isinstance(rules["straggler"].condition, Peers)
    full = rules["vram-nearly-full"]
    assert full.levels == (
        Level(hold=timedelta(), severity=Severity.WARNING),
        Level(hold=timedelta(minutes=30), severity=Severity.CRITICAL),
    )
    assert rules["queued-too-long"].notify == ("team",)
    assert rules["queued-too-long"].while_status is None
    assert idle.while_status == {Status.RUNNING, Status.UNKNOWN}
    assert not rules["pod-gone"].builtin


def test_its_places_are_read(design: Loaded) -> None:
    ruleset = design.ruleset

    assert ruleset.timezone == "Asia/Shanghai"
    assert [(entry.id, entry.name) for entry in ruleset.watch] == [
        ("1234567890", "llama-70b"),
        ("", "pretrain-*"),
    ]
    assert ruleset.watch[0].labels == Labels.of(team="nlp")
    assert [(channel.name, str(channel.url), channel.min_severity) for channel in ruleset.channels] == [
        ("team", "json://localhost/team-1", "info"),
        ("oncall", "json://localhost/oncall-2", "critical"),
    ]


def test_training_rules_and_expressions_come_later(problems) -> None:
    told = problems(
        DESIGN + "  - name: no-progress\n    progress: { pattern: 'x' }\n  - name: any\n    expr: gpu < 1\n",
        ENV,
    )

    assert [line.partition(" (")[0].partition(": ")[2] for line in told] == [
        "rules: no-progress: progress: training progress comes with a later version",
        "rules: any: expr: expressions come with a later version",
    ]


def test_the_digest_changes_with_the_text_and_not_with_secrets(load_text) -> None:
    first = load_text(DESIGN, ENV).ruleset.digest

    assert load_text(DESIGN, ENV | {"ONCALL_URL": "json://localhost/x"}).ruleset.digest == first
    assert load_text(DESIGN + "# more\n", ENV).ruleset.digest != first


def test_pod_gone_is_there_unless_the_file_says_otherwise(load_text) -> None:
    def rules(text: str) -> dict[str, bool]:
        return {rule.name: rule.builtin for rule in load_text(f"rules: [{text}]").ruleset.rules}

    built_in = load_text("rules: []").ruleset.rules[0]
    assert rules("") == {"pod-gone": True}
    assert isinstance(built_in.condition, Absent)
    assert (built_in.hold, built_in.severity) == (timedelta(minutes=10), Severity.WARNING)
    assert rules("{ name: pod-gone, enabled: false }") == {}
    assert rules("{ name: pod-gone, absent: { metric: cpu }, for: 5m }") == {"pod-gone": False}


def test_all_problems_of_a_file_are_told_at_once(problems) -> None:
    text = (
        DESIGN.replace("for: 1h", "for: 10")
        .replace("alaya, name", "alya, name")
        .replace("notify: [team]", "x: 1")
    )

    told = problems(text, {})

    assert [line.split(":")[0] for line in told] == ["7", "9", "10", "21", "47"]


def test_a_file_that_cannot_be_opened_is_one_problem(knowledge: Knowledge, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path / "none.yaml", env={}, knowledge=knowledge)

    assert str(caught.value) == f"{tmp_path}/none.yaml: cannot be read: No such file or directory"


def test_a_file_that_watches_nothing_is_warned_of(problems) -> None:
    rule = "rules: [{ name: a, metric: gpu, below: 1% }]\n"

    assert problems(rule) == [" warning: there are no sources: nothing is watched"]
    assert problems("sources: { alaya: { kind: alaya } }\nwatch: []\n" + rule) == [
        " warning: watch: is empty: nothing is watched"
    ]
