"""A line does one thing: what the packages that were rewritten for it keep to.

Nested expressions are comprehensions, ternaries, boolean operators, lambdas and walruses. Lines
above 100 characters are refused by ruff (E501), but for the packages that pyproject.toml names.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import memlab

PACKAGE = Path(memlab.__file__).parent
NESTED = (
    ast.BoolOp,
    ast.DictComp,
    ast.GeneratorExp,
    ast.IfExp,
    ast.Lambda,
    ast.ListComp,
    ast.NamedExpr,
    ast.SetComp,
)
TEXTS = (ast.Constant, ast.JoinedStr, ast.List)
CONDITIONS = (ast.BoolOp, ast.Compare)
MOST_A_LINE = 0.08
MOST_OF_A_MODULE = 0.125


def read_modules(package: str) -> dict[str, str]:
    """Read the modules of a package; those of memlab itself where none is named."""
    paths = PACKAGE.glob("*.py")
    if package:
        paths = (PACKAGE / package).rglob("*.py")
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(paths)}


def docstring_lines(tree: ast.Module) -> set[int]:
    lines: set[int] = set()
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_text:
            lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def count_nested_and_lines(text: str) -> tuple[int, int]:
    """Count the nested expressions and the lines of code, without docstrings and comments."""
    tree = ast.parse(text)
    in_docstrings = docstring_lines(tree)
    n_lines = 0
    for number, line in enumerate(text.splitlines(), 1):
        code = line.strip()
        if code and not code.startswith("#") and number not in in_docstrings:
            n_lines += 1
    n_nested = sum(isinstance(node, NESTED) for node in ast.walk(tree))
    return n_nested, n_lines


def conditional_products(text: str) -> list[int]:
    """List the lines on which a text or a number is multiplied by a condition."""
    lines = []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
            continue
        for one, other in ((node.left, node.right), (node.right, node.left)):
            if isinstance(one, CONDITIONS) and isinstance(other, TEXTS):
                lines.append(node.lineno)
    return lines


CALM = [
    "",
    "cli",
    "cluster",
    "conversation",
    "datasets",
    "embed",
    "evaluate",
    "experiments",
    "explorer",
    "figures",
    "indexing",
    "knowledge",
    "llm",
    "memories",
    "notebooks",
    "questions",
    "records",
    "rerank",
    "retrieve",
    "select",
    "store",
    "summaries",
    "text",
]


@pytest.mark.parametrize("package", CALM)
def test_a_line_does_one_thing(package: str) -> None:
    all_nested = 0
    all_lines = 0
    dense = {}
    for name, text in read_modules(package).items():
        n_nested, n_lines = count_nested_and_lines(text)
        all_nested += n_nested
        all_lines += n_lines
        if n_nested > MOST_OF_A_MODULE * n_lines:
            dense[name] = round(n_nested / n_lines, 3)
        assert not conditional_products(text), name
        assert "# fmt: " not in text, name
    assert not dense
    assert all_nested <= MOST_A_LINE * all_lines


def test_what_counts_as_dense() -> None:
    dense = '"""Text\nof two lines."""\nvalues = [a or b for a, b in pairs if a] if pairs else []\n'
    assert count_nested_and_lines(dense) == (3, 1)
    assert conditional_products("mark = '!' * (a > b)\nline = 3 * 4\n") == [1]


RULE = re.compile(r"^\s*={4,}")
WHOLE_RULE = re.compile(r"^\s*={4,}(  +={4,})+$")


def test_tables_of_docstrings_have_their_columns() -> None:
    """A line that is wrapped within a table would run its rows together."""
    broken = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if RULE.match(line) and not WHOLE_RULE.match(line):
                broken.append(f"{path.name}:{number}")
    assert not broken
