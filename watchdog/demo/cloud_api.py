"""The `data` of each answer of the stand-in cloud, field for field as Alaya documents or shows it.

Also bends it where a fault says so. Knows no sockets, keys or envelopes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from urllib.parse import unquote
from zoneinfo import ZoneInfo

from watchdog.demo.faults import Fault, FaultKind
from watchdog.demo.stage import Row, SeriesKey, StagedTask

ZONE = ZoneInfo("Asia/Shanghai")  # of times written without a zone
NAIVE = "%Y-%m-%d %H:%M:%S"
TYPES = ("cpu", "memory", "gpu", "vram")
PERIODS = {
    "15m": timedelta(minutes=15),
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "24h": timedelta(hours=24),
    "3d": timedelta(days=3),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
}
ODD_VALUES: tuple[object, ...] = ("0.5", "1.02", "212.37", "", "NaN", "-", None, 0.75, 1)
Faults = Mapping[FaultKind, Fault]


class RefusedError(Exception):
    """A request the API refuses."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Where:
    """What a path asks for: capability (metrics, logs, list, pod, enabled or ""), task id, pod."""

    capability: str
    task: str
    pod: str = ""


def locate(path: str) -> Where:
    """Read an API path without its prefix; segments are percent-encoded."""
    match [unquote(part) for part in path.strip("/").split("/")]:
        case ["training", "instance", "list"]:
            return Where("list", "")
        case ["training", "instance", "checkIsEnabled"]:
            return Where("enabled", "")
        case ["training", "instance", task, "metrics"]:
            return Where("metrics", task)
        case ["training", "instance", task, "logs"]:
            return Where("logs", task)
        case ["training", "instance", task, pod, "basic"]:
            return Where("pod", task, pod)
    return Where("", "")


class CloudApi:
    """Answers for the tasks on the stage."""

    def __init__(self, tasks: Mapping[str, StagedTask]) -> None:
        self._tasks = tasks

    def data(self, where: Where, query: Mapping[str, str], faults: Faults, now: datetime) -> object:
        """Return the `data` of a successful answer; raises `RefusedError`."""
        if where.capability == "enabled":
            return True
        if where.capability == "list":
            return self._list(query, faults, now)
        task = self._tasks.get(where.task)
        if task is None or not where.capability:
            raise RefusedError(404, "Not Found")
        if where.capability == "metrics":
            return _metrics(task, query, faults, now)
        if where.capability == "logs":
            return _logs(task, query, faults, now)
        return _pod(task, where.pod, now)

    def _list(self, query: Mapping[str, str], faults: Faults, now: datetime) -> object:
        number, size = _integer(query, "pageNo", 1), _integer(query, "pageSize", 10)
        shown = [task for task in self._tasks.values() if task.listed]
        hidden = faults[FaultKind.PARTIAL_LIST].task if FaultKind.PARTIAL_LIST in faults else ""
        shown = [task for task in shown if not hidden or task.play.id != hidden]
        total = len(shown)
        if FaultKind.SHRINKING in faults:
            total -= number - 1
        if FaultKind.REPEATED_PAGE in faults:
            number = 1
        page = shown[(number - 1) * size : number * size]
        if FaultKind.EMPTY_PAGE in faults and number > 1:
            page = []
        records = [_record(task, index, now) for index, task in enumerate(page)]
        return {"records": records, "totalRows": total, "pageNo": number, "pageSize": size}


def _record(task: StagedTask, index: int, now: datetime) -> Mapping[str, object]:
    phase = task.phase(now)
    play = task.play
    begin = min((phase.start for phase in play.phases), default=0.0)
    created = datetime.fromtimestamp(task.time_ns(begin) / 1e9, UTC)
    ended = phase.status.lower() in ("succeeded", "failed", "canceled")
    since = task.phase_since(now)
    gpus = play.gpus_per_pod
    return {
        "id": play.id,
        "name": play.name,
        "status": phase.status,
        "aidcId": 3,
        "resource": {
            "workerCount": len(phase.pods),
            "gpuCount": str(gpus) if index % 2 else gpus,  # both forms have been seen
            "gpuName": play.gpu_name,
        },
        "createdTime": _naive(created),
        "startTime": _naive(since) if phase.pods else None,
        "endTime": _naive(since) if ended else None,
        "reason": phase.reason,
        # Real task objects carry secrets; nothing of these may ever be repeated.
        "imagePullPassword": "stand-in-pull-password",
        "envs": {"HF_TOKEN": "hf_StandInTokenThatMustNotLeak0123456789"},
    }


def _naive(moment: datetime) -> str:
    return moment.astimezone(ZONE).strftime(NAIVE)


def _pod(task: StagedTask, pod: str, now: datetime) -> Mapping[str, object]:
    phase = task.phase(now)
    if pod not in phase.pods:
        raise RefusedError(404, "Not Found")
    number = task.play.pods().index(pod)
    return {
        "clusterName": "stand-in-cluster",
        "hostName": task.play.nodes.get(pod, f"node-{number:02d}"),
        "namespace": task.play.namespace,
        "hostIp": f"10.0.0.{number + 1}",
        "status": "Running",
        "podIp": f"10.1.0.{number + 1}",
        "restartCount": task.restarts.get(pod, 0),
        "qosClass": "Guaranteed",
        "createBy": "stand-in",
        "createTime": _naive(task.phase_since(now)),
    }


def _metrics(task: StagedTask, query: Mapping[str, str], faults: Faults, now: datetime) -> object:
    metric = query.get("type", "")
    if metric not in TYPES:
        raise RefusedError(400, "type must be one of cpu, memory, gpu, vram")
    start, end = _window(query, now)
    until = end
    if FaultKind.STALE in faults:
        until = min(end, now - timedelta(seconds=faults[FaultKind.STALE].number(600)))
    found = {} if FaultKind.NO_SERIES in faults else task.series(metric, start, until, now)
    series = [_series(task, metric, key, times, values) for key, (times, values) in found.items()]
    for entry in series:
        _bend(entry, faults)
    if FaultKind.TWICE in faults:
        series = [entry for entry in series for _ in range(2)]
    return {"metricData": series, **_shown_window(query, start, end)}


def _window(query: Mapping[str, str], now: datetime) -> tuple[datetime, datetime]:
    if "period" in query:
        if query["period"] not in PERIODS:
            raise RefusedError(400, "unknown period")
        return now - PERIODS[query["period"]], now
    start, end = (_moment(query.get(name, "")) for name in ("startTime", "endTime"))
    if end <= start:
        raise RefusedError(400, "endTime must be later than startTime")
    return start, end


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise RefusedError(400, "startTime and endTime, or period, are needed") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=ZONE)


def _shown_window(query: Mapping[str, str], start: datetime, end: datetime) -> Mapping[str, str]:
    """The documents show both forms: naive in the field's text, ISO with Z in the example."""
    if "period" not in query:
        return {"startTime": _naive(start), "endTime": _naive(end)}
    return {"startTime": _iso(start), "endTime": _iso(end)}


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _series(
    task: StagedTask, metric: str, key: SeriesKey, times: Sequence[int], values: Sequence[float]
) -> dict[str, object]:
    pod, gpu = key
    entry: dict[str, object] = {
        "type": metric,
        "podName": pod,
        "maxRate": _ratio(max(values)),
        "avgRate": _ratio(sum(values) / len(values)),
        "currentRate": _ratio(values[-1]),
    }
    if gpu is not None:
        entry["gpuName"] = f"{task.play.gpu_name}-{gpu}"
    entry["metricData"] = [
        {"timestamp": time, "value": _ratio(value)} for time, value in zip(times, values, strict=True)
    ]
    return entry


def _ratio(value: float) -> str:
    return f"{value:.4f}".rstrip("0").rstrip(".") or "0"


def _bend(entry: dict[str, object], faults: Faults) -> None:
    points = entry["metricData"]
    assert isinstance(points, list)
    if FaultKind.NO_POINTS in faults:
        points.clear()
    if FaultKind.ODD_VALUES in faults:
        for index, point in enumerate(points):
            point["value"] = ODD_VALUES[index % len(ODD_VALUES)]
    if FaultKind.TWICE in faults:
        points.extend(dict(point) for point in list(points))
    if FaultKind.UNSORTED in faults:
        points.reverse()


def _logs(task: StagedTask, query: Mapping[str, str], faults: Faults, now: datetime) -> object:
    if "namespace" not in query:
        raise RefusedError(400, "namespace is required")
    limit = _integer(query, "limit", 100)
    start, end = _integer(query, "startTime", 0), _integer(query, "endTime", 1 << 62)
    if end <= start:
        raise RefusedError(400, "endTime must be later than startTime")
    if query["namespace"] != task.play.namespace or FaultKind.NO_LINES in faults:
        return []  # a wrong namespace looks like silence
    late = faults[FaultKind.LATE].number(60) if FaultKind.LATE in faults else 0.0
    rows = [
        row
        for row in task.rows(start, end, now, timedelta(seconds=late))
        if fnmatchcase(row.pod, query.get("podName", "*")) and query.get("filter", "") in row.text
    ]
    if query.get("direction", "backward") != "forward":
        rows.reverse()
    return _bent_rows(rows[:limit], limit, faults)


def _bent_rows(rows: list[Row], limit: int, faults: Faults) -> list[dict[str, str]]:
    if rows and FaultKind.FULL_PAGE in faults:
        rows = rows + [rows[-1]] * (limit - len(rows))
    if FaultKind.UNSORTED in faults:
        rows = rows[1::2] + rows[::2]
    time_ns = rows[0].time_ns if rows and FaultKind.SAME_TIME in faults else 0
    return [{"timestamp": str(time_ns or row.time_ns), "log": row.text, "podName": row.pod} for row in rows]


def _integer(query: Mapping[str, str], name: str, default: int) -> int:
    text = query.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit()):
        raise RefusedError(400, f"{name} must be an integer")
    return int(text)
