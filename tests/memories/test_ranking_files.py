"""Rankings from elsewhere, in three layouts, whatever is in them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import memlab
from memlab.errors import DataError
from memlab.memories import read_ranking
from memlab.records import Dataset


def test_ids_in_json_and_texts_in_json_lines(data: Dataset, tmp_path: Path) -> None:
    (tmp_path / "theirs.json").write_text(
        json.dumps({"ann/q0": ["1.2", "ann/1.1", "1.2"], "bo/q0": ["1.1"]})
    )
    done = read_ranking(tmp_path / "theirs.json", data)
    assert (done.name, done.rows["source_ids"].to_list()) == (
        "theirs",
        [["ann/1.2"], ["ann/1.1"], ["bo/1.1"]],
    )
    assert "I started to learn the cello" in done.rows["text"][2]
    assert "again" in done.problems["problem"].item()
    assert read_ranking(tmp_path / "theirs.json", data, k=1).rows.height == 2
    (tmp_path / "scored.json").write_text(json.dumps({"ann/q0": {"1.2": 0.5, "1.1": 0.9}}))
    assert read_ranking(tmp_path / "scored.json", data).rows["score"].to_list() == [0.9, 0.5]
    lines = [
        {"query_id": "ann/q0", "text": "Ann has\u2028 a cat."},
        {"query_id": "ann/q0", "text": "b", "source_ids": ["1.1", "bo/1.1"], "score": 2},
    ]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    (tmp_path / "facts.jsonl").write_text(text, encoding="utf-8")
    done = read_ranking(tmp_path / "facts.jsonl", data)
    assert done.rows.select("source_ids", "score").rows() == [(None, None), (["ann/1.1"], 2.0)]
    assert "no turn of this scope" in done.problems["problem"].item()


def test_what_cannot_be_used_costs_itself(data: Dataset, tmp_path: Path) -> None:
    good = json.dumps({"query_id": "ann/q0", "source_ids": "1.1"})
    bad = [
        "7",
        "{",
        '{"query_id": 5}',
        '{"query_id": "ann/q0"}',
        '{"query_id": "q9", "text": "x"}',
        "[" * 100_000,
    ]
    (tmp_path / "half.jsonl").write_text("\n".join([good, *bad]))
    done = read_ranking(tmp_path / "half.jsonl", data)
    assert (done.rows.height, done.problems.height, done.failed) == (1, len(bad), [])
    ids = {"ann/q0": ["1.1", "D1:1", 5, None], "q9": ["1.1"], "bo/q0": ["ann/1.1"]}
    (tmp_path / "half.json").write_text(json.dumps(ids))
    done = memlab.compare([], data, runs=[tmp_path / "half.json"], encoder=None)
    assert done.returned["turn_ids"].to_list() == [["ann/1.1"]]
    assert done.systems["failed scopes"].item() == 0
    assert "answers 1 of 4 questions" in done.problems["problem"][0]
    with pytest.raises(DataError, match="answers 1 of 4"):
        memlab.compare("bm25", data, runs=[tmp_path / "half.json"], baseline="half", encoder=None)


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("a.json", "{", "expected JSON"),
        ("a.json", '{"ann/q0": 3}', "expected JSON"),
        ("a.json", '{"q1": ["1.1"]}', "'q1'"),
        ("a.json", '{"ann/q0": ["D1:1"]}', "'D1:1'"),
        ("a.json", '{"ann/q0": ["bo/1.1"]}', "no turn of this scope"),
        ("a.jsonl", "7\n", "line 1"),
        ("a.jsonl", '{"query_id": "q1", "text": "x"}', "its questions look like 'ann/q0'"),
        ("none.json", None, "cannot be read"),
    ],
)
def test_of_which_nothing_can_be_used_is_refused(
    data: Dataset, tmp_path: Path, name: str, content: str | None, word: str
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=word):
        read_ranking(tmp_path / name, data)
