"""TREC files go out and come back the same, and other tools read them as they were meant."""

from __future__ import annotations

import errno
from dataclasses import replace

import ir_measures
import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ir_measures import R, Success, nDCG

from memlab.errors import DataError, ExportError
from memlab.evaluate import read_run
from memlab.evaluate.ranking_measures import score_queries
from memlab.evaluate.trec_files import write_qrels, write_run
from memlab.records import run_from_scores

IDS = st.text(
    st.characters(exclude_categories=("Cs", "Cc", "Zs", "Zl", "Zp")), min_size=1, max_size=12
)
FLOATS = st.floats(-(2.0**99), 2.0**99, width=32)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15, deadline=None
)
@given(
    rows=st.lists(
        st.tuples(IDS, IDS, FLOATS), min_size=1, max_size=25, unique_by=lambda row: row[:2]
    )
)
def test_run_round_trip(tmp_path, rows):
    query, doc, values = zip(*rows, strict=True)
    run = run_from_scores(
        np.array(query, object), np.array(doc, object), np.array(values), level="turn", k=99
    )
    back = read_run(write_run(replace(run, name="hybrid(k=5) | mmr"), tmp_path / "x.trec"), "turn")
    assert back.frame.equals(run.frame)
    assert back.name == "hybrid(k=5)|mmr"


def test_other_tools_read_the_same_and_ties_keep_their_order(tmp_path, case):
    run, judged = case(1)
    run = replace(run, frame=run.frame.with_columns(pl.col("score").round(0)))
    run_path, qrels_path = (
        write_run(run, tmp_path / "a.trec"),
        write_qrels(judged, tmp_path / "a.qrels"),
    )
    theirs = list(ir_measures.read_trec_run(str(run_path)))
    assert [(d.query_id, d.doc_id) for d in theirs] == run.frame.select("query_id", "doc_id").rows()
    np.testing.assert_allclose([d.score for d in theirs], run.frame["score"].to_numpy(), atol=1e-4)
    wanted = [nDCG @ 10, R @ 10, Success @ 5]
    means = ir_measures.calc_aggregate(
        wanted, list(ir_measures.read_trec_qrels(str(qrels_path))), theirs
    )
    ours = score_queries(
        read_run(run_path, "turn"), judged, ["ndcg@10", "recall@10", "recall_any@5"]
    ).drop("query_id")
    assert list(ours.mean().row(0)) == pytest.approx([means[each] for each in wanted], abs=1e-9)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (b"q Q0 d 1 0.5 t\nq Q0 e 2 0.4\n", "line 2: .*six fields"),
        (b"q Q0 d one 0.5 t\n", "line 1: .*rank"),
        (b"\n\nq Q0 d 1 nan t\n", "line 3: .*score"),
        (b"q Q0 d 1 1 t\nq Q0 d 2 0 t\n", "line 2: .*once"),
        (b"q Q0 \xff 1 1 t\n", "cannot be read"),
    ],
)
def test_malformed_runs_are_refused_with_file_and_line(tmp_path, text, fault):
    path = tmp_path / "bad.trec"
    path.write_bytes(text)
    with pytest.raises(DataError, match=rf"bad\.trec: {fault}"):
        read_run(path, "turn")


def test_what_a_file_cannot_carry_and_a_full_disk_leave_the_old_file(tmp_path, case, monkeypatch):
    run, _ = case(0)
    path = write_run(run, tmp_path / "x.trec")
    before = path.read_bytes()
    for bad in ({"score": float("nan")}, {"score": 1e300}, {"doc_id": "a b"}, {"query_id": ""}):
        (column,) = (pl.lit(value).alias(name) for name, value in bad.items())
        with pytest.raises(DataError):
            write_run(replace(run, frame=run.frame.with_columns(column)), path)

    def full(self, stream, **_):
        stream.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_csv", full)
    with pytest.raises(ExportError, match="No space left"):
        write_run(run.top(1), path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["x.trec"]
