"""Calls a URL outside and says whether it was heard: the transport of the heartbeat.

Each call has a client of its own, closed with it, so that a time-out leaks nothing. The URL is a
secret: it appears in no error. Knows nothing of when to call.
"""

import asyncio
from datetime import timedelta

import httpx

PATIENCE = timedelta(seconds=10)  # for one whole call
MAX_BODY = 4000  # characters
_REFUSED = "OK ("  # what hosted healthchecks answers, with 200, of a check it does not know


async def call_url(url: str, body: str, patience: timedelta = PATIENCE) -> str:
    """Send a body to a URL. Returns "" if it was heard, else why not, in words without the URL."""
    try:
        async with (
            asyncio.timeout(patience.total_seconds()),
            _client(patience) as client,
            client.stream("POST", url, content=body[:MAX_BODY].encode()) as answer,
        ):
            said = (await anext(answer.aiter_text(200), ""))[:200]
    except (TimeoutError, httpx.TimeoutException):
        return "timed out"
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        return f"unreachable ({type(error).__name__})"
    if not answer.is_success:
        return f"HTTP {answer.status_code}"
    return f"HTTP {answer.status_code}, {said}" if said.startswith(_REFUSED) else ""


def _client(patience: timedelta) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        timeout=patience.total_seconds(), follow_redirects=False, headers={"user-agent": "job-watchdog"}
    )
