"""The tables of the rule file, except for the rules themselves: sections, defaults, watch, channels.

Together with `schema_rules` and the option tables of the sources, the single source of what is accepted, of
the JSON Schema and of the reference in the docs.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from watchdog.config.kinds import (
    Kind,
    Schema,
    choice,
    duration,
    flag,
    identifier,
    list_of,
    named,
    number,
    portion,
    scalar,
    text,
    text_map,
)
from watchdog.config.report import Report
from watchdog.config.schema_rules import RULE
from watchdog.config.schema_services import SECTION_HEARTBEAT, SECTION_HTTP
from watchdog.config.suggest import did_you_mean
from watchdog.config.tables import Fields, Key, Table
from watchdog.config.yaml_nodes import MapNode, Node, ScalarNode
from watchdog.config.zones import zone
from watchdog.core.rules import Severity
from watchdog.ports import MetricInfo

VARIABLE_PREFIX = "JOB_WATCHDOG_"
NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"
NAME_HINT = "begin with a letter or digit; letters, digits, '-', '_' and '.' may follow"
RESERVED_LABELS = ("source", "task", "task_name", "id", "name", "pod", "gpu", "node", "job")


class Language(StrEnum):
    """The languages messages are written in."""

    ENGLISH = "en"
    CHINESE = "zh"


class Reload(StrEnum):
    """When a changed rule file is loaded anew."""

    AUTO = "auto"
    ASKED = "asked"


class OptionSpec(Protocol):
    """One option of a kind of source, as the source's own table states it."""

    @property
    def name(self) -> str:
        """As written in the rule file."""
        ...

    @property
    def type(self) -> str:
        """One of `OPTION_KINDS`."""
        ...

    @property
    def doc(self) -> str:
        """Its meaning, one sentence."""
        ...

    @property
    def default(self) -> str:
        """As written in the rule file; "" = none."""
        ...

    @property
    def choices(self) -> tuple[str, ...]:
        """The words of a choice."""
        ...


class SourceKind(Protocol):
    """One kind of source. A kind that knows its metrics beforehand also has `metrics`."""

    @property
    def name(self) -> str:
        """What `kind:` says."""
        ...

    @property
    def options(self) -> Sequence[OptionSpec]:
        """What may be set."""
        ...


def declared_metrics(kind: SourceKind) -> tuple[MetricInfo, ...] | None:
    """Return the metrics a kind is known to have, None if only its answers tell."""
    found = getattr(kind, "metrics", None)
    return tuple(found) if found else None


def every_metric(kind: SourceKind) -> frozenset[str] | None:
    """Return the names of all metrics of a kind, None if it may have others than those known."""
    infos = declared_metrics(kind)
    whole = infos is not None and bool(getattr(kind, "all_metrics", True))
    return frozenset(info.name for info in infos or ()) if whole else None


DEFAULT_INTERVAL = Key(
    name="interval", kind=duration(zero=False), default="60s", meaning="How often the rules are evaluated."
)
DEFAULT_POLL = Key(
    name="poll",
    kind=duration(zero=False),
    default="60s",
    meaning="How often sources are asked, unless a source says otherwise.",
)
DEFAULT_TIMEZONE = Key(name="timezone", kind=zone(), default="UTC", meaning="The zone of times in messages.")
DEFAULT_LANGUAGE = Key(
    name="language", kind=choice(Language), default="en", meaning="The language of messages."
)
DEFAULT_REPEAT = Key(
    name="repeat",
    kind=duration(never=True),
    default="4h",
    meaning="How often an incident that stays open is told again.",
)
DEFAULT_COVERAGE = Key(
    name="coverage",
    kind=portion(zero=False),
    default="80%",
    meaning="How much of a window must hold data before a rule is judged.",
)
DEFAULT_QUORUM = Key(
    name="quorum",
    kind=portion(),
    default="50%",
    meaning="Which part of a task's expected series must have data before the task is judged.",
)
DEFAULT_FORGET = Key(
    name="forget_after",
    kind=duration(zero=False),
    default="24h",
    meaning="After how long without data a pod or GPU is no longer expected.",
)
DEFAULT_RELOAD = Key(
    name="reload",
    kind=choice(Reload),
    default="asked",
    meaning="When this file is loaded anew: `asked` on `watchdog reload` or SIGHUP, `auto` also by itself "
    "once a change of it has been left alone for 2 s.",
)
DEFAULTS = Table(
    name="defaults",
    keys=(
        DEFAULT_INTERVAL,
        DEFAULT_POLL,
        DEFAULT_TIMEZONE,
        DEFAULT_LANGUAGE,
        DEFAULT_REPEAT,
        DEFAULT_COVERAGE,
        DEFAULT_QUORUM,
        DEFAULT_FORGET,
        DEFAULT_RELOAD,
    ),
    example="{ interval: 60s, timezone: Asia/Shanghai }",
    elsewhere={
        "for": "it is a key of a rule",
        "severity": "it is a key of a rule",
        "notify": "it is a key of a rule; without it, every channel is told",
        "while": "it is a key of a rule",
    },
)

WATCH_SOURCE = Key(
    name="source", kind=text("name of a source"), required=True, meaning="Where the task runs."
)
WATCH_TASK = Key(
    name="task",
    kind=identifier(),
    meaning="The task's id in that cloud, in quotes. Either this or `name`.",
)
WATCH_NAME = Key(
    name="name",
    kind=text("text or glob"),
    meaning="With `task`: what people call it. Alone: a glob; every task of that name is found through the "
    "task list and followed across restarts.",
)
WATCH_NAMESPACE = Key(
    name="namespace", kind=text(), meaning="Where its logs are; without it the source finds out."
)
WATCH_LABELS = Key(
    name="labels",
    kind=text_map(reserved=RESERVED_LABELS),
    meaning="Labels of your own, for `select` and for messages.",
)
WATCH = Table(
    name="watch entry",
    keys=(WATCH_SOURCE, WATCH_TASK, WATCH_NAME, WATCH_NAMESPACE, WATCH_LABELS),
    example='{ source: alaya, task: "1234567890", name: llama-70b }',
    elsewhere={"id": "write task: with the task's id", "kind": "it is a key of a source"},
    alternatives={"anyOf": [{"required": ["task"]}, {"required": ["name"]}]},
)

CHANNEL_URL = Key(
    name="url",
    kind=text("Apprise URL", longest=4000),
    required=True,
    secret=True,
    meaning='An Apprise URL with one recipient; best kept outside: `"${TEAM_CHAT_URL}"`.',
)
CHANNEL_MIN_SEVERITY = Key(
    name="min_severity",
    kind=choice(Severity),
    default="info",
    meaning="What is less severe than this is not sent here.",
)
CHANNEL_LANGUAGE = Key(
    name="language",
    kind=choice(Language),
    default="that of `defaults`",
    meaning="The language of messages here.",
)
CHANNEL_TIMEZONE = Key(
    name="timezone", kind=zone(), default="that of `defaults`", meaning="The zone of times in messages here."
)
CHANNEL_MAX_BYTES = Key(
    name="max_bytes",
    kind=number(low=200, high=1_000_000, whole=True),
    default="the service's limit",
    meaning="Messages are cut to this many bytes of UTF-8; a cut message says how much is missing.",
)
CHANNEL = Table(
    name="channel",
    keys=(CHANNEL_URL, CHANNEL_MIN_SEVERITY, CHANNEL_LANGUAGE, CHANNEL_TIMEZONE, CHANNEL_MAX_BYTES),
    example='{ url: "${TEAM_CHAT_URL}" }',
    elsewhere={"severity": "did you mean min_severity?"},
)

SOURCE_POLL = Key(
    name="poll",
    kind=duration(zero=False),
    default="that of `defaults`",
    meaning="How often this source is asked.",
)


def source_table(kind: SourceKind) -> Table:
    """Return the keys of a source of one kind."""
    keys: list[Key[object]] = [source_kind_key((kind.name,)), SOURCE_POLL]
    keys += [_option_key(kind, option) for option in kind.options if option.name != SOURCE_POLL.name]
    return Table(name=f"{kind.name} source", keys=tuple(keys), example=f"{{ kind: {kind.name} }}")


def source_kind_key(names: Sequence[str]) -> Key[ScalarNode]:
    """Return the key `kind`, which decides what else a source may have."""
    schema: Schema = {"enum": list(names)}
    meaning = "Which system it is. Decides the other keys."
    kind = Kind(words=" or ".join(names), read=text().read, schema=schema)
    return Key(name="kind", kind=kind, required=True, meaning=meaning)


def _option_key(kind: SourceKind, option: OptionSpec) -> Key[object]:
    secret = option.type == "secret"
    variable = f"{VARIABLE_PREFIX}{kind.name.upper()}_{option.name.upper()}" if secret else ""
    return Key(
        name=option.name,
        kind=_words(option) if option.choices else _OPTION_KINDS[option.type],
        meaning=option.doc,
        default=f"`{variable}`" if variable else option.default,
        secret=secret,
        variable=variable,
    )


def _words(option: OptionSpec) -> Kind[ScalarNode]:
    """One of the words of a source's own choice."""
    words = ", ".join(option.choices)

    def read(node: Node, report: Report) -> ScalarNode | None:
        value = scalar(node, report, f"one of {words}")
        if value is not None and value.text not in option.choices:
            hint = did_you_mean(value.raw, option.choices)
            report.error(value.mark, f"{value.shown!r} is not a word for this", hint)
            return None
        return value

    return Kind(words=words, read=read, schema={"enum": list(option.choices)})


_OPTION_KINDS: Mapping[str, Kind[object]] = {
    "text": text(longest=2000),
    "secret": text("secret", longest=4000),
    "time zone": zone(),
    "duration": duration(zero=False),
    "integer": number(low=1, high=1e6, whole=True),
    "number": number(low=0.001, high=1e6),
    "flag": flag(),
}


def source_entry(kinds: Mapping[str, SourceKind]) -> Kind[tuple[str, Fields]]:
    """One source: (kind, its fields). The keys allowed depend on `kind`."""
    tables = {name: source_table(kind) for name, kind in kinds.items()}

    def read(node: Node, report: Report) -> tuple[str, Fields] | None:
        found = _kind_of(node)
        if found is None:
            report.error(node.mark, "kind is missing", f"such as {{ kind: {next(iter(tables), 'alaya')} }}")
            return None
        if found.text not in tables:
            report.error(found.mark, f"kind: {found.shown!r} is not known", did_you_mean(found.raw, tables))
            return None
        fields = tables[found.text].read(node, report)
        return None if fields is None else (found.text, fields)

    schemas = [table.schema() for table in tables.values()]
    return Kind(words="source", read=read, schema=schemas[0] if len(schemas) == 1 else {"anyOf": schemas})


def _kind_of(node: Node) -> ScalarNode | None:
    if isinstance(node, MapNode):
        for entry in node.entries:
            if entry.key.text == "kind" and isinstance(entry.value, ScalarNode):
                return entry.value
    return None


SECTION_DEFAULTS = Key(
    name="defaults", kind=DEFAULTS.kind, meaning="What holds unless a rule or channel says otherwise."
)
SECTION_WATCH = Key(name="watch", kind=list_of(WATCH.kind, empty=True), meaning="What to look at.")
SECTION_CHANNELS = Key(
    name="channels",
    kind=named(CHANNEL.kind, pattern=NAME, hint=NAME_HINT),
    meaning="Whom to tell. Without any, messages go to the terminal.",
)
SECTION_RULES = Key(
    name="rules", kind=list_of(RULE.kind, empty=True, title="name"), meaning="What to look for."
)


def section_sources(
    kinds: Mapping[str, SourceKind],
) -> Key[tuple[tuple[ScalarNode, tuple[str, Fields]], ...]]:
    """Return the section `sources`, which knows these kinds."""
    return Key(
        name="sources",
        kind=named(source_entry(kinds), pattern=NAME, hint=NAME_HINT),
        meaning="Where to ask: a name of yours for each system.",
    )


def rule_file(kinds: Mapping[str, SourceKind]) -> Table:
    """Return the table of the whole file."""
    return Table(
        name="rule file",
        keys=(
            SECTION_DEFAULTS,
            section_sources(kinds),
            SECTION_WATCH,
            SECTION_CHANNELS,
            SECTION_RULES,
            SECTION_HTTP,
            SECTION_HEARTBEAT,
        ),
        example="sources:, watch:, channels: and rules:",
        anchors=True,
        elsewhere={
            "name": "rules stand in a list under rules:",
            "metric": "rules stand in a list under rules:",
        },
        later=dict.fromkeys(("routes", "receivers", "silences", "inhibit"), "comes with a later version"),
    )
