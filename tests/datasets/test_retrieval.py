"""Retrieval folders: the layouts of MTEB and LMEB in, and a dataset out and in again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import memlab
from memlab.datasets import folders, load
from memlab.errors import DataError

GOLDEN = Path(__file__).parent / "golden" / "retrieval"


def lines(path: Path, records: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def lmeb(folder: Path) -> Path:
    """LMEB's layout of a dialogue data set: corpus and candidates above, kinds of questions below."""
    return Path(shutil.copytree(GOLDEN / "lmeb", folder, dirs_exist_ok=True))


def test_one_kind_alone_finds_the_corpus_above(tmp_path: Path) -> None:
    data = load(lmeb(tmp_path) / "multi_hop")
    assert data.questions["query_id"].to_list() == ["a_0_0", "b_1_7"]


def test_the_questions_alone_stand_for_their_folder() -> None:
    assert load(GOLDEN / "mteb" / "queries.jsonl").fingerprint() == load(GOLDEN / "mteb").fingerprint()


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
