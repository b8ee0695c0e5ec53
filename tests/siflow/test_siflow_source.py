"""The source as a whole, against the stand-in: what it asks, what it makes of the answers."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from watchdog.core.durations import to_ns
from watchdog.core.health import Failure
from watchdog.core.ruleset import Secret, SourceSpec
from watchdog.core.tasks import Status
from watchdog.demo.play import Level, Phase, Play, TaskPlay, Xid
from watchdog.demo.siflow_answers import PLANTED
from watchdog.demo.siflow_cloud import StandInSiflow
from watchdog.errors import SourceError
from watchdog.sources.siflow_options import read_settings

TEN = timedelta(minutes=10)


async def ask(source, task, clock, *metrics, back=TEN):
    now = clock.now()
    asked = (source.metric(task, metric, since=now - back, now=now) for metric in metrics)
    return await asyncio.gather(*asked)


def metric_calls(cloud):
    return [(call.name, call.asked) for call in cloud.calls if call.capability == "metrics"]


# --- few calls


async def test_questions_that_come_together_share_their_calls(cloud, source, task, clock) -> None:
    names = ("gpu", "vram", "GpuTemp", "XidErrors", "RdmaHealth", "CpuUsageOfNode")
    answers = await ask(source, task, clock, *names)
    assert [len(answer.series) for answer in answers] == [4, 4, 4, 4, 8, 2]
    assert sorted(asked["pod_name"] for name, asked in metric_calls(cloud)) == [
        "run-master-0",
        "run-worker-0",
    ]
    assert {name for name, _ in metric_calls(cloud)} == {"node_metrics"}


async def test_one_metric_under_two_names_is_asked_once(cloud, source, task, clock) -> None:
    ours, native = await ask(source, task, clock, "gpu", "GpuCoreUsage")
    assert {name for _, asked in metric_calls(cloud) for name in asked["metrics"]} == {"GpuCoreUsage"}
    for one, other in zip(ours.series, native.series, strict=True):
        assert one.values * 100 == pytest.approx(other.values)


async def test_of_many_pod_metrics_the_pods_are_asked_of_few_the_task(cloud, source, task, clock) -> None:
    await ask(source, task, clock, "cpu", "memory")
    assert [name for name, _ in metric_calls(cloud)] == ["all_pods"] * 2
    await ask(source, task, clock, "cpu", "memory", "NetworkTxBytes", "GpfsReadBytes")
    assert [name for name, _ in metric_calls(cloud)][2:] == ["pod_metrics"] * 2


async def test_no_query_has_more_than_sixty_metrics(cloud, build, task, clock) -> None:
    source = build(cloud, detail="task", cluster="auriga-no-catalogue")  # which knows no names beforehand
    names = [f"Metric{n}" for n in range(125)]
    await asyncio.gather(*(ask(source, task, clock, name) for name in names), return_exceptions=True)
    sizes = [len(asked["metrics"]) for name, asked in metric_calls(cloud) if name == "metrics"]
    assert sorted(sizes) == [5, 60, 60]


async def test_what_looks_far_back_is_asked_apart(cloud, source, task, clock) -> None:
    now = clock.now()
    near, far = (
        source.metric(task, name, since=now - timedelta(minutes=back), now=now)
        for name, back in (("gpu", 5), ("vram", 90))
    )
    await asyncio.gather(near, far)
    windows = {tuple(asked["metrics"]): asked["start_time"] for _, asked in metric_calls(cloud)}
    assert windows == {
        ("GpuCoreUsage",): "2026-09-10 11:55:00",  # in the cloud's own zone
        ("GpuMemoryUsage",): "2026-09-10 10:30:00",
    }


async def test_the_catalogue_and_the_pods_are_not_asked_for_each_time(cloud, source, task, clock) -> None:
    for _ in range(3):
        await ask(source, task, clock, "gpu", "cpu")
        await source.status(task)
    assert (cloud.counts()["catalogue"], cloud.counts()["pods"]) == (5, 1)
    clock.advance(timedelta(minutes=1))
    await ask(source, task, clock, "gpu")
    assert (cloud.counts()["catalogue"], cloud.counts()["pods"]) == (5, 2)


async def test_a_task_without_pods_is_not_asked_about(cloud, source, task, clock) -> None:
    cloud.enter(Phase(start=0.0, status="Queueing", chatter=0))
    (answer,) = await ask(source, task, clock, "gpu")
    assert (answer.series, answer.remarks, metric_calls(cloud)) == ((), (), [])


# --- as finely as wanted


@pytest.mark.parametrize(
    ("detail", "labels"),
    [("gpu", {"pod", "gpu", "node"}), ("pod", {"pod", "node"}), ("task", set())],
)
async def test_detail_decides_how_finely_is_asked(cloud, build, task, clock, detail, labels) -> None:
    (answer,) = await ask(build(cloud, detail=detail), task, clock, "gpu")
    for series in answer.series:
        assert set(series.labels) - set(task.identity) == labels
        assert series.values == pytest.approx(np.full(series.values.shape, 0.9), abs=0.03)


async def test_the_generic_query_serves_where_nothing_else_does(cloud, build, task, clock) -> None:
    (answer,) = await ask(build(cloud, cluster="auriga-generic"), task, clock, "cpu")
    assert {name for name, _ in metric_calls(cloud)} == {"resource"}
    assert {asked["step"] for _, asked in metric_calls(cloud)} == {60}  # as recommended
    assert {series.labels["pod"] for series in answer.series} == {"run-master-0", "run-worker-0"}
    assert all(abs(series.values - 0.4).max() < 0.03 for series in answer.series)


async def test_the_past_can_be_asked_for(cloud, source, task, clock) -> None:
    start, end = clock.now() - timedelta(minutes=90), clock.now() - timedelta(minutes=60)
    answer = await source.history(task, "gpu", start, end)
    for series in answer.series:
        assert to_ns(start) < series.times.min() <= to_ns(start + timedelta(minutes=1))
        assert to_ns(end - timedelta(minutes=1)) <= series.times.max() <= to_ns(end)


# --- parts that fail


async def test_a_pod_that_cannot_be_asked_leaves_the_others_but_not_a_whole_answer(
    cloud, source, task, clock
) -> None:
    cloud.faults.add("forbidden", "metrics", task="run-worker-0")
    (answer,) = await ask(source, task, clock, "gpu")
    assert {series.labels["pod"] for series in answer.series} == {"run-master-0"}
    assert answer.complete is False
    (remark,) = answer.remarks
    assert remark.startswith("some pods could not be asked: 1 of 2, forbidden (PermissionDeniedError")


async def test_when_no_pod_can_be_asked_nothing_is_known(cloud, source, task, clock) -> None:
    cloud.faults.add("forbidden", "metrics")
    with pytest.raises(SourceError) as caught:
        await ask(source, task, clock, "gpu")
    assert caught.value.failure is Failure.FORBIDDEN


async def test_a_slip_is_mended_by_asking_again_at_once(cloud, source, task, clock) -> None:
    cloud.faults.add("error 500", "metrics", times=2)
    (answer,) = await ask(source, task, clock, "gpu")
    assert (len(answer.series), answer.complete) == (4, True)
    assert len(metric_calls(cloud)) == 4


async def test_a_pod_that_the_cloud_no_longer_knows_is_no_failure(cloud, source, task, clock) -> None:
    cloud.faults.add("not found", "metrics", task="run-worker-0")
    (answer,) = await ask(source, task, clock, "gpu")
    assert {series.labels["pod"] for series in answer.series} == {"run-master-0"}
    assert (answer.complete, answer.remarks) == (True, ())


async def test_a_failure_of_the_pod_list_does_not_hide_the_status(cloud, source, task) -> None:
    cloud.faults.add("error 500", "pods")
    seen = await source.status(task)
    assert (seen.status, seen.pods) == (Status.RUNNING, None)


@pytest.mark.parametrize(
    ("fault", "failure"),
    [
        ("login", Failure.KEY_UNKNOWN),
        ("forbidden", Failure.FORBIDDEN),
        ("throttled", Failure.THROTTLED),
        ("error 500", Failure.SERVER_ERROR),
        ("unavailable", Failure.SERVER_ERROR),
        ("garbage", Failure.MALFORMED),
    ],
)
async def test_http_errors_are_named(cloud, source, task, fault, failure) -> None:
    cloud.faults.add(fault, "get")
    with pytest.raises(SourceError) as caught:
        await source.status(task)
    assert caught.value.failure is failure


async def test_throttling_says_for_how_long(cloud, source, task) -> None:
    cloud.faults.add("throttled", "get", value="90")
    with pytest.raises(SourceError) as caught:
        await source.status(task)
    assert caught.value.retry_after == timedelta(seconds=90)


async def test_a_wrong_key_is_named_and_never_shown(cloud, build, task) -> None:
    source = build(cloud, access_key_secret=Secret("planted-wrong-secret"))
    with pytest.raises(SourceError, match="signature mismatch") as caught:
        await source.status(task)
    assert caught.value.failure is Failure.KEY_UNKNOWN
    assert "planted" not in str(caught.value)


# --- tasks


async def test_a_task_that_the_cloud_does_not_know_has_vanished(cloud, source, task) -> None:
    assert (await source.status(task)).status is Status.RUNNING
    cloud.tasks["task-uuid-1"].listed = False
    assert (await source.status(task)).status is Status.VANISHED


async def test_metrics_are_asked_by_the_clouds_own_name_of_the_task(cloud, source, task, clock) -> None:
    called = replace(task, name="llama")  # as the watch entry calls it
    (answer,) = await ask(source, called, clock, "cpu")
    assert {asked["task_name"] for _, asked in metric_calls(cloud)} == {"run-x7k2p"}
    assert {series.labels["task_name"] for series in answer.series} == {"llama"}


async def test_a_queued_task_tells_its_place(cloud, source, task) -> None:
    cloud.enter(Phase(start=0.0, status="Queueing", chatter=0))
    seen = await source.status(task)
    assert seen.status is Status.QUEUED
    assert seen.reason == "place 3 in its pool's queue, 2 tasks ahead"


async def test_a_failed_task_tells_who_ended_how(cloud, source, task) -> None:
    cloud.enter(Phase(start=0.0, status="Failed", reason="PodFailed", chatter=0))
    seen = await source.status(task)
    assert seen.reason.startswith("PodFailed; run-master-0 ended with exit code 137; run-worker-0 ended")


async def test_nothing_of_a_tasks_credentials_comes_near_us(cloud, source, task, monkeypatch) -> None:
    frames: list[bytes] = []
    link = source._api.link
    honest = link._take

    def overheard(worker, body):
        frames.append(body)
        honest(worker, body)

    monkeypatch.setattr(link, "_take", overheard)
    seen = await source.status(task)
    listing = await source.list_tasks()
    assert frames
    for text in (repr(seen), repr(listing), *map(repr, frames)):
        assert PLANTED not in text
        assert "hf_StandIn" not in text


async def test_the_list_can_be_narrowed(cloud, build) -> None:
    await build(cloud, owners="ann, bob", resource_pools="pool-a").list_tasks()
    (asked,) = (call.asked for call in cloud.calls)
    assert (asked["owners"], asked["resourcePools"]) == ("ann,bob", "pool-a")


# --- counters and custom metrics


def with_xids(*xids):
    levels = tuple(Level(metric=name, value=0.9) for name in ("gpu", "vram", "cpu", "memory"))
    phases = (Phase(start=-7200.0, pods=("run-master-0", "run-worker-0"), levels=levels, chatter=0),)
    return Play(
        tasks=(TaskPlay(id="task-uuid-1", name="run-x7k2p", gpus_per_pod=2, phases=phases, xids=xids),),
        step=60,
    )


def of_code(answer, code):
    return [series for series in answer.series if series.labels.get("xid") == code]


async def test_a_code_that_appears_begins_at_zero(build, task, clock) -> None:
    new = Xid(at=90.0, pod="run-worker-0", gpu=1, code="79")
    old = Xid(at=-3600.0, pod="run-master-0", gpu=0, code="31", count=2)
    async with StandInSiflow(with_xids(new, old), clock=clock) as cloud:
        source = build(cloud)
        (first,) = await ask(source, task, clock, "XidErrors")
        assert [series.values.tolist() for series in of_code(first, "31")] == [[2.0] * 10]  # a baseline
        assert of_code(first, "79") == []

        clock.advance(timedelta(minutes=3))
        (second,) = await ask(source, task, clock, "XidErrors", back=timedelta(minutes=5))
        (series,) = of_code(second, "79")
        assert (series.labels["pod"], series.labels["gpu"]) == ("run-worker-0", "1")
        assert series.values.tolist() == [0.0, 1.0, 1.0]
        assert np.diff(series.times).tolist() == [60 * 10**9] * 2

        clock.advance(timedelta(minutes=1))
        (third,) = await ask(source, task, clock, "XidErrors", back=timedelta(minutes=5))
        (series,) = of_code(third, "79")
        assert set(series.values.tolist()) == {1.0}  # it is known now
        (series,) = of_code(third, "31")
        assert set(series.values.tolist()) == {2.0}


async def test_old_errors_of_a_new_pods_node_are_no_news(build, task, clock) -> None:
    old = Xid(at=-3600.0, pod="run-worker-0", gpu=1, code="79")
    async with StandInSiflow(with_xids(old), clock=clock) as cloud:
        source = build(cloud)
        play = cloud.tasks["task-uuid-1"].play
        alone = replace(play, phases=(replace(play.phases[0], pods=("run-master-0",)),))
        cloud.tasks["task-uuid-1"].play = alone
        await ask(source, task, clock, "XidErrors")
        cloud.tasks["task-uuid-1"].play = play
        clock.advance(timedelta(minutes=1))
        (answer,) = await ask(source, task, clock, "XidErrors")
        (series,) = of_code(answer, "79")
        assert 0.0 not in series.values


async def test_custom_metrics_are_their_last_sample(cloud, source, task, clock) -> None:
    loss, count = await ask(source, task, clock, "train_loss", "requests_total")
    (series,) = loss.series
    assert series.values.shape == (1,)
    assert series.times.tolist() == [to_ns(clock.now())]
    assert (series.labels["pod"], series.labels["phase"]) == ("run-master-0", "train")
    assert len(count.series) == 1  # a sample written as text
    assert cloud.counts()["metrics"] == 0

    clock.advance(timedelta(minutes=3))
    (again,) = await ask(source, task, clock, "train_loss")
    assert again.series[0].times.tolist() == series.times.tolist()
    infos = {info.name: info for info in source.metric_infos()}
    assert infos["train_loss"].step == timedelta(minutes=5)


async def test_a_metric_that_nobody_has_is_an_answer_with_a_remark(cloud, source, task, clock) -> None:
    (answer,) = await ask(source, task, clock, "GpuTmep")
    assert answer.series == ()
    assert answer.remarks == (
        "GpuTmep: neither a metric of the platform nor, by now, one that the task exposes",
    )


async def test_units_are_those_of_the_answers(cloud, source, task, clock) -> None:
    await ask(source, task, clock, "GpuTemp", "GpuMemoryUsed", "gpu")
    units = {info.name: info.unit for info in source.metric_infos()}
    assert (units["gpu"], units["GpuCoreUsage"], units["GpuTemp"]) == ("ratio", "%", "°C")
    assert units["GpuMemoryUsed"] == "Bytes"


# --- options


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"python": ""}, "python is missing"),
        ({"python": "python3"}, "whole path"),
        ({"access_key_id": ""}, "access_key_id is missing: set JOB_WATCHDOG_SIFLOW_ACCESS_KEY_ID"),
        ({"access_key_secret": ""}, "access_key_secret is missing"),
        ({"detail": "card"}, "detail must be one of gpu, pod, task"),
        ({"timezone": "Beijing"}, "not a known time zone"),
        ({"proxy": "socks5://x"}, "proxy must be http"),
        ({"colour": "red"}, "unknown option 'colour'"),
    ],
)
def test_options_that_cannot_be_used_are_named(build, options, words) -> None:
    with pytest.raises(ValueError, match=words):
        build(None, **options)


def test_the_deadline_comes_after_the_sdks_own_timeout() -> None:
    known = {"python": "/x", "access_key_id": "a", "access_key_secret": "b"}
    for timeout, deadline in (("30s", 40), ("300ms", 0.8), ("5m", 315)):
        spec = SourceSpec(name="s", kind="siflow", options={**known, "timeout": timeout})
        assert read_settings(spec).deadline == timedelta(seconds=deadline)


async def test_probing_says_what_stands_behind_it(cloud, source) -> None:
    assert (await source.probe()).startswith("SiFlow SDK 0.3.20+standin on Python 3.")
