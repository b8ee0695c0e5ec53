"""SiFlow's calls, typed, one method each; and what this cloud and SDK offer.

Owns pace and the worker. Every failure is a `SourceError`. Knows nothing of series, lines and statuses.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

import msgspec

from watchdog.core.health import Failure
from watchdog.errors import SourceError
from watchdog.ports import Clock
from watchdog.sources.answers import failure
from watchdog.sources.http import checked_proxy
from watchdog.sources.naive_times import write_naive
from watchdog.sources.pace import Pace
from watchdog.sources.siflow_catalogue import LISTED, METHOD_OF, Dimension, Offer
from watchdog.sources.siflow_link import Hello, SiflowLink
from watchdog.sources.siflow_options import SiflowSettings
from watchdog.sources.siflow_wire import (
    Catalogue,
    Custom,
    LogRows,
    MetricSet,
    PodRow,
    Pods,
    TaskPage,
    TaskRow,
)

MOST_METRICS = 60  # in one query
PAGE_SIZE = 200
CATALOGUE_AGE = timedelta(hours=6)
ASK_AGAIN = timedelta(minutes=10)  # a catalogue that could not be had

T = TypeVar("T")
_TASK = msgspec.json.Decoder(TaskRow)
_PAGE = msgspec.json.Decoder(TaskPage)
_PODS = msgspec.json.Decoder(Pods)
_CATALOGUE = msgspec.json.Decoder(Catalogue)
_METRICS = msgspec.json.Decoder(MetricSet)
_LOGS = msgspec.json.Decoder(LogRows)

_KEYWORD = {
    Dimension.TASK: "task_name",
    Dimension.ALL_PODS: "task_name",
    Dimension.ALL_NODES: "task_name",
    Dimension.POD: "pod_name",
    Dimension.NODE: "pod_name",
}
_METHOD = {
    Dimension.TASK: "metrics",
    Dimension.POD: "pod_metrics",
    Dimension.NODE: "node_metrics",
    Dimension.ALL_PODS: "all_pods_metric",
    Dimension.ALL_NODES: "all_nodes_metric",
}


class SiflowApi:
    """One account on one cluster. Every method returns an answer or raises `SourceError`."""

    def __init__(self, settings: SiflowSettings, clock: Clock) -> None:
        """Raise ValueError if the settings cannot be used."""
        self._settings = settings
        self._clock = clock
        self._pace = Pace(clock, settings.rate, 2 * settings.concurrency)
        hello = Hello(
            region=settings.region,
            cluster=settings.cluster,
            access_key_id=str(settings.access_key_id),
            access_key_secret=str(settings.access_key_secret),
            timeout=settings.timeout.total_seconds(),
            threads=settings.concurrency,
            sdk_path=settings.sdk_path,
            proxy=checked_proxy(str(settings.proxy)),
        )
        self.link = SiflowLink(settings.python, hello, clock=clock, deadline=settings.deadline)
        self._offer: Offer | None = None
        self._offer_until = timedelta()
        self._offering = asyncio.Lock()

    async def list_page(self, number: int) -> TaskPage:
        """One page of the task list, from 1."""
        filters = {
            name: list(value)
            for name in ("owners", "resource_pools")
            if (value := getattr(self._settings, name))
        }
        return await self._call("list", {"page": number, "count": PAGE_SIZE, "filters": filters}, _PAGE)

    async def get(self, uuid: str) -> TaskRow:
        """One task."""
        return await self._call("get", {"uuid": uuid}, _TASK)

    async def pods(self, uuid: str) -> Sequence[PodRow]:
        """The pods of a task."""
        return (await self._call("pods", {"uuid": uuid}, _PODS)).pods

    async def logs(self, uuid: str) -> LogRows:
        """The newest log items of a task, `log_lines` at most."""
        return await self._call("logs", {"uuid": uuid, "limit": self._settings.log_lines}, _LOGS)

    async def custom(self, task_name: str) -> Sequence[Custom]:
        """The custom metrics of a task, each with its last sample."""
        args = {"task_name": task_name, "dimension": str(Dimension.TASK)}
        return (await self._call("catalogue_full", args, _CATALOGUE)).custom

    async def metrics(
        self,
        dimension: Dimension,
        subject: str,
        metrics: Sequence[str],
        window: tuple[datetime, datetime],
        pods: Sequence[str] = (),
    ) -> MetricSet:
        """Points of up to 60 metrics of a task, or of a pod or its node; `all_…` and `resource` take one.

        subject: the task's name in the cloud, or the pod's. pods: narrows a comparison.
        """
        start, end = (write_naive(moment, self._settings.zone) for moment in window)
        if dimension is Dimension.RESOURCE:
            args: dict[str, object] = {
                "start": start,
                "end": end,
                "kind": "Pod",
                "name": subject,
                "metric": metrics[0],
            }
            return await self._call("resource", args, _METRICS)
        single = dimension in (Dimension.ALL_PODS, Dimension.ALL_NODES)
        asked: Mapping[str, object] = {"metric": metrics[0]} if single else {"metrics": list(metrics)}
        optional: dict[str, object] = {"start_time": start, "end_time": end}
        if dimension is Dimension.TASK:
            optional["include_retries"] = True
        if pods:
            optional["pods"] = list(pods)
        required = {_KEYWORD[dimension]: subject, **asked}
        args = {"method": _METHOD[dimension], "required": required, "optional": optional}
        return await self._call("metrics", args, _METRICS)

    async def offer(self) -> Offer:
        """What can be asked; the catalogue is asked for anew every few hours, and need not be there."""
        async with self._offering:
            return await self._newest_offer()

    async def _newest_offer(self) -> Offer:
        welcome = await self.link.ready()
        features = frozenset(welcome.features)
        now = self._clock.monotonic()
        known = self._offer
        if known is not None and known.features == features and now < self._offer_until:
            return known
        if "tasks.metrics_catalog" not in features:
            self._offer, self._offer_until = Offer(features=features), now + CATALOGUE_AGE
            return self._offer
        listed: dict[Dimension, Mapping[str, str]] = {}
        whole = True
        for dimension in LISTED:
            if METHOD_OF[dimension] not in features:
                continue
            try:
                listed[dimension] = await self._listed(dimension)
            except SourceError as error:
                whole = False
                if error.failure in (Failure.KEY_UNKNOWN, Failure.FORBIDDEN, Failure.TIMEOUT):
                    raise
        self._offer = Offer(features=features, listed=listed)
        self._offer_until = now + (CATALOGUE_AGE if whole else ASK_AGAIN)
        return self._offer

    async def close(self) -> None:
        """End the worker."""
        await self.link.close()

    async def _listed(self, dimension: Dimension) -> Mapping[str, str]:
        answer = await self._call("catalogue", {"dimension": str(dimension)}, _CATALOGUE)
        found = {entry.metric: entry.unit or "" for entry in answer.entries if entry.metric}
        if not found:
            raise failure(Failure.MALFORMED, f"the catalogue of {dimension} is empty")
        return found

    async def _call(self, op: str, args: Mapping[str, object], decoder: msgspec.json.Decoder[T]) -> T:
        await self._pace.wait_turn()
        return await self.link.call(op, args, decoder)
