"""What README and docs tell a reader to do can be done: links, pictures, names, and every block of Python and sh.

The blocks of a page are run in their order, in one folder of their own, the Python ones in one namespace. By default
the folder holds one scope of the sample, an encoder that hashes words stands in for MiniLM, and no browser draws; with
the slow tests it is two scopes, MiniLM and a browser. Above a block, ``<!-- slow: why -->`` leaves its page to the slow
tests, ``<!-- nightly: why -->`` the block to the nightly ones; with ``<!-- not run: why -->`` only its commands and
their options are checked. A block of Python that begins with ``# name.py`` is that file.
"""

from __future__ import annotations

import importlib
import json
import re
import shlex
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer
from stand_in import StandIn

import memlab
from memlab import config, datasets
from memlab.cli import app

ROOT = Path(__file__).parents[1]
PAGES = {
    path.relative_to(ROOT).as_posix(): path for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
}
BLOCK = re.compile(r"(?:^<!-- (slow|nightly|not run): [^\n]+ -->\n)?^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SAMPLE = "data/sample/sample.jsonl"

pages = pytest.mark.parametrize("page", PAGES)


@dataclass(frozen=True)
class Block:
    """A fenced block: its page and first line, its language, ``slow``, ``not run`` or nothing, and its text."""

    page: Path
    line: int
    language: str
    mark: str
    text: str

    def commands(self) -> Iterator[list[str]]:
        for line in self.text.replace("\\\n", " ").splitlines():
            if words := shlex.split(line, comments=True):
                yield words


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(page, text.count("\n", 0, match.start(3)), match[2], match[1] or "", match[3])
        for match in BLOCK.finditer(text)
    ]


@pages
def test_links_and_pictures_lead_somewhere(page: str) -> None:
    path = PAGES[page]
    for picture, target in re.findall(r"(!?)\[[^\]]*\]\((?!https?:)([^)#]+)\)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target
        assert not picture or (path.parent / target).stat().st_size > 10_000, target


def test_every_page_is_linked() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    missing = [name for name, path in PAGES.items() if path.parent != ROOT and f"({path.name})" not in index]
    assert missing == ["docs/README.md"]
    assert "(docs/README.md)" in PAGES["README.md"].read_text(encoding="utf-8")


def test_readme_is_short_and_its_script_is_fifteen_lines() -> None:
    assert PAGES["README.md"].read_text(encoding="utf-8").count("\n") < 200
    script = next(block for block in blocks(PAGES["README.md"]) if block.language == "python")
    assert len([line for line in script.text.splitlines() if line.strip()]) <= 15


def test_every_stage_is_described() -> None:
    text = PAGES["docs/pipelines.md"].read_text(encoding="utf-8")
    assert [name for name in memlab.stages if not re.search(rf"^\| .*`{name}`.* \|", text, re.MULTILINE)] == []


@pages
def test_names_exist(page: str) -> None:
    text = BLOCK.sub("", PAGES[page].read_text(encoding="utf-8"))
    for name in set(re.findall(r"`(memlab(?:\.\w+)+)", text)) - {"memlab.toml"}:
        value: Any = importlib.import_module("memlab")
        for part in name.split(".")[1:]:
            value = getattr(value, part, None) or importlib.import_module(f"{value.__name__}.{part}")
    for command in re.findall(r"`memlab ([a-z][^`]*)`", text):
        _parse(["memlab", *shlex.split(command.replace("…", ""))])


@pages
def test_blocks_parse(page: str) -> None:
    for block in blocks(PAGES[page]):
        assert block.language in ("python", "sh", "toml", "json"), f"{page}:{block.line}: name the block's language"
        if block.language == "python":
            compile(block.text, f"{page}:{block.line}", "exec")
        elif block.language == "sh":
            for words in block.commands():
                _parse(words)


def _parse(words: list[str]) -> None:
    """See that a command exists and takes these options, and run nothing.

    Of ``memlab VERB`` in running text the arguments may be left out.
    """
    program, *rest = words
    if program == "make":
        targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert [word for word in rest if "=" not in word and word not in targets] == [], words
        return
    if program == "pip":
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        assert re.fullmatch(r"memlab\[(\w+)\]", rest[1])[1] in extras, words  # type: ignore[index]
        return
    assert program == "memlab", f"{words}: only memlab, make and pip are checked"
    while rest[0].startswith("--"):  # --plugin MODULE stands before the verb
        rest = rest[2:]
    group = typer.main.get_command(app)
    assert rest[0] in group.commands, words  # type: ignore[attr-defined]
    command = group.commands[rest[0]]  # type: ignore[attr-defined]
    try:
        command.make_context(rest[0], rest[1:])
    except Exception as error:
        if type(error).__name__ != "MissingParameter" or len(rest) > 1:
            raise AssertionError(f"{shlex.join(words)}: {error}") from error


def _marked(mark: str) -> list[str]:
    return [name for name, path in PAGES.items() if any(block.mark == mark for block in blocks(path))]


@pytest.mark.parametrize("page", [page for page in PAGES if page not in _marked("slow")])
def test_blocks_run(page: str, memlab_cli: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memlab.embed.transformer.load_minilm", lambda **_: StandIn())
    monkeypatch.setattr("memlab.figures.export", lambda *data, **words: None)
    _with_the_sample(tmp_path, scopes=1)
    _run(page, memlab_cli, tmp_path, monkeypatch, marks=("",))


@pytest.mark.slow
@pytest.mark.parametrize("page", ["README.md", *_marked("slow")])
def test_slow_blocks_run(
    page: str, memlab_cli: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _with_the_sample(tmp_path, scopes=2)
    _run(page, memlab_cli, tmp_path, monkeypatch, marks=("", "slow"))
    assert page != "README.md" or (tmp_path / "figures" / "my-recall.pdf").exists()


@pytest.mark.nightly
@pytest.mark.parametrize("page", _marked("nightly"))
def test_nightly_blocks_run(
    page: str, memlab_cli: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _with_the_sample(tmp_path, scopes=4)
    _run(page, memlab_cli, tmp_path, monkeypatch, marks=("", "slow", "nightly"))


def _with_the_sample(folder: Path, *, scopes: int) -> None:
    """Put the first scopes of the sample where the pages look for it."""
    names = memlab.sample().scopes[:scopes]
    lines = (ROOT / SAMPLE).read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if json.loads(line).get("scope") in (None, *names)]
    (folder / SAMPLE).parent.mkdir(parents=True)
    (folder / SAMPLE).write_text("".join(kept), encoding="utf-8")
    (folder / "data" / "facts").symlink_to(ROOT / "data" / "facts")
    (folder / "data" / "sample" / "follow-ups.jsonl").symlink_to(ROOT / "data" / "sample" / "follow-ups.jsonl")


def _run(
    page: str,
    memlab_cli: Callable[..., Any],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    marks: tuple[str, ...],
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    monkeypatch.setattr(importlib.import_module("memlab.datasets.sample"), "_FILE", folder / SAMPLE)
    for added in (memlab.stages, memlab.encoders, memlab.measures, memlab.formats):
        monkeypatch.setattr(added, "_functions", dict(added._functions))
    for name in ("strategies.txt", "notebooks", "tests"):
        (folder / name).symlink_to(ROOT / name)
    namespace: dict[str, Any] = {"__name__": "page"}
    for block in blocks(PAGES[page]):
        where = f"{page}:{block.line}"
        if block.mark not in marks:
            continue
        if named := re.match(r"# (\w+)\.py\n", block.text):
            Path(f"{named[1]}.py").write_text(block.text, encoding="utf-8")
            monkeypatch.setitem(sys.modules, named[1], None)  # to be forgotten afterwards
            del sys.modules[named[1]]
        elif block.language == "python":
            exec(compile("\n" * block.line + block.text, str(block.page), "exec"), namespace)
        elif block.language == "sh":
            for words in block.commands():
                if words[0] == "memlab":
                    done = memlab_cli(*words[1:], cwd=folder)
                    assert done.code == 0, f"{where}: {shlex.join(words)}\n{done.err[-2000:]}"
        elif block.language == "json":
            Path("own.jsonl").write_text(block.text, encoding="utf-8")
            assert datasets.load("own.jsonl").questions.height, where
        elif block.language == "toml" and block.text.startswith("[project"):
            tomllib.loads(block.text)
        elif block.language == "toml":
            Path("own").mkdir(exist_ok=True)
            Path("own", "memlab.toml").write_text(block.text, encoding="utf-8")
            config.settings(directory="own")
