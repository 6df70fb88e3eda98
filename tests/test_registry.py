"""Stages, encoders, measures and formats that others add: in a notebook cell, a module or a package."""

from __future__ import annotations

import importlib
import linecache
import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from talk import excerpt

import memlab
from memlab.cli import shared_options
from memlab.errors import DataError, ModelError, PipelineError, StoreError
from memlab.registry import Registry

STAGE = """
import memlab
WEIGHT = 2
def helper(run):
    return run.top(WEIGHT)
@memlab.stage
def mine(run, bench, *, k: int = 5):
    return helper(run).top(k)
"""
ENCODER = """
import memlab, numpy as np
@memlab.encoders.register
def letters(texts):
    return np.array([[1.0] + [t.count(c) for c in "etaoin"] for t in texts])
"""
PLUGIN = f"""
{STAGE}
{ENCODER}
@memlab.measures.register
def all_but_one(judged, k):
    return (judged.total(k) >= judged.n_relevant - 1).astype(float)
@memlab.formats.register
def lines(path):
    for line in path.read_text().splitlines():
        sender, _, text = line.partition(": ")
        yield {{"scope": path.stem, "session": "s", "sender": sender, "text": text}}
    yield {{"scope": path.stem, "question": "Who moved?", "evidence": ["s/1"]}}
"""


def cell(source: str) -> None:
    """Run source as a notebook does: its lines can be read."""
    name = f"<cell {hash(source)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    exec(compile(source, name, "exec"), {"__name__": "__main__"})


@pytest.fixture(autouse=True)
def unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what a test adds, and nothing that memlab's own modules register meanwhile."""
    for registry in (
        memlab.stages,
        memlab.encoders,
        memlab.clusterers,
        memlab.measures,
        memlab.formats,
    ):
        monkeypatch.setattr(registry, "_functions", dict(registry))


@pytest.fixture(scope="module")
def data() -> memlab.Dataset:
    return excerpt(120, scopes=["owen"])


@pytest.fixture(scope="module")
def bench(data: memlab.Dataset) -> memlab.Bench:
    return memlab.Bench.of(data, encoder="hashing:64")


def test_a_stage_of_a_cell_works_as_any_other(bench: memlab.Bench) -> None:
    cell(STAGE)
    run = memlab.pipeline("bm25 | mine(k=1)").run(bench)
    assert run.frame["rank"].max() == 1
    assert set(run.provenance["stages"]) == {"mine"}
    assert memlab.pipeline("bm25 | mine").run(bench, level="session").level == "session"
    assert memlab.pipeline("bm25 | blend(reranker='mine')").run(bench).provenance[
        "stages"
    ].keys() == {"mine"}
    with pytest.raises(PipelineError, match="k is 'x'; expected int"):
        memlab.pipeline("bm25 | mine(k='x')")

    @memlab.stage(name="longest")
    def by_length(bench: memlab.Bench, *, k: int = 10) -> memlab.Run:
        return memlab.retrieve.bm25(bench, k=k)

    assert memlab.pipeline("longest | mmr").run(bench).level == "turn"
    assert memlab.pipeline("longest").run(bench, level="session").level == "session", (
        "sessions follow from turns"
    )


@pytest.mark.slow
def test_a_stage_whose_code_changed_is_run_anew_and_not_replayed(
    data: memlab.Dataset, tmp_path: Path
) -> None:
    asked: dict[str, Any] = {"store": tmp_path / "store", "encoder": None, "levels": ["turn"]}
    fresh = memlab.Bench.of(data, encoder=None)
    memory = memlab.MemoryStore.open(tmp_path / "store")
    cell(STAGE)
    first = memlab.run("bm25 | mine", data, **asked)
    memlab.pipeline("bm25 | mine").run(fresh)
    cell(STAGE)
    assert memlab.run("bm25 | mine", data, **asked).cells["read"].all(), "the same cell, run again"
    run_id = first.cells["run_id"].item()
    assert memlab.replay(memory, run_id).frame["rank"].max() == 2
    # Its own code, and that of what it calls, and a value that it reads, all in its cell.
    for change in (
        ("top(k)", "top(1)"),
        ("run.top(WEIGHT)", "run.top(WEIGHT - 1)"),
        ("WEIGHT = 2", "WEIGHT = 1"),
    ):
        cell(STAGE.replace(*change))
        again = memlab.run("bm25 | mine", data, **asked)
        assert not again.cells["read"].any()
        assert again.runs[0].frame["rank"].max() == 1
        assert memlab.pipeline("bm25 | mine").run(fresh).frame["rank"].max() == 1, (
            "nor is it remembered by the bench"
        )
        with pytest.raises(StoreError, match="stages, 'mine' is gone or is not the one"):
            memlab.replay(memory, run_id)
    del memlab.stages["mine"]
    with pytest.raises(StoreError, match="cannot be made again: no stage is called 'mine'"):
        memlab.replay(memory, run_id)


def test_the_file_in_which_a_stage_is_defined_identifies_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    file, digests = tmp_path / "my_own_stage.py", list[str | None]()
    for text in (STAGE, STAGE + "# a comment\n", STAGE):
        file.write_text(text)
        sys.modules.pop("my_own_stage", None)
        importlib.invalidate_caches()
        importlib.import_module("my_own_stage")
        digests.append(memlab.stages.digest("mine"))
        file.write_text("an edit after the import does not change what is running")
        assert memlab.stages.digest("mine") == digests[-1]
    assert digests[0] == digests[2] != digests[1]
    assert memlab.stages.digest("mmr") is None


def test_a_model_that_changed_under_its_name_is_read_again(
    bench: memlab.Bench, tmp_path: Path
) -> None:
    file = tmp_path / "model"

    @memlab.stage
    def reading(run: memlab.Run, bench: memlab.Bench, *, model: str) -> memlab.Run:
        return run.top(int(Path(model).read_text()))

    for k in (3, 12):
        file.write_text(str(k))
        assert (
            memlab.pipeline(f"bm25 | reading(model={str(file)!r})").run(bench).frame["rank"].max()
            == k
        )


def test_an_encoder_of_a_cell_is_known_by_its_code(data: memlab.Dataset, tmp_path: Path) -> None:
    cell(ENCODER)
    encoder, store = memlab.embed.load("letters"), memlab.MemoryStore.open(tmp_path / "store")
    done = memlab.run("dense", data, store=store, encoder="letters", levels=["turn"])
    run_id = done.cells["run_id"].item()
    assert memlab.replay(store, run_id).frame.equals(done.runs[0].frame)
    cell(ENCODER.replace("etaoin", "shrdlu"))
    assert memlab.embed.load("letters").identity.key != encoder.identity.key
    with pytest.raises(StoreError, match="the run saw encoder 'function letters"):
        memlab.replay(store, run_id)
    cell(ENCODER.replace("for t in texts]", "for t in texts[:1]]"))
    with pytest.raises(ModelError, match=r"encoder 'letters' gave \(1, 7\) for 3 texts"):
        memlab.embed.load("letters").encode(["a", "b", "c"])


def plain(run: memlab.Run, bench: memlab.Bench) -> None: ...


def by_path(path: Path) -> None: ...


@pytest.mark.parametrize(
    ("register", "message"),
    [
        (lambda: cell(STAGE.replace("*, ", "")), r"'mine': k is written by name: put \* before it"),
        (lambda: memlab.stage(lambda run, bench: run), "is a lambda; write it as a function"),
        (lambda: memlab.stage(partial(plain), name="p"), "'p' is partial; write it as a function"),
        (lambda: memlab.stage(plain, name="mmr"), "'mmr' is memlab.select.mmr_dpp_msd.mmr already"),
        (lambda: memlab.stage(plain, name="no name"), "cannot name a stage"),
        (
            lambda: memlab.formats.register(by_path, key={"a"}),
            "'by_path': .*unexpected keyword argument 'key'; its fields are kind, keys, detect",
        ),
        (
            lambda: memlab.formats.register(by_path, kind="export"),
            r"'by_path' is an export.*def by_path\(source\)",
        ),
        (
            lambda: memlab.measures.register(plain),
            r"takes \(run, bench\); write it as def plain\(judged, k",
        ),
        (
            lambda: exec("import memlab\n@memlab.stage\ndef bare(run, bench): return run", {}),
            "source of 'b",
        ),
    ],
)
def test_what_does_not_fit_is_refused_at_once(register: Callable[[], Any], message: str) -> None:
    with pytest.raises(PipelineError, match=message):
        register()


def test_a_format_that_says_how_it_is_recognised_is_found(tmp_path: Path) -> None:
    cell("""
import memlab
@memlab.formats.register(keys={"diary_day"})
def diary(source):
    for _, day in source.values():
        yield {"scope": "me", "sender": "Ann", "text": day["content"]}
@memlab.formats.register(detect=lambda file: file.head.startswith("talk of"), files=("*.talk",))
def talk(source):
    for file in source.members:
        for line in file.text().splitlines()[1:]:
            yield {"scope": file.stem, "sender": "Ann", "text": line}
""")
    log = tmp_path / "log.jsonl"
    # Without the plug-in it is one of OpenAI's messages.
    log.write_text('{"diary_day": 1, "role": "user", "content": "I moved."}')
    assert memlab.datasets.detect(log) == "diary"
    assert memlab.load(log).turns["text"].to_list() == ["I moved."]
    del memlab.formats["diary"]
    assert memlab.datasets.detect(log) == "openai_messages"
    folder = tmp_path / "talks"
    folder.mkdir()
    (folder / "a.talk").write_text("talk of May\nhello\nbye")
    for path in (folder, folder / "a.talk"):
        data = memlab.load(path)
        assert (data.format, data.scopes, data.turns.height) == ("talk", ["a"], 2)


def test_an_export_that_a_plugin_reads_is_found_among_the_files_of_an_archive(
    tmp_path: Path,
) -> None:
    cell("""
import memlab
def refuse(file):
    return "looks like a draft: send it first" if file.head.startswith("draft") else None
def sent(files):
    return [file for file in files if "/sent/" in f"/{file.name}"]
@memlab.formats.register(
    kind="export", detect=lambda file: file.head.startswith("note"), refuse=refuse, sent=sent,
    beside=("people.txt",),
)
def notes(source):
    for file in source.members:
        source.drop("drawings", "all")
        yield {"scope": "all", "session": file.stem, "sender": "Ann", "text": file.text()}
""")
    written = {"1.txt": "note 1", "2.txt": "note 2", "sent/3.txt": "note 3", "people.txt": "Ann"}
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        for name, text in written.items():
            archive.writestr(name, text)
    data = memlab.load(tmp_path / "export.zip", scope="ann")
    assert (data.name, data.format, data.scopes) == ("notes", "notes", ["ann"])
    assert data.turns["text"].to_list() == ["note 1", "note 2"]
    assert data.issues["found"].to_list() == ["1 other file: sent/3.txt", "2 drawings"]
    (tmp_path / "draft.txt").write_text("draft 1")
    with pytest.raises(DataError, match="looks like a draft: send it first"):
        memlab.load(tmp_path / "draft.txt")


def test_what_gives_no_run_and_no_value_a_question_is_named(
    data: memlab.Dataset, bench: memlab.Bench
) -> None:
    @memlab.stage
    def listing(run: memlab.Run, bench: memlab.Bench) -> list[str]:
        return run.frame["doc_id"].to_list()

    @memlab.measures.register
    def three(judged: Any, k: int | None) -> list[float]:
        return [1.0, 2.0, 3.0]

    with pytest.raises(PipelineError, match="'listing' gave list; a stage gives a Run"):
        memlab.pipeline("bm25 | listing").run(bench)
    with pytest.raises(DataError, match="measure three gave"):
        memlab.evaluate.evaluate(memlab.pipeline("bm25").run(bench), data, measures="three")


def test_a_module_named_on_the_command_line_or_in_the_settings(
    memlab_cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "my_stages.py").write_text(PLUGIN)
    (tmp_path / "talk.txt").write_text("Ann: I moved.\nBen: Where to?\n")
    evaluated = (
        "evaluate",
        "talk.txt",
        "--format",
        "lines",
        "--encoder",
        "letters",
        "--pipeline",
        "dense | mine",
    )
    done = memlab_cli("--plugin", "my_stages", *evaluated, cwd=tmp_path)
    assert done.code == 0, done.err
    assert "(n = 1)" in done.out
    (tmp_path / "memlab.toml").write_text('plugins = ["my_stages"]\nencoder = "letters"\n')
    found = memlab_cli("search", "furniture", "--pipeline", "dense | mine(k=1)", cwd=tmp_path)
    assert found.code == 0, found.err
    (tmp_path / "memlab.toml").unlink()
    missing = memlab_cli("--plugin", "nowhere", *evaluated, cwd=tmp_path)
    assert missing.code == 2
    assert "plugin 'nowhere' cannot be imported (ModuleNotFoundError" in missing.err
    assert shared_options.read_settings_and_origins()[0].plugins == (), (
        "a plugin is of its command alone"
    )


@pytest.mark.slow
def test_a_package_brings_its_own_through_entry_points(tmp_path: Path) -> None:
    (tmp_path / "brought.py").write_text(PLUGIN)
    about = tmp_path / "brought-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: brought\nVersion: 1.0\n")
    groups = "[memlab.stages]\nmine = brought\n[memlab.measures]\nall = brought\n[memlab.encoders]\nl = brought:letters"
    (about / "entry_points.txt").write_text(groups)
    code = (
        "import memlab; print(memlab.pipeline('bm25 | mine'), memlab.evaluate.read_measure('all_but_one@3'), "
        "memlab.embed.load('letters').dim, sep='; ')"
    )
    paths = os.pathsep.join((str(tmp_path), str(Path(memlab.__file__).parents[1])))
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": paths}, capture_output=True
    )
    assert done.stdout.decode().strip() == "bm25 | mine; all_but_one@3; 7", done.stderr.decode()


OWN = """
import memlab.registry
@memlab.registry.toys.register
def {name}(texts): ...
"""


def toys(
    monkeypatch: pytest.MonkeyPatch, folder: Path, modules: dict[str, str], *, own: tuple[str, ...]
) -> Registry:
    """Make a registry of modules of memlab's own, which are in a folder until the test ends."""
    for name, source in modules.items():
        (folder / f"{name}.py").write_text(source)
        monkeypatch.delitem(sys.modules, f"memlab.{name}", raising=False)
    monkeypatch.setattr(memlab, "__path__", [*memlab.__path__, str(folder)])
    registry = Registry("toy", "memlab.toys", lambda name, function: None, own)
    monkeypatch.setattr(memlab.registry, "toys", registry, raising=False)
    return registry


def kite(texts: list[str]) -> None: ...


def test_own_modules_are_imported_when_a_name_is_looked_for_and_listed_in_order(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    modules = {f"toy_{name}": OWN.format(name=name) for name in ("ball", "kite", "yoyo")}
    own = ("memlab.toy_yoyo", "memlab.toy_kite", "memlab.toy_ball")
    registry = toys(monkeypatch, tmp_path, modules, own=own)
    importlib.import_module("memlab.toy_ball")
    assert registry["ball"].__module__ == "memlab.toy_ball"
    assert not {"memlab.toy_yoyo", "memlab.toy_kite"} & set(sys.modules)
    assert "none" not in registry
    registry.register(kite, name="mine")
    assert [list(registry), len(registry)] == [["yoyo", "kite", "ball", "mine"], 4]


@pytest.mark.parametrize("kind", ["register", "assign", "delete"])
def test_a_plug_in_meets_the_name_of_an_own_module_that_is_not_imported_yet(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str
) -> None:
    modules = {"toy_kite": OWN.format(name="kite")}
    registry = toys(monkeypatch, tmp_path, modules, own=("memlab.toy_kite",))
    if kind == "register":
        with pytest.raises(PipelineError, match=r"toy 'kite' is memlab\.toy_kite\.kite already"):
            registry.register(kite)
        assert registry["kite"].__module__ == "memlab.toy_kite"
    elif kind == "assign":
        registry["kite"] = kite
        assert registry["kite"] is kite
    else:
        del registry["kite"]
        assert list(registry) == []


def test_an_own_module_that_cannot_be_imported_says_so_until_it_can(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    modules = {"toy_kite": "import no_such_library"}
    registry = toys(monkeypatch, tmp_path, modules, own=("memlab.toy_kite",))
    for look in (lambda: registry.get("ball"), lambda: list(registry), lambda: "kite" in registry):
        with pytest.raises(ModuleNotFoundError, match="No module named 'no_such_library'"):
            look()
    (tmp_path / "toy_kite.py").write_text(OWN.format(name="kite") + "# mended, and longer\n")
    assert list(registry) == ["kite"]


def test_an_own_module_may_look_a_name_up_while_it_is_imported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asks = "\nSEEN = [*memlab.registry.toys], memlab.registry.toys.get('kite')\n"
    modules = {"toy_ball": OWN.format(name="ball") + asks, "toy_kite": OWN.format(name="kite")}
    registry = toys(monkeypatch, tmp_path, modules, own=("memlab.toy_ball", "memlab.toy_kite"))
    assert list(registry) == ["ball", "kite"]
    assert sys.modules["memlab.toy_ball"].SEEN == (["ball"], None)


def test_two_threads_that_ask_at_once_both_see_all(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    slow = "import time\ntime.sleep(0.2)" + OWN.format(name="kite")
    registry = toys(monkeypatch, tmp_path, {"toy_kite": slow}, own=("memlab.toy_kite",))
    start = threading.Barrier(4)

    def ask(_: int) -> list[str]:
        start.wait()
        return [*registry]

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(ask, range(4))) == [["kite"]] * 4
