import pytest

from watchdog.core.logs import LogLine
from watchdog.core.seen import SeenLines, line_hashes

SECOND = 1_000_000_000
T0 = 1_800_000_000 * SECOND


def line(at_ns: int, text: str = "x", pod: str = "p") -> LogLine:
    return LogLine(T0 + at_ns, pod, text)


def test_rows_are_known_by_pod_time_and_text() -> None:
    hashes = {
        line_hashes((row,))[0]
        for row in (
            line(1, "a", "p"),
            line(1, "a", "q"),
            line(2, "a", "p"),
            line(1, "b", "p"),
            line(1, "\udc80", "p"),
        )
    }

    assert len(hashes) == 5
    assert all(0 <= value < 2**63 for value in hashes)


def test_seen_lines_are_a_mapping_equal_to_a_plain_one() -> None:
    plain = {n: (n * SECOND, 1 + n % 2) for n in range(1, 9)}

    seen = SeenLines.of(plain)

    assert seen == plain
    assert dict(seen) == plain
    assert SeenLines.of(seen) is seen
    assert seen[3] == (3 * SECOND, 2)
    assert len(seen.since(5 * SECOND)) == 4
    with pytest.raises(KeyError):
        seen[99]


def test_seen_lines_are_never_changed_in_place() -> None:
    seen = SeenLines.of({1: (SECOND, 1)})

    more, fresh = seen.with_page([1, 1, 2, 1], [SECOND] * 4)
    less, again = more.with_page([1, 1], [SECOND] * 2)

    assert dict(seen) == {1: (SECOND, 1)}
    assert dict(more) == dict(less) == {1: (SECOND, 3), 2: (SECOND, 1)}
    assert (fresh, again) == ([1, 2, 3], [])
    assert (len(seen), len(more), len(less)) == (1, 2, 2)


def test_hashes_are_stored_and_stay_what_they_are() -> None:
    rows = [line(0, "step 7"), line(1, ""), line(2, "错误 \udc80", "q")]

    assert line_hashes(rows) == [3354147924238991611, 5253525722700606899, 5969496078727526284]


def test_rows_that_differ_in_a_digit_or_their_length_or_lie_elsewhere_in_a_page_are_told_apart() -> None:
    texts = [f"step {n} | loss {n * 7919 % 10_007} | {'x' * (n % 90)}" for n in range(40_000)]
    texts += ["", "\x00", "\x00\x00", " ", "e" * 4_096, "e" * 4_097, "e" * 200_000, "é" * 4_096]
    rows = [line(7, text, f"pod-{n % 3}") for n, text in enumerate(texts)]

    hashes = line_hashes(rows)

    assert len(set(hashes)) == len(rows)
    assert hashes[-500:] == line_hashes(rows[-500:])
    assert hashes[12_345:12_346] == line_hashes(rows[12_345:12_346])
