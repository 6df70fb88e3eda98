"""Imports point to the left of the line that data goes, in no circle, and each library has one door."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
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
    "hdbscan": {"cluster"},
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
MOST_MODULES = {"figures": 20, "datasets": 20, "lookup": 60, "evaluate": 45}
"""How many modules of memlab an import of a room brings in at most, itself counted."""
MODULES = sorted((ROOT / "memlab").rglob("*.py"))
# The core is what a reader meets first; the others hang on it through registries.
HANGING = (
    "memlab.datasets.importers",
    "memlab.datasets.benchmarks",
    "memlab.llm.proxy",
    "memlab.llm.fixers",
    "memlab.conversation",
    "memlab.questions",
    "memlab.memories",
    "memlab.experiments",
    "memlab.explorer",
    "memlab.notebooks",
    "memlab.cli",
)
CORE = (
    "memlab.records",
    "memlab.text",
    "memlab.llm",
    "memlab.embed",
    "memlab.store",
    "memlab.retrieve",
    "memlab.select",
    "memlab.cluster",
    "memlab.rerank",
    "memlab.knowledge",
    "memlab.summaries",
    "memlab.evaluate",
    "memlab.figures",
    "memlab.datasets",
    "memlab.pipelines",
    "memlab.registry",
    "memlab.config",
    "memlab.errors",
)


def _name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def _room(path: Path) -> str:
    return path.relative_to(ROOT / "memlab").parts[0].removesuffix(".py")


NAMES = {_name(path): path for path in MODULES}


@cache
def _imports(path: Path, *, within_functions: bool = True, for_types: bool = False) -> list[str]:
    """Give what a module imports at its top.

    :param within_functions: with what it imports within a function.
    :param for_types: with what it imports for the type checker alone.
    """
    names, waiting = list[str](), [*ast.parse(path.read_text()).body]
    for node in waiting:
        if isinstance(node, ast.Import | ast.ImportFrom):
            start = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            names += [f"{start}{alias.name}" for alias in node.names]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not within_functions:
            continue
        elif for_types or not isinstance(node, ast.If) or ast.unparse(node.test) != "TYPE_CHECKING":
            waiting += ast.iter_child_nodes(node)
    return names


def _modules(path: Path, **which: bool) -> set[str]:
    """Give the modules of memlab that a module imports."""
    imported = _imports(path, **which)
    longest = (name if name in NAMES else name.rpartition(".")[0] for name in imported)
    return {name for name in longest if name in NAMES and name != _name(path)}


def _brought_in(module: str) -> set[str]:
    """Give the modules of memlab that an import of one brings in, the packages around them too."""
    reached, waiting = set[str](), [module]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            package = name.rpartition(".")[0]
            waiting += [package] if package else []
            waiting += _modules(NAMES[name], within_functions=False)
    return reached


def _is_within(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


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


@pytest.mark.parametrize(("room", "most"), MOST_MODULES.items())
def test_an_import_brings_in_what_it_uses(room: str, most: int) -> None:
    brought = _brought_in(f"memlab.{room}")
    assert len(brought) <= most, sorted(brought)
    code = f"import json, sys, memlab.{room}; print(json.dumps([*sys.modules]))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True, text=True
    )
    loaded = {name for name in json.loads(done.stdout) if name.partition(".")[0] == "memlab"}
    assert loaded <= brought, "nothing is imported by its name alone, as registries do"


@pytest.mark.parametrize("package", CORE)
def test_the_core_imports_nothing_that_hangs_on_it(package: str) -> None:
    """Followed through whatever else it imports; what is imported in functions and for types counts."""
    waiting = [
        name for name in NAMES if _is_within(name, (package,)) and not _is_within(name, HANGING)
    ]
    assert waiting, f"{package} is no package or module"
    path = {name: name for name in waiting}
    while waiting:
        name = waiting.pop()
        assert not _is_within(name, HANGING), path[name]
        for other in _modules(NAMES[name], for_types=True) - path.keys():
            path[other] = f"{path[name]} → {other}"
            waiting.append(other)


def test_what_the_core_names_is_imported_when_a_format_is_looked_for() -> None:
    code = """
import sys, memlab.datasets
named = [name for name in sys.modules if name.startswith("memlab.datasets.")]
print(*named)
assert "locomo" in memlab.formats and "slack" in memlab.datasets.FORMATS
print("memlab.datasets.importers.slack" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    at_once, later = done.stdout.splitlines()
    assert "memlab.datasets.chatlog" in at_once.split()
    assert [name for name in at_once.split() if _is_within(name, HANGING)] == []
    assert later == "True"


def test_a_pipeline_of_other_packages_does_not_import_summaries_and_facts() -> None:
    code = """
import sys, memlab
memlab.pipeline("best | mmr | learned")
print(any(name.startswith(("memlab.summaries.", "memlab.knowledge.")) for name in sys.modules))
print(*memlab.stages)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    imported, listed = done.stdout.splitlines()
    assert imported == "False"
    assert {"tree", "second_keys"} <= {*listed.split()}


def test_a_wheel_has_every_file_that_the_package_reads() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = settings["tool"]["setuptools"]["package-data"]["memlab"]
    packaged = {path for pattern in patterns for path in (ROOT / "memlab").glob(pattern)}
    tables = set((ROOT / "memlab").rglob("*.toml"))
    assert tables
    assert tables <= packaged
