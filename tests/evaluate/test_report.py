"""Reports, comparisons and what they refuse."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from talk import excerpt

import memlab
from memlab import records
from memlab.errors import DataError
from memlab.evaluate import DEFAULT_MEASURES, compare, evaluate, randomisation_test, read_run, score, write_run


@pytest.fixture(scope="module")
def reports(made, run_on):
    helped = (("random", 0.0), ("better | x", 0.3), ("best", 0.6))
    return [evaluate(run_on(made, "session", seed=1, help_=h, name=n), made) for n, h in helped]


def test_per_query_is_score(made, run_on):
    for level in records.LEVELS:
        run = run_on(made, level, seed=0, help_=0.4)
        report = evaluate(run, made, seed=3)
        table = score(run, records.qrels(made.questions, level), DEFAULT_MEASURES[level])
        assert report.per_query.select(table.columns).equals(table)
        assert (report.per_query["n_retrieved"] == report.per_query["n_docs"]).all()
        assert report.provenance["fingerprint"] == made.fingerprint()
        assert report.provenance["seed"] == report.seed == 3


def test_summary_groups(reports):
    report = reports[1]
    whole = report.summary()
    assert whole["measure"].to_list() == [str(m) for m in report.measures]
    assert (whole["n"] == report.per_query.height).all()
    assert (whole["low"] <= whole["mean"]).all()
    assert (whole["mean"] <= whole["high"]).all()
    assert (whole["mean"] <= whole["ceiling"] + 1e-12).all()
    means = report.per_query.select(whole["measure"].to_list()).mean().row(0)
    assert whole["mean"].to_list() == pytest.approx(means)
    by_n = report.summary("evidence_sessions", measures="recall_all@10")
    assert by_n["group"].to_list() == ["1", "2", "3", "4+", "≥ 2"]
    sizes = dict(zip(by_n["group"], by_n["n"], strict=True))
    assert sizes["≥ 2"] == sizes["2"] + sizes["3"] + sizes["4+"] == report.per_query.height - sizes["1"]
    weighted = by_n.head(4).select((pl.col("mean") * pl.col("n")).sum() / pl.col("n").sum()).item()
    assert weighted == pytest.approx(report.per_query["recall_all@10"].mean())
    for by in ("question_type", "form", "aggregation", "scope"):
        grouped = report.summary(by, measures="mrr")
        assert grouped["n"].sum() == report.per_query.height


def test_random_run_is_at_chance(made, run_on):
    runs = [evaluate(run_on(made, "session", seed=s), made) for s in range(20)]
    table = pl.concat([r.summary() for r in runs]).group_by("measure").agg(pl.col("mean", "chance").mean())
    for row in table.iter_rows(named=True):
        assert row["mean"] == pytest.approx(row["chance"], abs=0.03), row["measure"]


def test_refusals(made, run_on, reports):
    with pytest.raises(DataError, match=r"no recall@3; it has recall_any@5"):
        reports[0].summary(measures="recall@3")
    with pytest.raises(DataError, match="'colour'"):
        reports[0].summary("colour")
    run = run_on(made, "turn", seed=0)
    elsewhere = replace(run, frame=run.frame.with_columns(query_id="x" + pl.col("query_id")))
    with pytest.raises(DataError, match=r"none of which is a question of dataset 'made'"):
        evaluate(elsewhere, made)
    empty = evaluate(replace(run, frame=run.frame.clear()), made)
    assert empty.summary()["mean"].sum() == 0


def test_compare(reports):
    table = compare(reports, measure="recall_all@5")
    assert table["system"].to_list() == ["random", "better | x", "best"]
    assert table.row(0)[5:] == (None,) * 8
    for row, report in zip(table.iter_rows(named=True), reports, strict=True):
        mine, base = report.per_query["recall_all@5"].to_numpy(), reports[0].per_query["recall_all@5"].to_numpy()
        assert row["mean"] == pytest.approx(mine.mean())
        if report is reports[0]:
            continue
        assert row["difference"] == pytest.approx((mine - base).mean())
        assert row["low"] <= row["difference"] <= row["high"]
        assert (row["win"], row["loss"]) == ((mine > base).sum(), (mine < base).sum())
        assert row["win"] + row["tie"] + row["loss"] == row["n"] == len(mine)
        assert row["p"] == randomisation_test(mine - base)
        assert row["p_holm"] >= row["p"]
    other = compare(reports, measure="recall_all@5", baseline="best")
    assert other.filter(system="random")["difference"].item() == pytest.approx(-table["difference"][2])
    assert other.filter(system="random")["win"].item() == table["loss"][2]


def test_compare_part_and_by_scope(reports):
    where = pl.col("n_evidence_sessions") >= 2
    table = compare(reports, measure="recall@10", where=where, unit="scope")
    held = reports[0].per_query.filter(where)
    assert (table["n"] == held.height).all()
    mine = reports[2].per_query.filter(where)
    gains = held.select("scope", gain=mine["recall@10"] - held["recall@10"]).group_by("scope").agg(pl.col("gain").sum())
    assert table["p"][2] == pytest.approx(randomisation_test(gains["gain"].to_numpy()))
    assert table["p"][2] >= 0.25


def test_compare_refuses(made, run_on, reports):
    with pytest.raises(DataError, match="two reports are called 'random'"):
        compare([reports[0], reports[0]], measure="mrr")
    with pytest.raises(DataError, match="no report is called 'bm25'"):
        compare(reports, measure="mrr", baseline="bm25")
    with pytest.raises(DataError, match="at least one"):
        compare([], measure="mrr")
    turns = evaluate(run_on(made, "turn", seed=0, name="turns"), made)
    with pytest.raises(DataError, match="level by level"):
        compare([reports[0], turns], measure="mrr")
    fewer = replace(reports[1], per_query=reports[1].per_query.head(5))
    with pytest.raises(DataError, match="same questions"):
        compare([reports[0], fewer], measure="mrr")
    with pytest.raises(DataError, match="nothing to compare"):
        compare(reports, measure="mrr", where=pl.col("n_evidence_sessions") > 90)


def test_ids_that_the_dataset_does_not_hold_are_refused_with_examples(tmp_path: Path) -> None:
    data = excerpt(120, scopes=["owen"])
    run = memlab.pipeline("bm25").run(memlab.Bench.of(data, encoder=None))
    write_run(run, tmp_path / "run.trec")
    assert evaluate(read_run(tmp_path / "run.trec", "turn"), data).per_query.height
    other = (tmp_path / "run.trec").read_text().replace("Q0 owen/", "Q0 doc-")
    (tmp_path / "run.trec").write_text(other)
    with pytest.raises(DataError, match=r"does not hold, such as 'doc-.*', 'doc-.*', 'doc-.*'; its turn ids look like"):
        evaluate(read_run(tmp_path / "run.trec", "turn"), data)


def test_where_names_what_it_cannot_read(reports) -> None:
    for where, message in (("nothing > 2", 'unable to find column "nothing"'), ("a b c", "keeps no questions")):
        with pytest.raises(DataError, match=message):
            compare(reports, measure="mrr", where=where)


def test_a_step_is_the_comparison_with_the_one_before(reports) -> None:
    table = compare(reports, measure="recall_all@5", stepwise=True)
    same = ("difference", "low", "high", "p", "win", "tie", "loss")
    for step in range(1, len(reports)):
        pair = compare(reports[step - 1 : step + 1], measure="recall_all@5")
        assert table.select(same).row(step) == pair.select(same).row(1)
    whole = compare([reports[0], reports[-1]], measure="recall_all@5")["difference"][1]
    assert table["difference"].sum() == pytest.approx(whole)
    kept = reports[1].summary(measures="recall_all@5").row(0, named=True)
    assert table.row(1, named=True)["mean_low"] == pytest.approx(kept["low"])
