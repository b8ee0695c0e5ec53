"""How cost grows: with each thing there may be much of, by CPU, linear or better.

Each test does the same work at two sizes, the larger ten times the smaller, and compares the cost of one
unit; what is worse than linear costs ten times as much a unit. `WATCHDOG_BENCH=full` takes a hundred times.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from time import process_time

import numpy as np

from watchdog.core.alerts import Change, Incident, IncidentMember, Transition
from watchdog.core.conditions.kinds import Aggregate, By, Comparison, Threshold
from watchdog.core.durations import to_ns
from watchdog.core.health import Failure
from watchdog.core.labels import Labels
from watchdog.core.moments import Moment
from watchdog.core.planning import PlanInput, plan
from watchdog.core.rules import Rule, Severity
from watchdog.core.ruleset import ChannelSpec, Secret, WatchEntry
from watchdog.core.series import SeriesPoints, SeriesStore
from watchdog.core.tasks import Status
from watchdog.ports import PlanCommit, SlotCommit
from watchdog.store.sqlite import SqliteStore

STEPS = (1, 10, 100) if os.environ.get("WATCHDOG_BENCH") == "full" else (1, 10)
SLACK = 4  # how much more a unit may cost at the larger size: a busy machine's caches, never a square


def grows(what: str, smallest: int, cost: Callable[[int], float]) -> None:
    """Measure at each size and compare. cost: size → CPU seconds, the least of some runs."""
    units = []
    for step in STEPS:
        size = smallest * step
        taken = cost(size)
        units.append(taken / size)
        print(f"{what} {size}: {taken * 1e3:.2f} ms CPU, {units[-1] * 1e6:.2f} us each")
    assert units[-1] < SLACK * min(units[:-1])


def stays(what: str, smallest: int, cost: Callable[[int], float]) -> None:
    """The same for what must cost the same however much there is of something else."""
    taken = [cost(smallest * step) for step in STEPS]
    for step, seconds in zip(STEPS, taken, strict=True):
        print(f"{what} {smallest * step}: {seconds * 1e3:.2f} ms CPU")
    assert taken[-1] < SLACK * min(taken[:-1])


def least(work: Callable[[], float], times: int = 5) -> float:
    return min(work() for _ in range(times))


def above(name: str, by: By, level: float, metric: str = "gpu") -> Rule:
    """A rule on the newest value; at level 0 it is true of every GPU, at 2 of none."""
    return Rule(
        name=name,
        condition=Threshold(
            metric=metric,
            aggregate=Aggregate.LAST,
            window=None,
            comparison=Comparison(above=True, threshold=level),
            by=by,
        ),
        while_status=frozenset({Status.RUNNING}),
    )


def steady(fleet) -> float:
    """CPU seconds of a slot in which nothing happens."""
    for _ in range(2):
        fleet.slot()
    return least(fleet.slot)


def test_a_slot_grows_with_its_series(tmp_path, fleet_of):
    grows("series", 1_600, lambda size: steady(fleet_of(tmp_path, size // 2, points=12)))


def test_a_slot_grows_with_its_tasks(tmp_path, fleet_of):
    grows("tasks", 30, lambda size: steady(fleet_of(tmp_path, size * 8, per_task=8, points=12)))


def test_tasks_found_by_name_cost_no_more_the_more_there_are(tmp_path, fleet_of):
    def cost(size: int) -> float:
        watch = (WatchEntry(source="s", name="t*"),)
        return steady(fleet_of(tmp_path, size, per_task=1, per_pod=1, points=2, watch=watch))

    grows("tasks by name", 30, cost)


def test_a_slot_grows_with_the_pods_of_one_task(tmp_path, fleet_of):
    grows("pods", 40, lambda size: steady(fleet_of(tmp_path, size, per_task=size, per_pod=1, points=12)))


def test_a_slot_grows_with_its_rules(tmp_path, fleet_of):
    def cost(size: int) -> float:
        rules = [above(f"r{n}", By.POD, 2.0) for n in range(size)]
        return steady(fleet_of(tmp_path, 160, rules=rules, points=12))

    grows("rules", 6, cost)


def test_all_pods_of_a_task_replaced_by_others(tmp_path, fleet_of):
    def cost(size: int) -> float:
        def once() -> float:
            fleet = fleet_of(tmp_path, size, per_task=size, per_pod=1, points=2)
            fleet.slot()
            fleet.rename_pods()
            return sum(fleet.slot() for _ in range(8))

        return least(once, 2)

    grows("pods replaced", 30, cost)


def test_incidents_that_open_in_one_slot_and_go_on(tmp_path, fleet_of):
    def cost(size: int) -> float:
        def once() -> float:
            rules = [above("all", By.GPU, 0.0)]
            return fleet_of(tmp_path, size, per_task=1, per_pod=1, points=12, rules=rules).slot()

        return least(once, 2)

    grows("incidents opened", 30, cost)

    def going_on(size: int) -> float:
        rules = [above("all", By.GPU, 0.0)]
        return steady(fleet_of(tmp_path, size, per_task=1, per_pod=1, points=12, rules=rules))

    grows("incidents open", 30, going_on)


def test_alerts_that_share_an_incident(tmp_path, fleet_of):
    def cost(size: int) -> float:
        rules = [above("all", By.GPU, 0.0)]
        return steady(fleet_of(tmp_path, size, per_task=size, points=12, rules=rules))

    grows("alerts of one task", 40, cost)


def test_an_outage_of_every_task_at_once(tmp_path, fleet_of):
    def cost(size: int) -> float:
        def once() -> float:
            fleet = fleet_of(tmp_path, size, per_task=1, per_pod=1, points=2)
            fleet.slot()
            fleet.failure = Failure.UNREACHABLE
            return sum(fleet.slot() for _ in range(5))

        return least(once, 2)

    grows("tasks blind", 30, cost)


def test_every_task_ends_at_once(tmp_path, fleet_of):
    def cost(size: int) -> float:
        def once() -> float:
            rules = [above("all", By.GPU, 0.0)]
            fleet = fleet_of(tmp_path, size, per_task=1, per_pod=1, points=2, rules=rules)
            fleet.slot()
            fleet.status = Status.SUCCEEDED
            return sum(fleet.slot() for _ in range(2))

        return least(once, 2)

    grows("tasks ended", 30, cost)


def test_late_points_cost_no_more_the_more_series_there_are():
    def cost(size: int) -> float:
        labels = [Labels.of(source="s", task=f"s/{n // 80}", pod=f"p{n}") for n in range(size)]
        store, minute = SeriesStore(), 60_000_000_000

        def take(first: int, last: int, step: int = 1) -> float:
            times = np.arange(first, last, step) * minute
            answer = [SeriesPoints(labels=own, times=times, values=np.ones(times.size)) for own in labels]
            began = process_time()
            store.intake("s", "gpu", answer, last * minute)
            return process_time() - began

        take(1000, 1060, 2)
        return take(1001, 1060, 2)

    grows("series with late points", 300, lambda size: least(lambda: cost(size), 3))


def opened(count: int, at: Moment) -> list[Incident]:
    found = []
    for n in range(count):
        labels = Labels.of(source="s", task=f"s/{n}", task_name=f"t{n}")
        found.append(
            Incident(
                id=f"i{n}",
                rule="r",
                labels=labels,
                severity=Severity.WARNING,
                event=False,
                opened_at=at.at,
                since=at.at,
                updated_at=at.at,
                members=(IncidentMember(labels=labels, since=at.at),),
            )
        )
    return found


def planned(incidents: list[Incident], moment: Moment, outbox=()) -> tuple:
    return plan(
        PlanInput(
            mark=0,
            transitions=tuple(
                Transition(seq=n + 1, incident=one.id, change=Change.OPENED, at=one.opened_at)
                for n, one in enumerate(incidents)
            ),
            incidents={one.id: one for one in incidents},
            channels=(ChannelSpec(name="team", url=Secret("x://")),),
            ledger={},
            outbox=outbox,
        ),
        moment,
    ).deliveries


def test_planning_grows_with_the_outbox(fleet_of):
    moment = Moment(at=fleet_of.start, watched=timedelta(hours=1))
    later = Moment(at=moment.at + timedelta(minutes=1), watched=moment.watched + timedelta(minutes=1))

    def cost(size: int) -> float:
        incidents = opened(size, moment)
        rows = tuple(replace(row, id=n + 1) for n, row in enumerate(planned(incidents, moment)))

        def once() -> float:
            began = process_time()
            planned(incidents, later, rows)
            return process_time() - began

        return least(once, 3)

    grows("rows in the outbox", 100, cost)


def test_storing_one_delivery_costs_no_more_the_longer_the_outbox(tmp_path, fleet_of):
    moment = Moment(at=fleet_of.start, watched=timedelta(hours=1))

    def cost(size: int) -> float:
        store = SqliteStore.open(tmp_path / f"{size}.db", started=moment.at)
        incidents = opened(size, moment)
        rows = tuple(replace(row, id=n + 1) for n, row in enumerate(planned(incidents, moment)))
        store.commit_slot(SlotCommit(moment=moment, incidents=tuple(incidents)))
        store.commit_plan(PlanCommit(mark=0, deliveries=rows))
        began = process_time()
        for row in rows[:100]:
            store.start_attempt(row)
        taken = process_time() - began
        store.close()
        return taken

    stays("100 deliveries, with an outbox of", 100, cost)


def test_requests_of_a_poll_grow_with_tasks_and_metrics_and_not_with_rules(tmp_path, fleet_of):
    def asked(tasks: int, rules: int, metrics: int) -> int:
        own = [above(f"r{n}", By.POD, 2.0, ("gpu", "vram")[n % metrics]) for n in range(rules)]
        fleet = fleet_of(tmp_path, tasks, per_task=1, points=2, rules=own)
        fleet.slot()
        wishes = fleet.world.wishes("s", fleet_of.start)
        return len(wishes.metrics) + len(wishes.statuses) + len(wishes.streams)

    assert [asked(8, rules, 2) for rules in (2, 20, 100)] == [16, 16, 16]
    assert [asked(8, 4, metrics) for metrics in (1, 2)] == [8, 16]
    assert [asked(tasks, 4, 2) for tasks in (1, 10, 100)] == [2, 20, 200]


def test_what_a_poll_wants_is_found_in_linear_time(tmp_path, fleet_of):
    def cost(size: int) -> float:
        fleet = fleet_of(tmp_path, size, per_task=1, per_pod=1, points=2)
        fleet.slot()

        def once() -> float:
            began = process_time()
            fleet.world.wishes("s", fleet_of.start)
            return process_time() - began

        return least(once)

    grows("tasks to ask about", 60, cost)


def test_points_of_many_slots_are_judged_together(tmp_path, fleet_of):
    """A backtest: each grid is searched once, so that slots cost what their windows hold."""
    fleet = fleet_of(tmp_path, 400, points=60)
    fleet.slot()
    begin = to_ns(fleet_of.start)

    def cost(size: int) -> float:
        slots = begin - np.arange(size)[::-1] * 1_000_000_000
        return least(lambda: fleet.evaluated(slots), 3)

    grows("slots", 30, cost)
