"""HTTP verdicts: the table of statuses, waits, redirects and answers that never came."""

from datetime import UTC, datetime, timedelta

import pytest

from watchdog.core.notifications import Answer
from watchdog.notifiers.exchanges import Fault, HttpExchange
from watchdog.notifiers.http_verdicts import answer_for_status, judge_exchange

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def _exchange(status: int = 200, body: str = "", fault: Fault | None = None, **headers: str) -> HttpExchange:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return HttpExchange(
        method="POST", host="hooks.example", status=status, body=body, fault=fault, headers=named
    )


@pytest.mark.parametrize(
    ("answer", "statuses"),
    [
        (Answer.OK, [200, 201, 202, 204]),
        (Answer.RETRY, [408, 421, 425, 429, 500, 501, 502, 503, 504, 507, 520, 599]),
        (Answer.TOO_LONG, [413, 414]),
        (Answer.PERMANENT, [300, 301, 302, 304, 307, 400, 401, 402, 403, 404, 405, 409, 410, 415, 422, 451]),
    ],
)
def test_each_status_means_one_thing(answer: Answer, statuses: list[int]) -> None:
    assert {status: answer_for_status(status) for status in statuses} == dict.fromkeys(statuses, answer)


def test_the_detail_names_host_status_and_reason() -> None:
    result = judge_exchange("mmost", _exchange(403, '{"message":"Invalid webhook"}'), NOW)

    assert (result.answer, result.code) == (Answer.PERMANENT, "403")
    assert result.detail == "HTTP 403 from hooks.example: Invalid webhook"


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({"retry_after": "120"}, "", 120),
        ({"retry_after": "0.5"}, "", 0.5),
        ({"retry_after": "Mon, 30 Nov 2026 12:01:30 GMT"}, "", 90),
        ({"retry_after": "Mon, 30 Nov 2026 12:01:30 GMT", "date": "Mon, 30 Nov 2026 12:01:00 GMT"}, "", 30),
        ({"retry_after": "Mon, 30 Nov 2026 11:00:00 GMT"}, "", 0),
        ({"retry_after": "soon"}, '{"retry_after": 3}', 3),
        ({"retry_after": "-5"}, "", None),
        ({"retry_after": "1e400"}, "", None),
        ({"x_ratelimit_reset_after": "2.5"}, "", 2.5),
        ({"retry_after": "86400"}, "", 3600),
        ({}, '{"retry_after": 1e300}', 3600),
        ({}, "", None),
    ],
)
def test_retry_after_is_obeyed(headers: dict[str, str], body: str, seconds: float | None) -> None:
    result = judge_exchange("discord", _exchange(429, body, None, **headers), NOW)

    assert result.answer is Answer.RETRY
    assert result.retry_after == (None if seconds is None else timedelta(seconds=seconds))


def test_a_wait_is_kept_only_where_there_is_a_retry() -> None:
    assert judge_exchange("json", _exchange(403, retry_after="60"), NOW).retry_after is None


def test_a_redirect_is_refused_and_its_target_shown_without_path() -> None:
    result = judge_exchange("json", _exchange(302, location="https://new.example/login?token=abc"), NOW)

    assert result.answer is Answer.PERMANENT
    assert "redirect to https://new.example/… refused" in result.detail
    assert "token" not in result.detail


@pytest.mark.parametrize(
    ("schema", "status", "body", "answer"),
    [
        ("discord", 400, '{"content":["Must be 2000 or fewer in length."]}', Answer.TOO_LONG),
        ("tgram", 400, '{"ok":false,"error_code":400,"description":"message is too long"}', Answer.TOO_LONG),
        ("feishu", 400, '{"code":11232,"msg":"frequency limited"}', Answer.RETRY),
        ("slack", 403, "invalid_token", Answer.PERMANENT),
        ("json", 400, "message too long", Answer.PERMANENT),
        ("discord", 503, "too long", Answer.RETRY),
    ],
)
def test_a_body_can_soften_a_refusal(schema: str, status: int, body: str, answer: Answer) -> None:
    assert judge_exchange(schema, _exchange(status, body), NOW).answer is answer


def test_a_200_that_is_not_the_services_is_unknown() -> None:
    result = judge_exchange(
        "dingtalk", _exchange(200, "<html>Please log in to the hotel network</html>"), NOW
    )

    assert result.answer is Answer.UNKNOWN
    assert "not dingtalk's: Please log in" in result.detail


@pytest.mark.parametrize(
    ("fault", "answer"),
    [
        (Fault.RESOLVE, Answer.RETRY),
        (Fault.CONNECT, Answer.RETRY),
        (Fault.CONNECT_TIMEOUT, Answer.RETRY),
        (Fault.TLS, Answer.RETRY),
        (Fault.PROXY, Answer.RETRY),
        (Fault.READ_TIMEOUT, Answer.UNKNOWN),
        (Fault.DROPPED, Answer.UNKNOWN),
        (Fault.OTHER, Answer.UNKNOWN),
    ],
)
def test_a_missing_answer_is_unknown_only_once_the_request_was_sent(fault: Fault, answer: Answer) -> None:
    result = judge_exchange("json", _exchange(0, fault=fault), NOW)

    assert result.answer is answer
    assert str(fault) in result.detail


def test_a_status_before_the_break_still_counts() -> None:
    assert judge_exchange("json", _exchange(503, fault=Fault.DROPPED), NOW).answer is Answer.RETRY
    assert judge_exchange("json", _exchange(200, fault=Fault.DROPPED), NOW).answer is Answer.UNKNOWN
