"""The pages: health, readiness, metrics. Read-only; what they say is handed in as values.

Metrics are made in a thread and at most once a second, so that many series or many clients cost the
evaluation nothing.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from http import HTTPStatus

from watchdog.core.telemetry import Telemetry
from watchdog.core.vitals import Verdict, Vitals, judge, summary
from watchdog.ports import Clock
from watchdog.web.server import Page

KEPT = timedelta(seconds=1)
JSON = "application/json"

_INDEX = "job-watchdog: /healthz /readyz /metrics\n"


@dataclass(slots=True, kw_only=True)
class Pages:
    """Answers paths. `vitals` and `telemetry` are asked anew for each answer."""

    vitals: Callable[[], Vitals]
    telemetry: Callable[[], Telemetry]
    clock: Clock
    version: str
    _made: tuple[timedelta, Page] | None = None
    _making: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def __call__(self, path: str) -> Page:
        """Answer a path."""
        pages: dict[str, Callable[[], Awaitable[Page]]] = {
            "/": self._index,
            "/healthz": self._health,
            "/readyz": self._readiness,
            "/metrics": self._metrics,
        }
        page = pages.get(path)
        return Page(status=HTTPStatus.NOT_FOUND, body=_INDEX.encode()) if page is None else await page()

    async def _index(self) -> Page:
        return Page(body=_INDEX.encode())

    async def _health(self) -> Page:
        """200 if the watching can be relied on, else 503 with the reasons."""
        vitals = self.vitals()
        verdict = judge(vitals)
        return _page(verdict, vitals, well=verdict.healthy)

    async def _readiness(self) -> Page:
        """200 if rules are being evaluated, whatever the sources and channels do."""
        vitals = self.vitals()
        verdict = judge(vitals)
        return _page(verdict, vitals, well=verdict.ready)

    async def _metrics(self) -> Page:
        async with self._making:
            now = self.clock.monotonic()
            if self._made is None or now - self._made[0] >= KEPT:
                page = await asyncio.to_thread(_exposed, self.telemetry(), self.version)
                self._made = (now, page)
            return self._made[1]


def _exposed(telemetry: Telemetry, version: str) -> Page:
    from watchdog.web.metrics import CONTENT_TYPE, exposition  # heavy: only when somebody asks

    return Page(content_type=CONTENT_TYPE, body=exposition(telemetry, version))


def _page(verdict: Verdict, vitals: Vitals, *, well: bool) -> Page:
    values = {
        "healthy": verdict.healthy,
        "ready": verdict.ready,
        "reasons": verdict.reasons,
        "remarks": verdict.remarks,
        "summary": summary(vitals),
    }
    status = HTTPStatus.OK if well else HTTPStatus.SERVICE_UNAVAILABLE
    body = json.dumps(values, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
    return Page(status=status, content_type=JSON, body=body)
