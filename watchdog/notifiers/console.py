"""The console channel: messages on standard output, for people at a terminal or a log collector.

Writes from the channel's own thread, since a full pipe or a paused terminal blocks. Control characters in a
message are shown, not obeyed.
"""

import errno
import re
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import TextIO

from watchdog.core.notifications import Answer, DeliveryResult, Message, MessageKind
from watchdog.core.rules import Severity
from watchdog.notifiers.limits import CONSOLE
from watchdog.notifiers.threaded import DEADLINE, ThreadedNotifier
from watchdog.ports import Clock

_COLOURS = {Severity.INFO: "36", Severity.WARNING: "33", Severity.CRITICAL: "31"}
_CLOSED = "32"
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_FULL = frozenset({errno.EAGAIN, errno.EDQUOT, errno.EINTR, errno.ENOSPC})


class ConsoleNotifier(ThreadedNotifier):
    """Prints messages. `stream` is asked for at each send; `colour` None = only on a terminal.

    mark: what each line begins with where it is no terminal, since a log collector may bring it back to us.
    """

    def __init__(
        self,
        name: str,
        clock: Clock,
        *,
        stream: Callable[[], TextIO] = lambda: sys.stdout,
        colour: bool | None = None,
        mark: str = "",
        deadline: timedelta = DEADLINE,
    ) -> None:
        def make_sender() -> Callable[[Message], DeliveryResult]:
            return lambda message: _print(message, stream(), colour, mark)

        super().__init__(name, CONSOLE, clock, make_sender, deadline=deadline)


def _print(message: Message, stream: TextIO, colour: bool | None, mark: str) -> DeliveryResult:
    try:
        terminal = stream.isatty()
        text = _layout(message, terminal if colour is None else colour)
        if mark and not terminal:
            text = "".join(f"{mark} {line}\n" if line else "\n" for line in text.splitlines())
        encoding = stream.encoding or "utf-8"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except BrokenPipeError:
        return DeliveryResult(answer=Answer.PERMANENT, detail="nobody reads standard output any more")
    except OSError as error:
        answer = Answer.RETRY if error.errno in _FULL else Answer.PERMANENT
        return DeliveryResult(answer=answer, detail=f"cannot write to standard output: {error.strerror}")
    except ValueError:  # what a closed stream raises
        return DeliveryResult(answer=Answer.PERMANENT, detail="standard output is closed")
    return DeliveryResult(answer=Answer.OK, detail="printed")


def _layout(message: Message, colour: bool) -> str:
    title, body = _harmless(message.title), _harmless(message.body)
    if body.startswith(title):
        body = body[len(title) :].lstrip("\n")
    if colour:
        code = _CLOSED if message.kind is MessageKind.CLOSED else _COLOURS[message.severity]
        title = f"\x1b[1;{code}m{title}\x1b[0m"
    indented = "".join(f"  {line}".rstrip() + "\n" for line in body.splitlines())
    return f"{title}\n{indented}\n"


def _harmless(text: str) -> str:
    """Show control characters instead of sending them to the terminal."""
    plain = text.replace("\r\n", "\n")
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), plain)
