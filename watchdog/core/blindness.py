"""Blindness: one message for a whole source rather than one per task, rule or query.

When a key (source, capability, task) becomes blind, it is filed under a subject as wide as the
failure is at that moment, and stays there until it sees again; so a message is neither repeated
when the failure narrows nor missing when a second outage begins. Owns subjects and wording
parameters; counting is `health`.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

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

States = Mapping[ProbeKey, ProbeState]


def observe_all(health: Health, probes: Iterable[Probe]) -> Health:
    """Take in a batch of answers and failures, in order, and file what became blind."""
    states = dict(health.states)
    at: datetime | None = None
    newly: dict[ProbeKey, None] = {}
    for probe in probes:
        before = states.get(probe.key, ProbeState(key=probe.key))
        states[probe.key] = after_probe(before, probe)
        if states[probe.key].blind and not before.blind:
            newly[probe.key] = None
        at = probe.at if at is None else max(at, probe.at)
    if at is None:
        return health
    if any(state.blind for state in states.values()):
        widths = _widths(states, at)
        for key in newly:
            if states[key].blind:
                states[key] = replace(states[key], subject=_subject(states, widths, states[key], at))
        _split(states, widths, at)
    return Health(states=states)


@dataclass(slots=True)
class _Width:
    """How many of a capability's keys were asked lately, and how many of those fail."""

    asked: int = 0
    failing: int = 0
    about_tasks: bool = True  # the only failures are such as concern one task

    @property
    def whole(self) -> bool:
        """Whether it is the capability that fails, rather than some tasks."""
        if self.asked == 1:
            return self.failing == 1 and not self.about_tasks
        return self.failing >= 2 and 2 * self.failing >= self.asked


Widths = Mapping[tuple[str, Capability], _Width]


def _widths(states: States, at: datetime) -> Widths:
    widths: dict[tuple[str, Capability], _Width] = {}
    for key, state in states.items():
        if state.asked is not None and at - state.asked <= RECENT:
            width = widths.setdefault((key.source, key.capability), _Width())
            width.asked += 1
            if state.failures:
                width.failing += 1
                width.about_tasks &= bool(key.task) and state.failure in _OF_ONE_TASK
    return widths


def _subject(states: States, widths: Widths, state: ProbeState, at: datetime) -> str:
    """Choose what a key that has just become blind is reported under."""
    level = _level(widths, state)
    if not _wide(level, state.key):
        return level
    near = [
        mate
        for mate in states.values()
        if mate.blind
        and mate.key != state.key
        and mate.key.source == state.key.source
        and _wide(mate.subject, mate.key)
        and abs(_since(mate, at) - _since(state, at)) <= SAME_OUTAGE
    ]
    # An outage of which a part was already told as the source's: this is the rest of it.
    return min(near, key=lambda mate: _since(mate, at)).subject if near else level


def _level(widths: Widths, state: ProbeState) -> str:
    key = state.key
    own = widths.get((key.source, key.capability), _Width())
    if key.task and not own.whole:
        return _several(key) if own.failing >= SEVERAL else _single(key)
    all_widths = [width for (source, _), width in widths.items() if source == key.source]
    if len(all_widths) > 1 and all(width.whole for width in all_widths):
        return key.source
    return _whole(key)


def _split(states: dict[ProbeKey, ProbeState], widths: Widths, at: datetime) -> None:
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


def _single(key: ProbeKey) -> str:
    return f"{key.task}/{key.capability}" if key.task else _whole(key)


def _several(key: ProbeKey) -> str:
    return f"{key.source}/{key.capability}/some"


def _whole(key: ProbeKey) -> str:
    return f"{key.source}/{key.capability}"


def _wide(subject: str, key: ProbeKey) -> bool:
    """Whether a subject is the source itself, or one of its capabilities."""
    return bool(subject) and subject != _several(key) and (not key.task or subject != _single(key))


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
            for subject in (state.subject, _single(key), _several(key), _whole(key), key.source):
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
    if tasks and not wide:
        shown = ", ".join(names[key].name for key in tasks[:TASKS_NAMED])
        more = len(tasks) - TASKS_NAMED
        params["task"] = f"{shown} (+{more})" if more > 0 else shown
    if len(tasks) > 1:
        params["tasks"] = str(len(tasks))
    alone = names.get(tasks[0]) if len(tasks) == 1 and not wide else None
    labels = Labels({SOURCE: source}) if alone is None else alone.identity
    return Notice(kind=NoticeKind.SOURCE_BLIND, subject=subject, labels=labels, params=params)


def _age(state: ProbeState) -> tuple[bool, str, ProbeKey]:
    return state.since is None, "" if state.since is None else state.since.isoformat(), state.key
