"""What is left of the evidence in shortened texts, on a conversation small enough to count by hand."""

from __future__ import annotations

import polars as pl
import pytest

from memlab.errors import DataError
from memlab.evaluate.kept import kept
from memlab.records import Dataset, Question, Session, Turn, frame

SAID = {
    "a/1": ["I paid 15 dollars for the lamp.", "It was on a Tuesday, I think."],
    "a/2": ["The dentist is Dr. O'Neil-Smith!", "Fine."],
}
ASKED = {
    "cost": ("15 dollars", ["a/1/1"]),
    "five": ("5", ["a/1/1"]),
    "name": ("dr. o neil smith", ["a/2/1", "a/1/2"]),
    "silent": (None, ["a/2/2"]),
    "none": ("Fine.", []),
}


@pytest.fixture(scope="module")
def data() -> Dataset:
    turns = [Turn(f"{s}/{n}", "a", s, n, "user", "user", t) for s, held in SAID.items() for n, t in enumerate(held, 1)]
    sessions = [Session(s, "a", n, None, None, 2, []) for n, s in enumerate(SAID, 1)]
    questions = [
        Question(q, "a", "?", answer, "t", None, pieces, sorted({p[:3] for p in pieces}))
        for q, (answer, pieces) in ASKED.items()
    ]
    return Dataset("small", "chatlog", frame(Turn, turns), frame(Session, sessions), frame(Question, questions))


def texts(rows: list[tuple[str, str, str]]) -> pl.DataFrame:
    table = pl.DataFrame(rows, schema=dict.fromkeys(("query_id", "doc_id", "text"), pl.String), orient="row")
    return table.with_columns(n_tokens=pl.col("text").str.split(" ").list.len())


def test_found_uncut_and_answered(data: Dataset) -> None:
    lamp, dentist = SAID["a/1"][0], SAID["a/2"][0]
    rows = [
        ("cost", "a/1/1", lamp[:20]),
        ("cost", "a/2/2", "Fine."),
        ("five", "a/1/1", lamp),
        ("name", "a/2/1", dentist[:20]),
        ("name", "a/1/2", SAID["a/1"][1]),
        ("none", "a/2/2", "Fine."),
    ]
    got = kept(texts(rows), data)
    assert got.columns == [
        *("query_id", "scope", "n_evidence_sessions", "documents", "sessions", "tokens"),
        *("recall_all", "whole", "answer"),
    ]
    assert got.drop("scope").rows() == [
        ("cost", 1, 2, 2, 6, 1.0, 0.0, 1.0),
        ("five", 1, 1, 1, 7, 1.0, 1.0, None),  # 5 is not said where 15 is
        ("name", 2, 2, 2, 12, 1.0, 0.0, 0.0),
        ("silent", 1, 0, 0, 0, 0.0, 0.0, None),
    ]


def test_every_piece_is_wanted_and_one_answer_will_do(data: Dataset) -> None:
    got = kept(texts([("name", "a/2/1", SAID["a/2"][0])]), data).filter(query_id="name")
    assert got.select("recall_all", "whole", "answer").row(0) == (0.0, 0.0, 1.0)
    elsewhere = kept(texts([("cost", "a/2/2", "15 dollars")]), data).filter(query_id="cost")
    assert elsewhere["answer"].item() == 0.0, "only evidence answers"


def test_nothing_kept(data: Dataset) -> None:
    got = kept(texts([]), data)
    assert got["query_id"].to_list() == ["cost", "five", "name", "silent"]
    assert got.select(pl.col("documents", "sessions", "tokens", "recall_all", "whole").sum()).row(0) == (0,) * 5
    assert got["answer"].to_list() == [0.0, None, 0.0, None]


def test_what_cannot_be_looked_at(data: Dataset) -> None:
    with pytest.raises(DataError, match="'a/1' is no turn of dataset 'small'"):
        kept(texts([("cost", "a/1", "x")]), data)
    unlabelled = Dataset("bare", "chatlog", data.turns, data.sessions)
    with pytest.raises(DataError, match="no question of dataset 'bare' has evidence turns"):
        kept(texts([]), unlabelled)
