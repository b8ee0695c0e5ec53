"""The program that runs the vendor's SDK, in the interpreter that has it (Python 3.8 or newer).

Run by path, never imported. Reads frames (4 bytes of length, JSON) from stdin and writes frames to what was
its stdout; the first one brings the keys. Decides nothing: it calls, and says what came or which exception
did. Ends when stdin does, whatever hangs. Only named fields leave it: task objects also hold credentials.
"""

from __future__ import annotations

import ctypes
import inspect
import json
import math
import os
import queue
import signal
import struct
import sys
import threading
from typing import Any, BinaryIO

VERSION = 1
LONGEST_FRAME = 16 * 1024 * 1024
LONGEST_LINE = 64 * 1024
LONGEST_FIELD = 500
MOST_ENTRIES = 5000  # of a list that should be short
HEADER = struct.Struct(">I")
METHODS = [
    "tasks.list",
    "tasks.get",
    "tasks.list_pods",
    "tasks.query_logs",
    "tasks.metrics_catalog",
    "tasks.metrics_catalog_full",
    "tasks.metrics",
    "tasks.pod_metrics",
    "tasks.node_metrics",
    "tasks.all_pods_metric",
    "tasks.all_nodes_metric",
    "metrics.query",
    "metrics.recommend_time_step",
]
OPERATIONS = ("list", "get", "pods", "catalogue", "catalogue_full", "metrics", "resource", "logs")
TASK_FIELDS = [
    "uuid",
    "name",
    "status",
    "status_msg",
    "create_time",
    "start_time",
    "end_time",
    "owner",
    "resource_pool",
    "timezone",
]
POD_FIELDS = ("name", "status", "status_msg", "node", "create_time")
SERIES_LABELS = ("pod", "node", "gpu", "device", "extra")
LOG_TIMES = ("timestamp", "time", "log_time", "ts", "create_time")
LOG_PODS = ("pod", "pod_name", "podName", "instance")
SUBJECTS = ("uuid", "task_uuid", "task_id", "id")
Message = dict  # of JSON


class RefusedError(Exception):
    """Something to say instead of an answer; `kind` is a word of the protocol."""

    def __init__(self, kind: str, detail: object = "") -> None:
        self.kind = kind
        super().__init__(detail)


# --- frames


def read_frame(stream: BinaryIO) -> Any:
    """Return the next message; None where the stream ends, or is no conversation."""
    head = stream.read(HEADER.size)
    size = HEADER.unpack(head)[0] if len(head) == HEADER.size else LONGEST_FRAME + 1
    body = stream.read(size) if size <= LONGEST_FRAME else b""
    return json.loads(body.decode("utf-8")) if body and len(body) == size else None


class Writer:
    """Writes whole frames; many threads may."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def write(self, message: Message[str, Any]) -> None:
        """Send one message; one that is too long is told to be so instead."""
        try:  # "replace": a lone surrogate in a log line must not end the conversation
            body = json.dumps(message, allow_nan=False, ensure_ascii=False).encode("utf-8", "replace")
            error = {"kind": "too_large", "detail": f"{len(body) >> 20} MiB"}
        except Exception as failed:  # noqa: BLE001 - whatever the SDK put into it, its request is answered
            body, error = b"", {"kind": "strange", "detail": f"no JSON: {type(failed).__name__}"}
        if not 0 < len(body) <= LONGEST_FRAME:
            body = json.dumps({"id": message["id"], "error": error}).encode("ascii")
        with self._lock:
            self._stream.write(HEADER.pack(len(body)) + body)
            self._stream.flush()


# --- what SDK objects hold, as plain values


def tried(call: Any, *arguments: Any) -> Any:
    """Return what a call returns; None if it raises, as anything of an SDK's object may."""
    try:
        return call(*arguments)
    except Exception:  # noqa: BLE001 - one odd field must not cost the answer
        return None


def attr(value: Any, name: str) -> Any:
    """Return a field of an object or a dict; None if there is none."""
    return value.get(name) if isinstance(value, dict) else tried(getattr, value, name)


def text(value: Any, longest: int = LONGEST_FIELD) -> str | None:
    """Return a value as text; None stays None."""
    found = None if value is None else tried(str, value)
    return None if found is None else found[:longest]


def number(value: Any) -> float | None:
    """Return a finite number, also one written as text; None otherwise."""
    found = None if value is None or isinstance(value, bool) else tried(float, value)
    return found if found is not None and math.isfinite(found) else None


def scalar(value: Any) -> float | str | None:
    """Return a time as it came: a number, or text (also of a datetime)."""
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return None if number(value) is None else value
    return text(tried(attr(value, "isoformat")) or value, 60)


def items(value: Any) -> list[Any]:
    """Return what should be a list; anything else is an empty one."""
    return list(value) if isinstance(value, (list, tuple)) else []


def picked(value: Any, *names: str) -> Message[str, Any]:
    """Return some fields as text."""
    return {name: text(attr(value, name)) for name in names}


def task_row(task: Any) -> Message[str, Any]:
    """Pick what is needed of a task."""
    waiting, enhancements = attr(task, "queue_info"), attr(task, "enhancements")
    ahead = [number(attr(attr(waiting, "ahead_in_pool"), level)) for level in ("high", "medium", "low")]
    records = attr(attr(enhancements, "fault_tolerance"), "records")
    return {
        **picked(task, *TASK_FIELDS),
        "queue_rank": number(attr(waiting, "rank_in_pool")),
        "queue_ahead": None if ahead == [None] * 3 else sum(count or 0 for count in ahead),
        "retries": len(records) if isinstance(records, (list, tuple)) else None,
        "held": attr(attr(enhancements, "debug_mode"), "holding") is True,
    }


def pod_row(pod: Any) -> Message[str, Any]:
    """Pick what is needed of a pod."""
    more = {"exit_code": number(attr(pod, "exit_code")), "deleted": attr(pod, "deleted") is True}
    return {**picked(pod, *POD_FIELDS), **more}


def custom_entry(entry: Any) -> Message[str, Any]:
    """Pick what is needed of a custom metric: its last sample."""
    labels = attr(entry, "labels")
    pairs = list(labels.items())[:20] if isinstance(labels, dict) else []
    return {
        "metric": text(attr(entry, "metric")),
        "value": number(attr(entry, "sample_value")),
        "time": scalar(attr(entry, "sample_time")),
        "labels": {text(name, 60) or "": text(value, 200) for name, value in pairs},
    }


def series_row(series: Any) -> Message[str, Any]:
    """Return labels, times and values of one curve; a point without a value keeps its place."""
    times, values = [], []
    for point in items(attr(series, "values")):
        pair = isinstance(point, (list, tuple)) and len(point) == 2
        time, value = point if pair else (attr(point, "timestamp"), attr(point, "value"))
        times.append(scalar(time))
        values.append(number(value))
    return {"labels": picked(attr(series, "labels"), *SERIES_LABELS), "times": times, "values": values}


def metric_row(metric: Any) -> Message[str, Any]:
    """Return one metric of an answer."""
    series = [series_row(one) for one in items(attr(metric, "series"))]
    return {**picked(metric, "metric", "unit", "aggregation", "warning"), "series": series}


def metric_set(answer: Any, asked: str) -> Message[str, Any]:
    """Return a whole metrics answer. The generic query's shape is not documented: three are understood."""
    meta = attr(answer, "meta")
    found = next(
        (attr(answer, name) for name in ("metrics", "data") if attr(answer, name) is not None), answer
    )
    if attr(found, "series") is not None or attr(found, "values") is not None:
        found = [found]
    if not isinstance(found, (list, tuple)):
        raise RefusedError("strange", f"no list of metrics in a {type(answer).__name__}")
    if found and all(attr(one, "series") is None and attr(one, "metric") is None for one in found):
        curves = list(found) if attr(found[0], "values") is not None else [{"values": list(found)}]
        found = [{"metric": asked, "unit": attr(answer, "unit"), "series": curves}]
    return {
        "step": text(attr(meta, "step")),
        "node": text(attr(answer, "node_name")),
        "warnings": [text(warning) for warning in items(attr(meta, "warnings"))[:20] if warning],
        "metrics": [metric_row(metric) for metric in found],
    }


def log_row(item: Any) -> Message[str, Any]:
    """Return one item of a log answer, with its time and pod if it names them."""
    content = item if isinstance(item, str) else attr(item, "content")
    times = (None if isinstance(item, str) else scalar(attr(item, name)) for name in LOG_TIMES)
    pods = (None if isinstance(item, str) else text(attr(item, name)) for name in LOG_PODS)
    time, pod = next((one for one in times if one not in (None, "")), None), next(filter(None, pods), None)
    return {"text": text(content, LONGEST_LINE) or "", "time": time, "pod": pod}


# --- calls


class Sdk:
    """One client of the SDK. Whether a method, or a parameter, exists is looked up, not assumed."""

    def __init__(self, hello: Message[str, Any]) -> None:
        if hello.get("sdk_path"):
            sys.path.insert(0, hello["sdk_path"])
        self.timeout = hello.get("timeout")
        self.module = self._imported()
        made = getattr(self.module, "SiFlow", None)
        if made is None:
            raise RefusedError("sdk_broken", "it has no SiFlow")
        wanted = {name: hello[name] for name in ("region", "cluster", "access_key_id", "access_key_secret")}
        wanted.update(accepted(made, {"timeout": self.timeout, "max_retries": 0}))
        try:
            self.client = made(**wanted)
        except Exception as error:
            raise RefusedError("construct", error) from error

    @staticmethod
    def _imported() -> Any:
        try:
            import siflow  # type: ignore[import-not-found]  # the vendor's, not on the index
        except ImportError as error:
            missing = getattr(error, "name", None) == "siflow"
            raise RefusedError("sdk_missing" if missing else "sdk_broken", error) from error
        except Exception as error:
            raise RefusedError("sdk_broken", f"{type(error).__name__}: {error}") from error
        return siflow

    def features(self) -> list[str]:
        """Return the methods that this SDK has."""
        return [name for name in METHODS if self._find(name) is not None]

    def _find(self, path: str) -> Any:
        found = self.client
        for part in path.split("."):
            found = getattr(found, part, None)
        return found if callable(found) else None

    def method(self, path: str) -> Any:
        """Return a method; refuses if this SDK has no such one."""
        found = self._find(path)
        if found is None:
            raise RefusedError("unsupported", path)
        return found

    def call(self, path: str, required: Message[str, Any], *place: str, **optional: Any) -> Any:
        """Call a method; optional arguments only where it takes them. None means that the query failed."""
        method = self.method(path)
        answer = method(*place, **required, **accepted(method, dict(optional, timeout=self.timeout)))
        if answer is None:
            raise RefusedError("none", path)
        return answer

    def about(self, path: str, uuid: str, **optional: Any) -> Any:
        """Call a method about one task, by the parameter's name where it has a known one, else by place."""
        named = accepted(self.method(path), dict.fromkeys(SUBJECTS, uuid))
        known = 0 < len(named) < len(SUBJECTS)
        place = () if known else (uuid,)
        return self.call(path, dict(list(named.items())[:1]) if known else {}, *place, **optional)

    def list(self, page: int, count: int, filters: Message[str, Any]) -> Message[str, Any]:
        """One page of the task list; `paged` False: this SDK can only show the first."""
        turn = accepted(self.method("tasks.list"), {"page": page, "extra_query": {"page": str(page)}})
        turn = dict(list(turn.items())[:1])
        rows = items(self.call("tasks.list", {"count": count}, **filters, **turn))
        return {"rows": [task_row(row) for row in rows[:MOST_ENTRIES]], "paged": bool(turn)}

    def get(self, uuid: str) -> Message[str, Any]:
        """One task."""
        return task_row(self.about("tasks.get", uuid))

    def pods(self, uuid: str) -> Message[str, Any]:
        """The pods of a task."""
        return {"pods": [pod_row(pod) for pod in items(self.about("tasks.list_pods", uuid))[:MOST_ENTRIES]]}

    def catalogue(self, dimension: str) -> Message[str, Any]:
        """The built-in metrics of a dimension."""
        found = items(self.call("tasks.metrics_catalog", {"dimension": dimension}))[:MOST_ENTRIES]
        return {"entries": [picked(entry, "metric", "name", "unit") for entry in found]}

    def catalogue_full(self, task_name: str, dimension: str) -> Message[str, Any]:
        """The built-in metrics, and the custom ones of a task with their last sample."""
        wanted = {"task_name": task_name, "dimension": dimension}
        answer = self.call("tasks.metrics_catalog_full", wanted)
        return {
            "entries": [picked(one, "metric", "name", "unit") for one in items(attr(answer, "data"))],
            "custom": [custom_entry(entry) for entry in items(attr(answer, "custom"))[:MOST_ENTRIES]],
        }

    def metrics(
        self, method: str, required: Message[str, Any], optional: Message[str, Any]
    ) -> Message[str, Any]:
        """Any of the five metric queries about a task, its pods and nodes."""
        return metric_set(self.call(f"tasks.{method}", required, **optional), required.get("metric", ""))

    def resource(self, start: str, end: str, kind: str, name: str, metric: str) -> Message[str, Any]:
        """The generic query about one Pod or Node, with the step that the SDK recommends."""
        step = self.method("metrics.recommend_time_step")(start, end)
        wanted = {"start_time": start, "end_time": end, "time_step": step, "resource_type": kind}
        return metric_set(
            self.call("metrics.query", {**wanted, "metric_type": metric, kind.lower(): name}), metric
        )

    def logs(self, uuid: str, limit: int) -> Message[str, Any]:
        """The newest lines of a task; `newest_first` False: this SDK cannot be asked for that order."""
        wanted = accepted(self.method("tasks.query_logs"), {"sort_order": "desc", "limit": limit})
        answer = self.about("tasks.query_logs", uuid, **wanted)
        found = answer if isinstance(answer, (list, tuple)) else attr(answer, "logs")
        if not isinstance(found, (list, tuple)):
            raise RefusedError("strange", f"no list of logs in a {type(answer).__name__}")
        return {"rows": [log_row(item) for item in found], "newest_first": "sort_order" in wanted}


def accepted(method: Any, optional: Message[str, Any]) -> Message[str, Any]:
    """Return what of the optional arguments a method takes; nothing if it does not tell."""
    try:
        parameters = inspect.signature(method).parameters
    except (TypeError, ValueError):
        return {}
    if any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
        return dict(optional)
    return {name: value for name, value in optional.items() if name in parameters}


def exception(error: BaseException) -> Message[str, Any]:
    """Return what is told of an exception: its class and those above it, a status, the server's words."""
    status, headers = attr(error, "status_code"), attr(attr(error, "response"), "headers")
    asked = tried(lambda: headers.get("retry-after"))
    return {
        "kind": "exception",
        "types": [above.__name__ for above in type(error).__mro__[:-1]][:8],
        "status": status if type(status) is int and 0 < status < 1000 else None,
        "detail": text(error),
        "retry_after": number(asked),
    }


def answer_to(sdk: Sdk, request: Message[str, Any]) -> Message[str, Any]:
    """Carry out one request; every exception becomes an answer."""
    try:
        if request["op"] not in OPERATIONS:
            raise RefusedError("unsupported", request["op"])
        return {"id": request["id"], "ok": getattr(sdk, request["op"])(**request["args"])}
    except RefusedError as refused:
        return {"id": request["id"], "error": {"kind": refused.kind, "detail": text(refused)}}
    except BaseException as error:  # noqa: BLE001 - the SDK raises what it likes, SystemExit too
        return {"id": request["id"], "error": exception(error)}


# --- the process


def work(sdk: Sdk, requests: queue.Queue[Message[str, Any]], writer: Writer) -> None:
    """Answer requests for ever."""
    while True:
        writer.write(answer_to(sdk, requests.get()))


def die_with_parent() -> None:
    """Ask the kernel to end this process with its parent (Linux); the end of stdin does so anywhere."""
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    except (OSError, AttributeError):
        return


def leave() -> None:
    """End at once, with everything that the SDK may have started, whatever its threads do."""
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(0)


def own_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Take stdin and stdout for the protocol; what the SDK prints goes to stderr, and it reads nothing."""
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return os.fdopen(source, "rb"), os.fdopen(sink, "wb")


def greet(hello: Message[str, Any], writer: Writer) -> Sdk | None:
    """Make the client and say what it can do; None if there is none."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy") if hello.get("proxy") else ():
        os.environ[name] = hello["proxy"]
    try:
        sdk = Sdk(hello)
    except RefusedError as refused:
        writer.write({"id": 0, "error": {"kind": refused.kind, "detail": text(refused)}})
        return None
    version, python = text(getattr(sdk.module, "__version__", "")), ".".join(map(str, sys.version_info[:3]))
    welcome = {"version": VERSION, "sdk": version, "python": python, "features": sdk.features()}
    writer.write({"id": 0, "ok": welcome})
    return sdk


def main() -> None:
    """Serve until stdin ends."""
    die_with_parent()
    source, sink = own_pipes()
    writer = Writer(sink)
    hello = read_frame(source)
    sdk = greet(hello, writer) if hello else None
    if sdk is None:
        return
    requests: queue.Queue[Message[str, Any]] = queue.Queue()
    for _ in range(hello["threads"]):
        threading.Thread(target=work, args=(sdk, requests, writer), daemon=True).start()
    while request := read_frame(source):
        requests.put(request)
    leave()


if __name__ == "__main__":
    main()
