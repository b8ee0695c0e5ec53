"""Everything evaluated once: what each rule says now, and whether its `for` has passed.

Instead of waiting, the same evaluator judges the slots of the past `for` at once, and the same
lifecycle walks over them. Judging reads an engine's world and changes nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from watchdog.core.alerts import Phase
from watchdog.core.conditions.kinds import LogCount, Silent
from watchdog.core.durations import duration_ns, from_ns, to_ns
from watchdog.core.evaluation import evaluate
from watchdog.core.incidents import Book, apply
from watchdog.core.labels import Labels
from watchdog.core.lifecycle import advance
from watchdog.core.membership import Verdicts
from watchdog.core.moments import Moment, Tick
from watchdog.core.outcomes import Evidence, Outcome
from watchdog.core.rules import Rule
from watchdog.core.view import View
from watchdog.engine.engine import Engine
from watchdog.engine.intake import Arrivals

MOST_SLOTS = 20_000
GOES_ON = (LogCount, Silent)  # go by the lines that come while somebody watches: nothing can be said at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """One rule × labelset, now. phase: inactive, pending or firing, had we been watching."""

    rule: Rule
    labels: Labels
    outcome: Outcome
    phase: Phase
    evidence: Evidence


async def ask_everything(engine: Engine) -> None:
    """Ask every source once, as far back as the longest `for` reaches, and run one slot."""
    engine.world.whole_holds = True
    await engine.resume()
    await engine.slot(engine.parts.clock.monotonic())


def judge_now(engine: Engine) -> Iterator[Judgement]:
    """Yield what every state rule says, labelset by labelset.

    Events are not judged: they happen. Nor are rules about the lines that come, see `GOES_ON`.
    """
    view = engine.runner.view(Arrivals())
    for rule in engine.world.ruleset.rules:
        if not (rule.is_event or isinstance(rule.condition, GOES_ON)):
            yield from _judge(rule, view, engine)


def _judge(rule: Rule, view: View, engine: Engine) -> Iterator[Judgement]:
    interval = engine.schedule.interval
    hold = max([rule.hold, *(level.hold for level in rule.levels[:1])])
    count = min(int(hold / interval) + 2, MOST_SLOTS)
    end_ns = to_ns(engine.world.now)
    slots = end_ns - np.arange(count - 1, -1, -1, dtype=np.int64) * duration_ns(interval)
    evaluation = evaluate(rule, view, slots)
    book = Book()
    for column in range(count):
        passed = interval * column
        tick = Tick(
            moment=Moment(at=from_ns(int(slots[column])), watched=passed),
            elapsed=interval if column else timedelta(),
            run=passed + hold,
            interval=interval,
        )
        book = apply(book, advance(Verdicts(rule, evaluation, column, tick, view.tasks), book))
    known = book.known(rule.name)
    for g, labels in enumerate(evaluation.labels):
        alert = known.get(labels)
        yield Judgement(
            rule=rule,
            labels=labels,
            outcome=Outcome(int(evaluation.outcome[g, -1])),
            phase=alert.phase if alert is not None else Phase.INACTIVE,
            evidence=evaluation.explain(g, count - 1),
        )
