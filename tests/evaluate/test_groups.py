"""Question forms are read from the text alone; groups count what they say."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from memlab.errors import DataError
from memlab.evaluate import describe_questions


def test_describe_questions(made):
    for level, documents, column in (
        ("turn", made.turns, "evidence"),
        ("session", made.sessions, "evidence_sessions"),
    ):
        table = describe_questions(made, level)
        kept = made.questions.filter(~pl.col("abstention") & (pl.col(column).list.len() > 0))
        assert table["query_id"].to_list() == kept["query_id"].to_list()
        assert table["n_relevant"].to_list() == kept[column].list.len().to_list()
        assert (table["n_docs"] == documents.height // 3).all()
        assert table["n_evidence_sessions"].to_list() == kept["evidence_sessions"].list.len().to_list()
    shown = dict(zip(table["n_evidence_sessions"], table["evidence_sessions"], strict=True))
    assert shown == {1: "1", 2: "2", 3: "3", 4: "4+", 5: "4+"}


def test_nothing_to_group(made):
    with pytest.raises(DataError, match=r"0 questions and none with evidence turns"):
        describe_questions(replace(made, questions=made.questions.clear()), "turn")
    lost = replace(made, sessions=made.sessions.filter(pl.col("scope") != "c1"))
    with pytest.raises(DataError, match=r"'c1/q\d+'.*'c1'.*no sessions"):
        describe_questions(lost, "session")
