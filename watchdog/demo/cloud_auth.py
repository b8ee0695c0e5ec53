"""The stand-in's own check of who asks: bearer, HMAC and plain, as the vendor's clients send them.

Independent of the adapter's signing on purpose: a mistake there must show here.
"""

import hashlib
import hmac
from dataclasses import dataclass
from datetime import datetime, timedelta

from watchdog.core.durations import from_ns
from watchdog.demo.faults import envelope
from watchdog.demo.httpd import Reply, Request, json_reply

WINDOW = timedelta(minutes=5)
HMAC_PREFIX = "alayanew-HMAC-SHA256 "


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """What the stand-in accepts. The values are made up and no secrets. scheme `none`: anybody."""

    scheme: str = "bearer"
    api_key: str = "stand-in-api-key"
    access_key: str = "stand-in-ak"
    secret_key: str = "stand-in-sk"  # noqa: S105 - made up


def refusal(keys: Keys, request: Request, now: datetime) -> Reply | None:
    """Return the 401 with the documented business code, or None if the request may pass."""
    if keys.scheme == "none":
        return None
    header = request.headers.get("authorization", "")
    if not header:
        return _refuse(40401, "login credential expired")
    check = {"bearer": _bearer, "hmac": _hmac, "plain": _plain}[keys.scheme]
    return check(keys, header, request, now)


def _refuse(code: int, message: str) -> Reply:
    return json_reply(envelope({}, code, message), 401)


def _bearer(keys: Keys, header: str, request: Request, now: datetime) -> Reply | None:
    if not header.startswith("Bearer "):
        return _refuse(40001, "authorization header malformed")
    return None if header == f"Bearer {keys.api_key}" else _refuse(40006, "API key not found")


def _plain(keys: Keys, header: str, request: Request, now: datetime) -> Reply | None:
    if header == f"plain Credential={keys.access_key},Signature={keys.secret_key}":
        return None
    return _refuse(40006, "API key not found")


def _hmac(keys: Keys, header: str, request: Request, now: datetime) -> Reply | None:
    parts = header.removeprefix(HMAC_PREFIX).split(":")
    if not header.startswith(HMAC_PREFIX) or len(parts) != 3 or not parts[1].isdigit():
        return _refuse(40001, "authorization header malformed")
    access_key, stamp, signature = parts
    if access_key != keys.access_key:
        return _refuse(40006, "API key not found")
    if abs(from_ns(int(stamp) * 1_000_000) - now) > WINDOW:
        return _refuse(40002, "timestamp outside the window")
    message = "|".join((stamp, request.method.upper(), request.raw_path))
    expected = hmac.digest(keys.secret_key.encode(), message.encode(), hashlib.sha256).hex()
    return None if signature == expected else _refuse(40003, "signature mismatch")
