"""The rhythm of the dead man's switch, and the daily note."""

from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from watchdog.core.heartbeats import Beat, Rhythm, beat_url, due, heard, note_day, seen

EVERY = timedelta(minutes=5)
SLACK = timedelta(seconds=30)
SHANGHAI = ZoneInfo("Asia/Shanghai")
BERLIN = ZoneInfo("Europe/Berlin")


def play(verdicts: str, rhythm: Rhythm | None = None) -> dict[int, Beat]:
    """What is called, by minute: one slot each, `+` healthy, `-` not, `x` healthy with an unheard call."""
    rhythm = Rhythm() if rhythm is None else rhythm
    called: dict[int, Beat] = {}
    for minute, verdict in enumerate(verdicts):
        now = timedelta(minutes=minute) + (minute % 3) * timedelta(milliseconds=40)
        rhythm = seen(rhythm, now, healthy=verdict != "-")
        beat = due(rhythm, EVERY, SLACK, now)
        if beat is not None:
            called[minute] = beat
            if verdict != "x":
                rhythm = heard(rhythm, beat, now)
    return called


def test_a_useful_cycle_is_told_at_once_and_then_at_its_pace() -> None:
    assert play("+" * 12) == {0: Beat.USEFUL, 5: Beat.USEFUL, 10: Beat.USEFUL}


def test_a_start_does_not_delay_the_first_useful_cycle() -> None:
    assert play("++", heard(Rhythm(), Beat.START, timedelta()))[0] is Beat.USEFUL


def test_a_short_trouble_is_only_silence() -> None:
    assert play("+" + "-" * 4 + "++") == {0: Beat.USEFUL, 5: Beat.USEFUL}


def test_a_lasting_trouble_is_told_and_told_again() -> None:
    assert play("+" + "-" * 12) == {0: Beat.USEFUL, 6: Beat.FAIL, 11: Beat.FAIL}


def test_the_first_useful_cycle_after_a_trouble_is_told_at_once() -> None:
    assert play("+" + "-" * 7 + "++") == {0: Beat.USEFUL, 6: Beat.FAIL, 8: Beat.USEFUL}


def test_an_unheard_call_is_made_again_after_the_next_slot() -> None:
    assert play("xx+++") == {0: Beat.USEFUL, 1: Beat.USEFUL, 2: Beat.USEFUL}


def test_nothing_useful_is_told_of_a_program_that_never_saw_anything() -> None:
    assert Beat.USEFUL not in play("-" * 30).values()


@pytest.mark.parametrize(
    ("url", "beat", "called"),
    [
        ("https://hc-ping.com/uuid", Beat.USEFUL, "https://hc-ping.com/uuid"),
        ("https://hc-ping.com/uuid", Beat.FAIL, "https://hc-ping.com/uuid/fail"),
        ("https://hc-ping.com/key/slug/", Beat.START, "https://hc-ping.com/key/slug/start"),
        ("https://own.example/ping/x?create=1", Beat.FAIL, "https://own.example/ping/x/fail?create=1"),
    ],
)
def test_the_word_is_the_last_part_of_the_path(url: str, beat: Beat, called: str) -> None:
    assert beat_url(url, beat) == called


@pytest.mark.parametrize(
    ("hour", "minute", "said", "day"),
    [
        (8, 59, "", None),
        (9, 0, "", date(2026, 11, 30)),
        (9, 0, "2026-11-29", date(2026, 11, 30)),
        (9, 1, "2026-11-30", None),
        (9, 59, "2026-11-29", date(2026, 11, 30)),
        (10, 0, "2026-11-29", None),
    ],
)
def test_the_daily_note_is_due_once_a_day_within_an_hour(
    hour: int, minute: int, said: str, day: date | None
) -> None:
    local = datetime(2026, 11, 30, hour, minute, tzinfo=SHANGHAI)
    assert note_day(local, time(9, 0), said) == day


def test_the_daily_note_is_due_on_the_days_the_clock_changes() -> None:
    for day in (date(2026, 3, 29), date(2026, 10, 25)):
        said, days = "", []
        for minutes in range(0, 24 * 60, 7):
            local = datetime(day.year, day.month, day.day, tzinfo=BERLIN) + timedelta(minutes=minutes)
            found = note_day(local, time(2, 30), said)
            if found is not None:
                days.append(found)
                said = found.isoformat()
        assert days == [day]
