"""One question's evidence through a pipeline."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from talk import excerpt

import memlab
from memlab import Bench
from memlab.errors import DataError
from memlab.evaluate import explain
from memlab.records import Dataset


@pytest.fixture(scope="module")
def data() -> Dataset:
    return excerpt(200, scopes=("nadia", "owen"))


@pytest.fixture(scope="module")
def bench(data: Dataset) -> Bench:
    return Bench.of(data, encoder="hashing")


def cited(data: Dataset) -> pl.DataFrame:
    return data.questions.filter(pl.col("evidence").list.len() > 0)


def test_ranks_are_those_of_the_pipelines(data: Dataset, bench: Bench) -> None:
    runs = {text: memlab.pipeline(text).run(bench).frame for text in ("bm25", "dense", "hybrid", "hybrid | mmr(k=5)")}
    names = {"hybrid | mmr(k=5)": "… | mmr(k=5)"}
    for question in cited(data).head(6).iter_rows(named=True):
        why = explain(question["query_id"], "hybrid | mmr(k=5)", bench, data, k=5)
        for text, run in runs.items():
            own = run.filter(pl.col("query_id") == question["query_id"])
            rank = dict(own.select("doc_id", "rank").iter_rows())
            told = why.stages.filter(pl.col("stage") == names.get(text, text))
            assert dict(told.select("turn_id", "rank").iter_rows()) == {t: rank.get(t) for t in question["evidence"]}
        final = runs["hybrid | mmr(k=5)"].filter((pl.col("query_id") == question["query_id"]) & (pl.col("rank") <= 5))
        others = set(final["doc_id"]) - set(question["evidence"])
        assert set(why.above["turn_id"]) == others
        found = why.evidence.filter(pl.col("lost").is_null())["turn_id"].to_list()
        assert set(found) == set(final["doc_id"]) & set(question["evidence"])


def test_the_stage_that_loses_it_is_named(data: Dataset, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    functions = dict(memlab.stages._functions)
    monkeypatch.setattr(memlab.stages, "_functions", functions)
    evidence = set(cited(data)["evidence"].explode())

    def loses(run: Any, bench: Any) -> Any:
        kept = run.frame.filter(~pl.col("doc_id").is_in(evidence))
        ids = kept["query_id"].to_numpy(), kept["doc_id"].to_numpy(), kept["score"].to_numpy()
        return memlab.run_from_scores(*ids, level=run.level, k=50)

    functions["loses"] = loses
    query = cited(data)["query_id"][0]
    why = explain(query, "bm25 | loses", bench, data, k=200)
    assert why.evidence["lost"].drop_nulls().unique().to_list() == ["… | loses"]
    assert why.evidence["rank"].null_count() == why.evidence.height
    assert "| … \\| loses | –" in str(why)


def test_what_cannot_be_explained_is_refused(data: Dataset, bench: Bench) -> None:
    with pytest.raises(DataError, match="no question 'q'; the ids look like"):
        explain("q", "bm25", bench, data)
    silent = data.questions.filter(pl.col("evidence").list.len() == 0)["query_id"]
    with pytest.raises(DataError, match="has no evidence among the turns"):
        explain(silent[0], "bm25", bench, data)
