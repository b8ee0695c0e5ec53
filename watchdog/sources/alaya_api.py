"""Alaya's calls, one method each: where they live, how they are signed, what counts as an answer.

Owns the prefix question: the documented `/v1` and the seen `/api/osm/v1` are tried per call, and the
one that answered in the API's own form is remembered. Knows nothing of tasks, series or lines.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from functools import partial
from urllib.parse import quote, urlsplit

import msgspec

from watchdog.core.health import Failure
from watchdog.core.logs import LogQuery
from watchdog.errors import SourceError
from watchdog.ports import Clock
from watchdog.sources.alaya_auth import credentials
from watchdog.sources.alaya_options import AlayaSettings
from watchdog.sources.alaya_wire import Reply, read_reply
from watchdog.sources.answers import failure
from watchdog.sources.http import HttpClient, HttpLimits, checked_proxy

PAGE_SIZE = 100

# Not the API speaking, so it may speak under another prefix (`/v1` is also a model API's).
_ELSEWHERE = frozenset(
    {
        Failure.NOT_JSON,
        Failure.MALFORMED,
        Failure.NOT_FOUND,
        Failure.BAD_REQUEST,
        Failure.KEY_UNKNOWN,
        Failure.FORBIDDEN,
    }
)


class Endpoint(StrEnum):
    """The calls, named for people."""

    METRICS = "metrics"
    LOGS = "logs"
    LIST = "task list"
    POD = "pod basic"


class AlayaApi:
    """One account at one address. Every method returns the answer's `data` or raises `SourceError`."""

    def __init__(self, settings: AlayaSettings, clock: Clock) -> None:
        """Raise ValueError if the settings cannot be used."""
        self._clock = clock
        self._credentials = credentials(settings)
        self._secrets = (settings.api_key, settings.access_key, settings.secret_key)
        self._candidates = settings.prefixes
        self._proven: dict[Endpoint, str] = {}
        limit = settings.timeout
        limits = HttpLimits(
            connect=min(limit, timedelta(seconds=10)),
            read=min(limit, timedelta(seconds=20)),
            write=min(limit, timedelta(seconds=10)),
            deadline=limit,
            concurrency=settings.concurrency,
            rate=settings.rate,
            burst=2 * settings.concurrency,
        )
        proxy = checked_proxy(str(settings.proxy))
        self._http = HttpClient(settings.base_url, clock=clock, limits=limits, proxy=proxy)
        self._context = urlsplit(self._http.base_url).path

    @property
    def prefixes(self) -> Mapping[Endpoint, str]:
        """The prefix under which each call has answered so far."""
        return dict(self._proven)

    async def metrics(self, task_id: str, params: Sequence[tuple[str, str]]) -> msgspec.Raw:
        """`training/instance/{id}/metrics`: one type per call."""
        return await self._ask(Endpoint.METRICS, f"{_instance(task_id)}/metrics", params)

    async def logs(self, task_id: str, namespace: str, query: LogQuery) -> msgspec.Raw:
        """`training/instance/{id}/logs`, oldest first. Times are whole nanoseconds."""
        params = [("namespace", namespace)]
        if query.pod:
            params.append(("podName", query.pod))
        # Whether the bounds are inclusive is not documented: ask one nanosecond wider on both sides.
        params += [
            ("startTime", str(max(0, query.start_ns - 1))),
            ("endTime", str(max(query.start_ns, query.end_ns) + 1)),
            ("limit", str(query.limit)),
        ]
        if query.contains:
            params.append(("filter", query.contains))
        params.append(("direction", "forward"))
        return await self._ask(Endpoint.LOGS, f"{_instance(task_id)}/logs", params)

    async def task_list(self, page: int, size: int = PAGE_SIZE) -> msgspec.Raw:
        """`training/instance/list`: pages count from 1."""
        params = (("pageNo", str(page)), ("pageSize", str(size)))
        return await self._ask(Endpoint.LIST, "/training/instance/list", params)

    async def pod_basic(self, task_id: str, pod: str) -> msgspec.Raw:
        """`training/instance/{id}/{podName}/basic`: namespace, node and restarts of one pod."""
        return await self._ask(Endpoint.POD, f"{_instance(task_id)}/{_segment(pod)}/basic", ())

    async def close(self) -> None:
        """Give back connections."""
        await self._http.close()

    async def _ask(self, endpoint: Endpoint, path: str, params: Sequence[tuple[str, str]]) -> msgspec.Raw:
        """Ask under the proven prefix, or under each until one answers as the API does."""
        proven = self._proven.get(endpoint)
        refusals: list[SourceError] = []
        for prefix in self._order(endpoint):
            reply = await self._attempt(prefix + path, params)
            error = reply.error
            if error is None:
                self._proven[endpoint] = prefix
                return reply.data
            if not self._may_be_elsewhere(reply, error, proven=prefix == proven):
                if reply.enveloped and error.failure is not Failure.NOT_FOUND:
                    self._proven.setdefault(endpoint, prefix)
                raise error
            refusals.append(error)
        raise _most_telling(refusals)

    def _order(self, endpoint: Endpoint) -> list[str]:
        """Return the prefixes to try: this call's own, then what other calls use, then as configured."""
        known = [self._proven[endpoint]] if endpoint in self._proven else []
        return list(dict.fromkeys([*known, *self._proven.values(), *self._candidates]))

    @staticmethod
    def _may_be_elsewhere(reply: Reply, error: SourceError, *, proven: bool) -> bool:
        if proven:
            return error.failure is Failure.NOT_JSON
        if reply.enveloped:
            return error.failure is Failure.NOT_FOUND
        return error.failure in _ELSEWHERE

    async def _attempt(self, path: str, params: Sequence[tuple[str, str]]) -> Reply:
        sign = partial(self._headers, self._context + path)
        return read_reply(await self._http.get(path, params, sign), self._secrets)

    def _headers(self, path: str) -> Mapping[str, str]:
        return self._credentials.headers("GET", path, self._clock.now())


def _instance(task_id: str) -> str:
    return f"/training/instance/{_segment(task_id)}"


def _segment(text: str) -> str:
    """Return an opaque id as one path segment."""
    if text in ("", ".", ".."):
        raise failure(Failure.BAD_REQUEST, "an id or pod name cannot be used in a path")
    return quote(text, safe="")


def _most_telling(refusals: Sequence[SourceError]) -> SourceError:
    """Of several prefixes' refusals, prefer one that the API itself may have given."""
    for error in refusals:
        if error.failure is not Failure.NOT_JSON:
            return error
    return refusals[0]
