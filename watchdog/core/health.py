"""Health: what can be seen right now, per source, capability, task, and metric or log stream.

A rule is judged blind only by what it uses. Owns the counting of failures; a source's answer
or failure comes in as a `Probe`, a verdict goes out as a `Standing`. What is said about
blindness is `blindness`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
    """What was asked. `task` is empty for a whole-source question (the list).

    item: which of several questions of one capability it was: a metric's name, the filter of a log
    stream; empty where there is only one, and where all of them are meant.
    """

    source: str
    capability: Capability
    task: str = ""
    item: str = ""

    @property
    def whole(self) -> "ProbeKey":
        """The key of everything that is asked of this capability of this task."""
        return self if not self.item else replace(self, item="")


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
    _items: dict[tuple[str, Capability, str], dict[str, ProbeState]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def items(self, key: ProbeKey, task: str) -> Mapping[str, ProbeState]:
        """Return the states of all questions of a key's capability of one task, by item."""
        if not self._items:
            for known, state in self.states.items():
                whole = (known.source, known.capability, known.task)
                self._items.setdefault(whole, {})[known.item] = state
        return self._items.get((key.source, key.capability, task), {})

    def of(self, whole: ProbeKey) -> Sequence[ProbeState]:
        """Return the states of all questions of one capability of one task (a key without item)."""
        return tuple(self.items(whole, whole.task).values())


BLIND_AFTER = 3  # failures in a row
SIGHTED_AFTER = 2  # good answers in a row


def observe(health: Health, probe: Probe) -> Health:
    """Take in one answer or failure. See `blindness.observe_all` for whole batches."""
    before = health.states.get(probe.key, ProbeState(key=probe.key))
    return Health(states={**health.states, probe.key: after_probe(before, probe)})


def after_probe(before: ProbeState, probe: Probe) -> ProbeState:
    """Return the state of a key after one more answer or failure."""
    if probe.failure is not None:
        failures = before.failures + 1
        return replace(
            before,
            failures=failures,
            good=0,
            blind=before.blind or failures >= BLIND_AFTER,
            since=before.since or probe.at,
            failure=probe.failure,
            detail=probe.detail,
            asked=probe.at,
        )
    if before.blind and before.good + 1 < SIGHTED_AFTER:
        return replace(before, failures=0, good=before.good + 1, last_good=probe.at, asked=probe.at)
    return ProbeState(
        key=before.key,
        last_good=probe.at,
        asked=probe.at,
        sighted=probe.at if before.blind else before.sighted,
        subject=before.subject,
    )


def standing(health: Health, key: ProbeKey) -> Standing:
    """Say whether verdicts may be drawn from a capability for a task.

    The whole-source question (no task) speaks for every task as well. What was never asked since
    the start has no valid answer yet: it stands as failing. An item that is not asked by itself is
    part of the question without one. A key without an item means all of them, as far as they have
    ever been answered: a metric that this cloud does not serve hides nothing of the others.
    """
    asked = _own(health, key)
    if key.task:
        asked = (*asked, *health.items(key, "").values())
    found = Standing.GOOD if asked else Standing.FAILING
    for state in asked:
        if state.failures:
            return Standing.FAILING
        if state.blind:
            found = Standing.SETTLING
    return found


def sound(health: Health) -> Mapping[tuple[Capability, str], Collection[str]]:
    """Return the tasks of which a question stands good by its own newest answer; one pass for a slot.

    By (capability, item); a key without item is a question of its own here.
    """
    shaky = {
        (key.source, key.capability)
        for key, state in health.states.items()
        if not key.task and (state.failures or state.blind)
    }
    found: dict[tuple[Capability, str], set[str]] = {}
    for key, state in health.states.items():
        if state.failures or state.blind or not key.task:
            continue
        if not shaky or (key.source, key.capability) not in shaky:
            found.setdefault((key.capability, key.item), set()).add(key.task)
    return found


def in_sight(health: Health, capability: Capability) -> Collection[str]:
    """Return the tasks of which a capability stands good as a whole, as `standing` has it without an item."""
    if not any(state.failures or state.blind for state in health.states.values()):
        return {key.task for key in health.states if key.task and key.capability is capability}
    states: dict[tuple[str, str], list[ProbeState]] = {}
    for key, state in health.states.items():
        if key.capability is capability:
            states.setdefault((key.source, key.task), []).append(state)
    shaky = {
        source
        for (source, task), asked in states.items()
        if not task and any(state.failures or state.blind for state in asked)
    }
    found = set()
    for (source, task), asked in states.items():
        failing = (state.failures or state.blind for state in _meant_by_all(asked))
        if task and source not in shaky and not any(failing):
            found.add(task)
    return found


def _own(health: Health, key: ProbeKey) -> tuple[ProbeState, ...]:
    items = health.items(key, key.task)
    known = items.get(key.item) or items.get("")
    if known is not None:
        return (known,)
    if key.item:
        return ()
    return tuple(_meant_by_all(items.values()))


def _meant_by_all(asked: Collection[ProbeState]) -> Collection[ProbeState]:
    """Return what of one capability of one task counts if no item is named."""
    unnamed = [state for state in asked if not state.key.item]
    return unnamed or [state for state in asked if state.last_good is not None] or asked


def resumed(states: Iterable[ProbeState]) -> Health:
    """Return the health a start begins with: blind stays blind, all else must be asked again."""
    return Health(states={state.key: state for state in states if state.blind})


def only_tasks(health: Health, tasks: Collection[str]) -> Health:
    """Return the health without tasks that are no longer watched. tasks: keys of those that are."""
    kept = {key: state for key, state in health.states.items() if not key.task or key.task in tasks}
    return health if len(kept) == len(health.states) else Health(states=kept)


def only_served(health: Health, served: Mapping[str, Collection[Capability]]) -> Health:
    """Return the health without what no source can be asked any more. served: capabilities by source.

    A source may come back under its name as another kind, which can be asked less.
    """
    kept = {
        key: state for key, state in health.states.items() if key.capability in served.get(key.source, ())
    }
    return health if len(kept) == len(health.states) else Health(states=kept)


def only_asked(health: Health, asked: Collection[ProbeKey]) -> Health:
    """Return the health without metrics and log streams that nobody asks for any more.

    asked: the keys of those that are. What is not asked can never be seen again, nor fail.
    """
    by_item = (Capability.METRICS, Capability.LOGS)
    kept = {
        key: state for key, state in health.states.items() if key.capability not in by_item or key in asked
    }
    return health if len(kept) == len(health.states) else Health(states=kept)
