"""How single values are read: units, ratios, YAML's surprises."""

from datetime import timedelta

import pytest

IDLE = "metric: gpu, below: 10%"


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("10", "10 has no unit (write 10s, 10m or 10h)"),
        ("1.5", "1.5 has no unit (write 1.5s, 1.5m or 1.5h)"),
        ("12:30", "12:30 is not a duration (old YAML reads it in base 60) (write 12h30m or 12m30s)"),
        ("1e3", "1e3 is a number, not a duration (write a number and a unit: 90s, 15m, 1h30m, 2d)"),
        ("-5m", "-5m is negative (write a number and a unit: 90s, 15m, 1h30m, 2d)"),
        ("soon", "soon is text, not a duration (write a number and a unit: 90s, 15m, 1h30m, 2d)"),
        ("no", "no is text, not a duration (write a number and a unit: 90s, 15m, 1h30m, 2d)"),
        ("~", "has no value: needs a duration such as 90s, 15m or 1h30m"),
        ("[5m]", "needs a duration such as 90s, 15m or 1h30m, not a list"),
        ("99999w", "99999w is longer than a year"),
        ("9999999999999999999w", "9999999999999999999w is longer than a year"),
    ],
)
def test_durations_need_a_number_and_a_unit(rule_problems, written: str, problem: str) -> None:
    told = rule_problems(f"{IDLE}, for: {written}")

    assert len(told) == 1
    assert told[0].startswith(f"46: for: {problem}")


@pytest.mark.parametrize(
    ("written", "held"),
    [
        ("90s", timedelta(seconds=90)),
        ("1h30m", timedelta(minutes=90)),
        ('"2d"', timedelta(days=2)),
        ("0s", timedelta()),
    ],
)
def test_good_durations(rule_of, written: str, held: timedelta) -> None:
    assert rule_of(f"{IDLE}, for: {written}").hold == held


@pytest.mark.parametrize(
    ("level", "value"),
    [("10%", 0.1), ("0.1", 0.1), ("33.3%", 0.333), ("55 %", 0.55), ("1e-1", 0.1), ('"10%"', 0.1)],
)
def test_a_ratio_is_a_percentage_or_a_number_up_to_one(rule_of, level: str, value: float) -> None:
    assert rule_of(f"metric: gpu, below: {level}").condition.comparison.threshold == value


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ("metric: gpu, below: 90", "below: 90: this metric is a ratio, 1 is 100% (did you mean 90%?)"),
        ("metric: vram, above: 1.5", "above: 1.5: this metric is a ratio, 1 is 100% (did you mean 1.5%?)"),
        (
            "metric: GpuTemp, above: 90%",
            "above: 90%: this metric is no ratio, so there is no percentage of it",
        ),
        ("metric: gpu, below: ten", "below: 'ten' is not a number or a percentage such as 10%"),
        (
            "metric: gpu, below: .inf",
            "below: .inf: not every YAML reader reads it alike (write plain decimal digits)",
        ),
        ("metric: gpu, below: 010", "below: 010: a leading zero makes it octal in old YAML"),
        ("metric: gpu, below: 1_0", "below: 1_0: not every YAML reader reads it alike"),
        ("metric: gpu, below: 1:30", "below: 1:30: old YAML reads it in base 60"),
        (f"{IDLE}, coverage: 80", "coverage: 80 is more than 1 = 100% (did you mean 80%?)"),
        (f"{IDLE}, coverage: 120%", "coverage: 120% is not between 0% and 100%"),
        (f"{IDLE}, coverage: 0%", "coverage: must be more than 0%"),
    ],
)
def test_numbers_in_the_wrong_unit_are_refused(rule_problems, rule: str, problem: str) -> None:
    told = [line for line in rule_problems(rule) if "warning: " not in line]

    assert len(told) == 1
    assert told[0].partition(": ")[2].startswith(problem)


@pytest.mark.parametrize(
    ("word", "taken_for"),
    [
        ("no", "the boolean false"),
        ("On", "the boolean true"),
        ("12:30", "a number in base 60"),
        ("1e3", "a number"),
        ("0x1F", "a number"),
        ("2026-11-30", "a date"),
    ],
)
def test_a_bare_word_that_yaml_may_misread_is_no_text(problems, word: str, taken_for: str) -> None:
    told = problems(f"rules:\n  - name: {word}\n    metric: gpu\n    below: 10%\n")

    assert (
        told[-1]
        == f'2:11: rules: {word}: name: YAML may read {word} as {taken_for} (write it in quotes: "{word}")'
    )
    assert problems(f"rules:\n  - name: '{word}'\n    metric: gpu\n    below: 10%\n")[0].endswith(
        "nothing is watched"
    )


@pytest.mark.parametrize("word", ["yes", "on", "y", "TRUE-ish", "1"])
def test_booleans_are_true_and_false(rule_problems, word: str) -> None:
    told = rule_problems(f"{IDLE}, enabled: {word}")

    assert told[0].startswith(f"50: enabled: {word} is neither true nor false")


def test_old_booleans_get_the_new_word_as_a_hint(rule_problems) -> None:
    assert rule_problems(f"{IDLE}, enabled: off")[0].endswith("(did you mean false?)")


@pytest.mark.parametrize(
    ("task", "id_", "warned"),
    [
        ("1234567890", "1234567890", True),
        ("0123", "0123", True),
        ("1e3", "1e3", True),
        ('"1234567890"', "1234567890", False),
        ("550e8400-e29b-41d4-a716-446655440000", "550e8400-e29b-41d4-a716-446655440000", False),
    ],
)
def test_task_ids_are_taken_as_written(load_text, task: str, id_: str, warned: bool) -> None:
    loaded = load_text(f"sources: {{ a: {{ kind: alaya }} }}\nwatch: [ {{ source: a, task: {task} }} ]\n")

    assert loaded.ruleset.watch[0].id == id_
    assert any("quote it" in warning.hint for warning in loaded.warnings) is warned


def test_never_stands_for_no_reminder(rule_of) -> None:
    assert rule_of(f"{IDLE}, repeat: never").repeat == timedelta()


@pytest.mark.parametrize(
    ("zone", "hint"),
    [("Shanghai", "Asia/Shanghai"), ("asia/shanghai", "Asia/Shanghai"), ("Europe/Belrin", "Europe/Berlin")],
)
def test_time_zones_exist(problems, zone: str, hint: str) -> None:
    told = problems(f"defaults: {{ timezone: {zone} }}")

    assert told == [
        f"1:23: defaults: timezone: {zone!r} is not a time zone this machine knows (did you mean {hint}?)"
    ]


@pytest.mark.parametrize("zone", ["../../etc/passwd", "/etc/localtime", "Asia", "UTC+8"])
def test_what_is_no_time_zone_is_no_crash(problems, zone: str) -> None:
    assert "is not a time zone" in problems(f"defaults: {{ timezone: {zone} }}")[0]
