"""What the text of an HTTP answer says, service by service.

Pure. Several services answer 200 to everything and put the truth into the body; others explain a refusal
there. Codes are those the services document or were seen to send; what is not listed is read by its words.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from watchdog.core.notifications import Answer

_TOO_LONG = re.compile(
    r"too.?long|too.?large|max(imum)?.?length|length.{0,20}(limit|exceed)|exceed.{0,30}(length|size)"
    r"|(content|message|text) size|or fewer in length"
    r"|过长|超长|超过.{0,12}(长度|字节|字符)|长度.{0,6}(超|限制)",
    re.IGNORECASE,
)
_THROTTLED = re.compile(
    r"rate.?limit|too many (requests?|messages)|too fast|frequency|freq out of|try again later"
    r"|限流|频率|频繁|次数|稍后再试|重复发送",
    re.IGNORECASE,
)
_MESSAGE_FIELDS = (
    "errmsg",
    "msg",
    "message",
    "description",
    "detail",
    "error",
    "errors",
    "StatusMessage",
    "info",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a body says. accepted None = nothing about it. answer: what a refusal means, if it tells."""

    accepted: bool | None = None
    answer: Answer | None = None
    code: str = ""
    text: str = ""
    retry_after: float | None = None  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class _Codes:
    """A service that puts a number into its body."""

    fields: tuple[str, ...]  # where the number is: the first that is there
    accepted: int = 0
    retry: frozenset[int] = frozenset()
    too_long: frozenset[int] = frozenset()
    final_words: tuple[str, ...] = ()  # in the text: PERMANENT, although the code is in `retry`


_DINGTALK = _Codes(
    fields=("errcode",),
    retry=frozenset({-1, 90018, 130101, 410100}),
    too_long=frozenset({460101}),
)
_WECOM = _Codes(
    fields=("errcode",),
    retry=frozenset({-1, 40014, 42001, 45009, 45033, 45047}),
    too_long=frozenset({45002}),  # 40058 is any bad parameter: its text tells
)
_FEISHU = _Codes(
    fields=("code", "StatusCode"),
    retry=frozenset({2200, 9499, 11232, 230020, 99991400}),
    too_long=frozenset({230025}),
    final_words=("bad request",),  # 9499 stands for both
)
_PUSHPLUS = _Codes(fields=("code",), accepted=200, retry=frozenset({500, 900, 999}))
_BARK = _Codes(fields=("code",), accepted=200, retry=frozenset({429, 500, 502, 503, 504}))
_PLAIN = _Codes(fields=("code",))

_CODES: Mapping[str, _Codes] = {
    "dingtalk": _DINGTALK,
    "wecombot": _WECOM,
    "wechat": _WECOM,
    "feishu": _FEISHU,
    "lark": _FEISHU,
    "pushplus": _PUSHPLUS,
    "wecom": _PUSHPLUS,  # Apprise's other name for it
    "schan": _PLAIN,
    "pushdeer": _PLAIN,
    "pushdeers": _PLAIN,
    "bark": _BARK,
    "barks": _BARK,
}
STATUS_ONLY = frozenset({"json", "jsons", "form", "forms", "xml", "xmls"})  # the user's own endpoints
UNREAD_BY_APPRISE = frozenset({"dingtalk", "wecombot", "schan", "pushdeer", "pushdeers", "bark", "barks"})
MUST_CONFIRM = (frozenset(_CODES) | {"slack", "tgram"}) - {"bark", "barks"}
ANSWERS_DECIDE = (
    frozenset(_CODES)
    | STATUS_ONLY
    | {"slack", "tgram", "discord", "gotify", "gotifys", "ntfy", "ntfys", "mmost", "mmosts", "pagerduty"}
)


def read_body(schema: str, body: str) -> Reading:
    """Read an answer's body as this service means it."""
    if schema in STATUS_ONLY:
        return Reading(text=_excerpt(body))
    data = _parse(body)
    special = _SPECIAL.get(schema)
    if special is not None:
        return special(data, body)
    codes = _CODES.get(schema)
    number = _number(data, codes.fields) if codes else None
    if codes is None or number is None:
        return _by_words(data, body)
    return _by_code(codes, number, data, body)


def _by_code(codes: _Codes, number: int, data: Mapping[str, object], body: str) -> Reading:
    words = _message(data) or _excerpt(body)
    code = f"{codes.fields[0]} {number}"
    if number == codes.accepted:
        if codes is _PLAIN and _reached_nobody(data):
            return Reading(
                accepted=False, code=code, text="accepted, but no device is registered for the key"
            )
        return Reading(accepted=True, code=code)
    answer = _meaning(words)
    if number in codes.too_long:
        answer = Answer.TOO_LONG
    elif number in codes.retry and not any(word in words.lower() for word in codes.final_words):
        answer = Answer.RETRY
    return Reading(accepted=False, answer=answer, code=code, text=words)


def _reached_nobody(data: Mapping[str, object]) -> bool:
    """PushDeer lists one result per device."""
    content = data.get("content")
    return isinstance(content, dict) and content.get("result") == []


def _slack(data: Mapping[str, object], body: str) -> Reading:
    if body.strip().lower() == "ok" or data.get("ok") is True:
        return Reading(accepted=True)
    error = str(data.get("error") or _excerpt(body))
    if error in {"msg_too_long", "msg_blocks_too_long"}:
        answer: Answer | None = Answer.TOO_LONG
    elif error in {"ratelimited", "rate_limited", "internal_error", "fatal_error", "service_unavailable"}:
        answer = Answer.RETRY
    else:
        answer = _meaning(error)
    return Reading(accepted=False if body.strip() else None, answer=answer, text=error)


def _telegram(data: Mapping[str, object], body: str) -> Reading:
    if data.get("ok") is True:
        return Reading(accepted=True)
    words = _message(data) or _excerpt(body)
    parameters = data.get("parameters")
    wait = _seconds(parameters.get("retry_after")) if isinstance(parameters, dict) else None
    number = _number(data, ("error_code",))
    answer = Answer.RETRY if wait is not None or (number or 0) >= 500 else _meaning(words)
    return Reading(
        accepted=False if "ok" in data else None,
        answer=answer,
        code=f"error_code {number}" if number is not None else "",
        text=words,
        retry_after=wait,
    )


_SPECIAL: Mapping[str, Callable[[Mapping[str, object], str], Reading]] = {"slack": _slack, "tgram": _telegram}


def _by_words(data: Mapping[str, object], body: str) -> Reading:
    words = _message(data) or _excerpt(body)
    wait = _seconds(data.get("retry_after"))
    if wait is None and (milliseconds := _seconds(data.get("retry_after_ms"))) is not None:
        wait = milliseconds / 1000
    return Reading(answer=_meaning(body), text=words, retry_after=wait)


def _meaning(words: str) -> Answer | None:
    if _TOO_LONG.search(words):
        return Answer.TOO_LONG
    return Answer.RETRY if _THROTTLED.search(words) else None


def _parse(body: str) -> Mapping[str, object]:
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def _number(data: Mapping[str, object], fields: tuple[str, ...]) -> int | None:
    for name in fields:
        value = data.get(name)
        if isinstance(value, bool):
            continue
        if isinstance(value, int) or (isinstance(value, str) and re.fullmatch(r"-?\d{1,9}", value)):
            return int(value)
    return None


def _seconds(value: object) -> float | None:
    return (
        float(value)
        if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
        else None
    )


def _message(data: Mapping[str, object]) -> str:
    found = (data.get(name) for name in _MESSAGE_FIELDS)
    return next((_excerpt(str(value)) for value in found if value), "")


def _excerpt(text: str) -> str:
    """One short line of a text, without markup."""
    line = " ".join(re.sub(r"<[^<>]*>", " ", text).split())
    return line if len(line) <= 200 else line[:199] + "…"
