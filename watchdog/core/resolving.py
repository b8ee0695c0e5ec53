"""Resolving: which tasks are watched, and under which stable key each of them is.

A task watched by id needs no list. A task found by name is followed across restarts: a new cloud
id under the same name is another attempt of the same task. Owns keys; knows no status machine.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from fnmatch import fnmatchcase

from watchdog.core.ruleset import WatchEntry
from watchdog.core.tasks import Task, TaskObservation, TaskState

ENDED_KEPT = timedelta(hours=24)  # how long a task that was found by name stays after its end


def resolve(
    watch: Sequence[WatchEntry],
    listing: Mapping[str, Sequence[TaskObservation]],
    states: Mapping[str, TaskState],
) -> tuple[Task, ...]:
    """Return the tasks to watch, each once, in the order of the file.

    listing: the newest healthy list by source; a source without one keeps the tasks it has.
    states: what is known so far, by task key.
    """
    tasks: dict[str, Task] = {}
    listed = {
        source: {seen.task.id: seen.task for seen in reversed(rows)} for source, rows in listing.items()
    }
    for entry in watch:
        if entry.id:
            tasks.setdefault(entry.key, _by_id(entry, listed.get(entry.source, {}), states))
    if all(entry.id for entry in watch):
        return tuple(tasks.values())
    by_id = {(task.source, task.id) for task in tasks.values()}
    named: Named = {}
    for state in states.values():
        named.setdefault((state.task.source, state.task.name), []).append(state)
    for entry in watch:
        if not entry.id:
            for task in _by_name(entry, listing.get(entry.source, ()), named):
                if (task.source, task.id) not in by_id:
                    tasks.setdefault(task.key, task)
    return tuple(tasks.values())


Named = dict[tuple[str, str], list[TaskState]]  # what is known, by (source, name)


def _by_id(entry: WatchEntry, listed: Mapping[str, Task], states: Mapping[str, TaskState]) -> Task:
    # The name is part of alert ids: once chosen, it stays, even if a list later knows a better one.
    known = states.get(entry.key)
    found = listed.get(entry.id)
    name = entry.name or (known.task.name if known else found.name if found else "") or entry.id
    namespace = entry.namespace or (found.namespace if found else known.task.namespace if known else "")
    if known is not None and _is_still(known.task, entry, name, namespace):
        return known.task
    return Task(
        key=entry.key,
        source=entry.source,
        id=entry.id,
        name=name,
        namespace=namespace,
        labels=entry.labels,
    )


def _is_still(task: Task, entry: WatchEntry, name: str, namespace: str) -> bool:
    """Whether a task that is known by an entry's key is what the entry says."""
    same = task.source == entry.source and task.id == entry.id and task.labels == entry.labels
    return same and task.name == name and task.namespace == namespace


def _by_name(entry: WatchEntry, listed: Sequence[TaskObservation], named: Named) -> Iterator[Task]:
    names: dict[str, list[TaskObservation]] = {
        name: [] for (_, name), states in named.items() if any(_is_of(entry, state) for state in states)
    }
    for seen in listed:
        if fnmatchcase(seen.task.name, entry.name):
            names.setdefault(seen.task.name, []).append(seen)
    for name, found in names.items():
        known_as = {state.task.key: state for state in named.get((entry.source, name), ())}
        for key, id_ in _keys(entry.source, name, found, known_as).items():
            namespace = next((seen.task.namespace for seen in found if seen.task.id == id_), "")
            known = known_as.get(key)
            yield Task(
                key=key,
                source=entry.source,
                id=id_,
                name=name,
                namespace=entry.namespace or namespace or (known.task.namespace if known else ""),
                labels=entry.labels,
            )


def _is_of(entry: WatchEntry, state: TaskState) -> bool:
    """Whether a known task was found by this entry."""
    return (
        not entry.id
        and state.task.source == entry.source
        and fnmatchcase(state.task.name, entry.name)
        and state.task.key in (plain_key(state.task), _own_key(state.task))
    )


def plain_key(task: Task) -> str:
    """Return the key of a task that was found by name."""
    return f"{task.source}/{task.name}"


def _own_key(task: Task) -> str:
    return f"{plain_key(task)}/{task.id}"


def _keys(
    source: str, name: str, found: Sequence[TaskObservation], states: Mapping[str, TaskState]
) -> dict[str, str]:
    """Return cloud ids by key for all tasks of one name: the known ones, and those alive.

    states: those of this source and name, by key.
    """
    plain = f"{source}/{name}"
    keys = {key: state.task.id for key, state in states.items() if key in (plain, f"{plain}/{state.task.id}")}
    taken = set(keys.values())
    alive = {seen.task.id for seen in found if not seen.status.ended}
    new = sorted(alive - taken)
    if len(new) == 1 and keys.get(plain) not in alive:
        keys[plain] = new[0]  # the name's task, for the first time or as a new attempt
    else:
        keys.update((f"{plain}/{id_}", id_) for id_ in new)
    return keys


def outlived(watch: Sequence[WatchEntry], states: Mapping[str, TaskState], at: datetime) -> tuple[str, ...]:
    """Return the keys of tasks found by name that ended so long ago that they can be let go."""
    if all(entry.id for entry in watch):
        return ()
    return tuple(
        key
        for key, state in states.items()
        if state.status.ended
        and state.status_since is not None
        and at - state.status_since > ENDED_KEPT
        and any(_is_of(entry, state) for entry in watch)
    )
