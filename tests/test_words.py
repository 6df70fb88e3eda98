"""Docs, docstrings and messages use the field's words, not the home-made ones that they replaced."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
HOME_MADE = re.compile(
    r"\b(told|believed|manners?|sheets?|pieces?|alike|cut out|narrowed|climbs?|ladder|telling words?|is shown to"
    r"|held back|answers completed|was tried|were tried|bears?)\b",
    re.IGNORECASE,
)


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Give the docstrings, messages and helps of a module; a word alone is a key, a constant a prompt or pattern."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source if HOME_MADE.search(source) else "")
    assigned = [node for node in tree.body if isinstance(node, ast.Assign)]
    constants = [
        node
        for node in assigned
        if isinstance(node.targets[0], ast.Name) and node.targets[0].id.isupper()
    ]
    skipped = {id(inner) for constant in constants for inner in ast.walk(constant.value)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and " " in str(node.value) and id(node) not in skipped:
            yield node.lineno, str(node.value)


def test_pages_docstrings_and_messages_use_the_words_of_the_field() -> None:
    quoted = re.compile(r"```.*?```|`[^`]*`|\]\([^)]*\)", re.DOTALL)
    prose = [(page, 0, quoted.sub("", page.read_text(encoding="utf-8"))) for page in PAGES]
    prose += [
        (path, *each) for path in sorted((ROOT / "memlab").rglob("*.py")) for each in texts(path)
    ]
    found = [
        f"{path}:{line}: {match[0]}"
        for path, line, text in prose
        for match in HOME_MADE.finditer(text)
    ]
    assert found == []
