from datetime import timedelta

import pytest

from watchdog.core.conditions.kinds import Comparison, LogCount, LogEvent, LogMatch, Silent
from watchdog.core.logs import LogLine
from watchdog.core.rules import Rule, Selector
from watchdog.core.scanning import OWN_LINE, Hits, LogScanner, RuleHits
from watchdog.core.tasks import Task
from watchdog.text.patterns import Re2Engine

ENGINE = Re2Engine()
TASK = Task(key="alaya/1", source="alaya", id="1", name="llama")
SECOND = 1_000_000_000


def rule(name: str, *match: str, ignore: tuple[str, ...] = (), pods: str = "", prefilter: str = "") -> Rule:
    lines = LogMatch(
        match=tuple(map(ENGINE.compile, match)),
        ignore=tuple(map(ENGINE.compile, ignore)),
        pods=pods,
        prefilter=prefilter,
    )
    return Rule(name=name, condition=LogEvent(lines=lines))


def rows(*texts: str, pod: str = "pod-0", start: int = 1) -> list[LogLine]:
    return [LogLine((start + n) * SECOND, pod, text) for n, text in enumerate(texts)]


def scan(rules: list[Rule], lines: list[LogLine]) -> Hits:
    return LogScanner(rules, ENGINE).scan(TASK, lines)


def found(hits: Hits, name: str = "errors") -> RuleHits:
    own = hits.of(name)
    assert own is not None
    return own


def texts(hits: Hits, name: str = "errors") -> list[str]:
    return [line.text for line in found(hits, name).lines()]


def test_each_rule_gets_its_own_lines() -> None:
    rules = [rule("errors", r"\bERROR\b", "FATAL"), rule("oom", "out of memory"), rule("none", "never")]

    hits = scan(rules, rows("step 1", "ERROR: out of memory", "FATAL", "step 2"))

    assert texts(hits) == ["ERROR: out of memory", "FATAL"]
    assert texts(hits, "oom") == ["ERROR: out of memory"]
    assert hits.of("none") is None
    assert hits.lines == 4


def test_a_line_that_matches_two_patterns_of_a_rule_is_one_match() -> None:
    assert texts(scan([rule("errors", "ERROR", "boom", "ERROR")], rows("ERROR boom"))) == ["ERROR boom"]


def test_ignored_lines_do_not_match() -> None:
    hits = scan([rule("errors", r"\bERROR\b", ignore=(r"\b0 ERROR",))], rows("0 ERROR", "1 ERROR"))

    assert texts(hits) == ["1 ERROR"]


def test_pods_are_narrowed_by_glob() -> None:
    lines = rows("ERROR a", pod="worker-1") + rows("ERROR b", pod="master-0")

    assert texts(scan([rule("errors", "ERROR", pods="worker-*")], lines)) == ["ERROR a"]


def test_a_prefilter_means_the_same_without_a_filtering_server() -> None:
    hits = scan([rule("errors", "ERROR", prefilter="rank0")], rows("rank0 ERROR", "rank1 ERROR"))

    assert texts(hits) == ["rank0 ERROR"]


def test_rules_about_other_tasks_and_other_things_are_left_out() -> None:
    other = Rule(
        name="other",
        condition=LogEvent(lines=LogMatch(match=(ENGINE.compile("ERROR"),))),
        select=Selector(patterns=(("name", "bert*"),)),
    )

    hits = scan([other, Rule(name="silence", condition=Silent())], rows("ERROR"))

    assert hits.by_rule == {}


def test_our_own_lines_never_match_nor_count() -> None:
    hits = scan([rule("errors", "ERROR")], rows(f"{OWN_LINE} ERROR: channel answers 429", "ERROR boom"))

    assert texts(hits) == ["ERROR boom"]
    assert hits.own == 1


def test_rows_are_cleaned_before_they_are_matched() -> None:
    lines = rows("a\nERROR b\nc", "\x1b[31mERR\x1b[0mOR", "1%\r2%\rERROR d\n")

    hits = scan([rule("errors", r"^ERROR")], lines)

    assert texts(hits) == ["ERROR b", "ERROR", "ERROR d"]


def test_a_line_too_long_is_counted_and_its_ends_are_matched() -> None:
    hits = scan([rule("errors", "ERROR")], rows("x" * 1_000_000 + " ERROR"))

    assert len(found(hits).matched) == 1
    assert hits.cut == 1


def test_rows_out_of_order_are_put_in_order() -> None:
    assert texts(scan([rule("errors", "ERROR")], rows("ERROR 2", start=2) + rows("ERROR 1"))) == [
        "ERROR 1",
        "ERROR 2",
    ]


def test_equal_rows_are_two_matches() -> None:
    assert len(found(scan([rule("errors", "ERROR")], [LogLine(1, "p", "ERROR x")] * 2)).findings) == 2


TRACE = [
    "Traceback (most recent call last):",
    '  File "/app/train.py", line 88, in <module>',
    "    main()",
    "RuntimeError: boom {}",
]


def test_a_traceback_is_one_finding_named_by_its_exception() -> None:
    hits = scan([rule("errors", "Traceback", r"\w+Error: ")], rows("step 1", *TRACE, "step 2"))

    (finding,) = found(hits).findings
    page = found(hits).page
    assert finding.count == 1
    assert [page.lines[n].text for n in finding.leads] == ["RuntimeError: boom {}"]
    assert len(found(hits).matched) == 2


def test_like_tracebacks_of_two_interleaved_ranks_are_two_findings_of_one_kind() -> None:
    lines = rows(*(f"[rank{rank}]: {text.format(rank)}" for text in TRACE for rank in (0, 1)))

    findings = found(scan([rule("errors", "Traceback")], lines)).findings

    assert [finding.count for finding in findings] == [1, 1]
    assert len({finding.fingerprint for finding in findings}) == 1


def test_interleaved_ranks_without_prefix_count_as_two() -> None:
    lines = rows(*(text.format(rank) for text in TRACE for rank in (0, 1)))

    (finding,) = found(scan([rule("errors", "Traceback")], lines)).findings

    assert finding.count == 2


def test_a_chain_counts_once() -> None:
    chain = [
        *TRACE,
        "During handling of the above exception, another exception occurred:",
        *TRACE[:-1],
        "KeyError: 'x'",
    ]

    (finding,) = found(scan([rule("errors", "Traceback")], rows(*chain))).findings

    assert finding.count == 1


def test_an_open_traceback_is_told_at_once_and_its_exception_when_it_comes() -> None:
    scanner = LogScanner([rule("errors", "Traceback"), rule("other", "other")], ENGINE)

    first = scanner.scan(TASK, rows(*TRACE[:2]))
    second = scanner.scan(TASK, rows("step 5", pod="pod-1", start=3))
    third = scanner.scan(TASK, rows(*TRACE[2:], "other", start=5))
    fourth = scanner.scan(TASK, rows(*TRACE[3:], start=9))

    assert [finding.count for finding in found(first).findings] == [1]
    assert second.of("errors") is None
    (end,) = found(third).findings
    assert end.count == 0
    assert end.fingerprint != found(first).findings[0].fingerprint
    assert found(third).page.lines[end.leads[0]].text == "RuntimeError: boom {}"
    assert len(found(third, "other").findings) == 1
    assert fourth.of("errors") is None


def test_a_later_traceback_of_the_same_rank_is_not_taken_for_the_end_of_an_open_one() -> None:
    scanner = LogScanner([rule("errors", "train.py")], ENGINE)
    other = [TRACE[0], '  File "/app/eval.py", line 1, in <module>', "    main()", "ValueError: other"]

    scanner.scan(TASK, rows(*TRACE[:2]))

    assert scanner.scan(TASK, rows(*other, start=900)).of("errors") is None


def test_open_tracebacks_of_different_tasks_are_not_mixed() -> None:
    scanner = LogScanner([rule("errors", "Traceback")], ENGINE)
    other = Task(key="alaya/2", source="alaya", id="2", name="bert")

    scanner.scan(TASK, rows(*TRACE[:2]))

    assert scanner.scan(other, rows(*TRACE[2:], start=5)).of("errors") is None


def test_context_is_of_the_same_pod() -> None:
    lines = [LogLine(n * SECOND, f"pod-{n % 2}", f"line {n}") for n in range(10)]
    lines[4] = LogLine(4 * SECOND, "pod-0", "ERROR")

    hits = found(scan([rule("errors", "ERROR")], lines))
    numbers = hits.shown_numbers(hits.findings[0], 1, 2)

    assert [hits.page.lines[n].text for n in numbers] == ["line 2", "ERROR", "line 6", "line 8"]


def test_lines_shown_are_masked_and_cut() -> None:
    hits = found(scan([rule("errors", "ERROR")], rows("ERROR password=hunter2 " + "x" * 9_000)))

    line = hits.page.evidence(0, matched=True)

    assert line.text.startswith("ERROR password=**** xxx")
    assert "characters cut" in line.text
    assert len(line.text) < 4_200


def test_a_private_key_in_the_context_is_hidden_line_by_line() -> None:
    lines = rows("-----BEGIN PRIVATE KEY-----", "c2hvcnQ", "-----END PRIVATE KEY-----", "ERROR")

    hits = found(scan([rule("errors", "ERROR")], lines))

    assert hits.page.evidence(1).text == "****"
    assert hits.page.evidence(3).text == "ERROR"


def test_a_counting_rule_is_scanned_too() -> None:
    count = LogCount(
        lines=LogMatch(match=(ENGINE.compile("ERROR"),)),
        within=timedelta(minutes=5),
        comparison=Comparison(above=True, threshold=1),
    )

    hits = scan([Rule(name="errors", condition=count)], rows("ERROR", "ERROR"))

    assert len(found(hits).matched) == 2


@pytest.mark.parametrize("count", [0, 1])
def test_no_rules_or_no_rows_find_nothing(count: int) -> None:
    assert scan([rule("errors", "ERROR")] * (1 - count), rows(*["ERROR"] * count)).by_rule == {}
