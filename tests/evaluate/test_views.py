"""Reports as the frames that charts read, against counts by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest

from memlab.errors import DataError
from memlab.evaluate import MULTI_SESSION, curve, dissect, evaluate, hard_group, independent_hits
from memlab.records import Dataset, Question, Run, Session, Turn, frame, run_from_scores

CUTOFFS = (1, 3, 5, 10)
MEASURES = [f"{name}@{k}" for name in ("recall_all", "recall") for k in CUTOFFS]
DAY = datetime(2026, 1, 1, tzinfo=UTC)


def talk(*evidence: list[str]) -> Dataset:
    """Two sessions of three turns; a question for each list of evidence (``1/2`` is turn 2 of session 1)."""
    sessions = [Session(f"a/session_{s}", "a", s, DAY, DAY, 3, ["me"]) for s in (1, 2)]
    turns = [
        Turn(f"a/session_{s}/{n}", "a", f"a/session_{s}", n, "me", "user", f"<b>{s}.{n}</b>")
        for s in (1, 2)
        for n in (1, 2, 3)
    ]
    questions = []
    for i, short in enumerate(evidence):
        ids = [f"a/session_{e}" for e in short]
        held = list(dict.fromkeys(e.rpartition("/")[0] for e in ids))
        questions.append(Question(f"a/q{i}", "a", "Which?", None, "kind", None, ids, held, abstention=not ids))
    return Dataset("talk", "chatlog", frame(Turn, turns), frame(Session, sessions), frame(Question, questions))


def ranked(**order: list[str]) -> Run:
    """A run that gives each question the turns named, in that order."""
    rows = [(f"a/{q}", f"a/session_{d}", -float(i)) for q, docs in order.items() for i, d in enumerate(docs)]
    queries, docs, scores = (np.array(column) for column in zip(*rows, strict=True))
    return run_from_scores(queries, docs, scores.astype(float), level="turn", k=10)


@pytest.fixture(scope="module")
def reports(made, run_on):
    named = (("weak", 0.2), ("strong", 0.6))
    return [evaluate(run_on(made, "turn", seed=1, help_=h, name=n), made, measures=MEASURES) for n, h in named]


def test_hard_group():
    several = evaluate(ranked(q0=["1/1"], q1=["2/1"]), talk(["1/1", "2/1"], ["1/2"]), measures=["recall_all@1"])
    assert hard_group(several) == ("evidence_sessions", MULTI_SESSION)
    one = evaluate(ranked(q0=["1/1"]), talk(["1/1", "1/2"]), measures=["recall_all@1"])
    assert hard_group(one) == ("all", "all")


@pytest.mark.parametrize("where", [("all", "all"), ("evidence_sessions", MULTI_SESSION), ("question_type", "multi")])
@pytest.mark.parametrize("name", ["recall_all", "recall"])
def test_a_curve_is_the_summary_over_k(reports, where, name):
    points = curve(reports, name=name, by=where[0], group=where[1])
    assert points.select("system", "k").rows() == [(s, k) for s in ("weak", "strong") for k in CUTOFFS]
    for report in reports:
        rows = report.summary(where[0]).filter(group=where[1])
        for row in points.filter(system=report.name).iter_rows(named=True):
            expected = rows.filter(measure=f"{name}@{row['k']}").row(0, named=True)
            assert all(row[c] == expected[c] for c in ("mean", "low", "high", "ceiling", "chance", "n"))
    assert (points.select(pl.col("mean").diff().over("system")).drop_nulls() >= 0).to_series().all()


def test_a_curve_refuses(reports):
    with pytest.raises(DataError, match="'weak' has no mrr@k; evaluate with measures such as mrr@10"):
        curve(reports, name="mrr")
    with pytest.raises(DataError, match="no questions in group 'none' of 'form'"):
        curve(reports, by="form", group="none")
    with pytest.raises(DataError, match="nothing to group by is called 'colour'"):
        curve(reports, by="colour")


def test_independent_hits_by_hand():
    data = talk(["1/1"], ["1/1", "2/1"], ["1/1", "1/2", "2/3"])
    run = ranked(q0=["1/1", "2/2"], q1=["2/1", "1/2", "1/1"], q2=["1/1", "2/3"])
    found = independent_hits(evaluate(run, data, measures=["recall@2", "recall_all@2"]), k=2)
    # Of the six pieces, four are among the first two: 1 + 1 + 2.
    p = 4 / 6
    assert found["n_evidence"].to_list() == ["1", "2", "3"]
    assert found["n"].to_list() == [1, 1, 1]
    assert found["measured"].to_list() == [1.0, 0.0, 0.0]
    assert found["predicted"].to_list() == pytest.approx([p, p**2, p**3])
    lumped = independent_hits(evaluate(run, data, measures=["recall@2", "recall_all@2"]), k=2, most=2)
    assert lumped["n_evidence"].to_list() == ["1", "2+"]
    assert lumped["n"].to_list() == [1, 2]
    assert lumped["predicted"].to_list() == pytest.approx([p, (p**2 + p**3) / 2])


def test_independent_hits_over_many_questions(reports):
    report = reports[1]
    found = independent_hits(report, k=10)
    assert found["n"].sum() == report.per_query.height
    weighted = (found["measured"] * found["n"]).sum() / found["n"].sum()
    assert weighted == pytest.approx(report.per_query["recall_all@10"].mean())
    assert ((found["low"] <= found["measured"]) & (found["measured"] <= found["high"])).all()
    assert found["predicted"].to_list() == sorted(found["predicted"], reverse=True)
    with pytest.raises(DataError, match="lacks recall@7; evaluate with it"):
        independent_hits(report, k=7)


def test_dissect_by_hand():
    data = talk(["1/1", "2/3", "2/2"])
    run = ranked(q0=["1/2", "2/3", "1/3", "1/1"])
    hits, misses = dissect(run, data, "a/q0", k=3)
    assert hits.columns == ["rank", "score", "session", "evidence", "text"]
    assert hits.select("rank", "session", "evidence", "text").rows() == [
        (1, "s1", False, "<b>1.2</b>"),
        (2, "s2", True, "<b>2.3</b>"),
        (3, "s1", False, "<b>1.3</b>"),
    ]
    assert hits["score"].is_sorted(descending=True)
    assert misses.rows() == [("s1", "<b>1.1</b>", 4), ("s2", "<b>2.2</b>", None)]


def test_dissect_where_nothing_was_found_or_asked_for():
    data = talk(["1/1"], [])
    run = ranked(q0=["2/1"])
    hits, misses = dissect(run, data, "a/q0", k=5)
    assert hits["evidence"].to_list() == [False]
    assert misses["rank"].to_list() == [None]
    hits, misses = dissect(run, data, "a/q1")
    assert (hits.height, misses.height) == (0, 0), "an abstention question that the run does not answer"


def test_dissect_refuses():
    data, run = talk(["1/1"]), ranked(q0=["1/1"])
    with pytest.raises(DataError, match="no question 'a/q9' in 'talk'"):
        dissect(run, data, "a/q9")
    with pytest.raises(DataError, match="give a ranking of turns"):
        dissect(replace(run, level="session"), data, "a/q0")
