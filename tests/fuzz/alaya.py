"""Answers of Alaya NeW Cloud, bent: decoded, and used as a daemon would use them.

Promises: a value or one `SourceError` that says what failed; what is well-formed in an answer is taken,
however odd its neighbours are; nothing that comes out is unfit for the store.
"""

import math
import random
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from tests.fuzz.checking import check_error, check_observation, check_page, check_series
from tests.fuzz.mutating import as_json, garbled, mutated, nasty
from tests.fuzz.running import Shown
from watchdog.core.durations import SECOND_NS, to_ns
from watchdog.core.logs import LogQuery
from watchdog.core.tasks import Task
from watchdog.errors import SourceError
from watchdog.sources.alaya_tasks import read_list_page, read_pod
from watchdog.sources.alaya_wire import read_logs, read_metrics, read_reply
from watchdog.sources.answers import HttpAnswer

ZONE = ZoneInfo("Asia/Shanghai")
NOW = datetime(2026, 9, 10, 4, 0, tzinfo=UTC)
NOW_S = to_ns(NOW) // SECOND_NS
TASK = Task(key="alaya/1", source="alaya", id="1", name="run")
SECRET = "sk-1f2e3d4c5b6a79880716"
PLANTED = "planted-0"
EXPECTED = ("taken", "taken in part", "refused")

_TYPES = (
    "application/json",
    "application/json; charset=utf-8",
    "application/json; charset=gbk",
    "application/json;charset=utf-16",
    "text/html",
    "",
    "application/problem+json",
    "application/json; charset=klingon",
    'text/json; charset="latin-1"',
    ";;=;",
)
_STATUSES = (
    200,
    200,
    200,
    200,
    200,
    204,
    301,
    302,
    400,
    401,
    403,
    404,
    404,
    408,
    429,
    500,
    502,
    503,
    504,
    0,
    599,
    999,
)


def metrics_case(dice: random.Random, shown: Shown) -> str:
    good = _series(PLANTED, "A100-0", dice)
    others = [_series(f"worker-{n}", f"A100-{n}", dice) for n in range(dice.choice((1, 2, 3)))]

    def read(data: Any) -> bool:
        answer = read_metrics(data, task=TASK, metric="gpu", since=NOW - timedelta(minutes=15))
        check_series(answer, NOW)
        return any(
            one.labels.get("pod") == PLANTED and one.values.tolist()[-1:] == [0.25] for one in answer.series
        )

    return _case(dice, shown, good, others, lambda rows: {"metricData": rows, "startTime": "x"}, read)


def _series(pod: str, gpu: str, dice: random.Random) -> dict[str, object]:
    points = [{"timestamp": NOW_S - 60 * n, "value": "0.25"} for n in range(dice.choice((1, 3)), -1, -1)]
    return {"type": "gpu", "podName": pod, "gpuName": gpu, "maxRate": "0.5", "metricData": points}


def logs_case(dice: random.Random, shown: Shown) -> str:
    query = LogQuery(start_ns=to_ns(NOW) - 600 * SECOND_NS, end_ns=to_ns(NOW), limit=dice.choice((3, 500)))
    good = _row(5, PLANTED, "ERROR planted")
    others = [_row(n, f"worker-{n}", "step\r100\n") for n in range(dice.choice((1, 2, 4)))]

    def read(data: Any) -> bool:
        page = read_logs(data, query)
        check_page(page, query)
        return any(line.pod == PLANTED and line.text == "ERROR planted" for line in page.lines)

    return _case(dice, shown, good, others, lambda rows: rows, read)


def _row(age: int, pod: str, text: str) -> dict[str, object]:
    return {"timestamp": str(to_ns(NOW) - age * SECOND_NS), "log": text, "podName": pod}


def list_case(dice: random.Random, shown: Shown) -> str:
    good = _task("planted-0")
    others = [_task(str(n)) for n in range(dice.choice((1, 2, 4)))]

    def read(data: Any) -> bool:
        page = read_list_page(data, source="alaya", zone=ZONE)
        assert page.rows >= len(page.tasks)
        for one in page.tasks:
            check_observation(one)
        return any(one.task.id == "planted-0" for one in page.tasks)

    return _case(dice, shown, good, others, lambda rows: {"records": rows, "totalRows": len(rows)}, read)


def _task(task_id: str) -> dict[str, object]:
    return {
        "id": task_id,
        "name": f"run-{task_id}",
        "namespace": "default",
        "status": "Running",
        "aidcId": 7,
        "resource": {"workerCount": 2, "gpuCount": "8", "gpuName": "A100"},
        "createdTime": "2026-09-10 10:00:00",
        "startTime": "2026-09-10 10:05:00",
        "endTime": None,
        "reason": "",
        "imagePullPassword": SECRET,
    }


def pod_case(dice: random.Random, shown: Shown) -> str:
    pod = {
        "hostName": "node-1",
        "namespace": "default",
        "status": "Running",
        "restartCount": 0,
        "createTime": "x",
    }

    def read(data: Any) -> bool:
        basic = read_pod(data)
        assert all(isinstance(text, str) for text in (basic.namespace, basic.node, basic.status))
        assert basic.restarts is None or basic.restarts >= 0
        return True

    return _case(dice, shown, pod, [], lambda rows: rows[0], read)


def _case(dice: random.Random, shown: Shown, good: Any, others: list[Any], whole: Any, read: Any) -> str:
    """Bend the neighbours of something good, or everything; return what became of it."""
    spare = bool(others) and dice.randrange(2) == 0
    status, kind = 200, "application/json"
    if spare:
        others = mutated(others, dice) if dice.randrange(3) else [nasty(dice), *others]
        rows = [*others, good] if isinstance(others, list) else [others, good]
        if dice.randrange(2):
            rows.reverse()
        body = as_json({"status": 200, "message": "success", "data": whole(rows)}, dice)
        body = body.replace(b'"data":1,', b"", 1)
    else:
        tree: Any = {"status": 200, "message": f"no {SECRET} is known", "data": whole([*others, good])}
        body = as_json(mutated(tree, dice) if dice.randrange(3) else tree, dice)
        if dice.randrange(2):
            body = garbled(body, dice)
        if dice.randrange(3) == 0:
            status, kind = dice.choice(_STATUSES), dice.choice(_TYPES)
    shown((status, kind, body))
    try:
        reply = read_reply(HttpAnswer(status=status, content_type=kind, body=body), (SECRET,))
        if reply.error is not None:
            raise reply.error
        there = read(reply.data)
    except SourceError as error:
        check_error(error, SECRET)
        assert not spare, f"what was good is lost: {error}"  # noqa: PT017
        return "refused"
    assert there or not spare, "what was good is lost"
    return "taken in part" if spare else "taken"


def assert_finite(values: "np.ndarray[Any, Any]") -> None:
    assert all(map(math.isfinite, values.tolist()))
