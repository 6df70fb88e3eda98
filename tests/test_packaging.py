"""pyproject.toml, environment.yml and the code name the same packages."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions, requires
from pathlib import Path

ROOT = Path(__file__).parents[1]

_PIN = re.compile(r"^([A-Za-z0-9_.-]+)(?:\[\w+\])?\s*>=\s*([\w.]+)$")


EXTRAS = ("clusters", "figures", "languages", "lab")
"""What the notebooks need."""
# sentence-transformers is built on it, and gives its floor.
COMES_WITH = {"transformers": "sentence-transformers"}


def _pins(lines: list[str]) -> dict[str, str]:
    matches = [_PIN.match(line) for line in lines]
    return {m[1].lower().replace("_", "-"): m[2] for m in matches if m}


def _project() -> dict:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    for name, lines in extras.items():
        extras[name] = [line for line in lines if not line.startswith("memlab[")]
    return project


def _environment() -> dict[str, str]:
    lines = (ROOT / "environment.yml").read_text().splitlines()
    return _pins([line.strip().removeprefix("- ") for line in lines if line.strip().startswith("- ")])


def test_conda_pins_equal_pyproject() -> None:
    project = _project()
    pins = _pins(sum((project["optional-dependencies"][name] for name in EXTRAS), project["dependencies"]))
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
    lines = project["dependencies"] + [line for name in extras if name != "dev" for line in extras[name]]
    declared = set(_pins(lines)) | {
        name for name, by in COMES_WITH.items() if any(name in r for r in requires(by) or ())
    }
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


def test_what_is_required_is_enough_to_search_and_to_measure(tmp_path: Path) -> None:
    project = _project()
    required = project["dependencies"]
    assert len(required) <= 25
    wanted = _pins(sum((project["optional-dependencies"][name] for name in EXTRAS[:3]), ["tomlkit>=0"])).keys()
    modules = {m for m, by in packages_distributions().items() if {d.lower().replace("_", "-") for d in by} & wanted}
    code = f"""
import sys
class Missing:
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in {modules}:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Missing())
import numpy as np
import memlab
from memlab.cli import main
from memlab.text.analysis import stop_words

data, place = "data/sample/sample.jsonl", ["--encoder", "hashing", "--store", {str(tmp_path / "store")!r}]
for line in (["evaluate", data, "--pipeline", "bm25", "--out", {str(tmp_path / "out")!r}, *place],
             ["ingest", data, *place], ["search", "what did the bookcase cost?", "--scope", "owen", *place]):
    sys.argv = ["memlab", *line]
    try:
        main()
    except SystemExit as end:
        assert not end.code, line
for wrong in (lambda: memlab.figures.style.copy_for_width(memlab.figures.bars.go.Figure(), "full"),
              lambda: memlab.cluster.project(np.eye(40)), lambda: stop_words("de"),
              lambda: memlab.config.write_settings({str(tmp_path)!r}, "recall", {{}})):
    try:
        wrong()
    except memlab.ModelError as error:
        print(error, file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    for extra in EXTRAS:
        assert f'pip install "memlab[{extra}]"' in done.stderr


def test_import_is_light() -> None:
    code = (
        "import sys, memlab; heavy = {'polars', 'numpy', 'torch', 'lancedb', 'plotly', 'sklearn', 'umap'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
