"""Two slots stored as one: what was dropped and came back, and the other way round."""

from datetime import UTC, datetime, timedelta

from watchdog.core.logs import StreamKey, StreamState
from watchdog.core.moments import Moment
from watchdog.engine.journal import merge
from watchdog.ports import SlotCommit

NOW = Moment(at=datetime(2026, 11, 30, 2, tzinfo=UTC), watched=timedelta())
KEY = StreamKey(task="a/1")
STREAM = StreamState(key=KEY, cursor_ns=7)


def commit(**parts: object) -> SlotCommit:
    return SlotCommit(moment=NOW, **parts)  # type: ignore[arg-type]


def test_a_stream_dropped_later_is_not_stored() -> None:
    both = merge(commit(streams=(STREAM,)), commit(dropped_streams=(KEY,)))
    assert (both.streams, both.dropped_streams) == ((), (KEY,))


def test_a_stream_that_begins_anew_after_it_was_dropped_is_stored() -> None:
    both = merge(commit(dropped_streams=(KEY,)), commit(streams=(STREAM,)))
    assert (both.streams, both.dropped_streams) == ((STREAM,), ())
