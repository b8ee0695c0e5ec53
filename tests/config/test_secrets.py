"""`${NAME}`: where it is looked up, how it is filled in, and that no value is ever shown."""

from pathlib import Path

import pytest

from watchdog.config.secrets import Names, SecretBook

RULE = "rules: [ {{ name: r, metric: gpu, below: 1%, description: {} }} ]\n"


def description(load_text, written: str, env: dict[str, str]) -> str:
    return load_text(RULE.format(written), env).ruleset.rules[1].description


@pytest.mark.parametrize(
    ("written", "filled"),
    [
        ("'${A}'", "one"),
        ("'<${A}-${B}>'", "<one-two words>"),
        ("'${C:-default}'", "default"),
        ("'${EMPTY:-default}'", "default"),
        ("'${C:-a:-b}'", "a:-b"),
        ("'${A:-default}'", "one"),
        ("'$${A}'", "${A}"),
        ("'$A $ {A} 5$'", "$A $ {A} 5$"),
        ("'${NESTED}'", "${A}"),
    ],
)
def test_names_are_filled_in_once(load_text, written: str, filled: str) -> None:
    env = {"A": "one", "B": "two words", "EMPTY": "", "NESTED": "${A}"}

    assert description(load_text, written, env) == filled


def test_whatever_was_filled_in_is_masked_from_then_on(load_text) -> None:
    loaded = load_text(RULE.format("'see ${WIKI} or ${OTHER:-the readme}'"), {"WIKI": "wiki-swordfish"})

    assert loaded.secrets.redact("wiki-swordfish: the readme") == "****: the readme"


def test_a_reference_within_braces_needs_quotes(problems) -> None:
    assert problems("channels:\n  a: { url: ${TEAM} }\n") == [
        '2:13: within { } or [ ], a ${NAME} needs quotes (write "${TEAM}")'
    ]


def test_elsewhere_a_reference_needs_none(load_text) -> None:
    text = "channels:\n  a:\n    url: ${TEAM}\n"

    assert (
        str(load_text(text, {"TEAM": "json://localhost/a"}).ruleset.channels[0].url) == "json://localhost/a"
    )


def test_a_value_cannot_change_the_structure_of_the_file(load_text) -> None:
    assert description(load_text, "'${A}'", {"A": "x', enabled: false, labels: {a: 'b"}).startswith(
        "x', enabled"
    )


def test_keys_are_never_filled_in(problems) -> None:
    assert problems("'${A}': 1\n", {"A": "rules"})[-1].startswith("1:1: unknown key '${A}'")


def test_a_filled_in_value_is_text_that_may_be_a_duration_or_a_number(rule_problems, load_text) -> None:
    text = "rules: [ { name: r, metric: gpu, below: '${LEVEL}', for: '${TIME}', enabled: '${ON}' } ]\n"

    assert load_text(text, {"LEVEL": "10%", "TIME": "5m", "ON": "true"}).ruleset.rules[1].hold.seconds == 300


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("'${WEBHOOK}'", "WEBHOOK is not set (set it in the environment"),
        ("'${EMPTY}'", "EMPTY is not set"),
        ("'${SLACK_URLS}'", "SLACK_URLS is not set (SLACK_URL_S is set: did you mean that?)"),
        ("'${a-b}'", "${a-b} is no reference to a variable (write ${NAME} or ${NAME:-default}"),
        ("'${}'", "${} is no reference to a variable"),
        ("'${A'", "${A is no reference to a variable"),
    ],
)
def test_a_missing_name_is_said_and_nothing_else(problems, written: str, problem: str) -> None:
    told = problems(RULE.format(written), {"EMPTY": "", "SLACK_URL_S": "hunter2"})

    told = [line for line in told if "warning: " not in line]
    assert len(told) == 1
    assert told[0].partition(": ")[2].startswith(problem)
    assert "hunter2" not in told[0]


@pytest.mark.parametrize(
    "rule",
    [
        "for: '${S}'",
        "below: '${S}'",
        "severity: '${S}'",
        "notify: '${S}'",
        "enabled: '${S}'",
        "log: { match: '(${S}' }",
        "select: { source: '${S}' }",
        "select: { '${S}': x }",
        "while: '${S}'",
        "labels: { a: '${LONG}' }",
    ],
)
def test_no_complaint_shows_a_value(problems, rule: str) -> None:
    secret = "hunter2-swordfish"

    told = problems(f"rules: [ {{ name: r, metric: gpu, {rule} }} ]\n", {"S": secret, "LONG": secret * 30})

    assert told
    assert not [line for line in told if "hunter2" in line]


def test_the_same_name_may_be_used_often_and_is_reported_where_it_stands(problems) -> None:
    told = problems("x-a: &a '${GONE}'\nrules: [ { name: *a, metric: gpu, below: 1%, description: *a } ]\n")

    assert next(line for line in told if "GONE" in line).startswith("1:6: GONE is not set")
    assert len([line for line in told if "GONE" in line]) == 1


def test_names_are_looked_up_in_the_environment_then_in_files(tmp_path: Path) -> None:
    dotenv, secrets = tmp_path / ".env", tmp_path / "secrets"
    secrets.mkdir()
    dotenv.write_text("A=dotenv\nB=dotenv\nexport C='quoted $X'\n", encoding="utf-8")
    for name, value in (("A", "file"), ("B", "file"), ("D", "with newline\n"), ("e_url", "lower\r\n")):
        (secrets / name).write_bytes(value.encode())

    names = Names({"A": "environment", "B": ""}, dotenv=[dotenv], directories=[tmp_path / "none", secrets])

    assert [names[name] for name in ("A", "B", "C", "D", "E_URL")] == [
        "environment",
        "dotenv",
        "quoted $X",
        "with newline",
        "lower",
    ]
    assert names.get("F") is None


def test_a_secret_that_cannot_be_read_says_why(problems, tmp_path: Path) -> None:
    (tmp_path / "TOKEN").mkdir()
    (tmp_path / "OTHER").write_bytes(b"\xff\xfe")
    names = Names({}, directories=[tmp_path])

    told = [line for line in problems(RULE.format("'${TOKEN} ${OTHER}'"), names) if "warning: " not in line]

    assert told[0].endswith(f"TOKEN is not set ({tmp_path}/TOKEN cannot be read: Is a directory)")
    assert told[1].endswith(f"OTHER is not set ({tmp_path}/OTHER cannot be read: it is not UTF-8 text)")


def test_the_book_masks_values_and_the_secret_parts_of_urls() -> None:
    book = SecretBook()
    book.add("https://user:pass%20word@hooks.example.com/services/T0AAAAAAA/B0BBBBBBB/cTokenToken123")

    assert book.redact("the password pass word is wrong") == "the password **** is wrong"
    assert book.redact("GET /cTokenToken123?x=1") == "GET /****?x=1"
    assert book.redact("hooks.example.com is down") == "hooks.example.com is down"


def test_the_book_is_open_until_the_end() -> None:
    book = SecretBook()

    assert book.redact("swordfish") == "swordfish"
    book.add("swordfish")
    assert book.redact("swordfish") == "****"
    book.add("hunter2-hunter2")
    assert book.redactor.mask("swordfish hunter2-hunter2") == "**** ****"
