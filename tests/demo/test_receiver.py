"""The webhook receiver writes down everything and answers as scripted."""

import asyncio
import json
import signal
import sys
from http.client import HTTPException

import pytest

from watchdog.demo.receiver import Answer, AnswerKind, Receiver


@pytest.fixture
async def receiver(clock, tmp_path):
    async with Receiver(clock=clock, out=tmp_path / "received.jsonl") as receiver:
        yield receiver


def written(receiver) -> list[dict[str, object]]:
    return [json.loads(line) for line in receiver.out.read_text(encoding="utf-8").splitlines()]


async def test_deliveries_are_written_down_with_time_path_and_body(receiver, ask) -> None:
    assert (await ask(f"{receiver.url}/team", {"title": "GPU 空闲"}, "POST"))[0] == 200

    expected = {
        "at": "2026-09-10T04:00:00+00:00",
        "method": "POST",
        "path": "/team",
        "body": {"title": "GPU 空闲"},
        "answered": "status 200",
    }
    assert written(receiver) == [expected]
    assert receiver.received[0].body == {"title": "GPU 空闲"}


async def test_answers_are_given_in_order_and_then_200_again(receiver, ask) -> None:
    receiver.answers += [
        Answer(status=500, times=2),
        Answer(kind=AnswerKind.THROTTLED, value="120"),
        Answer(kind=AnswerKind.ERRCODE, value="45009"),
    ]

    answers = [await ask(f"{receiver.url}/x", {}, "POST") for _ in range(5)]

    assert [status for status, _, _ in answers] == [500, 500, 429, 200, 200]
    assert answers[2][1]["Retry-After"] == "120"
    assert answers[3][2] == {"errcode": 45009, "errmsg": "refused"}
    assert len(written(receiver)) == 5


async def test_answers_can_be_for_one_path(receiver, ask) -> None:
    receiver.answers.append(Answer(status=410, path="/old*", times=0))

    assert [(await ask(f"{receiver.url}{path}", {}, "POST"))[0] for path in ("/old1", "/new", "/old2")] == [
        410,
        200,
        410,
    ]


async def test_a_delivery_is_written_down_before_it_is_answered(receiver, ask) -> None:
    receiver.answers.append(Answer(kind=AnswerKind.DROP))

    with pytest.raises((OSError, HTTPException)):
        await ask(f"{receiver.url}/a", {"n": 1}, "POST")
    assert written(receiver)[0]["body"] == {"n": 1}


async def test_an_answer_can_take_its_time(receiver, ask) -> None:
    receiver.answers.append(Answer(kind=AnswerKind.HANG, value="3600"))
    asking = asyncio.create_task(ask(f"{receiver.url}/a", {"n": 1}, "POST"))
    while not receiver.received:
        await asyncio.sleep(0)

    assert not asking.done()
    await receiver.__aexit__(None, None, None)
    with pytest.raises((OSError, HTTPException)):
        await asking


async def test_redirects_point_elsewhere(receiver, ask) -> None:
    receiver.answers.append(Answer(kind=AnswerKind.REDIRECT, value="/after"))

    await ask(f"{receiver.url}/before", None, "GET")

    assert [received.path for received in receiver.received] == ["/before", "/after"]


async def test_answers_are_scripted_from_another_process_by_url(receiver, ask) -> None:
    control = f"{receiver.url}/_control/answers"
    assert (await ask(control, [{"kind": "status", "status": 503, "times": 0}], "POST"))[2]["answers"] == 1
    assert (await ask(f"{receiver.url}/a", {}, "POST"))[0] == 503
    assert (await ask(control, [{"kind": "unheard of"}], "POST"))[0] == 400
    assert (await ask(control, method="DELETE"))[2] == {"received": 1, "answers": 0}
    assert (await ask(f"{receiver.url}/a", {}, "POST"))[0] == 200


async def test_it_runs_as_its_own_process(ask, tmp_path) -> None:
    out = tmp_path / "received.jsonl"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "watchdog.demo.receiver", "--out", str(out), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    url = (await process.stdout.readline()).decode().strip()

    assert (await ask(f"{url}/team", {"n": 1}, "POST"))[0] == 200
    process.send_signal(signal.SIGINT)

    assert await process.wait() == 0
    assert json.loads(out.read_text())["body"] == {"n": 1}
