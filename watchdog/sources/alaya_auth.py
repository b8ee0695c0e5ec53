"""Alaya's three ways to say who asks. The only place that turns a secret into a header.

Knows method, path and time; nothing of what is asked, nothing of HTTP libraries.
"""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from watchdog.core.durations import to_ns
from watchdog.core.ruleset import Secret
from watchdog.sources.alaya_options import AlayaSettings

HMAC_SCHEME = "alayanew-HMAC-SHA256"


class Credentials(Protocol):
    """Signs one request."""

    def headers(self, method: str, path: str, now: datetime) -> Mapping[str, str]:
        """Return the headers to send. `path` is what follows the host, without the query."""
        ...


@dataclass(frozen=True, slots=True)
class Bearer:
    """`Authorization: Bearer <key>`, as every page of the new reference documents."""

    key: Secret

    def headers(self, method: str, path: str, now: datetime) -> Mapping[str, str]:
        """Return the header; the same for every request."""
        return {"authorization": f"Bearer {self.key!s}"}


@dataclass(frozen=True, slots=True)
class Plain:
    """Access and secret key in clear (inside TLS), as the older API documents."""

    access_key: Secret
    secret_key: Secret

    def headers(self, method: str, path: str, now: datetime) -> Mapping[str, str]:
        """Return the header; the same for every request."""
        pair = f"Credential={self.access_key!s},Signature={self.secret_key!s}"
        return {"authorization": f"plain {pair}"}


@dataclass(frozen=True, slots=True)
class Hmac:
    """A signature over time (Unix milliseconds), method and path; the server allows ±5 minutes."""

    access_key: Secret
    secret_key: Secret

    def headers(self, method: str, path: str, now: datetime) -> Mapping[str, str]:
        """Return the header for one request at one moment."""
        milliseconds = to_ns(now) // 1_000_000
        text = f"{milliseconds}|{method.upper()}|{path}"
        signature = hmac.new(str(self.secret_key).encode(), text.encode(), hashlib.sha256).hexdigest()
        return {"authorization": f"{HMAC_SCHEME} {self.access_key!s}:{milliseconds}:{signature}"}


def credentials(settings: AlayaSettings) -> Credentials:
    """Build the configured scheme; ValueError names what is missing or unusable, never its value."""
    if settings.auth == "bearer":
        return Bearer(_usable("api_key", settings.api_key, settings.name))
    pair = (
        _usable("access_key", settings.access_key, settings.name),
        _usable("secret_key", settings.secret_key, settings.name),
    )
    return Hmac(*pair) if settings.auth == "hmac" else Plain(*pair)


def _usable(name: str, secret: Secret, source: str) -> Secret:
    if not secret:
        variable = f"JOB_WATCHDOG_{source}_{name}".upper().replace("-", "_")
        raise ValueError(f"{name} is missing: set it in the environment as {variable}")
    if not all("!" <= letter <= "~" for letter in secret):
        raise ValueError(f"{name} contains characters that no header can carry")
    return secret
