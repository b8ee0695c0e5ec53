"""What every Source promises, run over each implementation.

A new kind adds one `World` maker below: the same task with four GPU series (a point a second over the
last two minutes, up to NOW) and the same log lines, told in its own way.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from watchdog.core.conditions.kinds import Capability
from watchdog.core.durations import SECOND_NS, to_ns
from watchdog.core.health import Failure
from watchdog.core.labels import Labels
from watchdog.core.logs import LogLine, LogQuery
from watchdog.core.ruleset import Secret, SourceSpec
from watchdog.core.script import Fault, Script, ScriptedLine, ScriptedSeries, ScriptedStatus, ScriptedTask
from watchdog.core.series import SeriesPoints
from watchdog.core.tasks import Status, Task
from watchdog.demo.cloud import StandInCloud
from watchdog.demo.siflow_cloud import SDK_PATH, StandInSiflow
from watchdog.demo.story import CALM_PODS, calm
from watchdog.errors import SourceError
from watchdog.ports import Source
from watchdog.sources.alaya import AlayaSource
from watchdog.sources.scripted import ScriptedSource
from watchdog.sources.siflow import SiflowSource

NOW = datetime(2026, 9, 10, 4, 0, tzinfo=UTC)
NOW_NS = to_ns(NOW)
HOUR = timedelta(hours=1)
TASK = Task(key="cloud/1234567890", source="cloud", id="1234567890", name="calm-run")
LINES = (
    LogLine(NOW_NS - 50 * SECOND_NS, CALM_PODS[0], "starting"),
    *(LogLine(NOW_NS - 40 * SECOND_NS + n, CALM_PODS[n % 2], f"step {n}") for n in range(20)),
    LogLine(NOW_NS - 30 * SECOND_NS + 7, CALM_PODS[1], "ERROR twice"),
    LogLine(NOW_NS - 30 * SECOND_NS + 7, CALM_PODS[1], "ERROR twice"),
    LogLine(NOW_NS, CALM_PODS[0], "now"),
)


class StillClock:
    """Stands at NOW; a sleep only yields."""

    def now(self) -> datetime:
        return NOW

    def monotonic(self) -> timedelta:
        return timedelta(hours=1)

    async def sleep(self, duration: timedelta) -> None:
        await asyncio.sleep(0)


@dataclass(frozen=True, slots=True)
class World:
    """One implementation and how to make it fail."""

    source: Source
    break_metrics: Callable[[], None]


@asynccontextmanager
async def alaya() -> AsyncIterator[World]:
    async with StandInCloud(calm(), clock=StillClock()) as cloud:
        for line in LINES:
            cloud.say(line.text, pod=line.pod, time_ns=line.time_ns)
        options = {"base_url": cloud.url, "api_key": Secret("stand-in-api-key"), "rate": 1000}
        source = AlayaSource(SourceSpec(name="cloud", kind="alaya", options=options), StillClock())

        def break_metrics() -> None:
            cloud.faults.add("html", "metrics")

        yield World(source, break_metrics)
        await source.close()


@asynccontextmanager
async def siflow() -> AsyncIterator[World]:
    async with StandInSiflow(calm(), clock=StillClock()) as cloud:
        for line in LINES:
            cloud.say(line.text, pod=line.pod, time_ns=line.time_ns)
        cloud.faults.add("with times", "logs")  # without them, lines have the times they were first seen
        options = {
            "python": sys.executable,
            "sdk_path": str(SDK_PATH),
            "region": cloud.region,
            "access_key_id": Secret("stand-in-ak"),
            "access_key_secret": Secret("stand-in-sk"),
            "rate": 1000,
        }
        source = SiflowSource(SourceSpec(name="cloud", kind="siflow", options=options), StillClock())

        def break_metrics() -> None:
            cloud.faults.add("html", "metrics")

        yield World(source, break_metrics)
        await source.close()


@asynccontextmanager
async def scripted() -> AsyncIterator[World]:
    times = np.arange(NOW_NS - 120 * SECOND_NS, NOW_NS + 1, SECOND_NS)
    series = tuple(
        ScriptedSeries(
            task=TASK.key,
            metric="gpu",
            points=SeriesPoints(
                labels=TASK.identity.plus(Labels({"pod": pod, "gpu": gpu})),
                times=times,
                values=np.full(len(times), 0.9),
            ),
        )
        for pod in CALM_PODS
        for gpu in ("card-0", "card-1")
    )
    script = Script(
        source="cloud",
        tasks=(ScriptedTask(task=TASK, statuses=(ScriptedStatus(at=NOW, status=Status.RUNNING),)),),
        series=series,
        lines=tuple(ScriptedLine(task=TASK.key, line=line, visible=NOW) for line in LINES),
        faults=(Fault(begin=NOW + timedelta(seconds=1), end=NOW + HOUR, capability=Capability.METRICS),),
    )
    time = [NOW]
    yield World(
        ScriptedSource(script, StillClock(), lambda: time[0]),
        lambda: time.__setitem__(0, NOW + timedelta(seconds=1)),
    )


WORLDS: tuple[Callable[[], AbstractAsyncContextManager[World]], ...] = (alaya, siflow, scripted)


@pytest.fixture(params=WORLDS, ids=lambda world: world.__name__)
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    async with request.param() as world:
        yield world


@pytest.fixture
def source(world: World) -> Source:
    return world.source


async def all_lines(source: Source, limit: int) -> list[LogLine]:
    """Follow the whole log as a reader does: go on from the last time while pages are full."""
    start, found = NOW_NS - 60 * SECOND_NS, []
    while True:
        page = await source.logs(TASK, LogQuery(start_ns=start, end_ns=NOW_NS, limit=limit))
        overlap = [line for line in found if line.time_ns == start]
        for line in page.lines:
            if line in overlap:
                overlap.remove(line)
            else:
                found.append(line)
        if not page.full or page.lines[-1].time_ns == start:
            return found
        start = page.lines[-1].time_ns


def test_it_has_the_configured_name_and_says_what_it_can(source) -> None:
    assert source.name == "cloud"
    assert source.capabilities >= {Capability.METRICS, Capability.LOGS}


def test_utilisations_are_declared_as_ratios(source) -> None:
    units = {info.name: info.unit for info in source.metric_infos()}
    assert {units[name] for name in ("gpu", "vram", "cpu", "memory")} == {"ratio"}


async def test_series_are_columns_in_order_with_the_tasks_identity(source) -> None:
    answer = await source.metric(TASK, "gpu", since=NOW - timedelta(minutes=1), now=NOW)

    assert len(answer.series) == 4
    for series in answer.series:
        assert (series.times.dtype, series.values.dtype) == (np.int64, np.float64)
        assert series.times.shape == series.values.shape
        assert (np.diff(series.times) > 0).all()
        assert series.labels.only(TASK.identity) == TASK.identity
        assert {"pod", "gpu"} <= set(series.labels)
    assert len({series.labels for series in answer.series}) == 4


async def test_ratios_are_ratios(source) -> None:
    for series in (await source.metric(TASK, "gpu", since=NOW - timedelta(minutes=1), now=NOW)).series:
        assert ((series.values > 0.8) & (series.values <= 1.0)).all()


async def test_every_point_after_since_is_there(source) -> None:
    since = NOW - timedelta(seconds=30)

    for series in (await source.metric(TASK, "gpu", since=since, now=NOW)).series:
        wanted = set(range(to_ns(since) + SECOND_NS, NOW_NS + 1, SECOND_NS))
        assert wanted <= set(series.times.tolist())


async def test_nothing_new_is_an_answer(source) -> None:
    answer = await source.metric(TASK, "gpu", since=NOW, now=NOW)
    assert all(len(series.times) == 0 for series in answer.series)


async def test_log_lines_come_oldest_first_to_the_nanosecond(source) -> None:
    query = LogQuery(start_ns=NOW_NS - 60 * SECOND_NS, end_ns=NOW_NS)
    page = await source.logs(TASK, query)

    assert page.lines == LINES
    assert page.full is False


@pytest.mark.parametrize("limit", [3, 7, 24, 500])
async def test_reading_on_while_pages_are_full_finds_every_line_once(source, limit) -> None:
    assert await all_lines(source, limit) == list(LINES)


async def test_a_page_holds_at_most_limit_lines_and_says_when_it_is_full(source) -> None:
    query = LogQuery(start_ns=NOW_NS - 60 * SECOND_NS, end_ns=NOW_NS, limit=len(LINES))

    assert (await source.logs(TASK, query)).full is True
    assert (await source.logs(TASK, replace(query, limit=5))).lines == LINES[:5]


async def test_bounds_are_inclusive_and_nothing_outside_comes(source) -> None:
    query = LogQuery(start_ns=LINES[3].time_ns, end_ns=LINES[5].time_ns)
    assert (await source.logs(TASK, query)).lines == LINES[3:6]


async def test_logs_can_be_narrowed_by_pod_and_substring(source) -> None:
    query = LogQuery(start_ns=0, end_ns=NOW_NS, pod=CALM_PODS[1])
    assert {line.pod for line in (await source.logs(TASK, query)).lines} == {CALM_PODS[1]}

    query = LogQuery(start_ns=0, end_ns=NOW_NS, contains="ERROR")
    assert [line.text for line in (await source.logs(TASK, query)).lines] == ["ERROR twice"] * 2


async def test_no_lines_is_an_answer(source) -> None:
    page = await source.logs(TASK, LogQuery(start_ns=1, end_ns=2))
    assert (page.lines, page.full) == ((), False)


async def test_the_task_is_listed_with_its_status(source) -> None:
    listing = await source.list_tasks()

    (observation,) = listing.tasks
    assert listing.complete
    assert (observation.task.id, observation.task.name) == (TASK.id, TASK.name)
    assert observation.status is Status.RUNNING


async def test_a_status_is_about_the_task_asked_for(source) -> None:
    mine = replace(TASK, labels=Labels({"team": "nlp"}))

    observation = await source.status(mine)
    assert (observation.task.key, observation.status) == (TASK.key, Status.RUNNING)


async def test_an_unknown_task_is_not_found_or_has_no_series(source) -> None:
    stranger = replace(TASK, key="cloud/0", id="0")
    named = None
    try:
        answer = await source.metric(stranger, "gpu", since=NOW, now=NOW)
    except SourceError as error:
        named = error.failure
    else:
        assert answer.series == ()
    assert named in (None, Failure.NOT_FOUND)


async def test_a_failure_of_one_capability_leaves_the_others(world) -> None:
    world.break_metrics()

    with pytest.raises(SourceError):
        await world.source.metric(TASK, "gpu", since=NOW, now=NOW)
    assert (await world.source.list_tasks()).tasks
    query = LogQuery(start_ns=0, end_ns=NOW_NS)
    assert (await world.source.logs(replace(TASK, namespace="usr-abcdefgh"), query)).lines


async def test_many_cancellations_do_no_harm(source) -> None:
    since = NOW - timedelta(seconds=5)
    for turns in range(40):
        questions = [
            asyncio.ensure_future(source.metric(TASK, "gpu", since=since, now=NOW)) for _ in range(3)
        ]
        for _ in range(turns % 11):
            await asyncio.sleep(0)
        for question in questions:
            question.cancel()
        await asyncio.gather(*questions, return_exceptions=True)

    assert (await source.metric(TASK, "gpu", since=since, now=NOW)).series


async def test_closing_twice_is_fine(source) -> None:
    await source.close()
    await source.close()
