"""Retrieval folders: the layouts of MTEB and LMEB, and what a document may say besides."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memlab.datasets import load
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


def test_a_document_may_say_more_than_the_layouts_hold(tmp_path: Path) -> None:
    own = {"scope": "my cat", "session": "two", "speaker": "Ann", "role": "user"}
    documents = [
        {
            "_id": "my%20cat/two/1",
            "title": "Ann",
            "text": "Look! (a cat)",
            "caption": "a cat",
            "timestamp": "2026-03-01T09:00:00Z",
            **own,
        },
        {"_id": "d2", "title": "Bea", "text": "ta\tb", "scope": "b", "speaker": "Bea"},
        {"_id": "d3", "title": "Cy", "text": "nothing is asked of me", "scope": "quiet"},
    ]
    asked = {"_id": "my%20cat/q0", "text": "Which?", "scope": "my cat", "answer": "cat"}
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, documents)))
    (tmp_path / "queries.jsonl").write_text(json.dumps(asked))
    (tmp_path / "qrels.tsv").write_text("my%20cat/q0\tmy%20cat/two/1\t1\n")
    data = load(tmp_path)
    assert data.scopes == ["my%20cat", "b", "quiet"]
    columns = ["turn_id", "session_id", "speaker", "role", "text", "caption"]
    assert data.turns.select(columns).rows() == [
        ("my%20cat/two/1", "my%20cat/two", "Ann", "user", "Look!", "a cat"),
        ("b/s1/1", "b/s1", "Bea", "other", "ta\tb", None),
        ("quiet/s1/1", "quiet/s1", "document", "other", "Cy nothing is asked of me", None),
    ]
    assert data.turns["timestamp"][0] == datetime(2026, 3, 1, 9, tzinfo=UTC)
    columns = ["query_id", "scope", "text", "answer", "evidence"]
    assert data.questions.select(columns).rows() == [
        ("my%20cat/q0", "my%20cat", "Which?", "cat", ["my%20cat/two/1"])
    ]


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
