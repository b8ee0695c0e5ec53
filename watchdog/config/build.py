"""Loads a rule file: text and environment in, a valid `Ruleset` or every problem out.

Puts the other modules of this package in order. Whoever calls hands in what other engines know: patterns,
kinds of source, and how to look at a channel's URL.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

from watchdog.config import build_places as places
from watchdog.config import schema
from watchdog.config import schema_services as services
from watchdog.config.build_conditions import Surroundings
from watchdog.config.build_rules import Known, RuleBuilder, RuleDefaults
from watchdog.config.report import Mark, Report
from watchdog.config.schema import SourceKind, declared_metrics
from watchdog.config.secrets import SecretBook, expand
from watchdog.config.tables import Fields
from watchdog.config.yaml_nodes import MAX_BYTES, MapNode, Node, parse
from watchdog.core.labels import fingerprint
from watchdog.core.protocols import PatternEngine
from watchdog.core.ruleset import Ruleset, SourceSpec
from watchdog.errors import ConfigError, Problem

RATIOS = frozenset({"gpu", "vram", "cpu", "memory"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """What other parts know and a rule file is checked against.

    inspect_url: what is wrong with a channel's URL, or will be different from what it says. inspect_source:
    the same for one source. A remark that begins with "cannot be used" is an error, others are warnings.
    """

    engine: PatternEngine
    kinds: Mapping[str, SourceKind]
    inspect_url: Callable[[str], Sequence[str]] | None = None
    inspect_source: Callable[[SourceSpec], Sequence[str]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A file that can be used. `secrets` knows every value that must not be shown."""

    ruleset: Ruleset
    warnings: tuple[Problem, ...] = ()
    secrets: SecretBook = field(default_factory=SecretBook)


def load(path: Path, *, env: Mapping[str, str], knowledge: Knowledge) -> Loaded:
    """Read and check a rule file.

    Raises:
        ConfigError: with everything that is wrong with it.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        problem = Problem(file=str(path), message=f"cannot be read: {error.strerror or error}")
        raise ConfigError([problem]) from error
    return loads(content, file=str(path), env=env, knowledge=knowledge)


def loads(content: str | bytes, *, file: str, env: Mapping[str, str], knowledge: Knowledge) -> Loaded:
    """Check the content of a rule file. `file` is what problems call it.

    Raises:
        ConfigError: with everything that is wrong with it.
    """
    report, book = Report(file), SecretBook()
    node = parse(content, report)
    ruleset = None if node is None else build(node, book=book, env=env, knowledge=knowledge, report=report)
    problems = report.problems(book.redact)
    if report.errors or ruleset is None:
        raise ConfigError(problems)
    text = content if isinstance(content, str) else content.decode("utf-8")
    return Loaded(ruleset=replace(ruleset, digest=fingerprint(text)), warnings=problems, secrets=book)


def build(
    node: Node, *, book: SecretBook, env: Mapping[str, str], knowledge: Knowledge, report: Report
) -> Ruleset | None:
    """Build a ruleset from a tree. It may only be used if `report` has no errors afterwards."""
    fields = schema.rule_file(knowledge.kinds).read(expand(node, env, book, report), report)
    return None if fields is None else _Builder(fields, book, env, knowledge, report).ruleset()


class _Builder:
    """Builds the sections in the order in which they refer to each other."""

    def __init__(
        self,
        fields: Fields,
        book: SecretBook,
        env: Mapping[str, str],
        knowledge: Knowledge,
        report: Report,
    ) -> None:
        self._fields = fields
        self._book = book
        self._env = env
        self._knowledge = knowledge
        self._report = report
        self._defaults = fields.get(schema.SECTION_DEFAULTS) or Fields(Mark(), {}, {})
        self._poll = self._defaults.value(schema.DEFAULT_POLL, timedelta(seconds=60))

    def ruleset(self) -> Ruleset:
        defaults = self._defaults
        sources = self._sources()
        watch = places.watch(
            self._fields.value(schema.SECTION_WATCH, ()),
            self._names("sources"),
            self._report.scoped("watch"),
        )
        channels = places.channels(
            self._fields.value(schema.SECTION_CHANNELS, ()),
            self._book,
            self._knowledge.inspect_url,
            self._report.scoped("channels"),
        )
        known = Known(
            channels=self._names("channels"),
            sources=self._names("sources"),
            labels=frozenset(name for entry in watch for name in entry.labels),
            metrics={
                spec.name: names
                for spec in sources
                if (names := schema.every_metric(self._knowledge.kinds[spec.kind])) is not None
            },
        )
        builder = RuleBuilder(
            self._surroundings(sources), self._rule_defaults(), known, self._report.scoped("rules")
        )
        rules = builder.build(self._fields.value(schema.SECTION_RULES, ()))
        self._check_there_is_something()
        return Ruleset(
            sources=sources,
            watch=watch,
            channels=channels,
            rules=rules,
            interval=defaults.value(schema.DEFAULT_INTERVAL, timedelta(seconds=60)),
            timezone=defaults.value(schema.DEFAULT_TIMEZONE, "UTC"),
            language=defaults.value(schema.DEFAULT_LANGUAGE, schema.Language.ENGLISH),
            forget_after=self._forget_after(),
            auto_reload=defaults.value(schema.DEFAULT_RELOAD, schema.Reload.ASKED) is schema.Reload.AUTO,
            http=services.http(self._fields, self._report),
            heartbeat=services.heartbeat(self._fields, self._book, self._report),
        )

    def _forget_after(self) -> timedelta:
        return self._defaults.value(schema.DEFAULT_FORGET, timedelta(hours=24))

    def _rule_defaults(self) -> RuleDefaults:
        return RuleDefaults(
            repeat=self._defaults.value(schema.DEFAULT_REPEAT, timedelta(hours=4)),
            coverage=self._defaults.value(schema.DEFAULT_COVERAGE, 0.8),
            quorum=self._defaults.value(schema.DEFAULT_QUORUM, 0.5),
        )

    def _sources(self) -> tuple[SourceSpec, ...]:
        key = schema.section_sources(self._knowledge.kinds)
        found = places.sources(self._fields.value(key, ()), self._knowledge.kinds, self._env, self._poll)
        places.remember_secrets(found, self._book)
        inspect = self._knowledge.inspect_source
        if inspect is None:
            return found
        for spec, (name, (_, fields)) in zip(found, self._fields.value(key, ()), strict=True):
            if fields.readable:
                report = self._report.scoped("sources").scoped(spec.name)
                places.tell_remarks(inspect(spec), name.mark, report)
        return found

    def _surroundings(self, sources: Sequence[SourceSpec]) -> Surroundings:
        declared = [declared_metrics(self._knowledge.kinds[spec.kind]) for spec in sources]
        infos = [info for metrics in declared for info in metrics or ()]
        every_source_tells = bool(declared) and None not in declared
        return Surroundings(
            engine=self._knowledge.engine,
            ratios=RATIOS | {info.name for info in infos if info.unit == "ratio"},
            metrics=frozenset(info.name for info in infos) if every_source_tells else None,
            poll=max((spec.poll for spec in sources), default=self._poll),
            forget_after=self._forget_after(),
        )

    def _names(self, section: str) -> tuple[str, ...]:
        """Return every name of a section, also of entries that cannot be read."""
        entry = self._fields.entries.get(section)
        if entry is None or not isinstance(entry.value, MapNode):
            return ()
        return tuple(inside.key.text for inside in entry.value.entries)

    def _check_there_is_something(self) -> None:
        """Warn of a file that watches nothing (one with errors has other worries)."""
        if self._report.errors:
            return
        if not self._names("sources"):
            self._report.warning(Mark(), "there are no sources: nothing is watched")
        elif not self._fields.has(schema.SECTION_WATCH) or self._fields.get(schema.SECTION_WATCH) == ():
            self._report.warning(Mark(), "watch: is empty: nothing is watched")
        if not self._fields.get(schema.SECTION_RULES):
            self._report.warning(Mark(), "there are no rules, only the built-in pod-gone")
