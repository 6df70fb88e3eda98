"""Retrieval folders: the layouts of MTEB and LMEB in, and a dataset out and in again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import memlab
from memlab.datasets import folders, load
from memlab.errors import DataError

DOCS = [{"id": f"d{i}", "title": "May 3" if i == 1 else "", "text": f"text {i}"} for i in range(5)]


def lines(path: Path, records: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def lmeb(folder: Path) -> Path:
    """LMEB's layout of a dialogue data set: corpus and candidates above, kinds of questions below."""
    lines(folder / "corpus.jsonl", DOCS)
    scenes = [("a_0", ["d0", "d1", "d2"]), ("b_1", ["d2", "d3"])]
    lines(folder / "candidates.jsonl", [{"scene_id": s, "candidate_doc_ids": d} for s, d in scenes])
    lines(folder / "multi_hop" / "queries.jsonl", [{"id": "a_0_0", "text": "Who?"}, {"id": "b_1_7", "text": "What?"}])
    (folder / "multi_hop" / "qrels.tsv").write_text("a_0_0\td1\t1\na_0_0\td2\t1\nb_1_7\td2\t1\nb_1_7\td3\t0\n")
    lines(folder / "single_hop" / "queries.jsonl", [{"id": "a_0_0", "text": "Where?"}])
    (folder / "single_hop" / "qrels.tsv").write_text("a_0_0\td0\t1\na_0_0\td3\t1\n")
    return folder


def test_scenes_are_scopes_and_folders_are_kinds(tmp_path: Path) -> None:
    data = load(lmeb(tmp_path / "LoCoMo"))
    assert data.format == "retrieval"
    assert data.turns.select("turn_id", "text").rows() == [
        ("a_0/s1/1", "text 0"),
        ("a_0/s1/2", "May 3 text 1"),
        ("a_0/s1/3", "text 2"),
        ("b_1/s1/1", "text 2"),
        ("b_1/s1/2", "text 3"),
    ]
    assert data.questions.select("query_id", "scope", "question_type", "evidence").rows() == [
        ("multi_hop/a_0_0", "a_0", "multi-hop", ["a_0/s1/2", "a_0/s1/3"]),
        ("single_hop/a_0_0", "a_0", "single-hop", ["a_0/s1/1"]),
        ("multi_hop/b_1_7", "b_1", "multi-hop", ["b_1/s1/1"]),
    ]
    assert data.issues["action"].to_list() == ["dropped evidence"]


def test_one_kind_alone_finds_the_corpus_above(tmp_path: Path) -> None:
    data = load(lmeb(tmp_path) / "multi_hop")
    assert data.questions["query_id"].to_list() == ["a_0_0", "b_1_7"]


def test_mteb_without_scenes_is_one_scope_and_its_qrels_have_names(tmp_path: Path) -> None:
    folder = tmp_path / "scifact"
    lines(folder / "corpus.jsonl", [{"_id": d["id"], "title": d["title"], "text": d["text"]} for d in DOCS])
    lines(folder / "queries.jsonl", [{"_id": "1", "text": "Who?", "metadata": {}}])
    (folder / "qrels").mkdir()
    (folder / "qrels" / "train.tsv").write_text("query-id\tcorpus-id\tscore\n9\td1\t1\n")
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\td4\t2\n1\td0\t0\n2\td1\t1\n")
    data = load(folder)
    assert (data.scopes, data.turns.height, data.questions["question_type"].item()) == (["scifact"], 5, "unspecified")
    assert data.questions["evidence"].to_list() == [["scifact/s1/5"]]
    assert data.issues["found"].to_list() == ["1 questions that queries.jsonl does not hold ('2' …)"]
    assert load(folder / "queries.jsonl").fingerprint() == data.fingerprint()


def test_a_dataset_comes_back_as_it_was(tmp_path: Path) -> None:
    log = [
        {"scope": "my cat", "sender": "Ann", "text": "Look!", "caption": "a cat", "timestamp": "2026-03-01T09:00:00Z"},
        {"scope": "my cat", "role": "assistant", "text": "Nice", "session": "two/three"},
        {"scope": "b", "sender": "Bea", "text": "ta\tb\nnew"},
        {"scope": "quiet", "sender": "Cy", "text": "nothing is asked of me"},
        {
            "question": "Which?",
            "scope": "my cat",
            "evidence": ["s0001/1"],
            "answer": "cat",
            "type": "k",
            "rubric": ["cat"],
        },
        {"question": "Tab?", "scope": "b", "evidence": ["s0001/1"], "timestamp": "2026-03-02T09:00:00Z"},
        {"question": "Gone?", "scope": "b", "abstention": True},
    ]
    lines(tmp_path / "log.jsonl", log)
    data = load(tmp_path / "log.jsonl")
    folder = folders.write(data, tmp_path / "out")
    again = load(folder)
    assert_frame_equal(again.turns, data.turns)
    assert_frame_equal(again.questions, data.questions.filter(pl.col("evidence").list.len() > 0), check_row_order=False)
    assert again.scopes == [*data.scopes]


def test_what_is_written_is_what_lmeb_and_mteb_read(tmp_path: Path) -> None:
    data = memlab.sample(turns=2000)
    folder = folders.write(data, tmp_path / "out")
    corpus = {row["id"]: row for row in map(json.loads, (folder / "corpus.jsonl").open())}
    queries = [json.loads(row)["id"] for row in (folder / "queries.jsonl").open()]
    scenes = {
        row["scene_id"]: row["candidate_doc_ids"] for row in map(json.loads, (folder / "candidates.jsonl").open())
    }
    bare = [row.rstrip("\n").split("\t") for row in (folder / "qrels.tsv").open()]
    named = [row.rstrip("\n").split("\t") for row in (folder / "qrels" / "test.tsv").open()]
    assert named[0] == ["query-id", "corpus-id", "score"]
    assert named[1:] == bare
    assert {row[0] for row in bare} == set(queries)
    for query, doc, _ in bare:
        scene = query if query in scenes else "_".join(query.split("_")[:2])
        assert doc in scenes[scene]
        assert corpus[doc]["text"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("multi_hop/qrels.tsv", "a_0_0\td1\t1\na_0_0 d2 1\n", r"qrels.tsv: line 2: found 'a_0_0 d2 1' .*with tabs"),
        ("corpus.jsonl", '{"id": "d0", "text": "x"}\n{"id": "d0", "text": "y"}', r"line 2: _id: found 'd0' again"),
        (
            "multi_hop/queries.jsonl",
            '{"id": "c_1_1", "text": "?"}',
            r"queries.jsonl: line 1: _id: found 'c_1_1', which",
        ),
        ("multi_hop/queries.jsonl", '{"text": "?"}', r"queries.jsonl: line 1: _id: found nothing"),
    ],
)
def test_what_is_malformed_is_named(tmp_path: Path, name: str, text: str, message: str) -> None:
    (lmeb(tmp_path) / name).write_text(text)
    with pytest.raises(DataError, match=message):
        load(tmp_path)


def test_a_folder_without_its_parts_is_refused(tmp_path: Path) -> None:
    (lmeb(tmp_path) / "single_hop" / "qrels.tsv").unlink()
    with pytest.raises(DataError, match=r"single_hop: holds no qrels; expected qrels.tsv, qrels/test.tsv"):
        load(tmp_path)
    (tmp_path / "corpus.jsonl").unlink()
    with pytest.raises(DataError, match=r"holds no corpus.jsonl, and the folder above it neither"):
        load(tmp_path)
    lines(tmp_path / "log.jsonl", [{"scope": "a", "sender": "A", "text": "x"}])
    with pytest.raises(DataError, match="no question has evidence among the turns"):
        folders.write(load(tmp_path / "log.jsonl"), tmp_path / "out")
