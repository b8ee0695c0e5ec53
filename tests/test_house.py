"""The house rules that no linter checks: sizes, doc openings, root imports, the import name."""

import ast
from importlib import metadata
from pathlib import Path

import pytest

import watchdog

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "watchdog"
FILES = sorted(PACKAGE.rglob("*.py"))
MAX_FILE_LINES = 450
MAX_FUNCTION_LINES = 60


def _functions(tree: ast.AST) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def _length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = function.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    start = first.end_lineno if documented and first.end_lineno else function.lineno
    return (function.end_lineno or start) - start


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_files_and_functions_are_short(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= MAX_FILE_LINES
    long = {f.name: _length(f) for f in _functions(ast.parse(text)) if _length(f) > MAX_FUNCTION_LINES}
    assert not long


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_nobody_imports_from_the_package_root(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "watchdog":
            assert [alias.name for alias in node.names] == ["__version__"]


def test_the_import_name_is_ours() -> None:
    owners = set(metadata.packages_distributions().get("watchdog", ()))
    assert owners <= {"job-watchdog"}
    assert Path(watchdog.__file__).parent.name == "watchdog"
    assert watchdog.__version__
