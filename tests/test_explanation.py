"""One question's evidence through a pipeline."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from talk import excerpt

import memlab
from memlab import Bench
from memlab.errors import DataError
from memlab.explanation import explain
from memlab.text.text_analyser import snippet


def test_ranks_losses_and_what_cannot_be_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    data = excerpt(200, scopes=("nadia", "owen"))
    bench = Bench.of(data, encoder="hashing")
    cited = data.questions.filter(pl.col("evidence").list.len() > 0)
    runs = {
        text: memlab.pipeline(text).run(bench).frame
        for text in ("bm25", "dense", "hybrid", "hybrid | mmr(k=5)")
    }
    names = {"hybrid | mmr(k=5)": "… | mmr(k=5)"}
    for question in cited.head(6).iter_rows(named=True):
        why = explain(question["query_id"], "hybrid | mmr(k=5)", bench, data, k=5)
        for text, run in runs.items():
            own = run.filter(pl.col("query_id") == question["query_id"])
            rank = dict(own.select("doc_id", "rank").iter_rows())
            shown = why.stages.filter(pl.col("stage") == names.get(text, text))
            assert dict(shown.select("turn_id", "rank").iter_rows()) == {
                t: rank.get(t) for t in question["evidence"]
            }
        texts = why.stages.filter(stage="bm25").select("turn_id", "text", "snippet")
        assert dict(texts.select("turn_id", "text").iter_rows()) == dict(
            why.evidence.select("turn_id", "text").iter_rows()
        )
        for text, short in texts.select("text", "snippet").iter_rows():
            assert short == snippet(text, question["text"], length=90)
        final = set(own.filter(pl.col("rank") <= 5)["doc_id"])
        assert set(why.above["turn_id"]) == final - set(question["evidence"])
        asked = question["text"].lower()
        assert all(word in asked for words in why.above["words"] for word in words.split(", ")), (
            "whole words, no stems"
        )
        found = why.evidence.filter(pl.col("lost").is_null())["turn_id"].to_list()
        assert set(found) == final & set(question["evidence"])

    evidence = set(cited["evidence"].explode())

    def loses(run: Any, bench: Any) -> Any:
        kept = run.frame.filter(~pl.col("doc_id").is_in(evidence))
        ids = kept["query_id"].to_numpy(), kept["doc_id"].to_numpy(), kept["score"].to_numpy()
        return memlab.run_from_scores(*ids, level=run.level, k=50)

    monkeypatch.setitem(memlab.stages, "loses", loses)
    why = explain(cited["query_id"][0], "bm25 | loses", bench, data, k=200)
    assert why.evidence["lost"].drop_nulls().unique().to_list() == ["… | loses"]
    assert why.evidence["rank"].null_count() == why.evidence.height
    assert "| … \\| loses | –" in str(why)
    silent = data.questions.filter(pl.col("evidence").list.len() == 0)["query_id"][0]
    for query, word in (
        ("q", "no question 'q'; the ids look like"),
        (silent, "has no evidence among the turns"),
    ):
        with pytest.raises(DataError, match=word):
            explain(query, "bm25", bench, data)
