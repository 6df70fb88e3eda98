"""Memories, pipelines and rankings in one table."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from talk import excerpt, write

import memlab
from memlab import compare
from memlab.errors import DataError, PipelineError
from memlab.evaluate.significance_tests import wilson_interval
from memlab.records import Dataset, Run


@pytest.fixture(scope="module")
def data() -> Dataset:
    return excerpt(200, scopes=("nadia", "owen"))


def latest(turns: pl.DataFrame, query: str, k: int) -> pl.Series:
    return turns["text"].tail(k)


def as_memory(run: Run, data: Dataset) -> Callable[[str, str, int], pl.DataFrame]:
    """Make a memory that names the turns of a ranking."""
    asked = data.questions.select("query_id", "scope", "text")
    rows = run.frame.join(asked, on="query_id", maintain_order="left")

    def search(scope: str, query: str, k: int) -> pl.DataFrame:
        own = rows.filter(scope=scope, text=query).sort("rank").head(k)
        return own.select("score", source_ids=pl.concat_list("doc_id"))

    return search


def test_a_pipeline_measures_as_it_does_alone_and_as_a_memory(data: Dataset) -> None:
    ranked = memlab.pipeline("bm25").run(memlab.Bench.of(data, encoder=None))
    done = compare({"stage": "bm25", "memory": as_memory(ranked, data)}, data, encoder=None)
    report = memlab.run("bm25", data, encoder=None, levels=["turn"]).reports[0]
    measures = ["recall_all@10", "recall_any@10"]
    for name in ("stage", "memory"):
        own = done.per_query.filter(pl.col("system") == name).select("query_id", *measures)
        assert own.sort("query_id").equals(
            report.per_query.select("query_id", *measures).sort("query_id")
        )
    assert done.tests["difference"].abs().max() == 0
    assert done.systems["named"].to_list() == [1.0, 1.0]
    assert done.systems["ingest s"].null_count() == 1


def test_it_is_an_experiment_of_the_turns_behind_the_texts(data: Dataset) -> None:
    asked = data.questions.with_columns(
        text=pl.lit("Where is <img src=x onerror=alert(1)>?"), answer=pl.lit("<b>")
    )
    data = replace(data, questions=asked)
    done = compare({"mine": "bm25", "latest": latest}, data, encoder=None)
    report = memlab.run("bm25", data, encoder=None, levels=["turn"]).reports[0]
    assert done.reports[0].per_query["recall_all@10"].equals(report.per_query["recall_all@10"])
    own = done.compare("recall_all@10").row(1, named=True)
    stated = done.tests.row(by_predicate=pl.col("measure") == "recall_all@10", named=True)
    for name in ("n", "mean", "difference", "low", "high", "level", "unit", "units", "p"):
        assert own[name] == stated[name]
    row = done.systems.row(0, named=True)
    low, high = wilson_interval(round(row["recall_all@10"] * row["n"]), row["n"])
    assert (row["recall_all@10_low"], row["recall_all@10_high"]) == (float(low), float(high))
    assert (row["recall_all@10_level"], row["recall_all@10_unit"]) == (0.95, "question")
    assert done.misses(system="mine")["rank"].drop_nulls().min() > 10
    query = done.worst(1, system="latest")["query_id"][0]
    for system, word in (("latest", "**Missed**"), ("mine", "after each stage")):
        shown = str(done.why(query, system=system))
        assert word in shown
        assert not re.search("<(img|b)", shown), "a question with markup is text"
    assert "the first 3**" in str(done.why(query, system="latest", k=3))
    with pytest.raises(DataError, match="no question with evidence"):
        done.why("none", system="latest")


def test_scopes_that_fail_count_as_not_answered_and_everything_is_too_much(data: Dataset) -> None:
    first = data.turns["text"][0]

    def broken(turns: pl.DataFrame, query: str, k: int) -> list[dict[str, Any]]:
        if turns["text"][0] == first:
            raise RuntimeError("no luck")
        return [{"text": "\n".join(turns["text"]), "source_ids": turns["id"].to_list()}]

    done = compare(["bm25", broken], data, encoder=None)
    row = done.systems.row(1, named=True)
    assert (row["failed scopes"], row["problems"], row["n"]) == (1, 2, done.systems["n"][0])
    few, lost = done.problems["problem"]
    assert few == "broken: gave at most 1 row of 50"
    assert lost.endswith("and the two searches before failed too")
    assert row["recall_all@1000 tokens"] == 0
    assert row["status"] == "1 of 2 scopes failed"
    assert done.tables()["Found"]["system"].to_list() == ["bm25", "broken (1 of 2 scopes failed)"]
    assert done.without_result() == []
    own = done.per_query.filter(
        (pl.col("system") == "broken") & (pl.col("scope") == data.scopes[0])
    )
    assert own["recall_any@10"].sum() == 0


def test_files_join_and_are_written(data: Dataset, tmp_path: Path) -> None:
    run = memlab.run("bm25", data, encoder=None, levels=["turn"]).runs[0]
    memlab.evaluate.trec_files.write_run(run, tmp_path / "theirs.trec")
    ids = {
        q: rows["doc_id"].to_list()
        for (q,), rows in run.frame.group_by("query_id", maintain_order=True)
    }
    (tmp_path / "ids.json").write_text(json.dumps(ids))
    files = [tmp_path / "theirs.trec", tmp_path / "ids.json"]
    done = compare([latest], data, runs=files, baseline="theirs", encoder=None)
    assert done.systems["system"].to_list() == ["latest", "theirs", "ids"]
    assert done.systems["recall_all@10"][1] == done.systems["recall_all@10"][2]
    assert set(done.tests["system"]) == {"latest", "ids"}
    place = done.export(tmp_path / "out")
    content = json.loads((place / "systems.json").read_text())
    assert content["schema_version"] == 1
    assert [row["system"] for row in content["systems"]] == ["latest", "theirs", "ids"]
    assert content["about"]["systems"]["latest"]["memory"]["function"] == "latest"
    assert pl.read_parquet(place / "per-query.parquet").height == done.per_query.height
    assert "**Against theirs**" in (place / "systems.md").read_text()
    assert (place / "systems.tex").read_text() == done.to_latex()
    assert "Against latest" in done.to_latex(baseline="latest")
    again = done.export(tmp_path / "again", baseline="latest")
    tests = json.loads((again / "systems.json").read_text())["tests"]
    assert {row["system"] for row in tests} == {"theirs", "ids"}
    assert (done.to_markdown(), done[data.name]) == (str(done), done)
    assert str(compare("bm25", data, encoder=None).tests) == ""


def test_what_cannot_be_compared_is_refused(data: Dataset) -> None:
    for systems, options, error, reason in (
        ([], {}, DataError, "at least one"),
        (["bm25", "bm25"], {}, DataError, "its own name"),
        (["bm25"], {"baseline": "best"}, DataError, "no system is called 'best'"),
        (["bm52"], {}, PipelineError, "a memory is written module:name"),
        (["no_module:search"], {}, DataError, "cannot be imported"),
        ([7], {}, DataError, "int has no search"),
        (["bm25"], {"k": "5"}, DataError, "k is '5'"),
        ({"ceiling": "bm25"}, {}, DataError, "ceiling"),
        ({1: "bm25"}, {}, DataError, "a text"),
    ):
        with pytest.raises(error, match=reason):
            compare(systems, data, encoder=None, **options)


@pytest.mark.slow
def test_the_command_compares_and_is_a_gate(
    memlab_cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memlab.figures.export", lambda *_, **__: None)
    write(tmp_path / "talk.jsonl", excerpt(100, scopes=("nadia", "owen")))
    (tmp_path / "mine_cli.py").write_text(
        "def search(turns, query, k):\n    return ['no turn says this']\n"
        "def silent(query):\n    return None\n"
    )
    arguments = (
        "compare",
        "talk.jsonl",
        "--system",
        "mine_cli:search",
        "--encoder",
        "hashing",
        "--out",
        "out",
    )
    done = memlab_cli(*arguments, "--system", "bm25", cwd=tmp_path)
    assert done.code == 0, done.err
    assert "**Against mine_cli:search**" in done.out
    assert {"systems.json", "systems.md"} <= {path.name for path in (tmp_path / "out").iterdir()}
    run = memlab.run("bm25", tmp_path / "talk.jsonl", encoder=None, levels=["turn"]).runs[0]
    memlab.evaluate.trec_files.write_run(run, tmp_path / "release.trec")
    gate = memlab_cli(
        *arguments, "--baseline", "release.trec", "--fail-below", "0.02", cwd=tmp_path
    )
    assert gate.code == 1
    assert "mine_cli:search 0.000" in gate.err
    nothing = memlab_cli(*arguments, "--system", "mine_cli:silent", cwd=tmp_path)
    assert nothing.code == 1
    assert "mine_cli:silent has no result at all" in nothing.err
    assert "mine_cli:silent (no result" in nothing.out
    said = [line for line in nothing.err.splitlines() if "search gave NoneType" in line]
    assert len(said) <= 2, "what each question of a scope does wrong is said once"
    assert re.search(r"search gave NoneType.*, \d+ times$", said[0])
