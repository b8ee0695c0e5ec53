"""The areas: what reads something from outside, how often each is played, and what must have come of it."""

from dataclasses import dataclass

from tests.fuzz import alaya, commands, http, logs, rules, siflow
from tests.fuzz.running import Case


@dataclass(frozen=True, slots=True)
class Area:
    """One area. expected: outcomes of which each must be there in a long run, else it plays nothing."""

    case: Case
    weight: float
    expected: tuple[str, ...]


AREAS = {  # a hundred thousand cases as weighted here take three minutes of CPU time
    "rules": Area(rules.rules_case, 20, rules.EXPECTED),
    "scenarios": Area(rules.scenarios_case, 1, ("played", "refused")),
    "commands": Area(commands.case, 4, commands.EXPECTED),
    "logs": Area(logs.case, 8, logs.EXPECTED),
    "http": Area(http.case, 2, http.EXPECTED),
    "alaya-metrics": Area(alaya.metrics_case, 14, alaya.EXPECTED),
    "alaya-logs": Area(alaya.logs_case, 14, alaya.EXPECTED),
    "alaya-list": Area(alaya.list_case, 12, alaya.EXPECTED),
    "alaya-pod": Area(alaya.pod_case, 5, ("taken", "refused")),
    "siflow-objects": Area(siflow.objects_case, 24, siflow.EXPECTED),
    "siflow-frames": Area(siflow.frames_case, 18, ("taken", "refused")),
}
