"""pyproject.toml, environment.yml and the code name the same packages."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions, version
from pathlib import Path
from types import SimpleNamespace

import pytest
from packaging.version import Version
from talk import excerpt, write

import memlab
from memlab import atomic_files
from memlab.errors import install_command

ROOT = Path(__file__).parents[1]

_PIN = re.compile(r"^([A-Za-z0-9_.-]+)(?:\[\w+\])?\s*>=\s*([\w.]+)$")
EXTRAS = ("clusters", "figures", "languages", "lab")
"""What the notebooks need."""
ON_DEMAND = ("multilingual", "ray", "lint", "slow", "nightly", "docs")
"""What make lint, slow, nightly and docs install, and one's own choice."""


def _pins(lines: list[str]) -> dict[str, str]:
    matches = [_PIN.match(line) for line in lines]
    return {m[1].lower().replace("_", "-"): m[2] for m in matches if m}


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
REQUIRED = PROJECT["dependencies"]
OPTIONAL = {
    name: [line for line in lines if not line.startswith("memlab[")]
    for name, lines in PROJECT["optional-dependencies"].items()
}


def test_pins_are_installed_and_those_of_conda() -> None:
    lines = (ROOT / "environment.yml").read_text().splitlines()
    conda = _pins(
        [line.strip().removeprefix("- ") for line in lines if line.strip().startswith("- ")]
    )
    python = {"python": PROJECT["requires-python"].removeprefix(">=")}
    assert conda == _pins(sum((OPTIONAL[name] for name in EXTRAS), REQUIRED)) | python
    declared = sum(OPTIONAL.values(), REQUIRED)
    assert len(_pins(declared)) == len(declared)
    later = _pins([line for name in ON_DEMAND for line in OPTIONAL[name]]).keys()
    installed = {
        name.lower().replace("_", "-")
        for each in packages_distributions().values()
        for name in each
    }
    for name, floor in _pins(declared).items():
        if name in installed or name not in later:
            assert Version(version(name)) >= Version(floor), name


def test_the_built_package_has_the_sample() -> None:
    """What setup.py and MANIFEST.in name is what ``memlab.atomic_files.shipped_data`` looks for."""
    script = (ROOT / "setup.py").read_text()
    assert 'parent / "data" / "sample"' in script
    assert '"memlab" / "data" / "sample"' in script
    assert '"memlab" / "data" / "notebooks"' in script
    manifest = "graft data/sample\ninclude notebooks/*.ipynb\n"
    assert (ROOT / "MANIFEST.in").read_text() == manifest
    assert Path(atomic_files.__file__).parent / "data" == atomic_files._INSTALLED_DATA


WAYS = """
import memlab
from memlab.llm.recorded_answers import recorded_rows_by_key_or_warn
assert "installed" in memlab.__file__
data = memlab.sample(scopes=["owen"])
assert data.questions.height == memlab.load("sample").questions.filter(scope="owen").height > 0
assert len(recorded_rows_by_key_or_warn("recorded")) > 50_000
done = memlab.run(["bm25"], data, encoder=None, levels=["turn"])
assert done.conclusions()
"""


@pytest.mark.nightly
def test_a_plain_install_has_the_sample_in_any_folder(tmp_path: Path) -> None:
    """The package is built, installed alone, and used from an empty folder."""
    pytest.importorskip("setuptools")
    source, installed, empty = (tmp_path / name for name in ("source", "installed", "empty"))
    empty.mkdir()
    for name in ("memlab", "data/sample", "notebooks"):
        shutil.copytree(ROOT / name, source / name)
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--target", str(installed), str(source)], check=True)
    environment = os.environ | {"PYTHONPATH": str(installed)}
    places = ["--store", str(tmp_path / "store"), "--encoder", "hashing"]
    memlab = [sys.executable, "-c", "from memlab.cli import main; main()"]
    export = "data/sample/exports/chatgpt/conversations.json"
    for command in (
        [sys.executable, "-c", WAYS],
        [*memlab, "ingest", export, *places],
        [*memlab, "search", "what did the bookcase cost?", *places],
        [*memlab, "evaluate", "sample", "--pipeline", "bm25", *places],
    ):
        done = subprocess.run(command, cwd=empty, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert (empty / "results" / "sample" / "report.md").is_file()
    copy = "from memlab.notebooks import copy_shipped_notebooks; copy_shipped_notebooks('mine')"
    subprocess.run([sys.executable, "-c", copy], cwd=empty, env=environment, check=True)
    assert [path.name for path in sorted((empty / "mine").iterdir())] == [
        path.name for path in sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
    ]


@pytest.fixture(scope="module")
def packages_of() -> dict[str, set[str]]:
    """The packages that a module may be from."""
    found = packages_distributions().items()
    return {module: {name.lower().replace("_", "-") for name in names} for module, names in found}


@pytest.mark.slow
def test_what_the_package_imports_is_declared(packages_of: dict[str, set[str]]) -> None:
    declared = set(
        _pins(sum((lines for name, lines in OPTIONAL.items() if name != "dev"), REQUIRED))
    )
    declared.add("anyio")  # httpx is built on it, and gives the floor
    imported = set()
    for path in (ROOT / "memlab").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            imported |= {name.partition(".")[0] for name in names}
    third = imported - set(sys.stdlib_module_names) - {"memlab"}
    assert [name for name in third if not packages_of.get(name, {name}) & declared] == []


@pytest.mark.slow
def test_what_is_required_is_enough_to_search_and_to_measure(
    packages_of: dict[str, set[str]], tmp_path: Path
) -> None:
    """The lightest import first, then a search without the packages of the extras, in one process of its own."""
    assert len(REQUIRED) <= 24
    wanted = _pins(sum((OPTIONAL[name] for name in EXTRAS[:3]), ["papermill>=0"])).keys()
    modules = {module for module, names in packages_of.items() if names & wanted}
    code = f"""
import sys
import memlab
heavy = {{'polars', 'numpy', 'torch', 'lancedb', 'plotly', 'sklearn', 'umap'}} & set(sys.modules)
assert not heavy, heavy
missing = {modules}
class Missing:
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in missing:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Missing())
import numpy as np
from memlab.cli import main
from memlab.text.text_analyser import stop_words

def run_notebooks():
    from memlab import notebooks
    next(notebooks.run_notebooks({str(tmp_path)!r}, {str(tmp_path)!r}, {{}}))

data, place = {str(tmp_path / "talk.jsonl")!r}, ["--encoder", "hashing", "--store", {str(tmp_path / "store")!r}]
for line in (["evaluate", data, "--pipeline", "bm25", "--out", {str(tmp_path / "out")!r}, *place],
             ["search", "what did the bookcase cost?", "--scope", "owen", *place]):
    sys.argv = ["memlab", *line]
    try:
        main()
    except SystemExit as end:
        assert not end.code, line
for wrong in (lambda: memlab.figures.style.copy_for_width(memlab.figures.bars.go.Figure(), "full"),
              lambda: memlab.cluster.project(np.eye(40)), lambda: stop_words("de"),
              run_notebooks):
    try:
        wrong()
    except memlab.ModelError as error:
        print(error, file=sys.stderr)
"""
    write(tmp_path / "talk.jsonl", excerpt(60, scopes=["owen"]))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    for extra in EXTRAS:
        assert install_command(extra) in done.stderr


def test_an_extra_is_installed_from_where_memlab_came_from(monkeypatch):
    def came_from(text):
        origin = SimpleNamespace(read_text=lambda name: text)
        monkeypatch.setattr(memlab.errors, "distribution", lambda name: origin)
        return install_command("lab")

    assert came_from(None) == 'pip install "memlab[lab]"'
    archive = {"url": "https://host/memlab.whl", "archive_info": {}}
    assert came_from(json.dumps(archive)) == 'pip install "memlab[lab]"'
    folder = {"url": "file:///home/ann/my%20clone", "dir_info": {}}
    assert came_from(json.dumps(folder)) == (
        'pip install "memlab[lab] @ file:///home/ann/my%20clone"'
    )
    folder["dir_info"] = {"editable": True}
    assert came_from(json.dumps(folder)) == 'pip install -e "/home/ann/my clone[lab]"'
