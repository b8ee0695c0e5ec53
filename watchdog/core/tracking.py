"""Tracking: how what is known of a task changes as its status is observed.

Owns status changes, attempts, vanishing from the list, and the joined reading of status, metrics
and logs. Which tasks are watched is `resolving`; their expected members are `expecting`.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum

from watchdog.core.health import Standing
from watchdog.core.tasks import Status, StatusChange, TaskObservation, TaskState

MISSES_TO_VANISH = 2  # whole, healthy lists in a row
SAME_START = timedelta(seconds=2)  # rounding of a start time is no restart
SHRUNK_AT_LEAST = 3

_ALIVE = frozenset({Status.LOADING, Status.RUNNING})


def observe_task(
    state: TaskState | None, observation: TaskObservation, at: datetime, *, listed: bool = False
) -> tuple[TaskState, tuple[StatusChange, ...]]:
    """Take in one answer about a task's status.

    The first answer is the baseline: no change, however the task stands. listed: it comes from the
    task list, so that its absence from a later one means something. The state must still have the
    id it was last observed with: a new id is how another attempt shows.
    """
    if state is None:
        state = TaskState(task=observation.task, watched_since=at)
    if says_the_same(state, observation, listed=listed):
        return state, ()
    first = state.status_since is None
    after = _attempt(state, observation, at, first=first)
    changed = first or observation.status is not state.status
    after = replace(
        after,
        task=replace(
            state.task,
            id=observation.task.id or state.task.id,
            namespace=state.task.namespace or observation.task.namespace,
        ),
        status=observation.status,
        status_text=observation.status_text,
        reason=observation.reason or ("" if changed else state.reason),
        status_since=at if changed else state.status_since,
        watched_since=state.watched_since or at,
        nodes={**after.nodes, **observation.nodes} if observation.nodes else after.nodes,
        restarts=state.restarts if observation.restarts is None else observation.restarts,
        misses=0 if listed else state.misses,
    )
    return after, () if first or not changed else (_change(state, after, at),)


def says_the_same(state: TaskState, seen: TaskObservation, *, listed: bool) -> bool:
    """Whether an answer changes nothing of what is known, as most do."""
    return (
        state.status_since is not None
        and state.watched_since is not None
        and seen.status is state.status
        and seen.status_text == state.status_text
        and seen.reason in ("", state.reason)
        and seen.started in (None, state.attempt_started)
        and seen.restarts in (None, state.restarts)
        and seen.task.id in ("", state.task.id)
        and (seen.task.namespace == "" or state.task.namespace != "")
        and seen.nodes.items() <= state.nodes.items()
        and (not listed or state.misses == 0)
    )


def _change(before: TaskState, after: TaskState, at: datetime) -> StatusChange:
    return StatusChange(
        task=after.task,
        before=before.status,
        after=after.status,
        at=at,
        reason=after.reason,
        text=after.status_text,
    )


def _attempt(state: TaskState, seen: TaskObservation, at: datetime, *, first: bool) -> TaskState:
    """Return the state with its attempt as it is after an observation."""
    known, started = state.attempt_started, seen.started
    if first:
        return replace(state, attempt_started=known if started is None else started)
    if _is_new_attempt(state, seen):
        begun = at if seen.status in _ALIVE else None
        if started is not None and (known is None or started > known or _other_id(state, seen)):
            begun = started
        return replace(state, attempt=state.attempt + 1, attempt_started=begun, nodes={})
    if started is not None:
        return replace(state, attempt_started=started)
    if seen.status is Status.RUNNING and state.status in (Status.QUEUED, Status.LOADING):
        return replace(state, attempt_started=at)
    if seen.status is Status.QUEUED and known is None and _has_run(state.status):
        # It ran before, though nobody said since when: running again will be another attempt.
        return replace(state, attempt_started=state.watched_since)
    return state


def _is_new_attempt(state: TaskState, seen: TaskObservation) -> bool:
    """Whether the task began another life: the cloud says so, or it runs again after a break."""
    known, started = state.attempt_started, seen.started
    if _other_id(state, seen):
        return True
    if state.restarts is not None and seen.restarts is not None and seen.restarts > state.restarts:
        return True
    # A start that we only noticed is later than the true one, so an earlier time is a correction.
    if started is not None and known is not None and started > known + SAME_START:
        return True
    if seen.status not in _ALIVE:
        return False
    if state.status is Status.QUEUED:
        return known is not None and started != known
    # Back on the list with the same id and no later start, it had not vanished.
    if state.status in (Status.PAUSED, Status.HELD):
        return True
    return state.status.ended and state.status is not Status.VANISHED


def _has_run(status: Status) -> bool:
    return status.ended or status in (Status.RUNNING, Status.PAUSED, Status.HELD)


def _other_id(state: TaskState, seen: TaskObservation) -> bool:
    return bool(seen.task.id and state.task.id and seen.task.id != state.task.id)


def missed_in_list(
    state: TaskState, at: datetime, *, complete: bool
) -> tuple[TaskState, tuple[StatusChange, ...]]:
    """Take in a healthy task list that does not have this task.

    complete: the list is whole and not suspiciously short (see `list_shrank`); from any other list
    nothing follows. Only a task that some list had before can vanish, after two lists without it.
    """
    if not complete or state.misses is None or state.status.ended:
        return state, ()
    after = replace(state, misses=state.misses + 1)
    if after.misses is None or after.misses < MISSES_TO_VANISH:
        return after, ()
    after = replace(after, status=Status.VANISHED, status_text="", reason="", status_since=at)
    return after, (_change(state, after, at),)


def list_shrank(before: int, now: int) -> bool:
    """Whether a list lost so many tasks at once that it is rather the answer that is incomplete."""
    return before - now >= SHRUNK_AT_LEAST and 2 * now < before


class Diagnosis(StrEnum):
    """What status, metrics and logs say when they are read together."""

    NONE = ""
    ENDED = "the task has ended"
    VANISHED = "the task is gone from the list"
    NOT_RUNNING = "the task is not running"
    METRICS_PATH = "the metrics path is broken: the task runs and logs"
    LOG_PATH = "metrics go on, the log is silent"
    WEDGED_OR_BLIND = "wedged or blind: the task is said to run, but neither metrics nor logs come"


def diagnose(status: Status, metrics: Standing, *, fresh: bool, flowing: bool) -> Diagnosis:
    """Read a task's status, metrics and logs together.

    metrics: standing of the metrics query. fresh: points keep coming. flowing: lines keep coming.
    """
    if status is Status.VANISHED:
        return Diagnosis.VANISHED
    if status.ended:
        return Diagnosis.ENDED
    if not status.counts_as_running:
        return Diagnosis.NOT_RUNNING
    seen = fresh and metrics is not Standing.FAILING
    if seen:
        return Diagnosis.NONE if flowing else Diagnosis.LOG_PATH
    return Diagnosis.METRICS_PATH if flowing else Diagnosis.WEDGED_OR_BLIND
