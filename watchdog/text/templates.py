"""Jinja2 templates for a rule's own words, in a sandbox.

Owns the environment: no imports, no calls but a few harmless ones, no deep loops, undefined names
are errors. Implements `core.protocols.Template`; every failure is a ValueError with one clear line.
"""

from collections.abc import Mapping
from functools import lru_cache
from itertools import islice

from jinja2 import StrictUndefined, TemplateError, TemplateSyntaxError, nodes
from jinja2 import Template as JinjaTemplate
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

MAX_SOURCE = 4_000  # characters
MAX_RESULT = 4_000
MAX_LOOP_DEPTH = 3

_MAX_CHUNKS = 20_000
_FILTERS = frozenset(
    {
        "abs", "capitalize", "count", "default", "d", "first", "float", "int", "join", "last",
        "length", "list", "lower", "map", "max", "min", "reject", "rejectattr", "round", "select",
        "selectattr", "sort", "string", "sum", "title", "trim", "truncate", "unique", "upper",
    }
)  # fmt: skip
_CALLS = frozenset(
    {
        "items", "keys", "values", "get", "upper", "lower", "title", "strip", "startswith", "endswith",
        "split", "cycle",
    }
)  # fmt: skip


class _Environment(ImmutableSandboxedEnvironment):
    """A sandbox in which a short template cannot make a huge number or text."""

    intercepted_binops = frozenset({"*", "**", "%"})

    def call_binop(self, context: Context, operator: str, left: object, right: object) -> object:
        """Allow multiplication and remainder, of numbers only."""
        if operator == "**" or not (isinstance(left, int | float) and isinstance(right, int | float)):
            raise ValueError(f"`{operator}` cannot be used on this")
        return super().call_binop(context, operator, left, right)

    def is_safe_callable(self, obj: object) -> bool:
        """Allow a few methods of texts and mappings."""
        return getattr(obj, "__name__", "") in _CALLS and super().is_safe_callable(obj)


def _environment() -> _Environment:
    environment = _Environment(autoescape=False, undefined=StrictUndefined, keep_trailing_newline=False)
    environment.globals.clear()
    environment.filters = {name: environment.filters[name] for name in _FILTERS}
    return environment


_ENVIRONMENT = _environment()


class JinjaText:
    """A compiled template; equal to another of the same text."""

    __slots__ = ("_template", "text")

    def __init__(self, text: str, template: JinjaTemplate) -> None:
        self.text = text
        self._template = template

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JinjaText) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"JinjaText({self.text!r})"

    def render(self, values: Mapping[str, object]) -> str:
        """Render, at most MAX_RESULT characters; raises ValueError with the template's failure."""
        try:
            chunks = list(islice(self._template.generate(values), _MAX_CHUNKS))
        except Exception as error:  # an expression in a template may raise anything
            raise ValueError(_reason(error)) from error
        return "".join(chunks)[:MAX_RESULT]


@lru_cache(maxsize=256)
def compile_template(text: str) -> JinjaText:
    """Compile one template.

    Raises:
        ValueError: it is no valid template, too long, or its loops are nested too deeply.
    """
    if len(text) > MAX_SOURCE:
        raise ValueError(f"a template may have {MAX_SOURCE} characters, not {len(text)}")
    try:
        tree = _ENVIRONMENT.parse(text)
        if _depth(tree) > MAX_LOOP_DEPTH:
            raise ValueError(f"loops may be nested {MAX_LOOP_DEPTH} deep")
        template = _ENVIRONMENT.from_string(text)
    except (TemplateError, RecursionError, SyntaxError, OverflowError) as error:
        raise ValueError(_reason(error)) from error
    return JinjaText(text, template)


def _depth(node: nodes.Node) -> int:
    deepest = max(map(_depth, node.iter_child_nodes()), default=0)
    return deepest + isinstance(node, nodes.For)


def _reason(error: Exception) -> str:
    if isinstance(error, TemplateSyntaxError):
        return f"line {error.lineno}: {error.message}"
    return " ".join(str(error).split()) or type(error).__name__
