"""Each step of a ladder against the one before it."""

from __future__ import annotations

import polars as pl
import pytest

from memlab.errors import DataError
from memlab.evaluate import Report, climb, compare, evaluate, holm

MEASURE = "recall_all@5"


@pytest.fixture(scope="module")
def reports(made, run_on) -> list[Report]:
    named = (("first", 0.0), ("second", 0.4), ("third", 0.3), ("fourth", 0.9))
    return [evaluate(run_on(made, "turn", seed=1, help_=h, name=n), made, measures=[MEASURE]) for n, h in named]


def test_a_step_is_the_comparison_with_the_one_before(reports: list[Report]) -> None:
    table = climb(reports, measure=MEASURE)
    same = ("difference", "low", "high", "p", "win", "tie", "loss")
    for step in range(1, len(reports)):
        pair = compare(reports[step - 1 : step + 1], measure=MEASURE)
        assert table.select(same).row(step) == pair.select(same).row(1)
    p_holm = holm(table["p"][1:].to_numpy())
    assert table["p_holm"][1:].to_list() == p_holm.tolist()


def test_the_first_step_has_no_test_but_an_interval(reports: list[Report]) -> None:
    first = climb(reports, measure=MEASURE).row(0, named=True)
    nothing = {"difference", "low", "high", "p", "p_holm", "win", "tie", "loss"}
    assert {name for name, value in first.items() if value is None} == nothing
    assert first["mean_low"] < first["mean"] < first["mean_high"]


def test_means_are_those_of_the_summary(reports: list[Report]) -> None:
    where = pl.col("n_evidence_sessions") >= 2
    table = climb(reports, measure=MEASURE, where=where)
    for row, report in zip(table.iter_rows(named=True), reports, strict=True):
        kept = report.summary("evidence_sessions").filter(pl.col("group") == "≥ 2").row(0, named=True)
        assert (row["n"], row["mean"]) == (kept["n"], pytest.approx(kept["mean"]))
        assert (row["mean_low"], row["mean_high"]) == (pytest.approx(kept["low"]), pytest.approx(kept["high"]))


def test_gains_add_up_to_the_whole_climb(reports: list[Report]) -> None:
    table = climb(reports, measure=MEASURE)
    whole = compare([reports[0], reports[-1]], measure=MEASURE)["difference"][1]
    assert table["difference"].sum() == pytest.approx(whole)


def test_one_step_and_one_unit(made, run_on, reports: list[Report]) -> None:
    [row] = climb(reports[:1], measure=MEASURE).rows(named=True)
    assert row["p_holm"] is None
    one = made.take(made.scopes[:1])
    alone = [evaluate(run_on(one, "turn", seed=s, name=str(s)), one, measures=[MEASURE]) for s in (1, 2)]
    table = climb(alone, measure=MEASURE, unit="scope")
    assert table["mean_low"].null_count() == 2
    assert not table["mean"].null_count()


def test_what_cannot_be_compared_is_refused(reports: list[Report]) -> None:
    with pytest.raises(DataError, match="two reports are called 'first'"):
        climb([reports[0], reports[0]], measure=MEASURE)
    with pytest.raises(DataError, match="no question passes"):
        climb(reports, measure=MEASURE, where=pl.lit(False))
    with pytest.raises(DataError, match=r"has no recall_all@7"):
        climb(reports, measure="recall_all@7")
