"""`watchdog once`: everything asked and judged once, as a table."""

import asyncio
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from watchdog.cli.defaults import DEFAULT_FILE
from watchdog.cli.output import Output, Style, standard_error, standard_output

if TYPE_CHECKING:
    from watchdog.core.rules import Rule
    from watchdog.engine.engine import Engine
    from watchdog.engine.once import Judgement


UNJUDGED = ("ERROR", "THIN", "NODATA")


def once(
    file: Annotated[
        Path | None,
        typer.Argument(help="The rule file.", show_default=DEFAULT_FILE),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> int:
    """Ask every source once and judge every rule once. Tells nobody, stores nothing.

    A rule with `for` is judged over the past: what fires here would fire in a daemon that had been
    watching. What is about log lines as they come, and other events, is not judged.

    Exit code 0: nothing fires. 1: something does. 3: something could not be judged.

    Example: watchdog once rules.yaml
    """
    from watchdog.app import evaluate_once
    from watchdog.cli.loading import read_rules, read_settings
    from watchdog.cli.logs import configure
    from watchdog.cli.problems import show_problems
    from watchdog.config.settings import LogLevel
    from watchdog.engine.once import judge_now

    settings = read_settings()
    loaded = read_rules(file or settings.settings.rules_path, settings.names)
    redact = loaded.secrets.redact
    show_problems((*settings.warnings, *loaded.warnings), standard_error(), {}, redact)
    configure(LogLevel.ERROR, settings.settings.log_format, redact)
    engine = asyncio.run(evaluate_once(loaded.ruleset))
    judgements = list(judge_now(engine))
    output = standard_output()
    if as_json:
        output.json({"rules": [_value(one) for one in judgements], "blind": _blind(engine)})
    else:
        _show(judgements, _blind(engine), output)
        for line in _left_out(loaded.ruleset.rules, judgements):
            output.line(output.styled(line, Style.DIM))
    return _code(judgements, _blind(engine))


def _code(judgements: "list[Judgement]", blind: list[str]) -> int:
    if any(one.phase == "firing" for one in judgements):
        return 1
    unjudged = any(one.outcome.name in UNJUDGED for one in judgements)
    return 3 if blind or unjudged else 0


def _blind(engine: "Engine") -> list[str]:
    """What could not be asked, in words."""
    return [
        " ".join(filter(None, (key.source, key.capability, key.item, f"of {key.task}" if key.task else "")))
        + f": {state.failure}"
        + (f": {state.detail}" if state.detail else "")
        for key, state in sorted(engine.world.health.states.items())
        if state.failures
    ]


def _show(judgements: "list[Judgement]", blind: list[str], output: Output) -> None:
    """One row a rule and task: how its labelsets stand, and the one that matters most."""
    groups: dict[tuple[str, str], list[Judgement]] = {}
    for one in judgements:
        groups.setdefault((one.rule.name, one.labels.get("task_name", "")), []).append(one)
    rows = [(rule, task, _alert(own), _now(own), _why(own)) for (rule, task), own in groups.items()]
    output.table(("RULE", "TASK", "ALERT", "NOW", "WHY"), rows)
    for line in blind:
        output.line(f"cannot see: {line}")


def _left_out(rules: "Sequence[Rule]", judgements: "list[Judgement]") -> Iterator[str]:
    """Say which rules have no row, and why, so that nobody takes them for lost."""
    from watchdog.engine.once import GOES_ON

    judged = {one.rule.name for one in judgements}
    lines = [rule.name for rule in rules if isinstance(rule.condition, GOES_ON)]
    waiting = [rule.name for rule in rules if not rule.is_event and rule.name not in (*judged, *lines)]
    events = [rule.name for rule in rules if rule.is_event]
    if waiting:
        yield (
            f"nothing to judge now: {', '.join(waiting)} (no task in the right status, within after_start, "
            "no such data, or too few members)"
        )
    if lines:
        yield f"about lines as they come, judged by a daemon that goes on watching: {', '.join(lines)}"
    if events:
        yield f"events, told when they happen: {', '.join(events)}"


def _alert(own: "list[Judgement]") -> str:
    """How many of the labelsets fire, or are about to: `FIRING`, `FIRING 3 of 32`, `pending`, `-`."""
    for phase, word in (("firing", "FIRING"), ("pending", "pending")):
        count = sum(one.phase == phase for one in own)
        if count:
            return word if len(own) == 1 else f"{word} {count} of {len(own)}"
    return "-"


def _now(own: "list[Judgement]") -> str:
    counts = Counter(one.outcome.name for one in own)
    return ", ".join(name if len(own) == 1 else f"{count} {name}" for name, count in counts.most_common())


def _why(own: "list[Judgement]") -> str:
    """What is found of the labelset that matters most, with its place among several."""
    from watchdog.core.wording.languages import wording
    from watchdog.core.wording.verdicts import finding
    from watchdog.core.wording.voice import voice_of

    most = max(own, key=_weight)
    where = " ".join(most.labels[name] for name in ("node", "pod", "gpu") if name in most.labels)
    voice = voice_of(wording("en"), UTC, datetime.fromtimestamp(0, UTC))
    text = finding(most.evidence, most.outcome, voice)
    if where and len(own) > 1:
        text = f"{text} ({where})"
    return "; ".join(filter(None, (text, _unjudged(most))))


def _weight(one: "Judgement") -> tuple[bool, bool, bool, float]:
    """How much a labelset matters: a firing one, one that cannot be judged, the one nearest to the limit."""
    evidence, firing = one.evidence, one.phase == "firing"
    value = evidence.value if evidence.value is not None else -math.inf
    near = value if evidence.above or evidence.value is None else -value
    return firing, firing or one.phase == "pending", one.outcome.name in UNJUDGED, near


def _unjudged(one: "Judgement") -> str:
    """Why there is no verdict; "" if there is one."""
    evidence, outcome = one.evidence, one.outcome.name
    if outcome == "THIN" and evidence.of > 1:
        return f"not judged: the window of {evidence.covered} of {evidence.of} series is covered"
    reasons = {
        "THIN": "its window is not covered yet",
        "NODATA": "the source answers, but has no data of it",
        "ERROR": "no valid answer for what it uses",
    }
    if outcome in reasons:
        return f"not judged: {evidence.detail or reasons[outcome]}"
    said = evidence.summary.rpartition(" ")[2]
    return "" if evidence.detail.lower() == said else evidence.detail  # the cloud's word is often ours


def _value(one: "Judgement") -> dict[str, object]:
    evidence = one.evidence
    return {
        "rule": one.rule.name,
        "labels": dict(one.labels),
        "outcome": one.outcome.name,
        "phase": one.phase,
        "value": evidence.value,
        "threshold": evidence.threshold,
        "unit": evidence.unit,
        "summary": evidence.summary,
        "affected": evidence.affected,
        "of": evidence.of,
        "detail": evidence.detail,
    }
