"""Templates fill in, fail with one clear line, and cannot do harm."""

import pytest

from watchdog.text.templates import MAX_RESULT, MAX_SOURCE, compile_template

VALUES = {
    "task": "llama",
    "value": 0.041,
    "labels": {"team": "nlp"},
    "members": [{"pod": "p0", "value": 0.1}, {"pod": "p1", "value": 0.2}],
}


def test_values_mappings_and_lists_are_filled_in() -> None:
    text = (
        "{{ task }} of {{ labels.team }}: {{ (value * 100) | round(1) }} %"
        "{% for m in members %} {{ m.pod }}{% endfor %}"
    )

    assert compile_template(text).render(VALUES) == "llama of nlp: 4.1 % p0 p1"


def test_markup_is_not_escaped_here() -> None:
    """Making text harmless is the renderer's business, once, for every channel."""
    assert compile_template("{{ task }}").render({"task": "<b>"}) == "<b>"


def test_calls_that_a_message_needs_are_there() -> None:
    text = "{% for k, v in labels.items() %}{{ k }}={{ v.upper() }}{% endfor %}{{ labels.get('x', '-') }}"

    assert compile_template(text).render(VALUES) == "team=NLP-"


@pytest.mark.parametrize(
    "text", ["{{ task", "{% if %}", "{% for x in members %}", "{{ x | no_such_filter }}"]
)
def test_a_broken_template_is_refused_with_the_line(text: str) -> None:
    with pytest.raises(ValueError, match="line 1: "):
        compile_template(text)


@pytest.mark.parametrize(
    "text",
    [
        "{{ nobody }}",
        "{{ labels.nobody.more }}",
        "{{ value / 0 }}",
        "{{ task + 1 }}",
        "{{ task.__class__.__mro__ }}",
        "{{ task.format(1) }}",
        "{{ ''.join(['a']) }}",
        "{{ range(10) }}",
        "{{ self }}{{ cycler }}",
        "{{ 'x' * 1000000000 }}",
        "{{ 10 ** 10 ** 10 }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ task.ljust(1000000000) }}",
        "{{ members.append(1) }}",
    ],
)
def test_what_fails_or_is_forbidden_is_one_clear_line(text: str) -> None:
    template = compile_template(text)

    with pytest.raises(ValueError, match=r"\S") as caught:
        template.render(VALUES)

    assert "\n" not in str(caught.value)


def test_imports_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\S"):
        compile_template("{% include '/etc/passwd' %}").render(VALUES)


def test_sizes_and_loops_are_bounded() -> None:
    with pytest.raises(ValueError, match="characters"):
        compile_template("x" * (MAX_SOURCE + 1))
    deep = "".join(f"{{% for a{n} in members %}}" for n in range(4)) + "x" + "{% endfor %}" * 4
    with pytest.raises(ValueError, match="nested"):
        compile_template(deep)
    endless = "{% for a in big %}{% for b in big %}{{ b }}{% endfor %}{% endfor %}"
    assert len(compile_template(endless).render({"big": ["xxxxxxxxxx"] * 500})) == MAX_RESULT


def test_templates_of_the_same_text_are_equal() -> None:
    assert compile_template("a{{ 1 }}") == compile_template("a{{ 1 }}")
    assert compile_template("a") != compile_template("b")
    assert repr(compile_template("a")) == "JinjaText('a')"
