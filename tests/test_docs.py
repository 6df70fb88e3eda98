"""What README and docs tell a reader to do can be done: links, pictures, names, and every block of Python and sh.

The blocks of a page are run in their order, in one folder of their own, the Python ones in one namespace. The folder
holds some sessions of the sample and of its exports. By default an encoder that hashes words stands in for MiniLM
and no browser draws; with the slow tests both are real, and with the nightly ones the sample is whole. Above a block,
``<!-- slow: why -->`` or ``<!-- nightly: why -->`` leaves it to these tests; of ``<!-- not run: why -->`` only the
commands and their options are checked. A block of Python that begins with ``# name.py`` is that file.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
import shlex
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import typer
from pydantic import BaseModel
from stand_in import StandIn

import memlab
from memlab import config, datasets
from memlab.cli import app
from memlab.records import Dataset
from memlab.registry import STAGE_INPUTS

ROOT = Path(__file__).parents[1]
PAGES = {
    path.relative_to(ROOT).as_posix(): path for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
}
BLOCK = re.compile(r"(?:^<!-- (slow|nightly|not run): [^\n]+ -->\n)?^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(!?)\[[^\]]*\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
SAMPLE = "data/sample/sample.jsonl"
EXPORTS = ("chatgpt/conversations.json", "whatsapp/whatsapp-chat-with-jos.txt")
ELSEWHERE = ("docs/providers/claude-ai.md", "docs/chatgpt-data-export-format.md")  # of other projects
MOST_LINES = {"docs/evaluation/language-model.md": 165, "README.md": 130, "docs/evaluation/results.md": 250}

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


def prose(page: Path) -> str:
    return BLOCK.sub("", page.read_text(encoding="utf-8"))


@pages
def test_links_and_pictures_lead_somewhere(page: str) -> None:
    path = PAGES[page]
    for picture, target, heading in LINK.findall(prose(path)):
        there = (path.parent / target).resolve() if target else path
        assert there.exists(), target
        assert not picture or there.stat().st_size > 10_000, target
        headings = re.findall(r"^#+ (.+)$", prose(there), re.MULTILINE) if heading else []
        slugs = [re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings]
        assert not heading or heading in slugs, f"{target}#{heading}: there are {slugs}"


def test_pages_that_messages_and_docstrings_name_are_there() -> None:
    for path in (*(ROOT / "memlab").rglob("*.py"), *ROOT.glob("notebooks/*.py"), *ROOT.glob("data/*.md")):
        for named in re.findall(r"(?<![\w/.-])docs/[\w/-]+\.(?:md|json)", path.read_text(encoding="utf-8")):
            assert (ROOT / named).exists() or named in ELSEWHERE, f"{path}: {named}"


def test_every_page_is_in_the_index_and_in_the_site() -> None:
    index, site = (ROOT / "docs" / "README.md").read_text("utf-8"), (ROOT / "mkdocs.yml").read_text("utf-8")
    names = [path.relative_to(ROOT / "docs").as_posix() for path in PAGES.values() if path.parent != ROOT]
    assert [name for name in names if f"({name})" not in index] == ["README.md"]
    assert [name for name in names if f": docs/{name}\n" not in site] == []
    assert "(docs/README.md)" in PAGES["README.md"].read_text(encoding="utf-8")


def test_pages_are_short() -> None:
    lines = {page: path.read_text(encoding="utf-8").count("\n") for page, path in PAGES.items()}
    assert {page: n for page, n in lines.items() if n > MOST_LINES.get(page, 150)} == {}
    assert sum(lines.values()) - lines.get("docs/evaluation/language-model.md", 0) <= 1_500


def test_every_stage_and_parameter_is_described() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", PAGES["docs/pipelines.md"].read_text("utf-8"), re.MULTILINE))
    missing = []
    for name in memlab.stages:
        for each in inspect.signature(memlab.stages[name]).parameters.values():
            if each.name in STAGE_INPUTS:
                continue
            shown = re.search(rf"`{each.name}(?:=([^`]*))?`", rows.get(name, ""))
            default = shown and shown[1] and eval(shown[1])  # what the page says
            if not shown or (each.default is not each.empty and shown[1] and default != each.default):
                missing.append(f"{name}({each.name}={each.default!r})")
    assert missing == []


def test_every_setting_is_described() -> None:
    from memlab.knowledge import ConfidenceSettings

    page = PAGES["docs/settings.md"].read_text(encoding="utf-8")
    table = dict(re.findall(r"^\| `([\w.]+)` \| (.+?) \| ", page, re.MULTILINE))

    def keys(model: type[BaseModel], before: str) -> Iterator[tuple[str, Any]]:
        for name, field in model.model_fields.items():
            path, default = f"{before}{name}", None if field.is_required() else field.get_default()
            if path == "llm.services":
                yield from keys(config.ServiceSettings, "llm.services.NAME.")
            elif path == "confidence":
                yield from keys(ConfidenceSettings, "confidence.")
            elif isinstance(default, BaseModel) and not path.endswith("decay"):
                yield from keys(type(default), f"{path}.")
            else:
                yield path, default

    there = dict(keys(config.Settings, ""))
    assert set(table) == set(there)
    for key, default in there.items():
        if isinstance(default, (str, int, float)):
            assert tomllib.loads(f"value = {table[key].strip('`')}")["value"] == default, key


@pages
def test_names_exist(page: str) -> None:
    text = prose(PAGES[page])
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
    if words == ["source", ".venv/bin/activate"]:
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


@pages
def test_blocks_run(page: str, memlab_cli: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memlab.embed.transformer.load_minilm", lambda **_: StandIn())
    monkeypatch.setattr("memlab.figures.export", lambda *data, **words: None)
    _with_the_sample(tmp_path)
    _run(page, memlab_cli, tmp_path, monkeypatch, marks=("",))


def test_the_searches_of_the_readme_find_the_answers(memlab_cli: Callable[..., Any], tmp_path: Path) -> None:
    _with_the_sample(tmp_path)
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    block = next(block for block in blocks(PAGES["README.md"]) if "memlab search" in block.text)
    said = [memlab_cli(*words[1:], cwd=tmp_path).out for words in block.commands()]
    assert [answer in out for answer, out in zip(("65", "165", "Tuesday"), said[1::2], strict=True)] == [True] * 3


@pytest.mark.slow
@pytest.mark.parametrize("page", _marked("slow"))
def test_slow_blocks_run(
    page: str, memlab_cli: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _with_the_sample(tmp_path)
    _run(page, memlab_cli, tmp_path, monkeypatch, marks=("", "slow"))
    figures = [name for name in ("my-recall", "map", "diversity") if f'"{name}"' in PAGES[page].read_text("utf-8")]
    assert all((tmp_path / "figures" / f"{name}.pdf").exists() for name in figures)


@pytest.mark.nightly
@pytest.mark.parametrize("page", _marked("nightly"))
def test_nightly_blocks_run(
    page: str, memlab_cli: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _with_the_sample(tmp_path, whole=True)
    _run(page, memlab_cli, tmp_path, monkeypatch, marks=("", "slow", "nightly"))


def _part_of_the_sample() -> Dataset:
    """Keep of each scope the first session, and those of the two short questions with evidence in several sessions."""
    data = memlab.sample()
    turns, kept = dict(data.sessions.select("session_id", "n_turns").iter_rows()), set[str]()
    for scope in data.scopes:
        wanted = [each for each in data.questions.filter(scope=scope)["evidence_sessions"].to_list() if len(each) > 1]
        wanted.sort(key=lambda sessions: sum(turns[session] for session in sessions))
        kept |= {data.sessions.filter(scope=scope)["session_id"][0], *wanted[0], *wanted[1]}
    shown = data.turns.filter(pl.col("session_id").is_in(list(kept)))
    named = pl.concat_list("evidence", pl.col("stale").fill_null([])).list
    inside = named.eval(pl.element().is_in(shown["turn_id"].to_list())).list.all()
    return replace(data, turns=shown, questions=data.questions.filter(inside & (pl.col("evidence").list.len() > 0)))


def _with_the_sample(folder: Path, *, whole: bool = False) -> None:
    """Put a part of the sample, and its exports, where the pages look for them."""
    kept = memlab.sample() if whole else _part_of_the_sample()
    ids = {*kept.turns["turn_id"], *kept.questions["query_id"]}
    path = folder / SAMPLE
    path.parent.mkdir(parents=True)
    with path.open("w", encoding="utf-8") as file:
        for line in (ROOT / SAMPLE).read_text(encoding="utf-8").splitlines(keepends=True):
            row = json.loads(line)
            if "memlab" in row or row.get("query_id", f"{row['scope']}/{row.get('id')}") in ids:
                file.write(line)
    for name in ("data/facts", "data/sample/follow-ups.jsonl"):
        (folder / name).symlink_to(ROOT / name)
    for name in EXPORTS:
        shorter = folder / "data" / "sample" / "exports" / name
        shorter.parent.mkdir(parents=True)
        text = (ROOT / "data" / "sample" / "exports" / name).read_text(encoding="utf-8")
        if name.endswith("json"):
            shorter.write_text(json.dumps([each for each in json.loads(text) if "bookcase" in json.dumps(each)]))
        else:
            lines = text.splitlines(keepends=True)
            at = next(n for n, line in enumerate(lines) if "165" in line)
            shorter.write_text("".join(lines[:40] + lines[max(40, at - 20) : at + 10]))


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
    for added in (memlab.stages, memlab.encoders, memlab.measures, memlab.formats, memlab.clusterers):
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
