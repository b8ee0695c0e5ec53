"""From the section `rules` to core rules: the common keys, the built-in rule, and which key goes with what.

What a rule looks for is built by `build_conditions`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from fnmatch import fnmatchcase

from watchdog.config import schema_rules as keys
from watchdog.config.build_conditions import Surroundings, condition
from watchdog.config.kinds import Pairs, entry_name
from watchdog.config.report import Report
from watchdog.config.schema_rules import WhileWord
from watchdog.config.suggest import did_you_mean
from watchdog.config.tables import Fields, Key
from watchdog.config.yaml_nodes import MapNode, ScalarNode
from watchdog.core.conditions.kinds import Absent, By, Condition, LogCount, Silent, StatusEnters, StatusIs
from watchdog.core.labels import Labels
from watchdog.core.rules import Level, OnNoData, Rule, Selector, Severity
from watchdog.core.tasks import Status

POD_GONE = "pod-gone"
RESERVED = "watchdog/"  # names of the notices about ourselves
CONSOLE = "console"  # the channel there is when none is configured
RUNNING = frozenset({Status.RUNNING, Status.UNKNOWN})
_OWN_NAMES = ("source", "task", "id", "name", "task_name")  # what `select` knows of every task


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleDefaults:
    """What a rule has unless it says otherwise."""

    repeat: timedelta
    coverage: float
    quorum: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The names a rule may refer to. metrics: by source, of the sources that have no others."""

    channels: Sequence[str]
    sources: Sequence[str]
    labels: frozenset[str]
    metrics: Mapping[str, frozenset[str]]


def built_in(defaults: RuleDefaults) -> Rule:
    """The rule that is on without being written: an expected pod gives no data."""
    return Rule(
        name=POD_GONE,
        condition=Absent(metric="gpu", by=By.POD),
        description="A pod that gave GPU data no longer does, while its source answers.",
        hold=timedelta(minutes=10),
        severity=Severity.WARNING,
        repeat=defaults.repeat,
        coverage=defaults.coverage,
        quorum=defaults.quorum,
        while_status=RUNNING,
        builtin=True,
    )


class RuleBuilder:
    """Builds rules one by one; holds what they have in common."""

    def __init__(self, around: Surroundings, defaults: RuleDefaults, known: Known, report: Report) -> None:
        self._around = around
        self._defaults = defaults
        self._known = known
        self._report = report

    def build(self, entries: Iterable[Fields]) -> tuple[Rule, ...]:
        """Return the rules that are enabled, the built-in one first unless the file has its name."""
        rules: list[Rule] = []
        first_line: dict[str, int] = {}
        for index, fields in enumerate(entries, 1):
            name = fields.get(keys.NAME)
            report = self._report.scoped(_title(fields, index))
            if fields.get(keys.ENABLED) is False:
                report = report.without_warnings()
            if name is not None:
                self._check_name(name, first_line, report)
            if _switches_off_built_in(fields):
                continue
            rule = self._rule(fields, report)
            if rule is not None and fields.value(keys.ENABLED, default=True):
                rules.append(rule)
        if POD_GONE not in first_line:
            rules.insert(0, built_in(self._defaults))
        return tuple(rules)

    def _check_name(self, name: ScalarNode, first_line: dict[str, int], report: Report) -> None:
        if name.text in first_line:
            message = f"the name is taken by the rule in line {first_line[name.text]}"
            report.error(name.mark, message, "a rule's name is its identity")
        if name.text.startswith(RESERVED):
            report.error(name.mark, f"names that begin with {RESERVED} are the program's own")
        first_line.setdefault(name.text, name.mark.line)

    def _rule(self, fields: Fields, report: Report) -> Rule | None:
        found = condition(fields, self._around, report)
        levels = self._levels(fields, report)
        notify = self._notify(fields, report)
        select = self._selector(fields, report)
        if found is None:
            return None
        self._check_keys(fields, found, report)
        self._check_metric(fields, found, select, report)
        name, description = fields.get(keys.NAME), fields.get(keys.DESCRIPTION)
        rule = Rule(
            name="" if name is None else name.text,
            condition=found,
            description="" if description is None else description.text.strip(),
            select=select,
            severity=fields.value(keys.SEVERITY, Severity.WARNING),
            hold=fields.value(keys.FOR, timedelta()),
            keep_firing_for=fields.value(keys.KEEP_FIRING, timedelta()),
            levels=levels,
            repeat=fields.value(keys.REPEAT, self._defaults.repeat),
            labels=_labels(fields, keys.LABELS),
            annotations={key.text: value.text for key, value in fields.value(keys.ANNOTATIONS, ())},
            notify=notify,
            on_no_data=fields.value(keys.ON_NO_DATA, OnNoData.HOLD),
            coverage=fields.value(keys.COVERAGE, self._defaults.coverage),
            quorum=fields.value(keys.QUORUM, self._defaults.quorum),
            after_start=fields.value(keys.AFTER_START, timedelta()),
            while_status=self._while(fields, found, report),
            quiet_for=fields.value(keys.QUIET_FOR, timedelta(minutes=30)),
        )
        return replace(rule, hold=levels[0].hold, severity=levels[0].severity) if levels else rule

    def _check_metric(self, fields: Fields, found: Condition, select: Selector, report: Report) -> None:
        """Warn of the sources that lack the rule's metric, if others have it."""
        metric = getattr(found, "metric", "")
        if not metric or (self._around.metrics is not None and metric not in self._around.metrics):
            return  # no source has it, which was said
        globs = [glob for name, glob in select.patterns if name == "source"]
        for source, names in self._known.metrics.items():
            if metric not in names and all(fnmatchcase(source, glob) for glob in globs):
                message = f"source {source!r} has no metric {metric!r}: the rule leaves its tasks out"
                report.warning(fields.mark, message)

    def _check_keys(self, fields: Fields, found: Condition, report: Report) -> None:
        """Report common keys that mean nothing for this kind of rule."""
        if found.is_event:
            hint = "an event happens and does not recover; it ends after quiet_for"
            refused: tuple[Key[object], ...] = (keys.FOR, keys.LEVELS, keys.KEEP_FIRING)
            for key in refused:
                if fields.has(key):
                    report.error(fields.key_at(key), f"{key.name} on an event", hint)
        elif fields.has(keys.QUIET_FOR):
            hint = "did you mean keep_firing_for?"
            report.error(fields.key_at(keys.QUIET_FOR), "quiet_for is for events, this is a state", hint)
        data_is_not_judged = found.is_event or isinstance(found, Absent | Silent | LogCount | StatusIs)
        no_effect: tuple[Key[object], ...] = (keys.ON_NO_DATA, keys.COVERAGE, keys.QUORUM)
        for key in no_effect:
            if data_is_not_judged and fields.has(key):
                report.warning(fields.key_at(key), f"{key.name} has no effect on this kind of rule")

    def _levels(self, fields: Fields, report: Report) -> tuple[Level, ...]:
        if fields.has(keys.LEVELS):
            for key in (keys.FOR, keys.SEVERITY):
                if fields.has(key):
                    report.error(
                        fields.key_at(key), f"{key.name} and levels exclude each other", "levels say it"
                    )
        levels: list[Level] = []
        for entry in fields.value(keys.LEVELS, ()):
            hold, severity = entry.get(keys.LEVEL_FOR), entry.get(keys.LEVEL_SEVERITY)
            if hold is None or severity is None:
                continue
            if levels and hold <= levels[-1].hold:
                report.error(entry.at(keys.LEVEL_FOR), "levels: each must come later than the one before")
            elif levels and severity.rank <= levels[-1].severity.rank:
                message = "levels: each must be more severe than the one before"
                report.error(entry.at(keys.LEVEL_SEVERITY), message)
            levels.append(Level(hold=hold, severity=severity))
        return tuple(levels)

    def _while(self, fields: Fields, found: Condition, report: Report) -> frozenset[Status] | None:
        words = fields.get(keys.WHILE)
        if words is None:
            on_status = isinstance(found, StatusEnters | StatusIs)
            return None if found.is_event or on_status else RUNNING
        if WhileWord.ANY in words:
            if len(words) > 1:
                report.error(fields.at(keys.WHILE), "while: any includes all others", "leave them out")
            return None
        statuses = frozenset(Status(word) for word in words)
        if Status.RUNNING in statuses:
            statuses |= RUNNING
        if isinstance(found, StatusIs) and not statuses & found.statuses:
            report.warning(fields.at(keys.WHILE), "while excludes every status of is: it can never fire")
        return statuses

    def _notify(self, fields: Fields, report: Report) -> tuple[str, ...]:
        known = self._known.channels or (CONSOLE,)
        found = fields.value(keys.NOTIFY, ())
        for node in found:
            if node.text not in known:
                hint = did_you_mean(node.raw, known)
                report.error(node.mark, f"notify: there is no channel {node.shown!r}", hint)
        return tuple(dict.fromkeys(node.text for node in found))

    def _selector(self, fields: Fields, report: Report) -> Selector:
        pairs = fields.value(keys.SELECT, ())
        for key, glob in pairs:
            if key.text not in _OWN_NAMES and key.text not in self._known.labels:
                hint = did_you_mean(key.text, [*_OWN_NAMES, *sorted(self._known.labels)])
                message = f"select: no watch entry has a label {key.shown!r}: it fits no task"
                report.warning(key.mark, message, hint)
            elif key.text == "source" and not self._any_source(glob.text):
                hint = did_you_mean(glob.raw, self._known.sources)
                report.warning(
                    glob.mark, f"select: no source is called {glob.shown!r}: it fits no task", hint
                )
        return Selector(patterns=tuple((key.text, glob.text) for key, glob in pairs))

    def _any_source(self, glob: str) -> bool:
        return any(fnmatchcase(name, glob) for name in self._known.sources)


def _title(fields: Fields, index: int) -> str:
    """Return what messages call a rule."""
    entry = fields.entries.get(keys.NAME.name)
    node = MapNode(mark=fields.mark, entries=(entry,) if entry else ())
    return entry_name(node, index, keys.NAME.name)


def _switches_off_built_in(fields: Fields) -> bool:
    """Whether this is `{name: pod-gone, enabled: false}` and nothing to look for."""
    name = fields.get(keys.NAME)
    off = fields.get(keys.ENABLED) is False
    return (
        off and name is not None and name.text == POD_GONE and not any(map(fields.has, keys.CONDITION_KEYS))
    )


def _labels(fields: Fields, key: Key[Pairs]) -> Labels:
    return Labels((name.text, value.text) for name, value in fields.value(key, ()))
