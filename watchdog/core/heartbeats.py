"""The rhythm of the dead man's switch: when to call outside, with which word, and the daily note.

Pure. Only a useful cycle is reported as such; what is unwell is reported once it has lasted, since an
outside alarm wakes people. How a call is made, and what a failed one means, is `engine.heartbeat`.
"""

from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from enum import StrEnum
from urllib.parse import urlsplit, urlunsplit

NOTE_WINDOW = timedelta(hours=1)  # a daily note that could not be said in time is not made up for later


class Beat(StrEnum):
    """What is called outside; the value is what healthchecks.io's scheme appends to the URL."""

    START = "start"
    USEFUL = ""
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rhythm:
    """What was last heard outside. Times on the monotonic clock."""

    said: Beat | None = None
    at: timedelta = timedelta()
    unwell_since: timedelta | None = None


def seen(rhythm: Rhythm, now: timedelta, *, healthy: bool) -> Rhythm:
    """Take in the verdict on one slot."""
    if healthy:
        return replace(rhythm, unwell_since=None)
    return rhythm if rhythm.unwell_since is not None else replace(rhythm, unwell_since=now)


def due(rhythm: Rhythm, every: timedelta, slack: timedelta, now: timedelta) -> Beat | None:
    """Return what is to be called after a slot, if anything.

    slack: slots lie on a grid; one that comes so much before its time counts as on time.
    """
    rested = now - rhythm.at >= every - slack
    if rhythm.unwell_since is None:
        return Beat.USEFUL if rhythm.said is not Beat.USEFUL or rested else None
    if now - rhythm.unwell_since < every - slack:
        return None
    return Beat.FAIL if rhythm.said is not Beat.FAIL or rested else None


def heard(rhythm: Rhythm, beat: Beat, now: timedelta) -> Rhythm:
    """Note that a call was answered."""
    return replace(rhythm, said=beat, at=now)


def beat_url(url: str, beat: Beat) -> str:
    """Return the URL to call: the word is the last part of the path, before any query."""
    if not beat:
        return url
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/{beat}"))


def note_day(local: datetime, at: time, said: str) -> date | None:
    """Return the day whose note is due now, None if none is.

    local: now, in the zone that `at` is meant in. said: the ISO date of the newest note, "" = never.
    """
    today = local.date()
    begins = datetime.combine(today, at, tzinfo=local.tzinfo)
    due_now = begins <= local < begins + NOTE_WINDOW
    return today if due_now and said != today.isoformat() else None
