"""`http:` and `heartbeat:`: what is taken, what is refused, what is warned of."""

from datetime import time, timedelta

import pytest

from watchdog.core.ruleset import HeartbeatSpec, HttpSpec

PING = "https://hc-ping.com/5f1c9a1e-secret"


def test_without_the_sections_nothing_listens_and_nobody_is_called(load_text) -> None:
    ruleset = load_text("rules: []\n").ruleset
    assert (ruleset.http, ruleset.heartbeat) == (None, None)


@pytest.mark.parametrize(
    ("written", "spec"),
    [
        ("127.0.0.1:9595", HttpSpec(host="127.0.0.1", port=9595)),
        ("localhost:80", HttpSpec(host="localhost", port=80)),
        ('"[::1]:9595"', HttpSpec(host="::1", port=9595)),
    ],
)
def test_an_address_of_this_machine_is_taken_without_a_word(load_text, written: str, spec: HttpSpec) -> None:
    loaded = load_text(f"http: {{ listen: {written} }}\n")
    assert loaded.ruleset.http == spec
    assert not [problem for problem in loaded.warnings if "http" in problem.message]


@pytest.mark.parametrize("written", ["0.0.0.0:9595", '"[::]:9595"', "192.168.0.7:9595"])
def test_an_address_that_others_can_reach_is_taken_with_a_warning(problems, written: str) -> None:
    told = problems(f"http: {{ listen: {written} }}\n")
    assert any(line.startswith("1:17: warning: http: listen: can be reached from other") for line in told)


@pytest.mark.parametrize(
    "written",
    ["9595", '"9595"', "127.0.0.1", "127.0.0.1:0", "127.0.0.1:70000", "example.org:9595", '"::1:9595"'],
)
def test_what_is_no_address_is_refused(problems, written: str) -> None:
    assert any(line.startswith("1:17: http: listen") for line in problems(f"http: {{ listen: {written} }}\n"))


def test_an_http_section_needs_an_address(problems) -> None:
    assert any("http: listen is missing" in line for line in problems("http: {}\n"))


def test_a_heartbeat_is_read_and_its_url_is_a_secret(load_text) -> None:
    text = 'heartbeat: { url: "${PING}", every: 10m, daily_note: "09:00" }\n'
    loaded = load_text(text, {"PING": PING})
    assert loaded.ruleset.heartbeat == HeartbeatSpec(
        url=PING, every=timedelta(minutes=10), daily_note=time(9, 0)
    )
    assert PING not in repr(loaded.ruleset.heartbeat)
    assert "secret" not in loaded.secrets.redact(f"calling {PING}/fail")


def test_a_daily_note_needs_no_url(load_text) -> None:
    spec = load_text('heartbeat: { daily_note: "23:30" }\n').ruleset.heartbeat
    assert (spec.url, spec.daily_note) == ("", time(23, 30))


@pytest.mark.parametrize("written", ["10:30", '"24:00"', '"9:00"', "9h", '"noon"'])
def test_a_time_of_day_is_two_digits_each_in_quotes(problems, written: str) -> None:
    told = problems(f"heartbeat: {{ daily_note: {written} }}\n")
    assert any(line.startswith("1:26: heartbeat: daily_note") for line in told)


@pytest.mark.parametrize(
    "url", ["ftp://host/x", "hc-ping.com/x", "https://", "http://host:99999/", "https://[x/"]
)
def test_what_is_no_web_address_is_refused_without_showing_it(problems, url: str) -> None:
    told = problems('heartbeat: { url: "${PING}" }\n', {"PING": url})
    assert any("heartbeat: url: is no http or https URL" in line for line in told)
    assert not any(url in line for line in told)


def test_a_url_in_the_file_is_warned_of(problems) -> None:
    told = problems(f'heartbeat: {{ url: "{PING}" }}\n')
    assert any("warning: heartbeat: url: whoever reads this file" in line for line in told)


def test_a_heartbeat_that_says_nothing_is_refused(problems) -> None:
    assert any(
        "heartbeat: needs url or daily_note" in line for line in problems("heartbeat: { every: 5m }\n")
    )
