"""The roll call against the plain rule: every member looked at in every slot, nothing remembered."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from watchdog.core.blindness import observe_all
from watchdog.core.conditions.kinds import Capability
from watchdog.core.durations import from_ns, to_ns
from watchdog.core.expecting import retire, see_members
from watchdog.core.health import Failure, Probe, ProbeKey, Standing
from watchdog.core.labels import GPU, POD, Labels
from watchdog.core.moments import Moment, Tick
from watchdog.core.series import SeriesPoints
from watchdog.core.tasks import Status, Task, TaskState
from watchdog.engine.rollcall import OWED, RollCall
from watchdog.engine.world import World
from watchdog.ports import MetricInfo

MINUTE = timedelta(minutes=1)
PODS = ("a", "b", "c", "d")


class Lab:
    """A world with some tasks of which pods come and go; slots a minute apart."""

    def __init__(self, bench, tasks: int = 1) -> None:  # type: ignore[no-untyped-def]
        bench.watch = ()
        self.bench, self.minute = bench, 0
        engine = bench.engine()
        self.world: World = engine.world
        self.world.ruleset = replace(self.world.ruleset, forget_after=timedelta(hours=1))
        for number in range(1, tasks + 1):
            task = bench.cloud.task(str(number))
            self.world.states[task.key] = TaskState(
                task=task,
                status=Status.RUNNING,
                watched_since=bench.world.start,
                attempt_started=bench.world.start,
            )
        self.call = RollCall(self.world)

    def at(self, minute: float):  # type: ignore[no-untyped-def]
        return self.bench.world.start + minute * MINUTE

    def give(
        self, pods: Sequence[str], task: Task | None = None, *, metric: str = "gpu", gpus: int = 2
    ) -> None:
        """Let these pods have a point at the coming slot."""
        task = task or next(iter(self.world.states.values())).task
        when = np.array([to_ns(self.at(self.minute + 1))], np.int64)
        series = [
            SeriesPoints(
                labels=task.identity.plus({"pod": pod, "gpu": str(gpu)}), times=when, values=np.ones(1)
            )
            for pod in pods
            for gpu in range(gpus)
        ]
        self.world.series.intake(task.source, metric, series, int(when[0]), tasks={task.key})

    def health(self, *, good: bool) -> None:
        failure = None if good else Failure.TIMEOUT
        probes = [
            Probe(
                key=ProbeKey(source="src", capability=Capability.METRICS, task=key, item="gpu"),
                at=self.at(self.minute + 1),
                failure=failure,
            )
            for key in self.world.states
        ]
        self.world.health = observe_all(self.world.health, probes)

    def tick(self) -> Tick:
        self.minute += 1
        moment = Moment(at=self.at(self.minute), watched=self.minute * MINUTE)
        return Tick(moment=moment, elapsed=MINUTE, run=moment.watched, interval=MINUTE)

    def here(self, state: TaskState) -> dict[Labels, int]:
        """The plain way: every series, every slot."""
        after = to_ns(self.at(self.minute)) - to_ns(self.at(5)) + to_ns(self.at(0))
        began = to_ns(state.attempt_started) if state.attempt_started else 0
        found: dict[Labels, int] = {}
        for labels, newest in self.world.series.latest("src", "gpu"):
            for part in (labels.only((POD, GPU)), labels.only((POD,))):
                if labels["task"] == state.task.key and newest > max(after, began):
                    found[part] = max(newest, found.get(part, 0))
        return found


segment = st.tuples(
    st.integers(1, 35),
    st.sets(st.sampled_from(PODS)),
    st.booleans(),
    st.sampled_from(("", "", "", "restart")),
)


@settings(max_examples=40, deadline=None)
@given(story=st.lists(segment, min_size=2, max_size=6))
def test_it_finds_what_the_plain_rule_finds(
    new_bench: Callable[[], object], story: list[tuple[int, set[str], bool, str]]
) -> None:
    bench = new_bench()
    lab = Lab(bench)
    plain = next(iter(lab.world.states.values()))
    for minutes, pods, good, event in story:
        for number in range(minutes):
            lab.health(good=good)
            if good:
                lab.give(sorted(pods))
            tick = lab.tick()
            if event and not number:
                started = tick.at - timedelta(seconds=30)
                plain = replace(plain, attempt_started=started)
                key, own = next(iter(lab.world.states.items()))
                lab.world.states[key] = replace(own, attempt_started=started)
            gone = {labels for _, went in lab.call.call(tick) for labels in went}
            seen = lab.here(plain)
            plain = see_members(plain, {labels: from_ns(time) for labels, time in seen.items()})
            left: tuple[Labels, ...] = ()
            probe = ProbeKey(source="src", capability=Capability.METRICS, task=plain.task.key)
            if plain.status.ended or (not tick.settling and lab.world.standing(probe) is Standing.GOOD):
                plain, left = retire(plain, tick, seen.keys(), forget_after=timedelta(hours=1))
            (state,) = lab.world.states.values()
            assert gone == set(left)
            mine = {member.labels: member for member in state.expected}
            theirs = {member.labels: member for member in plain.expected}
            assert mine.keys() == theirs.keys()
            for labels, member in theirs.items():
                if labels not in seen and member.last >= (plain.attempt_started or member.last):
                    assert mine[labels].last == member.last, "exact for those of this attempt who are gone"
                    assert abs(mine[labels].missing - member.missing) <= OWED
    bench.state.discard()


def test_a_task_of_which_all_are_here_costs_nothing(bench) -> None:  # type: ignore[no-untyped-def]
    lab = Lab(bench)
    for _ in range(3):
        lab.health(good=True)
        lab.give(PODS)
        list(lab.call.call(lab.tick()))
    (before,) = lab.world.states.values()
    for _ in range(25):
        lab.health(good=True)
        lab.give(PODS)
        list(lab.call.call(lab.tick()))
    (after,) = lab.world.states.values()
    assert after is before, "nothing to store either"


def test_who_is_here_is_renewed_now_and_then(bench) -> None:  # type: ignore[no-untyped-def]
    lab = Lab(bench, tasks=3)
    for _ in range(80):
        lab.health(good=True)
        for state in list(lab.world.states.values()):
            lab.give(PODS, state.task)
        list(lab.call.call(lab.tick()))
    for state in lab.world.states.values():
        assert {member.last > lab.at(40) for member in state.expected} == {True}


def test_series_that_were_forgotten_do_not_count(bench) -> None:  # type: ignore[no-untyped-def]
    lab = Lab(bench, tasks=2)
    first, second = (state.task for state in lab.world.states.values())
    for _ in range(3):
        lab.health(good=True)
        lab.give(("a",), first)
        lab.give(("b",), second)
        list(lab.call.call(lab.tick()))
    lab.world.drop_task(first.key)
    for _ in range(3):
        lab.health(good=True)
        lab.give(("b", "c"), second)
        list(lab.call.call(lab.tick()))
    assert {member.labels["pod"] for member in lab.world.states[second.key].expected} == {"b", "c"}


def test_a_metric_that_lacks_pods_leaves_the_others_to_speak(bench) -> None:  # type: ignore[no-untyped-def]
    lab = Lab(bench)
    for minute in range(8):
        lab.health(good=True)
        lab.give(("a",), metric="vram")
        lab.give(("a",) if minute < 1 else ())
        list(lab.call.call(lab.tick()))
    (state,) = lab.world.states.values()
    assert {member.missing for member in state.expected} == {timedelta()}


def test_pods_of_a_metric_that_comes_rarely_are_not_replaced_by_a_new_one(bench) -> None:  # type: ignore[no-untyped-def]
    bench.cloud.metric_infos = lambda: (MetricInfo(name="gpu", step=10 * MINUTE),)
    lab = Lab(bench)
    retired = []
    for minute in range(60):
        lab.health(good=True)
        if minute % 10 == 0:
            lab.give(("a", "b"))
        if minute >= 28 and minute % 10 == 8:
            lab.give(("c",))
        retired += list(lab.call.call(lab.tick()))
    (state,) = lab.world.states.values()
    assert retired == []
    assert {member.labels["pod"] for member in state.expected} == {"a", "b", "c"}
    assert {member.missing for member in state.expected} == {timedelta()}


def test_who_has_no_series_any_more_is_not_here_because_all_others_are(bench) -> None:  # type: ignore[no-untyped-def]
    """Old series were dropped, and as many came with another task: nobody comes back by that."""
    lab = Lab(bench, tasks=2)
    first, second = (state.task for state in lab.world.states.values())
    for key, state in lab.world.states.items():
        lab.world.states[key] = replace(state, attempt_started=None)

    def slot(pods: Sequence[str], *, others: Sequence[str] = ()) -> None:
        lab.give(pods, first, gpus=1)
        if others:
            lab.give(others, second, gpus=1)
        lab.health(good=True)
        list(lab.call.call(lab.tick()))

    for _ in range(3):
        slot(["a", "b"])
    for _ in range(200):
        slot(["b"])
    assert lab.world.series.forget_outlived(timedelta(hours=1)) == 1
    slot(["b"], others=["y", "z"])
    pods = {member.labels["pod"] for member in lab.world.states[first.key].expected}
    assert pods == {"b"}
    assert {labels.get("pod") for labels in lab.call._attendance.here(first.key)} == {"b"}
