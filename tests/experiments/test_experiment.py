"""Many pipelines over one bench: the same as each alone, and one parameter swept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import memlab
from memlab import Bench, Dataset, evaluate, pipeline
from memlab.errors import DataError
from memlab.evaluate import Report
from memlab.experiments import Experiment, sweep
from memlab.experiments.running import measurable_levels

TEXTS = ("bm25", "hybrid | mmr(lambda_=0.7)", "dense | budget(tokens=60)")
MEASURE = "recall_all@10"


@pytest.fixture(scope="module")
def data() -> Dataset:
    return memlab.sample(["owen"], turns=400)


@pytest.fixture(scope="module")
def bench(data: Dataset) -> Bench:
    return Bench.of(data, encoder="hashing", progress=False)


@pytest.fixture(scope="module")
def done(data: Dataset, bench: Bench) -> Experiment:
    return memlab.run(TEXTS, data, bench=bench, seed=4)


def test_each_pipeline_gives_what_it_gives_alone(data: Dataset, bench: Bench, done: Experiment) -> None:
    assert [(run.name, run.level) for run in done.runs] == [(t, level) for t in TEXTS for level in ("turn", "session")]
    for run, report in zip(done.runs, done.reports, strict=True):
        alone = pipeline(run.name).run(bench, level=run.level)
        assert_frame_equal(run.frame, alone.frame)
        assert_frame_equal(report.per_query, evaluate.evaluate(alone, data, seed=4).per_query)
        assert (report.name, report.level, report.seed) == (run.name, run.level, 4)


def test_one_page_of_methods(data: Dataset, done: Experiment, tmp_path: Path) -> None:
    assert done.table().equals(evaluate.results_table(done.at("turn")))
    steps = done.compare(MEASURE, stepwise=True)
    assert steps["difference"].null_count() == 1
    worst = done.worst(3, system=TEXTS[0])
    assert worst.height == 3
    assert worst["recall@10"].is_sorted()
    assert done.worst(1, measure="recall_all@3")["recall_all@3"].item() == 0, "a measure that was not taken"
    why = done.why(worst["query_id"][0], system=TEXTS[1])
    assert not isinstance(why, str)
    assert why.stages["stage"].unique().to_list()
    missed = done.misses(system=TEXTS[0])
    assert missed.equals(evaluate.misses(done.runs[0], data))
    assert done.to_latex().count(r"\begin{table}") > 8
    assert (done.export(tmp_path) / "report.json").exists()
    for call, message in (
        (lambda: done.worst(system="none"), "systems are bm25"),
        (lambda: done.why("none"), "'none'"),
    ):
        with pytest.raises(DataError, match=message):
            call()


def test_measurable_levels(data: Dataset) -> None:
    assert measurable_levels(data) == ("turn", "session")
    none = pl.lit([], pl.List(pl.String()))
    sessions_only = replace(data, questions=data.questions.with_columns(evidence=none))
    assert measurable_levels(sessions_only) == ("session",)
    with pytest.raises(DataError, match="none with evidence"):
        measurable_levels(
            replace(sessions_only, questions=sessions_only.questions.with_columns(evidence_sessions=none))
        )
    with pytest.raises(DataError, match="has 0 questions"):
        measurable_levels(replace(data, questions=data.questions.clear()))


@pytest.fixture(scope="module")
def plain(data: Dataset, bench: Bench) -> Report:
    return memlab.run(["hybrid"], data, bench=bench, levels=["turn"], measures=[MEASURE], seed=4).reports[0]


def test_a_sweep_holds_each_value_against_the_baseline(data: Dataset, bench: Bench, plain: Report) -> None:
    values = [1.0, 0.5, 0.0]
    swept = sweep("hybrid | mmr(lambda_={lambda_})", values, plain, bench, data, measure=MEASURE)
    hard = plain.per_query["n_evidence_sessions"] >= 2
    assert swept["value"].to_list() == values
    assert swept["parameter"].unique().to_list() == ["lambda"]
    assert swept["system"].unique().to_list() == ["mmr"]
    assert swept["baseline"].unique().to_list() == [pytest.approx(plain.per_query.filter(hard)[MEASURE].mean())]
    for value, mean in swept.select("value", "mean").iter_rows():
        alone = pipeline(f"hybrid | mmr(lambda_={value})").run(bench)
        table = evaluate.evaluate(alone, data, measures=[MEASURE]).per_query
        assert mean == pytest.approx(table.filter(table["n_evidence_sessions"] >= 2)[MEASURE].mean())
    assert (swept["mean"] - swept["baseline"] - swept["difference"]).abs().max() < 1e-12
    assert swept["difference"][0] == 0, "λ = 1 is the plain ranking"
    assert ((swept["mean_low"] <= swept["mean"]) & (swept["mean"] <= swept["mean_high"])).all()
    for template in ("hybrid", "hybrid(k={k}) | mmr(lambda_={l})", "hybrid | mmr(lambda_={", "hybrid(k={})"):
        with pytest.raises(DataError, match="template of one parameter"):
            sweep(template, [1], plain, bench, data, measure=MEASURE)
