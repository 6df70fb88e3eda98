"""Rankings: their laws, and how they show themselves."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memlab.errors import DataError
from memlab.records import (
    RUN_SCHEMA,
    Question,
    Run,
    frame,
    make_strictly_decreasing,
    qrels,
    run_from_scores,
)

FINITE = st.floats(allow_nan=False, allow_infinity=False)
AWKWARD = FINITE | st.sampled_from(
    [0.0, -0.0, 5e-324, -5e-324, 1e-45, 1e300, -1e300, 3.5e38, -3.4028234e38]
)
PAIRS = st.lists(st.tuples(st.sampled_from("abc"), AWKWARD), max_size=40)


def ranked(pairs: Sequence[tuple[str, float]], k: int = 1000) -> Run:
    queries, scores = (
        np.array([q for q, _ in pairs]),
        np.array([s for _, s in pairs], dtype=np.float64),
    )
    return run_from_scores(
        queries, np.array([f"d{i}" for i in range(len(pairs))]), scores, level="turn", k=k
    )


@given(PAIRS, st.integers(1, 50))
@example([("a", -1e300)] * 3, 2)
@example([("a", 1e300), ("a", 1e301)], 2)
@example([("a", 0.0), ("a", -0.0), ("a", 0.0), ("a", 5e-324)], 2)
@example([("a", 0.1), ("b", 0.2), ("a", 0.1 + 1e-12)], 2)
def test_laws_of_a_ranking(pairs: list[tuple[str, float]], k: int) -> None:
    run = ranked(pairs).frame
    assert dict(run.schema) == RUN_SCHEMA
    assert run["query_id"].rle().struct.field("value").to_list() == list(
        dict.fromkeys(q for q, _ in pairs)
    )
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


@given(
    st.lists(
        st.floats(width=32, allow_nan=False, allow_infinity=False, allow_subnormal=True),
        max_size=30,
    )
)
def test_scores_are_lowered_no_more_than_needed(scores: list[float]) -> None:
    given_scores = np.array(sorted(scores, reverse=True), dtype=np.float64)
    got = make_strictly_decreasing(given_scores, np.zeros(len(scores)))
    previous = np.float32(np.inf)
    for before, after in zip(
        np.maximum(given_scores, -(2.0**127)).astype(np.float32), got, strict=True
    ):
        previous = min(before, np.nextafter(previous, np.float32(-np.inf)))
        assert np.float32(after) == previous


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
    assert run_from_scores(*ids, pl.Series([1, 2]), level="turn", k=5).frame[
        "doc_id"
    ].to_list() == ["b", "a"]


def test_qrels_hold_each_evidence_item_once() -> None:
    rows = [
        Question(
            "many",
            "u",
            "?",
            "a",
            "t",
            None,
            ["u/s/2", "u/t%2F1/9", "u/s/2"],
            ["u/s", "u/t%2F1", "u/s"],
        ),
        Question("gone", "u", "?", None, "t", None, ["u/s/1"], ["u/s"], abstention=True),
        Question("null", "u", "?", None, "t", None, None, None),  # type: ignore[arg-type]
        Question("hole", "u", "?", None, "t", None, [None, "u/s/1"], ["u/s", None]),  # type: ignore[list-item]
    ]
    of_turns = qrels(frame(Question, rows), "turn").frame
    assert of_turns.select("query_id", "doc_id", "relevance", "subtopic").rows() == [
        ("many", "u/s/2", 1, "u/s"),
        ("many", "u/t%2F1/9", 1, "u/t%2F1"),
        ("hole", "u/s/1", 1, "u/s"),
    ]
    sessions = qrels(frame(Question, rows), "session").frame.select("query_id", "doc_id").rows()
    assert sessions == [("many", "u/s"), ("many", "u/t%2F1"), ("hole", "u/s")]
    assert qrels(frame(Question), "turn").frame.schema == of_turns.schema


def test_the_view_marks_the_evidence_and_nothing_in_it_is_markup() -> None:
    query, ids = "<script>q</script>", [f"<script>d{i}</script>" for i in range(3)]
    run = run_from_scores([query] * 3, ids, [3.0, 2.0, 1.0], level="turn", k=9)
    asked = frame(Question, [Question(query, "u", "?", None, "t", None, [ids[1]], [])])
    texts = {d: f"<img src=x onerror=alert({d})>" + "y" * 300 for d in ids}
    of_run = {"text_of": lambda held: [texts[d] for d in held], "evidence": qrels(asked, "turn")}
    shown = replace(run, name="<b>name</b>", **of_run)._repr_html_()
    tags = set(re.findall(r"<\s*/?\s*([a-zA-Z]+)", shown))
    assert tags == {"p", "div", "style", "table", "thead", "tbody", "tr", "th", "td"}
    assert "&lt;b&gt;name&lt;/b&gt;: 1 queries, 3 turns ranked" in shown
    assert ["✔" in row for row in shown.split("<tr>")[2:]] == [False, True, False]
