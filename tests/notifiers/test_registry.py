"""The registry: console or Apprise, from a channel's URL."""

import subprocess
import sys
from typing import Any

import pytest

from watchdog.core.ruleset import ChannelSpec, Secret
from watchdog.errors import ConfigError
from watchdog.notifiers.apprise import AppriseNotifier
from watchdog.notifiers.console import ConsoleNotifier
from watchdog.notifiers.registry import build_notifier, inspect_channel


def _spec(url: str, **changes: Any) -> ChannelSpec:
    return ChannelSpec(name="team", url=Secret(url), **changes)


@pytest.mark.parametrize("url", ["console://", "console", " CONSOLE:// "])
def test_the_console_is_a_channel(url: str, clock: Any) -> None:
    notifier = build_notifier(_spec(url), clock)

    assert isinstance(notifier, ConsoleNotifier)
    assert notifier.name == "team"
    assert inspect_channel(url) == ()


def test_anything_else_is_apprises(clock: Any) -> None:
    notifier = build_notifier(_spec("wecombot://693a91f6-7aaa-4bc4-97a0-0ec2sifa5aaa", max_bytes=900), clock)

    assert isinstance(notifier, AppriseNotifier)
    assert (notifier.name, notifier.schema, notifier.limits.body) == ("team", "wecombot", 900)


def test_an_unusable_url_is_a_configuration_error_that_names_the_channel(clock: Any) -> None:
    with pytest.raises(ConfigError, match="channel team: there is no service slak://"):
        build_notifier(_spec("slak://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ"), clock)


def test_what_check_says_comes_from_the_same_place() -> None:
    assert inspect_channel("slak://x")[0].startswith("cannot be used")


def test_a_console_needs_no_apprise() -> None:
    code = (
        "import sys\n"
        "from watchdog.clock import SystemClock\n"
        "from watchdog.core.ruleset import ChannelSpec, Secret\n"
        "from watchdog.notifiers.registry import build_notifier\n"
        "build_notifier(ChannelSpec(name='c', url=Secret('console://')), SystemClock())\n"
        "assert not {'apprise', 'requests'} & set(sys.modules)\n"
    )

    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
