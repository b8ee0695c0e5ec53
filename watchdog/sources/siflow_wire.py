"""What the SDK's process says, typed: frames, answers and errors of the protocol of `siflow_worker`.

Pure: bytes in, structs or `SourceError` out. Every field may be missing: the SDK builds its objects without
checking them. Knows no process and no meaning of metrics.
"""

import struct
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TypeVar

import msgspec

from watchdog.core.health import Failure
from watchdog.errors import SourceError
from watchdog.sources.answers import LONGEST_RETRY_AFTER, failure, failure_of_status

VERSION = 1
LONGEST_FRAME = 16 * 1024 * 1024
HEADER = struct.Struct(">I")
MESSAGE_SHOWN = 120

Time = float | int | str | None
T = TypeVar("T")


class WorkerError(msgspec.Struct, gc=False):
    """Why there is no answer. kind: see `read_error`; types: classes, the nearest first."""

    kind: str
    detail: str | None = None
    types: list[str] = []
    status: int | None = None
    retry_after: float | None = None


class Reply(msgspec.Struct, gc=False):
    """One frame from the worker; `id` 0 answers the greeting."""

    id: int
    ok: msgspec.Raw = msgspec.Raw(b"null")
    error: WorkerError | None = None


class Welcome(msgspec.Struct, gc=False):
    """What stands behind a worker. features: methods of the SDK, such as `tasks.query_logs`."""

    version: int
    sdk: str | None = None
    python: str = ""
    features: list[str] = []


class TaskRow(msgspec.Struct, gc=False):
    """A task of a list or by itself, times as sent."""

    uuid: str | None = None
    name: str | None = None
    status: str | None = None
    status_msg: str | None = None
    create_time: str | None = None
    start_time: str | None = None
    end_time: str | None = None
    owner: str | None = None
    resource_pool: str | None = None
    timezone: str | None = None
    queue_rank: float | None = None
    queue_ahead: float | None = None
    retries: int | None = None  # records of the platform's own retries
    held: bool = False


class TaskPage(msgspec.Struct, gc=False):
    """One page of the list. `paged` False: only the first page can be asked for."""

    rows: list[TaskRow]
    paged: bool


class PodRow(msgspec.Struct, gc=False):
    """A pod of a task."""

    name: str | None = None
    status: str | None = None
    status_msg: str | None = None
    node: str | None = None
    create_time: str | None = None
    exit_code: float | None = None
    deleted: bool = False


class Pods(msgspec.Struct, gc=False):
    """The pods of a task."""

    pods: list[PodRow]


class Entry(msgspec.Struct, gc=False):
    """A built-in metric."""

    metric: str | None = None
    name: str | None = None
    unit: str | None = None


class Custom(msgspec.Struct, gc=False):
    """A custom metric of a task, with its last sample."""

    metric: str | None = None
    value: float | None = None
    time: Time = None
    labels: dict[str, str | None] = {}


class Catalogue(msgspec.Struct, gc=False):
    """What can be asked."""

    entries: list[Entry]
    custom: list[Custom] = []


class SeriesLabels(msgspec.Struct, gc=False):
    """What tells curves apart."""

    pod: str | None = None
    node: str | None = None
    gpu: str | None = None
    device: str | None = None
    extra: str | None = None


class SeriesRow(msgspec.Struct, gc=False):
    """One curve; `times` and `values` are of the same length."""

    labels: SeriesLabels
    times: list[Time]
    values: list[float | None]


class MetricRow(msgspec.Struct, gc=False):
    """One metric of an answer."""

    metric: str | None = None
    unit: str | None = None
    aggregation: str | None = None
    warning: str | None = None
    series: list[SeriesRow] = []


class MetricSet(msgspec.Struct, gc=False):
    """A whole metrics answer."""

    metrics: list[MetricRow]
    step: str | None = None
    node: str | None = None
    warnings: list[str] = []


class LogRow(msgspec.Struct, gc=False):
    """One item of a log; it may hold several lines."""

    text: str
    time: Time = None
    pod: str | None = None


class LogRows(msgspec.Struct, gc=False):
    """The newest items. `newest_first` False: the SDK cannot be asked for that order."""

    rows: list[LogRow]
    newest_first: bool = True


_REPLY = msgspec.json.Decoder(Reply)

# By the nearest class that is known; the SDK's tree is in docs/siflow.md.
_BY_CLASS: Mapping[str, tuple[Failure, str]] = {
    "AuthenticationError": (Failure.KEY_UNKNOWN, ""),
    "PermissionDeniedError": (Failure.FORBIDDEN, ""),
    "NotFoundError": (Failure.NOT_FOUND, ""),
    "BadRequestError": (Failure.BAD_REQUEST, ""),
    "UnprocessableEntityError": (Failure.BAD_REQUEST, ""),
    "RateLimitError": (Failure.THROTTLED, ""),
    "InternalServerError": (Failure.SERVER_ERROR, ""),
    "APITimeoutError": (Failure.TIMEOUT, ""),
    "APIConnectionError": (Failure.UNREACHABLE, ""),
    "APIResponseValidationError": (Failure.MALFORMED, ""),
    "AttributeError": (Failure.NOT_JSON, "the SDK stumbled over what came: AttributeError"),
    "TypeError": (Failure.UNSUPPORTED, "this version of the SDK is called otherwise: TypeError"),
    "TimeoutError": (Failure.TIMEOUT, ""),
    "ConnectionError": (Failure.UNREACHABLE, ""),
}


def frame(message: object) -> bytes:
    """Return a message as it goes over the pipe."""
    body = msgspec.json.encode(message)
    return HEADER.pack(len(body)) + body


def frame_length(head: bytes) -> int:
    """Return how long the frame is that begins with these four bytes.

    Raises:
        SourceError: it is longer than agreed: this is no conversation any more.
    """
    size: int = HEADER.unpack(head)[0]
    if size > LONGEST_FRAME:
        raise failure(Failure.MALFORMED, "the SDK's process does not keep to the protocol")
    return size


def read_reply(body: bytes) -> Reply:
    """Read one frame; raises `SourceError` if it is none."""
    try:
        return _REPLY.decode(body)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise failure(Failure.MALFORMED, "the SDK's process does not keep to the protocol") from error


def read_answer(decoder: msgspec.json.Decoder[T], raw: msgspec.Raw) -> T:
    """Read an answer; raises `SourceError` (MALFORMED), which says where, not what stood there."""
    try:
        return decoder.decode(raw)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise failure(Failure.MALFORMED, str(error)[:160]) from None


def read_error(error: WorkerError, secrets: Sequence[str] = ()) -> SourceError:
    """Name a failure. Texts of the SDK and the server are shortened, `secrets` taken out of them."""
    said = _shown(error.detail or "", secrets)
    match error.kind:
        case "none":
            return failure(Failure.SERVER_ERROR, f"the query failed: {said} returned None")
        case "unsupported":
            return failure(Failure.UNSUPPORTED, f"this version of the SDK has no {said}")
        case "ended":
            return failure(Failure.UNREACHABLE, f"the SDK's process ended {said}")
        case "too_large":
            return failure(Failure.MALFORMED, f"the answer is too large ({said})")
        case "construct":
            return failure(Failure.BAD_REQUEST, f"the SDK does not accept region, cluster or key: {said}")
        case "sdk_broken":
            return failure(Failure.UNSUPPORTED, f"the SiFlow SDK cannot be used: {said}")
        case "exception":
            return _exception(error, said, secrets)
    return failure(Failure.MALFORMED, said)


def _exception(error: WorkerError, said: str, secrets: Sequence[str]) -> SourceError:
    kind, words = next(
        (_BY_CLASS[name] for name in error.types if name in _BY_CLASS), (Failure.MALFORMED, "")
    )
    if error.status is not None:
        kind, words = failure_of_status(error.status) or kind, ""
    name = _shown(error.types[0], secrets) if error.types else "exception"
    detail = words or (f"{name}: {said}" if said else name)
    wait = error.retry_after
    asked = None if wait is None or wait < 0 else min(timedelta(seconds=min(wait, 1e5)), LONGEST_RETRY_AFTER)
    return failure(kind, detail, retry_after=asked)


def _shown(text: str, secrets: Sequence[str]) -> str:
    for secret in secrets:
        text = text.replace(secret, "****") if secret else text
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return text if len(text) <= MESSAGE_SHOWN else text[: MESSAGE_SHOWN - 1] + "…"
