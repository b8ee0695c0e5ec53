"""What a condition says: outcomes in columns, occurrences, and the evidence for both."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from watchdog.core.labels import TASK, Labels


class Outcome(IntEnum):
    """The verdict on one labelset at one slot. An IntEnum because verdicts live in int8 columns.

    What says how it stands, up to BETWEEN, comes before what says why that is not known.
    """

    FALSE = 0  # data shows it is not so (beyond the clear level, if there is one)
    TRUE = 1
    BETWEEN = 2  # neither TRUE nor beyond the clear level
    NODATA = 3  # the source answered; this labelset is missing or stale
    THIN = 4  # the window is not covered yet
    ERROR = 5  # no valid answer for what this rule uses


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceLine:
    """One log line shown to people, secrets already masked. `matched` lines are the reason."""

    time_ns: int
    pod: str
    text: str
    matched: bool = False
    repeated: int = 1  # how many like lines this one stands for
    kind: str = ""  # in an incident's `news`: the fingerprint of what it leads


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One pod or GPU behind a verdict, with its own value."""

    labels: Labels
    value: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Why a verdict is what it is: everything a message, `explain` or `show` prints.

    Numbers carry no unit of their own: `unit` is "ratio" (1 = 100 %), "" or the metric's own.
    """

    metric: str = ""
    summary: str = ""  # what was computed, in the rule's words: "avg over 1h", "no line for"
    value: float | None = None
    threshold: float | None = None
    above: bool = False  # direction of the threshold
    unit: str = ""
    members: tuple[Member, ...] = ()  # worst first, at most MEMBERS_SHOWN
    affected: int = 0  # members for which it is true
    of: int = 0  # members expected in all
    covered: int = 0  # members whose window is covered
    spark: tuple[float | None, ...] = ()  # oldest first; None = no point
    spark_span: timedelta = timedelta()
    lines: tuple[EvidenceLine, ...] = ()
    more_lines: int = 0  # matching lines that are not in `lines`
    detail: str = ""  # free text: a status reason, an error's name


MEMBERS_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """The verdicts of one state rule for G labelsets at T slots.

    labels: G identity labelsets (task identity plus what `by` names).
    outcome: int8, shape (G, T), `Outcome` codes.
    value: float64, shape (G, T); NaN where there is none.
    since_ns: int64, shape (G, T); the moment from which data shows it TRUE (0 = this slot).
    explain: (g, t) → Evidence, computed only when somebody needs it.
    """

    rule: str
    labels: tuple[Labels, ...]
    outcome: NDArray[np.int8]
    value: NDArray[np.float64]
    since_ns: NDArray[np.int64]
    explain: Callable[[int, int], Evidence]
    _of_task: dict[str, list[int]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def bare(self) -> "Evaluation":
        """Return the verdicts alone: evidence, and all that it is made of, can be let go."""
        return replace(self, explain=_forgotten)

    def of_task(self, task: str) -> Sequence[int]:
        """Return the rows of a task, by its key."""
        if not self._of_task:
            for g, labels in enumerate(self.labels):
                self._of_task.setdefault(labels.get(TASK, ""), []).append(g)
        return self._of_task.get(task, ())


def _forgotten(_group: int, _t: int) -> Evidence:
    return Evidence(detail="not kept")


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """Something an event rule saw in this slot: it happened, it does not recover."""

    rule: str
    labels: Labels  # identity: the task, plus the pod with `by: pod`
    at: datetime  # when it happened by the source's clock
    fingerprint: str  # masked: like occurrences share it
    count: int
    evidence: Evidence
    late: bool = False  # became visible well after it happened
