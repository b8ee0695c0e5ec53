import os
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta

from watchdog.core.conditions.kinds import Aggregate, Comparison, StatusEnters, Threshold
from watchdog.core.rules import Rule, Severity
from watchdog.core.tasks import Status

RULE = Rule(
    name="idle",
    condition=Threshold(
        metric="gpu",
        aggregate=Aggregate.AVG,
        window=timedelta(hours=1),
        comparison=Comparison(above=False, threshold=0.1),
    ),
    while_status=frozenset(Status),
)
PRINTED = """
from watchdog.core.conditions.kinds import StatusEnters
from watchdog.core.rules import Rule
from watchdog.core.tasks import Status
every = frozenset(Status)
print(Rule(name="a", condition=StatusEnters(statuses=every), while_status=every).identity)
"""


def test_a_rule_is_the_same_rule_in_every_process() -> None:
    """An alert remembers the identity across restarts: sets must not print in hash order."""
    printed = {
        subprocess.run(
            [sys.executable, "-c", PRINTED],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }

    assert len(printed) == 1


def test_identity_changes_with_what_is_looked_for_and_with_nothing_else() -> None:
    edited = [
        replace(RULE, coverage=0.5),
        replace(RULE, while_status=None),
        replace(RULE, condition=replace(RULE.condition, metric="vram")),
        replace(RULE, condition=StatusEnters(statuses=frozenset({Status.FAILED}))),
    ]
    same = [
        replace(RULE, severity=Severity.INFO),
        replace(RULE, description="x"),
        replace(RULE, hold=timedelta(hours=2)),
        replace(RULE, notify=("team",)),
    ]

    assert len({rule.identity for rule in edited} | {RULE.identity}) == len(edited) + 1
    assert {rule.identity for rule in same} == {RULE.identity}
