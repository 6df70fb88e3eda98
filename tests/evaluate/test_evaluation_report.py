"""Reports, comparisons, curves, the files that they leave, and what they refuse."""

from __future__ import annotations

import json
from dataclasses import replace

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from memlab import records
from memlab.errors import DataError
from memlab.evaluate import compare_reports, cutoff_curve, evaluate
from memlab.evaluate.confidence_intervals import recompute_intervals_at_level
from memlab.evaluate.groups_of_questions import MULTI_SESSION, split_questions_by_column
from memlab.evaluate.ranking_measures import DEFAULT_MEASURES, score_queries
from memlab.evaluate.report_files import write_reports
from memlab.evaluate.significance_tests import randomisation_test


def test_per_query_is_score(made, run_on):
    for level in records.LEVELS:
        run = run_on(made, level, seed=0, help_=0.4)
        report = evaluate(run, made, seed=3)
        table = score_queries(
            run, records.qrels(made.questions, level, made.turns), DEFAULT_MEASURES[level]
        )
        assert_frame_equal(report.per_query.select(table.columns), table, check_row_order=False)
        assert report.provenance["fingerprint"] == made.fingerprint()
        assert report.provenance["seed"] == report.seed == 3
    empty = evaluate(replace(run, frame=run.frame.clear()), made)
    assert empty.summary()["mean"].sum() == 0


def test_summary_groups_and_curves(made, run_on, reports):
    report = reports[1]
    whole = report.summary()
    assert whole["measure"].to_list() == [str(m) for m in report.measures]
    assert ((whole["low"] <= whole["mean"]) & (whole["mean"] <= whole["high"])).all()
    assert (whole["mean"] <= whole["ceiling"] + 1e-12).all()
    by_n = report.summary("evidence_sessions", measures="recall_all@10")
    assert by_n["group"].to_list() == ["1", "2", "3", "4+", "≥ 2"]
    sizes = dict(zip(by_n["group"], by_n["n"], strict=True))
    assert (
        sizes["≥ 2"]
        == sizes["2"] + sizes["3"] + sizes["4+"]
        == report.per_query.height - sizes["1"]
    )
    weighted = by_n.head(4).select((pl.col("mean") * pl.col("n")).sum() / pl.col("n").sum()).item()
    assert weighted == pytest.approx(report.per_query["recall_all@10"].mean())
    for by in ("question_type", "form", "scope"):
        assert report.summary(by, measures="mrr")["n"].sum() == report.per_query.height
    measures = [f"recall_all@{k}" for k in (1, 3, 10)]
    deep = evaluate(run_on(made, "turn", seed=1, help_=0.6, name="strong"), made, measures=measures)
    points = cutoff_curve([deep], by="evidence_sessions", group=MULTI_SESSION)
    rows = deep.summary("evidence_sessions").filter(group=MULTI_SESSION)
    assert points["k"].to_list() == [1, 3, 10]
    assert points.drop("system", "k").equals(
        rows.select("mean", "low", "high", "level", "unit", "units", "ceiling", "chance", "n")
    )


def test_compare_reports(reports):
    table = compare_reports(reports, measure="recall_all@5")
    assert table["system"].to_list() == [report.name for report in reports]
    tested = ("difference", "low", "high", "level", "method", "p", "p_holm", "win", "tie", "loss")
    assert table.select(tested).row(0) == (None,) * len(tested)
    base = reports[0].per_query["recall_all@5"].to_numpy()
    for row, report in zip(table[1:].iter_rows(named=True), reports[1:], strict=True):
        mine = report.per_query["recall_all@5"].to_numpy()
        assert row["mean"] == pytest.approx(mine.mean())
        assert row["difference"] == pytest.approx((mine - base).mean())
        assert row["low"] <= row["difference"] <= row["high"]
        assert (row["win"], row["loss"]) == ((mine > base).sum(), (mine < base).sum())
        assert row["win"] + row["tie"] + row["loss"] == row["n"] == len(mine)
        assert row["p_holm"] >= row["p"] == randomisation_test(mine - base)
    other = compare_reports(reports, measure="recall_all@5", baseline="best")
    assert other.filter(system="random")["difference"].item() == pytest.approx(
        -table["difference"][2]
    )
    steps = compare_reports(reports, measure="recall_all@5", stepwise=True)
    # Of two tests the intervals are wider than of the one alone.
    alone = recompute_intervals_at_level(
        compare_reports(reports[1:], measure="recall_all@5"), 1 - 0.05 / 2
    )
    same = ("difference", "low", "high", "level", "p", "win", "tie", "loss")
    assert steps.select(same).row(2) == alone.select(same).row(1)
    for wrong in (
        {"measure": ["mrr", "recall@10"]},
        {"measure": "mrr", "stepwise": True, "baseline": "best"},
    ):
        with pytest.raises(DataError, match="one measure"):
            compare_reports(reports, **wrong)
    where = pl.col("n_evidence_sessions") >= 2
    part = compare_reports(
        reports, measure="recall@10", where="n_evidence_sessions >= 2", unit="scope"
    )
    assert compare_reports(reports, measure="recall@10", where=where, unit="scope").equals(part)
    first, mine = (report.per_query.filter(where) for report in (reports[0], reports[2]))
    assert (part["n"] == first.height).all()
    gains = (
        first.select("scope", gain=mine["recall@10"] - first["recall@10"])
        .group_by("scope")
        .agg(pl.sum("gain"))
    )
    assert part["p"][2] == pytest.approx(randomisation_test(gains["gain"].to_numpy()))


def test_refusals(made, run_on, reports):
    run = run_on(made, "turn", seed=0)
    turns = evaluate(run, made)
    fewer = replace(reports[1], per_query=reports[1].per_query.head(5))
    elsewhere = replace(run, frame=run.frame.with_columns(query_id="x" + pl.col("query_id")))
    strange = replace(
        run, frame=run.frame.sort("doc_id").with_columns(doc_id="x" + pl.col("doc_id"))
    )
    for call, fault in (
        (lambda: reports[0].summary(measures="recall@3"), "no recall@3; it has recall_any@5"),
        (lambda: reports[0].summary("colour"), "'colour'"),
        (lambda: cutoff_curve(reports, name="f1"), "no f1@k"),
        (lambda: evaluate(elsewhere, made), "questions that 'sample' does not hold"),
        (
            lambda: evaluate(strange, made),
            r"does not hold, such as 'xnadia/1.1', .*; its ids look like",
        ),
        (lambda: evaluate([run], made), "takes one run"),
        (lambda: compare_reports([reports[0], reports[0]], measure="mrr"), "own name"),
        (
            lambda: compare_reports(reports, measure="mrr", baseline="bm25"),
            "no report is called 'bm25'",
        ),
        (
            lambda: compare_reports(reports, measure="mrr", unit="word"),
            "expected 'auto', 'question' or 'scope'",
        ),
        (lambda: compare_reports([reports[0], turns], measure="mrr"), "one level"),
        (lambda: compare_reports([reports[0], fewer], measure="mrr"), "same questions"),
        (
            lambda: compare_reports(
                reports, measure="mrr", where=pl.col("n_evidence_sessions") > 90
            ),
            "nothing to compare",
        ),
        (lambda: compare_reports(reports, measure="mrr", where="nothing > 2"), "nothing"),
    ):
        with pytest.raises(DataError, match=fault):
            call()


def test_files(tmp_path, made, run_on):
    owen = made.take(["owen"])
    reports = [
        evaluate(run_on(owen, level, seed=1, help_=h, name=n), owen)
        for level in ("turn", "session")
        for n, h in (("dense", 0.1), ("hybrid | mmr(lambda_=0.7)", 0.4))
    ]
    write_reports(reports, tmp_path, provenance={"command": "memlab evaluate made"})
    names = {
        f"{n}.{level}.parquet"
        for n in ("dense", "hybrid-mmr-lambda_-0.7")
        for level in ("turn", "session")
    }
    assert {p.name for p in tmp_path.iterdir()} == names | {
        "report.json",
        "report.md",
        "report.tex",
    }
    assert_frame_equal(pl.read_parquet(tmp_path / "dense.turn.parquet"), reports[0].per_query)
    document = json.loads((tmp_path / "report.json").read_text())
    assert document["provenance"]["command"] == "memlab evaluate made"
    wanted = {"level": "session", "measure": "recall_all@10", "questions": "all"}
    kept = next(c for c in document["comparisons"] if wanted.items() <= c.items())
    assert kept["systems"] == compare_reports(reports[2:], measure="recall_all@10").to_dicts()
    text, latex = (tmp_path / "report.md").read_text(), (tmp_path / "report.tex").read_text()
    assert latex.count(r"\begin{table}") == latex.count(r"\end{table}") == 4
    assert "sessions, all" not in latex, "tables of sessions are in report.md"
    assert text.count("\n|:---|") > 4
    write_reports(reports, tmp_path / "named", provenance={}, baseline="hybrid | mmr(lambda_=0.7)")
    named = json.loads((tmp_path / "named" / "report.json").read_text())["comparisons"]
    assert {each["baseline"] for each in named} == {"hybrid | mmr(lambda_=0.7)"}
    assert named[0]["systems"][1]["difference"] is None
    with pytest.raises(DataError, match="no report is called 'none'"):
        write_reports(reports, tmp_path / "none", provenance={}, baseline="none")


def test_groups_stand_in_a_readable_order_and_keep_the_order_of_questions():
    rows = {
        "query_id": ["a", "b", "c", "d", "e"],
        "form": ["when", "how many", None, "when", "odd"],
        "evidence_sessions": ["2", "1", "4+", "1", "2"],
        "n_evidence_sessions": [2, 1, 4, 1, 2],
        "aggregation": [True, False, False, True, False],
    }
    asked = pl.DataFrame(rows)
    sessions = {
        name: [*part["query_id"]]
        for name, part in split_questions_by_column(asked, "evidence_sessions").items()
    }
    assert sessions == {"1": ["b", "d"], "2": ["a", "e"], "4+": ["c"], "≥ 2": ["a", "c", "e"]}
    assert [*split_questions_by_column(asked, "aggregation")] == ["no", "yes"]
    forms = split_questions_by_column(asked, "form")
    assert [*forms] == ["how many", "when", "None", "odd"]
    assert [*forms["when"]["query_id"]] == ["a", "d"]
    alone = split_questions_by_column(asked.filter(n_evidence_sessions=1), "evidence_sessions")
    assert [*alone] == ["1"]
