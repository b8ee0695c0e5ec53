"""Verdicts: what the provider answered against what Apprise says, and silence of either."""

from datetime import UTC, datetime

import pytest

from watchdog.core.notifications import Answer, DeliveryResult
from watchdog.notifiers.exchanges import Attempt, Fault, HttpExchange, SmtpStep
from watchdog.notifiers.verdicts import judge

OK = HttpExchange(method="POST", host="h.example", status=200, body="ok")
BAD = HttpExchange(method="POST", host="h.example", status=404)
BUSY = HttpExchange(method="POST", host="h.example", status=429)


def _judge(
    *exchanges: HttpExchange | SmtpStep, schema: str = "json", claimed: bool = True, observed: bool = True
) -> DeliveryResult:
    attempt = Attempt(
        schema=schema, exchanges=exchanges, claimed=claimed, observed=observed, note="Apprise's reason"
    )
    return judge(attempt, datetime(2026, 11, 30, tzinfo=UTC))


def test_success_with_no_request_is_a_lost_message() -> None:
    result = _judge(schema="opsgenie")

    assert result.answer is Answer.PERMANENT
    assert "sent nothing" in result.detail


def test_failure_with_no_request_can_be_tried_again() -> None:
    result = _judge(claimed=False)

    assert result.answer is Answer.RETRY
    assert "Apprise's reason" in result.detail


@pytest.mark.parametrize(("claimed", "answer"), [(True, Answer.OK), (False, Answer.UNKNOWN)])
def test_a_transport_that_nobody_can_watch_is_believed(claimed: bool, answer: Answer) -> None:
    assert _judge(schema="syslog", claimed=claimed, observed=False).answer is answer


def test_a_web_service_that_went_out_of_sight_is_unknown() -> None:
    assert _judge(schema="dingtalk", observed=False).answer is Answer.UNKNOWN


@pytest.mark.parametrize("claimed", [True, False])
def test_a_refusal_beats_apprises_word(claimed: bool) -> None:
    assert _judge(BAD, claimed=claimed).answer is Answer.PERMANENT


def test_a_repetition_inside_the_plugin_that_worked_is_a_success() -> None:
    assert _judge(BUSY, OK, schema="discord").answer is Answer.OK


def test_where_apprise_is_blind_every_answer_counts() -> None:
    refused = HttpExchange(method="POST", host="h.example", status=200, body='{"errcode":310000}')
    fine = HttpExchange(method="POST", host="h.example", status=200, body='{"errcode":0}')

    assert _judge(refused, fine, schema="dingtalk").answer is Answer.PERMANENT
    assert _judge(fine, fine, schema="dingtalk").answer is Answer.OK


def test_an_earlier_failure_explains_apprises_failure() -> None:
    assert _judge(BAD, OK, schema="twist", claimed=False).answer is Answer.PERMANENT


def test_an_accepting_answer_beats_apprises_failure_where_it_is_conclusive() -> None:
    assert _judge(OK, schema="json", claimed=False).answer is Answer.OK
    result = _judge(OK, schema="twist", claimed=False)
    assert result.answer is Answer.UNKNOWN
    assert "Apprise's reason" in result.detail


def test_a_followed_redirect_lost_the_message() -> None:
    away = HttpExchange(method="POST", host="h.example", status=302)
    landed = HttpExchange(method="GET", host="h.example", status=200)
    kept = HttpExchange(method="POST", host="h.example", status=307)

    assert _judge(away, landed).answer is Answer.PERMANENT
    assert _judge(kept, OK).answer is Answer.OK


def _smtp(
    *steps: tuple[str, int] | tuple[str, int, str] | tuple[str, Fault], claimed: bool = True
) -> DeliveryResult:
    made = []
    for verb, outcome, *words in steps:
        fault = outcome if isinstance(outcome, Fault) else None
        code = outcome if isinstance(outcome, int) else 0
        text = str(words[0]) if words else ""
        made.append(SmtpStep(verb=verb, host="mail.example", code=code, text=text, fault=fault))
    return _judge(*made, schema="mailto", claimed=claimed)


GREETING = (("connect", 220), ("ehlo", 250))
ENVELOPE = (*GREETING, ("mail", 250), ("rcpt", 250), ("data", 354))


@pytest.mark.parametrize(
    ("steps", "answer", "code"),
    [
        ((*ENVELOPE, ("body", 250)), Answer.OK, "SMTP 250"),
        ((*ENVELOPE, ("body", 250), ("quit", Fault.DROPPED)), Answer.OK, "SMTP 250"),
        ((*GREETING, ("mail", 250), ("rcpt", 451), ("rset", 250), ("quit", 221)), Answer.RETRY, "SMTP 451"),
        ((*GREETING, ("mail", 250), ("rcpt", 550), ("rset", 250)), Answer.PERMANENT, "SMTP 550"),
        ((*GREETING, ("mail", 530)), Answer.PERMANENT, "SMTP 530"),
        ((*GREETING, ("mail", 552)), Answer.TOO_LONG, "SMTP 552"),
        ((*ENVELOPE, ("body", 552, "5.2.2 mailbox full")), Answer.RETRY, "SMTP 552"),
        ((*ENVELOPE, ("body", 554, "5.3.4 message size exceeds limit")), Answer.TOO_LONG, "SMTP 554"),
        ((*ENVELOPE, ("body", 554, "spam")), Answer.PERMANENT, "SMTP 554"),
        ((("connect", 421),), Answer.RETRY, "SMTP 421"),
        ((("connect", 554),), Answer.PERMANENT, "SMTP 554"),
        ((*GREETING, ("auth", 334), ("auth", 535), ("quit", 221)), Answer.PERMANENT, "SMTP 535"),
        ((*GREETING, ("auth", 454), ("quit", 221)), Answer.RETRY, "SMTP 454"),
        ((*GREETING, ("auth", 535), ("auth", 235), *ENVELOPE[2:], ("body", 250)), Answer.OK, "SMTP 250"),
        ((("connect", Fault.READ_TIMEOUT),), Answer.RETRY, "SMTP"),
        ((*GREETING, ("starttls", Fault.UNSUPPORTED)), Answer.PERMANENT, "SMTP"),
        ((*GREETING, ("starttls", 220), ("starttls", Fault.TLS)), Answer.RETRY, "SMTP"),
        ((*ENVELOPE, ("body", Fault.READ_TIMEOUT)), Answer.UNKNOWN, "SMTP"),
        ((*ENVELOPE, ("body", Fault.DROPPED)), Answer.UNKNOWN, "SMTP"),
        (ENVELOPE, Answer.UNKNOWN, ""),
        (GREETING, Answer.RETRY, ""),
    ],
)
def test_mail_is_delivered_once_the_server_took_it(
    steps: tuple[tuple[str, int], ...], answer: Answer, code: str
) -> None:
    result = _smtp(*steps, claimed=answer is Answer.OK)

    assert (result.answer, result.code) == (answer, code)


@pytest.mark.parametrize(("refusal", "answer"), [(550, Answer.PERMANENT), (451, Answer.UNKNOWN)])
def test_a_mail_that_reached_some_recipients_is_not_a_success(refusal: int, answer: Answer) -> None:
    second = (("mail", 250), ("rcpt", refusal))

    assert _smtp(*ENVELOPE, ("body", 250), *second, claimed=False).answer is answer
    assert _smtp(*ENVELOPE, ("body", 250), *ENVELOPE[2:], claimed=False).answer is Answer.UNKNOWN
