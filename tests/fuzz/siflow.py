"""What SiFlow's SDK may hand out, bent: through the worker's conversion, its frames, and into our values.

Two areas: objects of an SDK that keeps to nothing, and frames of a worker that keeps to nothing. Promises:
each request gets exactly one frame; a value or one `SourceError` comes of it; what is well-formed is taken,
however odd its neighbours are.
"""

import io
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from tests.fuzz.checking import check_error, check_observation, check_page, check_series
from tests.fuzz.mutating import as_json, garbled, mutated, nasty
from tests.fuzz.running import Shown
from watchdog.core.durations import SECOND_NS, to_ns
from watchdog.core.logs import LogQuery
from watchdog.core.tasks import Task
from watchdog.errors import SourceError
from watchdog.sources import siflow_worker as worker
from watchdog.sources.siflow_logs import LogTail
from watchdog.sources.siflow_metrics import Found, Question, read_custom, read_metric
from watchdog.sources.siflow_tasks import observe, read_roster, unique
from watchdog.sources.siflow_wire import (
    Catalogue,
    LogRows,
    MetricSet,
    Pods,
    TaskPage,
    TaskRow,
    frame_length,
    read_answer,
    read_error,
    read_reply,
)

ZONE = ZoneInfo("Asia/Shanghai")
NOW = datetime(2026, 9, 10, 4, 0, tzinfo=UTC)
NOW_S = to_ns(NOW) // SECOND_NS
TASK = Task(key="siflow/u1", source="siflow", id="u1", name="run")
SECRET = "ak-1f2e3d4c5b6a79880716"
PLANTED = "planted-0"
EXPECTED = ("taken", "taken in part", "refused")
Data = Any


# --- what is asked, what a good answer looks like, and how it is used


def _task(uuid: str) -> Data:
    return {
        "uuid": uuid,
        "name": f"run-{uuid}",
        "status": "Running",
        "status_msg": "",
        "create_time": "2026-09-10 10:00:00",
        "start_time": "2026-09-10 10:05:00",
        "end_time": None,
        "owner": "me",
        "resource_pool": "p",
        "timezone": "Asia/Shanghai",
        "queue_info": {"rank_in_pool": 3, "ahead_in_pool": {"high": 1, "medium": None, "low": 2}},
        "enhancements": {"fault_tolerance": {"records": [1, 2]}, "debug_mode": {"holding": False}},
    }


def _pod(name: str) -> Data:
    return {
        "name": name,
        "status": "Running",
        "status_msg": "",
        "node": "n-1",
        "create_time": "2026-09-10 10:05:00",
        "exit_code": None,
        "deleted": False,
    }


def _curve(pod: str) -> Data:
    points = [{"timestamp": NOW_S - 60 * n, "value": 25.0} for n in (2, 1, 0)]
    return {"labels": {"pod": pod, "node": "n-1", "gpu": "0", "device": None, "extra": ""}, "values": points}


def _log(pod: str, text: str) -> Data:
    return {"content": text, "timestamp": NOW_S - 5, "pod": pod}


def _custom(name: str) -> Data:
    return {
        "metric": name,
        "sample_value": 1.5,
        "sample_time": NOW_S - 60,
        "labels": {"pod_name": PLANTED, "x": "y"},
    }


def _use_list(raw: Any) -> bool:
    page = read_answer(msgspec.json.Decoder(TaskPage), raw)
    found = [observe(row, source="siflow", zone=ZONE) for row in unique(page.rows).values()]
    for one in found:
        if one is not None:
            check_observation(one)
    return any(one is not None and one.task.id == PLANTED for one in found)


def _use_get(raw: Any) -> bool:
    one = observe(read_answer(msgspec.json.Decoder(TaskRow), raw), source="siflow", zone=ZONE, task=TASK)
    if one is not None:
        check_observation(one)
    return one is not None


def _use_pods(raw: Any) -> bool:
    roster = read_roster(read_answer(msgspec.json.Decoder(Pods), raw).pods, ZONE)
    row = TaskRow(uuid="u1", status="failed", retries=1)
    observation = observe(row, source="siflow", zone=ZONE, task=TASK, roster=roster)
    assert observation is not None
    check_observation(observation)
    return PLANTED in roster.alive


def _use_catalogue(raw: Any) -> bool:
    catalogue = read_answer(msgspec.json.Decoder(Catalogue), raw)
    question = Question(task=TASK, metric="planted", unit="", since=NOW - timedelta(hours=1), zone=ZONE)
    check_series(read_custom(question, catalogue.custom), NOW)
    return any(entry.metric == PLANTED for entry in catalogue.entries)


def _use_metrics(raw: Any) -> bool:
    answer = read_answer(msgspec.json.Decoder(MetricSet), raw)
    question = Question(task=TASK, metric="gpu", unit="%", since=NOW - timedelta(hours=1), zone=ZONE)
    warnings = tuple(answer.warnings)
    found = [
        Found(row=row, pod="", warnings=warnings) for row in answer.metrics if row.metric == "GpuCoreUsage"
    ]
    read = read_metric(question, found)
    check_series(read, NOW)
    return any(one.labels.get("pod") == PLANTED and one.values.tolist()[-1:] == [0.25] for one in read.series)


def _use_logs(raw: Any) -> bool:
    rows = read_answer(msgspec.json.Decoder(LogRows), raw)
    tail = LogTail(limit=500, zone=ZONE)
    query = LogQuery(start_ns=to_ns(NOW) - 86_400 * SECOND_NS, end_ns=to_ns(NOW), limit=10_000)
    tail.take(LogRows(rows=[], newest_first=True), query, to_ns(NOW))
    tail.take(rows, query, to_ns(NOW))
    page = tail.serve(query)
    check_page(page, query)
    tail.take(rows, query, to_ns(NOW) + 60 * SECOND_NS)
    assert len(tail.serve(query).lines) == len(page.lines), "a page that comes again is not new"
    return any(line.text == "ERROR planted" for line in page.lines)


Use = Callable[[Any], bool]
# operation → its arguments, how one thing looks, how a whole answer looks, how it is used
OPERATIONS: dict[str, tuple[dict[str, Any], Callable[[str], Data], Callable[[list[Data]], Data], Use]] = {
    "list": ({"page": 1, "count": 200, "filters": {}}, _task, lambda rows: rows, _use_list),
    "get": ({"uuid": "u1"}, _task, lambda rows: rows[-1], _use_get),
    "pods": ({"uuid": "u1"}, _pod, lambda rows: rows, _use_pods),
    "catalogue": (
        {"dimension": "task"},
        lambda name: {"metric": name, "name": "n", "unit": "%"},
        lambda rows: rows,
        _use_catalogue,
    ),
    "catalogue_full": (
        {"task_name": "run", "dimension": "task"},
        lambda name: {"metric": name, "name": "n", "unit": "%"},
        lambda rows: {"data": rows, "custom": [_custom("planted"), *rows]},
        _use_catalogue,
    ),
    "metrics": (
        {"method": "metrics", "required": {"task_name": "run", "metrics": ["GpuCoreUsage"]}, "optional": {}},
        _curve,
        lambda rows: {
            "meta": {"step": 60, "warnings": []},
            "metrics": [{"metric": "GpuCoreUsage", "unit": "%", "series": rows}],
        },
        _use_metrics,
    ),
    "resource": (
        {"start": "a", "end": "b", "kind": "Pod", "name": "p", "metric": "GpuCoreUsage"},
        _curve,
        lambda rows: {"data": [{"metric": "GpuCoreUsage", "unit": "%", "series": rows}]},
        _use_metrics,
    ),
    "logs": (
        {"uuid": "u1", "limit": 500},
        lambda name: _log(name, "ERROR planted" if name == PLANTED else "step"),
        lambda rows: {"logs": rows},
        _use_logs,
    ),
}


# --- an SDK that keeps to nothing


class Wrong:
    """Raises whatever is done with it."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise ValueError("no field")


class Endless:
    """Has every field, which is the same again."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self


ODD = (
    lambda: Decimal("NaN"),
    lambda: Decimal("1e9999"),
    lambda: b"\xff\x00",
    lambda: datetime(2026, 9, 10),  # noqa: DTZ001
    object,
    Wrong,
    Endless,
    lambda: {1, 2},
    lambda: iter([1]),
    lambda: 10**5000,
    lambda: -(10**5000),
    lambda: "\ud800",
    lambda: 1j,
    lambda: type,
    lambda: "x" * 100_000,
    lambda: {1: 2},
    lambda: range(5),
    lambda: timedelta.max,
    lambda: datetime.max,  # noqa: DTZ901
    lambda: datetime.min.replace(tzinfo=UTC),
)


def _as_objects(tree: Data, dice: random.Random, odd: float) -> Data:
    """Turn some dicts into objects, as the SDK's are, and put something odd here and there."""
    if dice.random() < odd:
        return dice.choice(ODD)()
    if isinstance(tree, dict):
        inside = {key: _as_objects(value, dice, odd) for key, value in tree.items()}
        plain = all(isinstance(key, str) and key.isidentifier() for key in inside)
        return SimpleNamespace(**inside) if plain and dice.randrange(2) else inside
    if isinstance(tree, list):
        items = [_as_objects(value, dice, odd) for value in tree]
        return tuple(items) if dice.randrange(4) == 0 else items
    return tree


class Sdk(worker.Sdk):
    """The worker's own, over a client whose every method answers the same."""

    def __init__(self, answer: Callable[[], Data]) -> None:
        def method(*_place: Any, **_named: Any) -> Any:
            return answer()

        names = [name.partition(".")[2] for name in worker.METHODS]
        space = SimpleNamespace(**dict.fromkeys(names, method))
        self.timeout = 5
        self.client = SimpleNamespace(tasks=space, metrics=space)


def objects_case(dice: random.Random, shown: Shown) -> str:
    op = dice.choice(list(OPERATIONS))
    args, one, whole, use = OPERATIONS[op]
    good, others = one(PLANTED), [one(f"o-{n}") for n in range(dice.choice((1, 2, 4)))]
    spare = op != "get" and dice.randrange(2) == 0
    odd = dice.choice((0.0, 0.02, 0.1))
    if spare:
        others = mutated(others, dice) if dice.randrange(3) else [nasty(dice), *others]
        others = others if isinstance(others, list) else [others]
        rows = [*(_as_objects(other, dice, odd) for other in others), good]
        answer = whole(rows if dice.randrange(2) else rows[::-1])
    else:
        answer = _as_objects(mutated(whole([*others, good]), dice), dice, odd)
    raises = dice.randrange(40) == 0
    shown((op, spare, raises, _described(answer)))

    def call() -> Data:
        if raises:
            raise dice.choice((ValueError, KeyError, OSError, RecursionError))(answer)
        return answer

    pipe = io.BytesIO()
    writer = worker.Writer(pipe)
    writer.write(worker.answer_to(Sdk(call), {"id": 7, "op": op, "args": args}))
    frames = pipe.getvalue()
    assert frame_length(frames[:4]) == len(frames) - 4, "not exactly one frame"
    return _judge(frames[4:], use, spare and not raises)


def _described(answer: Data) -> str:
    try:
        return repr(answer)
    except Exception as error:  # noqa: BLE001 - it is made to raise
        return f"(cannot be shown: {error!r})"


# --- a worker that keeps to nothing


def frames_case(dice: random.Random, shown: Shown) -> str:
    op = dice.choice(list(OPERATIONS))
    args, one, whole, use = OPERATIONS[op]
    answer = whole([one("o-1"), one(PLANTED)])
    pipe = io.BytesIO()
    worker.Writer(pipe).write(worker.answer_to(Sdk(lambda: answer), {"id": 7, "op": op, "args": args}))
    message = msgspec.json.decode(pipe.getvalue()[4:])
    if dice.randrange(4) == 0:
        kinds = ("exception", "none", "unsupported", "ended", "too_large", "construct", "sdk_broken", "x")
        error = {
            "kind": dice.choice(kinds),
            "detail": f"{SECRET} refused",
            "types": ["RateLimitError"],
            "status": 429,
            "retry_after": 3,
        }
        message = {"id": 7, "error": error}
    body = as_json(mutated(message, dice) if dice.randrange(4) else message, dice)
    if dice.randrange(3) == 0:
        body = garbled(body, dice)
    shown((op, body))
    return _judge(body, use, False)


def _judge(body: bytes, use: Use, spare: bool) -> str:
    try:
        reply = read_reply(body)
        if reply.error is not None:
            raise read_error(reply.error, (SECRET,))
        there = use(reply.ok)
    except SourceError as error:
        check_error(error, SECRET)
        assert not spare, f"what was good is lost: {error}"  # noqa: PT017
        return "refused"
    assert there or not spare, "what was good is lost"
    return "taken in part" if spare else "taken"
