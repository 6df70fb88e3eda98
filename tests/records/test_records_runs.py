"""Rankings: their laws, and how they show themselves."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memlab.errors import DataError
from memlab.records import RUN_SCHEMA, Qrels, Question, Run, frame, make_strictly_decreasing, qrels, run_from_scores

FINITE = st.floats(allow_nan=False, allow_infinity=False)
AWKWARD = FINITE | st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 1e-45, 1e300, -1e300, 3.5e38, -3.4028234e38])
PAIRS = st.lists(st.tuples(st.sampled_from("abc"), AWKWARD), max_size=40)


def ranked(pairs: Sequence[tuple[str, float]], k: int = 1000) -> Run:
    queries, scores = np.array([q for q, _ in pairs]), np.array([s for _, s in pairs], dtype=np.float64)
    return run_from_scores(queries, np.array([f"d{i}" for i in range(len(pairs))]), scores, level="turn", k=k)


@given(PAIRS, st.integers(1, 50))
@example([("a", -1e300)] * 3, 2)
@example([("a", 1e300), ("a", 1e301)], 2)
@example([("a", 0.0), ("a", -0.0), ("a", 0.0), ("a", 5e-324)], 2)
@example([("a", 0.1), ("b", 0.2), ("a", 0.1 + 1e-12)], 2)
def test_laws_of_a_ranking(pairs: list[tuple[str, float]], k: int) -> None:
    run = ranked(pairs).frame
    assert dict(run.schema) == RUN_SCHEMA
    assert run["query_id"].rle().struct.field("value").to_list() == list(dict.fromkeys(q for q, _ in pairs))
    for (query,), rows in run.group_by("query_id"):
        # The independent ranking: Python's stable sort, best first.
        mine = [(f"d{i}", s) for i, (q, s) in enumerate(pairs) if q == query]
        assert rows["doc_id"].to_list() == [d for d, _ in sorted(mine, key=lambda pair: -pair[1])]
        assert rows["rank"].to_list() == list(range(1, len(mine) + 1))
        held = rows["score"].to_numpy()
        assert np.isfinite(held).all()
        assert (held.astype(np.float32).astype(np.float64) == held).all()
        assert (held.astype(np.float32)[1:] < held.astype(np.float32)[:-1]).all()
    assert ranked(pairs, k).frame.equals(run.filter(pl.col("rank") <= k))
    assert ranked(pairs, k).frame.equals(ranked(pairs).top(k).frame)


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False, allow_subnormal=True), max_size=30))
def test_scores_are_lowered_no_more_than_needed(scores: list[float]) -> None:
    given_scores = np.array(sorted(scores, reverse=True), dtype=np.float64)
    got = make_strictly_decreasing(given_scores, np.zeros(len(scores)))
    previous = np.float32(np.inf)
    for before, after in zip(np.maximum(given_scores, -(2.0**127)).astype(np.float32), got, strict=True):
        previous = min(before, np.nextafter(previous, np.float32(-np.inf)))
        assert np.float32(after) == previous


def test_a_group_is_lowered_as_if_it_stood_alone() -> None:
    each = [np.full(50_000, value) for value in (-3.4e38, 3.4e38, 0.0, -1.0, -(2.0**127), 1e-45)]
    together = make_strictly_decreasing(np.concatenate(each), np.repeat([7, 3, 9, 4, 2, 0], 50_000))
    for scores, lowered in zip(each, np.split(together, 6), strict=True):
        assert (lowered == make_strictly_decreasing(scores, np.zeros(50_000))).all()
        assert (np.diff(lowered.astype(np.float32)) < 0).all()


@pytest.mark.parametrize(
    ("scores", "k", "message"),
    [
        ([1.0, np.nan], 5, "score 1 is not a finite number"),
        ([np.inf, 1.0], 5, "score 0 is not a finite number"),
        (pl.Series([1.0, None]), 5, "score 1 is not"),
        (pl.Series(["x", "y"]), 5, "no numbers"),
        ([1.0], 5, "2 queries, 2 documents, 1 scores"),
        ([1.0, 2.0], 0, "k is 0"),
    ],
)
def test_what_cannot_be_ranked(scores: list[float], k: int, message: str) -> None:
    ids = pl.Series(["q", "q"]), pl.Series(["a", "b"])
    with pytest.raises(DataError, match=message):
        run_from_scores(*ids, scores, level="turn", k=k)  # type: ignore[arg-type]
    assert run_from_scores(*ids, pl.Series([1, 2]), level="turn", k=5).frame["doc_id"].to_list() == ["b", "a"]


def test_qrels_hold_each_evidence_item_once() -> None:
    turns = ["u/s/2", "u/s/1", "u/s/2", "u/t%2F1/9"]
    rows = [
        Question("many", "u", "?", "a", "t", None, turns, ["u/s", "u/t%2F1", "u/s"]),
        Question("gone", "u", "?", None, "t", None, ["u/s/1"], ["u/s"], abstention=True),
        Question("null", "u", "?", None, "t", None, None, None),  # type: ignore[arg-type]
        Question("hole", "u", "?", None, "t", None, [None, "u/s/1"], ["u/s", None]),  # type: ignore[list-item]
    ]
    of_turns = qrels(frame(Question, rows), "turn")
    assert of_turns.frame.columns == ["query_id", "doc_id", "relevance", "subtopic"]
    assert of_turns.frame.rows() == [
        ("many", "u/s/2", 1, "u/s"),
        ("many", "u/s/1", 1, "u/s"),
        ("many", "u/t%2F1/9", 1, "u/t%2F1"),
        ("hole", "u/s/1", 1, "u/s"),
    ]
    sessions = qrels(frame(Question, rows), "session").frame.select("query_id", "doc_id").rows()
    assert sessions == [("many", "u/s"), ("many", "u/t%2F1"), ("hole", "u/s")]
    assert qrels(frame(Question), "turn").frame.schema == of_turns.frame.schema


def test_the_view_marks_the_evidence_and_nothing_in_it_is_markup() -> None:
    ids = [f"<script>d{i}</script>" for i in range(3)]
    query = "<script>q</script>"
    rows = pl.DataFrame([(query, d, i + 1, 1 / (i + 1)) for i, d in enumerate(ids)], RUN_SCHEMA, orient="row")
    judged = [(query, ids[1], 1, ""), (query, ids[2], 0, "")]
    columns = {"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Int32, "subtopic": pl.String}
    evidence = Qrels(pl.DataFrame(judged, columns, orient="row"), "turn")
    texts = {d: f"<img src=x onerror=alert({d})>" + "y" * 300 for d in ids}
    run = Run(rows, "turn", "<b>name</b>", text_of=lambda held: [texts[d] for d in held], evidence=evidence)
    shown = run._repr_html_()
    tags = set(re.findall(r"<\s*/?\s*([a-zA-Z]+)", shown))
    assert tags == {"p", "div", "style", "table", "thead", "tbody", "tr", "th", "td"}
    assert "&lt;b&gt;name&lt;/b&gt;: 1 queries, 3 turns ranked" in shown
    assert [("✔" in row, "d1" in row) for row in shown.split("<tr>")[2:]] == [
        (False, False),
        (True, True),
        (False, False),
    ]
