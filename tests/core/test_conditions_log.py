from datetime import UTC, datetime, timedelta

import pytest

from watchdog.core.conditions.kinds import By, Comparison, LogCount, LogEvent, LogMatch
from watchdog.core.conditions.log import log_occurrences, log_samples
from watchdog.core.durations import to_ns
from watchdog.core.logs import LogLine
from watchdog.core.outcomes import Occurrence
from watchdog.core.rules import Rule
from watchdog.core.scanning import LogScanner
from watchdog.core.tasks import Task
from watchdog.text.patterns import Re2Engine

ENGINE = Re2Engine()
TASK = Task(key="alaya/1", source="alaya", id="1", name="llama")
AT = datetime(2026, 1, 1, 10, 0, tzinfo=UTC)
NOW = to_ns(AT)
SECOND = 1_000_000_000


def event(*match: str, by: By = By.TASK, before: int = 1, after: int = 2) -> Rule:
    lines = LogMatch(match=tuple(map(ENGINE.compile, match)))
    return Rule(name="errors", condition=LogEvent(lines=lines, by=by, before=before, after=after))


def counting(by: By = By.TASK) -> Rule:
    lines = LogMatch(match=(ENGINE.compile("ERROR"),))
    comparison = Comparison(above=True, threshold=3)
    return Rule(
        name="burst",
        condition=LogCount(lines=lines, within=timedelta(minutes=5), comparison=comparison, by=by),
    )


def row(text: str, pod: str = "pod-0", *, ago: float = 10) -> LogLine:
    return LogLine(NOW - int(ago * SECOND), pod, text)


def occurrences(rule: Rule, rows: list[LogLine]) -> tuple[Occurrence, ...]:
    hits = LogScanner([rule], ENGINE).scan(TASK, rows).of(rule.name)
    assert hits is not None
    return log_occurrences(rule, TASK, hits, AT)


def test_a_new_line_is_an_occurrence_with_its_context() -> None:
    rows = [row(f"step {n}", ago=50 - n) for n in range(9)]
    rows[4] = row("ERROR boom", ago=46)

    (one,) = occurrences(event("ERROR"), rows)

    assert (one.rule, one.labels, one.count, one.late) == ("errors", TASK.identity, 1, False)
    assert one.at == AT - timedelta(seconds=46)
    assert [(line.text, line.matched) for line in one.evidence.lines] == [
        ("step 3", False),
        ("ERROR boom", True),
        ("step 5", False),
        ("step 6", False),
    ]
    assert one.evidence.more_lines == 0


def test_two_equal_rows_count_two_and_are_shown_once() -> None:
    (one,) = occurrences(event("ERROR"), [row("ERROR x"), row("ERROR x")])

    assert one.count == 2
    assert [(line.text, line.repeated) for line in one.evidence.lines] == [("ERROR x", 2)]


def test_the_causal_line_leads_512_consequences() -> None:
    rows = [row(f"[rank{n}]: ERROR connection closed by peer", f"pod-{n}", ago=10) for n in range(512)]
    cause = row("ERROR CUDA error: uncorrectable ECC", "pod-77", ago=12)

    first, second = occurrences(event("ERROR"), [*rows, cause])

    assert first.evidence.lines[0].text == "ERROR CUDA error: uncorrectable ECC"
    assert first.evidence.lines[0].pod == "pod-77"
    assert first.count == 1
    assert second.count == 512
    assert [(line.repeated, line.matched) for line in second.evidence.lines if line.matched] == [(512, True)]
    assert second.evidence.affected == 512
    assert [member.labels["pod"] for member in first.evidence.members] == ["pod-77", "pod-0", "pod-1"]


def test_like_lines_with_other_numbers_are_shown_in_part_and_counted_in_full() -> None:
    rows = [row(f"ERROR loss nan at step {n}", ago=100 - n) for n in range(50)]

    (one,) = occurrences(event("ERROR", before=0, after=0), rows)

    matched = [line for line in one.evidence.lines if line.matched]
    assert one.count == 50
    assert [line.text for line in matched] == [f"ERROR loss nan at step {n}" for n in (0, 1, 2, 49)]
    assert one.evidence.more_lines == 46


def test_each_kind_of_line_is_an_occurrence_of_its_own() -> None:
    rows = [row("ERROR disk full", ago=3), row("ERROR key missing", ago=2), row("ERROR disk full", ago=1)]

    found = occurrences(event("ERROR", before=0, after=0), rows)

    assert [(one.count, one.evidence.lines[0].text) for one in found] == [
        (2, "ERROR disk full"),
        (1, "ERROR key missing"),
    ]
    assert len({one.fingerprint for one in found}) == 2


def test_too_many_kinds_are_folded_but_none_is_lost() -> None:
    words = [a + b for a in "abcdefgh" for b in "abcdefgh"]
    rows = [row(f"ERROR {word}", ago=100 - n) for n, word in enumerate(words)]

    found = occurrences(event("ERROR"), rows)

    assert len(found) == 20
    assert sum(one.count for one in found) == 64
    shown = sum(line.repeated for line in found[-1].evidence.lines if line.matched)
    assert shown + found[-1].evidence.more_lines == found[-1].count == 45


def test_by_pod_each_pod_has_its_own_labels_and_the_same_fingerprint() -> None:
    rows = [row("ERROR x", "pod-0"), row("ERROR x", "pod-1")]

    found = occurrences(event("ERROR", by=By.POD), rows)

    assert [one.labels["pod"] for one in found] == ["pod-0", "pod-1"]
    assert found[0].fingerprint == found[1].fingerprint
    assert found[0].evidence.affected == 0


def test_a_line_that_became_visible_late_is_flagged() -> None:
    (one,) = occurrences(event("ERROR"), [row("ERROR x", ago=7 * 60)])

    assert one.late
    assert one.at == AT - timedelta(minutes=7)


def test_a_traceback_is_shown_with_its_exception_line_as_the_reason() -> None:
    frames = [
        text for n in range(20) for text in (f'  File "/app/f.py", line {n}, in f{n}', f"    f{n + 1}()")
    ]
    texts = [
        "step 1",
        "Traceback (most recent call last):",
        *frames,
        "ValueError: bad",
        "step 2",
        "step 3",
        "step 4",
    ]

    (one,) = occurrences(event("Traceback"), [row(text, ago=60 - n) for n, text in enumerate(texts)])

    assert [line.text for line in one.evidence.lines if line.matched] == ["ValueError: bad"]
    assert [line.text for line in one.evidence.lines][:2] == ["step 1", "Traceback (most recent call last):"]
    assert [line.text for line in one.evidence.lines][-3:] == ["ValueError: bad", "step 2", "step 3"]
    assert len(one.evidence.lines) < 12
    assert one.count == 1


def test_tracebacks_of_two_interleaved_ranks_show_both_exceptions() -> None:
    trace = [
        "Traceback (most recent call last):",
        '  File "/a.py", line 1, in f',
        "    f()",
        "ValueError: bad {}",
    ]
    texts = [f"[rank{rank}]: {text.format('xy'[rank])}" for text in trace for rank in (0, 1)]

    found = occurrences(event("Traceback"), [row(text, ago=60 - n) for n, text in enumerate(texts)])

    matched = [line.text for one in found for line in one.evidence.lines if line.matched]
    assert matched == ["[rank0]: ValueError: bad x", "[rank1]: ValueError: bad y"]


def test_secrets_never_reach_the_evidence() -> None:
    rows = [row("env AK=AKLTexample SK=s3cr3t", ago=3), row("ERROR Authorization: Bearer eyJabc.def", ago=2)]

    (one,) = occurrences(event("ERROR"), rows)

    text = repr(one)
    assert "s3cr3t" not in text
    assert "eyJabc" not in text
    assert "****" in text


def test_matches_are_counted_by_time_and_labels() -> None:
    rule = counting(By.POD)
    rows = [row("ERROR x", ago=2), row("ERROR x", ago=2), row("ERROR y", ago=1), row("ERROR", "pod-1", ago=1)]
    hits = LogScanner([rule], ENGINE).scan(TASK, rows).of("burst")
    assert hits is not None

    own = [(time, labels["pod"], value) for time, labels, value in log_samples(rule, TASK, hits)]

    assert own == [
        (NOW - 2 * SECOND, "pod-0", 2.0),
        (NOW - SECOND, "pod-0", 1.0),
        (NOW - SECOND, "pod-1", 1.0),
    ]


def test_samples_name_the_pod_whatever_the_rule_speaks_of() -> None:
    rule = counting()
    hits = LogScanner([rule], ENGINE).scan(TASK, [row("ERROR", "a"), row("ERROR", "b")]).of("burst")
    assert hits is not None

    assert [(labels, value) for _, labels, value in log_samples(rule, TASK, hits)] == [
        (TASK.identity.plus({"pod": "a"}), 1.0),
        (TASK.identity.plus({"pod": "b"}), 1.0),
    ]


def test_every_matching_line_of_a_traceback_is_counted() -> None:
    rule = counting()
    texts = ["Traceback (most recent call last):", '  File "x", line 1', "ERROR a", "MyError: ERROR b"]
    rows = [row(text, ago=9 - n) for n, text in enumerate(texts)]
    hits = LogScanner([rule], ENGINE).scan(TASK, rows).of("burst")
    assert hits is not None

    assert sum(value for _, _, value in log_samples(rule, TASK, hits)) == 2


def test_a_rule_of_another_kind_is_a_mistake() -> None:
    hits = LogScanner([event("ERROR")], ENGINE).scan(TASK, [row("ERROR")]).of("errors")
    assert hits is not None

    with pytest.raises(TypeError, match="burst"):
        log_occurrences(counting(), TASK, hits, AT)
    with pytest.raises(TypeError, match="errors"):
        log_samples(event("ERROR"), TASK, hits)
