"""TREC files go out and come back the same, and other tools read them as they were meant."""

from __future__ import annotations

import errno
import itertools
from dataclasses import replace

import ir_measures
import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ir_measures import R, Success, nDCG

from memlab.errors import DataError, ExportError
from memlab.evaluate import read_qrels, read_run, score, write_qrels, write_run
from memlab.records import Qrels, Run, run_from_scores

IDS = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zs", "Zl", "Zp")), min_size=1, max_size=12)
FILES = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)


@FILES
@given(
    rows=st.lists(
        st.tuples(IDS, IDS, st.floats(-(2.0**99), 2.0**99, width=32)),
        min_size=1,
        max_size=25,
        unique_by=lambda row: row[:2],
    ),
    level=st.sampled_from(["turn", "session"]),
)
def test_run_round_trip(tmp_path, rows, level):
    query, doc, values = zip(*rows, strict=True)
    run = run_from_scores(np.array(query, object), np.array(doc, object), np.array(values), level=level, k=99)
    back = read_run(write_run(replace(run, name="hybrid(k=5) | mmr"), tmp_path / "x.trec"), level)
    assert back.frame.equals(run.frame)
    assert (back.level, back.name) == (level, "hybrid(k=5)|mmr")


@FILES
@given(rows=st.lists(st.tuples(IDS, IDS, st.integers(-1, 3)), min_size=1, max_size=25, unique_by=lambda row: row[:2]))
def test_qrels_round_trip(tmp_path, rows):
    table = pl.DataFrame(rows, schema=["query_id", "doc_id", "relevance"], orient="row")
    table = table.with_columns(pl.col("relevance").cast(pl.Int32), subtopic=pl.col("doc_id"))
    held = Qrels(table, "session")
    assert read_qrels(write_qrels(held, tmp_path / "x.qrels"), "session").frame.equals(held.frame)


@pytest.mark.parametrize("seed", range(4))
def test_other_tools_read_the_same(tmp_path, case, seed):
    run, judged = case(seed)
    run_path, qrels_path = write_run(run, tmp_path / "a.trec"), write_qrels(judged, tmp_path / "a.qrels")
    theirs = list(ir_measures.read_trec_run(str(run_path)))
    assert [(d.query_id, d.doc_id) for d in theirs] == run.frame.select("query_id", "doc_id").rows()
    np.testing.assert_array_equal(np.array([d.score for d in theirs], np.float32), run.frame["score"].to_numpy())
    means = ir_measures.calc_aggregate(
        [nDCG @ 10, R @ 10, Success @ 5],
        list(ir_measures.read_trec_qrels(str(qrels_path))),
        ir_measures.read_trec_run(str(run_path)),
    )
    ours = score(read_run(run_path, "turn"), read_qrels(qrels_path, "turn"), ["ndcg@10", "recall@10", "recall_any@5"])
    assert list(ours.drop("query_id").mean().row(0)) == pytest.approx(
        [means[nDCG @ 10], means[R @ 10], means[Success @ 5]], abs=1e-9
    )


def test_ties_are_told_apart_in_rank_order(tmp_path):
    docs = ["b", "a", "z", "c"]
    table = pl.DataFrame({"query_id": "q", "doc_id": docs, "rank": [1, 2, 3, 4], "score": [0.5, 0.5, 0.5 - 1e-12, 0.0]})
    path = write_run(Run(table.with_columns(pl.col("rank").cast(pl.Int32)), "turn"), tmp_path / "x")
    scores = [np.float32(line.split()[4]) for line in path.read_text().splitlines()]
    assert all(a > b for a, b in itertools.pairwise(scores))
    assert read_run(path, "turn").frame["doc_id"].to_list() == docs


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q Q0 d 1 0.5 t\nq Q0 e 2 0.4\n", r"line 2: expected 6 fields \(query_id Q0 doc_id rank score tag\)"),
        ("q Q0 d one 0.5 t\n", "line 1: rank is 'one', expected a whole number"),
        ("\n\nq Q0 d 1 high t\n", "line 3: score is 'high', expected a finite number"),
        ("q Q0 d 1 nan t\n", "line 1: score is 'nan'"),
        ("q Q0 d 1 1 t\nq Q0 d 2 0 t\n", "line 2: doc_id 'd' stands a second time under query 'q'"),
    ],
)
def test_malformed_runs(tmp_path, text, message):
    path = tmp_path / "bad.trec"
    path.write_text(text)
    with pytest.raises(DataError, match=rf"bad\.trec: {message}"):
        read_run(path, "turn")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"q 0 d\n", r"line 1: expected 4 fields"),
        (b"q 0 d 1\nq 0 e 0.5\n", "line 2: relevance is '0.5', expected a whole number"),
        (b"q 0 d 1\nq 0 d 1\n", "line 2: doc_id 'd'"),
        (b"q 0 d 1\nq 0 \xff 1\n", "cannot be read: .*0xff"),
    ],
)
def test_malformed_qrels(tmp_path, text, message):
    path = tmp_path / "bad.qrels"
    path.write_bytes(text)
    with pytest.raises(DataError, match=rf"bad\.qrels: {message}"):
        read_qrels(path, "turn")


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 1e300])
def test_scores_that_a_file_cannot_carry(tmp_path, case, bad):
    run, _ = case(0)
    with pytest.raises(DataError, match="expected a finite number within"):
        write_run(replace(run, frame=run.frame.with_columns(score=pl.lit(bad))), tmp_path / "x")
    assert not list(tmp_path.iterdir())


def test_a_full_disk_leaves_the_old_file(tmp_path, case, monkeypatch):
    run, _ = case(0)
    path = write_run(run, tmp_path / "x.trec")
    before = path.read_bytes()

    def full(self, stream, **_):
        stream.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_csv", full)
    with pytest.raises(ExportError, match=r"x\.trec: cannot be written: No space left on device"):
        write_run(run.top(1), path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["x.trec"]
