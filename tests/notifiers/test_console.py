"""The console channel: readable, harmless, and honest when nobody reads."""

import errno
import io
from collections.abc import Callable
from typing import Any

import pytest

from watchdog.core.notifications import Answer, DeliveryResult, Message, MessageKind
from watchdog.core.rules import Severity
from watchdog.notifiers.console import ConsoleNotifier

Make = Callable[..., Message]


@pytest.fixture
def show(clock: Any) -> Any:
    """Print a message to a stream and return the result."""

    async def send(message: Message, stream: Any, **options: Any) -> DeliveryResult:
        channel = ConsoleNotifier("console", clock, stream=lambda: stream, **options)
        result = await channel.send(message)
        await channel.close()
        return result

    return send


class Broken(io.StringIO):
    """A stream that fails on write."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def write(self, _text: str) -> int:
        raise self.error


async def test_in_a_pipe_it_is_plain_text(show: Any, message: Make) -> None:
    stream = io.StringIO()

    result = await show(message(), stream)

    assert result.answer is Answer.OK
    assert stream.getvalue() == (
        "[critical] gpu-idle llama-70b\n  56 of 64 GPUs idle since 02:10\n  incident k3x9q2mf\n\n"
    )


@pytest.mark.parametrize(
    ("changes", "colour"),
    [
        ({"severity": Severity.CRITICAL}, "31"),
        ({"severity": Severity.WARNING}, "33"),
        ({"severity": Severity.INFO}, "36"),
        ({"severity": Severity.CRITICAL, "kind": MessageKind.CLOSED}, "32"),
    ],
)
async def test_on_a_terminal_the_title_has_the_severitys_colour(
    changes: dict[str, Any], colour: str, show: Any, message: Make
) -> None:
    stream = io.StringIO()
    stream.isatty = lambda: True  # type: ignore[method-assign]

    await show(message(**changes), stream)

    assert stream.getvalue().startswith(f"\x1b[1;{colour}m[critical] gpu-idle llama-70b\x1b[0m\n  56 of")


async def test_colour_can_be_forced_off(show: Any, message: Make) -> None:
    stream = io.StringIO()
    stream.isatty = lambda: True  # type: ignore[method-assign]

    await show(message(), stream, colour=False)

    assert "\x1b" not in stream.getvalue()


async def test_a_log_line_cannot_drive_the_terminal(show: Any, message: Make) -> None:
    stream = io.StringIO()

    await show(message(body="a\x1b]0;owned\x07b\rc\td\r\ne"), stream)

    assert "  a\\x1b]0;owned\\x07b\\rc\td\n  e\n" in stream.getvalue()


async def test_a_title_that_is_also_the_first_line_is_shown_once(show: Any, message: Make) -> None:
    stream = io.StringIO()

    await show(message(title="T", body="T\nrest"), stream)

    assert stream.getvalue() == "T\n  rest\n\n"


async def test_what_the_terminal_cannot_show_is_escaped(show: Any, message: Make) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")

    result = await show(message(body="显存"), stream)

    assert result.answer is Answer.OK
    assert b"\\u663e\\u5b58" in raw.getvalue()


@pytest.mark.parametrize(
    ("error", "answer", "detail"),
    [
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), Answer.PERMANENT, "nobody reads"),
        (OSError(errno.EIO, "Input/output error"), Answer.PERMANENT, "Input/output error"),
        (OSError(errno.ENOSPC, "No space left on device"), Answer.RETRY, "No space left"),
        (BlockingIOError(errno.EAGAIN, "try again"), Answer.RETRY, "try again"),
    ],
)
async def test_a_write_that_fails_is_no_success(
    error: OSError, answer: Answer, detail: str, show: Any, message: Make
) -> None:
    result = await show(message(), Broken(error))

    assert result.answer is answer
    assert detail in result.detail


async def test_a_closed_stream_is_permanent(show: Any, message: Make) -> None:
    stream = io.StringIO()
    stream.close()

    assert (await show(message(), stream)).answer is Answer.PERMANENT


async def test_standard_output_is_looked_up_when_it_is_written(
    clock: Any, message: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = ConsoleNotifier("console", clock)

    await channel.send(message())

    assert "56 of 64 GPUs" in capsys.readouterr().out
    await channel.close()


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


async def test_what_a_log_collector_may_bring_back_is_marked_line_by_line(show: Any, message: Make) -> None:
    piped, terminal = io.StringIO(), Terminal()

    await show(message(), piped, mark="[ours]")
    await show(message(), terminal, mark="[ours]")

    assert piped.getvalue() == (
        "[ours] [critical] gpu-idle llama-70b\n[ours]   56 of 64 GPUs idle since 02:10\n"
        "[ours]   incident k3x9q2mf\n\n"
    )
    assert "[ours]" not in terminal.getvalue()
