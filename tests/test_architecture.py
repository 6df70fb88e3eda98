"""Imports point to the left of the line that data goes, in no circle, and each library has one door."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

LINE = [
    ("errors",),
    ("distributed", "files"),
    ("config", "records", "code_digest"),
    ("registry",),
    ("text",),
    ("sessions", "terminal"),
    ("llm",),
    ("datasets",),
    ("embed",),
    ("cluster",),
    ("store",),
    ("retrieve",),
    ("rerank",),
    ("select",),
    ("knowledge",),
    ("summaries",),
    ("pipelines",),
    ("lookup",),
    ("indexing",),
    ("conversation",),
    ("memories",),
    ("evaluate",),
    ("experiments",),
    ("figures",),
    ("explorer",),
    ("notebooks",),
    ("cli",),
]
PLACE = {room: i for i, rooms in enumerate(LINE) for room in rooms}
DOORS = {
    "lancedb": {"store"},
    "lance": {"store"},
    "umap": {"cluster"},
    "torch": {"embed", "rerank"},
    "transformers": {"embed"},
    "sentence_transformers": {"embed", "rerank"},
    "httpx": {"datasets", "llm", "memories"},
    "plotly": {"figures"},
    "anywidget": {"explorer"},
    "fontTools": {"figures"},
    "papermill": {"notebooks"},
    "ray": {"distributed"},
    "typer": {"cli"},
}
MODULES = sorted((ROOT / "memlab").rglob("*.py"))


@cache
def _imports(path: Path) -> tuple[str, ...]:
    """Give what a module imports, at its top or within a function, but for the type checker alone."""
    return tuple(_names(_runtime(ast.parse(path.read_text()))))


def _names(tree: ast.AST) -> Iterator[str]:
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
    for name in _imports(path):
        parts = name.split(".")
        if parts[0] == "memlab" and len(parts) > 1 and parts[1] in PLACE and parts[1] != room:
            assert PLACE[parts[1]] < PLACE[room], f"{room} imports {name}"
        if parts[0] in DOORS:
            assert room in DOORS[parts[0]], f"{room} imports {name}"


def _name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


NAMES = {_name(path): path for path in MODULES}


def _modules(path: Path) -> set[str]:
    """Give the modules of memlab that a module imports."""
    longest = (name if name in NAMES else name.rpartition(".")[0] for name in _imports(path))
    return {name for name in longest if name in NAMES and name != _name(path)}


def test_no_file_imports_itself_by_way_of_others() -> None:
    try:
        TopologicalSorter({name: _modules(path) for name, path in NAMES.items()}).prepare()
    except CycleError as error:
        pytest.fail(f"import each other in a circle: {' → '.join(error.args[1])}")


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_private_modules_are_read_in_their_own_room(path: Path) -> None:
    own = _room(path)
    foreign = [name.split(".") for name in _modules(path) if name.split(".")[1:2] != [own]]
    private = [".".join(parts) for parts in foreign if any(part.startswith("_") for part in parts)]
    assert not private, f"{own} imports {', '.join(private)}"


def test_modules_fit_in_a_head() -> None:
    long = {_name(path): n for path in MODULES if (n := len(path.read_text().splitlines())) > 300}
    if long:
        warnings.warn(f"more than 300 lines, more than one concept? {long}", stacklevel=1)


def test_every_room_has_its_place() -> None:
    assert {_room(path) for path in MODULES} - {"__init__"} <= set(PLACE)


def test_the_page_of_the_architecture_shows_the_line() -> None:
    page = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    drawn = "".join(line for line in page.splitlines() if line.startswith("    "))
    assert [tuple(name.strip() for name in rooms.split(",")) for rooms in drawn.split("→")] == LINE
