"""What Alaya's task list and pod data look like, decoded into observations.

Pure. Only named fields are read: a task object may carry passwords, and none of it is repeated in
an error. Neither shape is proven; each is one struct.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import tzinfo

import msgspec

from watchdog.core.health import Failure
from watchdog.core.tasks import Status, Task, TaskObservation
from watchdog.sources.alaya_wire import decode
from watchdog.sources.answers import failure
from watchdog.sources.naive_times import read_time

REASON_KEPT = 300

# Two public clients normalise these words; no list by the vendor was found.
_WORDS = {
    Status.QUEUED: ("waiting", "queueing", "queuing", "pending", "queued"),
    Status.LOADING: ("creating", "starting", "initializing"),
    Status.RUNNING: ("running",),
    Status.PAUSED: ("suspended", "suspending", "paused"),
    Status.SUCCEEDED: ("succeeded", "success"),
    Status.FAILED: ("failed", "error"),
    Status.CANCELED: ("canceled", "cancelled", "deleted"),
}
_STATUS = {word: status for status, words in _WORDS.items() for word in words}

_Number = int | float | str | None


class _Resource(msgspec.Struct, gc=False, rename="camel"):
    worker_count: object = None
    gpu_count: object = None
    gpu_name: object = None


class _TaskRow(msgspec.Struct, gc=False, rename="camel"):
    """A field of another type than expected is as if it were not there: the rest of the task counts."""

    id: str | int | None = None
    name: object = None
    status: object = None
    namespace: object = None
    aidc_id: object = None
    resource: object = None
    created_time: object = None
    create_time: object = None
    create_at: object = None
    start_time: object = None
    end_time: object = None
    finish_time: object = None
    reason: object = None
    message: object = None


class _ListPage(msgspec.Struct, gc=False, rename="camel"):
    records: list[msgspec.Raw] | None = None
    total_rows: int | str | None = None


class _Pod(msgspec.Struct, gc=False, rename="camel"):
    namespace: str | None = None
    host_name: str | None = None
    status: str | None = None
    restart_count: _Number = None


_PAGE = msgspec.json.Decoder(_ListPage)
_TASK_ROW = msgspec.json.Decoder(_TaskRow)
_POD = msgspec.json.Decoder(_Pod)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPage:
    """One page of the task list. `total` is None when the answer does not say."""

    tasks: tuple[TaskObservation, ...]
    total: int | None
    rows: int
    unreadable: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PodBasic:
    """What the pod-basic call says of one pod. Fields it leaves out are ''."""

    namespace: str
    node: str
    status: str
    restarts: int | None


def status_of(word: str) -> Status:
    """Map a status word in any case; a word nobody has seen is UNKNOWN, never an end."""
    return _STATUS.get(word.strip().lower(), Status.UNKNOWN)


def read_list_page(data: msgspec.Raw, *, source: str, zone: tzinfo) -> ListPage:
    """Decode one page. A list without records is malformed: it must never look like "no tasks"."""
    page = decode(_PAGE, data)
    total = _whole(page.total_rows)
    if page.records is None and total != 0:
        raise failure(Failure.MALFORMED, "the task list has no records")
    tasks = []
    records = page.records or []
    for record in records:
        try:
            row = _TASK_ROW.decode(record)
        except (msgspec.DecodeError, RecursionError):
            continue
        if row.id not in (None, ""):
            tasks.append(_observation(row, source, zone))
    return ListPage(tasks=tuple(tasks), total=total, rows=len(records), unreadable=len(records) - len(tasks))


def read_pod(data: msgspec.Raw) -> PodBasic:
    """Decode a pod-basic answer."""
    pod = decode(_POD, data)
    return PodBasic(
        namespace=pod.namespace or "",
        node=pod.host_name or "",
        status=pod.status or "",
        restarts=_whole(pod.restart_count),
    )


def _observation(row: _TaskRow, source: str, zone: tzinfo) -> TaskObservation:
    task_id = str(row.id)
    word = _word(row.status)
    return TaskObservation(
        task=Task(
            key=f"{source}/{task_id}",
            source=source,
            id=task_id,
            name=_word(row.name) or task_id,
            namespace=_word(row.namespace),
        ),
        status=status_of(word),
        status_text=word,
        reason=(_word(row.reason) or _word(row.message))[:REASON_KEPT],
        started=read_time(row.start_time, zone),
        ended=read_time(row.end_time or row.finish_time, zone),
        extra=_extra(row, zone),
    )


def _extra(row: _TaskRow, zone: tzinfo) -> Mapping[str, str]:
    extra: dict[str, str] = {}
    created = read_time(row.created_time or row.create_time or row.create_at, zone)
    if created:
        extra["created"] = created.isoformat()
    if _word(row.aidc_id):
        extra["aidc"] = _word(row.aidc_id)
    try:
        resource = msgspec.convert(row.resource or {}, _Resource)
    except msgspec.ValidationError:
        resource = _Resource()
    workers, gpus = _whole(resource.worker_count), _whole(resource.gpu_count)
    if workers is not None:
        extra["workers"] = str(workers)
    if gpus is not None:
        extra["gpus"] = str(gpus * (1 if workers is None else workers))
    if _word(resource.gpu_name):
        extra["gpu_name"] = _word(resource.gpu_name)
    return extra


def _word(value: object) -> str:
    """Read a word, or a number that stands for one; anything else is none."""
    known = isinstance(value, (str, int)) and not isinstance(value, bool)
    return str(value).strip() if known else ""


def _whole(value: object) -> int | None:
    """Read a count written as a number or as digits."""
    if isinstance(value, float):
        value = int(value) if value.is_integer() else None
    if isinstance(value, str):
        text = value.strip()
        value = int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None
    return value if isinstance(value, int) and 0 <= value < 1 << 53 else None
