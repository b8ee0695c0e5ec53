"""Everything evaluated once: a `for` that has passed in the data counts as passed."""

from datetime import timedelta

import pytest

from watchdog.core.alerts import Phase
from watchdog.core.conditions.kinds import Across, Aggregate, By, Comparison, LogEvent, LogMatch, Threshold
from watchdog.core.outcomes import Outcome
from watchdog.core.rules import Level, Rule, Severity
from watchdog.engine.once import Judgement, ask_everything, judge_now

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def low(**more: object) -> Rule:
    condition = Threshold(
        metric="gpu",
        aggregate=Aggregate.LAST,
        window=None,
        comparison=Comparison(above=False, threshold=0.1),
        across=Across.AVG,
        by=By.POD,
    )
    return Rule(name="low", condition=condition, **more)  # type: ignore[arg-type]


@pytest.fixture
def judge(bench):  # type: ignore[no-untyped-def]
    """What one evaluation at minute 0 says, by pod."""

    def judged(rule: Rule) -> dict[str, Judgement]:
        bench.rules = (rule,)

        async def main() -> dict[str, Judgement]:
            engine = bench.engine()
            await ask_everything(engine)
            found = {one.labels.get("pod", ""): one for one in judge_now(engine)}
            await engine.stop()
            return found

        return bench.run(main)

    return judged


def series(bench, **since: int) -> None:  # type: ignore[no-untyped-def]
    """Pods that have been low for so many minutes."""
    every = range(-300, 1)
    for pod, minutes in since.items():
        bench.cloud.put("gpu", every, [0.05 if n > -minutes else 0.9 for n in every], pod=pod)


def test_a_hold_that_has_passed_fires_one_that_has_not_waits(bench, judge) -> None:  # type: ignore[no-untyped-def]
    series(bench, fine=0, short=30, long=90)
    found = judge(low(hold=HOUR))
    assert {pod: one.phase for pod, one in found.items()} == {
        "fine": Phase.INACTIVE,
        "short": Phase.PENDING,
        "long": Phase.FIRING,
    }
    assert {pod: one.outcome for pod, one in found.items()} == {
        "fine": Outcome.FALSE,
        "short": Outcome.TRUE,
        "long": Outcome.TRUE,
    }


def test_a_hold_of_half_a_day_is_looked_at_to_its_beginning(bench, judge) -> None:  # type: ignore[no-untyped-def]
    bench.cloud.put("gpu", range(-800, 1), 0.05, pod="long")
    bench.cloud.put("gpu", range(-800, 1), [0.05 if n > -700 else 0.9 for n in range(-800, 1)], pod="short")
    assert {pod: one.phase for pod, one in judge(low(hold=12 * HOUR)).items()} == {
        "short": Phase.PENDING,
        "long": Phase.FIRING,
    }


def test_without_a_hold_what_is_true_fires(bench, judge) -> None:  # type: ignore[no-untyped-def]
    series(bench, fine=0, low=1)
    assert {pod: one.phase for pod, one in judge(low()).items()} == {
        "fine": Phase.INACTIVE,
        "low": Phase.FIRING,
    }


def test_the_first_level_decides(bench, judge) -> None:  # type: ignore[no-untyped-def]
    series(bench, short=5, long=30)
    levels = (
        Level(hold=10 * MINUTE, severity=Severity.WARNING),
        Level(hold=2 * HOUR, severity=Severity.CRITICAL),
    )
    assert {pod: one.phase for pod, one in judge(low(levels=levels)).items()} == {
        "short": Phase.PENDING,
        "long": Phase.FIRING,
    }


def test_evidence_is_of_now(bench, judge) -> None:  # type: ignore[no-untyped-def]
    series(bench, long=90)
    assert judge(low(hold=HOUR))["long"].evidence.value == 0.05


def test_events_are_not_judged(bench, judge) -> None:  # type: ignore[no-untyped-def]
    bench.cloud.line(-1, "ERROR")
    match = LogMatch(match=(bench.patterns.compile("ERROR"),))
    assert judge(Rule(name="errors", condition=LogEvent(lines=match))) == {}


def test_looking_changes_nothing(bench) -> None:  # type: ignore[no-untyped-def]
    series(bench, long=90)
    bench.rules = (low(hold=HOUR),)

    async def main() -> None:
        engine = bench.engine()
        await ask_everything(engine)
        before = (engine.world.book, dict(engine.world.incidents), engine.world.health)
        list(judge_now(engine))
        assert (engine.world.book, engine.world.incidents, engine.world.health) == before
        await engine.stop()

    bench.run(main)


def test_an_engine_is_not_spelt_out_with_all_it_holds(bench) -> None:  # type: ignore[no-untyped-def]
    async def main() -> int:
        engine = bench.engine()
        await engine.stop()
        return len(repr(engine))

    assert bench.run(main) < 200
