"""Documents that tie stand in an order drawn by lot, not by age, and the report counts such questions."""

from __future__ import annotations

import polars as pl
import pytest
from stand_in import StandIn
from store_data import build

from memlab import Bench, Dataset, pipeline
from memlab.evaluate import evaluate
from memlab.records import Question, frame


@pytest.fixture(scope="module")
def data() -> Dataset:
    """Give 40 messages; the evidence of a question that shares no word with them is the first of a scope."""
    whole = build(n_scopes=20, n_sessions=5, n_turns=8)
    asked = [
        Question(f"{scope}/q", scope, "Zzz?", "1", "other", None, [f"{scope}/session_0/1"], [f"{scope}/session_0"])
        for scope in whole.scopes
    ]
    return Dataset("ties", "chatlog", whole.turns, whole.sessions, frame(Question, asked))


@pytest.mark.parametrize("level", ["turn", "session"])
def test_a_question_without_a_match_finds_the_oldest_as_often_as_chance_does(data: Dataset, level: str) -> None:
    run = pipeline("bm25").run(Bench.of(data, encoder=None), level=level)
    first = run.frame.filter(rank=1)["doc_id"].str.contains("session_0")
    assert 0 < first.sum() < 12
    assert run.frame.equals(pipeline("bm25").run(Bench.of(data, encoder=None), level=level).frame)
    report = evaluate(run, data)
    if level == "turn":
        assert report.summary(measures="recall_all@10")["mean"].item() < 0.6, "a quarter by chance"
        assert report.provenance["ties"] == 20


def test_equal_texts_have_places_of_their_own(data: Dataset) -> None:
    turns = data.turns.with_columns(text=pl.lit("Tea?"))
    same = Dataset("same", "chatlog", turns, data.sessions, data.questions)
    frames = [pipeline(text).run(Bench.of(same, encoder=StandIn())).frame for text in ("dense", "two_stage", "best")]
    for frame_ in frames:
        ranked = frame_.filter(rank=1)["doc_id"].to_list()
        assert len({doc.split("/", 1)[1] for doc in ranked}) > 3
