"""Redaction: masks known secrets in a text before it is logged, shown or stored.

Pure. Knows how a secret may look after percent-encoding, JSON or HTML escaping, and which parts of a
channel's URL are secret. Which secrets exist is the caller's business; secrets that nobody named (in log
lines of a job) are the business of another module.
"""

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus, unquote

MASK = "****"
SHORTEST = 3  # characters; masking anything shorter would shred every text

_URL = re.compile(r"(?P<scheme>\b[a-zA-Z][a-zA-Z0-9+.-]*)://(?P<rest>[^\s'\"<>()]*)")
_POOL_PATH = re.compile(r"(with url: )\S+")  # as urllib3 words its errors
_BENIGN_KEYS = frozenset(
    {"action", "batch", "cto", "emojis", "footer", "format", "from", "icon", "image", "lang", "level", "mode"}
    | {"name", "optional", "overflow", "port", "priority", "redirect", "region", "retry", "rto", "severity"}
    | {"smtp", "sound", "store", "tags", "to", "ts", "tz", "verify", "wait"}
)
_BENIGN_WORDS = frozenset(
    {"alert", "alerts", "api", "bot", "cgi-bin", "channel", "channels", "general", "hook", "hooks"}
    | {"localhost", "message", "notify", "push", "robot", "send", "services", "topic", "webhook", "webhooks"}
    | {"workflows"}
)


class Redactor:
    """Masks a fixed set of secrets, in any case and in the usual encodings."""

    __slots__ = ("_pattern", "_secrets")

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        kept = {str(secret).strip() for secret in secrets}
        self._secrets = frozenset(secret for secret in kept if len(secret) >= SHORTEST)
        forms = {form for secret in self._secrets for form in _forms(secret)}
        longest_first = sorted(forms, key=lambda form: (-len(form), form))
        self._pattern = re.compile("|".join(map(re.escape, longest_first)), re.IGNORECASE) if forms else None

    def mask(self, text: str) -> str:
        """Return the text with every known secret replaced by `MASK`."""
        return self._pattern.sub(MASK, text) if self._pattern else text

    def plus(self, secrets: Iterable[str]) -> "Redactor":
        """Return a redactor that knows these secrets too."""
        return Redactor((*self._secrets, *secrets))

    def __repr__(self) -> str:
        return f"Redactor({len(self._secrets)} secrets)"


def hide_urls(text: str) -> str:
    """Cut every URL in a text to scheme and host: `https://host/…`; the rest may be a token."""
    return _POOL_PATH.sub(r"\1…", _URL.sub(_short_url, text))


def url_secrets(url: str, *, wide: bool = False) -> frozenset[str]:
    """Return the parts of a channel's URL that must not be shown.

    The URL itself, passwords, and those parts that look like tokens. `wide` takes every part that is
    not plainly harmless (a channel's name, a topic): right for texts about this one channel, too
    much for a whole log, where it would mask common words.
    """
    _, separator, rest = url.strip().partition("://")
    if not rest:
        return frozenset() if separator else frozenset({url.strip()} - {""})
    authority, path, query = _split(rest)
    secrets = {url.strip(), *_authority_secrets(authority, wide), *_path_secrets(path, wide)}
    for pair in filter(None, re.split(r"[&;]", query)):
        key, _, value = pair.partition("=")
        if key.lower().lstrip("+-:") not in _BENIGN_KEYS and (wide or _looks_random(value)):
            secrets.add(value)
    decoded = {unquote(secret) for secret in secrets}
    return frozenset(secret for secret in secrets | decoded if len(secret) >= SHORTEST)


def _split(rest: str) -> tuple[str, str, str]:
    """Split what follows `://` into authority, path and query; a fragment counts as path."""
    address, _, query = rest.partition("?")
    authority, _, path = address.partition("/")
    return authority, path, query


def _authority_secrets(authority: str, wide: bool) -> Iterator[str]:
    userinfo, _, address = authority.rpartition("@")
    user, _, password = userinfo.partition(":")
    if password:
        yield password
        yield userinfo
        yield base64.b64encode(unquote(userinfo).encode()).decode()
    if user and (wide or not password) and "@" not in unquote(user):
        yield user
    host, _, port = address.partition(":")
    if port and not port.isdigit():  # a token with a colon in it, not host and port
        yield address
        yield port
    if not _is_hostname(host) and (wide or _looks_random(host)):
        yield host


def _path_secrets(path: str, wide: bool) -> Iterator[str]:
    segments = [segment for segment in path.split("/") if segment]
    for segment in segments:
        plain = segment.lower() in _BENIGN_WORDS or "@" in unquote(segment)
        if not plain and (_looks_random(segment) or (wide and len(segment) >= 6)):
            yield segment
            yield from (part for part in segment.split(":") if _looks_random(part))
    if len(segments) > 1 and any(map(_looks_random, segments)):
        yield "/".join(segments)


def _is_hostname(host: str) -> bool:
    return "." in host or host.lower() in _BENIGN_WORDS or host.startswith("[")


def _looks_random(text: str) -> bool:
    """Whether a text is more likely a token than a word."""
    if len(text) >= 20:
        return True
    has_digit = any(map(str.isdigit, text))
    mixed = text.lower() != text and text.upper() != text
    return len(text) >= 8 and (has_digit or mixed)


def _forms(secret: str) -> Iterator[str]:
    yield secret
    for encode in (quote, quote_plus, unquote, html.escape, _fully_quoted, _json_escaped):
        yield encode(secret)


def _fully_quoted(text: str) -> str:
    return quote(text, safe="")


def _json_escaped(text: str) -> str:
    return json.dumps(text)[1:-1]


def _short_url(match: re.Match[str]) -> str:
    authority, path, query = _split(match["rest"])
    host = authority.rpartition("@")[2]
    if not _is_hostname(host.partition(":")[0]):
        return f"{match['scheme']}://…"
    return f"{match['scheme']}://{host}" + ("/…" if path or query else "")
