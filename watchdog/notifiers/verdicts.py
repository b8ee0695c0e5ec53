"""Verdicts: what became of an attempt, from what the provider answered rather than from what Apprise says.

Pure. Owns how a recording, Apprise's own word and a missing answer are weighed against each other; single
answers are judged by `http_verdicts` and `smtp_verdicts`. Details may still hold secrets: the caller masks.
"""

from datetime import datetime

from watchdog.core.notifications import Answer, DeliveryResult
from watchdog.notifiers.bodies import ANSWERS_DECIDE, UNREAD_BY_APPRISE
from watchdog.notifiers.exchanges import Attempt, HttpExchange, SmtpStep
from watchdog.notifiers.http_verdicts import judge_exchange, lost_by_redirect
from watchdog.notifiers.smtp_verdicts import judge_conversation


def judge(attempt: Attempt, now: datetime) -> DeliveryResult:
    """Return the true outcome of one attempt. `now`: for a Retry-After that is a date."""
    smtp = tuple(step for step in attempt.exchanges if isinstance(step, SmtpStep))
    http = tuple(step for step in attempt.exchanges if isinstance(step, HttpExchange))
    if smtp:
        return judge_conversation(smtp, attempt.note)
    if http:
        return _judge_http(attempt, http, now)
    return _judge_nothing(attempt)


def _judge_http(attempt: Attempt, exchanges: tuple[HttpExchange, ...], now: datetime) -> DeliveryResult:
    lost = [exchange for exchange in exchanges[:-1] if lost_by_redirect(exchange)]
    # Where Apprise reads the answers itself and is content, only the last one is about the message: the
    # ones before it are log-ins, look-ups and its own repetitions.
    every = not attempt.claimed or attempt.schema in UNREAD_BY_APPRISE
    decisive = [*lost, *(exchanges if every else exchanges[-1:])]
    results = [judge_exchange(attempt.schema, exchange, now) for exchange in decisive]
    bad = [result for result in results if result.answer is not Answer.OK]
    if bad:
        return bad[-1]
    accepted = results[-1]
    if attempt.claimed:
        return accepted
    if len(exchanges) == 1 and attempt.schema in ANSWERS_DECIDE:
        return DeliveryResult(
            answer=Answer.OK, code=accepted.code, detail=f"{accepted.detail} (Apprise took it for a failure)"
        )
    return DeliveryResult(
        answer=Answer.UNKNOWN,
        code=accepted.code,
        detail=f"{accepted.detail}, but Apprise reports a failure: {attempt.note or 'no reason given'}",
    )


def _judge_nothing(attempt: Attempt) -> DeliveryResult:
    if attempt.observed and attempt.claimed:
        return DeliveryResult(
            answer=Answer.PERMANENT,
            detail=f"Apprise sent nothing to {attempt.schema}:// and called it a success; "
            "check the URL's options",
        )
    if attempt.observed:
        return DeliveryResult(
            answer=Answer.RETRY, detail=f"nothing was sent: {attempt.note or 'Apprise gave no reason'}"
        )
    if not attempt.claimed:
        return DeliveryResult(answer=Answer.UNKNOWN, detail=attempt.note or "Apprise gave no reason")
    if attempt.schema in ANSWERS_DECIDE:
        return DeliveryResult(
            answer=Answer.UNKNOWN,
            detail="Apprise reports success, but no answer was seen: "
            "this version of Apprise sends in a way that is not watched",
        )
    return DeliveryResult(
        answer=Answer.OK,
        detail=f"sent, as Apprise says; {attempt.schema}:// gives no answer that could be seen",
    )
