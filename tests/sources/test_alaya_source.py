"""What the source remembers between calls: the list, pods and their data; and how often it asks."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from watchdog.core.durations import to_ns
from watchdog.core.health import Failure
from watchdog.core.logs import LogQuery
from watchdog.demo.faults import FaultKind
from watchdog.demo.play import Level, Phase
from watchdog.errors import SourceError


async def test_statuses_at_the_same_time_share_one_list(cloud, source, task) -> None:
    observations = await asyncio.gather(*(source.status(task) for _ in range(20)), source.list_tasks())

    assert len(observations) == 21
    assert cloud.counts()["list"] == 1


async def test_a_status_is_at_most_one_poll_old(cloud, source, task, clock) -> None:
    await source.status(task)
    clock.advance(timedelta(seconds=30))
    await source.status(task)
    assert cloud.counts()["list"] == 1

    cloud.enter(Phase(start=0, status="Failed", reason="exit code 1"))
    clock.advance(timedelta(seconds=30))
    observation = await source.status(task)
    assert (observation.status, observation.reason) == ("failed", "exit code 1")
    assert observation.ended == clock.now() - timedelta(seconds=30)


async def test_a_failing_list_is_not_asked_again_for_every_task(cloud, source, task, clock) -> None:
    cloud.faults.add("unavailable", "list")
    for _ in range(5):
        with pytest.raises(SourceError) as caught:
            await source.status(task)
        assert caught.value.failure is Failure.SERVER_ERROR
    assert cloud.counts()["list"] == 1

    cloud.faults.clear()
    clock.advance(timedelta(seconds=60))
    assert (await source.status(task)).status == "running"


async def test_cancelling_one_asker_leaves_the_shared_list_to_the_others(cloud, source, task) -> None:
    cloud.faults.add("hang", "list", value=0.05)
    first, second = asyncio.create_task(source.status(task)), asyncio.create_task(source.status(task))
    while not cloud.requests:
        await asyncio.sleep(0)

    first.cancel()

    assert (await second).status == "running"
    assert cloud.counts()["list"] == 1


async def test_a_status_keeps_the_watch_entrys_own_task(source, task) -> None:
    assert (await source.status(task)).task is task


async def test_nodes_and_restarts_come_from_pod_data(cloud, source, task, clock) -> None:
    await source.metric(task, "gpu", since=clock.now() - timedelta(minutes=1), now=clock.now())
    cloud.tasks[task.id].restarts["calm-worker-0"] = 2

    observation = await source.status(task)

    assert observation.nodes == {"calm-master-0": "node-00", "calm-worker-0": "node-01"}
    assert observation.restarts == 2
    assert cloud.counts()["pod"] == 2
    await source.status(task)
    assert cloud.counts()["pod"] == 2


async def test_pod_data_that_fails_spoils_no_status_and_waits(cloud, source, task, clock) -> None:
    await source.metric(task, "gpu", since=clock.now() - timedelta(minutes=1), now=clock.now())
    cloud.faults.add("error 500", "pod")

    for _ in range(3):
        observation = await source.status(task)
    assert (observation.status, observation.nodes, observation.restarts) == ("running", {}, None)
    assert cloud.counts()["pod"] == 2


async def test_one_call_a_metric_and_only_four_metrics(cloud, source, task, clock) -> None:
    for info in source.metric_infos():
        answer = await source.metric(
            task, info.name, since=clock.now() - timedelta(minutes=1), now=clock.now()
        )
        labels = {"source", "task", "task_name", *info.per}
        assert all(set(series.labels) == labels for series in answer.series)
        assert info.unit == "ratio"
    assert cloud.counts() == {"metrics": 4}

    with pytest.raises(SourceError) as caught:
        await source.metric(task, "GpuTemp", since=clock.now(), now=clock.now())
    assert (caught.value.failure, caught.value.retryable) == (Failure.UNSUPPORTED, False)
    assert cloud.counts() == {"metrics": 4}


async def test_after_an_outage_the_smallest_covering_period_is_asked(cloud, source, task, clock) -> None:
    for gap in (timedelta(minutes=1), timedelta(minutes=50), timedelta(days=2)):
        await source.metric(task, "gpu", since=clock.now() - gap, now=clock.now())

    assert [dict(request.query)["period"] for request in cloud.requests] == ["15m", "1h", "3d"]


async def test_history_gives_the_points_between_two_times(source, task, clock) -> None:
    start, end = clock.now() - timedelta(seconds=90), clock.now() - timedelta(seconds=30)

    answer = await source.history(task, "vram", start, end)

    for series in answer.series:
        assert (series.times[0], series.times[-1]) == (to_ns(start), to_ns(end))
        assert len(series.times) == 61


async def test_every_log_filter_reaches_the_server(cloud, source, task, clock) -> None:
    cloud.say("ERROR one", pod="calm-worker-0")
    cloud.say("ERROR two", pod="calm-master-0")
    cloud.say("fine", pod="calm-worker-0")
    now = to_ns(clock.now())

    page = await source.logs(
        task, LogQuery(start_ns=now - 10**9, end_ns=now, limit=7, pod="calm-worker-0", contains="ERROR")
    )

    assert [line.text for line in page.lines] == ["ERROR one"]
    (request,) = [request for request in cloud.requests if request.capability == "logs"]
    assert dict(request.query) == {
        "namespace": "usr-abcdefgh",
        "podName": "calm-worker-0",
        "startTime": str(now - 10**9 - 1),
        "endTime": str(now + 1),
        "limit": "7",
        "filter": "ERROR",
        "direction": "forward",
    }


async def test_both_bounds_of_a_log_query_are_inclusive(cloud, source, task, clock) -> None:
    now = to_ns(clock.now())
    for offset in (-2, -1, 0):
        cloud.say(str(offset), time_ns=now + offset)

    page = await source.logs(task, LogQuery(start_ns=now - 2, end_ns=now))
    assert [line.text for line in page.lines] == ["-2", "-1", "0"]


async def test_a_fault_on_one_task_or_metric_leaves_the_others_alone(cloud, source, task, clock) -> None:
    cloud.faults.add("forbidden", "metrics", task="another")

    answer = await source.metric(task, "gpu", since=clock.now() - timedelta(minutes=1), now=clock.now())
    assert answer.series


@pytest.mark.parametrize("kind", sorted(FaultKind))
async def test_under_every_fault_each_question_is_answered_or_named_and_then_works_again(
    cloud, build, task, clock, kind
) -> None:
    source = build(cloud, timeout="2s")
    cloud.say("a line", time_ns=to_ns(clock.now()) - 10**9)
    cloud.faults.add(kind, task=task.id if kind == "partial list" else "")
    now = to_ns(clock.now())

    async def questions() -> list[object]:
        return await asyncio.gather(
            source.metric(task, "gpu", since=clock.now() - timedelta(minutes=1), now=clock.now()),
            source.logs(replace(task, namespace="usr-abcdefgh"), LogQuery(start_ns=1, end_ns=now)),
            source.list_tasks(),
            source.status(task),
            return_exceptions=True,
        )

    for outcome in await questions():
        assert isinstance(outcome, SourceError) or not isinstance(outcome, BaseException)
    cloud.faults.clear()
    clock.advance(timedelta(minutes=1))
    assert not [outcome for outcome in await questions() if isinstance(outcome, BaseException)]


async def test_many_questions_at_once_stay_within_the_configured_concurrency(
    cloud, build, task, clock
) -> None:
    source = build(cloud, concurrency=2)
    cloud.faults.add("hang", value=0.005)
    since = clock.now() - timedelta(seconds=2)

    await asyncio.gather(*(source.metric(task, "gpu", since=since, now=clock.now()) for _ in range(12)))

    assert cloud.most_at_once == 2


async def test_ids_that_would_change_the_path_are_refused_unsent(cloud, source, task, clock) -> None:
    for bad in ("", ".", ".."):
        with pytest.raises(SourceError) as caught:
            await source.metric(replace(task, id=bad), "gpu", since=clock.now(), now=clock.now())
        assert caught.value.failure is Failure.BAD_REQUEST
    assert not cloud.requests


async def test_memory_of_tasks_is_bounded(source, monkeypatch) -> None:
    monkeypatch.setattr("watchdog.sources.alaya.TASKS_REMEMBERED", 3)
    for number in range(10):
        source._knowledge(str(number))
    assert list(source._known) == ["7", "8", "9"]


async def test_a_climbing_level_is_served_as_it_climbs(cloud, source, task, clock) -> None:
    climb = Level(metric="vram", value=0.2, to=0.2, wobble=0.0)
    cloud.enter(Phase(start=0, pods=("calm-master-0",), levels=(climb,)))
    clock.advance(timedelta(seconds=5))

    answer = await source.metric(task, "vram", since=clock.now() - timedelta(seconds=4), now=clock.now())
    assert {value for series in answer.series for value in series.values} == {0.2}
