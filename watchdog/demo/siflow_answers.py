"""What the stand-in SiFlow answers: the fields of its tasks, pods, logs and metrics, as documented or seen.

Also bends them where a fault says so. Knows no sockets and no keys.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from watchdog.demo.faults import Fault, FaultKind
from watchdog.demo.siflow_data import IN_DIMENSION, NATIVES, Curve, curves, custom, merged, node_of
from watchdog.demo.stage import StagedTask

ZONE = ZoneInfo("Asia/Shanghai")
NAIVE = "%Y-%m-%d %H:%M:%S"
DEFAULT_WINDOW = timedelta(minutes=30)
LOG_SPAN = timedelta(hours=2)
MOST_NODES = 10
PLANTED = "stand-in-oss-secret"
# The story's words, which are the other cloud's, in the SDK's.
WORDS = {"Starting": "PartialPending", "Paused": "Stopped", "Canceled": "Stopped"}

Faults = Mapping[FaultKind, Fault]
Asked = Mapping[str, object]


class RefusedError(Exception):
    """A request the API refuses, with its HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(message)


def naive(moment: datetime) -> str:
    """A time as SiFlow writes it."""
    return moment.astimezone(ZONE).strftime(NAIVE)


# --- tasks and pods


def task_row(task: StagedTask, now: datetime) -> dict[str, object]:
    """A task, of the list or by itself. Real ones carry credentials, and so does this one."""
    phase, play = task.phase(now), task.play
    word = WORDS.get(phase.status, phase.status)
    began = next((p.start for p in play.phases if p.pods), None)
    waiting = {"rank_in_pool": 3, "ahead_in_pool": {"high": 1, "medium": 1, "low": None}, "rank_in_user": 1}
    return {
        "uuid": play.id,
        "name": play.name,
        "status": word,
        "status_msg": phase.reason or None,
        "create_time": naive(_moment(task, min((p.start for p in play.phases), default=0.0))),
        "start_time": naive(_moment(task, began))
        if began is not None and began <= task.second(now)
        else None,
        "end_time": None,  # also of a finished task, as has been seen
        "owner": "stand-in",
        "resource_pool": "pool-a",
        "priority": "medium",
        "instances": None,
        "queue_info": waiting if word in ("Pending", "Queueing") else None,
        "enhancements": {
            "fault_tolerance": {
                "enabled": True,
                "max_retry_count": 3,
                "records": [f"retry {number + 1}" for number in range(phase.retries)],
            },
            "debug_mode": {"enabled": phase.held, "holding": phase.held, "ttl": 3600},
        },
        "oss": {"access_key": "stand-in-oss-key", "secret_key": PLANTED},
        "task_env": {"HF_TOKEN": "hf_StandInTokenThatMustNotLeak0123456789"},
    }


def pod_rows(task: StagedTask, now: datetime) -> list[dict[str, object]]:
    """The pods that there were until now; those of the current phase live."""
    current = task.phase(now)
    past = [phase for phase in task.play.phases if phase.start <= task.second(now)]
    rows: list[dict[str, object]] = []
    for pod in dict.fromkeys(pod for phase in past for pod in phase.pods):
        alive = pod in current.pods
        began = next(phase.start for phase in past if pod in phase.pods)
        over = "Succeeded" if current.status == "Succeeded" else "Failed"
        rows.append(
            {
                "name": pod,
                "status": "Running" if alive else over,
                "status_msg": None,
                "node": node_of(task, pod),
                "ip": "10.1.0.1",
                "create_time": naive(_moment(task, began)),
                "exit_code": None if alive else 0 if over == "Succeeded" else 137,
                "deleted": False,
            }
        )
    return rows


def _moment(task: StagedTask, second: float) -> datetime:
    return datetime.fromtimestamp(task.time_ns(second) / 1e9, UTC)


# --- logs


def log_items(task: StagedTask, asked: Asked, faults: Faults, now: datetime) -> dict[str, object]:
    """The log's newest or oldest items."""
    limit, order = asked.get("limit"), asked.get("sort_order")
    if not isinstance(limit, int) or order not in ("asc", "desc"):
        raise RefusedError(400, "limit and sort_order are needed")
    if FaultKind.NULL_LISTS in faults:
        return {"logs": None, "total": None}
    late = timedelta(seconds=faults[FaultKind.LATE].number(60)) if FaultKind.LATE in faults else timedelta()
    end_ns = int(now.timestamp() * 1_000_000) * 1000 + 1
    start_ns = end_ns - int(LOG_SPAN.total_seconds()) * 10**9
    rows = [] if FaultKind.NO_LINES in faults else task.rows(start_ns, end_ns, now, late)
    shown = rows[-limit:][::-1] if order == "desc" else rows[:limit]
    timed = FaultKind.WITH_TIMES in faults
    more = ({"timestamp": row.time_ns, "pod": row.pod} if timed else {} for row in shown)
    return {
        "logs": [{"content": row.text, **extra} for row, extra in zip(shown, more, strict=True)],
        "total": len(rows),
    }


# --- metrics


@dataclass(frozen=True, slots=True)
class Query:
    """A question about metrics. call: metrics, pod_metrics, node_metrics, all_pods or all_nodes."""

    call: str
    task: StagedTask
    asked: Asked
    faults: Faults
    now: datetime

    @property
    def window(self) -> tuple[datetime, datetime]:
        """From when to when; the server's own where nothing is asked."""
        start, end = (_read(self.asked.get(name)) for name in ("start_time", "end_time"))
        end = end or self.now
        return start or end - DEFAULT_WINDOW, end

    @property
    def names(self) -> Sequence[str]:
        """The metrics asked for, or all of the dimension."""
        one, several = self.asked.get("metric"), self.asked.get("metrics")
        if isinstance(one, str):
            return [one]
        return [str(name) for name in several] if isinstance(several, list) else sorted(self.offered)

    @property
    def offered(self) -> frozenset[str]:
        """What the dimension has."""
        if self.call == "resource":
            return frozenset(NATIVES)
        dimension = {"metrics": "task", "pod_metrics": "pod", "node_metrics": "node"}
        return IN_DIMENSION[dimension.get(self.call, self.call)]

    @property
    def pods(self) -> Sequence[str]:
        """Whose curves are wanted: the pod's, or the task's; those before a retry only if asked."""
        pod, wanted = self.asked.get("pod_name"), self.asked.get("pods")
        if isinstance(pod, str):
            return [pod]
        phases = [phase for phase in self.task.play.phases if phase.start <= self.task.second(self.now)]
        current = self.task.phase(self.now)
        if not self.asked.get("include_retries"):
            phases = [phase for phase in phases if phase.retries == current.retries]
        every = list(dict.fromkeys(pod for phase in phases for pod in phase.pods))
        return [pod for pod in every if pod in wanted] if isinstance(wanted, list) and wanted else every


def metrics_answer(query: Query) -> dict[str, object]:
    """The whole answer of one of the five queries."""
    start, end = query.window
    faults = query.faults
    warnings = ["部分结果被截断 (result truncated)"] if FaultKind.CUT in faults else []
    if FaultKind.NOTED in faults:
        warnings.append(faults[FaultKind.NOTED].value)
    if not query.pods:
        warnings.append("时间范围内没有可查询 Pod")
    rows = [] if FaultKind.NO_METRICS in faults else [_metric(query, name) for name in query.names]
    pod = query.asked.get("pod_name")
    return {
        "meta": {
            "start_time": naive(start),
            "end_time": naive(end),
            "step": "60",
            "warnings": warnings or None,
        },
        "metrics": None if FaultKind.NULL_LISTS in faults else rows,
        "node_name": node_of(query.task, pod)
        if query.call == "node_metrics" and isinstance(pod, str)
        else None,
    }


def resource_answer(query: Query, metric: str) -> list[dict[str, object]]:
    """The generic query's answer, whose form is not documented: a list of curves."""
    found = _metric(query, metric)["series"]
    return found if isinstance(found, list) else []


def catalogue(dimension: str) -> list[dict[str, object]]:
    """The built-in metrics of a dimension; here percent is written as a sign."""
    if dimension not in IN_DIMENSION:
        raise RefusedError(400, "unknown dimension")
    return [
        {"metric": name, "name": NATIVES[name].chinese, "unit": NATIVES[name].unit.replace("percent", "%")}
        for name in sorted(IN_DIMENSION[dimension])
    ]


def full_catalogue(task: StagedTask | None, dimension: str, now: datetime) -> dict[str, object]:
    """The built-in metrics, and those of a task."""
    own = [] if task is None else custom(task, now)
    return {"data": catalogue(dimension), "built_in": None, "custom": own}


def _metric(query: Query, name: str) -> dict[str, object]:
    row: dict[str, object] = {"metric": name, "unit": "", "aggregation": "avg", "warning": None, "series": []}
    warned = query.faults.get(FaultKind.WARNED)
    if warned is not None and warned.value in ("", name):
        return {**row, "warning": "the metric's store did not answer"}
    if name not in query.offered:
        return {**row, "warning": f"metric {name} is not supported in this dimension"}
    native = NATIVES[name]
    unit = query.faults[FaultKind.UNIT].value if FaultKind.UNIT in query.faults else native.unit
    start, end = query.window
    if FaultKind.STALE in query.faults:
        end = min(end, query.now - timedelta(seconds=query.faults[FaultKind.STALE].number(600)))
    found = (
        []
        if FaultKind.NO_SERIES in query.faults
        else curves(query.task, name, query.pods, (start, end), query.now)
    )
    series = _shaped(query.call, found, mean=native.mean)
    if FaultKind.CUT in query.faults:
        series = series[: (len(series) + 1) // 2]
    if FaultKind.NO_POINTS in query.faults:
        series = [{**one, "values": []} for one in series]
    return {**row, "unit": unit, "aggregation": "avg" if native.mean else "sum", "series": series}


def _shaped(call: str, found: Sequence[Curve], *, mean: bool) -> list[dict[str, object]]:
    """Bring curves into the form of a query: as they are, or one for each pod, node or task."""
    if call == "node_metrics":
        names = ("node", "gpu", "device", "extra")
        return [_series(one.times, one.values, {name: getattr(one, name) for name in names}) for one in found]
    groups: dict[str, list[Curve]] = {}
    for one in found:
        key = {"metrics": "", "all_nodes": one.node}.get(call, one.pod)
        groups.setdefault(key, []).append(one)
    label = {"metrics": "", "all_nodes": "node"}.get(call, "pod")
    shown = list(groups.items())[: MOST_NODES if call == "all_nodes" else None]
    return [_series(*merged(parts, mean=mean), {label: key} if label else {}) for key, parts in shown]


def _series(
    times: Sequence[int], values: Sequence[float], labels: Mapping[str, str | None]
) -> dict[str, object]:
    every = dict.fromkeys(("pod", "node", "gpu", "device", "extra"))
    points = [{"timestamp": t, "value": round(v, 4)} for t, v in zip(times, values, strict=True)]
    return {"labels": {**every, **labels}, "values": points}


def _read(text: object) -> datetime | None:
    if not isinstance(text, str) or not text:
        return None
    try:
        return datetime.strptime(text, NAIVE).replace(tzinfo=ZONE)
    except ValueError as error:
        raise RefusedError(400, "times are written as YYYY-MM-DD HH:MM:SS") from error
