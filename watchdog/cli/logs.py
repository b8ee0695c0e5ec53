"""The program's own log: where it goes and how it looks. Never a secret in it, at any level.

Text on a terminal or in a file, JSON lines where asked, priorities for the journal where standard
error is connected to it.
"""

import json
import logging
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime

from watchdog.config.settings import LogFormat, LogLevel
from watchdog.core.masking import mask
from watchdog.core.scanning import OWN_LINE

QUIET = ("httpx", "httpcore", "apprise", "requests", "urllib3", "asyncio", "markdown")
_PRIORITY = {"DEBUG": 7, "INFO": 6, "WARNING": 4, "ERROR": 3, "CRITICAL": 2}


class _Formatter(logging.Formatter):
    """Formats a record, with every secret hidden; each of its lines is marked as ours.

    So that a log rule of ours can never match what we say of it, wherever our log is collected.
    """

    def __init__(self, style: LogFormat, redact: Callable[[str], str], *, journal: bool) -> None:
        super().__init__()
        self._json = style is LogFormat.JSON
        self._redact = redact
        self._journal = journal

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, or the lines of a traceback."""
        text = record.getMessage()
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        text = mask(self._redact(text))
        at = datetime.fromtimestamp(record.created, UTC)
        if self._json:
            fields = {
                "time": at.isoformat(),
                "level": record.levelname.lower(),
                "program": OWN_LINE,
                "logger": record.name,
                "text": text,
            }
            return json.dumps(fields, ensure_ascii=False)
        if self._journal:
            head = f"<{_PRIORITY.get(record.levelname, 6)}>{record.name}: {OWN_LINE}"
        else:
            head = f"{at:%Y-%m-%d %H:%M:%S}Z {record.levelname:<7} {record.name}: {OWN_LINE}"
        first, *others = text.splitlines() or [""]
        return "\n".join([f"{head} {first}", *(f"{head}   {line}" for line in others)])


def configure(level: LogLevel, style: LogFormat, redact: Callable[[str], str]) -> None:
    """Send the log to standard error. Libraries that print addresses stay at WARNING."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter(style, redact, journal=_is_journal()))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


def _is_journal() -> bool:
    """Whether standard error is the journal's own socket (see systemd.exec, $JOURNAL_STREAM)."""
    stream = os.environ.get("JOURNAL_STREAM", "")
    try:
        found = os.fstat(sys.stderr.fileno())
    except (OSError, ValueError):
        return False
    return stream == f"{found.st_dev}:{found.st_ino}"
