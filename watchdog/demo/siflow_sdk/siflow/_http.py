"""How the stand-in SDK talks to the stand-in cloud: signed requests, retries, and no check of what comes.

Obeys the environment's proxies, as the real one does.
"""

import hashlib
import json
import os
import random
import signal
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ._errors import APIConnectionError, APITimeoutError, of_status
from ._models import Envelope

DEAF_SECONDS = 1800.0  # 600 s three times over
RETRIED = (408, 409, 429)


class Http:
    """One client's connection to its cluster."""

    def __init__(
        self, base: str, key: tuple[str, str], place: tuple[str, str], limits: tuple[float, int]
    ) -> None:
        self._base = base
        self._key_id, self._secret = key
        self._region, self._cluster = place
        self._timeout, self._retries = limits

    def get(self, path: str, query: Mapping[str, object], timeout: float | None) -> Any:
        """GET; the answer as far as it can be understood."""
        pairs = {name: value for name, value in query.items() if value is not None}
        target = f"{path}?{urllib.parse.urlencode(pairs)}" if pairs else path
        request = urllib.request.Request(self._base + target)  # noqa: S310 - loopback only
        return self._retried(request, timeout)

    def post(self, path: str, body: Mapping[str, object], timeout: float | None) -> Any:
        """POST JSON; the answer as far as it can be understood."""
        sent = {name: value for name, value in body.items() if value is not None}
        data = json.dumps(sent).encode()
        request = urllib.request.Request(self._base + path, data=data)  # noqa: S310 - loopback only
        request.add_header("Content-Type", "application/json")
        return self._retried(request, timeout)

    def _retried(self, request: urllib.request.Request, timeout: float | None) -> Any:
        for turn in range(self._retries + 1):
            try:
                return self._send(request, timeout or self._timeout)
            except urllib.error.HTTPError as error:
                with error:
                    said = error.read().decode("utf-8", "replace")
                if turn == self._retries or not (error.code in RETRIED or error.code >= 500):
                    raise of_status(error.code, _message(said), dict(error.headers)) from None
            except TimeoutError:
                if turn == self._retries:
                    raise APITimeoutError("Request timed out.") from None
            except OSError as error:
                if turn == self._retries:
                    raise _unreached(error) from None
        raise AssertionError

    def _send(self, request: urllib.request.Request, timeout: float) -> Any:
        stamp = str(int(datetime.now(UTC).timestamp()))  # noqa: TID251 - another program's clock
        nonce = "".join(random.choices("0123456789", k=10))  # noqa: S311 - as the real one does
        signature = hashlib.sha256((self._secret + nonce + stamp).encode()).hexdigest()
        for name, value in (
            ("AppID", self._key_id),
            ("Timestamp", stamp),
            ("Randstr", nonce),
            ("Signature", signature),
            ("X-Region", self._region),
            ("X-Cluster", self._cluster),
        ):
            request.add_header(name, value)
        with urllib.request.urlopen(request, timeout=timeout) as response:  # noqa: S310 - loopback only
            body, kind = response.read(), response.headers.get("content-type", "")
            _misbehave(response.headers.get("x-stand-in", ""))
        return Envelope(json.loads(body)) if kind.startswith("application/json") else body.decode()


def _unreached(error: OSError) -> APIConnectionError:
    reason = getattr(error, "reason", error)
    if isinstance(reason, TimeoutError):
        return APITimeoutError("Request timed out.")
    return APIConnectionError("Connection error.")


def _message(said: str) -> str:
    try:
        body = json.loads(said)
    except ValueError:
        return said[:200]
    return str(body.get("msg") or body.get("message") or body) if isinstance(body, dict) else said[:200]


def _misbehave(how: str) -> None:
    """Do what the stand-in cloud wishes to see survived."""
    if how == "deaf":
        threading.Event().wait(DEAF_SECONDS)
    if how == "die":
        os.kill(os.getpid(), signal.SIGKILL)
