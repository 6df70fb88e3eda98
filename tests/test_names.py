"""The names of the package mean what they say, whatever was imported before."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

import memlab


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
