"""Limits: the unit in which each service counts."""

import pytest

from watchdog.core.notifications import ChannelLimits, LimitUnit
from watchdog.notifiers.limits import CAP, CONSOLE, limits_for

BYTES, CHARACTERS = LimitUnit.BYTES, LimitUnit.CHARACTERS


@pytest.mark.parametrize(
    ("schema", "body", "unit"),
    [
        ("wecombot", 2048, BYTES),
        ("wechat", 2048, BYTES),
        ("dingtalk", CAP, BYTES),
        ("feishu", CAP, BYTES),
        ("ntfys", 4096, BYTES),
        ("discord", 2000, CHARACTERS),
        ("tgram", 4000, CHARACTERS),
        ("slack", CAP, BYTES),
        ("mmost", 4000, CHARACTERS),
        ("pagerduty", 1024, CHARACTERS),
        ("mailto", CAP, BYTES),
        ("json", CAP, BYTES),
    ],
)
def test_known_services(schema: str, body: int, unit: LimitUnit) -> None:
    limits = limits_for(schema, body=1, title=1)

    assert (limits.body, limits.unit) == (body, unit)


def test_a_service_without_a_title_says_so() -> None:
    titles = {
        schema: limits_for(schema).title for schema in ("wecombot", "discord", "tgram", "mmost", "pagerduty")
    }

    assert set(titles.values()) == {0}


def test_unknown_services_are_as_their_plugin_claims() -> None:
    assert limits_for("twilio", body=160) == ChannelLimits(body=160, title=0, unit=CHARACTERS)
    assert limits_for("join", body=1000, title=250) == ChannelLimits(body=900, title=100, unit=CHARACTERS)
    assert limits_for("kook", body=5000, markdown=True) == ChannelLimits(body=3750, title=0, unit=CHARACTERS)
    assert limits_for("big", body=32_768, title=250) == ChannelLimits(body=CAP, title=200, unit=BYTES)


def test_the_users_own_limit_is_in_bytes() -> None:
    assert limits_for("discord", max_bytes=500) == ChannelLimits(body=500, title=0, unit=BYTES)
    assert limits_for("wecombot", max_bytes=9000).body == 2048


def test_the_console_takes_anything_sensible() -> None:
    assert CONSOLE.body >= 1_000_000
