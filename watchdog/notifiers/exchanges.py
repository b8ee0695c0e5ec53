"""What was seen of one attempt to deliver: HTTP exchanges and SMTP steps, as plain values.

Written by `recorder`, judged by `verdicts`. Holds no request text: only what the other side said.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Fault(StrEnum):
    """Why no whole answer came; the values are shown."""

    RESOLVE = "the name does not resolve"
    CONNECT = "cannot connect"
    CONNECT_TIMEOUT = "timed out while connecting"
    TLS = "the TLS handshake failed"
    PROXY = "the proxy failed"
    READ_TIMEOUT = "no answer in time"
    DROPPED = "the connection broke before the answer"
    UNSUPPORTED = "the server cannot do what the URL asks for"
    OTHER = "the request failed"

    @property
    def after_sending(self) -> bool:
        """Whether the message may have been read by the other side."""
        return self in (Fault.READ_TIMEOUT, Fault.DROPPED, Fault.OTHER)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpExchange:
    """One request and what came back. `status` 0 = no answer; `fault` and `status` = it broke off."""

    method: str
    host: str
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)  # the few that matter, lower case
    body: str = ""  # the first 4 KB
    fault: Fault | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmtpStep:
    """One command and its reply. verb "body" is the reply to the message itself, "connect" the banner."""

    verb: str
    host: str = ""
    code: int = 0  # 0 = no reply
    text: str = ""
    fault: Fault | None = None


Exchange = HttpExchange | SmtpStep


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """All that is known of one attempt.

    claimed: what Apprise says became of it.
    observed: the service's traffic passes through what `recorder` watches, so that an empty
    recording means that nothing was sent.
    note: Apprise's own warnings, for people; may still hold secrets.
    """

    schema: str
    exchanges: tuple[Exchange, ...]
    claimed: bool
    observed: bool
    note: str = ""
