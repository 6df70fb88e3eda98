"""Scopes or questions: every way to a number prints the same interval for the same data, and says over what it is."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import memlab
from memlab import cli
from memlab.errors import DataError
from memlab.evaluate import compare_reports, cutoff_curve, evaluate, results_table, verdicts
from memlab.evaluate.confidence_intervals import wilson_interval, wilson_interval_over_scopes
from memlab.evaluate.printed_tables import to_markdown
from memlab.experiments import Experiment, follow_up_forms_table, sweep
from memlab.records import Dataset

UPDATES = Path(__file__).parents[2] / "data" / "facts" / "updates.jsonl"
"""Sixty questions to six people."""
PIPELINES = ("bm25", "bm25(b=0)")


@pytest.fixture(scope="module")
def data() -> Dataset:
    return memlab.load(UPDATES)


@pytest.fixture(scope="module")
def done(data: Dataset) -> Experiment:
    return memlab.run(PIPELINES, data, encoder=None, levels=["turn"])


def test_a_report_says_its_unit_and_can_be_asked_for_the_other(
    data: Dataset, done: Experiment
) -> None:
    report = done.reports[0]
    row = report.summary(measures="recall_all@10").row(0, named=True)
    assert (row["level"], row["unit"], row["units"], row["n"]) == (0.95, "scope", 6, 60)
    hits, scopes = (
        report.per_query["recall_all@10"].to_numpy(),
        report.per_query["scope"].to_numpy(),
    )
    low, high = wilson_interval_over_scopes(hits[:, None], scopes)
    assert (row["low"], row["high"]) == (low.item(), high.item())
    asked = report.summary(measures="recall_all@10", unit="question").row(0, named=True)
    assert (asked["unit"], asked["units"], asked["method"]) == ("question", 60, "Wilson")
    assert (asked["low"], asked["high"]) == tuple(map(float, wilson_interval(hits.sum(), 60)))
    by_question = evaluate(done.runs[0], data, unit="question")
    assert by_question.summary()["unit"].unique().to_list() == ["question"]
    with pytest.raises(DataError, match="expected 'auto', 'question' or 'scope'"):
        evaluate(done.runs[0], data, unit="word")
    # Of one person questions are all there is.
    assert report.summary("scope")["unit"].unique().to_list() == ["question"]
    kinds = report.summary("question_type", measures="recall_all@10")
    assert set(kinds["unit"]) == {"question", "scope"}
    assert "[level in the row]" in to_markdown(kinds)
    assert cutoff_curve([report])["unit"].unique().to_list() == ["scope"]


def test_tests_and_the_bold_of_a_table_use_the_unit_of_the_interval(done: Experiment) -> None:
    reports = done.reports
    row = compare_reports(reports, measure="mrr").row(1, named=True)
    gains = reports[1].per_query["mrr"] - reports[0].per_query["mrr"]
    by_scope = (
        reports[0].per_query.select("scope", gain=gains).group_by("scope").agg(pl.sum("gain"))
    )
    assert (row["unit"], row["units"]) == ("scope", by_scope.height)
    assert row["p"] >= 2**-5
    assert compare_reports(reports, measure="mrr", unit="question")["p"][1] < 2**-5
    assert done.compare("mrr", unit="question")["unit"].unique().to_list() == ["question"]
    assert results_table(reports, measures="mrr").best == {"mrr": PIPELINES[1]}
    printed = str(verdicts(compare_reports(reports, measure="recall_all@10")))
    assert "difference [95 %, 6 scopes]" in printed
    assert '6 scopes: no p below .031; unit="question"' in printed


def test_where_no_system_can_be_bold_it_is_said(data: Dataset, done: Experiment) -> None:
    three = memlab.run([*PIPELINES, "bm25(b=1)"], data, encoder=None, levels=["turn"])
    note = "6 scopes: no p below .031, so none of 3 systems can be bold"
    assert note in str(three)
    assert note not in str(done)
    asked = memlab.run(
        [*PIPELINES, "bm25(b=1)"], data, encoder=None, levels=["turn"], unit="question"
    )
    assert note not in str(asked)


@pytest.mark.slow
def test_evaluate_answer_compare_and_the_command_line_print_one_interval(
    data: Dataset, done: Experiment, tmp_path: Path
) -> None:
    first = done.reports[0].summary(measures="recall_all@10").row(0, named=True)
    for unit in ("auto", "question"):
        compared = memlab.compare([*PIPELINES], data, encoder=None, unit=unit)
        row = compared.systems.row(0, named=True)
        stated = done.reports[0].summary(measures="recall_all@10", unit=unit).row(0, named=True)
        for name in ("low", "high", "level", "unit", "units"):
            assert row[f"recall_all@10_{name}"] == stated[name]
        tested = compared.tests.filter(measure="recall_all@10").row(0, named=True)
        own = compare_reports(done.reports, measure="recall_all@10", unit=unit).row(1, named=True)
        assert [tested[name] for name in ("low", "high", "p", "unit")] == [
            own[name] for name in ("low", "high", "p", "unit")
        ]
    answered = memlab.answer_questions("bm25", data, encoder=None, bounds=[])
    row = answered.table.row(0, named=True)
    held = answered.per_query.drop_nulls("holds")
    low, high = wilson_interval_over_scopes(
        held["holds"].cast(pl.Float64).to_numpy()[:, None], held["scope"].to_numpy()
    )
    assert (row["low"], row["high"], row["units"]) == (low.item(), high.item(), 6)
    assert "holds [95 %, 6 scopes]" in str(answered)
    with pytest.raises(DataError, match="expected 'auto'"):
        memlab.compare("bm25", data, encoder=None, unit="word")
    command = ["evaluate", str(UPDATES), "--pipeline", "bm25", "--pipeline", "bm25(b=0)"]
    command += ["--encoder", "hashing", "--store", str(tmp_path / "store")]
    for unit, shown in (("auto", "[95 %, 6 scopes]"), ("question", "[95 %, questions]")):
        out = tmp_path / unit
        ran = CliRunner().invoke(cli.app, [*command, "--unit", unit, "--out", str(out)])
        assert ran.exit_code == 0, ran.output
        assert shown in (out / "report.md").read_text(encoding="utf-8")
        kept = json.loads((out / "report.json").read_text(encoding="utf-8"))
        kept = kept["reports"][0]["summary"]["all"]
        row = next(row for row in kept if row["measure"] == "recall_all@10")
        assert (row["level"], row["unit"]) == (0.95, "scope" if unit == "auto" else unit)
        if unit == "auto":
            assert (row["low"], row["high"]) == (first["low"], first["high"])


def test_follow_ups_and_sweeps_say_their_unit(data: Dataset, done: Experiment) -> None:
    rng = np.random.default_rng(0)
    forms = ["as asked", "standalone"]
    asked = [(10, f"q{i}", f"s{i % 6}", "pronoun", form) for i in range(48) for form in forms]
    frame = pl.DataFrame(asked, schema=["k", "query_id", "scope", "kind", "form"], orient="row")
    table = follow_up_forms_table(frame.with_columns(complete=pl.Series(rng.random(96) < 0.6)))
    assert table.select("unit", "units").unique().rows() == [("scope", 6)]
    bench = memlab.Bench.of(data, encoder=None)
    swept = sweep(
        "bm25(b={b})", [0.0, 0.5, 1.0], done.reports[0], bench, data, measure="recall_all@10"
    )
    assert swept["level"].unique().to_list() == [1 - 0.05 / 3]
    assert swept["p_holm"].null_count() == 0
    assert verdicts([swept, swept])["level"].unique().to_list() == [1 - 0.05 / 6]
