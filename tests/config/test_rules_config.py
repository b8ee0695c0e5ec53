"""What a rule may say: keys that belong together, exclude each other, or mean nothing."""

from datetime import timedelta

import pytest

from watchdog.config.schema_rules import WhileWord
from watchdog.core.conditions.kinds import (
    Absent,
    Across,
    Aggregate,
    By,
    Changes,
    Comparison,
    LogCount,
    LogEvent,
    Middle,
    Peers,
    Share,
    Silent,
    StatusEnters,
    StatusIs,
    Threshold,
)
from watchdog.core.labels import Labels
from watchdog.core.rules import Level, OnNoData, Severity
from watchdog.core.tasks import Status

RUNNING = frozenset({Status.RUNNING, Status.UNKNOWN})
BELOW = Comparison(above=False, threshold=0.1)
MINUTES_10 = timedelta(minutes=10)


@pytest.mark.parametrize(
    ("rule", "condition"),
    [
        (
            "metric: gpu, below: 10%",
            Threshold(metric="gpu", aggregate=Aggregate.LAST, window=None, comparison=BELOW),
        ),
        (
            "metric: gpu, max_over: 10m, above: 0.9, clear_below: 80%, by: gpu",
            Threshold(
                metric="gpu",
                aggregate=Aggregate.MAX,
                window=MINUTES_10,
                comparison=Comparison(above=True, threshold=0.9, clear=0.8),
                by=By.GPU,
                across=Across.MAX,
            ),
        ),
        (
            "metric: GpuTemp, min_over: 10m, above: 85",
            Threshold(
                metric="GpuTemp",
                aggregate=Aggregate.MIN,
                window=MINUTES_10,
                comparison=Comparison(above=True, threshold=85.0),
                across=Across.MIN,
            ),
        ),
        (
            "metric: memory, slope_over: 10m, across: max, above: -5%",
            Threshold(
                metric="memory",
                aggregate=Aggregate.SLOPE,
                window=MINUTES_10,
                comparison=Comparison(above=True, threshold=-0.05),
                across=Across.MAX,
            ),
        ),
        (
            "metric: gpu, by: node, share: { of: 10m, below: 10%, at_least: 80%, clear_below: 50% }",
            Share(
                metric="gpu", window=MINUTES_10, comparison=BELOW, at_least=0.8, clear_below=0.5, by=By.NODE
            ),
        ),
        (
            "metric: gpu, p95_over: 10m, peers: { by: gpu, above: 150%, middle: mean, min_peers: 5 }",
            Peers(
                metric="gpu",
                aggregate=Aggregate.P95,
                window=MINUTES_10,
                above=True,
                ratio=1.5,
                by=By.GPU,
                middle=Middle.MEAN,
                min_peers=5,
            ),
        ),
        ("silent: {}", Silent()),
        ("silent: { log: any, by: pod }", Silent(by=By.POD)),
        ("absent: { metric: gpu }", Absent(metric="gpu")),
        ("absent: { metric: cpu, by: node }", Absent(metric="cpu", by=By.NODE)),
        ("status: { enters: failed }", StatusEnters(statuses=frozenset({Status.FAILED}))),
        ("status: { is: [queued, loading] }", StatusIs(statuses=frozenset({Status.QUEUED, Status.LOADING}))),
        ("changes: { metric: XidErrors, by: gpu }", Changes(metric="XidErrors", by=By.GPU)),
        ("changes: { metric: restarts, at_least: 5 }", Changes(metric="restarts", at_least=5.0)),
    ],
)
def test_conditions_mean_what_they_say(rule_of, rule: str, condition: object) -> None:
    assert rule_of(rule).condition == condition


def test_log_rules_take_one_pattern_or_many(rule_of) -> None:
    one = rule_of("log: { match: 'a b' }").condition
    many = rule_of(
        "log: { match: ['a', 'b'], ignore: 'c', pods: '*-0', prefilter: E, by: pod, before: 0 }"
    ).condition

    assert isinstance(one, LogEvent)
    assert isinstance(many, LogEvent)
    assert [pattern.text for pattern in one.lines.match] == ["a b"]
    assert (one.by, one.before, one.after) == (By.TASK, 3, 10)
    assert [pattern.text for pattern in many.lines.match] == ["a", "b"]
    assert [pattern.text for pattern in many.lines.ignore] == ["c"]
    assert (many.lines.pods, many.lines.prefilter, many.by, many.before) == ("*-0", "E", By.POD, 0)


def test_a_count_makes_a_state_of_a_log_rule(rule_of) -> None:
    rule = rule_of("log: { match: x, count: { above: 20, within: 5m, clear_below: 5 } }, for: 1m")

    assert isinstance(rule.condition, LogCount)
    assert rule.condition.comparison == Comparison(above=True, threshold=20.0, clear=5.0)
    assert rule.while_status == RUNNING
    assert not rule.is_event


def test_common_keys_arrive(rule_of) -> None:
    rule = rule_of(
        "metric: gpu, below: 10%, description: 'Look here.', severity: info, for: 1m, keep_firing_for: 2m, "
        "repeat: 1h, labels: { team: x }, annotations: { runbook: 'http://x' }, notify: [team, oncall], "
        "on_no_data: fire, coverage: 50%, quorum: 0.25, after_start: 3m, select: { team: 'n*', source: a* }"
    )

    assert (rule.description, rule.severity, rule.hold) == ("Look here.", Severity.INFO, timedelta(minutes=1))
    assert (rule.keep_firing_for, rule.repeat) == (timedelta(minutes=2), timedelta(hours=1))
    assert (rule.labels, rule.annotations) == (Labels.of(team="x"), {"runbook": "http://x"})
    assert (rule.notify, rule.on_no_data) == (("team", "oncall"), OnNoData.FIRE)
    assert (rule.coverage, rule.quorum, rule.after_start) == (0.5, 0.25, timedelta(minutes=3))
    assert rule.select.patterns == (("team", "n*"), ("source", "a*"))


def test_a_text_selects_by_name(rule_of) -> None:
    assert rule_of("metric: gpu, below: 10%, select: 'llama*'").select.patterns == (("name", "llama*"),)


def test_defaults_are_laid_under_rules(load_text) -> None:
    loaded = load_text(
        "defaults: { repeat: never, coverage: 60%, quorum: 20%, interval: 30s, forget_after: 2h, poll: 9s }\n"
        "sources: { alaya: { kind: alaya }, slow: { kind: alaya, poll: 5m } }\n"
        "rules: [ { name: a, metric: gpu, below: 1% }, { name: b, metric: gpu, below: 1%, coverage: 90% } ]\n"
    )

    built_in, first, second = loaded.ruleset.rules
    assert [rule.coverage for rule in (built_in, first, second)] == [0.6, 0.6, 0.9]
    assert {rule.quorum for rule in loaded.ruleset.rules} == {0.2}
    assert {rule.repeat for rule in loaded.ruleset.rules} == {timedelta()}
    assert (loaded.ruleset.interval, loaded.ruleset.forget_after) == (
        timedelta(seconds=30),
        timedelta(hours=2),
    )
    assert [source.poll for source in loaded.ruleset.sources] == [timedelta(seconds=9), timedelta(minutes=5)]


@pytest.mark.parametrize(
    ("rule", "while_status"),
    [
        ("metric: gpu, below: 10%", RUNNING),
        ("metric: gpu, peers: { below: 50% }", RUNNING),
        ("silent: {}", RUNNING),
        ("absent: { metric: gpu }", RUNNING),
        ("log: { match: x, count: { above: 1, within: 5m } }", RUNNING),
        ("log: { match: x }", None),
        ("changes: { metric: x }", None),
        ("status: { is: queued }", None),
        ("status: { enters: failed }", None),
        ("metric: gpu, below: 10%, while: running", RUNNING),
        ("metric: gpu, below: 10%, while: [loading]", frozenset({Status.LOADING})),
        ("metric: gpu, below: 10%, while: [loading, running]", RUNNING | {Status.LOADING}),
        ("metric: gpu, below: 10%, while: any", None),
    ],
)
def test_while_defaults_to_running_for_what_needs_a_running_task(
    rule_of, rule: str, while_status: frozenset[Status] | None
) -> None:
    assert rule_of(rule).while_status == while_status


def test_every_status_is_a_word_of_while() -> None:
    assert set(WhileWord) == {"any", *Status}


def test_levels_say_severity_and_time(rule_of) -> None:
    rule = rule_of(
        "metric: gpu, below: 1%, levels: [{ for: 5m, severity: info }, { for: 1h, severity: critical }]"
    )

    assert rule.levels == (
        Level(hold=timedelta(minutes=5), severity=Severity.INFO),
        Level(hold=timedelta(hours=1), severity=Severity.CRITICAL),
    )
    assert (rule.hold, rule.severity) == (timedelta(minutes=5), Severity.INFO)


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        # what to look for
        ("severity: info", "does not say what to look for (add one of metric, log,"),
        ("below: 10%", "below says how, but not of what (add metric:, such as metric: gpu)"),
        ("metric: gpu, below: 1%, silent: {}", "a rule looks for one thing, not for metric and silent"),
        ("metrc: gpu, below: 1%", "unknown key 'metrc' (did you mean metric?)"),
        ("metric: gpu, below: 1%, severty: info", "unknown key 'severty' (did you mean severity?)"),
        ("metric: gpu, below: 1%, Severity: info", "unknown key 'Severity' (did you mean severity?)"),
        ("match: x", "match does not belong here (write it inside log:"),
        # thresholds
        ("metric: gpu", "needs above: or below:"),
        ("metric: gpu, below: 1%, above: 2%", "above and below exclude each other"),
        (
            "metric: gpu, below: 1%, clear_below: 2%",
            "clear_below does not go with below (below: is cleared by clear_above:)",
        ),
        ("metric: gpu, above: 95%, clear_below: 97%", "clear_below is on the wrong side of the threshold"),
        ("metric: gpu, below: 10%, clear_above: 5%", "clear_above is on the wrong side of the threshold"),
        ("metric: gpu, below: 10%, avg_over: 5m, max_over: 5m", "avg_over and max_over exclude each other"),
        ("metric: gpu, below: 10%, avg_over: 0s", "avg_over: must be longer than nothing"),
        (
            "metric: gpu, below: 10%, median_over: 5m",
            "median_over of which series? A task has one per pod or GPU",
        ),
        ("metric: gpu, below: 10%, by: gpus", "by: 'gpus' is not a word for this (did you mean gpu?)"),
        # share
        ("metric: gpu, share: { of: 1h, below: 10% }", "share: at_least is missing"),
        (
            "metric: gpu, share: { of: 1h, below: 10, at_least: 80% }",
            "share: below: 10: this metric is a ratio",
        ),
        (
            "metric: gpu, share: { of: 1h, below: 10%, at_least: 80 }",
            "share: at_least: 80 is more than 1 = 100%",
        ),
        ("metric: gpu, share: { of: 1h, at_least: 80% }", "share: needs above: or below:"),
        (
            "metric: gpu, below: 1%, share: { of: 1h, below: 10%, at_least: 80% }",
            "below does not go with this rule (share has",
        ),
        (
            "metric: gpu, share: { of: 1h, below: 10%, at_least: 80%, clear_below: 90% }",
            "share: clear_below must not be more",
        ),
        (
            "metric: gpu, share: { of: 1h, below: 1%, at_least: 9% }, peers: { below: 5% }",
            "share and peers exclude each other",
        ),
        # peers
        (
            "metric: gpu, peers: { below: 50 }",
            "peers: below: 50 is 50 times the middle of the peers (did you mean 50%?)",
        ),
        (
            "metric: gpu, peers: { above: 150 }",
            "peers: above: 150 is 150 times the middle of the peers (did you mean 150%?)",
        ),
        ("metric: gpu, peers: { above: 50% }", "peers: above: must be more than 100% of the middle"),
        ("metric: gpu, peers: { below: 120% }", "peers: below: must be less than 100% of the middle"),
        ("metric: gpu, peers: { below: 50%, by: task }", "peers: by: task has no peers"),
        (
            "metric: gpu, peers: { below: 50%, min_peers: 1 }",
            "peers: min_peers: 1 is not between 2 and 100,000",
        ),
        ("metric: gpu, peers: { below: 50% }, by: pod", "by does not go with this rule (peers has its own"),
        # logs
        ("log: ERROR", r"log: needs a mapping of keys to values (such as { match: '\bERROR\b' })"),
        ("log: { match: [] }", "log: match: the list is empty"),
        ("log: { match: '' }", "log: match: is empty"),
        (
            r'log: { match: "\bERROR\b" }',
            r"log: match: holds a backspace: in double quotes YAML reads \b as one",
        ),
        ("log: { match: 12:30 }", "log: match: YAML may read 12:30 as a number in base 60"),
        (
            "log: { match: x }, above: 20",
            "above is for metric rules, this one looks at log (to count lines, write it inside",
        ),
        ("log: { match: x, above: 20 }", "log: above does not belong here (write it inside count:"),
        (
            "log: { match: x }, by: pod",
            "by is for metric rules, this one looks at log (write it inside log:)",
        ),
        ("log: { match: x, by: gpu }", "log: by: 'gpu' is not a word for this (known: task, pod)"),
        ("log: { match: x, count: { within: 5m } }", "log: count: needs above: or below:"),
        ("log: { match: x, count: { above: 3 } }", "log: count: within is missing"),
        (
            "log: { match: x, count: { above: 1, within: 5m, clear_below: 3 } }",
            "log: count: is on the wrong side",
        ),
        (
            "log: { match: x, count: { above: 1, within: 5m, clear_above: 3 } }",
            "log: count: clear_above does not go with it",
        ),
        # events and states
        ("log: { match: x }, for: 5m", "for on an event (an event happens and does not recover"),
        ("status: { enters: failed }, levels: [{ for: 5m, severity: info }]", "levels on an event"),
        ("changes: { metric: gpu }, keep_firing_for: 5m", "keep_firing_for on an event"),
        ("log: { match: x }, clear_below: 5", "clear_below is for metric rules, this one looks at log"),
        (
            "silent: {}, quiet_for: 5m",
            "quiet_for is for events, this is a state (did you mean keep_firing_for?)",
        ),
        ("status: {}", "status: needs enters: or is:"),
        ("status: { enters: failed, is: queued }", "status: enters and is exclude each other"),
        (
            "status: { enters: faild }",
            "status: enters: 'faild' is not a word for this (did you mean failed?)",
        ),
        # levels
        ("metric: gpu, below: 1%, levels: []", "levels: the list is empty"),
        ("metric: gpu, below: 1%, levels: [{ for: 5m }]", "levels: #1: severity is missing"),
        (
            "metric: gpu, below: 1%, for: 5m, levels: [{ for: 5m, severity: info }]",
            "for and levels exclude each other",
        ),
        (
            "metric: gpu, below: 1%, levels: [{ for: 5m, severity: info }, { for: 5m, severity: critical }]",
            "levels: each must come later than the one before",
        ),
        (
            "metric: gpu, below: 1%, levels: [{ for: 5m, severity: critical }, { for: 9m, severity: info }]",
            "levels: each must be more severe than the one before",
        ),
        # names
        ("metric: gpu, below: 1%, notify: [tema]", "notify: there is no channel 'tema' (did you mean team?)"),
        (
            "metric: gpu, below: 1%, notify: []",
            "notify: the list is empty (leave it out to tell every channel)",
        ),
        (
            "metric: gpu, below: 1%, severity: error",
            "severity: 'error' is not a word for this (known: info, warning, critical)",
        ),
        ("metric: gpu, below: 1%, while: [any, running]", "while: any includes all others"),
        (
            "metric: gpu, below: 1%, while: runing",
            "while: 'runing' is not a word for this (did you mean running?)",
        ),
        ("metric: gpu, below: 1%, labels: { task: x }", "labels: task is set by the program itself"),
        (
            "metric: gpu, below: 1%, labels: { a-b: x }",
            "labels: 'a-b' cannot be a name (use letters, digits and _)",
        ),
        ("metric: gpu, below: 1%, annotations: { a: 5 }", "annotations: a: YAML may read 5 as a number"),
        ("metric: [gpu], below: 1%", "metric: needs name of a metric, not a list"),
    ],
)
def test_what_cannot_be_meant_is_refused(rule_problems, rule: str, problem: str) -> None:
    told = rule_problems(rule)

    assert len(told) == 1
    assert told[0].partition(": ")[2].startswith(problem)


@pytest.mark.parametrize(
    ("rule", "warning"),
    [
        ("metric: gpu, avg_over: 90s, below: 10%", "avg_over: 1m30s is shorter than two polls of 1m"),
        (
            "metric: gpu, share: { of: 1m, below: 1%, at_least: 5% }",
            "share: of: 1m is shorter than two polls",
        ),
        ("metric: gpu, below: 0%", "below: a ratio is never below 0%: it can never fire"),
        ("metric: gpu, above: 100%", "above: a ratio is hardly ever above 100%: it may never fire"),
        ("metric: gpu, below: 150%", "below: a ratio is always below 150%: it fires at once"),
        ("metric: gpuu, below: 0.5", "no source here is known to have a metric 'gpuu' (did you mean gpu?)"),
        (
            "absent: { metric: vrma }",
            "absent: no source here is known to have a metric 'vrma' (did you mean vram?)",
        ),
        (
            "absent: { metric: gpu }, for: 24h",
            "for: what gives no data for 1d is no longer expected: this can never fire",
        ),
        ("log: { match: . }", "log: match: . is found in every line, so every line counts"),
        ("log: { match: x, ignore: '.' }", "log: ignore: . is found in every line, so no line ever counts"),
        (
            "log: { match: x, count: { below: 0, within: 5m } }",
            "log: count: there are never fewer than 0 lines",
        ),
        (
            "log: { match: x, before: 5, count: { above: 1, within: 5m } }",
            "log: count: before has no effect with count",
        ),
        ("status: { is: queued }, while: running", "while excludes every status of is: it can never fire"),
        ("silent: {}, on_no_data: fire", "on_no_data has no effect on this kind of rule"),
        ("log: { match: x }, coverage: 50%", "coverage has no effect on this kind of rule"),
        (
            "metric: gpu, below: 1%, select: { tema: x }",
            "select: no watch entry has a label 'tema': it fits no task (did you mean team?)",
        ),
        (
            "metric: gpu, below: 1%, select: { source: aliya }",
            "select: no source is called 'aliya': it fits no task",
        ),
    ],
)
def test_what_is_hardly_meant_is_warned_of(rule_problems, rule: str, warning: str) -> None:
    told = rule_problems(rule)

    assert len(told) == 1
    assert told[0].partition(": warning: ")[2].startswith(warning)


def test_a_rule_that_is_switched_off_is_checked_but_not_warned_of(rule_problems) -> None:
    assert rule_problems("metric: XidErrors, avg_over: 1s, above: 5, enabled: false") == []
    assert rule_problems("metric: gpu, below: 10, enabled: false") != []


def test_names_are_unique_and_not_the_programs_own(problems) -> None:
    text = "rules:\n" + "".join(
        f"  - {{ name: {name}, metric: gpu, below: 1% }}\n" for name in ("a", "a", "watchdog/x")
    )

    told = problems(text)

    assert told == [
        "3:13: rules: a: the name is taken by the rule in line 2 (a rule's name is its identity)",
        "4:13: rules: watchdog/x: names that begin with watchdog/ are the program's own",
    ]


@pytest.mark.parametrize(
    ("pattern", "column", "reason"),
    [
        ("'foo(?=x)'", 11, "foo(?=x) cannot be used: invalid perl operator: (?= (look-ahead cannot run"),
        ("'ab(c'", 8, "ab(c cannot be used: missing ): ab(c"),
        ("x**", 8, "x** cannot be used: bad repetition operator: **"),
        (
            r'"\\w**"',
            7,
            "cannot be used: bad repetition operator: **",
        ),  # escaped: only its beginning is known
    ],
)
def test_patterns_that_cannot_run_in_linear_time_are_refused_where_they_go_wrong(
    problems, pattern: str, column: int, reason: str
) -> None:
    told = problems(f"rules:\n- name: r\n  log:\n    match:\n    - {pattern}\n")[0]

    assert told.startswith(f"5:{column}: ")
    assert reason in told
