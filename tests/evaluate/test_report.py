"""Reports, comparisons, the files that they leave, and what they refuse."""

from __future__ import annotations

import errno
import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from talk import excerpt

import memlab
from memlab import records
from memlab.errors import DataError, ExportError
from memlab.evaluate import compare, evaluate, read_run
from memlab.evaluate.measures import DEFAULT_MEASURES, score
from memlab.evaluate.publish import file_names, write_reports
from memlab.evaluate.significance import randomisation_test
from memlab.evaluate.trec import write_run


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
    empty = evaluate(replace(run, frame=run.frame.clear()), made)
    assert empty.summary()["mean"].sum() == 0


def test_summary_groups(reports):
    report = reports[1]
    whole = report.summary()
    assert whole["measure"].to_list() == [str(m) for m in report.measures]
    assert ((whole["low"] <= whole["mean"]) & (whole["mean"] <= whole["high"])).all()
    assert (whole["mean"] <= whole["ceiling"] + 1e-12).all()
    assert whole["mean"].to_list() == pytest.approx(report.per_query.select(whole["measure"].to_list()).mean().row(0))
    by_n = report.summary("evidence_sessions", measures="recall_all@10")
    assert by_n["group"].to_list() == ["1", "2", "3", "4+", "≥ 2"]
    sizes = dict(zip(by_n["group"], by_n["n"], strict=True))
    assert sizes["≥ 2"] == sizes["2"] + sizes["3"] + sizes["4+"] == report.per_query.height - sizes["1"]
    weighted = by_n.head(4).select((pl.col("mean") * pl.col("n")).sum() / pl.col("n").sum()).item()
    assert weighted == pytest.approx(report.per_query["recall_all@10"].mean())
    for by in ("question_type", "form", "aggregation", "scope"):
        assert report.summary(by, measures="mrr")["n"].sum() == report.per_query.height


def test_random_run_is_at_chance(made, run_on):
    runs = [evaluate(run_on(made, "session", seed=s), made) for s in range(20)]
    table = pl.concat([r.summary() for r in runs]).group_by("measure").agg(pl.col("mean", "chance").mean())
    for row in table.iter_rows(named=True):
        assert row["mean"] == pytest.approx(row["chance"], abs=0.03), row["measure"]


def test_compare(reports):
    table = compare(reports, measure="recall_all@5")
    assert table["system"].to_list() == ["random", "better | x", "best"]
    assert table.row(0)[5:] == (None,) * 8
    base = reports[0].per_query["recall_all@5"].to_numpy()
    for row, report in zip(table[1:].iter_rows(named=True), reports[1:], strict=True):
        mine = report.per_query["recall_all@5"].to_numpy()
        assert row["mean"] == pytest.approx(mine.mean())
        assert row["difference"] == pytest.approx((mine - base).mean())
        assert row["low"] <= row["difference"] <= row["high"]
        assert (row["win"], row["loss"]) == ((mine > base).sum(), (mine < base).sum())
        assert row["win"] + row["tie"] + row["loss"] == row["n"] == len(mine)
        assert row["p_holm"] >= row["p"] == randomisation_test(mine - base)
    other = compare(reports, measure="recall_all@5", baseline="best")
    assert other.filter(system="random")["difference"].item() == pytest.approx(-table["difference"][2])


def test_compare_part_and_by_scope(reports):
    where = pl.col("n_evidence_sessions") >= 2
    table = compare(reports, measure="recall@10", where=where, unit="scope")
    assert compare(reports, measure="recall@10", where="n_evidence_sessions >= 2", unit="scope").equals(table)
    held, mine = (report.per_query.filter(where) for report in (reports[0], reports[2]))
    assert (table["n"] == held.height).all()
    gains = held.select("scope", gain=mine["recall@10"] - held["recall@10"]).group_by("scope").agg(pl.col("gain").sum())
    assert table["p"][2] == pytest.approx(randomisation_test(gains["gain"].to_numpy()))


def test_a_step_is_the_comparison_with_the_one_before(reports) -> None:
    table = compare(reports, measure="recall_all@5", stepwise=True)
    same = ("difference", "low", "high", "p", "win", "tie", "loss")
    for step in range(1, len(reports)):
        pair = compare(reports[step - 1 : step + 1], measure="recall_all@5")
        assert table.select(same).row(step) == pair.select(same).row(1)


def test_refusals(made, run_on, reports):
    run = run_on(made, "turn", seed=0)
    turns = evaluate(run, made)
    fewer = replace(reports[1], per_query=reports[1].per_query.head(5))
    elsewhere = replace(run, frame=run.frame.with_columns(query_id="x" + pl.col("query_id")))
    for call, fault in (
        (lambda: reports[0].summary(measures="recall@3"), "no recall@3; it has recall_any@5"),
        (lambda: reports[0].summary("colour"), "'colour'"),
        (lambda: evaluate(elsewhere, made), "questions that 'made' does not hold"),
        (lambda: evaluate([run], made), "takes one run"),
        (lambda: compare([reports[0], reports[0]], measure="mrr"), "own name"),
        (lambda: compare(reports, measure="mrr", baseline="bm25"), "no report is called 'bm25'"),
        (lambda: compare([], measure="mrr"), "at least one"),
        (lambda: compare([reports[0], turns], measure="mrr"), "one level"),
        (lambda: compare([reports[0], fewer], measure="mrr"), "same questions"),
        (lambda: compare(reports, measure="mrr", where=pl.col("n_evidence_sessions") > 90), "nothing to compare"),
        (lambda: compare(reports, measure="mrr", where="nothing > 2"), "nothing"),
        (lambda: compare(reports, measure="mrr", where="a b c"), "no predicate"),
    ):
        with pytest.raises(DataError, match=fault):
            call()


def test_ids_that_the_dataset_does_not_hold_are_refused_with_examples(tmp_path: Path) -> None:
    data = excerpt(120, scopes=["owen"])
    run = memlab.pipeline("bm25").run(memlab.Bench.of(data, encoder=None))
    write_run(run, tmp_path / "run.trec")
    assert evaluate(read_run(tmp_path / "run.trec", "turn"), data).per_query.height
    (tmp_path / "run.trec").write_text((tmp_path / "run.trec").read_text().replace("Q0 owen/", "Q0 doc-"))
    with pytest.raises(DataError, match=r"does not hold, such as 'doc-.*', 'doc-.*', 'doc-.*'; its ids look like"):
        evaluate(read_run(tmp_path / "run.trec", "turn"), data)


def test_files(tmp_path, made, run_on, monkeypatch):
    reports = [
        evaluate(run_on(made, level, seed=1, help_=h, name=n), made)
        for level in ("turn", "session")
        for n, h in (("dense", 0.1), ("hybrid | mmr(lambda_=0.7)", 0.4))
    ]
    write_reports(reports, tmp_path, provenance={"command": "memlab evaluate made"})
    names = {f"{n}.{level}.parquet" for n in ("dense", "hybrid-mmr-lambda_-0.7") for level in ("turn", "session")}
    assert {p.name for p in tmp_path.iterdir()} == names | {"report.json", "report.md", "report.tex"}
    assert_frame_equal(pl.read_parquet(tmp_path / "dense.turn.parquet"), reports[0].per_query)
    document = json.loads((tmp_path / "report.json").read_text())
    assert document["provenance"]["command"] == "memlab evaluate made"
    assert [r["level"] for r in document["reports"]] == ["turn", "turn", "session", "session"]
    wanted = {"level": "session", "measure": "recall_all@10", "questions": "all"}
    kept = next(c for c in document["comparisons"] if wanted.items() <= c.items())
    assert kept["systems"] == compare(reports[2:], measure="recall_all@10").to_dicts()
    text, latex = (tmp_path / "report.md").read_text(), (tmp_path / "report.tex").read_text()
    for part in ("by form", "≥ 2 (n = ", "| ceiling |", "| chance |", "compared with dense on recall_all@10"):
        assert part in text, part
    assert latex.count(r"\begin{table}") == latex.count(r"\end{table}") == text.count("\n|:---|")
    with pytest.raises(DataError, match="own name"):
        write_reports([reports[0], reports[0]], tmp_path / "none", provenance={})

    def full(self, *_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_parquet", full)
    with pytest.raises(ExportError, match=r"dense\.turn\.parquet: cannot be written: No space left"):
        write_reports(reports, tmp_path / "none", provenance={})
    assert not list((tmp_path / "none").glob("*"))


def test_file_names():
    names = ["hybrid | mmr", "hybrid(mmr)", "HYBRID mmr", "…", "/", "../x", "a" * 300]
    given = file_names(names)
    assert list(given) == names
    assert len(set(given.values())) == len(names)
    assert all("/" not in name and not name.startswith(".") and 0 < len(name) <= 90 for name in given.values())
    assert file_names(["dense", "dense"]) == {"dense": "dense"}
