"""Apprise's own plugins against a server that misbehaves as the real services do."""

import json
import socket
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from watchdog.core.notifications import Answer, DeliveryResult, LimitUnit, Message, MessageKind
from watchdog.core.rules import Severity
from watchdog.notifiers.apprise import AppriseNotifier

DINGTALK = "dingtalk://0123456789abcdef0123456789abcdef/"
WECOM = "wecombot://693a91f6-7aaa-4bc4-97a0-0ec2sifa5aaa/"
FEISHU = "feishu://a1b2c3d4e5f6a7b8c9d0/"
SCHAN = "schan://SCT1234567890abcdef/"
PUSHDEER = "pushdeers://PDU1234TABCDEFGHIJKLMNOP/"
PUSHPLUS = "pushplus://0123456789abcdef0123456789abcdef"
TELEGRAM = "tgram://123456789:abcdefghijklmnopqrstuvwxyz123456789/-1001234567890/"
SLACK = "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#alerts"
DISCORD = "discord://417429632418316298/JHZ7lQml277CDHmQKMHI8qBe7bk2ZwO5UKjCiOAF7711o33MyqU344Qpgv7YTpadV_js"
PAGERDUTY = "pagerduty://" + "A" * 32 + "@" + "B" * 20 + "/watchdog/gpu"
OPSGENIE = "opsgenie://0123456789abcdef-0123-4567-89ab-cdef01234567/"

Make = Callable[..., Message]
Send = Callable[..., Any]


@pytest.fixture
async def send(clock: Any, message: Make) -> Any:
    """Send one message to a URL and return the result; channels are kept by URL and closed at the end."""
    channels: dict[str, AppriseNotifier] = {}

    async def deliver(url: str, **changes: Any) -> DeliveryResult:
        channel = channels.setdefault(url, AppriseNotifier("team", url, clock))
        return await channel.send(message(**changes))

    yield deliver
    for channel in channels.values():
        await channel.close()


def _text(**fields: Any) -> str:
    return json.dumps(fields)


@pytest.mark.parametrize(
    ("url", "body"),
    [
        (DINGTALK, _text(errcode=310000, errmsg="keywords not in content")),
        (DINGTALK, _text(errcode=300001, errmsg="token is not exist")),
        (WECOM, _text(errcode=93000, errmsg="invalid webhook url")),
        (SCHAN, _text(code=40001, message="[AUTH]用户不存在或者权限不足")),
        (PUSHDEER, _text(code=80501, error="no such key")),
        (PUSHPLUS, _text(code=903, msg="无效的用户token")),
        (FEISHU, _text(code=19021, msg="sign match fail")),
        (TELEGRAM, _text(ok=False, error_code=403, description="Forbidden: bot was kicked")),
        (SLACK, "invalid_token"),
    ],
)
async def test_a_refusal_inside_a_200_is_never_a_success(
    url: str, body: str, send: Send, hosted: Any, reply: Any
) -> None:
    hosted.plays(reply(200, body))

    result = await send(url)

    assert result.answer is Answer.PERMANENT
    assert len(hosted.seen) == 1


@pytest.mark.parametrize(
    ("url", "body"),
    [
        (DINGTALK, _text(errcode=0, errmsg="ok")),
        (WECOM, _text(errcode=0, errmsg="ok")),
        (SCHAN, _text(code=0, message="")),
        (PUSHDEER, _text(code=0, content={"result": ["{}"]})),
        (PUSHPLUS, _text(code=200, msg="ok")),
        (FEISHU, _text(code=0, msg="success")),
        (TELEGRAM, _text(ok=True, result={})),
        (SLACK, "ok"),
        (DISCORD, ""),
        (PAGERDUTY, _text(status="success")),
    ],
)
async def test_an_acceptance_is_a_success(url: str, body: str, send: Send, hosted: Any, reply: Any) -> None:
    hosted.plays(reply(202 if url == PAGERDUTY else 200, body))

    result = await send(url)

    assert result.answer is Answer.OK, result
    assert "64 GPUs" in hosted.seen[0].body.replace("+", " ").replace("&nbsp;", " ")


async def test_wecom_says_busy_twice_then_takes_it(send: Send, hosted: Any, reply: Any) -> None:
    busy = reply(200, _text(errcode=45009, errmsg="api freq out of limit"))
    hosted.plays(busy, busy, reply(200, _text(errcode=0, errmsg="ok")))

    results = [await send(WECOM) for _ in range(3)]

    assert [result.answer for result in results] == [Answer.RETRY, Answer.RETRY, Answer.OK]
    assert [result.code for result in results] == ["errcode 45009", "errcode 45009", "200"]
    assert len(hosted.seen) == 3


async def test_1500_chinese_characters_reach_wecom_within_its_bytes(
    send: Send, hosted: Any, reply: Any, clock: Any
) -> None:
    hosted.plays(reply(200, _text(errcode=0)))
    limits = AppriseNotifier("team", WECOM, clock).limits
    title = "告警"
    room = limits.body - len(f"{title}\n".encode())
    cut = ("显" * 1500).encode()[:room].decode(errors="ignore")

    assert (limits.body, limits.title, limits.unit) == (2048, 0, LimitUnit.BYTES)
    assert (await send(WECOM, title=title, body=cut)).answer is Answer.OK
    content = hosted.seen[0].json["text"]["content"]
    assert content == f"{title}\n{cut}"
    assert len(content.encode()) <= 2048


async def test_an_overlong_message_is_sent_whole_and_its_refusal_noticed(
    send: Send, hosted: Any, reply: Any
) -> None:
    hosted.plays(reply(200, _text(errcode=40058, errmsg="text.content exceed max length 2048")))

    result = await send(WECOM, body="显" * 1500)

    assert result.answer is Answer.TOO_LONG
    assert len(hosted.seen) == 1  # neither split nor cut by Apprise
    assert hosted.seen[0].json["text"]["content"].count("显") == 1500


@pytest.mark.parametrize("url", [f"{DINGTALK}?overflow=split&retry=3&wait=9&redirect=yes&format=markdown"])
async def test_options_that_would_undo_this_are_overridden(
    url: str, send: Send, hosted: Any, reply: Any
) -> None:
    hosted.plays(reply(302, headers={"Location": "https://elsewhere.example/x"}))

    result = await send(url, body="x_y_z " * 1200)

    assert result.answer is Answer.PERMANENT
    assert "redirect to https://elsewhere.example/… refused" in result.detail
    assert len(hosted.seen) == 1
    assert hosted.seen[0].json["msgtype"] == "text"
    assert "x_y_z" in hosted.seen[0].json["text"]["content"]


async def test_discord_limits_are_reported_and_nothing_sleeps(send: Send, hosted: Any, reply: Any) -> None:
    limited = _text(message="You are being rate limited.", retry_after=7.5)
    hosted.plays(reply(429, limited, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "4102444800"}))

    result = await send(DISCORD)

    assert (result.answer, result.retry_after) == (Answer.RETRY, timedelta(seconds=7.5))


async def test_markup_in_a_text_stays_text(send: Send, hosted: Any, reply: Any) -> None:
    hosted.plays(reply(200, _text(ok=True)))

    await send(TELEGRAM, body="loss <nan> 3*4*5 a_b_c \\n")

    assert "&lt;nan&gt; 3*4*5 a_b_c \\n" in hosted.seen[0].json["text"]


async def test_a_slack_text_cannot_call_the_whole_channel(send: Send, hosted: Any, reply: Any) -> None:
    hosted.plays(reply(200, "ok"))

    await send(SLACK, body="<!channel> hi")

    assert "<!channel>" not in hosted.seen[0].body


async def test_a_message_without_body_is_sent_all_the_same(send: Send, webhook: Any) -> None:
    assert (await send(webhook.url(), body="")).answer is Answer.OK
    assert "gpu-idle" in webhook.seen[0].json["message"]


async def test_texts_that_cannot_be_encoded_are_sent_all_the_same(send: Send, webhook: Any) -> None:
    result = await send(webhook.url(), title="two\nlines", body="bad \ud800 nul \x00 end")

    assert result.answer is Answer.OK
    assert webhook.seen[0].json["title"] == "two lines"
    assert webhook.seen[0].json["message"] == "bad ? nul  end"


async def test_pagerduty_is_opened_and_closed_under_the_incidents_key(
    send: Send, hosted: Any, reply: Any
) -> None:
    hosted.plays(reply(202, _text(status="success")))

    await send(PAGERDUTY, body="loss 3.2")
    await send(PAGERDUTY, kind=MessageKind.CLOSED, body="loss 1.2 ok")
    await send(PAGERDUTY, incident="other", dedup="watchdog-other", severity=Severity.INFO)

    events = [(seen.json["event_action"], seen.json["dedup_key"]) for seen in hosted.seen]
    assert events == [
        ("trigger", "watchdog-k3x9q2mf"),
        ("resolve", "watchdog-k3x9q2mf"),
        ("trigger", "watchdog-other"),
    ]


async def test_an_incident_that_is_over_already_is_opened_then_closed(
    send: Send, hosted: Any, reply: Any
) -> None:
    hosted.plays(reply(202, _text(status="success")))

    assert (await send(PAGERDUTY, kind=MessageKind.COMBINED)).answer is Answer.OK
    assert [seen.json["event_action"] for seen in hosted.seen] == ["trigger", "resolve"]


async def test_a_page_that_could_not_be_opened_is_not_closed(send: Send, hosted: Any, reply: Any) -> None:
    hosted.plays(reply(429, headers={"Retry-After": "30"}))

    result = await send(PAGERDUTY, kind=MessageKind.COMBINED)

    assert (result.answer, result.retry_after) == (Answer.RETRY, timedelta(seconds=30))
    assert len(hosted.seen) == 1


async def test_opsgenie_closing_what_it_does_not_know_is_no_success(
    send: Send, hosted: Any, reply: Any
) -> None:
    hosted.plays(reply(202, _text(requestId="43a29c5c")))

    unknown = await send(OPSGENIE, kind=MessageKind.CLOSED)
    opened = await send(OPSGENIE, severity=Severity.INFO)
    closed = await send(OPSGENIE, kind=MessageKind.CLOSED)

    assert (unknown.answer, opened.answer, closed.answer) == (Answer.PERMANENT, Answer.OK, Answer.OK)
    assert "sent nothing" in unknown.detail
    assert [seen.path.rpartition("/")[2].partition("?")[0] for seen in hosted.seen] == ["alerts", "close"]
    assert hosted.seen[0].json["alias"] == "watchdog-k3x9q2mf"


async def test_with_storage_opsgenie_can_close_after_a_restart(
    hosted: Any, reply: Any, clock: Any, message: Make, tmp_path: Any
) -> None:
    hosted.plays(reply(202, _text(requestId="43a29c5c")))
    before = AppriseNotifier("oncall", OPSGENIE, clock, storage=tmp_path)
    assert (await before.send(message())).answer is Answer.OK
    await before.close()

    after = AppriseNotifier("oncall", OPSGENIE, clock, storage=tmp_path)

    assert (await after.send(message(kind=MessageKind.CLOSED))).answer is Answer.OK
    assert "/close" in hosted.seen[-1].path
    await after.close()


async def test_a_page_of_html_from_a_proxy_is_not_taken_for_dingtalk(
    send: Send, hosted: Any, reply: Any
) -> None:
    hosted.plays(reply(200, "<html><title>Sign in</title></html>"))

    assert (await send(DINGTALK)).answer is Answer.UNKNOWN


async def test_broken_connections_are_told_apart(
    send: Send, webhook: Any, reply: Any, closed_port: int
) -> None:
    webhook.plays(
        reply(mode="drop"), reply(200, "half", mode="break_off"), reply(500, "half", mode="break_off")
    )

    dropped, half, half_of_error = [await send(webhook.url()) for _ in range(3)]
    refused = await send(f"json://127.0.0.1:{closed_port}/x")
    unresolved = await send("json://nowhere.invalid/x")

    assert (dropped.answer, half.answer, half_of_error.answer) == (
        Answer.UNKNOWN,
        Answer.UNKNOWN,
        Answer.RETRY,
    )
    assert (refused.answer, unresolved.answer) == (Answer.RETRY, Answer.RETRY)
    assert "Connection refused" in refused.detail
    assert "does not resolve" in unresolved.detail


async def test_a_read_time_out_is_unknown(send: Send, webhook: Any, reply: Any) -> None:
    webhook.plays(reply(mode="hang"))

    result = await send(webhook.url(rest="/hook?rto=0.05"))

    assert result.answer is Answer.UNKNOWN
    assert "no answer in time" in result.detail


async def test_plain_text_where_tls_is_expected_is_named(send: Send, webhook: Any) -> None:
    result = await send(webhook.url("jsons"))

    assert result.answer is Answer.RETRY
    assert "TLS handshake failed" in result.detail


async def test_only_so_many_open_pages_are_kept_ready(
    send: Send, hosted: Any, reply: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("watchdog.notifiers.apprise._KEPT_SERVICES", 2)
    hosted.plays(reply(202, _text(status="success")))

    for incident in ("a", "b", "c", "a"):
        assert (await send(PAGERDUTY, dedup=incident)).answer is Answer.OK

    assert [seen.json["dedup_key"] for seen in hosted.seen] == ["a", "b", "c", "a"]


async def test_without_a_key_the_incidents_id_is_the_key(send: Send, hosted: Any, reply: Any) -> None:
    hosted.plays(reply(202, _text(status="success")))

    await send(PAGERDUTY, dedup="")

    assert hosted.seen[0].json["dedup_key"] == "k3x9q2mf"


async def test_a_crash_inside_apprise_is_an_answer(send: Send, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_args: object, **_options: object) -> None:
        raise RuntimeError("https://hooks.example/T0ken987654321 is odd")

    monkeypatch.setattr("apprise.Apprise.notify", crash)

    result = await send("jsons://hooks.example/T0ken987654321")

    assert result.answer is Answer.RETRY
    assert result.detail == "nothing was sent: RuntimeError: https://hooks.example/… is odd"


async def test_a_transport_that_gives_no_answer_is_believed(send: Send) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.settimeout(10)

        result = await send(f"rsyslog://127.0.0.1:{listener.getsockname()[1]}/local7")

        assert result.answer is Answer.OK
        assert "56 of 64 GPUs" in listener.recv(4096).decode()


async def test_one_service_object_serves_a_channel_with_state(send: Send, webhook: Any, reply: Any) -> None:
    """Matrix logs in once, not once a message."""
    webhook.plays(
        reply(200, _text(access_token="t", home_server="h", user_id="@u:h", room_id="!r:h", event_id="$1"))
    )
    url = f"matrix://u:hunter22@127.0.0.1:{webhook.port}/!room:h?mode=off"

    first, second = await send(url), await send(url)

    assert (first.answer, second.answer) == (Answer.OK, Answer.OK), (first, second)
    assert sum("/login" in seen.path for seen in webhook.seen if seen.method == "POST") == 1
