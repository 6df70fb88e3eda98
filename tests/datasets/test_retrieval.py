"""Retrieval folders: the layouts of MTEB and LMEB in, and a dataset out and in again."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import memlab
from memlab.datasets import chatlog, folders, load
from memlab.errors import DataError

GOLDEN = Path(__file__).parent / "golden" / "retrieval"


def lmeb(folder: Path) -> Path:
    """LMEB's layout of a dialogue data set: corpus and candidates above, kinds of questions below."""
    return Path(shutil.copytree(GOLDEN / "lmeb", folder, dirs_exist_ok=True))


def test_a_part_of_a_folder_finds_the_rest(tmp_path: Path) -> None:
    assert load(lmeb(tmp_path) / "multi_hop").questions["query_id"].to_list() == ["a_0_0", "b_1_7"]
    assert (
        load(GOLDEN / "mteb" / "queries.jsonl").fingerprint() == load(GOLDEN / "mteb").fingerprint()
    )


def test_a_dataset_comes_back_as_it_was(tmp_path: Path) -> None:
    asked = {
        "question": "Which?",
        "scope": "my cat",
        "evidence": ["s0001/1"],
        "answer": "cat",
        "rubric": ["cat"],
    }
    log = [
        {
            "scope": "my cat",
            "sender": "Ann",
            "text": "Look!",
            "caption": "a cat",
            "timestamp": "2026-03-01T09:00:00Z",
        },
        {"scope": "my cat", "role": "assistant", "text": "Nice", "session": "two/three"},
        {"scope": "b", "sender": "Bea", "text": "ta\tb\nnew"},
        {"scope": "quiet", "sender": "Cy", "text": "nothing is asked of me"},
        asked,
        {
            "question": "Tab?",
            "scope": "b",
            "evidence": ["s0001/1"],
            "timestamp": "2026-03-02T09:00:00Z",
        },
        {"question": "Gone?", "scope": "b", "abstention": True},
    ]
    data = chatlog.dataset(log, "log")
    again = load(folders.write(data, tmp_path / "out"))
    assert_frame_equal(again.turns, data.turns)
    assert_frame_equal(
        again.questions,
        data.questions.filter(pl.col("evidence").list.len() > 0),
        check_row_order=False,
    )
    assert again.scopes == data.scopes
    with pytest.raises(DataError, match="no question has evidence among the turns"):
        folders.write(chatlog.dataset(log[:1], "log"), tmp_path / "none")


def test_what_is_written_is_what_lmeb_and_mteb_read(tmp_path: Path) -> None:
    folder = folders.write(memlab.sample(turns=1000), tmp_path / "out")
    bare, named = ((folder / name).read_text() for name in ("qrels.tsv", "qrels/test.tsv"))
    assert named == f"query-id\tcorpus-id\tscore\n{bare}"
    corpus, queries = (pl.read_ndjson(folder / name) for name in ("corpus.jsonl", "queries.jsonl"))
    scenes = dict(
        pl.read_ndjson(folder / "candidates.jsonl")
        .select("scene_id", "candidate_doc_ids")
        .iter_rows()
    )
    judged = [row.split("\t") for row in bare.splitlines()]
    assert {query for query, _, _ in judged} == {*queries["id"]}
    assert {doc for _, doc, _ in judged} <= {*corpus.filter(pl.col("text") != "")["id"]}
    scene = {
        query: query if query in scenes else "_".join(query.split("_")[:2])
        for query in queries["id"]
    }
    assert all(doc in scenes[scene[query]] for query, doc, _ in judged)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "multi_hop/qrels.tsv",
            "a_0_0\td1\t1\na_0_0 d2 1\n",
            r"qrels.tsv: line 2: found 'a_0_0 d2 1' .*with tabs",
        ),
        (
            "corpus.jsonl",
            '{"id": "d0", "text": "x"}\n{"id": "d0", "text": "y"}',
            r"line 2: _id: found 'd0' again",
        ),
        (
            "multi_hop/queries.jsonl",
            '{"id": "c_1_1", "text": "?"}',
            r"line 1: _id: found 'c_1_1', which",
        ),
        ("multi_hop/queries.jsonl", '{"text": "?"}', r"queries.jsonl: line 1: _id: found nothing"),
        (
            "multi_hop/queries.jsonl",
            "[1, 2]",
            r"queries.jsonl: line 1: found a list of 2, expected an object",
        ),
        (
            "single_hop/qrels.tsv",
            None,
            r"single_hop: holds no qrels; expected qrels.tsv, qrels/test.tsv",
        ),
        ("corpus.jsonl", None, r"holds no corpus.jsonl, and the folder above it neither"),
    ],
)
def test_what_is_malformed_or_absent_is_named(
    tmp_path: Path, name: str, text: str | None, message: str
) -> None:
    file = lmeb(tmp_path) / name
    file.write_text(text) if text else file.unlink()
    with pytest.raises(DataError, match=message):
        load(tmp_path)
