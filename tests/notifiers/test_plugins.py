"""One service is loaded without the others, and is the one that Apprise itself would choose."""

import subprocess
import sys

import pytest

from watchdog.notifiers.plugins import every_plugin, parsed, plugin_of

COMMON = (
    "json", "jsons", "form", "xmls", "mailto", "mailtos", "slack", "discord", "tgram", "dingtalk", "wecombot",
    "feishu", "lark", "msteams", "opsgenie", "pagerduty", "ntfy", "ntfys", "gotify", "pover", "matrixs",
    "workflows", "jira", "syslog", "mmosts", "rockets", "twilio", "schan", "pushdeer", "bark",
)  # fmt: skip

ALONE = """
import sys
from watchdog.notifiers.plugins import plugin_of
print(plugin_of("json").__name__)
print(sum(name.startswith("apprise.plugins.") for name in sys.modules))
"""


@pytest.mark.parametrize("schema", COMMON)
def test_it_is_the_class_that_apprise_would_choose(schema: str) -> None:
    manager = every_plugin()

    known = {own: manager[own] for own in manager.schemas()}
    assert plugin_of(schema) is known.get(schema)


def test_every_tenth_service_is_found_too() -> None:
    manager = every_plugin()

    for schema in sorted(manager.schemas())[::10]:
        assert plugin_of(schema) is manager[schema]


def test_an_unknown_one_is_none() -> None:
    assert plugin_of("nosuchthing") is None
    assert plugin_of("") is None


def test_a_web_address_is_taken_by_the_service_that_recognises_it() -> None:
    options = parsed("https://discord.com/api/webhooks/0123456789/ABCDEFGHIJKLMNOPQRSTUVWXYZ-0123456789")

    assert options is not None
    assert options["schema"] == "discord"


def test_the_others_are_not_loaded() -> None:
    ran = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=True)

    name, modules = ran.stdout.split()
    assert name == "NotifyJSON"
    assert int(modules) < 20
