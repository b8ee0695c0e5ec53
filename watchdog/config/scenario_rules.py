"""The rule part of a scenario as a whole rule file: the parts it leaves out are filled in.

So a scenario's rules, defaults and channels are read by exactly the code that reads a rule file,
with the positions of the scenario file.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from watchdog.config.build import Knowledge, build
from watchdog.config.report import Mark, Report
from watchdog.config.scenario import SOURCE, Scenario, ScenarioTask
from watchdog.config.secrets import SecretBook
from watchdog.config.yaml_nodes import Entry, ListNode, MapNode, Node, ScalarNode
from watchdog.core.durations import format_duration
from watchdog.core.ruleset import Ruleset
from watchdog.ports import MetricInfo


@dataclass(frozen=True, slots=True)
class ScriptedKind:
    """The kind of a scenario's only source; it has no options of its own."""

    name: str = "scripted"
    options: tuple[()] = ()
    metrics: tuple[MetricInfo, ...] = ()


def ruleset_of(
    scenario: Scenario, knowledge: Knowledge, report: Report, *, rules: Node | None = None
) -> Ruleset | None:
    """Return the ruleset a scenario plays, or None with the reasons in `report`.

    rules: other rules than the scenario's own, for a restart.
    """
    at = scenario.rules.mark
    options: dict[str, Node] = {"kind": _text("scripted", at)}
    if scenario.poll is not None:
        options["poll"] = _text(format_duration(scenario.poll), at)
    parts: dict[str, Node] = {
        "sources": _map({SOURCE: _map(options, at)}, at),
        "watch": ListNode(mark=at, items=tuple(_watched(task, at) for task in scenario.tasks)),
        "channels": _map({name: _channel(node) for name, node in scenario.channels.items()}, at),
        "rules": rules if rules is not None else scenario.rules,
    }
    if scenario.defaults is not None:
        parts["defaults"] = scenario.defaults
    kinds = {"scripted": ScriptedKind()}
    scripted = replace(knowledge, kinds=kinds, inspect_url=None, inspect_source=None)
    errors = report.errors
    ruleset = build(_map(parts, at), book=SecretBook(), env={}, knowledge=scripted, report=report)
    return None if report.errors > errors else ruleset


def _watched(task: ScenarioTask, at: Mark) -> Node:
    entry: dict[str, Node] = {"source": _text(SOURCE, at), "name": _text(task.task.name, at)}
    if not task.found:
        entry["task"] = _text(task.task.id, at)
    if task.task.labels:
        entry["labels"] = _map({name: _text(value, at) for name, value in task.task.labels.pairs}, at)
    return _map(entry, at)


def _channel(node: Node) -> Node:
    own: Iterable[Entry] = node.entries if isinstance(node, MapNode) else ()
    url = Entry(key=_text("url", node.mark), value=_text("console://terminal", node.mark))
    return MapNode(mark=node.mark, entries=(url, *own))


def _map(parts: dict[str, Node], at: Mark) -> MapNode:
    return MapNode(
        mark=at, entries=tuple(Entry(key=_text(name, at), value=node) for name, node in parts.items())
    )


def _text(text: str, at: Mark) -> ScalarNode:
    return ScalarNode(mark=at, text=text, raw=text, plain=False)
