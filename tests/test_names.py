"""The names of the package mean what they say, whatever was imported before."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import memlab
from memlab import records

ROWS = [value for value in vars(records).values() if dataclasses.is_dataclass(value)]


def test_no_exported_name_becomes_a_module_once_its_submodules_are_imported() -> None:
    before = {name: getattr(memlab, name) for name in memlab.__all__}
    for module in pkgutil.walk_packages(memlab.__path__, "memlab."):
        importlib.import_module(module.name)
    submodules = {module.name for module in pkgutil.iter_modules(memlab.__path__)}
    for name, value in before.items():
        assert getattr(memlab, name) is value, name
        assert isinstance(value, ModuleType) or name not in submodules, (
            f"memlab.{name} is a name and a submodule"
        )
    assert callable(memlab.replay)
    assert callable(memlab.run)


ROLE = re.compile(r":(?:func|class|mod|data|meth|attr|exc):`~?([\w.]+)`")
QUOTED = re.compile(r"(?<!`)``([A-Za-z_][\w.]*)(?:\([^`]*\))?``(?!`)")
ENDINGS = re.compile(
    r".*\.(af|css|csv|html|js|json|jsonl|md|npy|parquet|py|svg|tex|toml|trec|tsv|txt)"
)
FIELD = object()
PACKAGES = [
    module.name for module in pkgutil.walk_packages(memlab.__path__, "memlab.") if module.ispkg
]
MODULES = [
    "memlab",
    *(module.name for module in pkgutil.walk_packages(memlab.__path__, "memlab.")),
]


def texts_of(name: str) -> Iterator[str]:
    """Give the texts of a module: docstrings, those of its constants, and messages."""
    module = importlib.import_module(name)
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def leads_somewhere(name: str, places: Iterable[Any]) -> bool | None:
    """Follow a dotted name from some places; ``None`` where its first part is in none of them."""
    first, *others = name.split(".")
    reached = _step_from(places, first)
    if not reached:
        return None
    for part in others:
        reached = _step_from(reached, part)
    return bool(reached)


def _step_from(places: Iterable[Any], name: str) -> list[Any]:
    found = (_step(place, name) for place in places)
    return [value for value in found if value is not None]


def _step(value: Any, name: str) -> Any:
    """Give an attribute, or a module of a package; :data:`FIELD` for a field, whose value only an object has."""
    if value is FIELD or name in getattr(value, "__annotations__", ()):
        return FIELD
    if not isinstance(value, ModuleType):
        return getattr(value, name, None)
    try:
        return getattr(value, name, None) or importlib.import_module(f"{value.__name__}.{name}")
    except ModuleNotFoundError:
        return None


def places_of(name: str) -> list[Any]:
    """Give where the names of a module's texts are looked for: itself, its classes, its package, and above memlab."""
    module = importlib.import_module(name)
    classes = [value for value in vars(module).values() if inspect.isclass(value)]
    own = [value for value in classes if value.__module__ == name]
    package = importlib.import_module(name.rpartition(".")[0] or "memlab")
    return [module, *own, package, SimpleNamespace(memlab=memlab)]


@pytest.mark.parametrize("name", MODULES)
def test_what_a_docstring_refers_to_exists(name: str) -> None:
    """Of a role always; of a dotted name in double backticks, where its first part is something there."""
    places, missing = places_of(name), []
    for text in texts_of(name):
        missing += [role for role in ROLE.findall(text) if not leads_somewhere(role, places)]
        for quoted in QUOTED.findall(text):
            if "." in quoted and not ENDINGS.fullmatch(quoted):
                missing += [quoted] if leads_somewhere(quoted, places) is False else []
    assert missing == []


@pytest.mark.parametrize("name", PACKAGES)
def test_what_a_package_says_is_in_it_is_there(name: str) -> None:
    """A lower-case word in double backticks in its docstring is a module, a name or a registered one."""
    package = importlib.import_module(name)
    modules = [
        importlib.import_module(module.name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}.")
    ]
    registries = (
        memlab.stages,
        memlab.encoders,
        memlab.clusterers,
        memlab.measures,
        memlab.formats,
    )
    known = {module.__name__.rpartition(".")[2] for module in modules}
    known |= {public for module in (package, memlab, *modules) for public in vars(module)}
    known |= {registered for registry in registries for registered in registry} | set(
        memlab.__all__
    )
    known |= {field.name for row in ROWS for field in dataclasses.fields(row)}
    words = [word for word in QUOTED.findall(package.__doc__ or "") if word.islower()]
    assert [word for word in words if "." not in word and word not in known] == []
