"""Traps 16 to 30: what the SDK and the cloud behind it do wrong, each by its number."""

import asyncio
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from watchdog.core.durations import to_ns
from watchdog.core.health import Failure
from watchdog.core.labels import Labels
from watchdog.core.logs import LogQuery
from watchdog.core.tasks import Status
from watchdog.demo.play import Level, Phase, Play, TaskPlay
from watchdog.demo.siflow_cloud import StandInSiflow
from watchdog.errors import SourceError
from watchdog.sources.siflow_metrics import Found, Question, read_metric
from watchdog.sources.siflow_wire import MetricRow, SeriesLabels, SeriesRow

MINUTES = timedelta(minutes=10)


async def ask(source, task, metric, clock, *, back=MINUTES):
    now = clock.now()
    return await source.metric(task, metric, since=now - back, now=now)


async def read(source, task, clock):
    now_ns = to_ns(clock.now())
    return await source.logs(task, LogQuery(start_ns=now_ns - 3600 * 10**9, end_ns=now_ns))


def failing(capability):
    async def question(source, task, clock):
        if capability == "list":
            await source.list_tasks()
        elif capability == "get":
            await source.status(task)
        elif capability == "logs":
            await read(source, task, clock)
        else:
            await ask(source, task, "gpu", clock)

    return question


CAPABILITIES = ("list", "get", "logs", "metrics")


@pytest.mark.parametrize("capability", CAPABILITIES)
async def test_trap_16_none_means_the_query_failed(cloud, source, task, clock, capability) -> None:
    cloud.faults.add("refused", capability)
    with pytest.raises(SourceError, match="returned None") as caught:
        await failing(capability)(source, task, clock)
    assert caught.value.failure is Failure.SERVER_ERROR


@pytest.mark.parametrize("capability", CAPABILITIES)
async def test_trap_17_html_that_the_sdk_stumbles_over_is_no_answer(
    cloud, source, task, clock, capability
) -> None:
    await source.list_tasks()
    cloud.faults.add("html", capability)
    with pytest.raises(SourceError, match="AttributeError") as caught:
        await failing(capability)(source, task, clock)
    assert caught.value.failure is Failure.NOT_JSON


@pytest.mark.parametrize("options", [{"region": "cn-nowhere"}, {"cluster": "unheard-of"}])
async def test_trap_17_a_plain_value_error_at_construction_is_named(
    cloud, build, task, clock, options
) -> None:
    source = build(cloud, **options)
    with pytest.raises(SourceError, match=f"unknown {next(iter(options))}") as caught:
        await source.list_tasks()
    assert (caught.value.failure, caught.value.retryable) == (Failure.BAD_REQUEST, False)


async def test_trap_18_a_hang_longer_than_a_poll_ends_at_the_deadline(
    cloud, build, task, clock, gone
) -> None:
    source = build(cloud, timeout="0.3s")
    await source.list_tasks()
    (pid,) = source.worker_pids
    cloud.faults.add("deaf", "logs")  # for half an hour, whatever time-out was given
    with pytest.raises(SourceError, match="its process is replaced") as caught:
        await read(source, task, clock)
    assert caught.value.failure is Failure.TIMEOUT
    assert await gone(pid)
    assert (await source.list_tasks()).tasks  # the next call is answered, by another process


async def test_trap_18_the_sdks_own_timeout_is_used_where_it_works(cloud, build, task, clock) -> None:
    source = build(cloud, timeout="0.3s")
    await source.list_tasks()
    pids = source.worker_pids
    cloud.faults.add("hang", "logs", value="30")
    with pytest.raises(SourceError) as caught:
        await read(source, task, clock)
    assert caught.value.failure is Failure.TIMEOUT
    assert source.worker_pids == pids  # nothing had to be killed


async def test_trap_19_methods_that_an_older_sdk_lacks_are_named(cloud, build, task, clock) -> None:
    source = build(cloud, cluster="auriga-0.2.9")
    assert (await source.list_tasks()).tasks
    assert (await source.status(task)).status is Status.RUNNING
    with pytest.raises(SourceError, match=r"no tasks\.query_logs") as caught:
        await read(source, task, clock)
    assert (caught.value.failure, caught.value.retryable) == (Failure.UNSUPPORTED, False)
    with pytest.raises(SourceError, match="'gpu'") as caught:
        await ask(source, task, "gpu", clock)
    assert caught.value.failure is Failure.UNSUPPORTED


async def test_trap_19_without_a_catalogue_and_a_list_of_pods_the_documented_metrics_work(
    cloud, build, task, clock
) -> None:
    source = build(cloud, cluster="auriga-no-catalogue")
    answer = await ask(source, task, "gpu", clock)
    assert {(one.labels["pod"], one.labels["gpu"]) for one in answer.series} == {
        (pod, gpu) for pod in ("run-master-0", "run-worker-0") for gpu in ("0", "1")
    }


@pytest.fixture
def many() -> Play:
    phases = (Phase(start=-60.0, status="Running", pods=("p-0",), chatter=0),)
    return Play(
        tasks=tuple(TaskPlay(id=f"u{n}", name=f"run-{n}", phases=phases) for n in range(401)), step=60
    )


async def test_trap_20_a_full_page_of_the_list_is_not_the_end(many, build, clock) -> None:
    async with StandInSiflow(many, clock=clock) as cloud:
        listing = await build(cloud).list_tasks()
        assert [call.asked["page"] for call in cloud.calls] == ["1", "2", "3"]
    assert listing.complete
    assert len(listing.tasks) == 401


async def test_trap_20_a_list_that_ends_with_a_full_page_is_asked_on(many, build, clock) -> None:
    exactly = Play(tasks=many.tasks[:400], step=60)
    async with StandInSiflow(exactly, clock=clock) as cloud:
        listing = await build(cloud).list_tasks()
    assert (listing.complete, len(listing.tasks)) == (True, 400)


async def test_trap_20_duplicate_ids_count_once(cloud, source) -> None:
    cloud.faults.add("twice", "list")
    listing = await source.list_tasks()
    assert [one.task.id for one in listing.tasks] == ["task-uuid-1"]


async def test_trap_21_no_metrics_at_all_is_an_answer_without_series(cloud, source, task, clock) -> None:
    cloud.faults.add("no metrics", "metrics")
    answer = await ask(source, task, "gpu", clock)
    assert (answer.series, answer.complete) == ((), True)


@pytest.mark.parametrize("fault", ["no series", "no points"])
async def test_trap_21_empty_curves_are_an_answer(cloud, source, task, clock, fault) -> None:
    cloud.faults.add(fault, "metrics")
    assert (await ask(source, task, "gpu", clock)).series == ()


async def test_trap_21_a_truncated_result_is_not_whole_and_says_so(cloud, source, task, clock) -> None:
    cloud.faults.add("cut", "metrics")
    answer = await ask(source, task, "gpu", clock)
    assert answer.complete is False
    (remark,) = answer.remarks
    assert remark.startswith("the source cut its answer, what is missing is not judged: ")

    cloud.faults.clear()
    assert (await ask(source, task, "gpu", clock)).complete


async def test_trap_21_a_warning_of_one_metric_fails_that_metric_only(cloud, source, task, clock) -> None:
    cloud.faults.add("warned", "metrics", value="GpuTemp")
    asked = (ask(source, task, metric, clock) for metric in ("gpu", "GpuTemp"))
    gpu, temperature = await asyncio.gather(*asked, return_exceptions=True)
    assert len(gpu.series) == 4
    assert isinstance(temperature, SourceError)
    assert temperature.detail == "GpuTemp: the metric's store did not answer"


async def test_trap_21_other_warnings_are_remarks(cloud, source, task, clock) -> None:
    cloud.faults.add("noted", "metrics", value="step adjusted to 300")
    answer = await ask(source, task, "gpu", clock)
    assert answer.remarks == ("the source warns: step adjusted to 300",)
    assert answer.complete


@pytest.mark.parametrize("unit", ["percent", "%", "Percent ", ""])
async def test_trap_22_percent_becomes_a_ratio_in_every_spelling(cloud, source, task, clock, unit) -> None:
    cloud.faults.add("unit", "metrics", value=unit)
    for metric, level in (("gpu", 0.9), ("vram", 0.7), ("cpu", 0.4), ("memory", 0.5)):
        for series in (await ask(source, task, metric, clock)).series:
            assert series.values == pytest.approx(np.full(series.values.shape, level), abs=0.03)


async def test_trap_22_what_is_a_ratio_already_stays_one(cloud, source, task, clock) -> None:
    cloud.faults.add("unit", "metrics", value="ratio")  # the values are percent all the same
    answer = await ask(source, task, "gpu", clock)
    assert all(series.values.min() > 80 for series in answer.series)
    assert answer.remarks[0].startswith("suspect values of gpu: ")


async def test_trap_22_another_unit_is_refused_and_native_metrics_keep_theirs(
    cloud, source, task, clock
) -> None:
    native = await ask(source, task, "GpuCoreUsage", clock)
    assert all(80 < series.values.min() <= 100 for series in native.series)

    cloud.faults.add("unit", "metrics", value="GB")
    with pytest.raises(SourceError, match="'GB', which is no ratio") as caught:
        await ask(source, task, "gpu", clock)
    assert caught.value.failure is Failure.MALFORMED


async def test_trap_23_a_retry_is_another_attempt_with_pods_of_its_own(cloud, source, task, clock) -> None:
    before = await source.status(task)
    again = ("run-retry1-master-0", "run-retry1-worker-0")
    levels = tuple(Level(metric=name, value=0.9) for name in ("gpu", "vram", "cpu", "memory"))
    cloud.enter(Phase(start=0.0, status="Running", pods=again, levels=levels, chatter=0, retries=1))
    clock.advance(timedelta(minutes=5))
    after = await source.status(task)
    assert (before.restarts, after.restarts) == (0, 1)
    assert after.pods == again
    # The cloud still tells the first start; the attempt began with its pods.
    assert after.started == clock.now() - timedelta(minutes=5)
    answer = await ask(source, task, "gpu", clock)
    assert {series.labels["pod"] for series in answer.series} == set(again)


async def test_trap_23_the_mean_of_the_task_includes_its_retries(cloud, build, task, clock) -> None:
    await ask(build(cloud, detail="task"), task, "gpu", clock)
    asked = [call.asked for call in cloud.calls if call.capability == "metrics"]
    assert [call["include_retries"] for call in asked] == [True]


def wide(pods: int) -> Play:
    names = tuple(f"w-{n}" for n in range(pods))
    levels = (Level(metric="gpu", value=0.9), Level(metric="cpu", value=0.4))
    phases = (Phase(start=-1800.0, pods=names, levels=levels, chatter=0),)
    return Play(tasks=(TaskPlay(id="task-uuid-1", name="run-x7k2p", gpus_per_pod=1, phases=phases),), step=60)


async def test_trap_24_a_comparison_of_nodes_shows_ten_and_that_is_said(build, task, clock) -> None:
    async with StandInSiflow(wide(12), clock=clock) as cloud:
        answer = await ask(build(cloud, detail="pod"), task, "CpuUsageOfNode", clock)
        assert len(answer.series) == 10
        (remark,) = answer.remarks
        assert remark.startswith("only 10 of 12 nodes are compared: ")
        assert answer.complete  # it is all there is to have that way


async def test_trap_24_at_full_detail_no_node_is_left_out(build, task, clock) -> None:
    async with StandInSiflow(wide(12), clock=clock) as cloud:
        answer = await ask(build(cloud), task, "CpuUsageOfNode", clock)
    assert (len(answer.series), answer.remarks) == (12, ())


async def test_trap_24_ten_nodes_of_ten_are_no_remark(build, task, clock) -> None:
    async with StandInSiflow(wide(10), clock=clock) as cloud:
        answer = await ask(build(cloud, detail="pod"), task, "CpuUsageOfNode", clock)
    assert (len(answer.series), answer.remarks) == (10, ())


async def test_trap_25_a_log_that_has_not_begun_is_empty_and_then_is_read(cloud, source, task, clock) -> None:
    cloud.faults.add("no lines", "logs")
    assert (await read(source, task, clock)).lines == ()
    cloud.faults.clear()
    clock.advance(timedelta(minutes=1))
    cloud.say("hello")
    assert [line.text for line in (await read(source, task, clock)).lines] == ["hello"]


async def test_trap_25_a_log_that_is_empty_for_a_moment_is_not_read_twice(cloud, source, task, clock) -> None:
    cloud.say("one")
    assert len((await read(source, task, clock)).lines) == 1
    cloud.faults.add("no lines", "logs")
    clock.advance(timedelta(minutes=1))
    assert len((await read(source, task, clock)).lines) == 1
    cloud.faults.clear()
    clock.advance(timedelta(minutes=1))
    cloud.say("two")
    lines = (await read(source, task, clock)).lines
    assert [line.text for line in lines] == ["one", "two"]


async def test_trap_26_the_environments_proxies_are_not_used(cloud, build, task, monkeypatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # where nobody answers
    assert (await build(cloud).list_tasks()).tasks


async def test_trap_26_a_proxy_that_is_configured_is(cloud, build, task) -> None:
    source = build(cloud, proxy="http://127.0.0.1:9", timeout="5s")
    with pytest.raises(SourceError) as caught:
        await source.list_tasks()
    assert caught.value.failure is Failure.UNREACHABLE


ODD = {"79": "79", " 79 ": "79", None: "", "None": "", "x" * 300: "x" * 120, "a\nb": "a b"}


@pytest.mark.parametrize(("extra", "label"), ODD.items(), ids=lambda value: repr(value)[:12])
async def test_trap_27_extra_labels_of_any_kind_become_one_short_label(extra, label, task) -> None:
    series = SeriesRow(labels=SeriesLabels(gpu="3", extra=extra), times=[1_789_012_800], values=[1.0])
    row = MetricRow(metric="XidErrors", series=[series])
    since = datetime(2026, 1, 1, tzinfo=UTC)
    question = Question(task=task, metric="XidErrors", unit="", since=since, zone=UTC)
    (one,) = read_metric(question, [Found(row=row, pod="p")]).series
    assert one.labels.get("xid", "") == label


async def test_trap_28_a_task_held_for_debugging_does_not_count_as_running(
    cloud, source, task, clock
) -> None:
    cloud.enter(Phase(start=0.0, status="Running", pods=("run-master-0",), chatter=0, held=True))
    seen = await source.status(task)
    assert seen.status is Status.HELD
    assert not seen.status.counts_as_running
    assert not seen.status.ended
    assert seen.status_text.startswith("Running, held for debugging")
    assert seen.reason == "held for debugging: its command has ended"
    assert seen.extra["held"] == "true"


@pytest.mark.parametrize("capability", ["list", "logs", "metrics"])
async def test_trap_29_null_where_a_list_is_typed_is_a_malformed_answer(
    cloud, source, task, clock, capability
) -> None:
    cloud.faults.add("null lists", capability)
    with pytest.raises(SourceError) as caught:
        await failing(capability)(source, task, clock)
    assert caught.value.failure in (Failure.MALFORMED, Failure.SERVER_ERROR)


async def test_trap_29_and_30_a_finished_task_without_an_end_and_with_empty_fields(
    cloud, source, task, clock
) -> None:
    cloud.enter(Phase(start=0.0, status="Succeeded", reason="", chatter=0))
    seen = await source.status(task)
    assert (seen.status, seen.ended, seen.pods) == (Status.SUCCEEDED, None, ())
    assert seen.started is not None


async def test_the_labels_of_a_series_are_the_tasks_and_where_it_is(source, task, clock) -> None:
    answer = await ask(source, task, "RdmaHealth", clock)
    assert task.identity.plus(Labels.of(pod="run-worker-0", node="node-01", device="mlx5_3")) in {
        series.labels for series in answer.series
    }


def test_times_beyond_what_columns_hold_are_none(task, clock) -> None:
    now_s = to_ns(clock.now()) // 10**9
    row = SeriesRow(labels=SeriesLabels(), times=[now_s, 99_000_000_000, 9e10], values=[90.0, 80.0, 70.0])
    found = Found(row=MetricRow(metric="GpuCoreUsage", unit="%", series=[row]))
    question = Question(task=task, metric="gpu", unit="%", since=clock.now() - MINUTES, zone=UTC)
    answer = read_metric(question, [found])
    assert [one.values.tolist() for one in answer.series] == [[0.9]]
    assert answer.remarks == ("points of gpu without a readable time: 2; dropped",)
