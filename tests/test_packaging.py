"""pyproject.toml, environment.yml and the code name the same packages."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).parents[1]

_PIN = re.compile(r"^([A-Za-z0-9_.-]+)(?:\[\w+\])?\s*>=\s*([\w.]+)$")


def _pins(lines: list[str]) -> dict[str, str]:
    matches = [_PIN.match(line) for line in lines]
    return {m[1].lower().replace("_", "-"): m[2] for m in matches if m}


def _project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def _environment() -> dict[str, str]:
    lines = (ROOT / "environment.yml").read_text().splitlines()
    return _pins([line.strip().removeprefix("- ") for line in lines if line.strip().startswith("- ")])


def test_conda_pins_equal_pyproject() -> None:
    project = _project()
    pins = _pins(project["dependencies"] + project["optional-dependencies"]["lab"])
    pins["python"] = project["requires-python"].removeprefix(">=")
    assert _environment() == pins


def test_every_dependency_has_a_floor_that_is_installed() -> None:
    from importlib.metadata import version

    project = _project()
    lines = project["dependencies"] + [line for extra in project["optional-dependencies"].values() for line in extra]
    pins = _pins(lines)
    assert len(pins) == len(lines)
    for name, floor in pins.items():
        installed = [int(n) for n in re.findall(r"\d+", version(name))]
        assert installed >= [int(n) for n in re.findall(r"\d+", floor)], name


def test_what_the_package_imports_is_declared() -> None:
    project = _project()
    extras = project["optional-dependencies"]
    declared = set(_pins(project["dependencies"] + [line for name in extras if name != "dev" for line in extras[name]]))
    found = packages_distributions()
    imported = set()
    for path in (ROOT / "memlab").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                names.append(node.module)
            imported |= {name.split(".")[0] for name in names}
    third = imported - set(sys.stdlib_module_names) - {"memlab"}
    missing = {name for name in third if not {d.lower().replace("_", "-") for d in found.get(name, [name])} & declared}
    assert not missing


def test_import_is_light() -> None:
    code = (
        "import sys, memlab; heavy = {'polars', 'numpy', 'torch', 'lancedb', 'plotly', 'sklearn', 'umap'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
