"""Imports point to the left of the line that data goes, in no circle, and each library has one door."""

from __future__ import annotations

import ast
import re
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# Written there for people: rooms from left to right, those between two arrows beside each other.
_DRAWN = re.findall(
    r"^    (.*)", (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8"), re.MULTILINE
)
LINE = [tuple(map(str.strip, rooms.split(","))) for rooms in "".join(_DRAWN).split("→")]
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
    "papermill": {"notebooks"},
    "ray": {"distributed"},
    "typer": {"cli"},
}
MODULES = sorted((ROOT / "memlab").rglob("*.py"))


def _name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def _room(path: Path) -> str:
    return path.relative_to(ROOT / "memlab").parts[0].removesuffix(".py")


NAMES = {_name(path): path for path in MODULES}


@cache
def _imports(path: Path) -> list[str]:
    """Give what a module imports, at its top or within a function, but for the type checker alone."""
    names, waiting = list[str](), [*ast.parse(path.read_text()).body]
    for node in waiting:
        if isinstance(node, ast.Import | ast.ImportFrom):
            start = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            names += [f"{start}{alias.name}" for alias in node.names]
        elif not isinstance(node, ast.If) or ast.unparse(node.test) != "TYPE_CHECKING":
            waiting += ast.iter_child_nodes(node)
    return names


def _modules(path: Path) -> set[str]:
    """Give the modules of memlab that a module imports."""
    longest = (name if name in NAMES else name.rpartition(".")[0] for name in _imports(path))
    return {name for name in longest if name in NAMES and name != _name(path)}


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_imports_point_left_through_the_doors_and_to_nothing_private(path: Path) -> None:
    room = _room(path)
    for name in _imports(path) if room != "__init__" else ():
        top, _, rest = name.partition(".")
        assert room in DOORS.get(top, {room}), f"{room} imports {name}"
        other = rest.partition(".")[0]
        if top == "memlab" and other in PLACE and other != room:
            assert PLACE[other] < PLACE[room], f"{room} imports {name}"
    foreign = [name for name in _modules(path) if name.split(".")[1:2] != [room]]
    assert [name for name in foreign if "._" in name] == []


def test_no_file_imports_itself_by_way_of_others() -> None:
    try:
        TopologicalSorter({name: _modules(path) for name, path in NAMES.items()}).prepare()
    except CycleError as error:
        pytest.fail(f"import each other in a circle: {' → '.join(error.args[1])}")


def test_every_room_has_its_place() -> None:
    assert {_room(path) for path in MODULES} - {"__init__"} == set(PLACE)
