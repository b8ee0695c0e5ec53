"""What one HTTP exchange says about a message: status, headers, then the service's own words.

Pure. The table of statuses is here; what bodies mean is in `bodies`.
"""

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from watchdog.core.notifications import Answer, DeliveryResult
from watchdog.notifiers.bodies import MUST_CONFIRM, Reading, read_body
from watchdog.notifiers.exchanges import Fault, HttpExchange

LONGEST_WAIT = timedelta(hours=1)  # whatever a provider asks for, we look again after this

_RETRY = frozenset({408, 421, 425, 429})
_TOO_LONG = frozenset({413, 414})
_DROPS_THE_BODY = frozenset({301, 302, 303})


def answer_for_status(status: int) -> Answer:
    """Return what an HTTP status alone means. 1xx never gets here; unknown statuses are final."""
    if 200 <= status < 300:
        return Answer.OK
    if status in _RETRY or status >= 500:
        return Answer.RETRY
    if status in _TOO_LONG:
        return Answer.TOO_LONG
    return Answer.PERMANENT


def lost_by_redirect(exchange: HttpExchange) -> bool:
    """Whether whoever follows this answer sends a GET without the message."""
    return exchange.status in _DROPS_THE_BODY and exchange.method not in ("GET", "HEAD")


def judge_exchange(schema: str, exchange: HttpExchange, now: datetime) -> DeliveryResult:
    """Return what became of a message, from the one exchange that carried it."""
    if exchange.fault and exchange.status < 300:
        return _broken(exchange, exchange.fault)
    reading = read_body(schema, exchange.body)
    answer = answer_for_status(exchange.status)
    if answer is Answer.OK:
        return _accepted(schema, exchange, reading, now)
    if 300 <= exchange.status < 400:
        return _redirected(exchange)
    if answer is Answer.PERMANENT and reading.answer in (Answer.RETRY, Answer.TOO_LONG):
        answer = reading.answer
    return _result(answer, exchange, reading, now)


def _accepted(schema: str, exchange: HttpExchange, reading: Reading, now: datetime) -> DeliveryResult:
    if reading.accepted is False:
        return _result(reading.answer or Answer.PERMANENT, exchange, reading, now)
    if reading.accepted is None and schema in MUST_CONFIRM:
        excerpt = f": {reading.text}" if reading.text else " is empty"
        return DeliveryResult(
            answer=Answer.UNKNOWN,
            code=str(exchange.status),
            detail=f"{_where(exchange)}, but the answer is not {schema}'s{excerpt}",
        )
    confirmed = f", {reading.code}" if reading.code else ""
    return DeliveryResult(answer=Answer.OK, code=str(exchange.status), detail=_where(exchange) + confirmed)


def _broken(exchange: HttpExchange, fault: Fault) -> DeliveryResult:
    # A failed TLS check is RETRY, not PERMANENT: certificates get renewed and clocks get set, and a
    # message given up for that is lost; giving up is the outbox's business, by age.
    answer = Answer.UNKNOWN if exchange.status or fault.after_sending else Answer.RETRY
    reason = f": {exchange.detail}" if exchange.detail else ""
    may = "; it may have arrived" if answer is Answer.UNKNOWN else ""
    return DeliveryResult(answer=answer, detail=f"{exchange.host}: {fault}{reason}{may}")


def _redirected(exchange: HttpExchange) -> DeliveryResult:
    target = urlsplit(exchange.headers.get("location", ""))
    there = f" to {target.scheme}://{target.hostname}/…" if target.hostname else ""
    return DeliveryResult(
        answer=Answer.PERMANENT,
        code=str(exchange.status),
        detail=f"{_where(exchange)}: redirect{there} refused; put the final address into the channel's URL",
    )


def _result(answer: Answer, exchange: HttpExchange, reading: Reading, now: datetime) -> DeliveryResult:
    code = reading.code if exchange.status < 300 and reading.code else str(exchange.status)
    said = ": ".join(filter(None, (reading.code, reading.text)))
    return DeliveryResult(
        answer=answer,
        code=code,
        detail=_where(exchange) + (f": {said}" if said else ""),
        retry_after=_retry_after(exchange, reading, now) if answer is Answer.RETRY else None,
    )


def _where(exchange: HttpExchange) -> str:
    return f"HTTP {exchange.status} from {exchange.host}"


def _retry_after(exchange: HttpExchange, reading: Reading, now: datetime) -> timedelta | None:
    """Return how long the provider wants us to wait: header first, then body."""
    header = exchange.headers.get("retry-after", "").strip()
    seconds = _seconds(header)
    if seconds is None and header:
        seconds = _seconds_until(header, _date(exchange.headers.get("date", "")) or now)
    if seconds is None:
        seconds = reading.retry_after
    if seconds is None:
        seconds = _seconds(exchange.headers.get("x-ratelimit-reset-after", ""))
    if seconds is None:
        return None
    return min(timedelta(seconds=min(seconds, 1e6)), LONGEST_WAIT)


def _seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None


def _seconds_until(text: str, now: datetime) -> float | None:
    moment = _date(text)
    return max(0.0, (moment - now).total_seconds()) if moment else None


def _date(text: str) -> datetime | None:
    """Read an HTTP date; one without a zone is UTC."""
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
