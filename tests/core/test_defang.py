"""Foreign text can be read and can do nothing."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchdog.core.defang import ZWSP, defang, defang_line

# What chat services act upon, written down apart from the code under test.
LIVE = re.compile(
    r"<[!@#/?]|<[A-Za-z]"  # Slack, Discord, Feishu, Teams, HTML
    r"|[@＠](everyone|here|all|channel|room|所有人)"
    r"|(?<![\w.+-])@\w"  # @name in Telegram, Mattermost, DingTalk
    r"|\]\(|\]\[|\]:"  # Markdown links
    r"|!(channel|here|everyone)",
    re.IGNORECASE,
)
UNSEEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
PINGS = [
    "<!channel>",
    "<!here|here>",
    "!channel>",
    "<@U12345>",
    "@U12345>",
    "x@U12345|name>",
    "<@&998877>",
    "@everyone",
    "x@everyone",
    "@here",
    "@all",
    "@ALL",
    "ask@all now",
    "@所有人",
    "报警@张三",
    "@13800000000",
    "<at id=all></at>",
    '<at user_id="all">x</at>',
    "<@all>",
    "<users/all>",
    "@room",
    "@\x00all",
    "@\x1b[31mall",
    "@\u202eall",
    "<\u200f!channel>",
]


@pytest.mark.parametrize("text", PINGS)
def test_no_form_of_a_ping_survives(text: str) -> None:
    result = defang(f"ERROR {text} boom")

    assert not LIVE.search(result)
    assert result.startswith("ERROR ")
    assert result.endswith(" boom")


@pytest.mark.parametrize(
    "text",
    [
        "[click](https://evil.example)",
        "![](https://evil.example/pixel.png)",
        "[a][b]\n[b]: https://evil.example",
        "<a href='https://evil.example'>x</a>",
        "<script>alert(1)</script>",
        "<https://evil.example|the wiki>",
    ],
)
def test_links_and_tags_do_not_work(text: str) -> None:
    result = defang(text)

    assert not LIVE.search(result)
    assert result.replace(ZWSP, "") == text


@pytest.mark.parametrize(
    "text",
    [
        "ssh root@node-3 or mail me@example.org",
        "loss 1.9 < 2.0 <= 3 -> ok, a[0](1 is fine? no",
        "step=14200 | lr=3e-4 | 12:30:05",
        "显存不足：worker-3，GPU 7",
        "https://wiki.example/runbook#idle?x=1&y=2",
        "👩🏽‍💻 café",
    ],
)
def test_harmless_text_stays_as_it_is(text: str) -> None:
    assert defang(text).replace(f"]{ZWSP}(", "](") == text


def test_colours_cursor_moves_and_hidden_characters_are_removed() -> None:
    assert defang("\x1b[1;31mERROR\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x07") == "ERROR link"
    assert defang("a\x00b\x08c\x7fd\u202egnp.exe\ufeff\u2066x") == "abcdgnp.exex"
    assert defang("bad \ud800 half") == "bad \ufffd half"


def test_every_line_break_is_a_newline_and_one_line_has_none() -> None:
    assert defang("a\r\nb\rc\x0bd\u2028e\x85f") == "a\nb\nc\nd\ne\nf"
    assert defang_line("  a\r\nb\tc \n") == "a b    c"


@given(st.text(alphabet=st.characters(), max_size=60) | st.from_regex(r"[<>!@\[\]()|&a-z \x1b\x00@h]{0,40}"))
def test_any_text_comes_out_harmless_valid_and_settled(text: str) -> None:
    result = defang(text)

    assert not LIVE.search(result)
    assert not UNSEEN.search(result)
    assert defang(result) == result
    assert result.encode("utf-8").decode("utf-8") == result


def test_a_megabyte_of_hostile_text_takes_no_time() -> None:
    for text in ("@" * 1_000_000, "<" * 1_000_000, "[" * 500_000 + "]" * 500_000, "\x1b" * 1_000_000):
        assert len(defang(text)) <= 2 * len(text)
