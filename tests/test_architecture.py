"""Imports point to the left of the line that data goes, and each library has one door."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

LINE = [
    ("errors",),
    ("files",),
    ("config", "records"),
    ("language",),
    ("sessions", "terminal"),
    ("llm",),
    ("datasets",),
    ("embed",),
    ("cluster",),
    ("summarize",),
    ("rewrite",),
    ("store",),
    ("retrieve",),
    ("rerank",),
    ("select",),
    ("rollup",),
    ("pipelines",),
    ("knowledge",),
    ("indexing",),
    ("context",),
    ("evaluate",),
    ("experiment",),
    ("replay",),
    ("grid",),
    ("crossval",),
    ("learning",),
    ("figures",),
    ("notebooks",),
    ("cli",),
]
PLACE = {room: i for i, rooms in enumerate(LINE) for room in rooms}
DOORS = {
    "lancedb": {"store"},
    "lance": {"store"},
    "hdbscan": {"cluster"},
    "umap": {"cluster"},
    "torch": {"embed", "rerank"},
    "transformers": {"embed", "knowledge"},
    "openai": {"llm"},
    "plotly": {"figures"},
    "kaleido": {"figures"},
    "papermill": {"notebooks"},
    "typer": {"cli"},
}
MODULES = sorted((ROOT / "memlab").rglob("*.py"))


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _room(path: Path) -> str:
    return path.relative_to(ROOT / "memlab").parts[0].removesuffix(".py")


def _runtime(tree: ast.Module) -> ast.Module:
    """Leave out what only the type checker reads."""

    class Drop(ast.NodeTransformer):
        def visit_If(self, node: ast.If) -> ast.AST | None:
            return None if ast.unparse(node.test) == "TYPE_CHECKING" else self.generic_visit(node)

    return Drop().visit(tree)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_left(path: Path) -> None:
    room = _room(path)
    if room == "__init__":
        return
    for name in _imports(_runtime(ast.parse(path.read_text()))):
        parts = name.split(".")
        if parts[0] == "memlab" and len(parts) > 1 and parts[1] in PLACE and parts[1] != room:
            assert PLACE[parts[1]] < PLACE[room], f"{room} imports {name}"
        if parts[0] in DOORS:
            assert room in DOORS[parts[0]], f"{room} imports {name}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_modules_fit_in_a_head(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 300


def test_every_room_has_its_place() -> None:
    assert {_room(path) for path in MODULES} - {"__init__"} <= set(PLACE)
