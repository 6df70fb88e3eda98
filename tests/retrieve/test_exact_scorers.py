"""Dense, BM25, fusion, ties and two stages against straightforward references; turns of an assistant come later."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import bm25s
import numpy as np
import polars as pl
import pytest
from store_data import build
from talk import ranking

import memlab
from memlab import embed
from memlab.datasets import chatlog
from memlab.errors import DataError
from memlab.evaluate import evaluate
from memlab.pipelines import pipeline
from memlab.records import Dataset, Level, run_from_scores
from memlab.retrieve import Bench, bm25, dense, hybrid, rrf, sessions_from_turns, two_stage
from memlab.retrieve.bm25 import bm25_scores
from memlab.retrieve.cosine import cosines
from memlab.retrieve.two_stage import session_summary_vectors
from memlab.text.question_patterns import question_patterns
from memlab.text.text_analyser import tokenize


def lucene(documents: list[list[str]], query: list[str], k1: float, b: float) -> np.ndarray:
    """BM25 as bm25s has it in Lucene's form."""
    index = bm25s.BM25(method="lucene", k1=k1, b=b)
    index.index(documents, show_progress=False)
    return index.get_scores(query) if query else np.zeros(len(documents))


@pytest.mark.parametrize("level", ["turn", "session"])
def test_dense_is_the_brute_force_product(some: Bench, level: Level) -> None:
    documents, turns = some.documents(level), some.documents("turn")
    got = ranking(dense(some, level=level, k=10_000))
    wide = turns.embeddings.astype(np.float64)
    for i, (query, scope) in enumerate(some.queries.select("query_id", "scope").iter_rows()):
        scores = (wide @ some.query_vectors[i].astype(np.float64)).astype(np.float32)
        if level == "session":
            scores = np.array(
                [scores[turns.session == s].max(initial=-1) for s in range(len(documents.ids))]
            )
        own = range(*documents.spans[scope])
        best = sorted(own, key=lambda at: (-scores[at], documents.tie_order[at]))
        assert got[query] == documents.ids[best].tolist()


@pytest.mark.parametrize("level", ["turn", "session"])
@pytest.mark.parametrize(("k1", "b"), [(None, None), (1.2, 0.75), (0.0, 0.0)])
def test_bm25_is_lucenes(some: Bench, level: Level, k1: float | None, b: float | None) -> None:
    documents, texts = tokenize(some.documents(level).texts), some.queries["text"].to_list()
    rows_seen = []
    for rows, span, scores in bm25_scores(some, level=level, k1=k1, b=b):
        rows_seen += rows.tolist()
        lengths = [len(document) for document in documents[span]]
        spread = (np.std(lengths) / np.mean(lengths)) ** 2 if any(lengths) else 0.0
        default = (0.9, min(1.0, max(0.4, spread))) if level == "turn" else (1.5, 0.75)
        used = default if k1 is None or b is None else (k1, b)
        for row, got in zip(rows, scores, strict=True):
            expected = lucene(documents[span], tokenize([texts[row]])[0], *used)
            np.testing.assert_allclose(got, expected, rtol=2e-5, atol=1e-6)
    assert sorted(rows_seen) == list(range(len(texts)))


def test_equal_vectors_tie_exactly_whatever_the_batch() -> None:
    rng = np.random.default_rng(0)
    for dim, n in ((64, 40), (384, 700), (100, 17)):
        base, queries = (
            rng.standard_normal((n // 4, dim)),
            rng.standard_normal((33, dim)).astype(np.float32),
        )
        group = rng.integers(0, len(base), n)
        documents = (base / np.linalg.norm(base, axis=1, keepdims=True)).astype(np.float32)[group]
        many = cosines(queries, documents)
        assert (many == many[:, [int(np.flatnonzero(group == g)[0]) for g in group]]).all()
        for part in (slice(0, 1), slice(3, 8)):
            assert (many[part] == cosines(queries[part], documents)).all()


@pytest.mark.parametrize(
    ("weights", "expected"), [((2, 1), "cabd"), ((0, 1), "cdab"), ((0, 0), "abcd")]
)
def test_rankings_are_fused_by_reciprocal_ranks(weights: tuple[int, int], expected: str) -> None:
    """What a run lists at no positive score gains nothing from it."""
    lists = (("abcd", [3.0, 2.0, 1.0, 0.0]), ("cd", [2.0, 1.0]))
    runs = [
        run_from_scores(["q"] * len(ids), [*ids], held, level="turn", k=9) for ids, held in lists
    ]
    assert "".join(rrf(runs, weights=weights).frame["doc_id"]) == expected


@pytest.mark.parametrize("level", ["turn", "session"])
def test_hybrid_fuses_both(some: Bench, level: Level) -> None:
    both = [search(some, level=level, k=5) for search in (dense, bm25)]
    assert rrf(both, k=5).frame.equals(hybrid(some, level=level, k=5).frame)


def test_rankings_that_cannot_be_fused(odd: Bench) -> None:
    turns, sessions = bm25(odd, k=3), bm25(odd, level="session", k=3)
    for runs, weights, said in (
        ([turns, sessions], None, "cannot be fused"), ([turns, turns], [1], "2 runs have weights"),
        ([], None, "0 runs"), ([turns], [-1], "none negative"), ([turns], [float("nan")], "not a finite number"),
    ):  # fmt: skip
        with pytest.raises(DataError, match=said):
            rrf(runs, weights=weights)


def test_sessions_rank_by_their_best_turn(chat: Bench) -> None:
    of_turn = dict(chat.turns.select("turn_id", "session_id").iter_rows())
    for run in (dense(chat, k=7), bm25(chat)):
        expected = {
            q: list(dict.fromkeys(of_turn[d] for d in ids)) for q, ids in ranking(run).items()
        }
        assert ranking(sessions_from_turns(run, chat)) == expected
        assert ranking(sessions_from_turns(run, chat, k=2)) == {
            q: ids[:2] for q, ids in expected.items()
        }
    with pytest.raises(DataError, match="the run ranks sessions"):
        sessions_from_turns(sessions_from_turns(run, chat), chat)


@pytest.mark.parametrize("level", ["turn", "session"])
def test_a_question_without_a_match_finds_the_oldest_as_often_as_chance_does(level: Level) -> None:
    """Documents that tie stand in an order drawn by lot, not by age, and the report counts such questions."""
    data = build(n_scopes=20, n_sessions=5, n_turns=8)
    ties = replace(data, questions=data.questions.with_columns(text=pl.lit("Zzz?")))
    run = pipeline("bm25").run(Bench.of(ties, encoder=None), level=level)
    assert 0 < run.frame.filter(rank=1)["doc_id"].str.contains("session_0").sum() < 12
    assert run.frame.equals(pipeline("bm25").run(Bench.of(ties, encoder=None), level=level).frame)
    assert evaluate(run, ties).provenance["ties"] == (20 if level == "turn" else 0), (
        "all sessions are evidence"
    )


SUMMARIES = {
    "ann/s1": "Ann saw the doctor and the dentist", "ann/s2": "roses tulips water", "ann/s4": "  ",
    "cyd/s1": "a doctor and roses", "cyd/s2": "water?",
}  # fmt: skip


@pytest.fixture(scope="module")
def summed(world: Dataset) -> Bench:
    """The small world, some of whose sessions have a summary; that of the empty session is a question word by word."""
    summary = pl.col("session_id").replace_strict(SUMMARIES, default=None, return_dtype=pl.String)
    return Bench.of(
        replace(world, sessions=world.sessions.with_columns(summary=summary)), encoder="hashing:64"
    )


@pytest.mark.parametrize("name", ["odd", "summed", "chat"])
@pytest.mark.parametrize(("n_sessions", "n_turns"), [(5, 3), (1, 1), (2, 50)])
def test_turns_of_the_first_sessions_come_first_and_all_others_follow(
    request: pytest.FixtureRequest, name: str, n_sessions: int, n_turns: int
) -> None:
    bench: Bench = request.getfixturevalue(name)
    home = dict(bench.turns.select("turn_id", "session_id").iter_rows())
    sessions = ranking(two_stage(bench, level="session", k=999))
    for query, turns in ranking(
        two_stage(bench, k=999, sessions=n_sessions, turns=n_turns)
    ).items():
        sizes = Counter(home[turn] for turn in turns)
        assert sizes.total() == len(set(turns)), "every turn of the scope, once"
        # A session without turns has nothing to give.
        chosen = {
            each: min(n_turns, sizes[each])
            for each in [s for s in sessions[query] if s in sizes][:n_sessions]
        }
        assert Counter(home[turn] for turn in turns[: sum(chosen.values())]) == chosen


def test_summaries_are_a_further_key_and_other_sessions_fall_back_to_their_document(
    odd: Bench, summed: Bench
) -> None:
    documents, vectors = summed.documents("session"), session_summary_vectors(summed)
    assert vectors is not None
    for at, session in enumerate(documents.ids):
        text = SUMMARIES.get(session, "").strip()
        own = embed.load("hashing:64").encode([text])[0] if text else documents.vectors()[at]
        assert np.array_equal(vectors[at], own), session
    assert session_summary_vectors(summed.with_queries(summed.queries)) is vectors, "encoded once"
    assert session_summary_vectors(odd) is None


SAID = (
    "We have nine thousand for the kitchen.", "A kitchen budget of nine thousand is a fair kitchen budget.",
    "The tiles come on Friday.", "Then the floor should be dry by Thursday.",
)  # fmt: skip


@pytest.mark.parametrize(("other", "held_back"), [("user", [0, 1]), ("assistant", [1, 1])])
def test_what_the_assistant_said_is_first_only_where_that_is_asked_or_nobody_else_speaks(
    other: str, held_back: list[int]
) -> None:
    rows = [
        {"scope": "u", "role": (other, "assistant")[i % 2], "text": text}
        for i, text in enumerate(SAID)
    ]
    asked = ("What is my kitchen budget?", "What did you suggest about the kitchen budget?")
    data = chatlog.dataset([*rows, *({"scope": "u", "question": text} for text in asked)], "log")
    bench = Bench.of(data, encoder="hashing")
    for text, expected in (("combsum", [1, 1]), ("combsum(assistant=3)", held_back)):
        first = memlab.pipeline(text).run(bench).top(1).frame["doc_id"]
        assert bench.documents("turn").at(first).tolist() == expected


def test_what_is_asked_of_the_assistant() -> None:
    of_it = ["Which hotel did you recommend?", "What was the third title on the list you gave me?"]
    of_user = ["Can you tell me where I live?", "Which hotel did I book?"]
    assert pl.Series(of_it + of_user).str.contains(
        question_patterns("en")["asks_of_assistant"]
    ).to_list() == [
        True,
        True,
        False,
        False,
    ]
