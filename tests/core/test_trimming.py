"""Cuts fit to the byte, never break a character, and say what is missing."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from watchdog.core.notifications import LimitUnit
from watchdog.core.trimming import Block, cut, fit, size

BYTES, CHARACTERS = LimitUnit.BYTES, LimitUnit.CHARACTERS


def test_sizes_are_utf8_bytes_or_the_utf16_units_that_services_count() -> None:
    assert size("aé显😀", BYTES) == 1 + 2 + 3 + 4
    assert size("aé显😀", CHARACTERS) == 1 + 1 + 1 + 2


def test_what_fits_is_not_touched() -> None:
    assert cut("显存", 6, BYTES) == "显存"
    assert cut("", 0, BYTES) == ""


def test_a_cut_ends_with_an_ellipsis_between_characters() -> None:
    assert cut("显存不足", 9, BYTES) == "显存…"
    assert cut("显存不足", 11, BYTES) == "显存…"
    assert cut("abcdef", 3, CHARACTERS) == "ab…"
    assert cut("abcdef", 2, BYTES) == ""


def test_accents_and_joined_emoji_stay_with_their_character() -> None:
    assert cut("ae\u0301bcdef", 5, CHARACTERS) == "ae\u0301b…"
    assert cut("xae\u0301\u0301bcd", 4, CHARACTERS) == "xa…"
    family = "👩\u200d👩\u200d👧"
    assert cut(f"x{family}yz", 7, CHARACTERS) == "x…"


@given(st.text(max_size=200), st.integers(0, 300), st.sampled_from(LimitUnit))
def test_any_cut_fits_and_is_a_beginning(text: str, limit: int, unit: LimitUnit) -> None:
    result = cut(text, limit, unit)

    assert size(result, unit) <= limit
    assert result == text or text.startswith(result.removesuffix("…"))
    if text.isprintable():
        result.encode("utf-8")


def _log(count: int, width: int = 900) -> Block:
    def remark(shown: Sequence[int]) -> str:
        return f"(shown {len(shown)} of {count} lines)" if len(shown) < count else ""

    return Block(lines=tuple(f"{n:03d}" + "x" * width for n in range(count)), remark=remark, rank=0, floor=1)


VERDICT = Block(lines=("GPU average 4.1 %, below 10 %",))
FOOT = Block(lines=("Incident 7k3mq2xz",))


def test_log_lines_give_way_first_and_the_text_says_how_many_are_missing() -> None:
    members = Block(lines=tuple(f"pod-{n}" for n in range(10)), rank=1, floor=1)

    text = fit([VERDICT, members, _log(200), FOOT], 4096, BYTES)

    assert size(text, BYTES) <= 4096
    assert "(shown 4 of 200 lines)" in text
    assert "pod-9" in text
    assert text.startswith("GPU average")
    assert text.endswith("Incident 7k3mq2xz")


def test_then_members_then_the_rest_until_only_verdict_and_incident_are_left() -> None:
    members = Block(lines=tuple(f"pod-{n}" for n in range(10)), rank=1, floor=1)
    words = Block(lines=("a description " * 9,), rank=4)
    blocks = [VERDICT, members, _log(20), words, FOOT]

    middle = fit(blocks, 230, BYTES)
    assert "pod-0" in middle
    assert "pod-9" not in middle
    assert "description" in middle
    assert fit(blocks, 52, BYTES) == "GPU average 4.1 %, below 10 %\nIncident 7k3mq2xz"


def test_the_most_important_lines_stay_and_keep_their_order() -> None:
    block = Block(lines=("before", "cause", "after", "far"), keep=(1, 2, 0, 3), rank=0)

    assert fit([block, FOOT], size("cause\nafter\nIncident 7k3mq2xz", BYTES), BYTES) == (
        "cause\nafter\nIncident 7k3mq2xz"
    )


def test_when_even_the_verdict_is_too_long_the_incident_stays_whole() -> None:
    text = fit([Block(lines=("显" * 500,)), FOOT], 60, BYTES)

    assert text == "显" * 13 + "…\nIncident 7k3mq2xz"
    assert fit([VERDICT, FOOT], 10, BYTES) == "Inciden…"


@given(
    st.lists(st.lists(st.text(max_size=40), max_size=6), max_size=5),
    st.integers(0, 200),
    st.sampled_from(LimitUnit),
)
def test_any_blocks_fit_any_limit(parts: list[list[str]], limit: int, unit: LimitUnit) -> None:
    blocks = [Block(lines=tuple(lines), rank=n or None, floor=1) for n, lines in enumerate(parts)]

    assert size(fit([*blocks, FOOT], limit, unit), unit) <= limit
