"""Bodies: each service's own words for yes, not now, never and too long."""

import json

import pytest

from watchdog.core.notifications import Answer
from watchdog.notifiers.bodies import MUST_CONFIRM, UNREAD_BY_APPRISE, read_body


def _body(**fields: object) -> str:
    return json.dumps(fields)


@pytest.mark.parametrize(
    ("schema", "body"),
    [
        ("dingtalk", _body(errcode=0, errmsg="ok")),
        ("wecombot", _body(errcode=0, errmsg="ok")),
        ("wechat", _body(errcode=0, errmsg="ok", msgid="m")),
        ("feishu", _body(code=0, msg="success", data={})),
        ("lark", _body(StatusCode=0, StatusMessage="success")),
        ("schan", _body(code=0, message="", data={"pushid": "1"})),
        ("pushdeer", _body(code=0, content={"result": ['{"success":"ok"}']})),
        ("pushplus", _body(code=200, msg="ok")),
        ("bark", _body(code=200, message="success")),
        ("slack", "ok"),
        ("slack", _body(ok=True, ts="1")),
        ("tgram", _body(ok=True, result={})),
    ],
)
def test_an_acceptance_is_recognised(schema: str, body: str) -> None:
    assert read_body(schema, body).accepted is True


@pytest.mark.parametrize(
    ("schema", "body", "answer", "code"),
    [
        ("dingtalk", _body(errcode=130101, errmsg="no"), Answer.RETRY, "errcode 130101"),
        ("dingtalk", _body(errcode=410100, errmsg="发送速度太快而限流"), Answer.RETRY, "errcode 410100"),
        ("dingtalk", _body(errcode=90018, errmsg="forbidden for now"), Answer.RETRY, "errcode 90018"),
        ("dingtalk", _body(errcode=-1, errmsg="系统繁忙"), Answer.RETRY, "errcode -1"),
        ("dingtalk", _body(errcode=310000, errmsg="keywords not in content"), None, "errcode 310000"),
        ("dingtalk", _body(errcode=300001, errmsg="token is not exist"), None, "errcode 300001"),
        ("dingtalk", _body(errcode=460101, errmsg="message too long"), Answer.TOO_LONG, "errcode 460101"),
        ("wecombot", _body(errcode=45009, errmsg="api freq out of limit"), Answer.RETRY, "errcode 45009"),
        ("wecombot", _body(errcode="45009", errmsg="as text"), Answer.RETRY, "errcode 45009"),
        ("wecombot", _body(errcode=93000, errmsg="invalid webhook url"), None, "errcode 93000"),
        (
            "wecombot",
            _body(errcode=45002, errmsg="content size out of limit"),
            Answer.TOO_LONG,
            "errcode 45002",
        ),
        (
            "wecombot",
            _body(errcode=40058, errmsg="text.content exceed max length 2048. invalid Request Parameter"),
            Answer.TOO_LONG,
            "errcode 40058",
        ),
        ("wecombot", _body(errcode=40058, errmsg="invalid Request Parameter"), None, "errcode 40058"),
        ("wechat", _body(errcode=42001, errmsg="access_token expired"), Answer.RETRY, "errcode 42001"),
        ("feishu", _body(code=11232, msg="frequency limited"), Answer.RETRY, "code 11232"),
        ("feishu", _body(code=9499, msg="too many request"), Answer.RETRY, "code 9499"),
        ("feishu", _body(code=9499, msg="Bad Request"), None, "code 9499"),
        ("lark", _body(code=19021, msg="sign match fail"), None, "code 19021"),
        ("feishu", _body(code=19024, msg="Key Words Not Found"), None, "code 19024"),
        ("schan", _body(code=40001, message="[AUTH]超过当天的发送次数限制[5]"), Answer.RETRY, "code 40001"),
        ("schan", _body(code=40001, message="[AUTH]用户不存在或者权限不足"), None, "code 40001"),
        ("pushdeer", _body(code=80501, error="key not found"), None, "code 80501"),
        ("pushdeers", _body(code=0, content={"result": []}), None, "code 0"),
        ("pushplus", _body(code=903, msg="无效的用户token"), None, "code 903"),
        ("pushplus", _body(code=900, msg="用户账号使用受限"), Answer.RETRY, "code 900"),
        ("barks", _body(code=400, message="failed to get device token"), None, "code 400"),
        (
            "tgram",
            _body(ok=False, error_code=403, description="Forbidden: bot was blocked"),
            None,
            "error_code 403",
        ),
        (
            "tgram",
            _body(ok=False, error_code=400, description="Bad Request: message is too long"),
            Answer.TOO_LONG,
            "error_code 400",
        ),
        ("slack", _body(ok=False, error="ratelimited"), Answer.RETRY, ""),
        ("slack", _body(ok=False, error="msg_too_long"), Answer.TOO_LONG, ""),
        ("slack", _body(ok=False, error="invalid_auth"), None, ""),
        ("slack", "invalid_payload", None, ""),
    ],
)
def test_a_refusal_inside_a_200_is_recognised(
    schema: str, body: str, answer: Answer | None, code: str
) -> None:
    reading = read_body(schema, body)

    assert (reading.accepted, reading.answer, reading.code) == (False, answer, code)
    assert reading.text


def test_telegram_says_how_long_to_wait() -> None:
    body = _body(
        ok=False,
        error_code=429,
        description="Too Many Requests: retry after 35",
        parameters={"retry_after": 35},
    )

    reading = read_body("tgram", body)

    assert (reading.answer, reading.retry_after) == (Answer.RETRY, 35)


@pytest.mark.parametrize(
    ("schema", "body", "seconds"),
    [
        ("discord", _body(message="You are being rate limited.", retry_after=0.65), 0.65),
        ("matrix", _body(errcode="M_LIMIT_EXCEEDED", retry_after_ms=2000), 2.0),
        ("discord", _body(message="no"), None),
    ],
)
def test_waits_in_bodies_are_read(schema: str, body: str, seconds: float | None) -> None:
    assert read_body(schema, body).retry_after == seconds


@pytest.mark.parametrize("body", ["", "<html>Log in</html>", "[1]", "null", '"text"', "{", "[" * 100_000])
@pytest.mark.parametrize("schema", sorted(MUST_CONFIRM - {"slack"}))
def test_anything_else_confirms_nothing(schema: str, body: str) -> None:
    assert read_body(schema, body).accepted is None


def test_ones_own_endpoint_is_never_read() -> None:
    reading = read_body("json", _body(errcode=45009, message="rate limit, too long"))

    assert (reading.accepted, reading.answer) == (None, None)


def test_texts_are_one_short_line_without_markup() -> None:
    text = read_body("discord", "<html><body><h1>Bad\nGateway</h1>" + "x" * 500).text

    assert text.startswith("Bad Gateway x")
    assert len(text) == 200


def test_what_apprise_does_not_read_we_do() -> None:
    assert {"dingtalk", "wecombot", "schan", "pushdeer", "pushdeers"} <= UNREAD_BY_APPRISE & MUST_CONFIRM
