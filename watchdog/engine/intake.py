"""Intake: what collectors brought becomes part of the world, at the start of a slot.

Owns the order (probes, statuses, tasks, points, lines) and what of it must be stored. Judges
nothing beyond what `core.tracking`, `core.expecting` and `core.blindness` decide.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import NamedTuple

from watchdog.core.alerts import Alert, CloseReason, Notice, NoticeKind
from watchdog.core.blindness import observe_all
from watchdog.core.conditions.kinds import Capability
from watchdog.core.durations import duration_ns, format_duration, from_ns, to_ns
from watchdog.core.endings import close_unwatched, forget, forget_task
from watchdog.core.expecting import retired_reason
from watchdog.core.health import Failure, Probe, ProbeKey, Standing, only_tasks
from watchdog.core.incidents import Book, Step, apply, join
from watchdog.core.labels import POD
from watchdog.core.logs import LogLine, StreamKey, StreamState
from watchdog.core.moments import Tick
from watchdog.core.points import Curves
from watchdog.core.resolving import outlived, resolve
from watchdog.core.tasks import Status, StatusChange, Task, TaskObservation, TaskState
from watchdog.core.tracking import (
    Diagnosis,
    diagnose,
    list_shrank,
    missed_in_list,
    observe_task,
    says_the_same,
)
from watchdog.core.view import FRESH_STEPS
from watchdog.engine.inbox import Inbox, LinesArrived, PointsArrived
from watchdog.engine.rollcall import AHEAD, FRESH, FRESH_POLLS, RollCall
from watchdog.engine.world import World, fact_about

FLOWING = timedelta(minutes=5)
LOG = "log"  # what remarks about lines are about


class Untrue(NamedTuple):
    """Why a healthy answer is no picture of now."""

    failure: Failure
    detail: str


@dataclass(slots=True)
class Arrivals:
    """What one slot's intake found out, beside what it changed in the world."""

    changes: list[StatusChange] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    lines: list[tuple[Task, StreamKey, Sequence[LogLine]]] = field(default_factory=list)
    standing: list[LinesArrived] = field(default_factory=list)  # first reads
    streams: dict[StreamKey, StreamState] = field(default_factory=dict)
    remarks: list[tuple[Task, str, str]] = field(default_factory=list)  # (task, metric or "log", remark)
    dropped_tasks: list[str] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)


class Intake:
    """Takes one slot's arrivals into the world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.rollcall = RollCall(world)
        self._whole: tuple[Book, frozenset[str], frozenset[str]] | None = None  # all of it was about these

    def take(self, inbox: Inbox, tick: Tick) -> Arrivals:
        """Take everything in. Changes the world; returns what the slot has to act on."""
        world = self.world
        found = Arrivals()
        for arrived in inbox.listings:
            if arrived.source not in world.sources:
                continue  # it left while this was on its way
            self._listing(arrived.source, arrived.listing.tasks, arrived.listing.complete, tick, found)
        for status in inbox.statuses:
            self._status(status.observation, tick, found)
        self._forget(tick, found)
        self._resolve(tick, found)
        untrue = self._points(inbox.points, tick)
        found.remarks += [(p.task, p.metric, remark) for p in inbox.points for remark in p.answer.remarks]
        found.remarks += [(lines.task, LOG, remark) for lines in inbox.lines for remark in lines.remarks]
        self._lines(inbox.lines, tick, found)
        world.health = observe_all(world.health, self._probes(inbox.probes, untrue))
        self._members(tick, found)
        return found

    # --- status and tasks

    def _listing(
        self, source: str, rows: tuple[TaskObservation, ...], complete: bool, tick: Tick, found: Arrivals
    ) -> None:
        """Take in a healthy list. Statuses come from it where there is no other way to ask."""
        world = self.world
        before = world.listings.get(source, ())
        world.listings[source] = rows
        complete = complete and not list_shrank(len(before), len(rows))
        if Capability.STATUS in world.sources[source].capabilities:
            return
        by_id = {row.task.id: row for row in rows}
        for state in list(world.states.values()):
            if state.task.source != source:
                continue
            row = by_id.get(state.task.id)
            if row is not None:
                self._observe(state.task, row, tick, found, listed=True)
            else:
                self._missed(state, tick, found, complete=complete)

    def _status(self, observation: TaskObservation, tick: Tick, found: Arrivals) -> None:
        state = self.world.states.get(observation.task.key)
        if state is None or observation.task.id != state.task.id:
            return  # the answer to a question about a task, or an attempt, that is no longer watched
        if observation.status is Status.VANISHED:
            self._missed(state, tick, found, complete=True)
        else:
            self._observe(state.task, observation, tick, found, listed=bool(observation.status_text))

    def _observe(
        self, task: Task, seen: TaskObservation, tick: Tick, found: Arrivals, *, listed: bool
    ) -> None:
        state = self.world.states.get(task.key)
        known = state is not None and says_the_same(state, seen, listed=listed)
        if known and seen.status is not Status.UNKNOWN:
            return
        if seen.task is not task:
            seen = replace(seen, task=task)
        after, changes = observe_task(state, seen, tick.at, listed=listed)
        self.world.states[task.key] = after
        found.changes += changes
        if seen.status is Status.UNKNOWN and seen.status_text:
            found.notices += self._unknown_word(after, seen.status_text)

    def _missed(self, state: TaskState, tick: Tick, found: Arrivals, *, complete: bool) -> None:
        after, changes = missed_in_list(state, tick.at, complete=complete)
        self.world.states[state.task.key] = after
        found.changes += changes

    def _unknown_word(self, state: TaskState, word: str) -> Iterable[Notice]:
        return self.once(
            f"status word/{state.task.source}/{word}",
            Notice(
                kind=NoticeKind.UNKNOWN_STATUS,
                subject=f"{state.task.key}/{word}",
                labels=state.task.identity,
                params={"task": state.task.name, "status": word, "source": state.task.source},
                lasting=False,
            ),
        )

    def _forget(self, tick: Tick, found: Arrivals) -> None:
        """Forget what somebody asked to; a task that is still named begins anew."""
        world = self.world
        wanted, world.forgetting = world.forgetting, []
        for key, pod in wanted:
            state = world.states.get(key)
            if state is None:
                continue
            if not pod:
                self._apply(forget_task(world.book, key, tick.at), found)
                world.drop_task(key)
                found.dropped_tasks.append(key)
                continue
            gone = [member.labels for member in state.expected if member.labels.get(POD) == pod]
            kept = tuple(member for member in state.expected if member.labels.get(POD) != pod)
            self._apply(forget(world.book, key, gone, tick.at), found)
            world.states[key] = replace(state, expected=kept)

    def _resolve(self, tick: Tick, found: Arrivals) -> None:
        """Watch tasks that came, stop watching those that no entry names any more."""
        world = self.world
        tasks = {task.key: task for task in resolve(world.ruleset.watch, world.listings, world.states)}
        for key in outlived(world.ruleset.watch, world.states, tick.at):
            tasks.pop(key, None)
        changed = False
        for key, task in tasks.items():
            state = world.states.get(key)
            if state is None:
                world.states[key] = self._found(task, tick)
                changed = True
            elif state.task is not task and state.task != task:
                changed = True
                world.states[key] = self._renamed(state, task, tick, found)
        for key in set(world.states) - set(tasks):
            world.drop_task(key)
            found.dropped_tasks.append(key)
            changed = True
        if changed:
            world.tasks_changed()
            world.health = only_tasks(world.health, world.states.keys())
        self._close_unwatched(tick, found)

    def _found(self, task: Task, tick: Tick) -> TaskState:
        """Return a new task as the list that has it says it is: what it enters from now on is news."""
        state = TaskState(task=task, watched_since=tick.at)
        row = self._row(task)
        return state if row is None else observe_task(state, replace(row, task=task), tick.at, listed=True)[0]

    def _row(self, task: Task) -> TaskObservation | None:
        listed = self.world.listings.get(task.source, ())
        return next((row for row in listed if row.task.id == task.id), None)

    def _renamed(self, state: TaskState, task: Task, tick: Tick, found: Arrivals) -> TaskState:
        """The entry's labels changed, or the same name has a new id in the cloud: another attempt."""
        if task.id == state.task.id:
            return replace(state, task=task)
        row = self._row(task)
        if row is None:
            return replace(state, task=task)
        after, changes = observe_task(state, replace(row, task=task), tick.at, listed=True)
        found.changes += changes
        return replace(after, task=task)

    def _close_unwatched(self, tick: Tick, found: Arrivals) -> None:
        """End what is about nothing that is watched; nothing more can be while nothing else changes."""
        world = self.world
        now = (world.book, frozenset(world.states), frozenset(world.sources))
        if self._whole is not None and self._whole[0] is now[0] and self._whole[1:] == now[1:]:
            return
        self._apply(close_unwatched(world.book, now[1], tick.at, sources=now[2]), found)
        self._whole = (world.book, *now[1:])

    # --- points

    def _points(self, arrived: Iterable[PointsArrived], tick: Tick) -> dict[tuple[str, str], Untrue]:
        """Take points in; returns why a (task, metric)'s answer is no valid one, where it is not."""
        world = self.world
        batches: dict[tuple[str, str], list[PointsArrived]] = {}
        for points in arrived:
            if points.task.key in world.states:
                world.answered(points.task.key, points.metric)
                batches.setdefault((points.task.source, points.metric), []).append(points)
        untrue: dict[tuple[str, str], Untrue] = {}
        steps = world.steps
        for (source, metric), batch in batches.items():
            batch.sort(
                key=lambda points: points.task.key
            )  # as in the slot before: that is cheaper to take in
            series = Curves.joined(points.answer.series for points in batch)
            at_ns = to_ns(max(points.at for points in batch))
            tasks = {points.task.key for points in batch}
            fresh = max(FRESH, FRESH_POLLS * world.poll(source))
            fresh = max(fresh, FRESH_STEPS * steps.get((source, metric), timedelta()))
            cut = {points.task.key for points in batch if not points.answer.complete}
            world.series.intake(source, metric, series, at_ns, tasks=tasks, cut=cut)
            table = world.series.table(source, metric)
            oldest_ns = to_ns(tick.at) - duration_ns(fresh)
            for key in tasks - table.in_time(duration_ns(AHEAD), oldest_ns):
                if why := self._untrue(world.states[key], metric, tick, fresh):
                    untrue[key, metric] = why
        return untrue

    def _untrue(self, state: TaskState, metric: str, tick: Tick, fresh: timedelta) -> Untrue | None:
        """Why the newest point of a running task cannot be a true picture of now; None if it can."""
        source = state.task.source
        table = self.world.series.table(source, metric)
        newest = self.world.series.newest(source, metric, state.task.key)
        if not state.status.counts_as_running:
            return None
        if not newest:
            said = f"{metric}: no point of the last {format_duration(fresh)}"
            return Untrue(Failure.STALE, said) if self._ceased(state, tick, fresh) else None
        ahead_ns = table.ahead_ns(state.task.key)
        if ahead_ns > duration_ns(AHEAD):
            said = (
                f"{metric}: {format_duration(_rounded(ahead_ns))} in the future ({from_ns(newest):%H:%M:%SZ})"
            )
            return Untrue(Failure.CLOCK_SKEW, said)
        age_ns = to_ns(tick.at) - newest
        if age_ns > duration_ns(fresh):
            said = f"{metric}: {format_duration(_rounded(age_ns))} old ({from_ns(newest):%H:%M:%SZ})"
            return Untrue(Failure.STALE, said)
        return None

    def _ceased(self, state: TaskState, tick: Tick, fresh: timedelta) -> bool:
        """Whether a task gave data in this attempt and, since we were started, not a point of anything.

        Without a restart its last points would be here, and too old.
        """
        series, task = self.world.series, state.task
        if any(
            series.newest(task.source, name, task.key) for own, name in series.metrics() if own == task.source
        ):
            return False
        begun = state.attempt_started
        last = max((one.last for one in state.expected), default=None)
        return last is not None and (begun is None or last >= begun) and last < tick.at - fresh

    def _probes(self, probes: Iterable[Probe], untrue: dict[tuple[str, str], Untrue]) -> list[Probe]:
        """One probe per key and slot: a failure of any part counts; an answer that is not of now is one."""
        found: dict[ProbeKey, Probe] = {}
        for probe in probes:
            if probe.key.source not in self.world.sources:
                continue
            if probe.key.task and not self.world.asked(probe.key):
                continue
            before = found.setdefault(probe.key, probe)
            if before is not probe and (before.failure is None or probe.failure is not None):
                found[probe.key] = probe
        streams = self.world.streams_by_task() if untrue else {}
        for (task, metric), (failure, why) in untrue.items():
            source = self.world.states[task].task.source
            key = ProbeKey(source=source, capability=Capability.METRICS, task=task, item=metric)
            answered = found.get(key)
            if answered is not None and answered.failure is None:
                diagnosis = self._diagnosis(task, streams.get(task, ())) if failure is Failure.STALE else ""
                detail = ": ".join(filter(None, (diagnosis, why)))
                found[key] = replace(answered, failure=failure, detail=detail)
        return list(found.values())

    def _diagnosis(self, task: str, streams: Sequence[StreamState]) -> str:
        """What a stale metric means, read together with status and logs."""
        state = self.world.states[task]
        if not streams:
            return ""
        newest = max((max(s.arrived_ns.values(), default=0) for s in streams), default=0)
        flowing = newest > to_ns(self.world.now) - duration_ns(FLOWING)
        found = diagnose(state.status, Standing.GOOD, fresh=False, flowing=flowing)
        return "" if found is Diagnosis.NONE else str(found)

    def _members(self, tick: Tick, found: Arrivals) -> None:
        """Note who gave data; retire who will not come back."""
        retired, steps = [], []
        book = self.world.book
        alerts: Mapping[str, Sequence[Alert]] = {}
        for before, gone in self.rollcall.call(tick):
            reason, key = retired_reason(before, gone), before.task.key
            alerts = alerts or book.by_task()
            steps.append(forget(book, key, gone, tick.at, reason, alerts.get(key, ())))
            if reason is not CloseReason.TASK_ENDED:
                retired.append((before, gone))
        self._apply(join(steps), found)
        found.notices += self.rollcall.notes(retired, tick)

    # --- lines

    def _lines(self, arrived: Iterable[LinesArrived], tick: Tick, found: Arrivals) -> None:
        for lines in arrived:
            if lines.task.key not in self.world.states:
                continue
            self.world.streams[lines.state.key] = lines.state
            found.streams[lines.state.key] = lines.state
            if lines.standing:
                self.world.remember(logged(lines.task.key))
                found.standing.append(lines)
            if lines.lines:
                found.lines.append((lines.task, lines.state.key, lines.lines))
            found.remarks += [(lines.task, "log", remark) for remark in lines.remarks]
            found.notices += _log_notices(lines)

    # --- helpers

    def once(self, fact: str, notice: Notice) -> Iterable[Notice]:
        """Say something once for ever (the store remembers)."""
        if fact in self.world.memory:
            return
        self.world.remember(fact)
        yield notice

    def _apply(self, step: Step, found: Arrivals) -> None:
        if not step.empty:
            self.world.book = apply(self.world.book, step)
            found.steps.append(step)


def logged(task: str) -> str:
    """The fact that a task's log was not empty when it was first read."""
    return fact_about(task, "logged")


def _log_notices(lines: LinesArrived) -> Iterable[Notice]:
    task = lines.task
    base = {"task": task.name, "source": task.source}
    for stretch in lines.unread:
        yield Notice(
            kind=NoticeKind.LOG_UNREAD,
            subject=task.key,
            labels=task.identity,
            params={
                **base,
                "from": from_ns(stretch.start_ns).isoformat(),
                "to": from_ns(stretch.end_ns).isoformat(),
                "contains": " / ".join(stretch.literals),
                "unsearched": " / ".join(lines.unsearched) if stretch.literals else "",
                "reason": str(stretch.reason),
            },
            lasting=False,
            concerned=(f"{stretch.start_ns}-{stretch.end_ns}",),
        )


def _rounded(age_ns: int) -> timedelta:
    return timedelta(seconds=age_ns // 1_000_000_000)
