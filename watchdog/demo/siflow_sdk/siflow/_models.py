"""What answers become: objects built without any check, so that a field that was left out is None."""

from collections.abc import Mapping
from typing import Any, ClassVar


class Model:
    """An answer's object. Declared fields exist always; unknown ones are kept; nothing is validated."""

    declared: ClassVar[tuple[str, ...]] = ()
    inside: ClassVar[Mapping[str, "type[Model]"]] = {}

    def __init__(self, values: Mapping[str, Any]) -> None:
        for name in self.declared:
            setattr(self, name, None)
        for name, value in values.items():
            setattr(self, name, _built(value, self.inside.get(name)))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in vars(self).items())})"


def _built(value: Any, kind: "type[Model] | None") -> Any:
    if kind is None or value is None:
        return value
    return [kind(item) for item in value] if isinstance(value, list) else kind(value)


class Envelope(Model):
    """What every answer is wrapped in."""

    declared: ClassVar[tuple[str, ...]] = ("status", "msg", "data", "rows", "total")


class TaskBrief(Model):
    """A row of the list."""

    declared: ClassVar[tuple[str, ...]] = (
        "uuid",
        "name",
        "status",
        "status_msg",
        "create_time",
        "update_time",
        "start_time",
        "end_time",
    )


class Task(TaskBrief):
    """A task by itself. `enhancements` stays a dict."""

    declared: ClassVar[tuple[str, ...]] = (
        *TaskBrief.declared,
        "type",
        "workers",
        "cmd",
        "oss",
        "task_env",
        "enhancements",
        "queue_info",
    )


class TaskPod(Model):
    """A pod of a task."""

    declared: ClassVar[tuple[str, ...]] = (
        "name",
        "status",
        "status_msg",
        "node",
        "ip",
        "create_time",
        "exit_code",
        "deleted",
    )


class CatalogEntry(Model):
    """A built-in metric."""

    declared: ClassVar[tuple[str, ...]] = ("metric", "name", "unit")


class CustomEntry(Model):
    """A custom metric, with its last sample."""

    declared: ClassVar[tuple[str, ...]] = ("metric", "sample_value", "sample_time", "labels")


class FullCatalog(Model):
    """Both lists."""

    declared: ClassVar[tuple[str, ...]] = ("data", "built_in", "custom")
    inside: ClassVar[Mapping[str, type[Model]]] = {"data": CatalogEntry, "custom": CustomEntry}


class Point(Model):
    """One value."""

    declared: ClassVar[tuple[str, ...]] = ("timestamp", "value")


class SeriesLabels(Model):
    """What tells curves apart."""

    declared: ClassVar[tuple[str, ...]] = ("pod", "node", "gpu", "device", "extra")


class Series(Model):
    """One curve."""

    declared: ClassVar[tuple[str, ...]] = ("labels", "values")
    inside: ClassVar[Mapping[str, type[Model]]] = {"labels": SeriesLabels, "values": Point}


class Metric(Model):
    """One metric of an answer."""

    declared: ClassVar[tuple[str, ...]] = ("metric", "unit", "aggregation", "warning", "series")
    inside: ClassVar[Mapping[str, type[Model]]] = {"series": Series}


class Meta(Model):
    """How the server understood the question."""

    declared: ClassVar[tuple[str, ...]] = ("start_time", "end_time", "step", "warnings")


class TaskMetricsResponse(Model):
    """A whole metrics answer."""

    declared: ClassVar[tuple[str, ...]] = ("meta", "metrics", "node_name")
    inside: ClassVar[Mapping[str, type[Model]]] = {"meta": Meta, "metrics": Metric}


class LogItem(Model):
    """One item of a log; it may hold several lines."""

    declared: ClassVar[tuple[str, ...]] = ("content",)


class LogAnswer(Model):
    """A log's items."""

    declared: ClassVar[tuple[str, ...]] = ("logs", "total")
    inside: ClassVar[Mapping[str, type[Model]]] = {"logs": LogItem}
