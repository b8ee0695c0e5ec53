"""The table of one rule, and of the mappings inside it.

Part of the single source behind reading, JSON Schema and reference. What must not stand together is checked
by `build_conditions` and `build_rules`; here is only what each key takes and means.
"""

from enum import StrEnum

from watchdog.config.kinds import (
    Kind,
    Pairs,
    Schema,
    choice,
    duration,
    flag,
    level,
    list_of,
    portion,
    several,
    text,
    text_map,
)
from watchdog.config.report import Report
from watchdog.config.schema_conditions import ABSENT, CHANGES, LOG, PEERS, SHARE, SILENT, STATUS, WINDOW
from watchdog.config.tables import Key, Table
from watchdog.config.yaml_nodes import Node, ScalarNode
from watchdog.core.conditions.kinds import Across, By
from watchdog.core.rules import OnNoData, Severity

METRIC_RULES = "metric"
THRESHOLDS = "metric without `share` or `peers`"
STATES = "states"
EVENTS = "events"


class WhileWord(StrEnum):
    """The words of `while`: every status, or `any`."""

    ANY = "any"
    UNKNOWN = "unknown"
    QUEUED = "queued"
    LOADING = "loading"
    RUNNING = "running"
    PAUSED = "paused"
    HELD = "held"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"
    VANISHED = "vanished"


def selection() -> Kind[Pairs]:
    """Which tasks: a glob for the name, or label names with a glob each."""
    mapping = text_map()
    glob = text("text or glob")

    def read(node: Node, report: Report) -> Pairs | None:
        if not isinstance(node, ScalarNode):
            return mapping.read(node, report)
        value = glob.read(node, report)
        if value is None:
            return None
        key = ScalarNode(mark=node.mark, text="name", raw="name", plain=True)
        return ((key, value),)

    schema: Schema = {"anyOf": [glob.schema, mapping.schema]}
    return Kind(words="glob, or mapping of labels to globs", read=read, schema=schema)


REFERENCE = text("name of a channel")


LEVEL_FOR = Key(name="for", kind=duration(), required=True, meaning="From this long on …")
LEVEL_SEVERITY = Key(
    name="severity", kind=choice(Severity), required=True, meaning="… the incident is this severe."
)
LEVEL = Table(name="level", keys=(LEVEL_FOR, LEVEL_SEVERITY), example="{ for: 30m, severity: critical }")

NAME = Key(
    name="name",
    kind=text(longest=100),
    required=True,
    meaning="Unique; the rule's identity. A renamed rule is a new rule.",
)
DESCRIPTION = Key(
    name="description",
    kind=text(longest=2000, multiline=True),
    meaning="Shown in messages: what to do about it.",
)
ENABLED = Key(
    name="enabled", kind=flag(), default="true", meaning="`false` keeps a rule in the file without using it."
)

METRIC = Key(
    name="metric",
    kind=text("name of a metric"),
    meaning="A number against a threshold. `gpu`, `vram`, `cpu`, `memory` are ratios on every source; others "
    "keep the source's name and unit.",
)
AVG_OVER = Key(
    name="avg_over", kind=WINDOW, applies=METRIC_RULES, meaning="Each series: its average over this long."
)
MIN_OVER = Key(name="min_over", kind=WINDOW, applies=METRIC_RULES, meaning="… its lowest value.")
MAX_OVER = Key(name="max_over", kind=WINDOW, applies=METRIC_RULES, meaning="… its highest value.")
MEDIAN_OVER = Key(name="median_over", kind=WINDOW, applies=METRIC_RULES, meaning="… its median.")
P95_OVER = Key(name="p95_over", kind=WINDOW, applies=METRIC_RULES, meaning="… its 95th percentile.")
STDDEV_OVER = Key(name="stddev_over", kind=WINDOW, applies=METRIC_RULES, meaning="… its standard deviation.")
SLOPE_OVER = Key(name="slope_over", kind=WINDOW, applies=METRIC_RULES, meaning="… its slope, per hour.")
BELOW = Key(
    name="below", kind=level(), applies=THRESHOLDS, meaning="True below this. Either this or `above`."
)
ABOVE = Key(name="above", kind=level(), applies=THRESHOLDS, meaning="True above this.")
CLEAR_ABOVE = Key(
    name="clear_above", kind=level(), applies=THRESHOLDS, meaning="With `below`: recovered only above this."
)
CLEAR_BELOW = Key(
    name="clear_below", kind=level(), applies=THRESHOLDS, meaning="With `above`: recovered only below this."
)
BY = Key(
    name="by",
    kind=choice(By),
    default="task",
    applies="metric without `peers`",
    meaning="What gets an alert of its own. `gpu` means each GPU of each pod.",
)
ACROSS = Key(
    name="across",
    kind=choice(Across),
    default="avg; max with `max_over`, min with `min_over`",
    applies="metric without `peers`",
    meaning="How the series of a task (or pod, or node) become one number. Must be said with `median_over`, "
    "`p95_over`, `stddev_over` and `slope_over` unless `by` is.",
)
SHARE_KEY = Key(
    name="share", kind=SHARE.kind, applies=METRIC_RULES, meaning="How much of the time it is beyond a level."
)
PEERS_KEY = Key(
    name="peers",
    kind=PEERS.kind,
    applies=METRIC_RULES,
    meaning="One pod, GPU or node against its like in the task.",
)
LOG_KEY = Key(name="log", kind=LOG.kind, meaning="New log lines: an event, or a state with `count`.")
SILENT_KEY = Key(name="silent", kind=SILENT.kind, meaning="A state: no new log line.")
ABSENT_KEY = Key(
    name="absent",
    kind=ABSENT.kind,
    meaning="A state: an expected pod or GPU gives no data while its source answers.",
)
STATUS_KEY = Key(name="status", kind=STATUS.kind, meaning="What the cloud says of the task.")
CHANGES_KEY = Key(name="changes", kind=CHANGES.kind, meaning="An event: a counter steps up.")

SEVERITY = Key(name="severity", kind=choice(Severity), default="warning", meaning="How urgent.")
FOR = Key(
    name="for",
    kind=duration(),
    default="0s",
    applies=STATES,
    meaning="Must be true for this long without a break.",
)
LEVELS = Key(
    name="levels",
    kind=list_of(LEVEL.kind),
    applies=STATES,
    meaning="Instead of `for` and `severity`: one incident that grows more severe.",
)
KEEP_FIRING = Key(
    name="keep_firing_for",
    kind=duration(),
    default="0s",
    applies=STATES,
    meaning="Recovered only after being false for this long without a break.",
)
QUIET_FOR = Key(
    name="quiet_for",
    kind=duration(zero=False),
    default="30m",
    applies=EVENTS,
    meaning="The incident ends, without a message, when nothing more came for this long.",
)
SELECT = Key(
    name="select",
    kind=selection(),
    default="all tasks",
    meaning="Which tasks: labels of `watch`, or `source`, `id`, `name`. Globs; all must fit. "
    "A text alone is the name.",
)
WHILE = Key(
    name="while",
    kind=several(choice(WhileWord), "any, or one or more statuses"),
    default="running; any for `status` and events",
    meaning="Holds still while the task has another status. A task of unknown status counts as running.",
)
AFTER_START = Key(
    name="after_start",
    kind=duration(),
    default="0s",
    meaning="Holds still for this long after an attempt begins.",
)
NOTIFY = Key(
    name="notify",
    kind=several(REFERENCE, "channel, or a list", empty_hint="leave it out to tell every channel"),
    default="all channels",
    meaning="Which channels are told.",
)
REPEAT = Key(
    name="repeat",
    kind=duration(never=True),
    default="that of `defaults`",
    meaning="How often an open incident is told again.",
)
ON_NO_DATA = Key(
    name="on_no_data",
    kind=choice(OnNoData),
    default="hold",
    applies="metric",
    meaning="What missing data means: `hold` what is known, `fire`, or `ok`.",
)
COVERAGE = Key(
    name="coverage",
    kind=portion(zero=False),
    default="that of `defaults`",
    applies="metric",
    meaning="How much of a window must hold data.",
)
QUORUM = Key(
    name="quorum",
    kind=portion(),
    default="that of `defaults`",
    applies="metric",
    meaning="Which part of the expected series must have data.",
)
LABELS = Key(
    name="labels",
    kind=text_map(reserved=("source", "task", "task_name", "pod", "gpu", "node", "job")),
    meaning="Added to its incidents.",
)
ANNOTATIONS = Key(
    name="annotations",
    kind=text_map(longest=2000, multiline=True),
    meaning="Texts added to its messages: a runbook, an owner.",
)

CONDITION_KEYS = (METRIC, LOG_KEY, SILENT_KEY, ABSENT_KEY, STATUS_KEY, CHANGES_KEY)
OVER_KEYS = (AVG_OVER, MIN_OVER, MAX_OVER, MEDIAN_OVER, P95_OVER, STDDEV_OVER, SLOPE_OVER)
METRIC_KEYS: tuple[Key[object], ...] = (
    *OVER_KEYS,
    BELOW,
    ABOVE,
    CLEAR_ABOVE,
    CLEAR_BELOW,
    SHARE_KEY,
    PEERS_KEY,
    BY,
    ACROSS,
)
COMMON_KEYS: tuple[Key[object], ...] = (
    NAME,
    DESCRIPTION,
    ENABLED,
    SELECT,
    SEVERITY,
    FOR,
    LEVELS,
    KEEP_FIRING,
    QUIET_FOR,
    WHILE,
    AFTER_START,
    NOTIFY,
    REPEAT,
    ON_NO_DATA,
    COVERAGE,
    QUORUM,
    LABELS,
    ANNOTATIONS,
)
RULE = Table(
    name="rule",
    keys=(*COMMON_KEYS[:3], *CONDITION_KEYS, *METRIC_KEYS, *COMMON_KEYS[3:]),
    example="{ name: gpu-idle, metric: gpu, avg_over: 1h, below: 10% }",
    later={
        "progress": "training progress comes with a later version",
        "expr": "expressions come with a later version",
    },
    elsewhere={
        "of": "write it inside share:, such as share: { of: 1h, below: 10%, at_least: 80% }",
        "at_least": "write it inside share: or changes:",
        "match": "write it inside log:, such as log: { match: 'ERROR' }",
        "ignore": "write it inside log:",
        "pods": "write it inside log:",
        "prefilter": "write it inside log:",
        "count": "write it inside log:, such as log: { match: 'ERROR', count: { above: 20, within: 5m } }",
        "within": "write it inside log: { count: … }",
        "enters": "write it inside status:",
        "is": "write it inside status:",
        "middle": "write it inside peers:",
        "min_peers": "write it inside peers:",
        "interval": "it is one for all rules, in defaults:",
        "timezone": "it is a key of defaults: and of a channel",
        "language": "it is a key of defaults: and of a channel",
        "channels": "did you mean notify: [team]?",
        "threshold": "write above: or below:",
        "window": "write the aggregate with it, such as avg_over: 1h",
    },
    alternatives={
        "anyOf": [
            {"oneOf": [{"required": [key.name]} for key in CONDITION_KEYS]},
            {"properties": {"enabled": {"const": False}}, "required": ["enabled"]},
        ]
    },
)
