"""Paging: opening and closing kinds, and never a note on a page that does not exist."""

from collections.abc import Callable

import pytest

from watchdog.core.notifications import Message, MessageKind
from watchdog.core.rules import Severity
from watchdog.notifiers.paging import KEYS, stages

Make = Callable[..., Message]


@pytest.mark.parametrize("schema", sorted(KEYS))
@pytest.mark.parametrize("severity", list(Severity))
def test_a_page_is_opened_repeated_and_closed(schema: str, severity: Severity, message: Make) -> None:
    for kind in set(MessageKind) - {MessageKind.CLOSED, MessageKind.COMBINED}:
        assert stages(schema, message(kind=kind, severity=severity)) in (("failure",), ("warning",))
    assert stages(schema, message(kind=MessageKind.CLOSED, severity=severity)) == ("success",)


def test_what_is_over_before_it_was_told_is_opened_then_closed(message: Make) -> None:
    assert stages("pagerduty", message(kind=MessageKind.COMBINED)) == ("failure", "success")


def test_a_chat_never_shows_an_end_as_a_success(message: Make) -> None:
    assert stages("slack", message(kind=MessageKind.CLOSED)) == ("info",)
    assert stages("slack", message(severity=Severity.INFO)) == ("info",)
    assert stages("slack", message(severity=Severity.WARNING)) == ("warning",)
    assert stages("slack", message(kind=MessageKind.COMBINED)) == ("failure",)
