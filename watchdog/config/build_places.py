"""From the sections `sources`, `watch` and `channels` to core values: where to look, at what, whom to tell.

Checks names against each other and fills in secrets that the file leaves to the environment. Knows no rule.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta

from watchdog.config import schema
from watchdog.config.report import Mark, Report
from watchdog.config.schema import SourceKind
from watchdog.config.secrets import SecretBook
from watchdog.config.suggest import did_you_mean
from watchdog.config.tables import Fields, Key
from watchdog.config.yaml_nodes import ScalarNode
from watchdog.core.labels import Labels
from watchdog.core.redaction import url_secrets
from watchdog.core.rules import Severity
from watchdog.core.ruleset import ChannelSpec, Secret, SourceSpec, WatchEntry

Inspection = Callable[[str], Sequence[str]]
UNUSABLE = "cannot be used"  # a remark that begins so is an error

NamedSources = Iterable[tuple[ScalarNode, tuple[str, Fields]]]
NamedChannels = Iterable[tuple[ScalarNode, Fields]]


def sources(
    named: NamedSources, kinds: Mapping[str, SourceKind], names: Mapping[str, str], poll: timedelta
) -> tuple[SourceSpec, ...]:
    """Return the sources; a secret option that is left out is looked up under its own name."""
    found = []
    for name, (kind, fields) in named:
        options: dict[str, object] = {}
        for key in schema.source_table(kinds[kind]).keys:
            if key.name in ("kind", schema.SOURCE_POLL.name):
                continue
            value = _option(fields, key)
            if value is None and key.variable:
                value = _from_environment(name.text, key, names)
            if value is not None:
                options[key.name] = value
        pace = fields.value(schema.SOURCE_POLL, poll)
        found.append(SourceSpec(name=name.text, kind=kind, options=options, poll=pace))
    return tuple(found)


def _option(fields: Fields, key: Key[object]) -> object | None:
    value = fields.get(key)
    if isinstance(value, ScalarNode):
        return Secret(value.text) if key.secret or value.expanded else value.text
    if isinstance(value, float) and value == int(value):
        return int(value)
    return value


def _from_environment(name: str, key: Key[object], names: Mapping[str, str]) -> Secret | None:
    """Look a secret up as JOB_WATCHDOG_<NAME OF THE SOURCE>_<OPTION>, then under that of its kind."""
    own = f"{schema.VARIABLE_PREFIX}{name}_{key.name}".upper().replace("-", "_").replace(".", "_")
    value = names.get(own) or names.get(key.variable)
    return Secret(value) if value else None


def remember_secrets(found: Iterable[SourceSpec], book: SecretBook) -> None:
    """Put every secret option into the book."""
    for spec in found:
        for value in spec.options.values():
            if isinstance(value, Secret):
                book.add(str(value))


def watch(entries: Sequence[Fields], known_sources: Sequence[str], report: Report) -> tuple[WatchEntry, ...]:
    """Return what is watched; every entry has a source that exists, and an id or a name glob of its own."""
    found: list[WatchEntry] = []
    first_line: dict[tuple[str, str, str], int] = {}
    for index, fields in enumerate(entries, 1):
        entry = _entry(fields, known_sources, report.scoped(f"#{index}"))
        if entry is None:
            continue
        identity = (entry.source, entry.id, "" if entry.id else entry.name)
        if identity in first_line:
            what = "task" if entry.id else "name"
            message = f"this {what} is watched already, since line {first_line[identity]}"
            report.error(fields.mark, message, "one entry is enough for all rules")
        first_line.setdefault(identity, fields.mark.line)
        found.append(entry)
    return tuple(found)


def _entry(fields: Fields, known_sources: Sequence[str], report: Report) -> WatchEntry | None:
    source, task, name = (
        fields.get(schema.WATCH_SOURCE),
        fields.get(schema.WATCH_TASK),
        fields.get(schema.WATCH_NAME),
    )
    if source is not None and source.text not in known_sources:
        hint = did_you_mean(source.raw, known_sources)
        report.error(source.mark, f"there is no source {source.shown!r}", hint)
    if not fields.has(schema.WATCH_TASK) and not fields.has(schema.WATCH_NAME):
        report.error(fields.mark, "names no task", 'add task: "1234567890", or name: "pretrain-*"')
    if task is not None and name is not None and any(wild in name.text for wild in "*?["):
        message = f"name: {name.shown!r} is a glob, but task: says already which one"
        report.error(name.mark, message, "leave one of them out")
    if source is None or (task is None and name is None):
        return None
    labels = fields.value(schema.WATCH_LABELS, ())
    namespace = fields.get(schema.WATCH_NAMESPACE)
    return WatchEntry(
        source=source.text,
        id="" if task is None else task.text,
        name="" if name is None else name.text,
        namespace="" if namespace is None else namespace.text,
        labels=Labels((key.text, value.text) for key, value in labels),
    )


def channels(
    named: NamedChannels, book: SecretBook, inspect: Inspection | None, report: Report
) -> tuple[ChannelSpec, ...]:
    """Return the channels. `inspect` knows the URLs: what it says is reported, never the URL itself."""
    found = []
    for name, fields in named:
        node = fields.get(schema.CHANNEL_URL)
        if node is None:
            continue
        book.add(node.text)
        _inspect_url(node, inspect, report.scoped(name.text).scoped("url"))
        most = fields.get(schema.CHANNEL_MAX_BYTES)
        found.append(
            ChannelSpec(
                name=name.text,
                url=Secret(node.text),
                min_severity=fields.value(schema.CHANNEL_MIN_SEVERITY, Severity.INFO),
                language=fields.value(schema.CHANNEL_LANGUAGE, ""),
                timezone=fields.value(schema.CHANNEL_TIMEZONE, ""),
                max_bytes=None if most is None else int(most),
            )
        )
    return tuple(found)


def _inspect_url(node: ScalarNode, inspect: Inspection | None, report: Report) -> None:
    scheme, separator, _ = node.text.strip().partition("://")
    if not separator or not scheme:
        report.error(node.mark, "is no URL of a channel", "such as mailto://…, slack://… or json://host/path")
        return
    if not node.expanded and len(url_secrets(node.text)) > 1:
        hint = 'write it as "${NAME}" and set NAME outside'
        report.warning(node.mark, "holds a password or token, for everybody who can read this file", hint)
    if inspect is not None:
        tell_remarks(inspect(node.text), node.mark, report)


def tell_remarks(remarks: Iterable[str], mark: Mark, report: Report) -> None:
    """Report what an adapter says of its own configuration."""
    for remark in remarks:
        if remark.startswith(UNUSABLE):
            report.error(mark, remark)
        else:
            report.warning(mark, remark)
