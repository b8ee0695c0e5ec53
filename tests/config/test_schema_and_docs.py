"""The JSON Schema and the reference are made from the tables; both must agree with what is read."""

from pathlib import Path

import pytest
import yaml
from jsonschema import Draft7Validator

from watchdog.config.build import Knowledge, load
from watchdog.config.jsonschema import json_schema
from watchdog.config.reference import documented, part_names, regenerate
from watchdog.config.schema import rule_file
from watchdog.config.schema_rules import COMMON_KEYS, CONDITION_KEYS, METRIC_KEYS, RULE
from watchdog.config.tables import Table
from watchdog.core.conditions.kinds import Condition
from watchdog.core.ruleset import Ruleset
from watchdog.sources.registry import SOURCE_KINDS

ENV = {"TEAM_CHAT_URL": "json://localhost/x", "JOB_WATCHDOG_ALAYA_API_KEY": "some-key-123"}


@pytest.fixture(scope="module")
def validator() -> Draft7Validator:
    schema = json_schema(SOURCE_KINDS)
    Draft7Validator.check_schema(schema)
    return Draft7Validator(schema)


@pytest.fixture(scope="module")
def example(root: Path, knowledge: Knowledge) -> Ruleset:
    loaded = load(root / "rules.example.yaml", env=ENV, knowledge=knowledge)
    assert loaded.warnings == ()
    return loaded.ruleset


def test_the_example_has_a_rule_of_every_kind(
    example: Ruleset, root: Path, knowledge: Knowledge, load_text
) -> None:
    text = (
        (root / "rules.example.yaml").read_text(encoding="utf-8").replace("enabled: false", "enabled: true")
    )

    kinds = {type(rule.condition) for rule in load_text(text, ENV).ruleset.rules}

    assert kinds == set(Condition.__args__)
    assert len(example.rules) >= 12


def test_the_example_fits_its_schema(validator: Draft7Validator, root: Path) -> None:
    data = yaml.safe_load((root / "rules.example.yaml").read_text(encoding="utf-8"))

    assert [error.message for error in validator.iter_errors(data)] == []


@pytest.mark.parametrize(
    "text",
    [
        "rules: [ { name: a, metric: gpu, below: 10%, for: 10 } ]",
        "rules: [ { name: a, metric: gpu, below: 10%, severty: info } ]",
        "rules: [ { name: a, metric: gpu, below: ten } ]",
        "rules: [ { name: a } ]",
        "rules: [ { metric: gpu, below: 1% } ]",
        "rules: [ { name: a, metric: gpu, log: { match: x } } ]",
        "rules: [ { name: a, log: { match: [] } } ]",
        "rules: [ { name: a, status: { enters: faild } } ]",
        "rules: [ { name: a, status: { enters: failed, is: queued } } ]",
        "rules: [ { name: a, metric: gpu, share: { of: 1h } } ]",
        "rules: [ { name: a, progress: {} } ]",
        "defaults: { coverage: 80 }",
        "sources: { a: { kind: alya } }",
        "sources: { a: { kind: alaya, api_kye: x } }",
        "watch: [ { source: a } ]",
        "watch: [ { source: a, task: a, labels: { pod: x } } ]",
        "channels: { a: {} }",
        "ruels: []",
    ],
)
def test_what_the_schema_refuses_is_refused_by_the_loader_too(
    validator: Draft7Validator, problems, text: str
) -> None:
    assert not validator.is_valid(yaml.safe_load(text))
    assert [line for line in problems(text) if "warning: " not in line]


@pytest.mark.parametrize(
    "text",
    [
        "rules: [ { name: pod-gone, enabled: false } ]",
        "rules: [ { name: a, metric: gpu, below: '${LEVEL}', for: '${TIME}', enabled: '${ON}' } ]",
        "rules: [ { name: a, metric: gpu, below: 0.1, repeat: never, select: 'x*', while: any } ]",
        "x-a: 1\nrules:\nchannels:\nwatch:\n",
    ],
)
def test_what_the_loader_takes_is_taken_by_the_schema_too(
    validator: Draft7Validator, load_text, text: str
) -> None:
    load_text(text, {"LEVEL": "10%", "TIME": "5m", "ON": "true"})

    assert validator.is_valid(yaml.safe_load(text))


def test_the_reference_is_up_to_date(root: Path) -> None:
    document = (root / "docs" / "rules.md").read_text(encoding="utf-8")

    assert regenerate(document, SOURCE_KINDS) == document, "run: watchdog schema --docs docs/rules.md"


def test_the_reference_has_every_table(root: Path) -> None:
    document = (root / "docs" / "rules.md").read_text(encoding="utf-8")

    assert documented(document) == part_names(SOURCE_KINDS)
    assert {key.name for key in RULE.keys} == {
        key.name for key in (*COMMON_KEYS, *CONDITION_KEYS, *METRIC_KEYS)
    }


def test_every_key_is_explained() -> None:
    tables: list[Table] = [rule_file(SOURCE_KINDS), RULE]

    assert not [key.name for table in tables for key in table.keys if not key.meaning.endswith((".", "…"))]


def test_the_examples_in_the_reference_load(root: Path, problems) -> None:
    document = (root / "docs" / "rules.md").read_text(encoding="utf-8")
    blocks = [part.split("```")[0] for part in document.split("```yaml\n")[1:]]

    assert len(blocks) > 5
    for block in blocks:
        text = (
            block
            if block.startswith("sources")
            else "rules:\n" + "".join(f"  {line}\n" for line in block.splitlines())
        )
        assert [line for line in problems(text, ENV) if "warning: " not in line] == []
