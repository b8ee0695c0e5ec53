import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchdog.core.hygiene import SCANNED, SHOWN, CleanLine, clean, shortened, shown
from watchdog.core.logs import LogLine


def texts(*rows: str) -> list[str]:
    return [line.text for line in clean(LogLine(7, "pod-0", row) for row in rows)]


def one(row: str) -> CleanLine:
    (line,) = clean([LogLine(7, "pod-0", row)])
    return line


def test_rows_are_split_at_line_breaks_in_order() -> None:
    lines = clean([LogLine(7, "p", "a\nERROR b\nc"), LogLine(7, "q", "d")])

    assert [(line.time_ns, line.pod, line.text) for line in lines] == [
        (7, "p", "a"),
        (7, "p", "ERROR b"),
        (7, "p", "c"),
        (7, "q", "d"),
    ]


def test_windows_line_ends_and_empty_lines_leave_nothing_behind() -> None:
    assert texts("a\r\n\r\n  \nb \n", "", "\r") == ["a", "b"]


def test_a_progress_bar_keeps_its_last_update_and_what_came_after() -> None:
    updates = "\r".join(
        f" {n // 50}%|{'█' * (n // 500)}| {n}/5000 [00:{n % 60:02}<00:10, 1.{n % 10}s/it]"
        for n in range(5000)
    )

    lines = texts(updates + "\rERROR boom\n")

    assert lines == [" 99%|█████████| 4999/5000 [00:19<00:10, 1.9s/it]", "ERROR boom"]


def test_a_line_between_updates_is_kept() -> None:
    assert texts("10%\r20%\rERROR boom\r30%\r40%") == ["20%", "ERROR boom", "40%"]


def test_different_words_after_a_carriage_return_are_no_progress() -> None:
    assert texts("loading a\rloading b\r") == ["loading a", "loading b"]


def test_terminal_codes_are_stripped() -> None:
    assert texts("\x1b[1;31mERROR\x1b[0m boom", "\x1b]0;title\x07ERROR", "\x9b31mx", "\x1b(Bplain\x1b7") == [
        "ERROR boom",
        "ERROR",
        "x",
        "plain",
    ]


def test_an_unclosed_title_does_not_swallow_the_line() -> None:
    assert texts("\x1b]0;title ERROR boom") == ["0;title ERROR boom"]


def test_nul_control_and_direction_characters_go_tabs_stay() -> None:
    assert texts("E\x00RR\x08OR\tx\x85y\u202egnp\u2028\ufeff") == ["ERROR\txygnp"]


def test_other_scripts_stay_as_they_are() -> None:
    assert texts("错误：显存不足 🎉 é") == ["错误：显存不足 🎉 é"]


def test_a_very_long_line_keeps_beginning_and_end_and_says_what_is_cut() -> None:
    line = one("START " + "x" * 1_000_000 + " ERROR at the end")

    assert line.text.startswith("START ")
    assert line.text.endswith(" ERROR at the end")
    assert line.cut == 6 + 1_000_000 + 17 - SCANNED
    assert f"{line.cut:,} characters cut" in line.text
    assert len(line.text) < SCANNED + 60


def test_what_is_shown_is_shorter_still() -> None:
    text = shown("a" * 10_000 + "END")

    assert len(text) < SHOWN + 60
    assert text.endswith("END")
    assert "5,907 characters cut" in text
    assert shown("short") == "short"


@pytest.mark.parametrize(
    ("row", "prefix", "rank", "body"),
    [
        ("[rank3]: KeyError: 'x'", "[rank3]: ", "3", "KeyError: 'x'"),
        ('[rank3]:   File "a.py", line 1', "[rank3]: ", "3", '  File "a.py", line 1'),
        ("[default3]:hello", "[default3]:", "3", "hello"),
        ("[default1]:[rank9]: hello", "[default1]:[rank9]: ", "9", "hello"),
        ("3: hello", "3: ", "3", "hello"),
        ("  12: hello", "  12: ", "12", "hello"),
        ("[1,5]<stderr>:hello", "[1,5]<stderr>:", "5", "hello"),
        (
            "(RayTrainWorker pid=411, ip=10.0.0.7) hello",
            "(RayTrainWorker pid=411, ip=10.0.0.7) ",
            "411",
            "hello",
        ),
        ("(pid=411) hello", "(pid=411) ", "411", "hello"),
        ("[Rank 2] hello", "[Rank 2] ", "2", "hello"),
        ("hello", "", "", "hello"),
        ("12:30:01 hello", "", "", "12:30:01 hello"),
        ('  File "a.py", line 1', "", "", '  File "a.py", line 1'),
        ("[W socket.cpp:697] hello", "", "", "[W socket.cpp:697] hello"),
    ],
)
def test_launcher_prefixes_are_told_from_the_line(row: str, prefix: str, rank: str, body: str) -> None:
    line = one(row)

    assert (line.text, line.prefix, line.rank, line.body) == (row, prefix, rank, body)


@pytest.mark.parametrize(
    "row",
    [
        "\x1b]" * 300_000,
        "\x1b[" * 300_000,
        "\x1b[1" * 200_000,
        "\r" * 500_000,
        "[1]" * 200_000,
        "\x1b" * 500_000,
    ],
)
def test_hostile_rows_of_a_megabyte_are_cheap(row: str) -> None:
    assert len(clean([LogLine(1, "p", row)])) <= 1


def test_a_line_cut_twice_says_how_much_of_the_whole_is_missing() -> None:
    (line,) = clean([LogLine(1, "p", "x" * 1_000_000 + "END")])
    text = shortened(shown(line.text), 400)
    assert text.endswith("END")
    cut = int(text.split("…")[1].split()[0].replace(",", ""))
    assert cut + text.count("x") + len("END") == 1_000_003


PIECES = (
    *("step 7", "ERROR", " ", "\t", "错误", "█▌", "…", "é", "\U0001f525", "\udc80", "", "\u3000"),
    *(
        "\n",
        "\r",
        "\r\n",
        "\x00",
        "\x1b[31m",
        "\x1b",
        "\x7f",
        "\x85",
        "\u2028",
        "\u200e",
        "\ufeff",
        "x" * 16_500,
    ),
)


@given(st.lists(st.lists(st.sampled_from(PIECES), max_size=4).map("".join), max_size=9))
def test_a_row_comes_out_the_same_whatever_rows_it_is_looked_at_with(rows: list[str]) -> None:
    apart = [
        line for row in rows for line in clean([LogLine(7, "p", row + "\r")])
    ]  # the \r changes nothing …

    together = list(clean([LogLine(7, "p", row) for row in rows]))

    assert together == apart  # … but that a row with it is always taken apart


def test_lines_are_found_by_a_word_and_left_out_by_number() -> None:
    long = "ERROR x" + "y" * 20_000
    rows = ["ERROR ERROR a", "b", "ERROR c\nd\ne ERROR", long, ""]
    lines = clean([LogLine(n, "p", row) for n, row in enumerate(rows)])

    assert lines.holding("ERROR") == [0, 2, 4, 5]
    assert lines.holding("FATAL") == clean([]).holding("ERROR") == []
    kept = lines.without([0, 2])
    assert [line.text for line in kept][:3] == ["b", "d", "e ERROR"]
    assert [line.time_ns for line in kept] == [1, 2, 2, 3]
    assert (kept[-1].cut > 0, kept[0].cut, lines[1:3][1].text) == (True, 0, "ERROR c")
