"""Blindness: one message for a whole source rather than one per task, rule or query.

When a key (source, capability, task, item) becomes blind, it is filed under a subject as wide as the
failure is at that moment, and stays there until it sees again; so a message is neither repeated
when the failure narrows nor missing when a second outage begins. Owns subjects and wording
parameters; counting is `health`.
"""

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from watchdog.core.alerts import Notice, NoticeKind
from watchdog.core.conditions.kinds import Capability
from watchdog.core.health import Failure, Health, Probe, ProbeKey, ProbeState, after_probe
from watchdog.core.labels import SOURCE, Labels
from watchdog.core.tasks import Task

SAME_OUTAGE = timedelta(minutes=10)  # failures that begin so near each other are told as one
LINGERING = timedelta(minutes=10)  # part of an outage that lasts so much longer is told by itself
RECENT = timedelta(minutes=30)  # what was not asked for so long says nothing about the source
SEVERAL = 3  # so many tasks are told as one, even if most others can be seen
TASKS_NAMED = 5

# What a source answers about one task only, however often that is the only task watched.
_OF_ONE_TASK = frozenset({Failure.NOT_FOUND, Failure.FORBIDDEN, Failure.UNSUPPORTED, Failure.BAD_REQUEST})

_LIST = Capability.LIST

States = Mapping[ProbeKey, ProbeState]


def observe_all(health: Health, probes: Iterable[Probe]) -> Health:
    """Take in a batch of answers and failures, in order, and file what became blind."""
    states = dict(health.states)
    at: datetime | None = None
    newly: dict[ProbeKey, None] = {}
    for probe in probes:
        before = states.get(probe.key) or ProbeState(key=probe.key)
        after = states[probe.key] = after_probe(before, probe)
        if after.blind and not before.blind:
            newly[probe.key] = None
        at = probe.at if at is None else max(at, probe.at)
    if at is None:
        return health
    if any(state.blind for state in states.values()):
        widths = _widths(states, at)
        filed = _Filed(states.values(), at) if newly else None
        for key in newly:
            if filed is not None and states[key].blind:
                filed.take(states[key])
                states[key] = replace(states[key], subject=filed.subject(widths, states[key]))
                filed.put(states[key])
        _split(states, widths, at)
    return Health(states=states)


@dataclass(slots=True)
class _Width:
    """How many tasks were asked something lately, and how many of them it fails for."""

    asked: int = 0
    failing: int = 0
    about_tasks: bool = True  # the only failures are such as concern one task

    @property
    def whole(self) -> bool:
        """Whether it is the capability that fails, rather than some tasks."""
        if self.asked == 1:
            return self.failing == 1 and not self.about_tasks
        return self.failing >= 2 and 2 * self.failing >= self.asked

    def count(self, states: Sequence[ProbeState]) -> None:
        """Take in one task's questions; it counts as failing if all of them fail."""
        self.asked += 1
        if all(state.failures for state in states):
            self.failing += 1
            self.about_tasks &= all(state.key.task and state.failure in _OF_ONE_TASK for state in states)


@dataclass(frozen=True, slots=True)
class _Widths:
    """How wide everything fails that was asked lately.

    by: (source, capability, item); without item, over all questions of the capability.
    partly: the tasks' capabilities, as keys without item, of which some questions are answered.
    """

    by: Mapping[tuple[str, Capability, str], _Width]
    partly: Collection[ProbeKey]

    def part(self, key: ProbeKey) -> str:
        """Return the item, if it is not the whole capability that fails for this task."""
        return key.item if key.whole in self.partly else ""

    def of(self, key: ProbeKey, item: str) -> _Width:
        """Return how wide an item fails, or the capability."""
        return self.by.get((key.source, key.capability, item), _Width())


def _widths(states: States, at: datetime) -> _Widths:
    asked: dict[ProbeKey, list[ProbeState]] = {}
    for key, state in states.items():
        if state.asked is not None and at - state.asked <= RECENT:
            asked.setdefault(key.whole, []).append(state)
    by: dict[tuple[str, Capability, str], _Width] = {}
    for whole, group in asked.items():
        by.setdefault((whole.source, whole.capability, ""), _Width()).count(group)
        for state in group:
            if state.key.item:
                by.setdefault((whole.source, whole.capability, state.key.item), _Width()).count([state])
    # Where the list is refused as well, it is the source that refuses, however few tasks are watched.
    refused = {source for (source, capability, _), own in by.items() if capability is _LIST and own.failing}
    for (source, _, _), width in by.items():
        width.about_tasks &= source not in refused
    partly = {whole for whole, group in asked.items() if not all(state.failures for state in group)}
    return _Widths(by, partly)


class _Mates(NamedTuple):
    """What blind keys share that are told under one subject. task: only if it is about that one."""

    source: str
    capability: Capability
    subject: str
    wide: bool
    task: str


class _Filed:
    """The blind keys, by what they are told under: a new one is compared with subjects, not with all keys."""

    def __init__(self, states: Iterable[ProbeState], at: datetime) -> None:
        self._at = at
        self._since: dict[str, dict[_Mates, list[datetime]]] = {}  # by task; when each began, sorted
        for state in states:
            if state.blind:
                self.put(state)

    def put(self, state: ProbeState) -> None:
        """Take in a key as it is told now."""
        mates = _mates(state)
        insort(self._since.setdefault(mates.task, {}).setdefault(mates, []), _since(state, self._at))

    def take(self, state: ProbeState) -> None:
        """Take out a key that was put in."""
        mates = _mates(state)
        self._since[mates.task][mates].remove(_since(state, self._at))

    def subject(self, widths: _Widths, state: ProbeState) -> str:
        """Choose what a key that has just become blind is reported under."""
        level = _level(widths, state)
        begun = _since(state, self._at)
        near: list[tuple[datetime, str]] = []
        for task in dict.fromkeys(("", state.key.task)):
            for mates, since in self._since.get(task, {}).items():
                place = bisect_left(since, begun - SAME_OUTAGE)
                if place == len(since) or since[place] > begun + SAME_OUTAGE:
                    continue
                if _same_outage(level, state.key, mates):
                    near.append((since[place], mates.subject))
        # An outage of which a part was already told as wide as this: this is the rest of it.
        return min(near, key=lambda mate: mate[0])[1] if near else level


def _mates(state: ProbeState) -> _Mates:
    key, subject = state.key, state.subject
    wide = _wide(subject, key)
    task = "" if wide or subject.endswith(_SOME) else key.task
    return _Mates(key.source, key.capability, subject, wide, task)


def _same_outage(level: str, key: ProbeKey, mates: _Mates) -> bool:
    """Whether what was said of others says enough of a key, too. Of a part it is not said of the whole."""
    if mates.source != key.source or (_partial(mates.subject) and not _partial(level)):
        return False
    if _wide(level, key):
        return mates.wide
    if mates.capability is not key.capability:
        return False
    if level.endswith(_SOME):
        return mates.subject.endswith(_SOME)
    return mates.task == key.task and mates.subject.startswith(f"{key.task}/")


def _level(widths: _Widths, state: ProbeState) -> str:
    key = state.key
    part = widths.part(key)
    own = widths.of(key, part)
    if key.task and not own.whole:
        return _several(key, part) if own.failing >= SEVERAL else _single(key, part)
    if part:
        return _whole(key, part)
    all_widths = [
        width for (source, _, item), width in widths.by.items() if (source, item) == (key.source, "")
    ]
    if len(all_widths) > 1 and all(width.whole for width in all_widths):
        return key.source
    return _whole(key)


def _split(states: dict[ProbeKey, ProbeState], widths: _Widths, at: datetime) -> None:
    """Let what lingers long after the rest of a wide outage has ended be told by itself."""
    ended: dict[str, datetime] = {}
    begun: dict[str, datetime] = {}
    for state in states.values():
        if state.blind:
            begun[state.subject] = min(begun.get(state.subject, at), _since(state, at))
        elif state.sighted is not None and state.sighted <= at - LINGERING:
            ended[state.subject] = max(ended.get(state.subject, state.sighted), state.sighted)
    for key, state in states.items():
        over = ended.get(state.subject)
        if state.blind and _wide(state.subject, key) and over and begun[state.subject] <= over:
            states[key] = replace(state, subject=_level(widths, state))


def _since(state: ProbeState, default: datetime) -> datetime:
    return default if state.since is None else state.since


_SOME = "/some"


def _single(key: ProbeKey, part: str = "") -> str:
    return f"{key.task}/{_what(key, part)}" if key.task else _whole(key, part)


def _several(key: ProbeKey, part: str = "") -> str:
    return f"{_whole(key, part)}{_SOME}"


def _whole(key: ProbeKey, part: str = "") -> str:
    return f"{key.source}/{_what(key, part)}"


def _what(key: ProbeKey, part: str) -> str:
    return f"{key.capability}:{part}" if part else str(key.capability)


def _partial(subject: str) -> bool:
    """Whether a subject is one question of several of a capability."""
    return any(f"/{capability}:" in subject for capability in Capability)


def _wide(subject: str, key: ProbeKey) -> bool:
    """Whether a subject is the source itself, or one of its capabilities, or an item of one for all tasks."""
    if not subject or subject.endswith(_SOME):
        return False
    return not key.task or not subject.startswith(f"{key.task}/")


def blind_notices(health: Health, tasks: Collection[Task]) -> tuple[Notice, ...]:
    """Return what is to be said about blindness now, and what no longer is (active False).

    One notice per subject. Keys of tasks that are not in `tasks` are left out.
    """
    names = {task.key: task for task in tasks}
    groups: dict[str, list[ProbeState]] = {}
    over: dict[str, str] = {}
    for key, state in health.states.items():
        if state.subject and (not key.task or key.task in names):
            groups.setdefault(state.subject, []).append(state)
            forms = (form(key, part) for form in (_single, _several, _whole) for part in {"", key.item})
            for subject in (state.subject, *forms, key.source):
                over[subject] = key.source
    blind = {subject: group for subject, group in groups.items() if any(state.blind for state in group)}
    ended = [
        Notice(
            kind=NoticeKind.SOURCE_BLIND,
            subject=subject,
            labels=Labels({SOURCE: source}),
            active=False,
        )
        for subject, source in over.items()
        if subject not in blind
    ]
    return (*(_notice(subject, group, names) for subject, group in blind.items()), *ended)


def _notice(subject: str, group: list[ProbeState], names: Mapping[str, Task]) -> Notice:
    """Word the params of one subject. Tasks that see again already are named until all do."""
    oldest = min((state for state in group if state.blind), key=_age)
    source = oldest.key.source
    concerned = [
        state
        for state in group
        if state.blind or (state.sighted and oldest.since and state.sighted >= oldest.since)
    ]
    tasks = sorted({state.key.task for state in concerned if state.key.task})
    wide = _wide(subject, oldest.key)
    params = {
        "source": source,
        "capability": ", ".join(sorted({str(state.key.capability) for state in concerned})),
        "failure": str(oldest.failure or ""),
        "detail": oldest.detail,
        "since": "" if oldest.since is None else oldest.since.isoformat(),
    }
    if _partial(subject):
        params["items"] = ", ".join(sorted({state.key.item for state in concerned if state.key.item}))
    if tasks and not wide:
        shown = ", ".join(names[key].name for key in tasks[:TASKS_NAMED])
        more = len(tasks) - TASKS_NAMED
        params["task"] = f"{shown} (+{more})" if more > 0 else shown
    if len(tasks) > 1:
        params["tasks"] = str(len(tasks))
    alone = names.get(tasks[0]) if len(tasks) == 1 and not wide else None
    labels = Labels({SOURCE: source}) if alone is None else alone.identity
    return Notice(
        kind=NoticeKind.SOURCE_BLIND,
        subject=subject,
        labels=labels,
        params=params,
        concerned=tuple(tasks) if subject.endswith(_SOME) else (),
    )


def _age(state: ProbeState) -> tuple[bool, str, ProbeKey]:
    return state.since is None, "" if state.since is None else state.since.isoformat(), state.key
