"""Grades from reading to writing, and every measure on graded qrels as ir_measures and pyndeval give it."""

from __future__ import annotations

import itertools
import json
import tarfile
from dataclasses import replace
from pathlib import Path

import ir_measures
import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ir_measures import RR, P, R, SetF, SetP, SetR, Success, alpha_nDCG, nDCG

import memlab
from memlab.datasets import chatlog, load
from memlab.errors import DataError
from memlab.evaluate import evaluate
from memlab.evaluate.evaluation_report import ceiling_of_measure, chance_of_measure
from memlab.evaluate.ranking_measures import score_queries
from memlab.evaluate.trec_files import write_qrels, write_run
from memlab.records import Qrels, Question, Run, frame, qrels, run_from_scores
from memlab.store.table_schemas import SCHEMA_VERSION

CASE = Path(__file__).parents[3] / "shared" / "data" / "cases" / "evaluation" / "beir_graded"
STORES = Path(__file__).parents[1] / "store" / "data"
SAME = {
    **{f"ndcg@{k}": nDCG @ k for k in (1, 3, 10)},
    **{f"recall@{k}": R @ k for k in (1, 5)},
    **{f"recall_any@{k}": Success @ k for k in (1, 5)},
    **{f"precision@{k}": P @ k for k in (1, 5, 20)},
    **{f"mrr@{k}": RR @ k for k in (1, 3)},
    **{f"alpha_ndcg@{k}": alpha_nDCG(alpha=0.5) @ k for k in (5, 10)},
    "ndcg": nDCG,
    "recall": SetR,
    "mrr": RR,
    "precision_returned": SetP,
    "f1": SetF,
}
"""Every measure that ir_measures has too."""
QUERIES, DOCS = ("q1", "q2", "q3"), tuple(f"s{n % 3}/{n}" for n in range(9))
PAIRS = st.tuples(st.sampled_from(QUERIES), st.sampled_from(DOCS))
RANKED = st.lists(
    st.tuples(PAIRS, st.sampled_from([-1.0, 0.0, 0.5, 2.0])),  # few, so that many tie
    max_size=20,
    unique_by=lambda row: row[0],
)
JUDGED = st.lists(
    st.tuples(PAIRS, st.sampled_from([-2, -1, 0, 1, 1, 2, 3, 9])),
    max_size=16,
    unique_by=lambda row: row[0],
)


def make_run(rows: list[tuple[tuple[str, str], float]]) -> Run:
    query, doc = ([pair[at] for pair, _ in rows] for at in (0, 1))
    scores = np.array([value for _, value in rows], dtype=float)
    return run_from_scores(
        pl.Series(query, dtype=pl.String), pl.Series(doc, dtype=pl.String), scores, level="turn"
    )


def make_qrels(rows: list[tuple[tuple[str, str], int]]) -> Qrels:
    table = [(query, doc, grade, doc.split("/")[0]) for (query, doc), grade in rows]
    columns = {"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Int32}
    return Qrels(pl.DataFrame(table, columns | {"subtopic": pl.String}, orient="row"), "turn")


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(ranked=RANKED, graded=JUDGED)
def test_like_ir_measures_and_pyndeval_on_graded_tied_and_empty_input(tmp_path, ranked, graded):
    run, judged = make_run(ranked), make_qrels(graded)
    ours = score_queries(run, judged, list(SAME))
    evidence = judged.frame.filter(pl.col("relevance") >= 1)
    assert ours["query_id"].to_list() == evidence["query_id"].unique(maintain_order=True).to_list()
    if evidence.is_empty() or run.frame.is_empty():
        assert ours.drop("query_id").sum_horizontal().sum() == 0
        return
    measured = set(ours["query_id"])
    # Through the files: what is written is what other tools measure. Subtopics are not in a file.
    theirs_run = list(ir_measures.read_trec_run(str(write_run(run, tmp_path / "run.trec"))))
    file = write_qrels(judged, tmp_path / "qrels.trec")
    written = [line.split() for line in file.read_text().splitlines()]
    subtopics = judged.frame["subtopic"].to_list()
    theirs_qrels = [
        ir_measures.Qrel(query, doc, int(grade), subtopic)
        for (query, _, doc, grade), subtopic in zip(written, subtopics, strict=True)
        if query in measured  # pytrec_eval takes no query whose grades are all negative
    ]
    wanted = list(SAME.values())
    theirs = {
        (each.measure, each.query_id): each.value
        for each in ir_measures.iter_calc(wanted, theirs_qrels, theirs_run)
    }
    for row in ours.iter_rows(named=True):
        for name, measure in SAME.items():
            expected = theirs.get((measure, row["query_id"]), 0.0)
            assert row[name] == pytest.approx(expected, abs=1e-9), (name, row["query_id"])


@given(graded=JUDGED.filter(lambda rows: any(grade > 0 for _, grade in rows)))
def test_what_is_judged_twice_is_refused_and_what_is_rejected_changes_no_measure(graded):
    judged = make_qrels(graded)
    run = make_run([((query, doc), -place) for place, (query, doc) in enumerate(
        itertools.product(QUERIES, DOCS))])  # fmt: skip
    evidence = judged.frame.filter(pl.col("relevance") >= 1)
    names = [*SAME, "recall_all@5", "ndcg_longmemeval@5"]
    assert score_queries(run, judged, names).equals(
        score_queries(run, Qrels(evidence, "turn"), names)
    )
    twice = pl.concat([judged.frame, evidence.head(1).with_columns(relevance=pl.lit(2, pl.Int32))])
    with pytest.raises(DataError, match="qrels judge document"):
        score_queries(run, Qrels(twice, "turn"), "ndcg@10")


@pytest.mark.parametrize("grades", [[1, 2, 2], [3, 1], [5], [1, 1]])
@pytest.mark.parametrize("name", ["ndcg@1", "ndcg@2", "ndcg@10", "ndcg", "recall@2", "mrr"])
def test_chance_and_ceiling_of_graded_evidence_against_every_ranking(name, grades):
    n = 5
    orders = list(itertools.permutations(range(n)))
    rows = [((f"q{q}", f"s/{doc}"), -place) for q, order in enumerate(orders)
            for place, doc in enumerate(order)]  # fmt: skip
    judged = make_qrels(
        [
            ((f"q{q}", f"s/{doc}"), grade)
            for q in range(len(orders))
            for doc, grade in enumerate(grades)
        ]
    )
    values = score_queries(make_run(rows), judged, name)[name]
    sizes = ([n, n], [len(grades)] * 2, name, [grades, grades[::-1]])
    assert ceiling_of_measure(*sizes) == pytest.approx(values.max(), abs=1e-12)
    assert chance_of_measure(*sizes) == pytest.approx(values.mean(), abs=1e-12)


def test_grades_that_do_not_fit_the_evidence_are_refused():
    for of in (ceiling_of_measure, chance_of_measure):
        with pytest.raises(DataError, match="a grade for each item"):
            of([5], [2], "ndcg@5", [[1]])


def write_folder(folder: Path, lines: str) -> Path:
    folder.mkdir(exist_ok=True)
    documents = [json.dumps({"_id": f"d{i}", "text": f"the mill pond {i}"}) for i in range(5)]
    (folder / "corpus.jsonl").write_text("\n".join(documents))
    (folder / "queries.jsonl").write_text(
        '{"_id": "q1", "text": "Which pond?"}\n{"_id": "q2", "text": "None?"}'
    )
    (folder / "qrels.tsv").write_text(lines)
    return folder


def test_a_folder_keeps_its_grades_through_a_store_to_the_written_qrels(tmp_path):
    lines = "q1\td0\t1\nq1\td3\t0\nq1\td1\t2.0\nq1\td2\t3\nq1\td4\t-1\nq2\td0\t0\n"
    data = load(write_folder(tmp_path / "pond", lines))
    store = memlab.MemoryStore.open(tmp_path / "store")
    store.ingest(data)
    kept = store.dataset("pond")
    assert kept.fingerprint() == data.fingerprint()
    assert kept.questions.select("evidence", "judged", "grades").rows() == [
        (
            ["pond/s1/1", "pond/s1/2", "pond/s1/3"],
            ["pond/s1/1", "pond/s1/2", "pond/s1/3", "pond/s1/4", "pond/s1/5"],
            [1, 2, 3, 0, -1],
        ),
        ([], ["pond/s1/1"], [0]),
    ]
    done = memlab.run(["bm25"], kept, encoder=None, measures=["ndcg@2", "recall@2"])
    report = done.at("turn")[0]
    ids = pl.Series(["pond/s1/2", "pond/s1/1"])
    made = run_from_scores(pl.Series(["q1", "q1"]), ids, np.array([2.0, 1.0]), level="turn")
    expected = (2 + 1 / np.log2(3)) / (3 + 2 / np.log2(3))
    assert evaluate(made, kept, measures="ndcg@2").per_query["ndcg@2"].item() == pytest.approx(
        expected
    )
    summary = report.summary(measures="ndcg@2")
    blind = (6 / 5) * (1 + 1 / np.log2(3)) / (3 + 2 / np.log2(3))
    assert summary["ceiling"].item() == 1
    assert summary["chance"].item() == pytest.approx(blind)
    done.export(tmp_path / "out")
    turn, session = (
        [
            tuple(line.split())
            for line in (tmp_path / f"out/qrels.{level}.trec").read_text().splitlines()
        ]
        for level in ("turn", "session")
    )
    graded = {1: "1", 2: "2", 3: "3", 4: "0", 5: "-1"}
    assert turn == [
        *(("q1", "0", f"pond/s1/{n}", grade) for n, grade in graded.items()),
        ("q2", "0", "pond/s1/1", "0"),
    ]
    assert session == [("q1", "0", "pond/s1", "3"), ("q2", "0", "pond/s1", "0")]


def test_the_case_of_a_published_layout(tmp_path):
    if not CASE.is_dir():
        pytest.skip("the folder of shared cases is not beside this one")
    done = memlab.run(["bm25"], load(CASE), encoder=None, measures=["ndcg@10"])
    done.export(tmp_path)
    run, judged = (
        list(read(str(tmp_path / name)))
        for read, name in (
            (ir_measures.read_trec_run, "bm25.turn.trec"),
            (ir_measures.read_trec_qrels, "qrels.turn.trec"),
        )
    )
    assert sorted(each.relevance for each in judged) == [1, 2, 2]
    ours = done.at("turn")[0].summary(measures="ndcg@10")["mean"].item()
    assert ours == pytest.approx(ir_measures.calc_aggregate([nDCG @ 10], judged, run)[nDCG @ 10])
    assert round(ours, 3) == 0.867


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("q1\td0\t1\nq1\td0\t2\n", r"line 2: found 'd0' again for 'q1', graded 2 and 1"),
        ("q1\td0\t0.5\n", r"line 1: score: found 0.5 \(a number\), expected a whole number"),
        (f"q1\td0\t{10**12}\n", r"line 1: score: found .*, expected a whole number"),
    ],
)
def test_grades_that_are_none_are_named(tmp_path, lines, message):
    with pytest.raises(DataError, match=message):
        load(write_folder(tmp_path / "pond", lines))


def test_a_judgement_that_stands_twice_is_counted_and_one_of_no_document_too(tmp_path):
    lines = "q1\td0\t2\nq1\td0\t2\nq1\tgone\t2\nq1\taway\t0\n"
    data = load(write_folder(tmp_path / "pond", lines))
    assert data.questions["grades"].to_list() == [[2], None]
    assert data.issues["action"].to_list() == [
        "counted once",
        "dropped evidence",
        "dropped judgements",
    ]


MESSAGES = [
    {"scope": "ann", "session": s, "sender": "Ann", "text": f"{s} {n}", "id": f"{s}{n}"}
    for s in "ab"
    for n in (1, 2)
]


def ask(evidence: list[object], **more: object) -> pl.DataFrame:
    asked = {"scope": "ann", "question": "?", "evidence": evidence, **more}
    return chatlog.dataset([*MESSAGES, asked], "log").questions


def test_a_chat_log_may_grade_its_evidence():
    asked = ask([{"id": "b2", "grade": 0}, "a1", {"id": "a2", "grade": 3}, {"id": "b/1"}])
    columns = ["evidence", "evidence_sessions", "judged", "grades"]
    assert asked.select(columns).row(0) == (
        ["ann/a1", "ann/a2", "ann/b1"],
        ["ann/a", "ann/b"],
        ["ann/a1", "ann/a2", "ann/b1", "ann/b2"],
        [1, 3, 1, 0],
    )
    assert ask(["a1", {"id": "a2", "grade": 1}])["grades"].item() is None
    for evidence, message in (
        ([{"id": "a1", "grade": 1.5}], r"evidence\[0\].grade: found 1.5"),
        ([{"id": "a1", "grade": True}], r"evidence\[0\].grade: found true"),
        ([{"grade": 1}], r"evidence\[0\].id: found nothing"),
        (["a1", {"id": "a/1", "grade": 2}], r"evidence\[1\]: found 'ann/a1' graded 2 and 1"),
        ([{"id": "c", "grade": 2}], r"evidence\[0\]: found 'c'"),
    ):
        with pytest.raises(DataError, match=message):
            ask(evidence)


def test_the_grade_of_a_session_is_the_highest_of_its_turns():
    evidence = [{"id": "a1", "grade": 2}, "a2", {"id": "b1", "grade": -1}, {"id": "b2", "grade": 0}]
    asked, turns = ask(evidence), chatlog.dataset(MESSAGES, "log").turns
    of_sessions = qrels(asked, "session", turns, rejected=True).frame
    assert of_sessions["doc_id"].to_list() == ["ann/a", "ann/b"]
    assert of_sessions["relevance"].to_list() == [2, 0]
    assert qrels(asked, "session", turns).frame["doc_id"].to_list() == ["ann/a"]
    bare = asked.drop("judged", "grades")  # a frame of somebody's own
    assert qrels(bare, "turn").frame["relevance"].to_list() == [1, 1]
    gone = [Question("q", "u", "?", None, "t", None, [], [], True, judged=["u/s/1"], grades=[0])]
    assert qrels(frame(Question, gone), "turn", rejected=True).frame.is_empty()


def test_an_older_store_takes_grades(tmp_path):
    with tarfile.open(STORES / f"version-{SCHEMA_VERSION}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    store = memlab.MemoryStore.open(tmp_path / "store", create=False)
    before, versions = store.dataset("tiny"), store.versions()
    if "grades" in store.table("questions").schema.names:
        pytest.skip("the store of this version has grades already")
    assert before.questions["grades"].null_count() == before.questions.height > 0
    data = load(write_folder(tmp_path / "pond", "q1\td0\t2\n"))
    store.ingest(data)
    assert store.dataset("pond").fingerprint() == data.fingerprint()
    assert store.dataset("tiny").fingerprint() == before.fingerprint()
    again = store.ingest(replace(before, name="tiny"))
    assert again["updated"].sum() == again["inserted"].sum() == 0
    assert store.at(versions).dataset("tiny").fingerprint() == before.fingerprint()
