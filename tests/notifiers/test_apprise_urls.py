"""What `check` says about a channel's URL: errors, warnings, and no secret."""

import pytest
from apprise.manager_plugins import NotificationManager

from watchdog.notifiers.apprise import inspect_url

TOKEN = "T0kenT0kenT0kenT0ken"


@pytest.mark.parametrize(
    "url",
    [
        "json://hooks.example/path",
        "mailto://u:hunter22@smtp.example.com/?from=wd@example.com&to=ops@example.com",
        "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#alerts",
        "wecombot://693a91f6-7aaa-4bc4-97a0-0ec2sifa5aaa/?overflow=upstream&format=text&retry=0&wait=0.0&redirect=no",
        "pagerduty://" + "A" * 32 + "@" + "B" * 20,
    ],
)
def test_a_good_url_has_no_remarks(url: str) -> None:
    assert inspect_url(url) == ()


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", "it is not a URL"),
        ("just words", "it is not a URL"),
        ("slak://a/b/c", "there is no service slak://"),
        ("json://", "it is not a complete json:// URL"),
        ("https://oapi.dingtalk.com/robot/send?access_token=" + TOKEN, "plain web address"),
        ("json://a.example/x, json://b.example/y", "several URLs"),
        ("wecombot://no spaces " + TOKEN, "An invalid WeCom Bot Webhook Key … was specified"),
        (f"tgram://{TOKEN}/1", "is not a complete tgram:// URL|invalid"),
    ],
)
def test_a_bad_url_cannot_be_used_and_the_reason_shows_no_token(url: str, reason: str) -> None:
    (remark,) = inspect_url(url)

    assert remark.startswith("cannot be used: ")
    assert any(part in remark for part in reason.split("|"))
    assert TOKEN not in remark


def test_a_missing_package_is_named() -> None:
    (remark,) = inspect_url("mqtt://broker.example/alerts")

    assert remark.startswith("cannot be used: mqtt:// needs the Python package paho-mqtt")


@pytest.mark.parametrize(
    ("option", "named"),
    [
        ("overflow=split", "overflow"),
        ("retry=3", "retry"),
        ("wait=5", "wait"),
        ("format=markdown", "format"),
        ("redirect=yes", "redirect"),
        ("optional=yes", "optional"),
        ("emojis=yes", "emojis"),
    ],
)
def test_an_option_that_would_undo_a_promise_is_not_used(option: str, named: str) -> None:
    (remark,) = inspect_url(f"json://hooks.example/path?{option}")

    assert remark.startswith(f"option '{named}' is not used: ")


@pytest.mark.parametrize(
    "url",
    [
        "pagerduty://" + "A" * 32 + "@" + "B" * 20 + "?dedup=mine&action=trigger",
        "opsgenie://0123456789abcdef-0123-4567-89ab-cdef01234567/?alias=mine&action=new",
    ],
)
def test_incident_keys_are_ours(url: str) -> None:
    remarks = inspect_url(url)

    assert len(remarks) == 2
    assert all("under its own key" in remark for remark in remarks)


def test_several_recipients_in_one_url_are_refused() -> None:
    (remark,) = inspect_url("mailto://smtp.example.com/?from=wd@example.com&to=a@example.com,b@example.com")

    assert remark.startswith("cannot be used: it has 2 recipients")


def test_plain_http_is_warned_of() -> None:
    (remark,) = inspect_url("pushdeer://PDU1234TABCDEFGHIJKLMNOP")

    assert "pushdeers://" in remark


def test_a_service_of_another_system_says_so() -> None:
    (remark,) = inspect_url("windows://")

    assert remark.startswith("cannot be used: windows:// needs something that this system does not have")


def test_every_service_can_be_asked_about() -> None:
    manager = NotificationManager()  # type: ignore[no-untyped-call]
    inspect_url("json://x")

    for schema in manager.schemas():  # type: ignore[no-untyped-call]
        for rest in ("", "x", f"u:p@h.example/{TOKEN}?a=b"):
            assert not [remark for remark in inspect_url(f"{schema}://{rest}") if TOKEN in remark]
