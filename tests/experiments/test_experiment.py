"""Many pipelines over one bench: the same as each alone, and one parameter swept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import memlab
from memlab import Bench, Dataset, MemoryStore, evaluate, pipeline
from memlab.errors import DataError, PipelineError
from memlab.evaluate import Report
from memlab.experiments import Experiment, latency, measurable, sweep
from memlab.pipelines import stages

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


def test_pipelines_that_were_read_before_are_taken(data: Dataset, bench: Bench, done: Experiment) -> None:
    again = memlab.run([pipeline(TEXTS[0])], data, bench=bench, levels=["session"], measures=[MEASURE])
    assert [run.level for run in again.runs] == ["session"]
    assert_frame_equal(again.runs[0].frame, done.runs[1].frame)
    assert [str(m) for m in again.reports[0].measures] == [MEASURE]


def test_tables_for_the_levels_there_are(data: Dataset, bench: Bench, done: Experiment) -> None:
    both = done.to_markdown()
    assert both.count("turns, ") == both.count("sessions, ") == 2
    turns = memlab.run(["bm25"], data, bench=bench, levels=["turn"]).to_markdown()
    assert "turns, all questions with evidence (n = " in turns
    assert "sessions, " not in turns


def test_one_page_of_methods(data: Dataset, done: Experiment, tmp_path: Path) -> None:
    assert done.table().equals(evaluate.results_table(done.at("turn")))
    steps = done.compare(MEASURE, stepwise=True)
    assert steps["difference"].null_count() == 1
    worst = done.worst(3, system=TEXTS[0])
    assert worst.height == 3
    assert worst["recall@10"].is_sorted()
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


@pytest.mark.parametrize("chosen", [[], ["bm25", "bm25"], ["bm25(k=5)", " bm25( k = 5 ) "]])
def test_none_or_one_twice(data: Dataset, bench: Bench, chosen: list[str]) -> None:
    with pytest.raises(DataError, match="give at least one, and none twice"):
        memlab.run(chosen, data, bench=bench)


def test_every_pipeline_is_read_before_one_runs(data: Dataset, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    def telling(bench: Bench, *, level: str = "turn") -> None:
        ran.append("bm25")

    monkeypatch.setitem(stages, "bm25", telling)
    with pytest.raises(PipelineError, match="'mrr'"):
        memlab.run(["bm25", "bm25 | mrr"], data, bench=bench)
    assert not ran


def test_another_dataset_than_the_benchs(bench: Bench) -> None:
    other = memlab.sample(["owen"], turns=60)
    renamed = replace(other, questions=other.questions.with_columns(query_id=pl.col("query_id") + "x"))
    with pytest.raises(DataError, match="evaluate it on the dataset that it was made from"):
        memlab.run(["bm25"], renamed, bench=bench)


def test_saved_runs_come_back_and_are_kept_once(data: Dataset, done: Experiment, tmp_path: Path) -> None:
    store = MemoryStore.open(tmp_path / "store")
    ids = [store.runs.save(run) for run in done.runs]
    assert [store.runs.save(run) for run in done.runs] == ids
    assert store.runs.listing().height == len(set(ids)) == len(done.runs)
    for run_id, run in zip(ids, done.runs, strict=True):
        back = store.runs.load(run_id)
        assert_frame_equal(back.frame, run.frame)
        assert (back.name, back.level) == (run.name, run.level)


def test_measurable_levels(data: Dataset) -> None:
    assert measurable(data) == ("turn", "session")
    none = pl.lit([], pl.List(pl.String()))
    sessions_only = replace(data, questions=data.questions.with_columns(evidence=none))
    assert measurable(sessions_only) == ("session",)
    with pytest.raises(DataError, match="none with evidence"):
        measurable(replace(sessions_only, questions=sessions_only.questions.with_columns(evidence_sessions=none)))
    with pytest.raises(DataError, match="has 0 questions"):
        measurable(replace(data, questions=data.questions.clear()))


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


def test_a_sweep_of_several_measures_is_each_of_them_below_the_other(data: Dataset, bench: Bench) -> None:
    both = [MEASURE, "recall_all@20"]
    plain = memlab.run(["hybrid"], data, bench=bench, levels=["turn"], measures=both).reports[0]
    values = [0.9, 0.3]
    swept = sweep("hybrid | mmr(lambda_={lambda_})", values, plain, bench, data, measure=both)
    assert swept["measure"].to_list() == [one for one in both for _ in values]
    alone = [sweep("hybrid | mmr(lambda_={l})", values, plain, bench, data, measure=one) for one in both]
    assert_frame_equal(swept.drop("parameter"), pl.concat(alone).drop("parameter"))
    inside = (swept["low"] <= swept["difference"]) & (swept["difference"] <= swept["high"])
    assert inside.all()


@pytest.mark.parametrize(
    "template", ["hybrid", "hybrid(k={k}) | mmr(lambda_={l})", "hybrid | mmr(lambda_={", "hybrid(k={})"]
)
def test_a_template_names_one_parameter(data: Dataset, bench: Bench, plain: Report, template: str) -> None:
    with pytest.raises(DataError, match=r"parameter|template"):
        sweep(template, [1], plain, bench, data, measure=MEASURE)


def test_latency_asks_one_by_one_and_remembers_nothing(
    data: Dataset, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []
    plain = stages["bm25"]

    def telling(bench: Bench, *, level: str = "turn", k: int = 200) -> object:
        asked.append(bench.queries["query_id"].to_list())
        return plain(bench, level=level, k=k)

    monkeypatch.setitem(stages, "bm25", telling)
    table = latency(["bm25(k=5)", "dense | mmr(k=5)"], bench, queries=4, seed=3)
    assert table["system"].to_list() == ["bm25(k=5)", "dense | mmr(k=5)"]
    assert table["n"].to_list() == [4, 4]
    assert (table.select("batch_ms", "single_ms").min_horizontal() > 0).all()
    assert [len(ids) for ids in asked] == [4, 4, 4, 4, 1, 1, 1, 1], "once to warm up, three times, one by one"
    assert [ids[0] for ids in asked[4:]] == asked[0]
    assert not bench.remembered.keys() & {("bm25(k=5)", "turn")}
    before = list(asked)
    assert latency(["bm25"], bench, queries=10_000)["n"].item() == bench.queries.height
    assert latency(["bm25(k=5)"], bench, queries=4, seed=3).height
    assert asked[-8:] == before
    with pytest.raises(DataError, match="nothing can be timed"):
        latency(["bm25"], bench, queries=0)
