from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from watchdog.config.build import Knowledge, Loaded, loads
from watchdog.core.rules import Rule
from watchdog.errors import ConfigError
from watchdog.sources.registry import SOURCE_KINDS
from watchdog.text.patterns import Re2Engine

ROOT = Path(__file__).resolve().parent.parent.parent
PLACES = """\
sources:
  alaya: { kind: alaya }
watch:
  - { source: alaya, task: "1", name: llama, labels: { team: nlp } }
channels:
  team: { url: "json://localhost/a" }
  oncall: { url: "json://localhost/b" }
rules:
"""

Load = Callable[..., Loaded]
Problems = Callable[..., list[str]]


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def knowledge() -> Knowledge:
    return Knowledge(engine=Re2Engine(), kinds=SOURCE_KINDS)


@pytest.fixture(scope="session")
def load_text(knowledge: Knowledge) -> Load:
    """Load a text; `env` is what `${NAME}` finds."""

    def load(text: str | bytes, env: Mapping[str, str] | None = None, using: Knowledge = knowledge) -> Loaded:
        return loads(text, file="rules.yaml", env={} if env is None else env, knowledge=using)

    return load


@pytest.fixture(scope="session")
def problems(load_text: Load) -> Problems:
    """Every problem of a text as "line:column: message (hint)", warnings marked."""

    def found(text: str | bytes, env: Mapping[str, str] | None = None, **more: Knowledge) -> list[str]:
        try:
            told = load_text(text, env, **more).warnings
        except ConfigError as error:
            told = error.problems
        return [str(problem).removeprefix("rules.yaml:") for problem in told]

    return found


@pytest.fixture(scope="session")
def rule_problems(problems: Problems) -> Problems:
    """Problems of one rule, written as the inside of its flow mapping; line 1 is the rule's."""

    def found(rule: str, env: Mapping[str, str] | None = None) -> list[str]:
        first = PLACES.count("\n") + 1
        told = problems(f"{PLACES}  - {{ name: r, {rule} }}\n", env)
        return [line.removeprefix(f"{first}:").replace("rules: r: ", "") for line in told]

    return found


@pytest.fixture(scope="session")
def rule_of(load_text: Load) -> Callable[[str], Rule]:
    """The one rule that this inside of a flow mapping gives."""

    def build(rule: str) -> Rule:
        rules = load_text(f"{PLACES}  - {{ name: r, {rule} }}\n").ruleset.rules
        return next(rule for rule in rules if rule.name == "r")

    return build
