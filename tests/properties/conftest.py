"""Random scenarios: a cloud, a rule set, channels and misfortunes, as a tree that is also a scenario file.

Owns what can happen in one; what must be true of it is `test_random_scenarios`. All of it happens in
the first `BUSY` minutes, so that whatever is still to be told can be told before the end.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import strategies as st

BUSY = 40  # minutes in which things happen
LENGTH = 110  # … and all have ended
WORDS = ("alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel")
STRETCHES = (3, 8, 14, 22, 40)  # minutes; never near a `for`

Tree = Mapping[str, Any]

RULES: Mapping[str, Tree] = {
    "low0": {"metric": "gpu", "below": "20%"},
    "low5": {"metric": "gpu", "below": "20%", "for": "5m"},
    "low10": {"metric": "gpu", "below": "20%", "for": "10m", "severity": "critical"},
    "keep": {"metric": "gpu", "below": "20%", "for": "5m", "keep_firing_for": "5m"},
    "pods": {"metric": "gpu", "below": "20%", "for": "5m", "by": "pod"},
    "gpus": {"metric": "gpu", "avg_over": "5m", "below": "20%", "by": "gpu"},
    "grows": {
        "metric": "gpu",
        "below": "20%",
        "levels": [{"for": "2m", "severity": "info"}, {"for": "17m", "severity": "critical"}],
    },
    "err": {"log": {"match": [r"\bERROR\b"]}, "quiet_for": "15m"},
    "burst": {"log": {"match": [r"\bERROR\b"], "count": {"above": 2, "within": "5m"}}},
    "quiet": {"silent": {"log": "any"}, "for": "10m"},
    "state": {"status": {"enters": ["failed", "paused", "succeeded", "vanished"]}},
    "waits": {"status": {"is": "queued"}, "for": "10m"},
    "absent": {"absent": {"metric": "gpu", "by": "pod"}, "for": "6m"},
}


@dataclass(frozen=True, slots=True)
class Case:
    """One random scenario: the tree of its file."""

    tree: Tree = field(repr=False)

    @property
    def text(self) -> str:
        """The scenario file: one part a line, so that it can be read and kept."""
        lines = ["description: random"]
        for name, part in self.tree.items():
            if part == [] and name != "expect":
                continue
            if part and isinstance(part, list):
                lines.append(f"{name}:")
                lines += [f"  - {json.dumps(row, ensure_ascii=False)}" for row in part]
            else:
                lines.append(f"{name}: {json.dumps(part, ensure_ascii=False)}")
        return "\n".join(lines) + "\n"

    def __repr__(self) -> str:
        return f"\n{self.text}"

    def part(self, name: str) -> list[Tree]:
        """The rows of one part; none if the scenario has not got it."""
        return list(self.tree.get(name, []))


def at(offset: float) -> str:
    """Write a time: minutes as seconds."""
    return f"{round(offset * 60)}s"


def _values(stretches: list[tuple[str, int]], last: str) -> str:
    rows, until = [], 0
    for value, length in stretches:
        until += length
        rows.append(f"{value} until {until}m")
    return ", ".join([*rows, last])


def _course(values: tuple[str, ...]) -> st.SearchStrategy[str]:
    stretches = st.lists(st.tuples(st.sampled_from(values), st.sampled_from(STRETCHES)), max_size=4)
    return st.builds(_values, stretches, st.sampled_from(("95%", "95%", "5%", "none")))


_WILD = _course(("95%", "5%", "5%", "none", "19%|21%", "90%..2%"))
_STEADY = _course(("95%", "5%", "5%"))

_span = st.tuples(st.integers(-6, BUSY - 10), st.sampled_from((1, 2, 4, 9, 15, 30)))


@st.composite
def _tasks(draw: st.DrawFn) -> list[Tree]:
    return [
        {
            "name": f"t{number}",
            "pods": draw(st.integers(1, 3)),
            "gpus": draw(st.integers(1, 2)),
            "found": draw(st.booleans()),
            "status": draw(st.sampled_from(("running",) * 5 + ("queued", "unknown", "paused"))),
        }
        for number in range(draw(st.integers(1, 2)))
    ]


@st.composite
def _series(draw: st.DrawFn, tasks: list[Tree], course: st.SearchStrategy[str]) -> list[Tree]:
    alike = draw(st.booleans())
    rows: list[Tree] = []
    for task in tasks:
        values = draw(course)
        for pod in range(task["pods"]):
            row = {
                "metric": "gpu",
                "task": task["name"],
                "pod": f"pod-{pod}",
                "from": "-30m",
                "values": values if alike else draw(course),
            }
            if draw(st.integers(0, 5)) == 0:
                row["lag"] = at(draw(st.sampled_from((0.5, 2, 3))))
            rows.append(row)
    return rows


@st.composite
def _logs(draw: st.DrawFn, tasks: list[Tree]) -> list[Tree]:
    rows: list[Tree] = []
    for task in tasks:
        if draw(st.integers(0, 3)):
            until = draw(st.sampled_from((10, 30, LENGTH, LENGTH)))
            row = {"task": task["name"], "at": "-20m", "text": "all is well {n}", "every": "60s"}
            rows.append({**row, "until": f"{until}m"})
    for word in WORDS[: draw(st.integers(0, 8))]:
        row = {
            "task": draw(st.sampled_from(tasks))["name"],
            "at": at(draw(st.integers(-4 * 60, BUSY * 60)) / 60),
            "text": f"ERROR {word} has failed",
            "times": draw(st.sampled_from((1, 1, 3))),
        }
        if draw(st.integers(0, 3)) == 0:
            row["late"] = at(draw(st.sampled_from((0.5, 3, 7))))
        rows.append(row)
    return rows


@st.composite
def _statuses(draw: st.DrawFn, tasks: list[Tree]) -> list[Tree]:
    rows: list[Tree] = []
    for task in tasks:
        if draw(st.integers(0, 2)):
            continue
        moments = draw(st.lists(st.integers(-3, BUSY), min_size=1, max_size=3, unique=True))
        for moment in sorted(moments):
            row: dict[str, Any] = {"task": task["name"], "at": f"{moment}m"}
            row["status"] = draw(
                st.sampled_from(("running", "running", "paused", "queued", "failed", "succeeded", "unknown"))
            )
            if draw(st.integers(0, 6)) == 0:
                row["listed"] = False
            rows.append(row)
    return rows


@st.composite
def _fault(draw: st.DrawFn, tasks: list[Tree]) -> Tree:
    begin, length = draw(_span)
    row: dict[str, Any] = {"from": f"{begin}m", "until": f"{begin + length}m"}
    kind = draw(st.integers(0, 9))
    if kind == 0:
        row["takes"] = at(draw(st.sampled_from((0.3, 1.2, 3))))
    elif kind == 1:
        return {**row, "capability": "list", "partial_list": True, "task": tasks[0]["name"]}
    else:
        failures = ("server error", "timed out", "not JSON", "forbidden", "throttled")
        row["failure"] = draw(st.sampled_from(failures))
    if draw(st.booleans()):
        row["capability"] = draw(st.sampled_from(("metrics", "logs", "status", "list")))
    if draw(st.integers(0, 2)) == 0 and row.get("capability") != "list":
        row["task"] = draw(st.sampled_from(tasks))["name"]
    return row


@st.composite
def _event(draw: st.DrawFn) -> Tree:
    row: dict[str, Any] = {"at": f"{draw(st.integers(-3, BUSY))}m"}
    gone = at(draw(st.sampled_from((0, 0.5, 1, 2.5, 12))))
    kinds = ("restart", "kill", "crash", "crash", "jump", "suspend", "stall", "disk_full")
    kind = draw(st.sampled_from(kinds))
    if kind == "crash":
        points = ("before T1", "after T1", "after T2", "before send", "after send")
        row["crash"] = draw(st.sampled_from(points))
        row["down"] = gone
    elif kind == "jump":
        row["jump"] = draw(st.sampled_from(("-1h", "6h", "-90s", "4s")))
    elif kind in ("suspend", "stall"):
        row[kind] = at(draw(st.sampled_from((0.5, 2, 5, 25))))
    elif kind == "disk_full":
        row[kind] = at(draw(st.sampled_from((1, 8, 20))))
    else:
        row[kind] = gone
    return row


@st.composite
def _answer(draw: st.DrawFn, channels: list[str]) -> Tree:
    begin, length = draw(_span)
    row: dict[str, Any] = {
        "channel": draw(st.sampled_from(channels)),
        "from": f"{begin}m",
        "until": f"{begin + length}m",
        "answer": draw(
            st.sampled_from(("retry", "retry", "retry", "unknown", "permanent", "too long", "ok"))
        ),
    }
    if row["answer"] == "retry" and draw(st.booleans()):
        row["code"] = "429"
        row["retry_after"] = at(draw(st.sampled_from((0.1, 2, 10))))
    if row["answer"] == "unknown" or draw(st.integers(0, 3)) == 0:
        row["times"] = draw(st.integers(1, 3))
    if draw(st.integers(0, 4)) == 0:
        row["takes"] = at(draw(st.sampled_from((0.1, 1.5))))
    return row


@st.composite
def _cases(draw: st.DrawFn, *, calm: bool = False) -> Case:
    """Draw a scenario. calm: the cloud answers, and nothing befalls the watchdog or its channels."""
    tasks = draw(_tasks())
    names = draw(st.lists(st.sampled_from(sorted(RULES)), min_size=1, max_size=4, unique=True))
    rules: list[Tree] = [{"name": name, **RULES[name]} for name in names]
    if draw(st.booleans()):
        rules.append({"name": "pod-gone", "enabled": False})
    channels: dict[str, Tree] = {"chat": {}}
    if draw(st.booleans()):
        channels["zh"] = {"language": "zh", "max_bytes": draw(st.sampled_from((300, 900, 4000)))}
    if draw(st.booleans()):
        channels["oncall"] = {"min_severity": "critical"}
    some = st.integers(0, 3)
    return Case(
        {
            "length": f"{LENGTH}m",
            "defaults": {"repeat": draw(st.sampled_from(("20m", "4h")))},
            "listing": True,
            "status_calls": draw(st.booleans()),
            "page": draw(st.sampled_from((500, 500, 2, 7))),
            "tasks": tasks,
            "channels": channels,
            "rules": rules,
            "series": draw(_series(tasks, _STEADY if calm else _WILD)),
            "logs": draw(_logs(tasks)),
            "statuses": [] if calm else draw(_statuses(tasks)),
            "faults": [] if calm else [draw(_fault(tasks)) for _ in range(draw(some))],
            "events": [] if calm else [draw(_event()) for _ in range(draw(some))],
            "answers": [] if calm else [draw(_answer(list(channels))) for _ in range(draw(some))],
            "expect": [],
        }
    )


@pytest.fixture(scope="session")
def cases() -> st.SearchStrategy[Case]:
    """Scenarios in which anything may happen."""
    return _cases()


@pytest.fixture(scope="session")
def calm_cases() -> st.SearchStrategy[Case]:
    """Scenarios in which only the tasks themselves change."""
    return _cases(calm=True)
