"""What Alaya's answers look like: the envelope, metrics and logs, decoded into columns and lines.

Pure: bytes in, values or `SourceError` out. Each shape is one struct, so that one that turns out
different is one edit. Tasks and pods are in `alaya_tasks`. Error texts carry no content of an
answer beyond the server's own short message, with our secrets taken out.
"""

import contextlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import pairwise
from typing import TypeVar

import msgspec

from watchdog.core.durations import SECOND_NS, to_ns
from watchdog.core.health import Failure
from watchdog.core.labels import GPU, POD, Labels
from watchdog.core.logs import LogPage, LogQuery
from watchdog.core.points import Curves
from watchdog.core.tasks import Task
from watchdog.errors import SourceError
from watchdog.ports import MetricAnswer
from watchdog.sources.alaya_points import Columns, Point, Remarks, columns_of, merged, newest_points
from watchdog.sources.alaya_rows import Row, documented_lines, row_lines
from watchdog.sources.answers import HttpAnswer, failure, failure_of_status, json_text

SUCCESS = 200
MESSAGE_SHOWN = 80
_SHORT = 4_096  # bytes of an answer that is decoded whole
LONGEST_INTEGER = 300  # digits; longer ones are no number for anybody

BUSINESS_CODES = {
    40001: (Failure.KEY_MISSING, "the authorization header is missing or malformed"),
    40002: (Failure.CLOCK_SKEW, "this machine's clock is over 5 minutes off"),
    40003: (Failure.SIGNATURE, "the secret key does not fit the access key"),
    40004: (Failure.KEY_DISABLED, "enable the key in the console"),
    40005: (Failure.KEY_EXPIRED, "create a new key in the console"),
    40006: (Failure.KEY_UNKNOWN, "the key does not exist"),
    40401: (Failure.KEY_EXPIRED, "the login has expired, or no key was sent"),
}


class Envelope(msgspec.Struct, gc=False):
    """What every answer is wrapped in. `data` changes its type on errors, so it stays raw."""

    status: int
    message: msgspec.Raw = msgspec.Raw(b'""')
    data: msgspec.Raw = msgspec.Raw(b"null")


class _Series(msgspec.Struct, gc=False, rename="camel"):
    type: str | None = None
    pod_name: str | int | None = None
    gpu_name: str | int | None = None
    metric_data: list[Point] | None = None


class _Metrics(msgspec.Struct, gc=False, rename="camel"):
    metric_data: list[_Series] | None = None


class _Tail(msgspec.Struct, gc=False, rename="camel"):
    type: str | None = None
    pod_name: str | int | None = None
    gpu_name: str | int | None = None
    metric_data: msgspec.Raw = msgspec.Raw(b"[]")


class _Tails(msgspec.Struct, gc=False, rename="camel"):
    metric_data: list[_Tail] | None = None


class _SeriesParts(msgspec.Struct, gc=False, rename="camel"):
    type: str | None = None
    pod_name: str | int | None = None
    gpu_name: str | int | None = None
    metric_data: list[msgspec.Raw] | None = None


T = TypeVar("T")

_ENVELOPE = msgspec.json.Decoder(Envelope)
_METRICS = msgspec.json.Decoder(_Metrics | None)
_TAILS = msgspec.json.Decoder(_Tails)
_ONE_SERIES = msgspec.json.Decoder(_Series)
_SERIES_PARTS = msgspec.json.Decoder(_SeriesParts)
_ONE_POINT = msgspec.json.Decoder(Point)
_ROWS = msgspec.json.Decoder(list[Row] | None)
_ONE_ROW = msgspec.json.Decoder(Row)
_PARTS = msgspec.json.Decoder(list[msgspec.Raw])


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer, understood. `enveloped`: it had the API's own form, so this is the API speaking."""

    data: msgspec.Raw
    enveloped: bool
    error: SourceError | None = None


def read_reply(answer: HttpAnswer, secrets: Sequence[str] = ()) -> Reply:
    """Judge an answer by its HTTP status and by the status in its body; `secrets` are masked in texts."""
    nothing = msgspec.Raw(b"null")
    try:
        envelope = decode(_ENVELOPE, json_text(answer))
    except SourceError as unreadable:
        return Reply(nothing, False, _unreadable(answer, unreadable))
    error = _business_failure(answer, envelope, secrets)
    return Reply(envelope.data, True, error)


def decode(decoder: msgspec.json.Decoder[T], text: bytes | msgspec.Raw) -> T:
    """Decode JSON; text with broken characters is repaired first rather than lost.

    Raises:
        SourceError: MALFORMED; says where in the document, not what stood there.
    """
    try:
        return decoder.decode(text)
    except msgspec.ValidationError as error:
        raise failure(Failure.MALFORMED, str(error)[:160]) from None
    except (msgspec.DecodeError, RecursionError) as error:
        reason = str(error)[:100]
    try:
        return decoder.decode(_repaired(bytes(text)))
    except msgspec.ValidationError as error:
        raise failure(Failure.MALFORMED, str(error)[:160]) from None
    except (ValueError, RecursionError):
        raise failure(Failure.MALFORMED, reason) from None


def _repaired(text: bytes) -> bytes:
    """Replace bytes that are no UTF-8, lone surrogates, and numbers that JSON has not got (NaN).

    ValueError if it is no JSON even so.
    """
    document = json.loads(
        text.decode("utf-8", "replace"),
        parse_constant=lambda _: None,
        parse_float=lambda digits: None if math.isinf(float(digits)) else float(digits),
        parse_int=lambda digits: int(digits) if len(digits) <= LONGEST_INTEGER else None,
    )
    return json.dumps(document, ensure_ascii=False).encode("utf-8", "replace")


def _in_parts(part: msgspec.json.Decoder[T], parts: Sequence[msgspec.Raw]) -> tuple[list[T], int]:
    """Decode each part by itself; return those that can be read, and how many cannot."""
    read: list[T] = []
    for raw in parts:
        with contextlib.suppress(msgspec.MsgspecError, RecursionError):
            read.append(part.decode(raw))
    return read, len(parts) - len(read)


def _unreadable(answer: HttpAnswer, unreadable: SourceError) -> SourceError:
    """Name a failure whose body is not the API's: by its HTTP status where that says more."""
    if 300 <= answer.status < 400:
        return failure(Failure.NOT_JSON, f"redirected with HTTP {answer.status}")
    kind = failure_of_status(answer.status)
    if kind is None:
        return unreadable
    if kind is Failure.NOT_FOUND and unreadable.failure is Failure.NOT_JSON:
        return failure(Failure.NOT_JSON, f"{unreadable.detail}, HTTP {answer.status}")
    return failure(kind, f"HTTP {answer.status}", retry_after=answer.retry_after)


def _business_failure(answer: HttpAnswer, envelope: Envelope, secrets: Sequence[str]) -> SourceError | None:
    http, status = answer.status, envelope.status
    if status in BUSINESS_CODES:
        kind, meaning = BUSINESS_CODES[status]
        return failure(kind, f"{meaning}, code {status}, HTTP {http}", retry_after=answer.retry_after)
    http_kind = failure_of_status(http)
    if status == SUCCESS and http_kind is None:
        return None
    kind = _kind_of(status) or http_kind or Failure.SERVER_ERROR
    if http_kind is Failure.THROTTLED:
        kind = http_kind
    where = f"HTTP {http}" if status in (http, SUCCESS) else f"code {str(status)[:12]}, HTTP {http}"
    message = _message(envelope.message, secrets)
    detail = f"{message}, {where}" if message else where
    return failure(kind, detail, retry_after=answer.retry_after)


def _kind_of(status: int) -> Failure | None:
    """Name a body status; five-digit codes begin with the HTTP status they belong to."""
    if status == SUCCESS:
        return None
    if 10_000 <= status <= 99_999:
        status //= 100
    return failure_of_status(status) if 300 <= status < 600 else Failure.SERVER_ERROR


def _message(raw: msgspec.Raw, secrets: Sequence[str]) -> str:
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return ""
    text = value if isinstance(value, str) else ""
    for secret in secrets:
        text = text.replace(secret, "****") if secret else text
    text = " ".join("".join(c if c.isprintable() else " " for c in text[:1000]).split())
    return text if len(text) <= MESSAGE_SHOWN else text[: MESSAGE_SHOWN - 1] + "…"


def read_metrics(data: msgspec.Raw, *, task: Task, metric: str, since: datetime) -> MetricAnswer:
    """Decode a metrics answer into one series per (pod, gpu), points newer than `since` only.

    No data at all is a healthy, empty answer: what an idle or ended task returns is not documented.
    Series that cannot be read are left out, and make the answer incomplete.
    """
    remarks = Remarks()
    parts: dict[tuple[str, str], list[Columns]] = {}
    since_s = to_ns(since) // SECOND_NS
    identity = task.identity
    points = 0
    for series in _newest_series(data, since_s) or _all_series(data, remarks):
        if series.type and series.type.lower() != metric:
            remarks.foreign += 1
            continue
        points += len(series.metric_data or ())
        columns = columns_of(series.metric_data or (), since_s, remarks)
        if columns is not None:
            parts.setdefault((_name(series.pod_name), _name(series.gpu_name)), []).append(columns)
    if points and remarks.bad_times == points:
        raise failure(Failure.MALFORMED, "no point has a time in Unix seconds")
    answer = Curves.of(
        [merged(_labels(identity, pod, gpu), columns, remarks) for (pod, gpu), columns in parts.items()]
    )
    return MetricAnswer(series=answer, remarks=remarks.texts(metric), complete=not remarks.lost)


def _newest_series(data: msgspec.Raw, since_s: int) -> list[_Series] | None:
    """Decode only the newest points of an answer; None if it is short, or has more that is new.

    A window of hours is asked for when one point is missing, too: the rest is known, and most of the work.
    """
    if len(data) < _SHORT:
        return None
    try:
        parts = _TAILS.decode(data).metric_data or []
    except (msgspec.MsgspecError, RecursionError):
        return None
    found = []
    for series in parts:
        points = newest_points(series.metric_data, since_s)
        if points is None:
            return None
        found.append(_Series(series.type, series.pod_name, series.gpu_name, points))
    return found


def _all_series(data: msgspec.Raw, remarks: Remarks) -> Sequence[_Series]:
    """Decode the series of an answer: at once if all are as documented, else one by one."""
    try:
        document = decode(_METRICS, data)
        return (document and document.metric_data) or ()
    except SourceError as error:
        whole = error
    try:
        parts = _SERIES_PARTS.decode(data).metric_data or []
    except (msgspec.MsgspecError, RecursionError):
        raise whole from None
    found = []
    for raw in parts:
        series = _one_series(raw, remarks)
        if series is None:
            remarks.lost += 1
        else:
            found.append(series)
    if not found:
        raise whole
    return found


def _one_series(raw: msgspec.Raw, remarks: Remarks) -> _Series | None:
    """Decode one series, its points one by one if need be; None if it does not say what it is about."""
    with contextlib.suppress(msgspec.MsgspecError, RecursionError):
        return _ONE_SERIES.decode(raw)
    try:
        parts = _SERIES_PARTS.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        return None
    points, lost = _in_parts(_ONE_POINT, parts.metric_data or [])
    remarks.unreadable += lost
    return _Series(parts.type, parts.pod_name, parts.gpu_name, points)


def _name(value: str | int | None) -> str:
    return "" if value is None else str(value)


@lru_cache(maxsize=16_384)  # every poll asks for the same ones
def _labels(task: Labels, pod: str, gpu: str) -> Labels:
    return task.plus({POD: pod, GPU: gpu})


def read_logs(data: msgspec.Raw, query: LogQuery) -> LogPage:
    """Decode a page of log rows, sorted by time. Rows without a time are dropped and counted.

    Rows outside the asked bounds are left out: a server that ignores the bounds would otherwise
    make old lines look new at every poll.
    """
    lost = timeless = 0
    found = documented_lines(data)
    if found is not None:
        full = len(found) >= query.limit
    else:
        rows, lost = _all_rows(data)
        full = len(rows) + lost >= query.limit
        found, timeless = row_lines(rows)
    begin, end = query.start_ns, query.end_ns
    outside = sum(not begin <= time_ns <= end for time_ns in found.times)
    lines = found
    if outside:
        lines = found.picked([n for n, time_ns in enumerate(found.times) if begin <= time_ns <= end])
    remarks = [f"{lost} log rows cannot be read; dropped"] if lost else []
    if timeless:
        remarks.append(f"{timeless} log rows have no readable time; dropped")
    if outside:
        remarks.append(f"{outside} log rows lie outside the time span asked for; left out")
    if full and len(lines) > 1 and lines.times[0] > lines.times[-1] and _descending(lines.times):
        remarks.append("the log came newest first although oldest first was asked; lines may be unread")
    return LogPage(lines=lines.in_order(), full=full, remarks=tuple(remarks))


def _all_rows(data: msgspec.Raw) -> tuple[list[Row], int]:
    """Decode the rows of an answer, one by one if some are none; return them, and how many are none."""
    try:
        return decode(_ROWS, data) or [], 0
    except SourceError as error:
        whole = error
    try:
        rows, lost = _in_parts(_ONE_ROW, _PARTS.decode(data))
    except (msgspec.MsgspecError, RecursionError):
        raise whole from None
    if not rows:
        raise whole
    return rows, lost


def _descending(times: Sequence[int]) -> bool:
    return all(earlier >= later for earlier, later in pairwise(times))
