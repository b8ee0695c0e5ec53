"""The message with which a channel is tried before anything has happened."""

from watchdog.core.notifications import Message, MessageKind
from watchdog.core.rules import Severity

TEST_MESSAGE = Message(
    title="Test · watchdog",
    body="This is a test message. If you can read it, this channel works.",
    severity=Severity.INFO,
    kind=MessageKind.FIRST,
    incident="test",
)
