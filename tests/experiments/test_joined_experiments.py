"""Two experiments on the same data, joined: equal runs are one, other data is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from talk import excerpt

import memlab
from memlab import DataError, Dataset, Experiment

ENCODER = "hashing:32"


def make(pipelines: Any, data: Any, **options: Any) -> Experiment:
    return memlab.run(pipelines, data, **({"encoder": ENCODER, "levels": "turn"} | options))


@pytest.fixture(scope="module")
def talk() -> Dataset:
    return excerpt(200)


@pytest.fixture(scope="module")
def first(talk: Dataset) -> Experiment:
    return make(["bm25", "dense"], talk, name="mine")


@pytest.mark.slow
def test_the_baseline_of_one_is_tested_against_a_pipeline_of_the_other(
    talk: Dataset, first: Experiment, tmp_path: Path
) -> None:
    make(["bm25", "hybrid | mmr"], talk, name="theirs", store=tmp_path / "theirs")
    joined = first.join(memlab.reopen(tmp_path / "theirs", "theirs"))
    together = make(["bm25", "dense", "hybrid | mmr"], talk)
    assert joined.name == "mine + theirs"
    assert joined.cells["pipeline"].to_list() == ["bm25", "dense", "hybrid | mmr"]
    assert_frame_equal(joined.compare(), together.compare())
    assert str(joined) == str(together)
    assert joined.to_latex() == together.to_latex()
    assert joined.conclusions() == together.conclusions()
    assert str(joined.why(system="hybrid | mmr")) == str(together.why(system="hybrid | mmr"))
    joined.export(tmp_path / "out")
    for name in ("bm25", "dense", "hybrid-mmr"):
        assert (tmp_path / "out" / f"{name}.turn.trec").is_file()


def test_one_run_under_two_names_is_one_and_said(
    talk: Dataset, first: Experiment, caplog: pytest.LogCaptureFixture
) -> None:
    joined = first.join(make({"lexical": "bm25", "MMR": "hybrid | mmr"}, talk))
    assert joined.cells["pipeline"].to_list() == ["bm25", "dense", "MMR"]
    assert "'bm25' and 'lexical' are one run of turns; it is called 'bm25'" in caplog.text


def test_different_encoders_are_said(
    talk: Dataset, first: Experiment, caplog: pytest.LogCaptureFixture
) -> None:
    first.join(make("hybrid", talk))
    assert "encoders" not in caplog.text
    first.join(make("hybrid", talk, encoder="hashing:16"))
    (said,) = [line for line in caplog.messages if "encoders" in line]
    assert "bm25, dense: hashing words-bigrams-trigrams (2), 32-d" in said
    assert "hybrid: hashing words-bigrams-trigrams (2), 16-d" in said


def test_all_are_measured_by_what_either_took(
    talk: Dataset, first: Experiment, caplog: pytest.LogCaptureFixture
) -> None:
    other = make("hybrid", talk, measures=["recall_all@7"], seed=5)
    joined = first.join(other)
    assert {str(m) for m in joined.reports[0].measures} > {"recall_all@7", "mrr"}
    assert len({report.measures for report in joined.reports}) == 1
    assert {report.seed for report in joined.reports} == {0}
    assert "'hybrid' was measured with seed 5" in caplog.text
    assert joined.compare("recall_all@7").height == 3
    mean = first.at("turn")[0].summary(measures="mrr")
    assert_frame_equal(joined.at("turn")[0].summary(measures="mrr"), mean)


def test_the_same_content_may_have_another_name_and_several_datasets_are_matched(
    talk: Dataset, first: Experiment
) -> None:
    renamed = make("hybrid", replace(talk, name="copy"))
    assert first.join(renamed).cells["dataset"].unique().to_list() == [talk.name]
    two = [replace(talk.take([scope]), name=scope) for scope in talk.scopes[:2]]
    both = make("bm25", two).join(make("dense", two[::-1]))
    cells = [(data.name, system) for data in two for system in ("bm25", "dense")]
    assert both.cells.select("dataset", "pipeline").rows() == cells
    assert both.compare().height == 4
    with pytest.raises(DataError, match=f"only one has '{two[1].name}'|'{two[1].name}' and"):
        make("bm25", two).join(make("dense", two[0]))


def test_other_data_is_refused_with_what_differs(talk: Dataset, first: Experiment) -> None:
    worded = pl.when(pl.int_range(pl.len()) == 3).then(pl.lit("else")).otherwise("text")
    for other, reason in (
        (talk.take(talk.scopes[:2]), "turns; .* sessions; .* questions; run both on one file"),
        (replace(talk, turns=talk.turns.with_columns(text=worded)), "turns differ in text"),
        (replace(talk, questions=talk.questions.sort("text")), "questions stand in another order"),
        (
            replace(talk, questions=talk.questions.with_columns(pl.col("query_id") + "x")),
            "questions have another query_id",
        ),
    ):
        with pytest.raises(DataError, match=reason):
            first.join(make("bm25", other))


def test_different_runs_of_one_name_are_refused_until_one_is_named(
    talk: Dataset, first: Experiment
) -> None:
    with pytest.raises(DataError, match=r"'dense', and they differ: encoder hashing.*64"):
        first.join(make("dense", talk, encoder="hashing:64"))
    named = first.join(make({"dense, 64": "dense"}, talk, encoder="hashing:64"))
    assert named.compare(baseline="dense")["system"].to_list() == ["bm25", "dense", "dense, 64"]
    assert str(named.why(system="dense")) == str(first.why(system="dense"))
    with pytest.raises(DataError, match="'dense, 64' was ranked with another encoder"):
        named.why(system="dense, 64")
    comparison = memlab.compare("bm25", talk, encoder=None)
    with pytest.raises(DataError, match="Experiment and Comparison"):
        first.join(comparison)
    with pytest.raises(DataError, match="only a comparison is joined"):
        comparison.join(first)
    with pytest.raises(DataError, match="Experiment and int"):
        first.join(7)  # type: ignore[arg-type]


@pytest.mark.slow
def test_comparisons_of_memories_are_joined(talk: Dataset) -> None:
    def latest(turns: pl.DataFrame, query: str, k: int) -> pl.Series:
        return turns["text"].tail(k)

    options: dict[str, Any] = {"encoder": None}
    ours = memlab.compare({"bm25": "bm25", "best": "best"}, talk, baseline="best", **options)
    theirs = memlab.compare({"latest": latest, "bm25": "bm25"}, talk, **options)
    joined = ours.join(theirs)
    assert joined.systems["system"].to_list() == ["bm25", *ours.systems["system"][1:], "latest"]
    again = memlab.compare(
        {"bm25": "bm25", "best": "best", "latest": latest}, talk, baseline="best", **options
    )
    assert_frame_equal(joined.tests, again.tests)
    assert_frame_equal(joined.per_query, again.per_query)
    assert "latest" in joined.to_latex()
    assert joined.lost(system="latest", to="bm25").height
    with pytest.raises(DataError, match="k is 50 and 5"):
        ours.join(memlab.compare({"latest": latest}, talk, k=5, **options))
    with pytest.raises(DataError, match="did not return the same"):
        ours.join(memlab.compare({"bm25": latest}, talk, **options))
    with pytest.raises(DataError, match="of different data"):
        ours.join(memlab.compare({"latest": latest}, talk.take(talk.scopes[:1]), **options))


def test_conclusions_name_the_system_that_they_compare_with(talk: Dataset) -> None:
    options = {"encoder": None, "store": None}
    done = memlab.run(["bm25", "bm25(b=0)"], talk, levels=["turn"], **options)
    compared = memlab.compare({"plain": "bm25", "long": "bm25(b=0)"}, talk, **options)
    for finished, first, second in ((done, "bm25", "bm25(b=0)"), (compared, "plain", "long")):
        assert f"than `{first}`" in str(finished.conclusions())
        other = str(finished.conclusions(baseline=second))
        assert f"than `{second}`" in other
        assert f"than `{first}`" not in other
        with pytest.raises(DataError, match="nobody"):
            finished.conclusions(baseline="nobody")
