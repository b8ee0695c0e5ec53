"""`client.tasks`, as of 0.2.9 and as it is documented now."""

from collections.abc import Mapping, Sequence
from typing import Any

from ._http import Http
from ._models import (
    CatalogEntry,
    FullCatalog,
    LogAnswer,
    Task,
    TaskBrief,
    TaskMetricsResponse,
    TaskPod,
)
from .resources.metrics import recommend_time_step

TASKS = "/task-service/v1/tasks"
STAND_IN = "/stand-in/"  # the paths of these calls are not known


class OldTasks:
    """What 0.2.9 has."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def list(
        self,
        *,
        count: int = 15,
        status: str | None = None,
        owners: Sequence[str] | None = None,
        resource_pools: Sequence[str] | None = None,
        extra_query: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> Any:
        """The newest tasks; None where the cloud refuses."""
        query: dict[str, object] = {"page": "1", "pageSize": count, "status": status}
        query["owners"] = ",".join(owners) if owners else None
        query["resourcePools"] = ",".join(resource_pools) if resource_pools else None
        rows = self._http.get(TASKS, {**query, **(extra_query or {})}, timeout).rows
        return None if rows is None else [TaskBrief(row) for row in rows]

    def get(self, *, uuid: str, timeout: float | None = None) -> Any:
        """One task; None where the cloud refuses."""
        data = self._http.get(f"{TASKS}/{uuid}", {}, timeout).data
        return None if data is None else Task(data)

    def list_pods(self, *, uuid: str, timeout: float | None = None) -> Any:
        """The pods of a task."""
        rows = self._http.get(f"{TASKS}/{uuid}/pods", {}, timeout).rows
        return None if rows is None else [TaskPod(row) for row in rows]


class Tasks(OldTasks):
    """What is documented now."""

    def query_logs(
        self, uuid: str, *, limit: int = 100, sort_order: str = "asc", timeout: float | None = None
    ) -> Any:
        """Items of a task's log."""
        asked = {"uuid": uuid, "limit": limit, "sort_order": sort_order}
        return self._answer("logs", asked, timeout, LogAnswer)

    def metrics_catalog(self, *, dimension: str, timeout: float | None = None) -> Any:
        """The built-in metrics of a dimension."""
        data = self._http.post(f"{STAND_IN}catalog", {"dimension": dimension}, timeout).data
        return None if data is None else [CatalogEntry(entry) for entry in data]

    def metrics_catalog_full(
        self,
        *,
        task_name: str | None = None,
        task_uuid: str | None = None,
        dimension: str = "task",
        timeout: float | None = None,
    ) -> Any:
        """The built-in metrics, and a task's own."""
        if task_name and task_uuid:
            raise ValueError("task_name and task_uuid exclude each other")
        asked = {"task_name": task_name, "task_uuid": task_uuid, "dimension": dimension}
        return self._answer("catalog_full", asked, timeout, FullCatalog)

    def metrics(  # noqa: PLR0913 - as documented
        self,
        *,
        task_name: str,
        metrics: Sequence[str] | None = None,
        start_time: str | None = None,
        end_time: str | None = None,
        step: str | None = None,
        include_retries: bool = False,
        timeout: float | None = None,
    ) -> Any:
        """A task's means."""
        asked = {"task_name": task_name, "metrics": metrics, "step": step, "include_retries": include_retries}
        return self._metrics("metrics", {**asked, "start_time": start_time, "end_time": end_time}, timeout)

    def pod_metrics(
        self,
        *,
        pod_name: str,
        metrics: Sequence[str] | None = None,
        start_time: str | None = None,
        end_time: str | None = None,
        timeout: float | None = None,
    ) -> Any:
        """A pod's metrics."""
        asked = {"pod_name": pod_name, "metrics": metrics, "start_time": start_time, "end_time": end_time}
        return self._metrics("pod_metrics", asked, timeout)

    def node_metrics(
        self,
        *,
        pod_name: str,
        metrics: Sequence[str] | None = None,
        start_time: str | None = None,
        end_time: str | None = None,
        timeout: float | None = None,
    ) -> Any:
        """The metrics of a pod's node, card by card."""
        asked = {"pod_name": pod_name, "metrics": metrics, "start_time": start_time, "end_time": end_time}
        return self._metrics("node_metrics", asked, timeout)

    def all_pods_metric(
        self,
        *,
        task_name: str,
        metric: str,
        pods: Sequence[str] | None = None,
        start_time: str | None = None,
        end_time: str | None = None,
        timeout: float | None = None,
    ) -> Any:
        """One metric, pod by pod."""
        asked = {"task_name": task_name, "metric": metric, "pods": pods}
        return self._metrics("all_pods", {**asked, "start_time": start_time, "end_time": end_time}, timeout)

    def all_nodes_metric(
        self,
        *,
        task_name: str,
        metric: str,
        pods: Sequence[str] | None = None,
        start_time: str | None = None,
        end_time: str | None = None,
        timeout: float | None = None,
    ) -> Any:
        """One metric, node by node; ten at most."""
        asked = {"task_name": task_name, "metric": metric, "pods": pods}
        return self._metrics("all_nodes", {**asked, "start_time": start_time, "end_time": end_time}, timeout)

    def _metrics(self, call: str, asked: Mapping[str, object], timeout: float | None) -> Any:
        if len(asked.get("metrics") or ()) > 60:  # type: ignore[arg-type]  # a list or nothing
            raise ValueError("metrics: at most 60")
        return self._answer(call, asked, timeout, TaskMetricsResponse)

    def _answer(self, call: str, asked: Mapping[str, object], timeout: float | None, kind: Any) -> Any:
        data = self._http.post(STAND_IN + call, asked, timeout).data
        return None if data is None else kind(data)


class Metrics:
    """`client.metrics`: by pod or node, past the task."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def query(  # noqa: PLR0913 - as documented
        self,
        *,
        start_time: str,
        end_time: str,
        time_step: int,
        resource_type: str,
        metric_type: str,
        pod: str | None = None,
        node: str | None = None,
        timeout: float | None = None,
    ) -> Any:
        """One metric of one pod or node. The form of the answer is not documented; here, curves."""
        asked = {"start_time": start_time, "end_time": end_time, "step": time_step, "metric": metric_type}
        subject = {"resource_type": resource_type, "pod": pod, "node": node}
        return self._http.post(f"{STAND_IN}resource", {**asked, **subject}, timeout).data

    @staticmethod
    def recommend_time_step(start_time: str, end_time: str) -> int:
        """A step that suits a range."""
        return recommend_time_step(start_time, end_time)
