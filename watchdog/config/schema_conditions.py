"""The tables of the mappings inside a rule: share, peers, log, silent, absent, status, changes.

Part of the single source behind reading, JSON Schema and reference; `schema_rules` has the rule itself.
"""

from enum import StrEnum

from watchdog.config.kinds import choice, duration, level, number, portion, several, text
from watchdog.config.tables import Key, Table
from watchdog.core.conditions.kinds import By, Middle
from watchdog.core.tasks import Status

PATTERN = text("pattern", longest=2000)
WINDOW = duration(zero=False)


class LogBy(StrEnum):
    """What gets an alert of its own, where lines are looked at."""

    TASK = "task"
    POD = "pod"


class SilentLog(StrEnum):
    """Which lines count as a sign of life."""

    ANY = "any"


SHARE_OF = Key(name="of", kind=WINDOW, required=True, meaning="The window.")
SHARE_ABOVE = Key(
    name="above", kind=level(), meaning="Counts the time spent above this. Either this or `below`."
)
SHARE_BELOW = Key(name="below", kind=level(), meaning="Counts the time spent below this.")
SHARE_AT_LEAST = Key(
    name="at_least",
    kind=portion(zero=False),
    required=True,
    meaning="True once this part of the window counts.",
)
SHARE_CLEAR = Key(
    name="clear_below",
    kind=portion(),
    meaning="Recovered only when the part is below this.",
    default="`at_least`",
)
SHARE = Table(
    name="share",
    keys=(SHARE_OF, SHARE_BELOW, SHARE_ABOVE, SHARE_AT_LEAST, SHARE_CLEAR),
    example="{ of: 1h, below: 10%, at_least: 80% }",
    elsewhere={
        "for": "it stands beside share:, as a key of the rule",
        "by": "it stands beside share:, as a key of the rule",
        "across": "it stands beside share:, as a key of the rule",
        "clear_above": "the part is cleared with clear_below",
    },
)

PEERS_BY = Key(name="by", kind=choice(By), default="pod", meaning="What is compared with its like.")
PEERS_BELOW = Key(
    name="below",
    kind=level(),
    meaning="True below this part of the middle (50% = half). Either this or `above`.",
)
PEERS_ABOVE = Key(
    name="above", kind=level(), meaning="True above this multiple of the middle (150% = half more)."
)
PEERS_MIDDLE = Key(
    name="middle", kind=choice(Middle), default="median", meaning="The middle that is compared with."
)
PEERS_MIN = Key(
    name="min_peers",
    kind=number(low=2, high=100_000, whole=True),
    default="3",
    meaning="With fewer members than this nothing is said.",
)
PEERS = Table(
    name="peers",
    keys=(PEERS_BY, PEERS_BELOW, PEERS_ABOVE, PEERS_MIDDLE, PEERS_MIN),
    example="{ by: pod, below: 50% }",
)

COUNT_ABOVE = Key(
    name="above", kind=number(), meaning="True with more lines than this. Either this or `below`."
)
COUNT_BELOW = Key(name="below", kind=number(), meaning="True with fewer lines than this.")
COUNT_WITHIN = Key(name="within", kind=WINDOW, required=True, meaning="The window.")
COUNT_CLEAR_BELOW = Key(
    name="clear_below", kind=number(), meaning="With `above`: recovered only with fewer lines than this."
)
COUNT_CLEAR_ABOVE = Key(
    name="clear_above", kind=number(), meaning="With `below`: recovered only with more lines than this."
)
COUNT = Table(
    name="count",
    keys=(COUNT_ABOVE, COUNT_BELOW, COUNT_WITHIN, COUNT_CLEAR_BELOW, COUNT_CLEAR_ABOVE),
    example="{ above: 20, within: 5m }",
)

LOG_MATCH = Key(
    name="match",
    kind=several(PATTERN, "pattern, or a list"),
    required=True,
    meaning="A line counts if one of these is found in it. Single quotes keep backslashes as they are.",
)
LOG_IGNORE = Key(
    name="ignore",
    kind=several(PATTERN, "pattern, or a list"),
    meaning="… unless one of these is found in it too.",
)
LOG_PODS = Key(name="pods", kind=text("glob"), default="all", meaning="Only pods of this name.")
LOG_PREFILTER = Key(
    name="prefilter",
    kind=text(),
    meaning="The server is asked only for lines that hold this text. For huge logs.",
)
LOG_COUNT = Key(name="count", kind=COUNT.kind, meaning="Makes a state of it: how many lines within a time.")
LOG_BY = Key(
    name="by", kind=choice(LogBy), default="task", meaning="`pod`: each pod is an incident of its own."
)
LOG_BEFORE = Key(
    name="before",
    kind=number(high=50, whole=True),
    default="3",
    meaning="Lines of context shown before a match.",
)
LOG_AFTER = Key(
    name="after",
    kind=number(high=50, whole=True),
    default="10",
    meaning="Lines of context shown after a match.",
)
LOG = Table(
    name="log",
    keys=(LOG_MATCH, LOG_IGNORE, LOG_PODS, LOG_PREFILTER, LOG_COUNT, LOG_BY, LOG_BEFORE, LOG_AFTER),
    example=r"{ match: '\bERROR\b' }",
    elsewhere={
        "above": "write it inside count:, such as count: { above: 20, within: 5m }",
        "below": "write it inside count:, such as count: { below: 1, within: 10m }",
        "within": "write it inside count:, such as count: { above: 20, within: 5m }",
        "for": "it stands beside log:, as a key of the rule",
        "severity": "it stands beside log:, as a key of the rule",
    },
)

SILENT_LOG = Key(
    name="log", kind=choice(SilentLog), default="any", meaning="Which lines are a sign of life: any."
)
SILENT_BY = Key(name="by", kind=choice(LogBy), default="task", meaning="`pod`: each known pod must speak.")
SILENT = Table(
    name="silent",
    keys=(SILENT_LOG, SILENT_BY),
    example="{ log: any }",
    elsewhere={"for": "it stands beside silent:, as a key of the rule"},
)

ABSENT_METRIC = Key(
    name="metric", kind=text("name of a metric"), required=True, meaning="The data that is missed."
)
ABSENT_BY = Key(name="by", kind=choice(By), default="pod", meaning="What is expected to give it.")
ABSENT = Table(
    name="absent",
    keys=(ABSENT_METRIC, ABSENT_BY),
    example="{ metric: gpu, by: pod }",
    elsewhere={"for": "it stands beside absent:, as a key of the rule"},
)

STATUS_ENTERS = Key(
    name="enters", kind=several(choice(Status)), meaning="An event: the task gets one of these statuses."
)
STATUS_IS = Key(
    name="is", kind=several(choice(Status)), meaning="A state: the task has one of these statuses."
)
STATUS = Table(
    name="status",
    keys=(STATUS_ENTERS, STATUS_IS),
    example="{ enters: [failed, vanished] } or { is: queued }",
    elsewhere={"for": "it stands beside status:, as a key of the rule"},
    alternatives={"oneOf": [{"required": ["enters"]}, {"required": ["is"]}]},
)

CHANGES_METRIC = Key(name="metric", kind=text("name of a metric"), required=True, meaning="The counter.")
CHANGES_BY = Key(name="by", kind=choice(By), default="task", meaning="What gets an incident of its own.")
CHANGES_AT_LEAST = Key(
    name="at_least", kind=number(low=0.000001, high=1e15), default="1", meaning="Smaller steps are no news."
)
CHANGES = Table(
    name="changes",
    keys=(CHANGES_METRIC, CHANGES_BY, CHANGES_AT_LEAST),
    example="{ metric: XidErrors, by: gpu }",
)
