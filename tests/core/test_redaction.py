"""Redaction: known secrets never survive, in whatever form they appear."""

import base64
import json
from urllib.parse import quote, quote_plus

import pytest

from watchdog.core.redaction import MASK, Redactor, hide_urls, url_secrets

TOKEN = "a1B2/c3+D4=e5&f6"


@pytest.mark.parametrize(
    "form",
    [
        TOKEN,
        TOKEN.upper(),
        quote(TOKEN),
        quote(TOKEN, safe=""),
        quote(TOKEN, safe="").lower(),
        quote_plus(TOKEN),
    ],
)
def test_a_secret_is_masked_in_every_encoding(form: str) -> None:
    assert Redactor([TOKEN]).mask(f"POST /send?key={form} failed") == f"POST /send?key={MASK} failed"


def test_escaped_and_repeated_secrets_are_masked() -> None:
    secret = 'pa"ss\\word<1>'

    masked = Redactor([secret]).mask(f"{json.dumps({'key': secret})} and {secret}")

    assert masked == f'{{"key": "{MASK}"}} and {MASK}'


def test_the_longest_secret_wins() -> None:
    assert Redactor(["token", "token-of-mine"]).mask("x token-of-mine y") == f"x {MASK} y"


def test_nothing_known_changes_nothing() -> None:
    assert Redactor().mask("loss is nan") == "loss is nan"
    assert Redactor(["", "ab", "  "]).mask("ab ab") == "ab ab"


def test_more_secrets_can_be_added_and_none_is_shown() -> None:
    redactor = Redactor(["first-secret"]).plus(["second-secret\n"])

    assert redactor.mask("first-secret second-secret") == f"{MASK} {MASK}"
    assert "secret-" not in repr(redactor)
    assert repr(redactor) == "Redactor(2 secrets)"


@pytest.mark.parametrize(
    ("url", "secret"),
    [
        ("dingtalk://SEC1secret@0123456789abcdef/", "0123456789abcdef"),
        ("dingtalk://SEC1secretpart@0123456789abcdef/", "SEC1secretpart"),
        ("wecombot://693a91f6-7xxx-4bc4-97a0-0ec2sifa5aaa/", "693a91f6-7xxx-4bc4-97a0-0ec2sifa5aaa"),
        ("mailto://alice:hunter2@mail.example.com/", "hunter2"),
        ("mailto://alice:p%40ss%2Fword@mail.example.com/", "p@ss/word"),
        ("mailto://alice:hunter2@mail.example.com/", base64.b64encode(b"alice:hunter2").decode()),
        ("slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/", "TIiajkdnlazkcOXrIdevi7FQ"),
        ("tgram://123456789:AbcdefGhijklmnop12345/-100200", "AbcdefGhijklmnop12345"),
        ("jsons://hooks.example.com/hook?access_token=abcDEF123456", "abcDEF123456"),
        ("jsons://hooks.example.com/hook?+Authorization=Bearer%20abcDEF123456", "Bearer abcDEF123456"),
    ],
)
def test_the_secret_parts_of_a_url_are_found(url: str, secret: str) -> None:
    redactor = Redactor(url_secrets(url))

    assert redactor.mask(f"<{url}>") == f"<{MASK}>"
    assert redactor.mask(f"<{secret}>") == f"<{MASK}>"


def test_hosts_addresses_and_common_words_stay_readable() -> None:
    redactor = Redactor(
        url_secrets("mailtos://u:hunter2@smtp.example.com:587/?to=ops@example.com&mode=starttls")
    )

    line = "smtp.example.com:587 refused ops@example.com with starttls"
    assert redactor.mask(line) == line


def test_a_plain_word_is_hidden_only_from_texts_about_the_channel() -> None:
    url = "ntfy://ntfy.example.com/training"

    assert Redactor(url_secrets(url)).mask("training stalls") == "training stalls"
    assert Redactor(url_secrets(url, wide=True)).mask("training stalls") == f"{MASK} stalls"


@pytest.mark.parametrize("url", ["", "nonsense", "json://", "json://[::1", "x://%zz:%%@/?&&=&a"])
def test_odd_urls_do_not_raise(url: str) -> None:
    Redactor(url_secrets(url, wide=True)).mask("text")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("GET https://u:p@host.example/a/b?c=d now", "GET https://host.example/… now"),
        ("see http://127.0.0.1:8080/x.", "see http://127.0.0.1:8080/…"),
        ("dingtalk://0123456789abcdef is down", "dingtalk://… is down"),
        (
            "Pool(host='a.example', port=443): Max retries exceeded with url: /s?t=1 (Caused by x)",
            "Pool(host='a.example', port=443): Max retries exceeded with url: … (Caused by x)",
        ),
        ("no address at all: 12:30", "no address at all: 12:30"),
    ],
)
def test_urls_are_cut_to_scheme_and_host(text: str, shown: str) -> None:
    assert hide_urls(text) == shown
