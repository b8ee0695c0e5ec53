"""Scenario files: from a path to a verdict."""

from dataclasses import dataclass, field
from pathlib import Path

from watchdog.config.build import Knowledge
from watchdog.config.report import Report
from watchdog.config.scenario import Scenario, read_scenario
from watchdog.config.scenario_rules import ruleset_of
from watchdog.config.yaml_nodes import MAX_BYTES, parse
from watchdog.core.rendering import TemplateCompiler
from watchdog.core.ruleset import Ruleset
from watchdog.errors import ConfigError, Problem
from watchdog.replay.overhearing import Remark, overheard
from watchdog.replay.play import Play
from watchdog.replay.timeline import Verdict, judge
from watchdog.replay.world import Sent
from watchdog.store.memory import MemoryState


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A scenario file that can be played. `rulesets`: by number of the event that brings it."""

    path: Path
    scenario: Scenario
    ruleset: Ruleset
    rulesets: dict[int, Ruleset] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What came of one scenario."""

    prepared: Prepared
    sent: tuple[Sent, ...]
    verdict: Verdict
    slots: int
    remarks: tuple[Remark, ...] = ()  # what the engine wrote to its log


def prepare(path: Path, knowledge: Knowledge) -> Prepared:
    """Read a scenario file.

    Raises:
        ConfigError: with everything that is wrong with it.
    """
    report = Report(str(path))
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError([Problem(file=str(path), message=f"cannot be read: {error.strerror}")]) from error
    node = parse(content, report)
    scenario = None if node is None else read_scenario(node, report)
    ruleset = None if scenario is None else ruleset_of(scenario, knowledge, report)
    rulesets: dict[int, Ruleset] = {}
    if scenario is not None:
        for number, event in enumerate(scenario.events):
            rules = event.rules if event.reload is None else event.reload
            other = None if rules is None else ruleset_of(scenario, knowledge, report, rules=rules)
            if other is not None:
                rulesets[number] = other
    if scenario is None or ruleset is None or report.errors:
        raise ConfigError(report.problems(lambda text: text))
    return Prepared(path=path, scenario=scenario, ruleset=ruleset, rulesets=rulesets)


def play(prepared: Prepared, knowledge: Knowledge, compile_template: TemplateCompiler | None) -> Played:
    """Play a scenario and judge it."""
    state = MemoryState()
    performance = Play(
        scenario=prepared.scenario,
        ruleset=prepared.ruleset,
        rulesets=prepared.rulesets,
        open_store=state.open,
        patterns=knowledge.engine,
        compile_template=compile_template,
    )
    try:
        with overheard(performance.offset) as remarks:
            sent = performance.run()
    finally:
        state.discard()
    return Played(
        prepared=prepared,
        sent=sent,
        verdict=judge(prepared.scenario, sent),
        slots=performance.slots,
        remarks=tuple(remarks),
    )
