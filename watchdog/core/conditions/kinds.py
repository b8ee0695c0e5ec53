"""The kinds of condition a rule can have: plain values, no evaluation.

Every kind says what it needs from a source (`uses`), so that health can be judged per rule.
"""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from watchdog.core.protocols import Pattern
from watchdog.core.tasks import Status


class Capability(StrEnum):
    """What a source can be asked for; health is kept per capability and task."""

    METRICS = "metrics"
    LOGS = "logs"
    STATUS = "status"
    LIST = "list"

    __hash__ = str.__hash__  # an Enum's own is a call of Python, several for each task in every slot


class By(StrEnum):
    """What gets an alert of its own."""

    TASK = "task"
    POD = "pod"
    GPU = "gpu"  # = pod and gpu
    NODE = "node"

    @property
    def label_names(self) -> tuple[str, ...]:
        """The identity labels beyond the task's own."""
        return {By.TASK: (), By.POD: ("pod",), By.GPU: ("pod", "gpu"), By.NODE: ("node",)}[self]


class Aggregate(StrEnum):
    """How one series is reduced over its window."""

    LAST = "last"
    AVG = "avg"
    MIN = "min"
    MAX = "max"
    MEDIAN = "median"
    P95 = "p95"
    STDDEV = "stddev"
    SLOPE = "slope"  # least squares, per hour


class Across(StrEnum):
    """How series are reduced into one value after each was reduced over time."""

    AVG = "avg"
    MIN = "min"
    MAX = "max"
    SUM = "sum"
    MEDIAN = "median"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """`above` or `below` a threshold, with an optional clear level beyond it."""

    above: bool
    threshold: float
    clear: float | None = None  # FALSE only beyond this; BETWEEN in the gap


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """A metric, reduced over a window, against a level."""

    metric: str
    aggregate: Aggregate
    window: timedelta | None  # None exactly for LAST
    comparison: Comparison
    by: By = By.TASK
    across: Across = Across.AVG

    is_event = False
    uses = (Capability.METRICS,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The share of covered time in a window spent beyond a level reaches `at_least` (a ratio)."""

    metric: str
    window: timedelta
    comparison: Comparison  # of each point; `clear` unused
    at_least: float
    clear_below: float | None = None  # of the share
    by: By = By.TASK
    across: Across = Across.AVG

    is_event = False
    uses = (Capability.METRICS,)


class Middle(StrEnum):
    """What a peer is compared with."""

    MEDIAN = "median"
    MEAN = "mean"


@dataclass(frozen=True, slots=True, kw_only=True)
class Peers:
    """One pod (GPU, node) is beyond `ratio` × the middle of all members of its task."""

    metric: str
    aggregate: Aggregate
    window: timedelta | None
    above: bool
    ratio: float
    by: By = By.POD
    middle: Middle = Middle.MEDIAN
    min_peers: int = 3

    is_event = False
    uses = (Capability.METRICS,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """A counter steps up (an event). The first value ever seen, and after a restart, is baseline."""

    metric: str
    by: By = By.TASK
    at_least: float = 1.0

    is_event = True
    uses = (Capability.METRICS,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Absent:
    """An expected member gives no data while its source answers."""

    metric: str
    by: By = By.POD

    is_event = False
    uses = (Capability.METRICS,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Silent:
    """No new log line of any kind (of a known pod, with `by: pod`)."""

    by: By = By.TASK

    is_event = False
    uses = (Capability.LOGS,)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogMatch:
    """What a log rule looks at and for; shared by events and counts."""

    match: tuple[Pattern, ...]
    ignore: tuple[Pattern, ...] = ()
    pods: str = ""  # glob; "" = all
    prefilter: str = ""  # substring that the server filters by; "" = read everything


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEvent:
    """A new line matches (an event)."""

    lines: LogMatch
    by: By = By.TASK
    before: int = 3  # context lines shown
    after: int = 10

    is_event = True
    uses = (Capability.LOGS,)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCount:
    """The number of matching lines within a window, against a level (a state)."""

    lines: LogMatch
    within: timedelta
    comparison: Comparison
    by: By = By.TASK

    is_event = False
    uses = (Capability.LOGS,)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusEnters:
    """The task enters one of these statuses (an event)."""

    statuses: frozenset[Status]

    is_event = True
    uses = (Capability.STATUS,)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusIs:
    """The task is in one of these statuses (a state)."""

    statuses: frozenset[Status]

    is_event = False
    uses = (Capability.STATUS,)


Condition = (
    Threshold | Share | Peers | Changes | Absent | Silent | LogEvent | LogCount | StatusEnters | StatusIs
)
