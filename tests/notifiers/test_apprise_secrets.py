"""Secrets: no token, password or message in logs at any level, in details, in reprs, in errors."""

import json
import logging
import traceback
from collections.abc import Callable
from typing import Any

import pytest

from watchdog.core.notifications import Answer, Message
from watchdog.errors import ConfigError
from watchdog.notifiers.apprise import AppriseNotifier, hush_libraries

Make = Callable[..., Message]

LONG = "Zq7Xw2Lm9Kp4Rt8Vb3Nc6Yd1"
CASES = {
    f"dingtalk://{LONG}/": [LONG],
    f"dingtalk://SECabcdef123456@{LONG}/": [LONG, "SECabcdef123456"],
    "wecombot://693a91f6-7aaa-4bc4-97a0-0ec2sifa5aaa/": ["693a91f6-7aaa-4bc4-97a0-0ec2sifa5aaa"],
    f"lark://{LONG}/": [LONG],
    f"feishu://{LONG}/": [LONG],
    f"schan://SCT{LONG}/": [f"SCT{LONG}"],
    f"pushdeers://PDU{LONG}/": [f"PDU{LONG}"],
    f"slack://T1JJ3T3L2/A1BRTD4JD/{LONG}/#alerts": [LONG, "A1BRTD4JD"],
    f"discord://417429632418316298/{LONG}/": [LONG, "417429632418316298"],
    f"tgram://123456789:{LONG}abcdefghij/-1001/": [f"{LONG}abcdefghij"],
    f"mmosts://mattermost.example/{LONG}": [LONG],
    f"gotifys://gotify.example/{LONG}": [LONG],
    f"jsons://ops:hunter22@hooks.example/{LONG}?+X-Key=Secret99Value": [LONG, "hunter22", "Secret99Value"],
    f"ntfys://ops:hunter22@ntfy.example/{LONG}": [LONG, "hunter22"],
}


@pytest.fixture
def everything_logged(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """Capture all that reaches the root at DEBUG, as `--log-level debug` would."""
    hush_libraries()
    caplog.set_level(logging.DEBUG)
    return caplog


@pytest.mark.parametrize("url", CASES, ids=lambda url: url.partition("://")[0])
@pytest.mark.parametrize("mode", ["refused", "accepted", "unreachable"])
async def test_no_secret_gets_out(
    url: str,
    mode: str,
    clock: Any,
    hosted: Any,
    reply: Any,
    message: Make,
    everything_logged: pytest.LogCaptureFixture,
) -> None:
    echo = json.dumps({"errcode": 310000, "error": f"bad token {' '.join(CASES[url])}", "url": url})
    hosted.plays(
        reply(403 if mode == "refused" else 200, echo, mode="drop" if mode == "unreachable" else "answer")
    )
    channel = AppriseNotifier("team", url, clock)

    result = await channel.send(message(body="private words of a log line"))
    await channel.close()

    assert result.answer is not Answer.OK or mode == "accepted"
    shown = "\n".join([everything_logged.text, repr(result), repr(channel), str(channel.__dict__)])
    for secret in CASES[url]:
        assert secret.lower() not in shown.lower()
    assert "private words" not in shown


async def test_a_host_that_does_not_resolve_shows_the_host_only(
    clock: Any, message: Make, everything_logged: pytest.LogCaptureFixture
) -> None:
    channel = AppriseNotifier("team", f"jsons://ops:hunter22@nowhere.invalid/{LONG}?key={LONG}", clock)

    result = await channel.send(message())
    await channel.close()

    assert result.answer is Answer.RETRY
    assert result.detail.startswith("nowhere.invalid: the name does not resolve")
    assert LONG not in everything_logged.text + repr(result)
    assert "hunter22" not in everything_logged.text + repr(result)


async def test_a_mail_password_is_shown_nowhere(
    clock: Any, mail_server: Any, message: Make, everything_logged: pytest.LogCaptureFixture
) -> None:
    server = mail_server(password="right-horse")
    logging.getLogger("mail").setLevel(logging.WARNING)  # the test's server logs what it hears
    channel = AppriseNotifier("mail", server.url(user="ops:wrong-horse"), clock)

    result = await channel.send(message())
    await channel.close()

    for secret in ("wrong-horse", "AG9wcwB3cm9uZy1ob3JzZQ==", "d3JvbmctaG9yc2U="):
        assert secret not in everything_logged.text + repr(result)


def test_a_refused_url_is_not_in_the_error_nor_in_its_traceback(clock: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        AppriseNotifier("team", f"wecombot://{LONG} {LONG}", clock)

    text = "".join(traceback.format_exception(caught.value))
    assert LONG not in text


def test_debug_lines_of_the_libraries_reach_no_handler(everything_logged: pytest.LogCaptureFixture) -> None:
    for name in ("apprise", "urllib3", "urllib3.connectionpool", "requests"):
        logging.getLogger(name).debug("POST /send?access_token=%s", LONG)
        logging.getLogger(name).info("POST /send?access_token=%s", LONG)

    assert everything_logged.text == ""
