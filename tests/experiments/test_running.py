"""Many pipelines over many datasets: the same as each alone, resumed after a kill, opened again from the store."""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from talk import excerpt, write

import memlab
from memlab import Bench, Dataset, MemoryStore, datasets, evaluate, pipeline
from memlab.embed import load
from memlab.errors import DataError, PipelineError, StoreError
from memlab.evaluate import system_comparison
from memlab.experiments import Experiment, reopen, run, run_replay, sweep
from memlab.experiments.run_pipelines import CONTROLS, levels_with_evidence_or_raise
from memlab.experiments.run_replay import RANKING_MODULES, code_version

TEXTS = ("bm25", "hybrid | mmr(lambda_=0.7)")
LEVELS = ("turn", "session")
MEASURE = "recall_all@10"


@pytest.fixture(scope="module")
def two() -> list[Dataset]:
    return [replace(excerpt(240, scopes=[scope]), name=scope) for scope in ("nadia", "owen")]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> MemoryStore:
    return MemoryStore.open(tmp_path_factory.mktemp("grid") / "store")


@pytest.fixture(scope="module")
def grid(two: list[Dataset], store: MemoryStore) -> Experiment:
    return run(TEXTS, two, store=store, encoder="hashing:32", name="pair", seed=4)


def assert_same(one: Experiment, other: Experiment) -> None:
    assert one.to_markdown() == other.to_markdown()
    assert one.cells.drop("read", "run_id").equals(other.cells.drop("read", "run_id"))
    assert [d.fingerprint() for d in one.datasets] == [d.fingerprint() for d in other.datasets]
    for ranked, again in zip(one.runs, other.runs, strict=True):
        assert_frame_equal(ranked.frame, again.frame)
    for report, again in zip(one.reports, other.reports, strict=True):
        assert_frame_equal(report.per_query, again.per_query)
        assert (report.name, report.level, report.seed) == (again.name, again.level, again.seed)


@pytest.mark.slow
def test_each_run_is_what_its_pipeline_gives_alone(two: list[Dataset], grid: Experiment) -> None:
    cells = [(data.name, text, level) for data in two for text in TEXTS for level in LEVELS]
    assert grid.cells.select("dataset", "pipeline", "level").rows() == cells
    owen, bench = grid["owen"], Bench.of(two[1], encoder="hashing:32", progress=False)
    for ranked, report in zip(owen.runs, owen.reports, strict=True):
        alone = pipeline(ranked.name).run(bench, level=ranked.level)
        assert_frame_equal(ranked.frame, alone.frame)
        assert_frame_equal(report.per_query, evaluate.evaluate(alone, two[1], seed=4).per_query)
        assert (report.name, report.level, report.seed) == (ranked.name, ranked.level, 4)


def test_one_page_of_methods(two: list[Dataset], grid: Experiment) -> None:
    owen = grid["owen"]
    assert owen.table().equals(evaluate.results_table(owen.at("turn")))
    assert owen.compare(MEASURE, stepwise=True)["difference"].null_count() == 1
    worst = owen.worst(3, system="bm25")
    assert worst["recall@10"].is_sorted()
    assert owen.worst(1, measure="recall_all@3")["recall_all@3"].item() == 0, (
        "a measure that was not taken"
    )
    assert owen.why(worst["query_id"][0], system=TEXTS[1]).stages.height
    assert owen.misses(system="bm25").equals(evaluate.misses(owen.runs[0], two[1]))
    assert worst.columns[-1] == "n_relevant", "as per_query and the filters of questions call it"
    assert owen.to_latex().count(r"\begin{table}") == 4
    assert "all: compared with hybrid" in owen.to_latex(baseline=TEXTS[1])
    for call, message in (
        (lambda: owen.worst(system="none"), "systems are bm25"),
        (lambda: owen.why("none"), "'none'"),
        (lambda: grid.worst(), "choose one of them"),
        (lambda: grid["none"], "no dataset 'none'"),
    ):
        with pytest.raises(DataError, match=message):
            call()


@pytest.mark.slow
def test_what_was_run_is_read_and_opened_again_from_the_store_alone(
    two: list[Dataset],
    store: MemoryStore,
    grid: Experiment,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert not grid.cells["read"].any()
    rows = store.runs.listing().height
    with monkeypatch.context() as patch:
        patch.setattr(Bench, "of", None)  # without a bench nothing is encoded
        again = run(TEXTS, two, store=store, encoder="hashing:32", name="pair", seed=4)
    assert again.cells["read"].all()
    assert store.runs.listing().height == rows
    assert again.cells["run_id"].equals(grid.cells["run_id"])
    assert_same(grid, again)
    for report, read in zip(grid.reports, again.reports, strict=True):
        assert str(report.provenance) == str(read.provenance), (
            "a report does not show that its run was read"
        )
    store.ingest(replace(two[0], turns=two[0].turns.with_columns(text=pl.lit("all is new"))))
    opened = reopen(MemoryStore.open(store.uri, create=False), "pair")
    assert_same(grid, opened)
    assert opened.compare(MEASURE).equals(grid.compare(MEASURE))
    query = grid["nadia"].worst(1)["query_id"][0]
    assert str(opened["nadia"].why(query)) == str(grid["nadia"].why(query))
    one, other = (each.export(tmp_path / name) for name, each in (("one", grid), ("two", opened)))
    files = sorted(path.relative_to(one) for path in one.rglob("*.*"))
    assert {path.parts[0] for path in files} == {"nadia", "owen"}
    assert all((one / file).read_bytes() == (other / file).read_bytes() for file in files)
    with pytest.raises(StoreError, match="it has: pair"):
        reopen(store, "other")


@pytest.mark.slow
def test_a_run_of_something_else_is_not_read(
    two: list[Dataset], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, data = MemoryStore.open(tmp_path / "store"), two[0]

    def read(data: Dataset = data, **changed: Any) -> bool:
        settings: dict[str, Any] = {"encoder": load("hashing:32", header=())} | changed
        return bool(
            run(["dense"], [data], store=store, levels=["turn"], **settings).cells["read"].item()
        )

    asked = data.questions.with_columns(text=pl.col("text") + " Say it.")
    assert [read(), read()] == [False, True]
    assert not read(encoder="hashing:64")
    assert not read(encoder=load("hashing:32", header=("participants",)))
    assert not read(data=replace(data, questions=asked))
    monkeypatch.setattr(run_replay, "code_version", lambda: "memlab 99 (abc)")
    assert not read()


def test_the_code_is_part_of_what_a_run_depends_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    package = tmp_path / "memlab"
    for room in ("retrieve", "explorer"):
        (package / room).mkdir(parents=True)
        (package / room / "a.py").write_text("1")
    (package / "__init__.py").touch()
    monkeypatch.setattr(run_replay.memlab, "__file__", str(package / "__init__.py"))
    names = []
    for room in ("", "explorer", "retrieve"):
        if room:
            (package / room / "a.py").write_text("2")
        names.append(code_version.__wrapped__())
    assert names[0] == names[1], "an edit of the explorer changes no ranking"
    assert names[1] != names[2]
    functions = [
        *map(memlab.stages.__getitem__, memlab.stages),
        *map(memlab.encoders.__getitem__, memlab.encoders),
    ]
    rooms = {
        function.__module__.split(".")[1]
        for function in functions
        if function.__module__.startswith("memlab.")
    }
    assert rooms <= set(RANKING_MODULES), "every stage and every encoder is part of it"


def test_what_is_refused_before_anything_runs(two: list[Dataset], tmp_path: Path) -> None:
    store = MemoryStore.open(tmp_path / "store")
    bench = Bench.of(two[0], encoder=None)
    none = pl.lit([], pl.List(pl.String()))
    cited = replace(two[0], questions=two[0].questions.with_columns(evidence=none))
    bare = replace(cited, questions=cited.questions.with_columns(evidence_sessions=none))
    assert (levels_with_evidence_or_raise(two[0]), levels_with_evidence_or_raise(cited)) == (
        LEVELS,
        ("session",),
    )
    for texts, data, options, message in (
        ([], two, {}, "at least one"),
        (["bm25", " bm25 "], two, {}, "none twice"),
        (["bm25"], [two[0], two[0]], {}, "its own name"),
        (["bm25"], [bench], {}, "each a file or what"),
        (["bm25"], [two[1], bare], {}, "none with evidence"),
        (["bm25"], two[0], {"bench": bench}, "bench= is for one dataset in memory"),
        (["bm25"], two[0], {"seed": "x"}, "seed is 'x'"),
        (["bm25"], None, {}, "each a file or what"),
    ):
        with pytest.raises(DataError, match=message):
            run(texts, data, store=store, encoder=None, **options)  # type: ignore[arg-type]
    with pytest.raises(PipelineError, match="'mrr'"):
        run(["bm25", "bm25 | mrr"], two, store=store, encoder=None)
    assert store.runs.listing().height == store.datasets().height == 0


KILLED = """
import itertools, os, signal, sys
from memlab.experiments import run, run_pipelines
evaluate, number = run_pipelines.evaluate, itertools.count(1)
def measure(*given, **options):
    if next(number) == 5:  # it is ranked, and not saved
        os.kill(os.getpid(), signal.SIGKILL)
    return evaluate(*given, **options)
run_pipelines.evaluate, run_pipelines.run_replay.code_version = measure, lambda: "the same"
about = {"encoder": "hashing:32", "levels": ["turn"], "name": "killed"}
run(["bm25", "dense", "dense | mmr(k=5)"], sys.argv[2:], store=sys.argv[1], **about)
"""


@pytest.mark.nightly
def test_a_killed_grid_goes_on_where_it_stopped(
    two: list[Dataset], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [write(tmp_path / f"{data.name}.jsonl", data) for data in two]
    command = [sys.executable, "-c", KILLED, tmp_path / "killed", *files]
    assert (
        subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode
        == -signal.SIGKILL
    )
    store = MemoryStore.open(tmp_path / "killed")
    assert store.runs.listing().height == 4, "three of the first dataset, one of the second"
    with pytest.raises(StoreError, match="no experiment 'killed'"):
        reopen(store, "killed")
    # Somebody may edit memlab while the test runs; then all would rightly be ranked anew.
    monkeypatch.setattr(run_replay, "code_version", lambda: "the same")
    about: dict[str, Any] = {"encoder": "hashing:32", "levels": ["turn"], "name": "killed"}
    texts = ["bm25", "dense", "dense | mmr(k=5)"]
    done = run(texts, files, store=store, **about)
    assert done.cells["read"].to_list() == [True] * 4 + [False] * 2, (
        "what was done is not done again"
    )
    assert_same(reopen(store, "killed"), run(texts, files, **about))
    assert store.runs.listing().height == 6


def test_one_instead_of_a_list_a_path_instead_of_a_store_and_a_file_instead_of_data(
    tmp_path: Path,
) -> None:
    write(tmp_path / "talk.jsonl", excerpt(100, scopes=["owen"]))
    done = run("bm25", tmp_path / "talk.jsonl", store=tmp_path / "store", encoder=None)
    data = datasets.load(tmp_path / "talk.jsonl")
    assert_same(reopen(tmp_path / "store", done.name), done)
    given = run("bm25", data, bench=Bench.of(data, encoder=None))
    assert given.cells["run_id"].null_count() == given.cells.height, "in memory nothing is saved"
    done = run(None, data, encoder="hashing:32", levels=["turn"])
    assert done.cells["pipeline"].to_list() == [
        *CONTROLS,
        "best (without late)",
        "best | learned (without late)",
    ]
    assert done.compare(baseline="best")["mean"].len() == len(done.runs)
    assert done.misses(system="best").equals(done.misses(system="best (without late)"))


def test_a_sweep_compares_each_value_with_the_baseline(two: list[Dataset]) -> None:
    data, bench = two[1], Bench.of(two[1], encoder="hashing:32", progress=False)
    plain = run(["hybrid"], data, bench=bench, levels=["turn"], measures=[MEASURE], seed=4).reports[
        0
    ]
    swept = sweep("hybrid | mmr(lambda_={lambda_})", [1, 0.5], plain, bench, data, measure=MEASURE)
    several = plain.per_query["n_evidence_sessions"] >= 2
    assert swept.select("value", "parameter", "system").rows() == [
        (1.0, "lambda", "mmr"),
        (0.5, "lambda", "mmr"),
    ]
    assert swept["baseline"].unique().to_list() == [
        pytest.approx(plain.per_query.filter(several)[MEASURE].mean())
    ]
    alone = evaluate.evaluate(
        pipeline("hybrid | mmr(lambda_=0.5)").run(bench), data, measures=[MEASURE]
    ).per_query
    assert swept["mean"][1] == pytest.approx(alone.filter(several)[MEASURE].mean())
    assert swept["difference"][0] == 0, "λ = 1 is the plain ranking"
    for template in ("hybrid", "bm25(b={b}, k1={k1}) | mmr(lambda_={l})", "hybrid | mmr(lambda_={"):
        with pytest.raises(DataError, match="template of one or two parameters"):
            sweep(template, [1], plain, bench, data, measure=MEASURE)


def test_sweeps_of_one_and_two_parameters_concatenate(two: list[Dataset]) -> None:
    data, bench = two[1], Bench.of(two[1], encoder="hashing:32", progress=False)
    plain = run("bm25(b=0.4)", data, bench=bench, levels=["turn"], measures=[MEASURE]).reports[0]
    asked = {"measure": MEASURE, "group": "all questions"}
    both = {"b": [0, 0.4], "k1": [0.9, 1.2]}
    crossed = sweep("bm25(b={b}, k1={k1})", both, plain, bench, data, **asked)
    settings = crossed.select("setting", "setting_2", "value", "value_2").rows()
    assert settings[0] == ("0", "0.9", 0.0, 0.9)
    assert len(settings) == 4
    assert crossed["n"].unique().to_list() == [plain.per_query.height]
    named = sweep("combsum(turn={w})", [(1, 0, 0)], plain, bench, data, measure=MEASURE)
    assert named["setting"].to_list() == ["(1, 0, 0)"]
    joined = pl.concat([crossed, named])
    assert joined["value"].null_count() == joined["parameter_2"].null_count() == 1
    ends = joined.select("mean_low", "mean", "mean_high", "baseline_low", "baseline_high")
    assert ends.min_horizontal().min() >= 0
    assert ends.max_horizontal().max() <= 1
    (kind,) = plain.per_query["question_type"].unique().head(1)
    part = sweep("bm25(b={b})", [1], plain, bench, data, measure=MEASURE, group=kind)
    assert part["n"].item() == plain.per_query.filter(question_type=kind).height
    with pytest.raises(DataError, match="no group of questions is called 'hard'"):
        sweep("bm25(b={b})", [1], plain, bench, data, measure=MEASURE, group="hard")
    for values in ([1], {"b": [1]}, {"b": [1], "k1": []}):
        with pytest.raises(DataError, match="give"):
            sweep("bm25(b={b}, k1={k1})", values, plain, bench, data, measure=MEASURE)


def test_selectors_and_their_settings_are_one_family_of_tests() -> None:
    data = memlab.sample(turns=400)
    bench = memlab.Bench.of(data, encoder="hashing:64")
    about = {"bench": bench, "levels": ["turn"], "measures": ["recall_all@10"]}
    done = memlab.run(["bm25", "bm25 | mmr"], data, **about)
    swept = memlab.experiments.sweep(
        "bm25 | mmr(lambda_={lambda_})", [0.3, 0.5], done.reports[0], bench, data,
        measure="recall_all@10",
    )  # fmt: skip
    tested = system_comparison.judge_selectors_and_settings(
        {"bm25": done.reports}, swept, measure="recall_all@10", swept_base="bm25"
    )
    n_groups = tested["group"].n_unique()
    assert tested["p"].count() == n_groups + 2
    assert set(tested["base"]) == {"bm25"}
    assert tested.drop_nulls("p")["system"].to_list()[-2:] == [
        "mmr(lambda = 0.3)",
        "mmr(lambda = 0.5)",
    ]
    assert tested["selector"].drop_nulls().unique().to_list() == ["mmr"]
    assert tested.drop_nulls("p")["system"][0] == "mmr"


def test_points_are_a_measure_beside_the_price_of_each_pipeline() -> None:
    data = memlab.sample(turns=400)
    done = memlab.run(["bm25", "bm25(b=0)"], data, encoder=None, levels=["turn"])
    points = done.price_points(price=(3.0, 15.0))
    groups = points["system"].unique(maintain_order=True).to_list()
    assert groups[0] == "all questions"
    assert points.height == 2 * len(groups)
    assert points["k"].unique().to_list() == [0.0], "no model was asked"
    means = points.filter(system="all questions")["mean"].to_list()
    assert means == [report.per_query["recall_all@10"].mean() for report in done.reports]
