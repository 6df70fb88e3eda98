"""Reports as the frames that charts read, against counts by hand."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from memlab.errors import DataError
from memlab.evaluate import curve, evaluate
from memlab.evaluate.groups import MULTI_SESSION
from memlab.evaluate.views import dissect, independent_hits
from memlab.records import Dataset, Question, Run, Session, Turn, frame, run_from_scores

CUTOFFS = (1, 3, 5, 10)


def talk(*evidence: list[str]) -> Dataset:
    """Two sessions of three turns; a question for each list of evidence (``1/2`` is turn 2 of session 1)."""
    sessions = [Session(f"a/session_{s}", "a", s, None, None, 3, ["me"]) for s in (1, 2)]
    turns = [
        Turn(f"a/session_{s}/{n}", "a", f"a/session_{s}", n, "me", "user", f"<b>{s}.{n}</b>")
        for s in (1, 2)
        for n in (1, 2, 3)
    ]
    questions = []
    for i, short in enumerate(evidence):
        ids = [f"a/session_{e}" for e in short]
        held = list(dict.fromkeys(e.rpartition("/")[0] for e in ids))
        questions.append(Question(f"a/q{i}", "a", "Which?", None, "kind", None, ids, held))
    return Dataset("talk", "chatlog", frame(Turn, turns), frame(Session, sessions), frame(Question, questions))


def ranked(**order: list[str]) -> Run:
    """A run that gives each question the turns named, in that order."""
    rows = [(f"a/{q}", f"a/session_{d}", -float(i)) for q, docs in order.items() for i, d in enumerate(docs)]
    queries, docs, scores = (np.array(column) for column in zip(*rows, strict=True))
    return run_from_scores(queries, docs, scores.astype(float), level="turn", k=10)


@pytest.mark.parametrize("where", [("all", "all"), ("evidence_sessions", MULTI_SESSION)])
def test_a_curve_is_the_summary_over_k(made, run_on, where):
    measures = [f"{name}@{k}" for name in ("recall_all", "recall") for k in CUTOFFS]
    report = evaluate(run_on(made, "turn", seed=1, help_=0.6, name="strong"), made, measures=measures)
    points = curve([report], by=where[0], group=where[1])
    rows = report.summary(where[0], measures=measures[: len(CUTOFFS)]).filter(group=where[1])
    assert points["k"].to_list() == [*CUTOFFS]
    assert points.drop("system", "k").equals(rows.select("mean", "low", "high", "ceiling", "chance", "n"))
    with pytest.raises(DataError, match="no mrr@k"):
        curve([report], name="mrr")


def test_independent_hits_by_hand():
    data = talk(["1/1"], ["1/1", "2/1"], ["1/2", "2/2"], ["1/1", "1/2", "2/3"])
    run = ranked(q0=["1/1", "2/2"], q1=["2/1", "1/1"], q2=["1/1", "1/3"], q3=["1/1", "2/3"])
    report = evaluate(run, data, measures=["recall@2", "recall_all@2"])
    table = independent_hits(report, k=2)
    assert table["n_evidence"].to_list() == ["1", "2", "3", "≥ 2"]
    assert table["n"].to_list() == [1, 2, 1, 3]
    assert table["found"].to_list() == pytest.approx([1, 2 / 4, 2 / 3, 4 / 7])
    assert table["measured"].to_list() == pytest.approx([1, 1 / 2, 0, 1 / 3])
    # Two hits on four items fall on one question of two in 2 of 6 ways; a question alone stays as it is.
    assert table["predicted"].to_list() == pytest.approx([1, 1 / 6, 0, 1 / 9], abs=0.01)
    assert table["p"].to_list() == pytest.approx([None, 1 / 3, 1, 1 / 3], abs=0.02)
    assert independent_hits(report, k=2, most=2)["n_evidence"].to_list() == ["1", "2+", "≥ 2"]


def test_dissect_by_hand():
    run = ranked(q0=["1/2", "2/3", "1/3", "1/1"])
    hits, misses = dissect(run, talk(["1/1", "2/3", "2/2"]), "a/q0", k=3)
    assert hits.select("rank", "session", "evidence", "text").rows() == [
        (1, "s1", False, "<b>1.2</b>"),
        (2, "s2", True, "<b>2.3</b>"),
        (3, "s1", False, "<b>1.3</b>"),
    ]
    assert misses.select(pl.all()).rows() == [("s1", "<b>1.1</b>", 4), ("s2", "<b>2.2</b>", None)]
