"""Health: what can be seen right now, per source, capability and task.

A rule is judged blind only by what it uses. Owns the counting of failures; a source's answer
or failure comes in as a `Probe`, a verdict goes out as a `Standing`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from watchdog.core.conditions.kinds import Capability


class Failure(StrEnum):
    """Why a source could not be queried, named for people. The values are stored and shown."""

    UNREACHABLE = "unreachable"
    TIMEOUT = "timed out"
    KEY_MISSING = "key missing"
    KEY_UNKNOWN = "key unknown"
    KEY_EXPIRED = "key expired"
    KEY_DISABLED = "key disabled"
    SIGNATURE = "signature wrong"
    CLOCK_SKEW = "clock skew"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not found"
    BAD_REQUEST = "bad request"
    THROTTLED = "throttled"
    SERVER_ERROR = "server error"
    NOT_JSON = "not JSON"
    MALFORMED = "malformed answer"
    STALE = "newest point is stale"
    UNSUPPORTED = "not supported"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class ProbeKey:
    """What was asked. `task` is empty for a whole-source question (the list)."""

    source: str
    capability: Capability
    task: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One answer (failure is None) or one failure."""

    key: ProbeKey
    at: datetime
    failure: Failure | None = None
    detail: str = ""


class Standing(StrEnum):
    """Whether verdicts may be drawn from a capability."""

    GOOD = "good"
    FAILING = "failing"  # the newest answer was a failure
    SETTLING = "settling"  # back from blindness, not yet trusted


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeState:
    """The recent history of one key; durable."""

    key: ProbeKey
    failures: int = 0  # in a row
    good: int = 0  # in a row, counted only while `blind`
    blind: bool = False
    since: datetime | None = None  # first failure of the row
    last_good: datetime | None = None
    failure: Failure | None = None
    detail: str = ""
    asked: datetime | None = None  # newest answer or failure
    sighted: datetime | None = None  # when a blindness last ended
    subject: str = ""  # what its blindness is (or was) reported under, see `blindness`


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """All probe states."""

    states: Mapping[ProbeKey, ProbeState] = field(default_factory=dict)
