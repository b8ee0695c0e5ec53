"""The stand-in cloud speaks as the documents show, plays, misbehaves on request and runs alone."""

import asyncio
import signal
import sys
from datetime import timedelta
from http.client import HTTPException

import pytest

from watchdog.core.durations import to_ns
from watchdog.demo.cloud import StandInCloud
from watchdog.demo.faults import OF_THE_SDK, FaultKind
from watchdog.demo.play import Level, Line, Phase, Play, TaskPlay
from watchdog.demo.story import PLAYS, calm

INSTANCE = "/v1/training/instance/1234567890"


@pytest.fixture
async def cloud(clock):
    async with StandInCloud(calm(), clock=clock) as cloud:
        yield cloud


async def test_the_metrics_answer_has_the_documented_fields_and_types(cloud, ask) -> None:
    status, headers, body = await ask(f"{cloud.url}{INSTANCE}/metrics?type=gpu&period=15m")

    assert (status, headers["Content-Type"]) == (200, "application/json")
    assert set(body) == {"status", "message", "data"}
    assert (body["status"], body["message"]) == (200, "OK")
    data = body["data"]
    assert set(data) == {"metricData", "startTime", "endTime"}
    assert (data["startTime"], data["endTime"]) == ("2026-09-10T03:45:00.000Z", "2026-09-10T04:00:00.000Z")
    series = data["metricData"][0]
    assert {name: type(value) for name, value in series.items()} == {
        "type": str,
        "podName": str,
        "maxRate": str,
        "avgRate": str,
        "currentRate": str,
        "gpuName": str,
        "metricData": list,
    }
    assert {name: type(value) for name, value in series["metricData"][0].items()} == {
        "timestamp": int,
        "value": str,
    }
    assert series["gpuName"] == "NVIDIA-H800A-NV-80G-0"
    assert series["metricData"][-1]["timestamp"] == 1789012800


async def test_cpu_series_have_no_gpu_name_and_history_is_asked_in_naive_text(cloud, ask) -> None:
    times = "startTime=2026-09-10%2011:59:00&endTime=2026-09-10%2011:59:30"
    _, _, body = await ask(f"{cloud.url}{INSTANCE}/metrics?type=cpu&{times}")

    data = body["data"]
    assert (data["startTime"], data["endTime"]) == ("2026-09-10 11:59:00", "2026-09-10 11:59:30")
    assert all("gpuName" not in series for series in data["metricData"])
    assert [len(series["metricData"]) for series in data["metricData"]] == [31, 31]


async def test_the_logs_answer_has_the_documented_rows(cloud, ask, clock) -> None:
    cloud.say("[INFO] Line 000100 - training step done", pod="calm-master-0", time_ns=to_ns(clock.now()) - 1)

    now = to_ns(clock.now())
    query = f"namespace=usr-abcdefgh&startTime={now - 10}&endTime={now}&limit=500&direction=forward"
    _, _, body = await ask(f"{cloud.url}{INSTANCE}/logs?{query}")

    row = {
        "timestamp": str(now - 1),
        "log": "[INFO] Line 000100 - training step done",
        "podName": "calm-master-0",
    }
    assert body == {"status": 200, "message": "OK", "data": [row]}


async def test_a_wrong_namespace_is_an_empty_list(cloud, ask, clock) -> None:
    cloud.say("hello")
    _, _, body = await ask(f"{cloud.url}{INSTANCE}/logs?namespace=default")
    assert body == {"status": 200, "message": "OK", "data": []}


async def test_documented_errors_carry_an_empty_object(cloud, ask) -> None:
    cloud.faults.add("forbidden", times=1)
    assert (await ask(f"{cloud.url}{INSTANCE}/logs?namespace=x"))[::2] == (
        403,
        {"status": 403, "message": "Forbidden", "data": {}},
    )
    cloud.faults.add("error 500", times=1)
    assert (await ask(f"{cloud.url}{INSTANCE}/logs?namespace=x"))[::2] == (
        500,
        {"status": 500, "message": "Internal Server Error", "data": {}},
    )
    assert (await ask(f"{cloud.url}{INSTANCE}/logs?namespace=x"))[0] == 200


@pytest.mark.parametrize(
    "call",
    [
        "metrics?period=15m",
        "metrics?type=gpu",
        "metrics?type=gpu&period=2h",
        "logs",
        "logs?namespace=x&limit=a",
    ],
)
async def test_requests_that_break_the_documented_rules_are_refused(cloud, ask, call) -> None:
    status, _, body = await ask(f"{cloud.url}{INSTANCE}/{call}")
    assert (status, body["status"], body["data"]) == (400, 400, {})


async def test_keys_are_checked(cloud, ask) -> None:
    url = f"{cloud.url}{INSTANCE}/metrics?type=gpu&period=15m"
    assert (await ask(url, key=""))[2]["status"] == 40401
    assert (await ask(url, key="other"))[2]["status"] == 40006


async def test_outside_the_prefix_the_console_answers(cloud, ask) -> None:
    status, headers, body = await ask(f"{cloud.url}/api/osm/v1/training/instance/list")
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert body.startswith("<!doctype html>")


async def test_pod_basic_has_the_documented_fields(cloud, ask) -> None:
    _, _, body = await ask(f"{cloud.url}{INSTANCE}/calm-worker-0/basic")
    assert {name: type(value) for name, value in body["data"].items()} == {
        "clusterName": str,
        "hostName": str,
        "namespace": str,
        "hostIp": str,
        "status": str,
        "podIp": str,
        "restartCount": int,
        "qosClass": str,
        "createBy": str,
        "createTime": str,
    }
    assert body["data"]["createTime"] == "2026-09-10 11:57:30"


async def test_the_list_pages_and_shows_the_phase(cloud, ask) -> None:
    cloud.enter(Phase(start=0, status="Failed", reason="exit code 1"))

    _, _, body = await ask(f"{cloud.url}/v1/training/instance/list?pageNo=1&pageSize=100")
    (row,) = body["data"]["records"]
    assert body["data"]["totalRows"] == 1
    assert (row["id"], row["status"], row["reason"]) == ("1234567890", "Failed", "exit code 1")
    assert row["endTime"] == "2026-09-10 12:00:00"
    assert (await ask(f"{cloud.url}/v1/training/instance/checkIsEnabled?aidcId=3"))[2]["data"] is True


async def test_what_was_served_once_never_changes(cloud, ask, clock) -> None:
    url = f"{cloud.url}{INSTANCE}/metrics?type=gpu&period=15m"
    before = (await ask(url))[2]["data"]["metricData"][0]["metricData"]

    cloud.enter(Phase(start=0, pods=("calm-master-0",), levels=(Level(metric="gpu", value=0.0, wobble=0.0),)))
    clock.wall += timedelta(seconds=10)

    after = (await ask(url))[2]["data"]["metricData"][0]["metricData"]
    assert after[: len(before)] == before
    assert [point["value"] for point in after[len(before) :]] == ["0"] * 10


async def test_series_can_be_functions_of_time(clock, ask) -> None:
    def value(metric: str, pod: str, gpu: int | None, second: float) -> float | None:
        return None if second % 2 else gpu / 10 + 0.5 if gpu is not None else 0.1

    play = TaskPlay(id="7", name="f", gpus_per_pod=2, phases=(Phase(start=-10, pods=("p",)),), function=value)
    async with StandInCloud(Play(tasks=(play,)), clock=clock) as cloud:
        _, _, body = await ask(f"{cloud.url}/v1/training/instance/7/metrics?type=vram&period=15m")
    first, second = body["data"]["metricData"]
    assert {point["value"] for point in first["metricData"]} == {"0.5"}
    assert {point["value"] for point in second["metricData"]} == {"0.6"}
    assert len(first["metricData"]) == 6


async def test_lines_of_the_play_come_at_their_second_and_late_ones_later(clock, ask) -> None:
    phase = Phase(start=0, pods=("p",), chatter=0)
    lines = (Line(1.0, "p", "on time"), Line(2.0, "p", "late", late=5))
    play = TaskPlay(id="7", name="l", namespace="n", phases=(phase,), lines=lines)
    async with StandInCloud(Play(tasks=(play,)), clock=clock, speed=2.0) as cloud:

        async def texts() -> list[str]:
            url = f"{cloud.url}/v1/training/instance/7/logs?namespace=n&direction=forward"
            return [row["log"] for row in (await ask(url))[2]["data"]]

        assert await texts() == []
        clock.wall += timedelta(seconds=1)  # two seconds of the play
        assert await texts() == ["on time"]
        clock.wall += timedelta(seconds=5)
        assert await texts() == ["on time", "late"]


async def test_faults_are_for_a_capability_a_task_and_a_number_of_answers(cloud, ask) -> None:
    url = f"{cloud.url}{INSTANCE}/metrics?type=gpu&period=15m"
    cloud.faults.add("unavailable", "logs")
    cloud.faults.add("unavailable", "metrics", task="another")
    fault = cloud.faults.add("unavailable", "metrics", times=2)

    assert [(await ask(url))[0] for _ in range(3)] == [503, 503, 200]
    assert fault not in cloud.faults.faults


@pytest.mark.parametrize("kind", sorted(set(FaultKind) - OF_THE_SDK))
async def test_every_fault_changes_what_arrives(cloud, ask, clock, kind) -> None:
    for number in range(4):
        cloud.say(f"line {number}", time_ns=to_ns(clock.now()) - 5 * 10**9 + number)
    urls = {
        "metrics": f"{cloud.url}{INSTANCE}/metrics?type=gpu&period=15m",
        "logs": f"{cloud.url}{INSTANCE}/logs?namespace=usr-abcdefgh&direction=forward",
        "list": f"{cloud.url}/v1/training/instance/list?pageNo=2&pageSize=1",
    }
    cloud.tasks["2"] = cloud.tasks["1234567890"]

    async def everything() -> list[object]:
        return [await ask(url) for url in urls.values()]

    honest = await everything()
    values = {"hang": "0.05", "drip": "0.00001", "huge": "3000000", "stale": "30"}
    only = {"drip": "list", "hang": "list"}
    task = "1234567890" if kind == "partial list" else ""
    cloud.faults.add(kind, only.get(kind, ""), value=values.get(kind, ""), task=task)
    try:
        spoiled: list[object] = await everything()
    except (OSError, HTTPException) as error:
        spoiled = [type(error).__name__]
    if kind not in ("hang", "drip"):  # these only take longer
        assert spoiled != honest


async def test_it_is_controlled_from_another_process_by_url(cloud, ask, clock) -> None:
    control = f"{cloud.url}/_control"
    logs = f"{cloud.url}{INSTANCE}/logs?namespace=usr-abcdefgh&direction=forward"

    assert (await ask(f"{control}/say", {"text": "ERROR told", "pod": "calm-worker-0"}, "POST"))[0] == 200
    assert (await ask(logs))[2]["data"][0]["log"] == "ERROR told"

    _, _, added = await ask(f"{control}/faults", {"kind": "html", "capability": "logs"}, "POST")
    assert added == {"id": 1}
    assert "<html>" in (await ask(logs))[2]
    await ask(f"{control}/faults", method="DELETE")
    assert (await ask(logs))[0] == 200

    levels = [{"metric": "gpu", "value": 0.25, "wobble": 0}]
    await ask(f"{control}/phase", {"status": "Paused", "pods": ["p"], "levels": levels}, "POST")
    await ask(f"{control}/listed", {"task": "1234567890", "listed": False}, "POST")
    clock.wall += timedelta(seconds=1)
    _, _, body = await ask(f"{cloud.url}{INSTANCE}/metrics?type=gpu&period=15m")
    assert body["data"]["metricData"][-1]["currentRate"] == "0.25"
    assert (await ask(f"{cloud.url}/v1/training/instance/list?pageNo=1&pageSize=9"))[2]["data"][
        "records"
    ] == []

    _, _, counted = await ask(f"{control}/requests")
    assert counted == {"counts": {"logs": 3, "metrics": 1, "list": 1}, "most_at_once": 1}


@pytest.mark.parametrize(
    ("verb", "body"),
    [
        ("faults", {"kind": "unheard of"}),
        ("nothing", {}),
        ("say", {"text": "x", "task": "no such"}),
        ("phase", {"levels": 5}),
        ("phase", {"levels": [{"metrik": "gpu"}]}),
    ],
)
async def test_a_wrong_control_call_is_refused_with_a_reason(cloud, ask, verb, body) -> None:
    status, _, answer = await ask(f"{cloud.url}/_control/{verb}", body, "POST")
    assert (status, list(answer)) == (400, ["error"])


async def test_it_runs_as_its_own_process(ask) -> None:
    options = ("--play", "calm", "--auth", "none", "--prefix", "/api/osm/v1")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "watchdog.demo.cloud", *options, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    url = (await process.stdout.readline()).decode().strip()

    status, _, body = await ask(f"{url}/api/osm/v1/training/instance/list?pageNo=1&pageSize=9", key="")
    process.send_signal(signal.SIGINT)

    assert (status, body["data"]["totalRows"]) == (200, 1)
    assert await process.wait() == 0


@pytest.mark.parametrize("name", sorted(PLAYS))
def test_a_play_is_the_same_each_time(name) -> None:
    for one, two in zip(PLAYS[name]().tasks, PLAYS[name]().tasks, strict=True):
        for pod in one.pods():
            assert list(one.chatter(pod, -20, 100)) == list(two.chatter(pod, -20, 100))
            points = [one.value("gpu", pod, 0, second / 2) for second in range(-40, 200)]
            assert points == [two.value("gpu", pod, 0, second / 2) for second in range(-40, 200)]


def test_the_demos_story_has_every_act() -> None:
    pretrain, queued = PLAYS["demo"]().tasks
    statuses = [phase.status for phase in pretrain.phases]
    texts = [line.text for line in pretrain.lines]

    assert statuses[-1] == "Succeeded"
    assert any("NCCL" in text for text in texts)
    assert any(text.startswith("Traceback") for text in texts)
    assert sum("ERROR" in text for text in texts) > 20
    assert set(pretrain.phases[0].pods).isdisjoint(pretrain.phases[-2].pods)
    busy, idle = (
        pretrain.value("gpu", pretrain.phases[0].pods[0], 0, start) for start in starts(pretrain)[:2]
    )
    assert idle < 0.05 < 0.9 < busy
    new_pod = pretrain.phases[-2].pods[0]
    assert max(pretrain.value("vram", new_pod, 0, start) or 0 for start in starts(pretrain)) > 0.95
    assert [phase.status for phase in queued.phases] == ["Queueing", "Running", "Paused"]


def starts(play: TaskPlay) -> list[float]:
    return [phase.start for phase in play.phases]


def test_chatter_is_steady_and_stays_inside_its_window() -> None:
    play = TaskPlay(id="1", name="c", phases=(Phase(start=-30, pods=("p",), chatter=2), Phase(start=10)))

    lines = list(play.chatter("p", -5, 20))
    assert all(-5 <= line.at < 10 for line in lines)
    assert len(lines) == 30
    parts = [line for start in range(-5, 20, 5) for line in play.chatter("p", start, start + 5)]
    assert parts == lines
