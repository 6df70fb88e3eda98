"""The command line from end to end: every verb, what it writes, and how it refuses."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from stand_in import StandIn
from talk import excerpt, purchases, write
from typer.main import get_command
from typer.testing import CliRunner

import memlab
from memlab import datasets
from memlab.cli.shared_options import app, parse_parameter_assignments
from memlab.errors import DataError
from memlab.rerank import Model
from memlab.store import MemoryStore

HASHING = ("--encoder", "hashing")
COMMAND = get_command(app)
VERBS = COMMAND.commands  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``talk.jsonl``, two memories of the sample and a small one, and two logs to learn nothing from."""
    place = tmp_path_factory.mktemp("cli")
    rest = write(place / "talk.jsonl", excerpt(120, scopes=("nadia", "owen"))).read_text()
    names = ("Abbot", "Berger", "Castro", "Dupont", "Eriksen", "Fischer", "Gomez")
    message = {"scope": "small", "session": "s0", "sender": "Ann", "text": "Hello."}
    lines: list[dict[str, Any]] = [
        message
        | {
            "session": f"s{n % 2}",
            "id": f"{n % 2}.{n // 2 + 1}",
            "text": f"I saw the dentist {name}.",
        }
        for n, name in enumerate(names)
    ]
    lines.append(
        {
            "scope": "small",
            "question": "Which dentist?",
            "evidence": ["s0/1", "s1/2"],
            "type": "single",
        }
    )
    lines.append(unanswerable := {"scope": "small", "question": "Which car?", "abstention": True})
    for name, text, rows in (
        ("talk", rest, lines),
        ("silent", "", [message]),
        ("asked", "", [message, unanswerable]),
    ):
        (place / f"{name}.jsonl").write_text(text + "".join(json.dumps(row) + "\n" for row in rows))
    return place


@pytest.fixture(scope="module")
def ingested(folder: Path, memlab_cli: Callable[..., Any]) -> Path:
    """The store that ``memlab ingest talk.jsonl`` made, run twice: the second time writes and encodes nothing."""
    store, versions = folder / "store", []
    n = datasets.load(folder / "talk.jsonl").turns.height
    for encoded in (n, 0):
        done = memlab_cli("ingest", "talk.jsonl", *HASHING, "--store", store, cwd=folder)
        assert done.code == 0, done.err
        announced, _, rest = done.out.partition(f"talk: {encoded:,} turns newly encoded by hashing")
        assert rest
        assert (f"talk: encoding {encoded:,} turns by hashing, once" in announced) == bool(encoded)
        versions.append(MemoryStore.open(store).versions())
    assert versions[0] == versions[1]
    assert (
        MemoryStore.open(store).dataset("talk").fingerprint()
        == datasets.load(folder / "talk.jsonl").fingerprint()
    )
    return store


def refusal(done: Any) -> str:
    """Give the message of a command that refused: one line, and nothing of Python's."""
    assert (done.code, len(done.messages)) == (2, 1), (done.out, done.err)
    assert done.messages[0].startswith("memlab: ")
    return str(done.messages[0])


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_help(memlab_cli: Any, tmp_path: Path, verb: str) -> None:
    done = memlab_cli(*verb.split(), "-h", cwd=tmp_path)
    assert done.code == 0
    assert "Usage" in done.out
    assert "…" not in done.out, "no description is cut off"
    assert f"Example: memlab {verb}" in done.out if verb else set(VERBS) <= set(done.out.split())


@pytest.mark.parametrize("arguments", [(), ("bogus",), ("ingest",), ("search", "x", "--k", "0")])
def test_wrong_usage_is_exit_code_2(
    memlab_cli: Any, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    done = memlab_cli(*arguments, cwd=tmp_path)
    assert done.code == 2
    assert "Usage" in done.out + done.err


def test_the_installed_command_in_a_process_of_its_own(tmp_path: Path) -> None:
    command = [str(Path(sys.executable).with_name("memlab")), "ingest", "none.jsonl", *HASHING]
    bad = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert bad.returncode == 2
    assert re.fullmatch(
        r"memlab: none\.jsonl: cannot be read \(No such file or directory\).*\n", bad.stderr
    )
    assert [path.name for path in tmp_path.iterdir()] == [], (
        "a refused command leaves no store behind"
    )


@pytest.mark.slow
def test_search_shows_the_best_first_and_leaves_the_store_as_it_is(
    memlab_cli: Any, ingested: Path
) -> None:
    before = MemoryStore.open(ingested).versions()
    asked = ("search", "dentist Eriksen", "--scope", "small", *HASHING, "--store", ingested)
    shapes = {"turn": r"session small/s\d  message small/\d\.\d", "session": r"session small/s\d"}
    for level, shape in shapes.items():
        done = memlab_cli(*asked, "--level", level, "--k", 2, cwd=ingested.parent)
        assert (done.code, done.err) == (0, "")
        heads = re.findall(r"^ *(\d+)  undated  .*score -?\d[.\d]*$", done.out, re.MULTILINE)
        assert heads == ["1", "2"]
        assert len(re.findall(rf"^     {shape}$", done.out, re.MULTILINE)) == 2
    best = memlab_cli(*asked, "--pipeline", "bm25", cwd=ingested.parent).out.splitlines()
    few = memlab_cli(*asked, "--pipeline", "bm25(k=3)", cwd=ingested.parent).out
    assert "3 of 7 turns: bm25(k=3) ranks no more; k= of its first stage says how many" in few
    assert "ranks no more" not in "".join(best)
    assert best[0] == "question: dentist Eriksen"
    assert best[1].startswith("  1  undated  Ann  score ")
    assert best[2].strip() == "I saw the dentist Eriksen."
    assert best[3].endswith("message small/0.3")
    assert best[-1].startswith("scores of bm25: higher is better")
    assert MemoryStore.open(ingested).versions() == before


@pytest.mark.slow
def test_a_history_makes_a_follow_up_stand_alone(
    memlab_cli: Any, ingested: Path, tmp_path: Path
) -> None:
    history = tmp_path / "history.json"
    history.write_text(json.dumps([{"role": "user", "content": "Who is the dentist Eriksen?"}]))
    asked = (
        "search",
        "And where is he?",
        "--scope",
        "small",
        *HASHING,
        "--store",
        ingested,
        "--history",
        history,
    )
    assert (
        "searched for: And where is he? (dentist Eriksen)" in memlab_cli(*asked, cwd=tmp_path).err
    )
    history.write_text("no JSON")
    assert memlab_cli(*asked, cwd=tmp_path).code == 2


@pytest.mark.parametrize(
    "query", ["'; DROP TABLE turns; --", "NOT AND OR (", 'a*b^2 ~field:x "nul\x00 日本 🦷']
)
def test_any_text_can_be_searched_for(memlab_cli: Any, ingested: Path, query: str) -> None:
    asked = (
        "search",
        "--scope",
        "small",
        "--pipeline",
        "hybrid",
        *HASHING,
        "--store",
        ingested,
        "--",
        query,
    )
    done = memlab_cli(*asked, cwd=ingested.parent)
    assert (done.code, done.err) == (0, "")
    assert "small/" in done.out or "no turn" in done.out, "every turn is ranked, or none matches"


@pytest.mark.slow
def test_search_means_what_was_ingested_last_not_what_was_evaluated(
    memlab_cli: Any, ingested: Path, tmp_path: Path
) -> None:
    options = (*HASHING, "--store", shutil.copytree(ingested, tmp_path / "store"))
    for verb, *rest in (
        ("ingest", "silent"),
        ("ingest", "talk"),
        ("evaluate", "asked", "--pipeline", "bm25"),
    ):
        memlab_cli(verb, f"{rest[0]}.jsonl", *rest[1:], *options, cwd=ingested.parent)
    evaluated = (
        "evaluate",
        "talk.jsonl",
        "--pipeline",
        "bm25",
        *HASHING,
        "--store",
        tmp_path / "evaluated",
    )
    memlab_cli(*evaluated, "--out", tmp_path / "out", cwd=ingested.parent)
    done = memlab_cli(
        "search", "dentist Eriksen", *HASHING, "--store", tmp_path / "evaluated", cwd=tmp_path
    )
    assert "small/0.3" in done.out
    assert done.err == "all 3 scopes of talk; --scope names one\n"
    done = memlab_cli("search", "dentist Eriksen", "--scope", "small", *options, cwd=tmp_path)
    assert "small/0.3" in done.out
    last = "the last that was ingested; --dataset names another\n"
    assert done.err == f"dataset talk, {last}"
    # What a comparison brings into the store is written later, and is not what was ingested.
    store = MemoryStore.open(options[-1])
    memlab.run("bm25", memlab.sample(turns=60), store=store, encoder="hashing:64")
    assert store.datasets().sort("ingested_at")["name"].last() == "sample"
    shown = memlab_cli("info", "--store", options[-1], cwd=tmp_path).out
    assert f"commands ask talk, {last}" in shown
    assert "ingested_at" not in shown
    store.ingest(memlab.sample(turns=60))
    assert store.chosen() == "sample"


@pytest.mark.slow
def test_evaluate_writes_tables_runs_and_reads_them_back(memlab_cli: Any, folder: Path) -> None:
    measured = ("evaluate", "talk.jsonl", "--pipeline", "bm25", "--pipeline", "hybrid | mmr", "--scope", "nadia",
                *HASHING, "--store", "measured", "--out", "out")  # fmt: skip
    for there in (0, 4):
        done = memlab_cli(*measured, cwd=folder)
        assert done.code == 0, done.err
        assert "turns, all questions with evidence (n = " in done.out
        assert f"{there} of 4 runs were there before" in done.out
    for name in ("bm25", "hybrid-mmr"):
        ranked = (folder / "out" / f"{name}.turn.trec").read_text()
        assert "nadia/" in ranked
        assert "owen/" not in ranked
    info = memlab_cli("info", "--store", "measured", cwd=folder)
    assert (info.code, info.err) == (0, "")
    assert re.search(r"memlab \S+, Python \d", info.out)
    assert re.search(r"talk +┆ chatlog", info.out)
    assert (
        f"there is no store at {folder / 'nowhere'}"
        in memlab_cli("info", "--store", "nowhere", cwd=folder).out
    )
    assert not (folder / "nowhere").exists()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("search ?! --scope small", "the question '?!' holds no word"),
        ("facts", "--scope is needed; the store has nadia, "),
        ("compare talk.jsonl --scope nobody", "no scope 'nobody'"),
        ("search x --scope nobody", "no scope 'nobody'; the store has nadia, "),
        ("search x --scope small --dataset none", "no dataset 'none'; the store has "),
        ("search x --scope small --level word", "level is 'word'; choose turn or session"),
        ("search x --scope small --pipeline hybrid|mrr", "did you mean 'mmr'?"),
        ("search x --scope small --store nowhere", "nowhere; make it with `memlab ingest`"),
        (
            "search x --scope small --store talk.jsonl",
            "talk.jsonl is a file; expected a directory",
        ),
        ("search x --scope small --encoder nothing", "no encoder 'nothing'"),
        ("search \udcff --scope small", "the question is not valid text: '\\udcff' at 0"),
        ("evaluate talk.jsonl --pipeline bm25 --pipeline bm25()", "none twice"),
        (
            "evaluate talk.jsonl --pipeline bm25 --out talk.jsonl",
            "talk.jsonl is a file; name a folder for what is written",
        ),
        ("evaluate talk.jsonl --pool 5", "pool=5 is for LongMemEval files, this one is chatlog"),
        ("evaluate talk.jsonl --scope nobody", "no scope 'nobody'"),
        (
            "evaluate talk.jsonl --pipeline hybrid|learned(model='no')",
            "no model 'no'; make one: memlab tr",
        ),
        (
            "train asked.jsonl",
            "no question of 'asked' names a turn as evidence; there is nothing to learn from",
        ),
        ("fetch nope", "'nope'; choose one of locomo, longmemeval"),
        ("figures elsewhere", "no directory elsewhere"),
        ("notebooks talk.jsonl --only zz", "holds no notebook"),
        ("notebooks nowhere.jsonl", "nowhere.jsonl is not there; check the path"),
        ("train talk.jsonl --out talk.jsonl/model", "talk.jsonl is a file; name a folder"),
        ("search x --pipeline bm25|multi_hop(service='no')", "no language model 'no' is set"),
        ("notebooks talk.jsonl --scope ann --sample 2", "give one of them"),
        (
            "notebooks talk.jsonl --set n_scopes",
            "--set 'n_scopes' is no assignment; write it as name=value",
        ),
    ],
)
def test_refusals_are_one_line(
    memlab_cli: Any, ingested: Path, monkeypatch: pytest.MonkeyPatch, line: str, said: str
) -> None:
    monkeypatch.setattr("memlab.embed.transformer_encoder.load_minilm", lambda **_: StandIn())
    verb, *rest = line.split(" ")
    defaults = (
        {"--encoder": "hashing", "--store": "store"}
        if verb in ("search", "facts", "evaluate", "train")
        else {}
    )
    more = [
        word for option, value in defaults.items() if option not in rest for word in (option, value)
    ]
    assert said in refusal(memlab_cli(verb, *rest, *more, cwd=ingested.parent))


@pytest.mark.slow
def test_train_measures_on_conversations_that_it_holds_out(
    memlab_cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memlab.embed.transformer_encoder.load_minilm", lambda **_: StandIn())
    monkeypatch.setattr("memlab.rerank.network_ensemble.EPOCHS", 1)
    data = purchases()
    n_asked = dict(data.questions.filter(~pl.col("abstention")).group_by("scope").len().iter_rows())
    write(tmp_path / "three.jsonl", data)
    write(tmp_path / "one.jsonl", data.take(data.scopes[:1]))
    done = memlab_cli("train", "three.jsonl", "--out", "m.safetensors", cwd=tmp_path)
    assert done.code == 0, done.err
    name, n = re.search(r"did not learn from: (\w+) \(n = (\d+) questions\)", done.out).groups()
    assert int(n) == n_asked[name]
    learned_from = sum(n_asked.values()) - n_asked[name]
    assert f"learned from {learned_from} questions of 2 conversations: m.safetensors" in done.out
    assert re.search(r"recall_all@10 \d\.\d{3} with best, \d\.\d{3} with the model", done.out)
    held_out = Model.load(tmp_path / "m.safetensors").about["held_out"]
    assert held_out.keys() == {"n", "best", "learned"}
    again = memlab_cli("train", "one.jsonl", "--out", "m.safetensors", cwd=tmp_path)
    assert "one conversation alone: nothing could be held out" in again.out
    assert Model.load(tmp_path / "m.safetensors").about["held_out"] == {}


def test_datasets_lists_licences(memlab_cli: Any, tmp_path: Path) -> None:
    assert "CC BY-NC 4.0" in memlab_cli("datasets", cwd=tmp_path).out


def test_corrections_stand_beside_the_original(memlab_cli: Any, tmp_path: Path) -> None:
    said = ("I painted a lake.", "I ran a race.")
    turns = [
        {"speaker": "Mel", "dia_id": f"D1:{n}", "text": text} for n, text in enumerate(said, 1)
    ]
    talk = {"session_1_date_time": "1:56 pm on 8 May, 2023", "session_1": turns}
    asked = {
        "question": "Which race did Mel run?",
        "answer": "x",
        "evidence": ["D1:1"],
        "category": 4,
    }
    (tmp_path / "locomo.json").write_text(
        json.dumps([{"sample_id": "a", "conversation": talk, "qa": [asked]}])
    )
    error = {
        "question": asked["question"],
        "cited_evidence": ["D1:1"],
        "correct_evidence": ["D1:2"],
    }
    (tmp_path / "errors.json").write_text(json.dumps([error]))
    measured = (
        "evaluate",
        "locomo.json",
        "--pipeline",
        "bm25",
        *HASHING,
        "--out",
        "out",
        "--corrections",
    )
    done = memlab_cli(*measured, "errors.json", cwd=tmp_path)
    assert done.code == 0, done.err
    assert "errors.json: the evidence of 1 of 1 questions is corrected" in done.out
    judged = [
        (tmp_path / "out" / at / "qrels.turn.trec").read_text().split()[2]
        for at in ("", "corrected")
    ]
    assert judged == ["a/session_1/1", "a/session_1/2"]
    (tmp_path / "errors.json").write_text("[{}]")
    assert "error 0: question: found nothing" in refusal(
        memlab_cli(*measured, "errors.json", cwd=tmp_path)
    )


def test_figures_and_notebooks_of_small_folders(memlab_cli: Any, tmp_path: Path) -> None:
    (tmp_path / "figures").mkdir()
    done = memlab_cli("figures", cwd=tmp_path)
    assert (done.code, done.out) == (0, "figures/index.html\n")
    assert "Nothing has been exported yet" in (tmp_path / "figures" / "index.html").read_text()
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "00_a.ipynb").write_text("{")
    (tmp_path / "x.jsonl").touch()
    assert "00_a.ipynb: could not be run" in refusal(
        memlab_cli("notebooks", "x.jsonl", cwd=tmp_path)
    )


@pytest.mark.slow
def test_two_files_of_one_name_have_results_of_their_own(memlab_cli: Any, tmp_path: Path) -> None:
    texts = {"a": "The bookcase cost 65.", "b": "The kettle cost 30."}
    for folder, text in texts.items():
        (tmp_path / folder).mkdir()
        records: list[dict[str, Any]] = [
            {"scope": scope, "session": "s", "sender": "Ann", "text": text, "id": "1"}
            for scope in ("ann", "bo")
        ]
        records += [
            {"scope": scope, "question": "What did it cost?", "evidence": ["1"]}
            for scope in ("ann", "bo")
        ]
        lines = "".join(json.dumps(record) + "\n" for record in records)
        (tmp_path / folder / "log.jsonl").write_text(lines)
    measure = ("--pipeline", "bm25", *HASHING)
    first = memlab_cli("evaluate", "a/log.jsonl", *measure, cwd=tmp_path)
    assert (first.code, first.messages) == (0, [])
    kept = (tmp_path / "results" / "log" / "report.json").read_bytes()
    second = memlab_cli("evaluate", "b/log.jsonl", *measure, cwd=tmp_path)
    assert second.code == 0
    assert "this goes to log-2" in second.messages[0]
    assert (tmp_path / "results" / "log" / "report.json").read_bytes() == kept
    part = memlab_cli("evaluate", "a/log.jsonl", "--sample", "1", *measure, cwd=tmp_path)
    assert (part.code, part.messages) == (0, [])
    assert "1 scope, 1 question" in part.out
    found = {path.name for path in (tmp_path / "results").iterdir()}
    assert found == {"log", "log-2", "log-1-memories"}
    assert (tmp_path / "results" / "log" / "conclusions.md").read_text().startswith("- ")


def test_notebooks_are_given_the_memories_that_were_named_or_drawn(
    memlab_cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []

    def refuse(source: Path, out: Path, parameters: dict[str, Any], **_: Any) -> None:
        given.append(parameters["part"])
        raise DataError("enough")

    monkeypatch.setattr("memlab.notebooks.run_notebooks", refuse)
    (tmp_path / "x.jsonl").touch()
    for options in (
        [],
        ["--scope", "a", "--scope", "b"],
        ["--sample", "3", "--pool", "5"],
        ["--questions", "p.jsonl", "--source", "own/notebooks"],
    ):
        refusal(memlab_cli("notebooks", "x.jsonl", *options, cwd=tmp_path))
    assert given[:3] == [{}, {"scopes": ["a", "b"]}, {"pool": 5, "scopes": 3}]
    assert given[3] == {"questions": "../../p.jsonl"}


@pytest.fixture
def proposals(folder: Path, tmp_path: Path) -> list[Any]:
    """Give a command's data: conversations, and a file with one proposed and one accepted question."""
    asked = {"scope": "owen", "question": "What did the bookcase cost?", "source": "proposed"}
    first = datasets.load(folder / "talk.jsonl", scopes=["owen"]).turns["turn_id"][0]
    lines = [asked | {"query_id": f"owen/p{n}", "evidence": [first]} for n in range(2)]
    lines[1]["source"] = "accepted"
    path = tmp_path / "p.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    return [folder / "talk.jsonl", "--scope", "owen", "--questions", path, *HASHING]


def test_one_source_is_asked_for(memlab_cli: Any, proposals: list[Any], tmp_path: Path) -> None:
    why = memlab_cli("why", "owen/p0", *proposals, "--pipeline", "bm25", cwd=tmp_path)
    assert "(proposed by a model, not read by a person)" in why.out
    talk = proposals[:3]
    message = refusal(memlab_cli("evaluate", *talk, "--source", "accepted", cwd=tmp_path))
    assert "no question of 'talk' is accepted" in message


@pytest.mark.nightly
def test_proposals_are_measured_apart(
    memlab_cli: Any, proposals: list[Any], tmp_path: Path
) -> None:
    stored = ("--store", tmp_path / "store", "--out", tmp_path / "out", "--pipeline", "bm25")
    done = memlab_cli("evaluate", *proposals, *stored, cwd=tmp_path)
    counted = ".* written, 1 proposed, 1 accepted"
    assert re.search(rf"all questions with evidence \(n = {counted}", done.out)
    info = memlab_cli("info", "--store", tmp_path / "store", cwd=tmp_path)
    assert re.search(f"talk: questions: {counted}", info.out)


def every_option() -> list[tuple[str, str]]:
    """Every long option of every verb."""
    found = []
    for verb, command in VERBS.items():
        for parameter in command.params:
            longest = max(parameter.opts, key=len)
            if longest.startswith("--") and len(longest) > 4:
                found.append((verb, longest))
    return found


@pytest.mark.parametrize(("verb", "option"), every_option())
def test_an_unknown_option_names_the_near_one(
    verb: str, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two letters in each other's place."""
    # The options of all verbs are read once, not at each call: a tenth of a second.
    monkeypatch.setattr("typer.testing._get_command", lambda _: COMMAND)
    misspelt = f"{option[:-2]}{option[-1]}{option[-2]}"
    if misspelt == option:
        misspelt = option[:-1]
    done = CliRunner().invoke(app, [verb, misspelt, "x"], terminal_width=1000)
    assert done.exit_code == 2
    assert "No such option" in done.output
    assert option in done.output.partition("No such option")[2]


def test_values_set_for_notebooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.json").write_text("[]")
    given = ["n=None", "files=['a.json', 'b']", "text=hybrid(k=3) | mmr", "quoted='7'"]
    expected = {
        "n": None,
        "files": [str(tmp_path / "a.json"), "b"],
        "text": "hybrid(k=3) | mmr",
        "quoted": "7",
    }
    assert parse_parameter_assignments(given) == expected
    for wrong in ("n", "=3", "a-b=3"):
        with pytest.raises(DataError, match="is no assignment"):
            parse_parameter_assignments([wrong])
