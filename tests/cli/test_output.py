import io

import pytest

from watchdog.cli.output import Output, Style, cut, display_width, output_for, safe


def written(*, terminal: bool = False, colour: bool = False, width: int = 30) -> tuple[Output, io.StringIO]:
    stream = io.StringIO()
    return Output(stream=stream, terminal=terminal, colour=colour, width=width), stream


def test_a_table_keeps_its_columns_with_chinese_names() -> None:
    output, stream = written()

    output.table(("rule", "state"), [("gpu", "ok"), ("显存", "firing")])

    assert stream.getvalue() == "rule  state\ngpu   ok\n显存  firing\n"


def test_a_table_ends_where_the_terminal_ends_and_nowhere_in_a_pipe() -> None:
    row = [("name", "x" * 40)]
    narrow, screen = written(terminal=True, width=20)
    pipe, plain = written(width=20)

    narrow.table(("a", "b"), row)
    pipe.table(("a", "b"), row)

    assert max(map(len, screen.getvalue().splitlines())) == 20
    assert screen.getvalue().splitlines()[-1].endswith("…")
    assert plain.getvalue().splitlines()[-1] == "name  " + "x" * 40


def test_colour_only_where_wanted() -> None:
    assert written(colour=True)[0].styled("x", Style.RED) == "\x1b[1;31mx\x1b[0m"
    assert written()[0].styled("x", Style.RED) == "x"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "environ", "colour"),
    [
        (Terminal(), {}, True),
        (Terminal(), {"TERM": "dumb"}, False),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        (io.StringIO(), {}, False),
        (io.StringIO(), {"FORCE_COLOR": "1"}, True),
    ],
)
def test_who_decides_about_colour(stream: io.StringIO, environ: dict[str, str], colour: bool) -> None:
    assert output_for(stream, environ).colour is colour


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain 中文 é", "plain 中文 é"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\nb", "a⏎b"),
        ("a\tb", "a    b"),
        ("\u202eabc", "\\x202eabc"),
        ("a\u00a0b", "a\u00a0b"),
    ],
)
def test_text_from_outside_cannot_steer_the_terminal(text: str, shown: str) -> None:
    assert safe(text) == shown


def test_widths_count_columns() -> None:
    assert display_width("中文ab") == 6
    assert display_width("e\u0301") == 1
    assert cut("中文中文", 5) == "中文…"
    assert cut("abc", 3) == "abc"
