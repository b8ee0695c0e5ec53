"""Whatever the bytes: a ruleset or problems, never another exception, and never a secret."""

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.rules import TEXTS
from watchdog.config.build import Knowledge, loads
from watchdog.errors import ConfigError

ENV = {"TEAM_CHAT_URL": "json://localhost/swordfish-2000", "JOB_WATCHDOG_ALAYA_API_KEY": "hunter2-hunter2"}
CASES = 2000
PIECES = (*TEXTS, "%", "---", "...")


def survive(content: str | bytes, knowledge: Knowledge) -> bool:
    """Load; whether it could be used. Any exception but ConfigError fails the test."""
    told = ()
    try:
        loads(content, file="rules.yaml", env=ENV, knowledge=knowledge)
    except ConfigError as error:
        told = error.problems
    assert all(problem.message for problem in told)
    assert not [problem for problem in told if "swordfish" in str(problem) or "hunter2" in str(problem)]
    return not told


@pytest.fixture(scope="module")
def example(root: Path) -> str:
    """The example without its comments, so that most mutations hit something."""
    lines = (root / "rules.example.yaml").read_text(encoding="utf-8").splitlines()
    return "\n".join(
        line.split("  #")[0] for line in lines if line.strip() and not line.strip().startswith("#")
    )


def mutated(text: str, dice: random.Random) -> str:
    for _ in range(dice.choice((1, 1, 2, 5))):
        at, length = dice.randrange(len(text)), dice.choice((0, 1, 2, 8, 40))
        match dice.randrange(4):
            case 0:
                text = text[:at] + text[at + length + 1 :]
            case 1:
                text = text[:at] + dice.choice(PIECES) + text[at + length :]
            case 2:
                other = dice.randrange(len(text))
                text = text[:at] + text[other : other + length] + text[at:]
            case _:
                lines = text.split("\n")
                a, b = dice.randrange(len(lines)), dice.randrange(len(lines))
                lines[a], lines[b] = lines[b], lines[a]
                text = "\n".join(lines)
    return text


@pytest.mark.parametrize("seed", range(8))
def test_a_mutated_example_never_crashes_the_loader(example: str, knowledge: Knowledge, seed: int) -> None:
    dice = random.Random(seed)

    usable = sum(survive(mutated(example, dice), knowledge) for _ in range(CASES // 8))

    assert 0 < usable < CASES // 8  # else the mutations are too gentle, or too rough


@given(st.one_of(st.binary(max_size=200), st.text(max_size=200)))
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_are_survived(knowledge: Knowledge, content: str | bytes) -> None:
    survive(content, knowledge)


WORDS = st.sampled_from(
    (
        *(
            "rules",
            "sources",
            "watch",
            "channels",
            "defaults",
            "name",
            "metric",
            "gpu",
            "below",
            "above",
            "for",
        ),
        *("levels", "share", "peers", "log", "match", "count", "within", "status", "enters", "is", "absent"),
        *(
            "silent",
            "changes",
            "by",
            "pod",
            "select",
            "notify",
            "while",
            "a",
            "10%",
            "5m",
            "[]",
            "{}",
            "null",
        ),
        *("-1", "1e3", "'${X}'", "*a", "&a"),
    )
)
TREES = st.recursive(
    WORDS,
    lambda inner: (
        st.lists(inner, max_size=4).map(lambda items: f"[{', '.join(items)}]")
        | st.lists(st.tuples(WORDS, inner), max_size=4).map(
            lambda items: "{" + ", ".join(f"{key}: {value}" for key, value in items) + "}"
        )
    ),
    max_leaves=25,
)


@given(st.lists(st.tuples(WORDS, TREES), max_size=5))
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_tree_of_our_own_words_is_survived(knowledge: Knowledge, entries: list[tuple[str, str]]) -> None:
    survive("\n".join(f"{key}: {value}" for key, value in entries), knowledge)


@given(TREES)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_rule_is_survived(knowledge: Knowledge, tree: str) -> None:
    survive(f"rules:\n  - {{ name: r, metric: gpu, share: {tree} }}\n  - {tree}\n", knowledge)
