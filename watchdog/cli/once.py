"""`watchdog once`: everything asked and judged once, as a table."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from watchdog.cli.defaults import DEFAULT_FILE
from watchdog.cli.output import Output, standard_error, standard_output

if TYPE_CHECKING:
    from watchdog.engine.engine import Engine
    from watchdog.engine.once import Judgement


def once(
    file: Annotated[
        Path | None,
        typer.Argument(help="The rule file.", show_default=DEFAULT_FILE),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> int:
    """Ask every source once and judge every rule once. Tells nobody, stores nothing.

    A rule with `for` is judged over the past: what fires here would fire in a daemon that had been
    watching. New log lines and other events are not judged.

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
    return _code(judgements, _blind(engine))


def _code(judgements: "list[Judgement]", blind: list[str]) -> int:
    if any(one.phase == "firing" for one in judgements):
        return 1
    unjudged = any(one.outcome.name in ("ERROR", "THIN", "NODATA") for one in judgements)
    return 3 if blind or unjudged else 0


def _blind(engine: "Engine") -> list[str]:
    """What could not be asked, in words."""
    return [
        f"{key.source} {key.capability}{' of ' + key.task if key.task else ''}: {state.failure}"
        + (f": {state.detail}" if state.detail else "")
        for key, state in sorted(engine.world.health.states.items())
        if state.failures
    ]


def _show(judgements: "list[Judgement]", blind: list[str], output: Output) -> None:
    from datetime import UTC, datetime

    from watchdog.core.wording.languages import wording
    from watchdog.core.wording.verdicts import verdict
    from watchdog.core.wording.voice import voice_of

    voice = voice_of(wording("en"), UTC, datetime.fromtimestamp(0, UTC))
    rows = []
    for one in judgements:
        where = " ".join(one.labels.get(name, "") for name in ("task_name", "node", "pod", "gpu"))
        word = one.phase.upper() if one.phase != "inactive" else "-"
        rows.append(
            (one.rule.name, " ".join(where.split()), one.outcome.name, word, verdict(one.evidence, voice))
        )
    output.table(("RULE", "TASK", "NOW", "ALERT", "WHY"), rows)
    for line in blind:
        output.line(f"cannot see: {line}")


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
