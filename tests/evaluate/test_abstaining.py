"""Which questions to leave, by the scores of a ranking."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from memlab.errors import DataError
from memlab.evaluate import abstention, risk_coverage, score_signals
from memlab.evaluate.abstaining import BEST, LEARNED


@given(
    st.integers(1, 30).flatmap(
        lambda n: st.tuples(
            hnp.arrays(float, n, elements=st.integers(0, 5).map(float)), hnp.arrays(bool, n, elements=st.booleans())
        )
    )
)
def test_risk_at_full_coverage_is_the_share_of_errors_and_no_order_beats_the_best(
    case: tuple[np.ndarray, np.ndarray],
) -> None:
    confidence, errors = case
    curve = risk_coverage(confidence, errors)
    assert curve["coverage"][-1] == 1
    assert curve["risk"][-1] == pytest.approx(errors.mean())
    best = risk_coverage(-errors.astype(float), errors)["risk"].mean()
    assert best - 1e-12 <= curve["risk"].mean() <= risk_coverage(errors.astype(float), errors)["risk"].mean() + 1e-12
    assert risk_coverage(np.zeros(len(errors)), errors)["risk"].to_numpy() == pytest.approx(errors.mean())


def questions(n: int = 60) -> pl.DataFrame:
    ids = [f"q{i}" for i in range(n)]
    return pl.DataFrame(
        {"query_id": ids, "scope": [f"u{i % 4}" for i in range(n)], "abstention": [i % 5 == 0 for i in range(n)]}
    )


def scores(asked: pl.DataFrame, *, telling: bool) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    rows = [
        (query, rank, 10.0 - rank + (0 if none and telling else 5) * (rank == 1) + rng.normal(0, 0.1))
        for query, none in asked.select("query_id", "abstention").iter_rows()
        for rank in (1, 2, 3)
    ]
    return pl.DataFrame(rows, schema=["query_id", "rank", "score"], orient="row")


def test_scores_that_tell_are_used_and_others_are_worth_nothing() -> None:
    asked = questions()
    done = abstention(scores(asked, telling=True), asked)
    row = done.table.filter(pl.col("signal") == LEARNED).row(0, named=True)
    assert row["aurc"] == pytest.approx(row["aurc_best"])
    assert (row["errors"], row["refused"], row["lost"], row["risk"]) == (12, 1.0, 0.0, 0.0)
    assert row["low"] <= row["aurc"] <= row["high"]
    dull = abstention(scores(asked, telling=False), asked).table
    assert (dull["aurc"] > 0.1).all()
    assert dull["aurc_chance"].to_list() == [0.2] * 5


def test_a_question_that_got_nothing_is_the_least_sure() -> None:
    asked = questions()
    scored = scores(asked, telling=True).filter(pl.col("query_id") != "q1")
    done = abstention(scored, asked)
    assert done.per_query["top score"][1] == done.per_query["top score"].min()
    assert done.per_query.height == 60


def test_other_errors_than_unanswerable_questions() -> None:
    asked = questions()
    errors = asked.select("query_id", error=pl.col("query_id") == "q1").with_columns(
        error=pl.when(pl.int_range(pl.len()) % 7 == 0).then(True).otherwise("error")
    )
    assert abstention(scores(asked, telling=True), asked, errors=errors).table["errors"][0] == errors["error"].sum()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (pl.lit(False).alias("abstention"), "0 of 60 questions had better not"),
        (pl.lit("u").alias("scope"), "1 scopes"),
    ],
)
def test_what_cannot_be_learned_from_is_named(change: pl.Expr, message: str) -> None:
    asked = questions().with_columns(change)
    with pytest.raises(DataError, match=message):
        abstention(scores(asked, telling=False), asked)


def test_margins() -> None:
    scored = pl.DataFrame({"query_id": ["a"] * 3 + ["b"], "rank": [2, 1, 3, 1], "score": [2.0, 5.0, 1.0, 7.0]})
    rows = score_signals(scored)
    assert rows.sort("query_id").rows() == [("a", 5.0, 3.0, 4.0, 4.0), ("b", 7.0, 0.0, 0.0, 0.0)]


def test_each_curve_lies_in_its_interval_and_the_best_order_has_none() -> None:
    asked = questions()
    done = abstention(scores(asked, telling=True), asked)
    drawn = done.curves.filter(pl.col("signal") == "top score")
    assert drawn["low"][-1] < 0.2 < drawn["high"][-1]  # of all 60 questions a fifth: .2 ± .1
    assert (drawn["low"] <= drawn["risk"]).all()
    assert (drawn["risk"] <= drawn["high"]).all()
    assert done.curves.filter(pl.col("signal") == BEST)["low"].null_count() == 60
