"""Shared by the demo's tests: a clock that is set by hand, and plain HTTP without our own client."""

import asyncio
import json
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta

import pytest


class HandClock:
    """Stands still until moved."""

    def __init__(self) -> None:
        self.wall = datetime(2026, 9, 10, 4, 0, tzinfo=UTC)

    def now(self) -> datetime:
        return self.wall

    def monotonic(self) -> timedelta:
        return timedelta(hours=1)

    async def sleep(self, duration: timedelta) -> None:
        await asyncio.sleep(0)


def _exchange(url: str, body: object, method: str, key: str) -> tuple[int, dict[str, str], bytes]:
    data = None if body is None else json.dumps(body).encode()
    headers = {"authorization": f"Bearer {key}"} if key else {}
    request = urllib.request.Request(url, data=data, method=method, headers=headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=10) as response:
            return response.status, dict(response.headers), response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, dict(error.headers), error.read()


async def _ask(url: str, body: object = None, method: str = "GET", key: str = "stand-in-api-key"):
    """Return (status, headers, body), the body parsed if it is JSON."""
    status, headers, raw = await asyncio.to_thread(_exchange, url, body, method, key)
    try:
        return status, headers, json.loads(raw)
    except ValueError:
        return status, headers, raw.decode("utf-8", "replace")


@pytest.fixture
def ask():
    return _ask


@pytest.fixture
def clock() -> HandClock:
    return HandClock()
