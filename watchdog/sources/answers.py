"""HTTP answers as values, and what their status, type and headers mean; pure, no I/O.

Shared by every HTTP source. Knows no API's envelope.
"""

import codecs
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from watchdog.core.health import Failure
from watchdog.errors import SourceError

LONGEST_RETRY_AFTER = timedelta(days=1)

# Asking again changes nothing until a person has done something.
HOPELESS = frozenset(
    {
        Failure.KEY_MISSING,
        Failure.KEY_UNKNOWN,
        Failure.KEY_EXPIRED,
        Failure.KEY_DISABLED,
        Failure.SIGNATURE,
        Failure.FORBIDDEN,
        Failure.NOT_FOUND,
        Failure.BAD_REQUEST,
        Failure.UNSUPPORTED,
    }
)

# Sent by some gateways although JSON is UTF-8; any other word in its place is ignored.
_OTHER_CHARSETS = frozenset(
    {"gbk", "gb2312", "gb18030", "big5", "utf-16", "utf-16le", "utf-16be", "utf-32", "iso-8859-1", "latin1"}
)

_BY_STATUS = {
    401: Failure.KEY_UNKNOWN,
    403: Failure.FORBIDDEN,
    404: Failure.NOT_FOUND,
    407: Failure.UNREACHABLE,  # the proxy wants credentials
    408: Failure.TIMEOUT,
    410: Failure.NOT_FOUND,
    425: Failure.SERVER_ERROR,
    429: Failure.THROTTLED,
    504: Failure.TIMEOUT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswer:
    """One whole answer. `body` is decompressed; `retry_after` is None when absent or unreadable."""

    status: int
    content_type: str = "application/json"
    body: bytes = b""
    retry_after: timedelta | None = None
    location: str = ""

    @property
    def media_type(self) -> str:
        """The type without parameters, lower case: `text/html`; '' if none was sent."""
        return self.content_type.partition(";")[0].strip().lower()

    @property
    def charset(self) -> str:
        """The declared character set in lower case, or ''."""
        for parameter in self.content_type.split(";")[1:]:
            name, _, value = parameter.partition("=")
            if name.strip().lower() == "charset":
                return value.strip().strip("\"'").lower()
        return ""


def failure(kind: Failure, detail: str = "", *, retry_after: timedelta | None = None) -> SourceError:
    """Build the error of a kind, marked with whether asking again can help."""
    return SourceError(kind, detail, retryable=kind not in HOPELESS, retry_after=retry_after)


def failure_of_status(status: int) -> Failure | None:
    """Name an HTTP status (or a business status of the same form); None for 2xx."""
    if 200 <= status < 300:
        return None
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if 300 <= status < 400:
        return Failure.NOT_JSON
    if 400 <= status < 500:
        return Failure.BAD_REQUEST
    return Failure.SERVER_ERROR


def json_text(answer: HttpAnswer) -> bytes:
    """Return the body as UTF-8 JSON text; a body without a declared type is taken at its word.

    Raises:
        SourceError: not JSON (its detail is the type that came), or bytes that are not text.
    """
    kind = answer.media_type
    if kind and kind != "text/json" and not (kind.startswith("application/") and kind.endswith("json")):
        raise failure(Failure.NOT_JSON, kind[:40])
    body = answer.body
    if not body.strip():
        raise failure(Failure.NOT_JSON, "empty body")
    charset = answer.charset
    if charset in _OTHER_CHARSETS:
        try:
            body = body.decode(charset).encode("utf-8", "replace")
        except UnicodeDecodeError as error:
            raise failure(Failure.MALFORMED, f"the text is not {charset}") from error
    return body.removeprefix(codecs.BOM_UTF8)


def parse_retry_after(text: str, date: str, *, now: datetime) -> timedelta | None:
    """Read a Retry-After header: seconds or an HTTP date; None when absent or unreadable.

    A date is compared with the answer's own `Date` header if there is one, so that a wrong clock on
    either side does not matter. Never negative, never over a day.
    """
    text = text.strip()
    if not text:
        return None
    if text.isascii() and text.isdigit():
        wait = timedelta(seconds=min(int(text[:9]), 100_000))
    else:
        until = _http_date(text)
        if until is None:
            return None
        wait = until - (_http_date(date) or now)
    return min(max(wait, timedelta()), LONGEST_RETRY_AFTER)


def _http_date(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
