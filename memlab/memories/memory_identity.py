"""What a memory is: its code, its state, and the versions of the packages that it imports."""

from __future__ import annotations

import ast
import hashlib
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from memlab.errors import PipelineError
from memlab.registry import plugin_digest

SearchableSystem = Any
"""What a memory is made of: a class, an object or a function of somebody else's code."""
_PLAIN_TYPES = (bool, int, float, complex, str, bytes, type(None))
_PACKAGES = ("lib/python*/site-packages/*.dist-info", "Lib/site-packages/*.dist-info")


def describe_memory_for_provenance(system: SearchableSystem, made_object: object) -> dict[str, Any]:
    """Say what a memory is, for provenance: what changes with its code, as far as that can be read.

    :param made_object: an object of it.
    :returns: its ``class`` or ``function``, ``source`` (a digest of code and state, null where they
        cannot be read), ``versions`` of the packages that its module imports, and its ``settings``.
    """
    described_code = system
    if not inspect.isroutine(system):
        described_code = _class_itself_or_type_of(system)
    code_kind = "function"
    if inspect.isclass(described_code):
        code_kind = "class"
    description: dict[str, Any] = {
        code_kind: described_code.__qualname__,
        "source": _digest_of_code_and_state(system),
    }
    versions = versions_of_imported_packages(described_code)
    if versions:
        description["versions"] = versions
    settings = getattr(made_object, "settings", None)
    if isinstance(settings, Mapping):
        description["settings"] = dict(settings)
    return description


def _digest_of_code_and_state(system: SearchableSystem) -> str | None:
    try:
        identity_text = "\x1e".join(_iter_code_and_state_texts(system))
    except (PipelineError, OSError, TypeError, RecursionError):
        return None
    return hashlib.sha256(identity_text.encode()).hexdigest()[:16]


def _iter_code_and_state_texts(system: SearchableSystem) -> Iterator[str]:
    """Give what decides what a memory does: the files of its code, and the values that it holds."""
    if inspect.ismethod(system):
        system = system.__self__
    held_state: Any = {}
    if inspect.isfunction(system):
        yield plugin_digest(system)
        held_state = inspect.getclosurevars(system).nonlocals
    elif isinstance(system, partial):
        yield from _iter_code_and_state_texts(system.func)
        held_state = [system.args, system.keywords]
    else:
        if not _is_class_or_has_settings(system):
            held_state = vars(system)
        for base_class in _class_itself_or_type_of(system).__mro__:
            if base_class.__module__ != "builtins":
                yield _read_module_source_of_class(base_class)
    if not _is_fully_shown_by_repr(held_state):
        raise TypeError("it holds what cannot be written down")
    yield repr(held_state)


def _read_module_source_of_class(described_class: type[Any]) -> str:
    """Read the file of a class; what ``exec`` made may name a module that nobody imported."""
    class_module = sys.modules.get(described_class.__module__)
    if class_module is None:
        raise TypeError(f"the module {described_class.__module__!r} is not imported")
    return inspect.getsource(class_module)


def _class_itself_or_type_of(system: SearchableSystem) -> type[Any]:
    return system if inspect.isclass(system) else type(system)


def _is_class_or_has_settings(system: SearchableSystem) -> bool:
    """Say whether a system needs no look at its attributes: a class, or one with settings."""
    return inspect.isclass(system) or isinstance(getattr(system, "settings", None), Mapping)


def _is_fully_shown_by_repr(value: Any) -> bool:
    """Say whether ``repr`` says what a value is: numbers, texts and containers of these."""
    if type(value) is dict:
        return all(map(_is_fully_shown_by_repr, (*value.keys(), *value.values())))
    if type(value) in (list, tuple, set, frozenset):
        return all(map(_is_fully_shown_by_repr, value))
    return isinstance(value, _PLAIN_TYPES)


def versions_of_imported_packages(class_or_function: Callable[..., Any]) -> dict[str, str]:
    """Give the versions of the installed packages that the module of a function or class imports.

    Imports inside of functions count too. memlab and Python's own modules are left out.
    """
    source_module = sys.modules.get(getattr(class_or_function, "__module__", None) or "")
    try:
        module_source = inspect.getsource(source_module)  # type: ignore[arg-type]
    except (OSError, TypeError):
        return {}
    version_by_package = dict[str, str]()
    for imported_name in _top_level_imports_of_source(module_source):
        for package in _installed_packages_of_module(imported_name):
            version_by_package[package] = version(package)
    return version_by_package


@cache
def _top_level_imports_of_source(source_code: str) -> tuple[str, ...]:
    try:
        syntax_tree = ast.parse(source_code)
    except SyntaxError:
        return ()
    imported_names = set[str]()
    for syntax_node in ast.walk(syntax_tree):
        if isinstance(syntax_node, ast.Import):
            imported_names.update(
                import_alias.name.partition(".")[0] for import_alias in syntax_node.names
            )
        elif (
            isinstance(syntax_node, ast.ImportFrom) and syntax_node.module and not syntax_node.level
        ):
            imported_names.add(syntax_node.module.partition(".")[0])
    return tuple(sorted(imported_names - {"memlab", *sys.stdlib_module_names}))


@cache
def _installed_packages_of_module(module_name: str) -> tuple[str, ...]:
    """Name the installed packages that a module is of; one that is not installed is of none."""
    try:
        version(module_name)
    except PackageNotFoundError:  # such as mem0, whose package is mem0ai
        if not _is_module_in_site_packages(module_name):
            return ()
        return tuple(sorted(set(_installed_packages_by_module().get(module_name, ()))))
    return (module_name,)


def _is_module_in_site_packages(module_name: str) -> bool:
    try:
        module_spec = find_spec(module_name)
    except (ImportError, ValueError):
        return False
    if module_spec is None or module_spec.origin is None:
        return False
    return re.search("(site|dist)-packages", module_spec.origin) is not None


@cache
def _installed_packages_by_module() -> Mapping[str, list[str]]:
    return packages_distributions()


def digest_of_command_environment(command: Iterable[str]) -> str:
    """Name what a command runs: its files, and the packages beside the Python that is its program.

    :returns: 16 hex digits, which change where a file does, or the version of a package.
    """
    program, *arguments = command
    digest_parts = list[str]()
    for pattern in _PACKAGES:
        digest_parts += sorted(
            installed_path.name for installed_path in Path(program).parent.parent.glob(pattern)
        )
    for argument in arguments:
        installed_path = Path(argument)
        if installed_path.is_file():
            digest_parts.append(hashlib.sha256(installed_path.read_bytes()).hexdigest())
    return hashlib.sha256("\n".join(digest_parts).encode()).hexdigest()[:16]
