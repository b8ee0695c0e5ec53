"""When lines arrived, after our own clock was set."""

from watchdog.core.logs import StreamKey, StreamState, arrivals_moved


def stream(**arrived: int) -> StreamState:
    return StreamState(key=StreamKey(task="src/1"), cursor_ns=0, arrived_ns=arrived)


def test_arrivals_move_with_the_clock_and_new_ones_stay() -> None:
    noted = stream(p0=100, p1=90)
    moved = arrivals_moved(stream(p0=100, p1=41, p2=42), noted, -60)
    assert moved.arrived_ns == {"p0": 40, "p1": 41, "p2": 42}
