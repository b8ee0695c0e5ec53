"""`watchdog test`: what a person sees of a scenario that passes, and of one that does not."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

LONG = "The disk is full for two minutes, " + "and this description is longer than a line; " * 4
SCENARIO = """
description: {description}
length: 90m
rules: [ {{ name: low, metric: gpu, below: 20%, for: 5m }} ]
series: [ {{ metric: gpu, values: '95% until 0m, 5% until 10m, 95%' }} ]
events: [ {{ at: 7m, disk_full: 2m }} ]
expect:
  - {{ at: {first}, kind: first, rule: low{more} }}
  - {{ at: 9m, kind: first, rule: watchdog/state not stored }}
  - {{ at: 10m, kind: closed, rule: low }}
  - {{ at: 10m, kind: closed, rule: watchdog/state not stored }}
"""
LOGGED = "T+8m logged as error: state not stored"


@pytest.fixture
def scenario(tmp_path: Path) -> Callable[..., str]:
    def written(first: str = "5m", more: str = "", name: str = "one.yaml") -> str:
        path = tmp_path / name
        path.write_text(SCENARIO.format(description=LONG, first=first, more=more), encoding="utf-8")
        return str(path)

    return written


def test_what_the_engine_logs_is_not_among_the_results(watchdog, scenario) -> None:
    ran = watchdog("test", scenario())
    assert (ran.code, ran.err) == (0, "")
    assert "not stored" not in ran.out
    assert ran.out.splitlines()[-1] == "1 passed, 0 failed"


def test_verbose_shows_messages_and_log_in_order_of_time(watchdog, scenario) -> None:
    ran = watchdog("test", "-v", scenario())
    assert ran.err == ""
    places = [
        ran.out.index(text) for text in ("T+5m chat first: WARNING", LOGGED, "T+10m chat closed: Recovered")
    ]
    assert places == sorted(places)


def test_a_failure_shows_both_timelines_and_what_differs(watchdog, scenario) -> None:
    ran = watchdog("test", scenario(first="4m", more=", contains: 'GPU 6 %, below 20 %'"))
    assert ran.code == 1
    shown = [line.rstrip() for line in ran.out.splitlines()[1:]]
    assert shown == [
        "",
        "    LINE  EXPECTED                                       SENT",
        "  ✗    8  T+4m chat first [low]                          T+5m",
        "          it came at T+5m, 1m late",
        "          the text lacks 'GPU 6 %, below 20 %'; it says 'GPU 5 %, below 20 %'",
        f"  ! {LOGGED}, going on from memory reason=the disk is full (scripted)",
        "  =    9  T+9m chat first [watchdog/state not stored]    T+9m",
        "  =   10  T+10m chat closed [low]                        T+10m",
        "          … 1 as expected",
        "",
        "0 passed, 1 failed; -v shows every message in full",
    ]
    assert ran.err == ""


def test_the_failure_in_the_docs_is_what_is_printed(watchdog, example: Path, tmp_path: Path) -> None:
    document = (example.parent / "docs" / "scenarios.md").read_text(encoding="utf-8")
    text = document.split("```yaml\n")[1].split("```")[0].replace("at: 10m", "at: 17m")
    (tmp_path / "first.yaml").write_text(text, encoding="utf-8")
    ran = watchdog("test", "first.yaml")
    assert "\n".join(line.rstrip() for line in ran.out.splitlines()) in document


def test_on_a_terminal_no_result_is_wider_than_it(on_terminal, scenario) -> None:
    files = [
        scenario(),
        scenario(first="4m", more=f", contains: '{'GPU 5 %, below ' * 12}'", name="two.yaml"),
    ]
    ran = on_terminal("test", *files)
    lines = ran.out.replace("\x1b[1m", "").replace("\x1b[1;31m", "").replace("\x1b[32m", "")
    lines = lines.replace("\x1b[2m", "").replace("\x1b[0m", "").splitlines()
    long = [line for line in lines if len(line) > 100]
    assert [line for line in long if not line.startswith("FAILED ")] == []
    assert any(line.startswith("ok ") and line.endswith("…") for line in lines)


def test_json_has_the_log_too(watchdog, scenario) -> None:
    [result] = json.loads(watchdog("test", "--json", scenario()).out)
    assert result["passed"]
    assert [(row["at_seconds"], row["level"]) for row in result["log"]] == [(480.0, "error")]
