import pytest

from watchdog.config.report import Mark, Report
from watchdog.config.yaml_nodes import MAX_BYTES, ListNode, MapNode, Node, ScalarNode, parse


def tree(text: str | bytes) -> tuple[Node | None, list[str]]:
    report = Report("f")
    node = parse(text, report)
    return node, [str(problem).removeprefix("f:") for problem in report.problems(str)]


def value_of(node: Node | None, key: str) -> Node:
    assert isinstance(node, MapNode)
    return next(entry.value for entry in node.entries if entry.key.text == key)


def test_every_key_and_value_knows_its_place() -> None:
    node, problems = tree("a:\n  b: [x, 中, 'z']\n")

    inside = value_of(node, "a")
    items = value_of(inside, "b")
    assert isinstance(inside, MapNode)
    assert isinstance(items, ListNode)
    assert not problems
    assert inside.entries[0].key.mark == Mark(2, 3)
    assert [item.mark for item in items.items] == [Mark(2, 7), Mark(2, 10), Mark(2, 13)]


def test_scalars_stay_text_and_know_whether_they_were_quoted() -> None:
    node, _ = tree("a: no\nb: 'no'\nc: 010\nd: !!str 1e3\n")

    plain = {key: value_of(node, key) for key in "abcd"}
    assert [(value.text, value.plain) for value in plain.values() if isinstance(value, ScalarNode)] == [
        ("no", True),
        ("no", False),
        ("010", True),
        ("1e3", False),
    ]


def test_anchors_and_merge_keys_are_followed() -> None:
    node, problems = tree("x-a: &a { one: 1, two: 2 }\nb: { <<: *a, two: 3 }\n")

    merged = value_of(node, "b")
    assert isinstance(merged, MapNode)
    assert not problems
    assert {
        entry.key.text: entry.value.text for entry in merged.entries if isinstance(entry.value, ScalarNode)
    } == {
        "two": "3",
        "one": "1",
    }


def test_a_bomb_of_aliases_is_refused_at_once() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]

    node, problems = tree("\n".join(lines))

    assert node is None
    assert "values once aliases are followed" in problems[0]


def test_aliases_that_are_used_often_but_stay_small_are_fine() -> None:
    node, problems = tree("a: &a [1, 2]\nb: [" + ", ".join(["*a"] * 1000) + "]\n")

    assert node is not None
    assert not problems


def test_a_large_honest_file_is_not_taken_for_a_bomb() -> None:
    text = "[[[[[[" + ", ".join(["x"] * 30_000) + "]]]]]]"

    node, problems = tree(text)

    assert node is not None
    assert not problems


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", " the file is empty"),
        ("# only a comment\n", " the file is empty"),
        ("a: 1\na: 2\n", "2:1: 'a' is here twice; the first is in line 1"),
        ("a: &a [*a]\n", "1:8: *a is used inside of what it stands for"),
        (
            "a: *b\n",
            '1:4: *b stands for nothing: there is no &b above (a text that begins with * needs quotes: "*b")',
        ),
        ("a: *\n", '1:4: a text that begins with * needs quotes (write "*" or "*-worker")'),
        ("a:\n\tb: 1\n", "2:1: a tab is used for indentation (YAML wants spaces)"),
        ("a: @b\n", "1:4: a text cannot begin with @ (put the text in quotes)"),
        ("a: 'x\n", "1:4: the quote that opens here is never closed"),
        ("a: [1, 2\nb: 3\n", "1:4: the [ that opens here is not closed before line 2"),
        ("a: {x: 1\nb: 3\n", "1:4: the { that opens here is not closed before line 2"),
        ('a: "\\d"\n', "1:5: in double quotes a backslash begins an escape, and this one is unknown"),
        ("a: b: c\n", "1:5: a second ': ' in one value, or a key indented further than its neighbours"),
        ("a: 1\nfoo\nb: 2\n", "2:1: this is neither 'key: value' nor '- item'"),
        ("a: {{ x }}\n", "1:5: a key must be a plain word (a text with { } or [ ] needs quotes)"),
        ("a: !foo x\n", "1:4: the tag !foo is not used here (put the text in quotes)"),
        ("a: !!python/name:os.system x\n", "1:4: the tag !!python/name:os.system is not used here"),
        ("a: 1\n---\nb: 1\n", "2:1: a second document begins here (one file is one document: drop the ---)"),
        ("<<: 3\n", "1:1: << takes in a mapping, such as <<: *name"),
        ("a: x\0y\n", "1:5: a NUL byte cannot stand in YAML (delete it)"),
        ("a: \x1b[31m\n", "1:4: the control character U+001B cannot stand in YAML (delete it)"),
        ("a: \ud800\n", "1:4: the control character U+D800 cannot stand in YAML (delete it)"),
        (b"a: 1\nb: \xff\n", "2:4: not UTF-8 text from here on (save the file as UTF-8)"),
        (b"\xff\xfea\0", " the file is UTF-16 (save it as UTF-8)"),
        (b"#" * (MAX_BYTES + 1), " the file is larger than 1024 KiB (is it the right file?)"),
        ("&a [&a [", "1:9: not YAML: did not find expected node content"),
        ("[" * 2000, "1:1001: nested far too deep"),
        ("- " * 2000, "1:81: nested more than 40 deep"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_place(text: str | bytes, problem: str) -> None:
    _, problems = tree(text)

    assert len(problems) == 1
    assert problems[0].startswith(problem)


def test_a_byte_order_mark_is_no_problem_and_shifts_no_column() -> None:
    node, problems = tree("\ufeffa: 1\n".encode())

    assert isinstance(node, MapNode)
    assert not problems
    assert node.entries[0].value.mark == Mark(1, 4)


def test_a_value_that_is_missing_at_the_end_stands_within_the_file() -> None:
    node, problems = tree("a: 1\n? b")

    assert isinstance(node, MapNode)
    assert not problems
    assert node.entries[1].value.mark == Mark(2, 4)
