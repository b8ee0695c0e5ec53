"""The step that suits a range of time."""

from datetime import datetime

FORM = "%Y-%m-%d %H:%M:%S"
MOST_POINTS = 500


def recommend_time_step(start_time: str, end_time: str) -> int:
    """Seconds between points, in whole minutes, so that a range has at most 500."""
    start, end = (datetime.strptime(text, FORM) for text in (start_time, end_time))  # noqa: DTZ007 - naive
    seconds = (end - start).total_seconds()
    return max(60, 60 * round(seconds / MOST_POINTS / 60))
