"""Names of clusters; how sets of turns lie in clusters by chance, and cosines of pairs, by hand."""

from __future__ import annotations

import logging
from itertools import combinations

import numpy as np
import polars as pl
import pytest

from memlab.cluster import NOISE, cluster_terms, observed_and_null_spread, pair_similarity
from memlab.cluster.evidence_spread import PAIR_KINDS
from memlab.cluster.terms import content_word_filter
from memlab.errors import DataError


def test_terms_set_clusters_apart_and_noise_has_none() -> None:
    texts = ["guinea pig food", "my guinea pig sleeps", "piano lesson", "the piano concert", "unrelated remark"]
    terms = cluster_terms(texts, np.array([0, 0, 1, 1, NOISE]))
    assert terms.select("label", "size").rows() == [(0, 2), (1, 2)]
    assert [t[0] for t in terms["terms"].to_list()] == ["guinea pig food", "piano concert"]
    assert "remark" not in terms["terms"].explode().to_list()


def test_weights_are_class_based_tf_idf() -> None:
    """By hand, as tf and df of two clusters: apple (3, 2) in the first weighs .95, pear (2, 1) there 1.34."""
    texts = ["an apple, an apple, an apple", "a pear or a pear", "an apple", "a grape"]
    assert cluster_terms(texts, np.array([0, 0, 1, 1]))["terms"].to_list() == [["pear", "apple"], ["grape", "apple"]]


def test_what_several_say_counts_more_and_their_names_do_not() -> None:
    texts = ["Ann saw a boat.", "A boat!", "The lamp is a lamp."]
    for who in ("AAA", ["Ann", "B", "B"]):
        assert cluster_terms(texts, np.zeros(3, int), speakers=who)["terms"][0][0] == "boat"
    assert cluster_terms(["Ann runs a shop."], np.array([0]), speakers=["Annabel"])["terms"].to_list() == [["shop"]]


def test_names_follow_the_language() -> None:
    texts = [
        "Als ich gedacht hatte, es wird besser, kam der Regen.",
        "Der Regen war so stark, und jetzt ist der Keller nass.",
        "Ich trinke jetzt jeden Tag Wasser und grünen Tee.",
        "Grünen Tee trinke ich immer nach dem Wasser.",
    ]
    rain, tea = cluster_terms(texts, np.array([0, 0, 1, 1]), language="de")["terms"].to_list()
    assert rain[0] == "Regen"
    assert {"grünen Tee", "Wasser"} <= set(tea)
    words = {word.lower() for term in [*rain, *tea] for word in term.split()}
    assert not words & {"als", "ich", "hatte", "jetzt", "jeden", "tag", "der", "und"}


def test_a_language_without_stop_words_has_no_names_and_one_line(caplog: pytest.LogCaptureFixture) -> None:
    content_word_filter.cache_clear()
    with caplog.at_level(logging.WARNING, "memlab"):
        for _ in range(2):
            assert cluster_terms(["नमस्ते संसार"], np.array([0]), language="ne")["terms"].to_list() == [[]]
    assert len(caplog.records) == 1


def labelled(labels: list[int], scope: str) -> pl.DataFrame:
    ids = [f"{scope}{i}" for i in range(len(labels))]
    return pl.DataFrame({"scope": scope, "turn_id": ids, "label": pl.Series(labels, dtype=pl.Int64), "draw": 0})


def by_hand(labels: list[int]) -> list[float]:
    groups = [f"noise{i}" if label == NOISE else str(label) for i, label in enumerate(labels)]
    pairs = [a == b for a, b in combinations(groups, 2)]
    return [len(set(groups)), max(map(groups.count, groups)) / len(groups), np.mean(pairs) if pairs else np.nan]


def test_permuted_labels_are_what_random_sets_show() -> None:
    """The mean of the permutations is the mean over every set of as many turns of the scope; scopes do not mix."""
    own = [0] * 5 + [1] * 4 + [NOISE] * 3
    labels = pl.concat([labelled(own, "a"), labelled([0] * 10, "b")])
    chosen = {"q": [0, 1, 5, 10], "r": [9], "s": [12, 14]}
    pairs = [(q, labels["turn_id"][i]) for q, at in chosen.items() for i in at]
    sets = pl.DataFrame(pairs, ["query_id", "turn_id"], orient="row")
    observed, null = observed_and_null_spread(sets, labels, draws=4000)
    for i, at in enumerate(chosen.values()):
        scope = own if max(at) < len(own) else [0] * 10
        assert observed[i].tolist() == pytest.approx(by_hand(labels["label"][at].to_list()), nan_ok=True)
        every = np.array([by_hand(list(drawn)) for drawn in combinations(scope, len(at))])
        assert null[:, i].mean(axis=0).tolist() == pytest.approx(every.mean(axis=0).tolist(), abs=0.03, nan_ok=True)
    both = pl.concat([labels.with_columns(draw=0), labels.with_columns(draw=1, label=pl.lit(0, pl.Int64))])
    assert observed_and_null_spread(sets, both)[0][0].tolist() == pytest.approx(((observed[0] + 1) / 2).tolist())
    with pytest.raises(DataError, match="'c1' has no label"):
        observed_and_null_spread(sets.with_columns(turn_id=pl.lit("c1")), labels)
    with pytest.raises(DataError, match="more than one label"):
        observed_and_null_spread(sets, pl.concat([labels, labels]))


IDS = ["a1", "a2", "a3", "b1", "a4", "b2", "a5"]
TURNS = pl.DataFrame(
    {"turn_id": IDS, "scope": [i[0] for i in IDS], "session_id": ["s0", "s0", "s1", "t0", "s1", "t0", "s2"]}
)


def test_pair_similarity_by_hand() -> None:
    rng = np.random.default_rng(0)
    embeddings, about = rng.normal(size=(7, 5)), rng.normal(size=(2, 5))
    asked = pl.DataFrame({"query_id": ["p", "q"], "evidence": [["b1"], ["a1", "a2", "a4"]]})
    given = {"question_embeddings": about, "turns": TURNS.reverse(), "n_random": 40}
    pairs = pair_similarity(embeddings, IDS, asked, **given)
    unit = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    cosine, to_question = unit @ unit.T, about / np.linalg.norm(about, axis=1, keepdims=True) @ unit.T

    def of(kind: str, query_id: str) -> list[float]:
        return pairs.filter(kind=kind, query_id=query_id)["similarity"].to_list()

    same, other, random, evidence, best = PAIR_KINDS
    assert of(same, "q") == pytest.approx([cosine[0, 1]], abs=1e-6)
    assert of(other, "q") == pytest.approx([cosine[0, 4], cosine[1, 4]], abs=1e-6)
    assert of(evidence, "q") == pytest.approx(to_question[1, [0, 1, 4]], abs=1e-6)
    assert of(best, "q") == pytest.approx([to_question[1, [2, 6]].max()], abs=1e-6)
    assert of(best, "p") == pytest.approx([to_question[0, 5]], abs=1e-6)
    assert of(random, "p") == pytest.approx([cosine[3, 5]] * 40, abs=1e-6)
    possible = cosine[np.ix_([0, 1, 4], [2, 6])].ravel()
    assert all(np.abs(possible - drawn).min() < 1e-6 for drawn in of(random, "q"))
    assert len(set(np.round(of(random, "q"), 5))) == 6, "forty draws each meet every possible pair"
    assert pairs.equals(pair_similarity(embeddings, IDS, asked, **given))
