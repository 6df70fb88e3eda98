"""Rankings from elsewhere, in three layouts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from talk import excerpt

from memlab.errors import DataError
from memlab.memories import read_ranking

DATA = excerpt(120, scopes=("nadia", "owen"))
QUERY = DATA.questions["query_id"][0]
OWN = DATA.turns["turn_id"][0]
OTHER = DATA.turns["turn_id"][-1]


def test_ids_in_json(tmp_path: Path) -> None:
    ids = DATA.turns["turn_id"].head(3).to_list()
    (tmp_path / "theirs.json").write_text(json.dumps({QUERY: [*ids, ids[0]]}))
    done = read_ranking(tmp_path / "theirs.json", DATA)
    assert (done.name, done.rows["source_ids"].to_list()) == ("theirs", [[each] for each in ids])
    assert read_ranking(tmp_path / "theirs.json", DATA, k=2).rows.height == 2
    (tmp_path / "none.json").write_text("{}")
    assert read_ranking(tmp_path / "none.json", DATA).rows.is_empty()


def test_texts_in_json_lines(tmp_path: Path) -> None:
    lines = [
        {"query_id": QUERY, "text": "Ann has a cat."},
        {"query_id": QUERY, "text": "b", "source_ids": [OWN, OTHER]},
    ]
    (tmp_path / "facts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = read_ranking(tmp_path / "facts.jsonl", DATA)
    assert done.rows["source_ids"].to_list() == [None, [OWN]]
    assert done.rows["rank"].to_list() == [1, 2]
    assert "is no turn of this scope" in done.problems["problem"].item()


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.json", "{", "no JSON"),
        ("a.json", "[]", "expected {query_id: .ids of turns"),
        ("a.json", json.dumps({"q1": [OWN]}), "1 of 1 questions are not the dataset's .'q1'.; its ids look like"),
        ("a.json", json.dumps({QUERY: ["D1:1"]}), "1 of 1 turns are not the dataset's .'D1:1'."),
        ("a.json", json.dumps({QUERY: [OTHER]}), "is no turn of .*scopes are never mixed"),
        ("a.jsonl", "7\n", "line 1: expected an object with query_id and text"),
        ("a.jsonl", json.dumps({"query_id": QUERY}), "that is no rows with text"),
        ("a.jsonl", json.dumps({"query_id": "q1", "text": "x"}), "questions are not the dataset's"),
    ],
)
def test_what_cannot_be_used_is_refused(tmp_path: Path, name: str, content: str, reason: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=reason):
        read_ranking(tmp_path / name, DATA)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        read_ranking(tmp_path / "none.json", DATA)
