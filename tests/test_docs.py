"""What README and docs tell a reader to do can be done: links, pictures, names, and every block of Python and sh.

The blocks of a page are run in their order, the Python ones in one namespace. The pages share a
folder with two conversations of the sample, cut short, its exports, and a store that keeps what a
page encoded and indexed. An encoder that hashes words stands in for MiniLM, curves are searched for
in one step, and no browser draws. With the slow tests a browser draws, a page has a folder of its
own, and the README's searches are real; with the nightly ones all is real, and the sample whole.
Above a block, ``<!-- slow: why -->`` or ``<!-- nightly: why -->`` leaves it to these tests; of
``<!-- not run: why -->`` only the commands and their options are checked. A block of Python that
begins with ``# name.py`` is that file.
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
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import typer
from scipy.optimize import differential_evolution
from stand_in import StandIn
from talk import excerpt, write

import memlab
from memlab import config, datasets
from memlab.cli import app
from memlab.knowledge import ConfidenceSettings
from memlab.registry import STAGE_INPUTS

ROOT = Path(__file__).parents[1]
PAGES = {
    path.relative_to(ROOT).as_posix(): path
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
}
BLOCK = re.compile(
    r"(?:^<!-- (slow|nightly|not run): [^\n]+ -->\n)?^```(\w*)\n(.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
LINK = re.compile(r"(!?)\[[^\]]*\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
SAMPLE = Path("data", "sample", "sample.jsonl")
EXPORTS = ("chatgpt/conversations.json", "whatsapp/whatsapp-chat-with-jos.txt")
ELSEWHERE = (
    "docs/providers/claude-ai.md",
    "docs/chatgpt-data-export-format.md",
)  # of other projects
COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]

pages = pytest.mark.parametrize("page", PAGES)


@dataclass(frozen=True)
class Block:
    """A fenced block: its page and first line, its language, ``slow``, ``not run`` or nothing, and its text."""

    page: Path
    line: int
    language: str
    mark: str
    text: str

    @property
    def where(self) -> str:
        return f"{self.page.name}:{self.line}"

    def commands(self) -> list[list[str]]:
        lines = self.text.replace("\\\n", " ").splitlines()
        return [words for line in lines if (words := shlex.split(line, comments=True))]


def blocks(page: str) -> list[Block]:
    text = PAGES[page].read_text(encoding="utf-8")
    return [
        Block(PAGES[page], text.count("\n", 0, match.start(3)), match[2], match[1] or "", match[3])
        for match in BLOCK.finditer(text)
    ]


def prose(path: Path) -> str:
    return BLOCK.sub("", path.read_text(encoding="utf-8"))


@pages
def test_links_names_commands_and_blocks_can_be_followed(page: str) -> None:
    path, text = PAGES[page], prose(PAGES[page])
    for picture, target, heading in LINK.findall(text):
        there = (path.parent / target).resolve() if target else path
        assert there.exists(), target
        assert not picture or there.stat().st_size > 10_000, target
        headings = re.findall(r"^#+ (.+)$", prose(there), re.MULTILINE) if heading else []
        slugs = [re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings]
        assert not heading or heading in slugs, f"{target}#{heading}: there are {slugs}"
    for name in set(re.findall(r"`(memlab(?:\.\w+)+)", text)) - {"memlab.toml"}:
        value: Any = memlab
        for part in name.split(".")[1:]:
            value = getattr(value, part, None) or importlib.import_module(
                f"{value.__name__}.{part}"
            )
    for command in re.findall(r"`memlab ([a-z][^`]*)`", text):
        check_command(["memlab", *shlex.split(command.replace("…", ""))])
    for block in blocks(page):
        assert block.language in ("python", "sh", "toml", "json"), (
            f"{block.where}: name the block's language"
        )
        if block.language == "python":
            compile(block.text, block.where, "exec")
        for words in block.commands() if block.language == "sh" else ():
            check_command(words)


def check_command(words: list[str]) -> None:
    """See that a command exists and takes these options, and run nothing; ``memlab VERB`` may stand alone."""
    program, *rest = words
    if program == "make":
        targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert [word for word in rest if "=" not in word and word not in targets] == [], words
    elif program == "pip":
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
            "optional-dependencies"
        ]
        assert rest[1].removeprefix("memlab[").removesuffix("]") in extras, words
    elif words != ["source", ".venv/bin/activate"]:
        assert program == "memlab", f"{words}: only memlab, make and pip are checked"
        verb, *options = rest[2:] if rest[0] == "--plugin" else rest
        COMMANDS[verb].make_context(verb, options, resilient_parsing=not options)


def test_pages_are_short_and_found_by_index_site_and_messages() -> None:
    lines = {page: path.read_text(encoding="utf-8").count("\n") for page, path in PAGES.items()}
    lines.pop("docs/evaluation/language-model.md")  # tables of what a model buys at each step
    assert [page for page, n in lines.items() if n > 130] == []
    index, site = (
        (ROOT / "docs" / "README.md").read_text("utf-8"),
        (ROOT / "mkdocs.yml").read_text("utf-8"),
    )
    names = [page.removeprefix("docs/") for page in PAGES if page != "README.md"]
    assert [name for name in names if f"({name})" not in index] == ["README.md"]
    assert [name for name in names if f": docs/{name}\n" not in site] == []
    assert "(docs/README.md)" in PAGES["README.md"].read_text(encoding="utf-8")
    for path in (
        *(ROOT / "memlab").rglob("*.py"),
        *ROOT.glob("notebooks/*.py"),
        *ROOT.glob("data/*.md"),
    ):
        for named in re.findall(
            r"(?<![\w/.-])docs/[\w/-]+\.(?:md|json)", path.read_text(encoding="utf-8")
        ):
            assert (ROOT / named).exists() or named in ELSEWHERE, f"{path}: {named}"


def test_every_stage_and_parameter_is_described() -> None:
    rows = dict(
        re.findall(
            r"^\| `(\w+)` \| (.*) \|$", PAGES["docs/pipelines.md"].read_text("utf-8"), re.MULTILINE
        )
    )
    missing = []
    for name in memlab.stages:
        parameters = inspect.signature(memlab.stages[name]).parameters.values()
        for each in [each for each in parameters if each.name not in STAGE_INPUTS]:
            shown = re.search(rf"`{each.name}(?:=([^`]*))?`", rows.get(name, ""))
            default = shown and shown[1] and eval(shown[1])  # what the page says
            if not shown or (
                each.default is not each.empty and shown[1] and default != each.default
            ):
                missing.append(f"{name}({each.name}={each.default!r})")
    assert missing == []


def test_every_setting_is_described() -> None:
    page = PAGES["docs/settings.md"].read_text(encoding="utf-8")
    table = dict(re.findall(r"^\| `([\w.]+)` \| (.+?) \| ", page, re.MULTILINE))

    def flat(values: dict[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
        for name, value in values.items():
            nested = isinstance(value, dict) and name != "decay"
            yield from flat(value, f"{before}{name}.") if nested else [(before + name, value)]

    service = {name: field.default for name, field in config.ServiceSettings.model_fields.items()}
    values = config.Settings().model_dump()
    encoder = {name: field.default for name, field in config.EmbedSettings.model_fields.items()}
    values |= {
        "embed": {"NAME": encoder},
        "confidence": ConfidenceSettings().model_dump(),
        "llm": values["llm"] | {"services": {"NAME": service}},
    }
    assert table.keys() == dict(flat(values)).keys()
    for key, default in flat(values):
        if isinstance(default, (str, int, float)):
            assert tomllib.loads(f"value = {table[key].strip('`')}")["value"] == default, key


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_the_sample(tmp_path_factory.mktemp("pages"))


@pytest.fixture
def run(memlab_cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Run the blocks of a page in a folder."""

    def run_page(page: str, folder: Path, *marks: str) -> None:
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
        monkeypatch.setattr(
            importlib.import_module("memlab.datasets.sample"), "_FILE", folder / SAMPLE
        )
        for added in (
            memlab.stages,
            memlab.encoders,
            memlab.measures,
            memlab.formats,
            memlab.clusterers,
        ):
            monkeypatch.setattr(added, "_functions", dict(added))
        namespace: dict[str, Any] = {"__name__": "page"}
        for block in blocks(page):
            if block.mark in ("", *marks):
                run_block(block, namespace)
        Path("memlab.toml").unlink(missing_ok=True)

    def run_block(block: Block, namespace: dict[str, Any]) -> None:
        if named := re.match(r"# (\w+)\.py\n", block.text):
            Path(f"{named[1]}.py").write_text(block.text, encoding="utf-8")
            monkeypatch.setitem(sys.modules, named[1], None)  # to be forgotten afterwards
            del sys.modules[named[1]]
        elif block.language == "python":
            exec(compile("\n" * block.line + block.text, str(block.page), "exec"), namespace)
        elif block.language == "sh":
            for words in block.commands():
                done = memlab_cli(*words[1:], cwd=Path.cwd()) if words[0] == "memlab" else None
                assert not done or done.code == 0, (
                    f"{block.where}: {shlex.join(words)}\n{done.err[-2000:]}"
                )
        elif block.language == "json":
            Path("own.jsonl").write_text(block.text, encoding="utf-8")
            assert datasets.load("own.jsonl").questions.height, block.where
        else:
            Path("own").mkdir(exist_ok=True)
            Path("own", "memlab.toml").write_text(block.text, encoding="utf-8")
            config.settings(directory="own")

    return run_page


@pages
def test_blocks_run(
    page: str, run: Callable[..., None], shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memlab.embed.transformer_encoder.load_minilm", lambda **_: StandIn())
    monkeypatch.setattr("memlab.figures.export", lambda *data, **words: None)
    monkeypatch.setattr(
        "scipy.optimize.differential_evolution", partial(differential_evolution, maxiter=1)
    )
    run(page, shared)


@pytest.mark.slow
def test_the_searches_of_the_readme_find_the_answers(
    memlab_cli: Callable[..., Any], tmp_path: Path
) -> None:
    with_the_sample(tmp_path)
    block = next(block for block in blocks("README.md") if "memlab search" in block.text)
    said = [memlab_cli(*words[1:], cwd=tmp_path).out for words in block.commands()]
    assert [
        answer in out for answer, out in zip(("65", "165", "Tuesday"), said[1::2], strict=True)
    ] == [True] * 3


@pytest.mark.parametrize(
    ("page", "mark"),
    [
        pytest.param(page, mark, marks=getattr(pytest.mark, mark))
        for page in PAGES
        for mark in sorted({block.mark for block in blocks(page)} & {"slow", "nightly"})
    ],
)
def test_slow_blocks_run(
    page: str, mark: str, run: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if mark == "slow":
        monkeypatch.setattr("memlab.embed.transformer_encoder.load_minilm", lambda **_: StandIn())
    run(page, with_the_sample(tmp_path, whole=mark == "nightly"), "slow", mark)


def with_the_sample(folder: Path, *, whole: bool = False) -> Path:
    """Put a part of the sample, and its exports, where the pages look for them."""
    data = memlab.sample(None if whole else ("nadia", "owen"))
    if not whole:
        part = excerpt(100, scopes=data.scopes)
        kept = {*part.turns["session_id"], *data.sessions.filter(n=1)["session_id"]}
        data = replace(part, turns=data.turns.filter(pl.col("session_id").is_in(list(kept))))
    (folder / SAMPLE).parent.mkdir(parents=True)
    write(folder / SAMPLE, data)
    for name in (
        "data/facts",
        "data/sample/follow-ups.jsonl",
        "strategies.txt",
        "notebooks",
        "tests",
    ):
        (folder / name).symlink_to(ROOT / name)
    if whole:
        (folder / SAMPLE).with_name("exports").symlink_to(ROOT / "data" / "sample" / "exports")
        return folder
    talks, chat = (ROOT / "data" / "sample" / "exports" / name for name in EXPORTS)
    bought = [
        each for each in json.loads(talks.read_text("utf-8")) if "bookcase" in json.dumps(each)
    ]
    lines = chat.read_text(encoding="utf-8").splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines) if "165" in line)
    for name, text in zip(
        EXPORTS, (json.dumps(bought), "".join(lines[at - 20 : at + 10])), strict=True
    ):
        shorter = folder / "data" / "sample" / "exports" / name
        shorter.parent.mkdir(parents=True)
        shorter.write_text(text, encoding="utf-8")
    return folder
