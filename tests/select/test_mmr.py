"""MMR against pyversity's, and its laws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import pyversity
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import memlab
from memlab import retrieve
from memlab.errors import DataError
from memlab.records import Level, Run
from memlab.retrieve import Bench
from memlab.select import mmr

Make = Callable[..., tuple[Run, Bench]]
QUICK = settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])


def chosen_by(
    choose: Callable[[np.ndarray, np.ndarray, int, float], list[int]],
    run: Run,
    bench: Bench,
    *,
    lambda_: float,
    k: int,
    candidates: int,
) -> list[str]:
    """Apply a selector of (embeddings, relevance in [0, 1], k, λ) to each query; what it leaves follows in order."""
    vectors = dict(zip(bench.documents(run.level).ids, bench.documents(run.level).vectors(), strict=True))
    expected = []
    for _, rows in run.frame.group_by("query_id", maintain_order=True):
        ids, score = rows["doc_id"].to_list(), rows["score"].head(candidates).to_numpy()
        spread = score.max() - score.min()
        relevance = (score - score.min()) / spread if spread > 0 else np.ones(len(score))
        embedded = np.stack([vectors[d] for d in ids[:candidates]])
        chosen = [ids[i] for i in choose(embedded, relevance, min(k, len(score)), lambda_)]
        expected += chosen + [d for d in ids if d not in set(chosen)]
    return expected


def pyversitys(embedded: np.ndarray, relevance: np.ndarray, k: int, lambda_: float) -> list[int]:
    """pyversity takes scores as they are, and its similarity is the cosine cut off at 0."""
    return pyversity.mmr(embedded, relevance, k, diversity=1 - lambda_).indices.tolist()


def carbonell(embedded: np.ndarray, relevance: np.ndarray, k: int, lambda_: float) -> list[int]:
    """The formula of the paper, one pair at a time."""
    wide = embedded.astype(np.float64)
    chosen: list[int] = []
    while len(chosen) < k:
        left = [i for i in range(len(relevance)) if i not in chosen]
        nearest = {i: max((float(np.float32(wide[i] @ wide[j])) for j in chosen), default=0.0) for i in left}
        chosen.append(max(left, key=lambda i: lambda_ * relevance[i] - (1 - lambda_) * nearest[i] * bool(chosen)))
    return chosen


LAMBDAS = pytest.mark.parametrize("lambda_", [0.0, 0.1, 0.5, 0.7, 0.95, 1.0])
SIZES = pytest.mark.parametrize(("k", "candidates"), [(50, 200), (5, 200), (5, 12), (30, 12), (1, 1)])


@LAMBDAS
@SIZES
def test_mmr_is_pyversitys_where_no_cosine_is_negative(
    random_run: Make, lambda_: float, k: int, candidates: int
) -> None:
    for seed in range(5):
        run, bench = random_run(40, 3, seed=seed)
        bench = replace(bench, turn_vectors=np.abs(bench.turn_vectors))
        sizes = {"lambda_": lambda_, "k": k, "candidates": candidates}
        assert mmr(run, bench, **sizes).frame["doc_id"].to_list() == chosen_by(pyversitys, run, bench, **sizes)


@LAMBDAS
@SIZES
@pytest.mark.parametrize("copies", [1, 4])
def test_mmr_is_carbonells(random_run: Make, lambda_: float, k: int, candidates: int, copies: int) -> None:
    run, bench = random_run(30, 2, copies=copies)
    sizes = {"lambda_": lambda_, "k": k, "candidates": candidates}
    assert mmr(run, bench, **sizes).frame["doc_id"].to_list() == chosen_by(carbonell, run, bench, **sizes)


@pytest.mark.parametrize("level", ["turn", "session"])
def test_mmr_on_talk(level: Level) -> None:
    bench = Bench.of(memlab.sample(["owen"], turns=200), encoder="hashing:64")
    run = retrieve.hybrid(bench, level=level, k=40)
    sizes = {"lambda_": 0.6, "k": 8, "candidates": 30}
    got = mmr(run, bench, **sizes).frame["doc_id"]
    assert got.to_list() == chosen_by(carbonell, run, bench, **sizes)
    assert not got.equals(run.frame["doc_id"])


@QUICK
@given(
    n=st.integers(16, 40),
    seed=st.integers(0, 1000),
    copies=st.sampled_from([1, 2, 5]),
    levels=st.sampled_from([0, 1, 3]),
    lambda_=st.floats(0, 1),
    k=st.integers(1, 45),
    candidates=st.integers(1, 45),
)
def test_laws(
    random_run: Make, n: int, seed: int, copies: int, levels: int, lambda_: float, k: int, candidates: int
) -> None:
    run, bench = random_run(n, 3, seed=seed, copies=copies, levels=levels)
    got = mmr(run, bench, lambda_=lambda_, k=k, candidates=candidates)
    assert got.frame["query_id"].equals(run.frame["query_id"])
    assert got.frame["rank"].equals(run.frame["rank"])
    assert (
        got.frame.select("query_id", "doc_id")
        .sort(pl.all())
        .equals(run.frame.select("query_id", "doc_id").sort(pl.all()))
    )
    whole = mmr(run, bench, lambda_=lambda_, k=1000, candidates=candidates)
    for query, rows in got.frame.group_by("query_id", maintain_order=True):
        before = run.frame.filter(pl.col("query_id") == query[0])["doc_id"].to_list()
        after = rows["doc_id"].to_list()
        # The first stays first; a shorter selection is the prefix of a longer one; the rest follows in its old order.
        assert after[0] == before[0]
        steps = min(k, candidates, len(before))
        assert after[:steps] == whole.frame.filter(pl.col("query_id") == query[0])["doc_id"].to_list()[:steps]
        assert set(after[:candidates]) == set(before[:candidates])
        assert after[steps:] == [d for d in before if d not in after[:steps]]
        assert (rows["score"].diff().drop_nulls() < 0).all()


@pytest.mark.parametrize("levels", [0, 1, 2])
def test_pure_relevance_is_the_ranking_as_it_was(random_run: Make, levels: int) -> None:
    run, bench = random_run(40, 4, copies=2, levels=levels)
    for k, candidates in ((50, 200), (3, 7), (1, 1)):
        got = mmr(run, bench, lambda_=1.0, k=k, candidates=candidates)
        assert got.frame["doc_id"].equals(run.frame["doc_id"])


def test_pure_diversity_leaves_copies_for_last(random_run: Make) -> None:
    run, bench = random_run(40, 1, copies=4)
    vectors = bench.documents("turn").vectors()
    first = mmr(run, bench, lambda_=0.0, k=40).frame["doc_id"].head(10)
    assert len(np.unique(vectors[bench.documents("turn").at(first)], axis=0)) == 10


def test_ties_fall_to_the_better_rank(random_run: Make) -> None:
    """All vectors alike: similarity decides nothing, and the order stays at every λ."""
    run, bench = random_run(32, 2, levels=1)
    same = replace(bench, turn_vectors=np.repeat(bench.turn_vectors[:1], 32, axis=0))
    for lambda_ in (0.0, 0.3, 1.0):
        assert mmr(run, same, lambda_=lambda_).frame["doc_id"].equals(run.frame["doc_id"])


def test_a_query_selects_alone_as_among_many(random_run: Make) -> None:
    """More queries than go through at a time, of different lengths."""
    run, bench = random_run(400, 70, copies=2)
    many = mmr(run, bench, lambda_=0.5, k=10).frame
    for query in ("q0", "q33", "q63", "q64", "q69"):
        alone = mmr(replace(run, frame=run.frame.filter(pl.col("query_id") == query)), bench, lambda_=0.5, k=10)
        assert alone.frame.equals(many.filter(pl.col("query_id") == query))


def test_what_goes_in_is_kept(random_run: Make) -> None:
    run, bench = random_run()
    named = replace(run, name="mine", provenance={"x": 1})
    before = named.frame.clone()
    got = mmr(named, bench)
    assert (got.name, got.provenance, got.level) == ("mine", {"x": 1}, "turn")
    assert named.frame.equals(before)
    assert got.text_of is not None


def test_no_candidates_and_wrong_arguments(random_run: Make) -> None:
    run, bench = random_run()
    none = replace(run, frame=run.frame.head(0))
    assert mmr(none, bench).frame.equals(none.frame)
    for wrong, message in (
        ({"lambda_": -0.1}, "lambda_ is -0.1; it lies between 0"),
        ({"lambda_": 1.01}, "lambda_ is 1.01"),
        ({"lambda_": float("nan")}, "lambda_ is nan"),
        ({"k": 0}, "k is 0"),
        ({"candidates": 0}, "candidates is 0"),
    ):
        with pytest.raises(DataError, match=message):
            mmr(run, bench, **wrong)
    with pytest.raises(DataError, match="needs embeddings"):
        mmr(run, replace(bench, turn_vectors=None))
    elsewhere = replace(run, frame=run.frame.with_columns(doc_id=pl.lit("x")))
    with pytest.raises(DataError, match="document 'x' is not in this bench"):
        mmr(elsewhere, bench)
