"""The command line from end to end: every verb, what it writes, and how it refuses."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ir_measures
import polars as pl
import pytest
from ir_measures import RR, R, Success, nDCG
from stand_in import StandIn
from talk import excerpt, write

from memlab import datasets
from memlab.cli._options import assignments
from memlab.errors import DataError
from memlab.store import MemoryStore
from memlab.store.database import Database

HASHING = ("--encoder", "hashing")
VERBS = ("ingest", "index", "facts", "recall", "list", "rollup", "search", "evaluate", "notebooks", "figures")
VERBS += ("fetch", "datasets", "convert", "info")
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
    done = memlab_cli(*verb, "--help", cwd=tmp_path)
    assert done.code == 0
    assert "Usage" in done.out
    assert set(VERBS) <= set(done.out.split()) or verb
    assert "[llm.services]" in done.out or verb != ("index",)
    assert not list(tmp_path.iterdir())


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


@pytest.mark.slow
def test_ingest_in_another_language_with_no_word_cut(memlab_cli: Any, folder: Path, tmp_path: Path) -> None:
    options = (*HASHING, "--store", tmp_path / "store")
    done = memlab_cli("ingest", "talk.jsonl", *options, "--language", "de", cwd=folder)
    assert done.code == 0, done.err
    assert "IvfFlat, left out: the largest scope has " in done.out
    assert "…" not in done.out
    assert MemoryStore.open(tmp_path / "store").dataset("talk").language == "de"
    assert memlab_cli("index", "--now", "2100-01-01", *options, cwd=folder).code == 0
    refused = memlab_cli("evaluate", "talk.jsonl", *options, "--language", "xx", cwd=folder)
    assert "'xx'" in one_message(refused)


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


def test_search_reads_one_memory_and_writes_nothing(
    memlab_cli: Any, folder: Path, ingested: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, heights = Database.read, []

    def counted(database: Database, name: str, /, *arguments: Any, **options: Any) -> pl.DataFrame:
        rows = read(database, name, *arguments, **options)
        if name in ("turns", "questions", "annotations"):
            heights.append(rows.height)
        return rows

    def refused(*_: Any, **__: Any) -> None:
        raise AssertionError("search ingests")

    monkeypatch.setattr(Database, "read", counted)
    monkeypatch.setattr("memlab.store.MemoryStore.ingest", refused)
    arguments = ("--pipeline", "hybrid", "--scope", "small", *HASHING, "--store", ingested)
    assert memlab_cli("search", "dentist", *arguments, cwd=folder).code == 0
    assert max(heights) == 7


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


def test_a_query_of_a_hundred_kilobytes(memlab_cli: Any, folder: Path, ingested: Path) -> None:
    query = "dentist appointment " * 5_000
    done = memlab_cli("search", query, "--scope", "small", *HASHING, "--store", ingested, cwd=folder)
    assert done.code == 0, done.err
    assert "small/" in done.out.splitlines()[0]


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


def test_evaluate_writes_every_file(evaluated: Path) -> None:
    runs = {f"{n}.{level}.{kind}" for n in PIPELINES.values() for level in ("turn", "session") for kind in KINDS}
    assert {p.name for p in evaluated.iterdir()} == runs | {
        *("qrels.turn.trec", "qrels.session.trec", "report.json", "report.md", "report.tex")
    }


KINDS = ("trec", "parquet")


def trec(path: Path) -> pl.DataFrame:
    rows = [line.split(" ") for line in path.read_text().splitlines()]
    assert {len(row) for row in rows} == {6}
    return pl.DataFrame(rows, schema=["query_id", "Q0", "doc_id", "rank", "score", "tag"], orient="row").with_columns(
        pl.col("rank").cast(pl.Int64), pl.col("score").cast(pl.Float64)
    )


@pytest.mark.parametrize("name", PIPELINES.values())
@pytest.mark.parametrize(("level", "depth"), [("turn", 50), ("session", 10)])
def test_runs_are_deep_enough_and_stay_in_their_scope(
    folder: Path, evaluated: Path, name: str, level: str, depth: int
) -> None:
    data = datasets.load(folder / "talk.jsonl")
    run = trec(evaluated / f"{name}.{level}.trec")
    held = data.turns if level == "turn" else data.sessions
    sizes = dict(held.group_by("scope").len().iter_rows())
    assert sizes["small"] < depth < max(sizes.values())
    scope = dict(data.questions.select("query_id", "scope").iter_rows())
    ids = set(held[f"{level}_id"])
    assert set(run["query_id"]) == set(scope)
    for (query,), rows in run.group_by("query_id", maintain_order=True):
        assert rows.height >= min(depth, sizes[scope[query]])
        assert rows["rank"].to_list() == list(range(1, rows.height + 1))
        assert (rows["score"].cast(pl.Float32).diff().drop_nulls() < 0).all()
        assert rows["doc_id"].is_unique().all()
        assert set(rows["doc_id"]) <= ids
        assert rows["doc_id"].str.starts_with(scope[query] + "/").all()
    assert run["tag"].unique().to_list() == [text.replace(" ", "") for text, n in PIPELINES.items() if n == name]


@pytest.mark.parametrize("level", ["turn", "session"])
def test_ids_are_those_of_the_house(folder: Path, evaluated: Path, level: str) -> None:
    shape = r"(nadia|owen|small)/" + (r"\d+\.\d+" if level == "turn" else r"s\d+")
    for path in evaluated.glob(f"*.{level}.trec"):
        for line in path.read_text().splitlines():
            query, _, document = line.split(" ")[:3]
            assert re.fullmatch(r"(nadia|owen|small)/q\d+", query)
            assert re.fullmatch(shape, document)
    wanted = datasets.load(folder / "talk.jsonl").questions.filter(~pl.col("abstention"))
    column = "evidence" if level == "turn" else "evidence_sessions"
    judged = [line.split(" ") for line in (evaluated / f"qrels.{level}.trec").read_text().splitlines()]
    expected = {(q, doc) for q, docs in wanted.select("query_id", column).iter_rows() for doc in docs}
    assert {(q, doc) for q, _, doc, relevance in judged if relevance == "1"} == expected
    assert len(judged) == len(expected)


@pytest.mark.parametrize("level", ["turn", "session"])
@pytest.mark.parametrize("text", PIPELINES)
def test_another_tool_reads_the_same_numbers_off_the_files(evaluated: Path, level: str, text: str) -> None:
    judged = list(ir_measures.read_trec_qrels(str(evaluated / f"qrels.{level}.trec")))
    run = list(ir_measures.read_trec_run(str(evaluated / f"{PIPELINES[text]}.{level}.trec")))
    cutoffs = (10, 20) if level == "turn" else (5, 10)
    theirs = ir_measures.calc_aggregate([nDCG @ 10, RR, R @ 10, Success @ cutoffs[0]], judged, run)
    per_query = list(ir_measures.iter_calc([R @ k for k in cutoffs], judged, run))
    report = json.loads((evaluated / "report.json").read_text())
    mine = next(r for r in report["reports"] if (r["name"], r["level"]) == (text, level))
    ours = {row["measure"]: row["mean"] for row in mine["summary"]["all"]}
    assert mine["n"] == len({q.query_id for q in judged})
    for ir, own in ((nDCG @ 10, "ndcg@10"), (RR, "mrr"), (R @ 10, "recall@10")):
        assert ours[own] == pytest.approx(theirs[ir], abs=1e-6), own
    assert ours[f"recall_any@{cutoffs[0]}"] == pytest.approx(theirs[Success @ cutoffs[0]], abs=1e-6)
    for k in cutoffs:
        complete = [m.value == 1.0 for m in per_query if m.measure == R @ k]
        assert ours[f"recall_all@{k}"] == pytest.approx(sum(complete) / len(complete), abs=1e-9)
    table = pl.read_parquet(evaluated / f"{PIPELINES[text]}.{level}.parquet")
    assert table.height == mine["n"]
    for name, mean in ours.items():
        assert table[name].mean() == pytest.approx(mean)


def test_reports_say_what_they_were_measured_on(folder: Path, evaluated: Path) -> None:
    report = json.loads((evaluated / "report.json").read_text())
    data = datasets.load(folder / "talk.jsonl")
    assert [r["level"] for r in report["reports"]].count("turn") == len(PIPELINES)
    for one in report["reports"]:
        assert one["provenance"]["fingerprint"] == data.fingerprint()
        assert one["provenance"]["pipeline"] == one["name"]
        assert one["provenance"]["seed"] == 1
        assert one["provenance"]["encoder"].startswith("hashing ")
    markdown, latex = (evaluated / "report.md").read_text(), (evaluated / "report.tex").read_text()
    for text in PIPELINES:
        assert text.replace("|", r"\|") in markdown
    assert latex.count(r"\toprule") == latex.count(r"\bottomrule") >= 2


@pytest.mark.slow
def test_evaluating_again_writes_the_same_bytes(memlab_cli: Any, folder: Path, evaluated: Path) -> None:
    chosen = [part for text in PIPELINES for part in ("--pipeline", text)]
    for store, out in (("first", "again"), ("fresh", "elsewhere")):
        arguments = ("evaluate", "talk.jsonl", *chosen, *HASHING, "--store", store, "--out", out, "--seed", 1)
        assert memlab_cli(*arguments, cwd=folder).code == 0
    for path in evaluated.iterdir():
        assert (folder / "again" / path.name).read_bytes() == path.read_bytes(), path.name
        if path.suffix in (".trec", ".parquet"):
            assert (folder / "elsewhere" / path.name).read_bytes() == path.read_bytes(), path.name
    saved = MemoryStore.open(folder / "first").runs.listing()
    assert saved.height == 2 * len(PIPELINES), "the same run is kept once"


def test_settings_choose_what_is_compared(memlab_cli: Any, folder: Path) -> None:
    (folder / "memlab.toml").write_text('pipelines = ["bm25(k=30)"]\nencoder = "hashing:64"\nresults = "res"\n')
    try:
        done = memlab_cli("evaluate", "talk.jsonl", cwd=folder, MEMLAB_STORE="third")
    finally:
        (folder / "memlab.toml").unlink()
    assert done.code == 0, done.err
    assert (folder / "res" / "talk" / "bm25-k-30.turn.trec").is_file()
    assert "turns" in MemoryStore.open(folder / "third").versions()


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


@pytest.mark.slow
def test_several_files_are_one_comparison_that_goes_on(memlab_cli: Any, tmp_path: Path) -> None:
    for name, scope in (("a", "nadia"), ("b", "owen")):
        write(tmp_path / f"{name}.jsonl", excerpt(200, scopes=[scope]))
    chosen = ("--pipeline", "bm25", "--pipeline", "dense(k=50)", *HASHING, "--store", "store")
    one = memlab_cli("evaluate", "a.jsonl", *chosen, "--out", "one", cwd=tmp_path)
    assert "comparison 'a' in the store: 0 of 4 runs were there before" in one.out
    both = memlab_cli("evaluate", "a.jsonl", "b.jsonl", *chosen, "--out", "both", "--name", "mine", cwd=tmp_path)
    assert both.code == 0, both.err
    assert "comparison 'mine' in the store: 4 of 8 runs were there before" in both.out
    assert re.findall(r"^## (\w+)$", both.out, re.MULTILINE) == ["a", "b"]
    assert {p.name for p in (tmp_path / "both").iterdir()} == {"a", "b"}
    for path in (tmp_path / "one").iterdir():
        assert (tmp_path / "both" / "a" / path.name).read_bytes() == path.read_bytes(), path.name
    tables = [part for part in one.out.split("\n\n") if part.startswith("|")]
    assert all(table.split("\nruns, ")[0] in both.out for table in tables)
    twice = memlab_cli("evaluate", "a.jsonl", tmp_path / "a.jsonl", *chosen, cwd=tmp_path)
    assert "give at least one, and each its own name" in one_message(twice)


def test_a_pool_is_for_the_files_that_can_be_pooled(memlab_cli: Any, tmp_path: Path) -> None:
    write(tmp_path / "talk.jsonl", excerpt(100, scopes=["owen"]))
    records = [
        {
            "question_id": f"q{i}",
            "question_type": "multi-session",
            "question": "How many?",
            "answer": 2,
            "question_date": "2023/05/30 (Tue) 23:40",
            "haystack_dates": ["2023/05/09 (Tue) 02:21"],
            "haystack_session_ids": [f"s{i}"],
            "haystack_sessions": [[{"role": "user", "content": f"fact {i}", "has_answer": True}]],
            "answer_session_ids": [f"s{i}"],
        }
        for i in range(4)
    ]
    (tmp_path / "long.json").write_text(json.dumps(records))
    arguments = ("--pool", 3, "--pipeline", "bm25", *HASHING, "--store", "store")
    done = memlab_cli("evaluate", "talk.jsonl", "long.json", *arguments, cwd=tmp_path)
    assert done.code == 0, done.err
    assert "long-pool3-seed0 (longmemeval): 12 turns in 12 sessions of 4 scopes" in done.out
    alone = memlab_cli("evaluate", "talk.jsonl", *arguments, cwd=tmp_path)
    assert "pool=3 is for LongMemEval files" in one_message(alone)


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


@pytest.mark.slow
def test_cross_validation_trains_once_and_leaves_each_conversation_out(memlab_cli: Any, learnable: Path) -> None:
    from memlab.rerank import Model

    chosen = ("--pipeline", "hybrid", "--pipeline", "hybrid | learned", "--cross-validate", "scope", "--store", "store")
    done = memlab_cli("evaluate", "talk.jsonl", *chosen, "--out", "out", cwd=learnable)
    assert done.code == 0, done.err
    data = datasets.load(learnable / "talk.jsonl")
    folder = Path("results") / "cross-validated" / data.fingerprint()
    assert "0 of 4 runs were there before" in done.out
    seen = [Model.load(path).about["scopes"] for path in sorted((learnable / folder).glob("*.safetensors"))]
    assert [len(scopes) for scopes in seen] == [1, 1]
    assert seen[0] != seen[1]
    assert list((learnable / "out").glob("hybrid-learned*.turn.trec"))
    again = memlab_cli("evaluate", "talk.jsonl", *chosen, "--out", "again", cwd=learnable)
    assert "4 of 4 runs were there before" in again.out
    for path in (learnable / "out").iterdir():
        assert (learnable / "again" / path.name).read_bytes() == path.read_bytes(), path.name
    systems = ("--system", "hybrid | learned", "--cross-validate", "scope", "--store", "store", "--out", "systems")
    compared = memlab_cli("compare", "talk.jsonl", *systems, cwd=learnable)
    assert compared.code == 0, compared.err
    (own,) = json.loads((learnable / "systems" / "systems.json").read_text())["systems"]
    (theirs,) = (learnable / "out").glob("hybrid-learned*.turn.parquet")
    assert own["recall_all@10"] == pytest.approx(pl.read_parquet(theirs)["recall_all@10"].mean())
    seeded = memlab_cli("evaluate", "talk.jsonl", *chosen, "--out", "seeded", "--seed", 5, cwd=learnable)
    assert "2 of 4 runs were there before" in seeded.out, "models of another seed rank anew"


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


def test_a_single_conversation_cannot_be_cross_validated(memlab_cli: Any, learnable: Path) -> None:
    chosen = ("--pipeline", "hybrid | learned", "--cross-validate", "scope", "--store", "store")
    scope = datasets.load(learnable / "talk.jsonl").scopes[0]
    done = memlab_cli("evaluate", "talk.jsonl", "--scope", scope, *chosen, cwd=learnable)
    assert "cross-validation by scope needs two conversations" in one_message(done)


def test_values_set_for_notebooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.json").write_text("[]")
    given = ["n=None", "few=[1, 2]", "file=a.json", "files=['a.json', 'b']", "text=hybrid(k=3) | mmr", "quoted='7'"]
    assert assignments(given) == {
        "n": None,
        "few": [1, 2],
        "file": str(tmp_path / "a.json"),
        "files": [str(tmp_path / "a.json"), "b"],
        "text": "hybrid(k=3) | mmr",
        "quoted": "7",
    }
    for wrong in ("n", "=3", "a-b=3"):
        with pytest.raises(DataError, match="is no assignment"):
            assignments([wrong])
