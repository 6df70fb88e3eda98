"""The command line from end to end: every verb, what it writes, and how it refuses."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from stand_in import StandIn
from talk import excerpt, write
from typer.main import get_command

from memlab import datasets
from memlab.cli._options import app, read_assignments
from memlab.errors import DataError
from memlab.store import MemoryStore

HASHING = ("--encoder", "hashing")
VERBS = (
    *("ingest", "optimize", "fetch", "datasets", "convert", "info", "search", "facts", "recall", "list", "rollup"),
    *("evaluate", "compare", "why", "knowledge", "index", "answer", "train", "notebooks", "figures", "serve"),
)
PIPELINES = {
    "dense": "dense",
    "bm25": "bm25",
    "hybrid": "hybrid",
    "hybrid | mmr": "hybrid-mmr",
    "hybrid(k=60) | by_cluster(n_clusters=3)": "hybrid-k-60-by_cluster-n_clusters-3",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, memlab_cli: Callable[..., Any]) -> Path:
    """A folder with ``talk.jsonl``: two memories of the sample and a small one of seven turns in two sessions."""
    place = tmp_path_factory.mktemp("cli")
    rest = write(place / "talk.jsonl", excerpt(500, scopes=("nadia", "owen"))).read_text()
    names = ("Abbot", "Berger", "Castro", "Dupont", "Eriksen", "Fischer", "Gomez")
    lines = [
        {"scope": "small", "session": f"s{n % 2}", "id": f"{n % 2}.{n // 2 + 1}", "sender": "Ann"}
        | {"text": f"I saw the dentist {name}."}
        for n, name in enumerate(names)
    ]
    lines.append({"scope": "small", "question": "Which dentist?", "evidence": ["s0/1", "s1/2"], "type": "single"})
    lines.append({"scope": "small", "question": "Which car?", "abstention": True})
    written = "".join(json.dumps(line) + "\n" for line in lines)
    (place / "talk.jsonl").write_text(f"{rest}{written}")
    return place


@pytest.fixture(scope="module")
def evaluated(folder: Path, memlab_cli: Callable[..., Any]) -> Path:
    chosen = [part for text in PIPELINES for part in ("--pipeline", text)]
    done = memlab_cli(
        *("evaluate", "talk.jsonl", *chosen, *HASHING, "--store", "first", "--out", "out", "--seed", 1), cwd=folder
    )
    assert done.code == 0, done.err
    assert "turns, all questions with evidence (n = " in done.out
    return folder / "out"


def one_message(done: Any) -> str:
    """Give the message of a command that refused: one line, and nothing of Python's."""
    assert done.code == 2, (done.out, done.err)
    assert len(done.messages) == 1, done.err
    assert done.messages[0].startswith("memlab: ")
    assert "Traceback" not in done.err
    return done.messages[0]


@pytest.mark.parametrize("verb", [(), *((verb,) for verb in VERBS)])
def test_help(memlab_cli: Any, tmp_path: Path, verb: tuple[str, ...]) -> None:
    done = memlab_cli(*verb, "-h", cwd=tmp_path)
    assert done.code == 0
    assert "Usage" in done.out
    assert "…" not in done.out, "no description is cut off"
    if verb:
        assert f"Example: memlab {verb[0]}" in done.out
    else:
        assert set(VERBS) <= set(done.out.split())
    assert "[llm.services]" in done.out or verb != ("index",)
    assert not list(tmp_path.iterdir())


def test_an_option_of_one_name_is_the_same_option_everywhere() -> None:
    texts: dict[str, set[str]] = {}
    for command in get_command(app).commands.values():
        for option in command.params:
            texts.setdefault(max(option.opts, key=len), set()).add(str(option.bare_type))
    kinds = {name: types for name, types in texts.items() if name.startswith("--") and len(types) > 1}
    assert not kinds, kinds


@pytest.mark.parametrize(
    "arguments",
    [(), ("bogus",), ("ingest",), ("search",), ("search", "x", "--k", "0"), ("search", "x", "--k", "few")],
)
def test_wrong_usage_is_exit_code_2(memlab_cli: Any, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = memlab_cli(*arguments, cwd=tmp_path)
    assert done.code == 2
    assert "Usage" in done.out + done.err
    assert not list(tmp_path.iterdir())


def test_the_installed_command_in_a_process_of_its_own(folder: Path, tmp_path: Path) -> None:
    command = [str(Path(sys.executable).with_name("memlab"))]
    good = subprocess.run([*command, "datasets"], cwd=tmp_path, capture_output=True, text=True)
    assert (good.returncode, good.stderr) == (0, "")
    bad = subprocess.run(
        [*command, "evaluate", "none.jsonl", *HASHING], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert bad.returncode == 2
    assert re.fullmatch(r"memlab: none\.jsonl: cannot be read \(No such file or directory\).*\n", bad.stderr)
    assert [path.name for path in tmp_path.iterdir()] == [], "a refused command leaves no store behind"


def test_ingest_twice_writes_and_encodes_once(memlab_cli: Any, folder: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    runs, versions = [], []
    for _ in range(2):
        done = memlab_cli("ingest", "talk.jsonl", *HASHING, "--store", store, cwd=folder)
        assert done.code == 0, done.err
        runs.append(done.out)
        versions.append(MemoryStore.open(store).versions())
    n = datasets.load(folder / "talk.jsonl").turns.height
    assert n > 400
    assert f"talk: {n:,} turns newly encoded by hashing" in runs[0]
    assert "talk: 0 turns newly encoded by hashing" in runs[1]
    assert versions[0] == versions[1]
    held = MemoryStore.open(store).dataset("talk")
    assert held.fingerprint() == datasets.load(folder / "talk.jsonl").fingerprint()


def test_search_shows_the_best_first_and_leaves_the_store_as_it_is(
    memlab_cli: Any, folder: Path, evaluated: Path
) -> None:
    before = MemoryStore.open(folder / "first").versions()
    for level, shape in (("turn", r"small/\d\.\d"), ("session", r"small/s\d")):
        done = memlab_cli(
            *("search", "dentist Eriksen", "--scope", "small", "--level", level, "--k", 2),
            *(*HASHING, "--store", "first"),
            cwd=folder,
        )
        assert (done.code, done.err) == (0, "")
        rows = re.findall(rf"^ *(\d+)  (-?\d\.\d{{4}})  undated  ({shape})$", done.out, re.MULTILINE)
        assert [row[0] for row in rows] == ["1", "2"]
        assert float(rows[0][1]) >= float(rows[1][1])
    best = memlab_cli(
        *("search", "dentist Eriksen", "--scope", "small", "--pipeline", "bm25", *HASHING, "--store", "first"),
        cwd=folder,
    )
    assert best.out.splitlines()[0].endswith("small/0.3")
    assert best.out.splitlines()[1].strip() == "Ann: I saw the dentist Eriksen."
    assert MemoryStore.open(folder / "first").versions() == before


def test_a_history_makes_a_follow_up_stand_alone(
    memlab_cli: Callable[..., Any], ingested: str, folder: Path, tmp_path: Path
) -> None:
    history = tmp_path / "history.json"
    history.write_text(json.dumps([{"role": "user", "content": "Who is the dentist Eriksen?"}]))
    asked = ("search", "And where is he?", "--scope", "small", *HASHING, "--store", ingested, "--history", str(history))
    done = memlab_cli(*asked, cwd=folder)
    assert done.code == 0, done.err
    assert "searched for: And where is he? (dentist Eriksen)" in done.err
    history.write_text("no JSON")
    assert memlab_cli(*asked, cwd=folder).code == 2


@pytest.mark.parametrize(
    "query",
    ["", "   ", "'; DROP TABLE turns; --", '"quoted', "NOT AND OR (", "a*b^2 ~field:x", "nul\x00byte", "naïve 日本 🦷"],
)
def test_any_text_can_be_searched_for(memlab_cli: Any, folder: Path, ingested: Path, query: str) -> None:
    done = memlab_cli(
        *("search", "--scope", "small", "--pipeline", "hybrid", *HASHING, "--store", ingested),
        *("--", query),
        cwd=folder,
    )
    assert (done.code, done.err) == (0, "")
    assert "small/" in done.out or "no turn" in done.out, "every turn is ranked, or none matches"


@pytest.fixture(scope="module")
def ingested(folder: Path, memlab_cli: Callable[..., Any]) -> Path:
    assert memlab_cli("ingest", "talk.jsonl", *HASHING, "--store", "second", cwd=folder).code == 0
    return folder / "second"


@pytest.mark.slow
def test_search_means_what_was_ingested_last_not_what_was_evaluated(
    memlab_cli: Any, folder: Path, tmp_path: Path
) -> None:
    write(tmp_path / "other.jsonl", excerpt(60, scopes=["family"]))
    options = (*HASHING, "--store", tmp_path / "store")
    assert memlab_cli("ingest", "talk.jsonl", *options, cwd=folder).code == 0
    for _ in range(2):
        done = memlab_cli("search", "dentist Eriksen", "--scope", "small", *options, cwd=folder)
        assert done.code == 0, done.err
        assert "small/0.3" in done.out
        again = memlab_cli("evaluate", "other.jsonl", "--pipeline", "bm25", *options, cwd=tmp_path)
        assert again.code == 0, again.err
    assert done.err == "dataset talk, the last that was ingested; --dataset names another\n"
    assert memlab_cli("ingest", "other.jsonl", *options, cwd=tmp_path).code == 0
    done = memlab_cli("search", "dentist", "--scope", "small", *options, cwd=folder)
    assert "no scope 'small'" in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("x",), "--scope is needed; the store has nadia, "),
        (("x", "--scope", "nobody"), "no scope 'nobody'; the store has nadia, "),
        (("x", "--scope", ""), "no scope ''"),
        (("x", "--dataset", "none"), "no dataset 'none'; the store has talk"),
        (("x", "--scope", "small", "--level", "word"), "level is 'word'; choose turn or session"),
        (("x", "--scope", "small", "--pipeline", "hybrid | mrr"), "did you mean 'mmr'?"),
        (("x", "--scope", "small", "--pipeline", "hybrid(k=0)"), "k is 0"),
        (("x", "--scope", "small", "--store", "nowhere"), "there is no store at nowhere"),
        (("x", "--scope", "small", "--store", "talk.jsonl"), "is a file; expected a directory"),
        (("x", "--scope", "small", "--encoder", "nothing"), "no encoder 'nothing'"),
        (("\udcff", "--scope", "small"), "the question is not valid text: '\\udcff' at 0"),
    ],
)
def test_search_refuses(memlab_cli: Any, folder: Path, evaluated: Path, arguments: tuple[str, ...], said: str) -> None:
    defaults = [*HASHING] if "--encoder" not in arguments else []
    defaults += ["--store", "first"] if "--store" not in arguments else []
    assert said in one_message(memlab_cli("search", *arguments, *defaults, cwd=folder))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--pipeline", "mmr"), "a pipeline begins with bm25, "),
        (("--pipeline", "bm25", "--pipeline", " bm25 "), "none twice"),
        (("--pipeline", "dense(k=-1)"), "k is -1"),
        (("--pipeline", "dense", "--out", "talk.jsonl"), "talk.jsonl/dense.turn.trec: cannot be written"),
        (("--pool", "5"), "pool=5 is for LongMemEval files, this one is chatlog"),
        (("--format", "locomo"), "talk.jsonl: "),
        (("--seed", "-1"), "setting 'seed' (from flag)"),
    ],
)
def test_evaluate_refuses(
    memlab_cli: Any, folder: Path, evaluated: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = memlab_cli("evaluate", "talk.jsonl", *arguments, *HASHING, "--store", "first", cwd=folder)
    assert said in one_message(done)


def test_fetch_names_what_there_is(memlab_cli: Any, tmp_path: Path) -> None:
    message = one_message(memlab_cli("fetch", "nope", cwd=tmp_path))
    assert "'nope'; choose one of locomo, longmemeval" in message
    assert not list(tmp_path.iterdir())


def test_datasets_lists_licence_and_checksum(memlab_cli: Any, tmp_path: Path) -> None:
    out = memlab_cli("datasets", cwd=tmp_path).out
    assert "79fa87e90f04081343b8c8debecb80a9a6842b76a7aa537dc9fdf651ea698ff4" in out
    assert "CC BY-NC 4.0" in out


@pytest.mark.slow
def test_convert_writes_what_evaluate_reads(memlab_cli: Any, folder: Path, tmp_path: Path) -> None:
    done = memlab_cli("convert", folder / "talk.jsonl", tmp_path / "mine", cwd=tmp_path)
    assert (done.code, sorted(p.name for p in tmp_path.iterdir())) == (0, ["mine"])
    tables = []
    for dataset in (folder / "talk.jsonl", "mine"):
        done = memlab_cli("evaluate", dataset, "--pipeline", "bm25", *HASHING, "--out", "out", cwd=tmp_path)
        tables.append([line for line in done.out.splitlines() if line.startswith("| bm25")])
    # Superseded messages have no place in such a folder.
    assert tables[1]
    assert set(tables[1]) < set(tables[0])


def test_corrections_stand_beside_the_original(memlab_cli: Any, tmp_path: Path) -> None:
    told = [("I painted a lake.", 1), ("I ran a race.", 2)]
    turns = [{"speaker": "Mel", "dia_id": f"D1:{n}", "text": text} for text, n in told]
    talk = {"session_1_date_time": "1:56 pm on 8 May, 2023", "session_1": turns}
    asked = {"question": "Which race did Mel run?", "answer": "x", "evidence": ["D1:1"], "category": 4}
    (tmp_path / "locomo.json").write_text(json.dumps([{"sample_id": "a", "conversation": talk, "qa": [asked]}]))
    error = {"question": asked["question"], "cited_evidence": ["D1:1"], "correct_evidence": ["D1:2"]}
    (tmp_path / "errors.json").write_text(json.dumps([error]))
    measured = ("evaluate", "locomo.json", "--pipeline", "bm25", *HASHING, "--out", "out", "--corrections")
    done = memlab_cli(*measured, "errors.json", cwd=tmp_path)
    assert done.code == 0, done.err
    assert "errors.json: the evidence of 1 of 1 questions is corrected" in done.out
    assert "with the evidence that errors.json corrects" in done.out
    judged = [(tmp_path / "out" / at / "qrels.turn.trec").read_text().split()[2] for at in ("", "corrected")]
    assert judged == ["a/session_1/1", "a/session_1/2"]
    (tmp_path / "errors.json").write_text("[{}]")
    message = one_message(memlab_cli(*measured, "errors.json", cwd=tmp_path))
    assert "errors.json: error 0: question: found nothing" in message


def test_figures_of_an_empty_and_of_a_missing_folder(memlab_cli: Any, tmp_path: Path) -> None:
    (tmp_path / "figures").mkdir()
    done = memlab_cli("figures", cwd=tmp_path)
    assert (done.code, done.out) == (0, "figures/index.html\n")
    assert "Nothing has been exported yet" in (tmp_path / "figures" / "index.html").read_text()
    assert "no directory elsewhere" in one_message(memlab_cli("figures", "elsewhere", cwd=tmp_path))


def test_info_shows_the_store(memlab_cli: Any, folder: Path, evaluated: Path) -> None:
    done = memlab_cli("info", "--store", "first", cwd=folder)
    assert (done.code, done.err) == (0, "")
    assert re.search(r"memlab \S+, Python \d", done.out)
    assert re.search(r"talk +┆ chatlog", done.out)
    assert "there is no store at nowhere" in memlab_cli("info", "--store", "nowhere", cwd=folder).out
    assert not (folder / "nowhere").exists()


def test_notebooks_refuse(memlab_cli: Any, tmp_path: Path) -> None:
    (tmp_path / "notebooks").mkdir()
    assert "notebooks holds no notebook" in one_message(memlab_cli("notebooks", "x.jsonl", cwd=tmp_path))
    (tmp_path / "notebooks" / "00_a.ipynb").write_text("{")
    assert "whose name holds 'zz'" in one_message(memlab_cli("notebooks", "x.jsonl", "--only", "zz", cwd=tmp_path))
    assert "00_a.ipynb: could not be run" in one_message(memlab_cli("notebooks", "x.jsonl", cwd=tmp_path))
    again = memlab_cli("notebooks", "x.jsonl", "--out", "notebooks", cwd=tmp_path)
    assert "holds the notebooks themselves" in one_message(again)
    assert (tmp_path / "notebooks" / "00_a.ipynb").read_text() == "{"
    wrong = memlab_cli("notebooks", "x.jsonl", "--set", "n_scopes", cwd=tmp_path)
    assert "--set 'n_scopes' is no assignment; write it as name=value" in one_message(wrong)


def test_evaluate_some_memories_alone(memlab_cli, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    write(log, excerpt(300))
    told = memlab_cli("evaluate", log, "--scope", "nadia", "--encoder", "hashing", "--pipeline", "bm25", cwd=tmp_path)
    assert told.code == 0
    ranked = (tmp_path / "results" / "log" / "bm25.turn.trec").read_text()
    assert "nadia/" in ranked
    assert "owen/" not in ranked
    missing = memlab_cli("evaluate", log, "--scope", "nobody", "--encoder", "hashing", cwd=tmp_path)
    assert missing.code == 2
    assert "no scope 'nobody'" in missing.err


@pytest.fixture(scope="module")
def learnable(tmp_path_factory: pytest.TempPathFactory, memlab_cli: Callable[..., Any]) -> Iterator[Path]:
    """A folder with ``talk.jsonl``, whose two memories of fifty turns a stand-in reads, and a short-trained model."""
    place = tmp_path_factory.mktemp("learned")
    write(place / "talk.jsonl", excerpt(100, scopes=("nadia", "owen")))
    patch = pytest.MonkeyPatch()
    patch.setattr("memlab.embed.transformer.load_minilm", lambda **_: StandIn())
    patch.setattr("memlab.rerank.listwise.EPOCHS", 2)
    done = memlab_cli("train", "talk.jsonl", "--out", "deep/model.safetensors", "--store", "store", cwd=place)
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert re.match(r"talk \(chatlog\): \d+ turns in \d+ sessions of 2 scopes", lines[0])
    assert re.match(r"learned from \d+ questions of 2 conversations: deep/model\.safetensors$", lines[-3])
    assert [line.split()[0] for line in lines[-2:]] == ["recall_all@10", "recall_all@20"]
    yield place
    patch.undo()


@pytest.mark.slow
def test_a_trained_model_ranks_and_says_what_it_learned_from(memlab_cli: Any, learnable: Path) -> None:
    from memlab.rerank import Model

    data = datasets.load(learnable / "talk.jsonl")
    about = Model.load(learnable / "deep" / "model.safetensors").about
    assert about["data"] == [{"name": "talk", "fingerprint": data.fingerprint()}]
    learned = "hybrid | learned(model='deep/model.safetensors')"
    arguments = ("search", "What do I like?", "--scope", data.scopes[0], "--store", "store", "--k", 3)
    for level in ("turn", "session"):
        done = memlab_cli(*arguments, "--pipeline", learned, "--level", level, cwd=learnable)
        assert done.code == 0, done.err
        assert (
            len(re.findall(rf"^ +\d  -?\d+\.\d{{4}}  20\d\d-\d\d-\d\d  {data.scopes[0]}/", done.out, re.MULTILINE)) == 3
        )
    other = memlab_cli(*arguments, "--pipeline", learned, *HASHING, cwd=learnable)
    assert other.code == 2
    assert "Traceback" not in other.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("evaluate", "talk.jsonl", "--cross-validate", "turns"), "cross_validate is 'turns'; what there is: 'scope'"),
        (("evaluate", "talk.jsonl", "--pipeline", "hybrid | learned"), "the model that comes with memlab was trained"),
        (
            ("evaluate", "talk.jsonl", "--pipeline", "hybrid | learned(model='no')"),
            "no model 'no'; make one: memlab tr",
        ),
        (("evaluate", "talk.jsonl", "--pipeline", "hybrid | learned(model='talk.jsonl')"), "'talk.jsonl' cannot be re"),
        (
            ("evaluate", "talk.jsonl", "--pipeline", "hybrid | learned(candidates=0)", "--cross-validate", "scope"),
            "is 0",
        ),
        (("train", "asked.jsonl"), "no question of 'asked' names a turn as evidence; there is nothing to learn from"),
        (("train", "silent.jsonl"), "no question of 'silent' names a turn as evidence; there is nothing to learn from"),
        (("train", "none.jsonl"), "none.jsonl"),
        (("train", "talk.jsonl", *HASHING), "late interaction needs token embeddings"),
        (("train", "talk.jsonl", "--out", "talk.jsonl/m.safetensors"), "talk.jsonl/m.safetensors: cannot be written"),
        (("train", "talk.jsonl", "--pool", 3), "pool=3 is for LongMemEval files"),
    ],
)
def test_training_and_cross_validation_refuse_in_one_message(
    memlab_cli: Any, learnable: Path, arguments: tuple[Any, ...], said: str
) -> None:
    lines = [{"scope": "a", "session": "s", "sender": "Ann", "text": "hello"}]
    for name, asked in (("silent", []), ("asked", [{"scope": "a", "question": "Who?", "abstention": True}])):
        (learnable / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in [*lines, *asked]))
    assert said in one_message(memlab_cli(*arguments, "--store", "store", cwd=learnable))


def test_values_set_for_notebooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.json").write_text("[]")
    given = ["n=None", "few=[1, 2]", "file=a.json", "files=['a.json', 'b']", "text=hybrid(k=3) | mmr", "quoted='7'"]
    assert read_assignments(given) == {
        "n": None,
        "few": [1, 2],
        "file": str(tmp_path / "a.json"),
        "files": [str(tmp_path / "a.json"), "b"],
        "text": "hybrid(k=3) | mmr",
        "quoted": "7",
    }
    for wrong in ("n", "=3", "a-b=3"):
        with pytest.raises(DataError, match="is no assignment"):
            read_assignments([wrong])
