"""The traps of the API facts (1-15 Alaya, 31-34 both clouds), each against the stand-in cloud."""

import asyncio
import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from watchdog.core.durations import from_ns, to_ns
from watchdog.core.health import Failure
from watchdog.core.logs import LogQuery
from watchdog.core.ruleset import SourceSpec
from watchdog.core.tasks import Status
from watchdog.demo.cloud import StandInCloud
from watchdog.demo.cloud_auth import Keys
from watchdog.demo.play import Level, Phase, Play, TaskPlay
from watchdog.demo.story import calm
from watchdog.errors import SourceError
from watchdog.ports import MetricAnswer
from watchdog.sources.alaya import AlayaSource

MASTER, WORKER = "calm-master-0", "calm-worker-0"
BUSY = (Level(metric="gpu", value=0.9), Level(metric="vram", value=0.5))


async def read_metric(source, task, clock, metric="gpu", back=timedelta(minutes=2)) -> MetricAnswer:
    return await source.metric(task, metric, since=clock.now() - back, now=clock.now())


def last_minute(clock, **changes) -> LogQuery:
    now = to_ns(clock.now())
    return LogQuery(**{"start_ns": now - 60 * 10**9, "end_ns": now, **changes})


async def failure_of(awaitable) -> SourceError:
    with pytest.raises(SourceError) as caught:
        await awaitable
    return caught.value


def values(answer: MetricAnswer) -> set[float]:
    return set(np.concatenate([series.values for series in answer.series]).tolist())


async def test_trap_1_html_with_status_200_is_named_as_such(cloud, source, task, clock) -> None:
    cloud.faults.add("html")

    for question in (
        read_metric(source, task, clock),
        source.logs(task, last_minute(clock)),
        source.list_tasks(),
    ):
        error = await failure_of(question)
        assert error.failure is Failure.NOT_JSON
        assert str(error) == "not JSON (text/html)"


async def test_trap_1_a_list_that_is_html_does_not_blind_the_documented_calls(
    cloud, source, task, clock
) -> None:
    cloud.faults.add("html", "list")

    assert (await failure_of(source.list_tasks())).failure is Failure.NOT_JSON
    assert (await read_metric(source, task, clock)).series


@pytest.mark.parametrize("capability", ["metrics", "logs", "list"])
async def test_trap_2_an_error_inside_http_200_is_a_failure(cloud, source, task, clock, capability) -> None:
    cloud.faults.add("body 403", capability)
    questions = {
        "metrics": read_metric(source, task, clock),
        "logs": source.logs(task, last_minute(clock)),
        "list": source.list_tasks(),
    }

    error = await failure_of(questions.pop(capability))
    assert error.failure is Failure.FORBIDDEN
    assert error.detail == "Forbidden, code 403, HTTP 200"
    for other in questions.values():
        await other


@pytest.mark.parametrize(
    ("fault", "failure"),
    [
        ("login", Failure.KEY_EXPIRED),
        ("key unknown", Failure.KEY_UNKNOWN),
        ("key expired", Failure.KEY_EXPIRED),
        ("key disabled", Failure.KEY_DISABLED),
        ("signature", Failure.SIGNATURE),
        ("clock", Failure.CLOCK_SKEW),
        ("forbidden", Failure.FORBIDDEN),
        ("not found", Failure.NOT_FOUND),
        ("error 500", Failure.SERVER_ERROR),
        ("body 500", Failure.SERVER_ERROR),
        ("unavailable", Failure.SERVER_ERROR),
    ],
)
async def test_trap_3_business_codes_are_named_for_people(cloud, source, task, clock, fault, failure) -> None:
    cloud.faults.add(fault)

    error = await failure_of(read_metric(source, task, clock))
    assert error.failure is failure
    assert "HTTP" in error.detail


@pytest.mark.parametrize("fault", ["null data", "no data", "no series", "no points"])
async def test_trap_4_no_data_is_a_healthy_empty_answer(cloud, source, task, clock, fault) -> None:
    cloud.faults.add(fault, "metrics")

    assert not (await read_metric(source, task, clock)).series


@pytest.mark.parametrize("fault", ["null data", "no data"])
async def test_trap_4_null_logs_are_silence_but_a_null_list_is_no_empty_list(
    cloud, source, task, clock, fault
) -> None:
    cloud.faults.add(fault)

    page = await source.logs(replace(task, namespace="default"), last_minute(clock))
    assert page.lines == ()
    assert (await failure_of(source.list_tasks())).failure is Failure.MALFORMED


async def test_trap_5_ratios_of_every_spelling(cloud, source, task, clock) -> None:
    cloud.faults.add("odd values")

    answer = await read_metric(source, task, clock)

    assert values(answer) == {0.5, 1.02, 212.37, 0.75, 1.0}
    assert answer.remarks == ("suspect values of gpu: outside 0 to 1, such as 212.37; kept as sent",)


async def test_trap_6_both_spellings_of_the_window_are_accepted(cloud, source, task, clock) -> None:
    """`period` answers with ISO and Z, startTime/endTime with naive text; neither is needed."""
    polled = await read_metric(source, task, clock)
    history = await source.history(task, "gpu", clock.now() - timedelta(minutes=2), clock.now())

    assert [series.labels for series in polled.series] == [series.labels for series in history.series]
    assert values(polled) <= values(history)


async def test_trap_7_one_series_per_card_of_a_pod(cloud, source, task, clock) -> None:
    answer = await read_metric(source, task, clock)

    keys = [(series.labels["pod"], series.labels["gpu"]) for series in answer.series]
    cards = ("NVIDIA-H800A-NV-80G-0", "NVIDIA-H800A-NV-80G-1")
    assert keys == [(pod, card) for pod in (MASTER, WORKER) for card in cards]


async def test_trap_7_duplicate_series_and_points_are_merged(cloud, source, task, clock) -> None:
    once = await read_metric(source, task, clock)
    cloud.faults.add("twice")
    cloud.faults.add("unsorted")

    twice = await read_metric(source, task, clock)

    assert twice.remarks == ()
    for one, two in zip(once.series, twice.series, strict=True):
        np.testing.assert_array_equal(one.times, two.times)
        np.testing.assert_array_equal(one.values, two.values)


async def test_trap_8_exactly_limit_rows_is_a_full_page(cloud, source, task, clock) -> None:
    for number in range(3):
        cloud.say(f"line {number}")

    assert (await source.logs(task, last_minute(clock, limit=4))).full is False
    assert (await source.logs(task, last_minute(clock, limit=3))).full is True
    assert len((await source.logs(task, last_minute(clock, limit=2))).lines) == 2


async def test_trap_8_equal_times_stay_apart_to_the_nanosecond(cloud, source, task, clock) -> None:
    moment = to_ns(clock.now()) - 1_000_000_001
    for text in ("same", "same", "other"):
        cloud.say(text, time_ns=moment)

    page = await source.logs(task, last_minute(clock))

    assert [(line.time_ns, line.text) for line in page.lines] == [
        (moment, "same"),
        (moment, "same"),
        (moment, "other"),
    ]


async def test_trap_8_late_lines_come_with_their_own_time(cloud, source, task, clock) -> None:
    said = to_ns(clock.now())
    cloud.say("late", time_ns=said, late=timedelta(seconds=30))
    assert (await source.logs(task, last_minute(clock))).lines == ()

    clock.advance(timedelta(seconds=31))

    assert [line.time_ns for line in (await source.logs(task, last_minute(clock))).lines] == [said]


async def test_trap_8_row_order_is_not_trusted(cloud, source, task, clock) -> None:
    for number in range(6):
        cloud.say(f"line {number}", time_ns=to_ns(clock.now()) - 10**9 + number)
    cloud.faults.add("unsorted", "logs")

    page = await source.logs(task, last_minute(clock))

    assert [line.text for line in page.lines] == [f"line {number}" for number in range(6)]


async def test_trap_8_newlines_stay_and_nul_is_made_harmless(cloud, source, task, clock) -> None:
    cloud.say("a\nERROR b\nc\x00d")

    (line,) = (await source.logs(task, last_minute(clock))).lines
    assert line.text == "a\nERROR b\nc\ufffdd"


async def test_trap_9_the_namespace_is_learned_from_a_pod(cloud, source, task, clock) -> None:
    cloud.say("hello")
    await read_metric(source, task, clock)

    assert [line.text for line in (await source.logs(task, last_minute(clock))).lines] == ["hello"]
    await source.logs(task, last_minute(clock))
    assert cloud.counts()["pod"] == 1


async def test_trap_9_without_any_metric_rule_a_pod_is_looked_up_once(cloud, source, task, clock) -> None:
    cloud.say("hello")

    assert (await source.logs(task, last_minute(clock))).lines
    await source.logs(task, last_minute(clock))
    assert cloud.counts() == {"metrics": 1, "pod": 1, "logs": 2}


async def test_trap_9_a_pod_is_not_looked_up_where_metrics_are_on_their_way(
    cloud, source, task, clock
) -> None:
    cloud.say("hello")

    _, _, page = await asyncio.gather(
        read_metric(source, task, clock),
        read_metric(source, task, clock, "vram"),
        source.logs(task, last_minute(clock)),
    )
    assert [line.text for line in page.lines] == ["hello"]
    assert cloud.counts() == {"metrics": 2, "pod": 1, "logs": 1}


async def test_trap_9_a_pod_is_looked_up_where_the_metrics_on_their_way_name_none(
    cloud, source, task, clock
) -> None:
    cloud.say("hello")
    cloud.faults.add("forbidden", "metrics", times=1)

    answers = await asyncio.gather(
        read_metric(source, task, clock), source.logs(task, last_minute(clock)), return_exceptions=True
    )
    assert isinstance(answers[0], SourceError)
    assert [line.text for line in answers[1].lines] == ["hello"]
    assert cloud.counts() == {"metrics": 2, "pod": 1, "logs": 1}


async def test_trap_9_a_configured_namespace_wins(cloud, build, task, clock) -> None:
    cloud.say("hello")
    source = build(cloud)

    assert (await source.logs(replace(task, namespace="wrong"), last_minute(clock))).lines == ()
    assert (await source.logs(replace(task, namespace="usr-abcdefgh"), last_minute(clock))).lines
    assert cloud.counts()["pod"] == 0


async def test_trap_9_pod_data_that_fails_falls_back_and_is_asked_again_later(
    cloud, build, task, clock
) -> None:
    cloud.say("hello")
    fault = cloud.faults.add("forbidden", "pod")
    source = build(cloud, namespace="fallback")

    assert (await source.logs(task, last_minute(clock))).lines == ()
    cloud.faults.remove(fault)
    assert (await source.logs(task, last_minute(clock))).lines == ()  # not asked again at once
    assert {dict(r.query)["namespace"] for r in cloud.requests if r.capability == "logs"} == {"fallback"}

    clock.advance(timedelta(minutes=5))
    assert (await source.logs(task, last_minute(clock, start_ns=1))).lines


@pytest.mark.parametrize("task_id", ["0012345678", "0f8fad5b-d9cb-469f-a165-70867728950e", "a/b c?d#é"])
async def test_trap_10_ids_are_opaque_text(clock, build, task_id) -> None:
    play = TaskPlay(id=task_id, name="run", phases=(Phase(start=-60, pods=(MASTER,), levels=BUSY),))
    async with StandInCloud(Play(tasks=(play,)), clock=clock) as cloud:
        source = build(cloud)

        (observation,) = (await source.list_tasks()).tasks
        assert observation.task.id == task_id
        assert (await read_metric(source, observation.task, clock)).series
        assert {request.task for request in cloud.requests if request.task} == {task_id}
        await source.close()


def many_tasks(number: int) -> Play:
    phase = Phase(start=-60, pods=(MASTER,), levels=BUSY)
    return Play(tasks=tuple(TaskPlay(id=str(n), name=f"run-{n}", phases=(phase,)) for n in range(number)))


@pytest.mark.parametrize(
    ("fault", "complete", "found"),
    [("", True, 250), ("shrinking", False, 250), ("repeated page", False, 100), ("empty page", False, 100)],
)
async def test_trap_11_only_a_list_without_gaps_is_complete(clock, build, fault, complete, found) -> None:
    async with StandInCloud(many_tasks(250), clock=clock) as cloud:
        if fault:
            cloud.faults.add(fault, "list")
        listing = await build(cloud).list_tasks()

        assert (listing.complete, len(listing.tasks)) == (complete, found)
        assert cloud.counts()["list"] <= 3


async def test_trap_11_a_task_that_a_sub_account_does_not_see_is_absent_and_the_engine_knows_if_it_ever_was(
    cloud, source, task
) -> None:
    cloud.faults.add("partial list", task=task.id)

    observation = await source.status(task)

    assert (observation.status, observation.status_text) == (Status.VANISHED, "not in the task list")


@pytest.mark.parametrize(
    ("word", "status"),
    [
        ("Waiting", Status.QUEUED),
        ("QUEUEING", Status.QUEUED),
        ("pending", Status.QUEUED),
        ("Starting", Status.LOADING),
        ("initializing", Status.LOADING),
        ("RUNNING", Status.RUNNING),
        ("Paused", Status.PAUSED),
        ("suspending", Status.PAUSED),
        ("Succeeded", Status.SUCCEEDED),
        ("success", Status.SUCCEEDED),
        ("Error", Status.FAILED),
        ("Cancelled", Status.CANCELED),
        ("deleted", Status.CANCELED),
        ("NotStarted", Status.UNKNOWN),
        ("终止", Status.UNKNOWN),
    ],
)
async def test_trap_12_status_words_in_any_case(cloud, source, task, word, status) -> None:
    cloud.enter(Phase(start=0, status=word, reason="as told"))

    observation = await source.status(task)

    assert (observation.status, observation.status_text, observation.reason) == (status, word, "as told")


async def test_trap_12_gone_from_a_complete_list_is_vanished(cloud, source, task, clock) -> None:
    assert (await source.status(task)).status is Status.RUNNING
    cloud.tasks[task.id].listed = False
    clock.advance(timedelta(seconds=60))

    assert (await source.status(task)).status is Status.VANISHED


async def test_trap_12_gone_from_an_incomplete_list_is_not_vanished(clock, build) -> None:
    async with StandInCloud(many_tasks(150), clock=clock) as cloud:
        source = build(cloud)
        task = (await source.list_tasks()).tasks[149].task
        cloud.faults.add("repeated page", "list")
        clock.advance(timedelta(seconds=60))

        error = await failure_of(source.status(task))
        assert error.failure is Failure.MALFORMED


async def test_trap_13_gpu_count_as_number_or_text(clock, build) -> None:
    async with StandInCloud(many_tasks(2), clock=clock) as cloud:
        listing = await build(cloud).list_tasks()

        assert [observation.extra["gpus"] for observation in listing.tasks] == ["8", "8"]


@pytest.mark.parametrize(
    ("header", "wait"),
    [
        ("", None),
        ("7", timedelta(seconds=7)),
        ("Thu, 10 Sep 2026 04:02:00 GMT", timedelta(minutes=2)),
        ("soon", None),
    ],
)
async def test_trap_14_throttled_with_and_without_retry_after(
    cloud, source, task, clock, header, wait
) -> None:
    cloud.faults.add("throttled", "metrics", value=header)

    error = await failure_of(read_metric(source, task, clock))

    assert (error.failure, error.retry_after, error.retryable) == (Failure.THROTTLED, wait, True)


async def test_trap_15_new_pods_after_a_restart_bring_their_own_series(cloud, source, task, clock) -> None:
    await read_metric(source, task, clock)
    cloud.enter(Phase(start=0, pods=("fresh-master-0",), levels=BUSY))
    clock.advance(timedelta(seconds=30))

    answer = await read_metric(source, task, clock, back=timedelta(seconds=20))

    assert {series.labels["pod"] for series in answer.series} == {"fresh-master-0"}
    observation = await source.status(task)
    assert observation.nodes == {"fresh-master-0": "node-02"}


async def test_trap_31_naive_times_are_in_the_sources_zone(cloud, build, task, clock) -> None:
    began = clock.now() - timedelta(seconds=150)

    assert (await build(cloud).status(task)).started == began
    utc = await build(cloud, timezone="UTC").status(task)
    assert utc.started == began + timedelta(hours=8)


async def test_trap_31_history_asks_in_the_sources_zone(cloud, source, task, clock) -> None:
    await source.history(task, "gpu", datetime(2026, 9, 10, 3, 58, tzinfo=UTC), clock.now())

    (request,) = cloud.requests
    assert dict(request.query) == {
        "type": "gpu",
        "startTime": "2026-09-10 11:58:00",
        "endTime": "2026-09-10 12:00:00",
    }


async def test_trap_32_points_older_than_asked_are_never_passed_off_as_new(
    cloud, source, task, clock
) -> None:
    first = await read_metric(source, task, clock)
    newest = from_ns(int(first.series[0].times[-1]))
    cloud.faults.add("stale", value=60)
    clock.advance(timedelta(seconds=30))

    again = await source.metric(task, "gpu", since=newest, now=clock.now())

    assert not again.series


async def test_trap_33_a_skewed_clock_is_named(clock, build, task) -> None:
    async with StandInCloud(calm(), clock=clock, keys=Keys(scheme="hmac")) as cloud:
        skewed = type(clock)()
        skewed.wall = clock.wall + timedelta(minutes=6)
        source = build(cloud, clock=skewed, auth="hmac")

        error = await failure_of(source.list_tasks())
        assert error.failure is Failure.CLOCK_SKEW
        assert "over 5 minutes off" in error.detail


async def test_trap_34_no_secret_of_a_task_or_of_ours_reaches_values_errors_or_logs(
    cloud, clock, task, caplog
) -> None:
    caplog.set_level(logging.DEBUG)
    spec = SourceSpec(
        name="alaya", kind="alaya", options={"base_url": cloud.url, "api_key": "stand-in-api-key"}
    )
    source = AlayaSource(spec, clock)
    listing = await source.list_tasks()
    texts = [repr(listing), repr(source), repr(vars(source)), repr(vars(vars(source)["_api"]))]
    for fault in ("wrong data", "garbage", "forbidden", "truncated", "html"):
        cloud.faults.clear()
        cloud.faults.add(fault)
        texts.append(str(await failure_of(source.list_tasks())))
    await source.close()

    said = "\n".join([*texts, caplog.text])
    for secret in ("stand-in-pull-password", "hf_StandIn", "stand-in-api-key"):
        assert secret not in said
