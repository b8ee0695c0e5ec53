"""Sources, watch entries and channels: names, secrets, and what is wrong with them."""

import pytest

from watchdog.config.build import Knowledge
from watchdog.core.ruleset import Secret
from watchdog.sources.registry import SOURCE_KINDS
from watchdog.text.patterns import Re2Engine

SOURCES = "sources: { alaya: { kind: alaya } }\n"


def test_secrets_of_a_source_come_from_the_environment(load_text) -> None:
    env = {"JOB_WATCHDOG_ALAYA_API_KEY": "key-of-all", "JOB_WATCHDOG_ALAYA_B_API_KEY": "key-of-b"}

    loaded = load_text(
        "sources: { alaya: { kind: alaya }, alaya-b: { kind: alaya }, c: { kind: alaya, api_key: '${C}' }}\n",
        env | {"C": "key-of-c"},
    )

    assert [source.options["api_key"] for source in loaded.ruleset.sources] == [
        "key-of-all",
        "key-of-b",
        "key-of-c",
    ]
    assert all(isinstance(source.options["api_key"], Secret) for source in loaded.ruleset.sources)
    assert loaded.secrets.redact("key-of-all key-of-b key-of-c") == "**** **** ****"
    assert "key-of" not in repr(loaded)


def test_options_have_their_types(load_text) -> None:
    source = load_text(
        "sources: { a: { kind: alaya, base_url: 'http://h:1', concurrency: 2, rate: 0.5, auth: hmac }}\n"
    ).ruleset.sources[0]

    assert source.options == {"base_url": "http://h:1", "concurrency": 2, "rate": 0.5, "auth": "hmac"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "sources: { a: { kind: alya } }",
            "1:23: sources: a: kind: 'alya' is not known (did you mean alaya?)",
        ),
        ("sources: { a: {} }", "1:15: sources: a: kind is missing (such as { kind: alaya })"),
        ("sources: { a: alaya }", "1:15: sources: a: kind is missing"),
        ("sources: [alaya]", "1:10: sources: needs a mapping of names to entries"),
        ("sources: { a/b: { kind: alaya } }", "1:12: sources: 'a/b' cannot be a name (begin with a letter"),
        (
            "sources: { a: { kind: alaya, api_kye: hunter2 } }",
            "1:30: sources: a: unknown key 'api_kye' (did you mean api_key?)",
        ),
        (
            "sources: { a: { kind: alaya, auth: oauth } }",
            "1:36: sources: a: auth: 'oauth' is not a word for this",
        ),
        ("sources: { a: { kind: alaya, rate: fast } }", "1:36: sources: a: rate: 'fast' is not a number"),
        ("sources: { a: { kind: alaya, poll: 60 } }", "1:36: sources: a: poll: 60 has no unit"),
        (
            SOURCES + "watch: [ { source: alya, task: a } ]",
            "2:20: watch: #1: there is no source 'alya' (did you mean alaya?)",
        ),
        (
            SOURCES + "watch: [ { source: alaya } ]",
            '2:10: watch: #1: names no task (add task: "1234567890", or name',
        ),
        (SOURCES + "watch: [ { task: a } ]", "2:10: watch: #1: source is missing"),
        (
            SOURCES + "watch: [ { source: alaya, task: a }, { source: alaya, task: 'a' } ]",
            "2:38: watch: this task is watched already, since line 2",
        ),
        (
            SOURCES + "watch: [ { source: alaya, task: a, name: 'x*' } ]",
            "2:42: watch: #1: name: 'x*' is a glob, but task: says already which one",
        ),
        (
            SOURCES + "watch: [ { source: alaya, id: a } ]",
            "2:10: watch: #1: names no task",
        ),
        ("channels: { a: {} }", "1:16: channels: a: url is missing"),
        ("channels: { a: { url: foo } }", "1:23: channels: a: url: is no URL of a channel"),
        (
            "channels: { a: { url: 'json://h', max_bytes: 10 } }",
            "1:46: channels: a: max_bytes: 10 is not between 200 and",
        ),
        (
            "channels: { a: { url: 'json://h/x', min_severity: high } }",
            "1:51: channels: a: min_severity: 'high' is not",
        ),
        ("routes: []", "1:1: routes: comes with a later version"),
        ("ruels: []", "1:1: unknown key 'ruels' (did you mean rules?)"),
        ("[]", "1:1: needs a mapping of keys to values"),
    ],
)
def test_what_is_wrong_with_places(problems, text: str, problem: str) -> None:
    told = [line for line in problems(text) if "warning: " not in line]

    assert told[0].startswith(problem)


def test_keys_beginning_with_x_are_a_place_for_anchors(load_text) -> None:
    text = "x-idle: &idle { metric: gpu, below: 1% }\nrules: [ { name: a, <<: *idle } ]\n"

    assert load_text(text).ruleset.rules[1].name == "a"


def test_a_channel_that_cannot_be_read_is_still_a_name(problems) -> None:
    told = problems(
        "channels: { a: { url: '${GONE}' } }\nrules: [ { name: r, metric: gpu, below: 1%, notify: [a] } ]\n"
    )

    told = [line for line in told if "warning: " not in line]
    assert len(told) == 1
    assert told[0].startswith(
        "1:23: GONE is not set (set it in the environment, in a .env file, or as a file"
    )


def test_a_token_in_the_file_is_warned_of_and_never_shown(problems, load_text) -> None:
    text = "channels: { a: { url: 'slack://T0AAAAAAA/B0BBBBBBB/cTokenToken123456789' } }\n"

    told = problems(text)

    assert told[2] == (
        "1:23: warning: channels: a: url: holds a password or token, for everybody who can read this file "
        '(write it as "${NAME}" and set NAME outside)'
    )
    assert load_text(text).secrets.redact("at cTokenToken123456789") == "at ****"


def test_without_channels_the_console_may_be_named(load_text) -> None:
    assert load_text("rules: [ { name: r, metric: gpu, below: 1%, notify: console } ]").ruleset.rules[
        1
    ].notify == ("console",)


def test_those_who_know_urls_and_sources_are_asked(problems) -> None:
    asked: list[str] = []

    def inspect_url(url: str) -> tuple[str, ...]:
        asked.append(url)
        return ("cannot be used: no such service", "option 'retry' is not used")

    knowledge = Knowledge(
        engine=Re2Engine(),
        kinds=SOURCE_KINDS,
        inspect_url=inspect_url,
        inspect_source=lambda spec: (f"cannot be used: {spec.name} has no key",),
    )
    text = SOURCES + "watch: [ { source: alaya, name: a } ]\nchannels: { c: { url: '${U}' } }\n"

    told = problems(text, {"U": "json://secret-host/x"}, using=knowledge)

    assert asked == ["json://secret-host/x"]
    assert told == [
        "1:12: sources: alaya: cannot be used: alaya has no key",
        "3:23: channels: c: url: cannot be used: no such service",
        "3:23: warning: channels: c: url: option 'retry' is not used",
    ]
