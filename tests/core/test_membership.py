"""What a message says of an incident that opened long ago: how it stands now, or when it was seen last."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np

from watchdog.core.alerts import Alert, Incident, IncidentMember, Phase, alert_id
from watchdog.core.conditions.kinds import Aggregate, Comparison, Threshold
from watchdog.core.labels import Labels
from watchdog.core.membership import Verdicts, as_of_now
from watchdog.core.moments import Moment, Tick
from watchdog.core.outcomes import Evaluation, Evidence, Outcome
from watchdog.core.rules import Rule, Severity

T0 = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
NOW = T0 + timedelta(hours=4)
ME = Labels.of(source="alaya", task="alaya/1", task_name="llama")
PODS = tuple(ME.plus({"pod": f"p{number}"}) for number in range(2))
LOW = Rule(
    name="low",
    condition=Threshold(
        metric="gpu", aggregate=Aggregate.LAST, window=None, comparison=Comparison(above=False, threshold=0.2)
    ),
)
TICK = Tick(
    moment=Moment(at=NOW, watched=timedelta(hours=1)),
    elapsed=timedelta(minutes=1),
    run=timedelta(hours=1),
    interval=timedelta(minutes=1),
)
OPENING = Evidence(metric="gpu", value=0.05, threshold=0.2, affected=2, of=2, spark=(0.9, 0.05))


def incident(labelsets: tuple[Labels, ...]) -> Incident:
    return Incident(
        id="abc",
        rule="low",
        labels=ME,
        severity=Severity.WARNING,
        event=False,
        opened_at=T0,
        since=T0,
        updated_at=T0,
        members=tuple(IncidentMember(labels=one, since=T0, value=0.05) for one in labelsets),
        first=OPENING,
        latest=OPENING,
    )


def known(values: Mapping[Labels, float], judged: datetime) -> dict[Labels, Alert]:
    return {
        labels: Alert(
            id=alert_id("low", labels),
            rule="low",
            labels=labels,
            phase=Phase.FIRING,
            since=T0,
            value=value,
            judged=judged,
        )
        for labels, value in values.items()
    }


def verdicts(values: Mapping[Labels, float], outcome: Outcome = Outcome.TRUE) -> Verdicts:
    numbers = list(values.values())
    evaluation = Evaluation(
        rule="low",
        labels=tuple(values),
        outcome=np.full((len(values), 1), int(outcome), np.int8),
        value=np.array(numbers, np.float64).reshape(-1, 1),
        since_ns=np.zeros((len(values), 1), np.int64),
        explain=lambda g, _t: replace(OPENING, value=numbers[g], spark=(0.1,)),
    )
    return Verdicts(LOW, evaluation, 0, TICK)


def test_values_are_those_of_now() -> None:
    values = {PODS[0]: 0.12, PODS[1]: 0.11}

    now = as_of_now(verdicts(values), incident(PODS), known(values, NOW))

    assert now.latest.value == 0.11
    assert [(member.labels, member.value) for member in now.latest.members] == [
        (PODS[1], 0.11),
        (PODS[0], 0.12),
    ]
    assert {member.labels: member.value for member in now.active} == values
    assert now.first == OPENING


def test_what_cannot_be_judged_now_is_said_as_it_was_last() -> None:
    last = NOW - timedelta(hours=1)
    values = {PODS[0]: 0.12, PODS[1]: 0.11}

    now = as_of_now(verdicts(values, Outcome.ERROR), incident(PODS), known(values, last))

    assert now.latest.value == 0.11
    assert now.latest.detail == f"not judged since {last.isoformat()}"
    assert (now.latest.spark, now.latest.affected) == ((), 2)


def test_a_labelset_that_is_gone_from_the_evaluation_is_said_as_it_was_last() -> None:
    now = as_of_now(verdicts({}), incident((ME,)), known({ME: 0.1}, T0))

    assert (now.latest.value, now.latest.affected) == (0.1, 0)
    assert now.latest.detail == f"not judged since {T0.isoformat()}"
