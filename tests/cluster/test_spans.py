from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.cluster import NOISE, concentration, pair_similarity, permuted_spread
from memlab.cluster.spans import PAIR_KINDS
from memlab.errors import DataError


def turns(labels: list[int], scope: str = "a", per_session: int = 2) -> pl.DataFrame:
    ids = [f"{scope}/s{i // per_session}/{i % per_session + 1}" for i in range(len(labels))]
    return pl.DataFrame({"turn_id": ids, "label": pl.Series(labels, dtype=pl.Int64)})


def questions(**evidence: list[str]) -> pl.DataFrame:
    return pl.DataFrame(
        {"query_id": list(evidence), "evidence": list(evidence.values())},
        schema={"query_id": pl.String, "evidence": pl.List(pl.String)},
    )


def spread_by_hand(labels: list[int]) -> tuple[int, float, float | None]:
    groups = [f"noise{i}" if label == NOISE else str(label) for i, label in enumerate(labels)]
    pairs = [a == b for a, b in combinations(groups, 2)]
    return len(set(groups)), max(map(groups.count, groups)) / len(groups), float(np.mean(pairs)) if pairs else None


def ranking(**docs: list[str]) -> pl.DataFrame:
    rows = [(q, d, rank) for q, ids in docs.items() for rank, d in enumerate(ids, 1)]
    return pl.DataFrame(rows, schema={"query_id": pl.String, "doc_id": pl.String, "rank": pl.Int32}, orient="row")


@settings(max_examples=40, deadline=None)
@given(st.data(), st.lists(st.integers(-1, 3), min_size=1, max_size=9))
def test_concentration_agrees_with_counting(data, labels):
    frame = turns(labels)
    chosen = data.draw(st.lists(st.sampled_from(range(len(labels))), min_size=1, unique=True))
    row = concentration(ranking(q=frame["turn_id"][chosen].to_list()), frame).row(0, named=True)
    n_clusters, largest, pairs = spread_by_hand([labels[i] for i in chosen])
    assert (row["n_clusters"], row["n_top"]) == (n_clusters, len(chosen))
    assert row["largest_share"] == pytest.approx(largest)
    assert row["pair_share"] == (None if pairs is None else pytest.approx(pairs))
    assert row["noise_share"] == pytest.approx(np.mean([labels[i] == NOISE for i in chosen]))


def test_concentration_of_the_top_and_whether_evidence_lies_there():
    frame = turns([0, 0, 0, 1, 1, NOISE, NOISE, 2], per_session=1)
    ids = frame["turn_id"].to_list()
    run = ranking(q=[ids[0], ids[1], ids[5], ids[3], ids[7]], r=[ids[7]])
    asked = questions(q=[ids[2], ids[6], ids[4]], r=[])
    top = concentration(run, frame, k=4, questions=asked)
    q, r = top.iter_rows(named=True)
    assert (q["query_id"], q["n_top"], q["n_clusters"]) == ("q", 4, 3)
    assert (q["largest_share"], q["noise_share"], q["pair_share"]) == pytest.approx((2 / 4, 1 / 4, 1 / 6))
    # Of the top, two turns share cluster 0 and one cluster 1 with evidence; the noise turn is not the noise evidence.
    assert q["evidence_cluster_share"] == pytest.approx(3 / 4)
    assert q["evidence_clusters_reached"] == pytest.approx(2 / 3)
    assert (r["n_top"], r["evidence_cluster_share"], r["evidence_clusters_reached"]) == (1, None, None)
    assert "evidence_cluster_share" not in concentration(run, frame, k=4).columns


def test_wrong_frames_are_refused():
    frame = turns([0, 1])
    with pytest.raises(DataError, match="questions has no column 'evidence'"):
        concentration(ranking(), frame, questions=pl.DataFrame({"query_id": ["q"]}))
    with pytest.raises(DataError, match="turn 'a/s0/1' has more than one label"):
        concentration(ranking(q=["a/s0/1"]), pl.concat([frame, frame]))
    with pytest.raises(DataError, match="query 'q' ranks 'a/s0', which has no label"):
        concentration(ranking(q=["a/s0"]), frame)


def test_empty_inputs_give_empty_frames():
    assert concentration(ranking(), turns([0, 1]), questions=questions()).height == 0
    none = pair_similarity(np.eye(2), ["a/s0/1", "a/s0/2"], questions(), question_embeddings=np.zeros((0, 2)))
    assert none.schema == {"query_id": pl.String, "kind": pl.String, "similarity": pl.Float64}
    assert none.height == 0


def test_pair_similarity_by_hand():
    rng = np.random.default_rng(0)
    embeddings = rng.normal(size=(7, 5))
    ids = ["a/s0/1", "a/s0/2", "a/s1/1", "b/s0/1", "a/s1/2", "b/s0/2", "a/s2/1"]
    asked = questions(p=["b/s0/1"], q=["a/s0/1", "a/s0/2", "a/s1/2"])
    about = rng.normal(size=(2, 5))
    pairs = pair_similarity(embeddings, ids, asked, question_embeddings=about, n_random=40)
    unit = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    cosine, to_question = unit @ unit.T, about / np.linalg.norm(about, axis=1, keepdims=True) @ unit.T

    def of(kind: str, query_id: str) -> list[float]:
        return pairs.filter((pl.col("kind") == kind) & (pl.col("query_id") == query_id))["similarity"].to_list()

    same, other, random, evidence, best = PAIR_KINDS
    assert set(pairs["kind"]) == set(PAIR_KINDS)
    assert of(same, "q") == pytest.approx([cosine[0, 1]], abs=1e-6)
    assert of(other, "q") == pytest.approx([cosine[0, 4], cosine[1, 4]], abs=1e-6)
    assert of(evidence, "q") == pytest.approx(to_question[1, [0, 1, 4]], abs=1e-6)
    assert of(best, "q") == pytest.approx([to_question[1, [2, 6]].max()], abs=1e-6)
    assert of(best, "p") == pytest.approx([to_question[0, 5]], abs=1e-6)
    assert of(random, "p") == pytest.approx([cosine[3, 5]] * len(of(random, "p")), abs=1e-6)
    possible = cosine[np.ix_([0, 1, 4], [2, 6])].ravel()
    assert all(np.abs(possible - drawn).min() < 1e-6 for drawn in of(random, "q"))
    assert len(set(np.round(of(random, "q"), 5))) == 6, "forty draws each meet every possible pair"
    assert pairs.equals(pair_similarity(embeddings, ids, asked, question_embeddings=about, n_random=40))


def test_pair_similarity_refuses_what_does_not_fit():
    asked = questions(q=["a/s0/1"])
    with pytest.raises(DataError, match="2 embeddings but 1 turn ids"):
        pair_similarity(np.eye(2), ["a/s0/1"], asked)
    with pytest.raises(DataError, match=r"question_embeddings have shape \(2, 2\); expected \(1, 2\)"):
        pair_similarity(np.eye(2), ["a/s0/1", "a/s0/2"], asked, question_embeddings=np.eye(2))
    with pytest.raises(DataError, match="more than one label"):
        pair_similarity(np.eye(2), ["a/s0/1", "a/s0/1"], asked)


def test_no_other_turn_gives_no_best_other():
    pairs = pair_similarity(np.eye(1), ["a/s0/1"], questions(q=["a/s0/1"]), question_embeddings=np.eye(1))
    assert pairs.rows() == [("q", "question – evidence", 1.0)]


def test_permuted_labels_are_what_random_sets_show() -> None:
    """The mean of the permutations is the mean over every set of as many turns of the scope; scopes do not mix."""
    own, others = [0] * 5 + [1] * 4 + [NOISE] * 3, turns([0] * 10, "b")
    labels = pl.concat([turns(own), others])
    chosen = {"q": [0, 1, 5, 10], "r": [9], "s": [12, 14]}
    sets = pl.DataFrame(
        [(q, labels["turn_id"][i]) for q, at in chosen.items() for i in at], ["query_id", "turn_id"], orient="row"
    )
    observed, null = permuted_spread(sets, labels, draws=4000)
    for i, at in enumerate(chosen.values()):
        scope = own if max(at) < len(own) else others["label"].to_list()
        by_hand = spread_by_hand(labels["label"][at].to_list())
        assert observed[i].tolist() == pytest.approx([np.nan if x is None else x for x in by_hand], nan_ok=True)
        every = np.array([spread_by_hand(list(s)) for s in combinations(scope, len(at))], float)
        assert null[:, i].mean(axis=0).tolist() == pytest.approx(every.mean(axis=0).tolist(), abs=0.03, nan_ok=True)
    both = pl.concat([labels.with_columns(draw=0), labels.with_columns(draw=1, label=pl.lit(0, pl.Int64))])
    assert permuted_spread(sets, both)[0][0].tolist() == pytest.approx(((observed[0] + 1) / 2).tolist())
    with pytest.raises(DataError, match="'c/s/1' has no label"):
        permuted_spread(sets.with_columns(turn_id=pl.lit("c/s/1")), labels)
