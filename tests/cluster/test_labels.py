import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.cluster import NOISE, cluster_terms
from memlab.errors import DataError

TEXTS = ["guinea pig food", "my guinea pig sleeps", "piano lesson", "the piano concert", "unrelated remark"]


def test_terms_set_clusters_apart_and_noise_is_left_out():
    terms = cluster_terms(TEXTS, np.array([0, 0, 1, 1, NOISE]))
    assert terms.schema == {"label": pl.Int64, "size": pl.UInt32, "terms": pl.List(pl.String)}
    assert terms["label"].to_list() == [0, 1]
    assert terms["size"].to_list() == [2, 2]
    assert [t[0] for t in terms["terms"].to_list()] == ["guinea", "piano"]
    assert "unrelated" not in terms["terms"].explode().to_list()


def test_weights_are_class_based_tf_idf():
    """By hand: in cluster 0 "apple" is 3 of 4 words, 4 in all; "rare" 1 of 4, 1 in all; A = 4."""
    texts = ["apple apple apple rare", "apple pear pear pear"]
    apple, rare = 3 / 4 * np.log(1 + 4 / 4), 1 / 4 * np.log(1 + 4 / 1)
    assert apple > rare
    ranked = cluster_terms(texts, np.array([0, 1]), n_terms=5, max_ngram=1)["terms"].to_list()
    assert ranked == [["apple", "rare"], ["pear", "apple"]]
    texts = ["apple apple rare", "apple apple apple"]
    apple, rare = 2 / 3 * np.log(1 + 3 / 5), 1 / 3 * np.log(1 + 3 / 1)
    assert rare > apple
    assert cluster_terms(texts, np.array([0, 1]), max_ngram=1)["terms"][0].to_list() == ["rare", "apple"]


def test_terms_share_no_word_and_do_not_cross_messages():
    terms = cluster_terms(["green tea"] * 3 + ["tea green"], np.zeros(4, int), n_terms=9)["terms"][0].to_list()
    words = " ".join(terms).split()
    assert len(words) == len(set(words))
    crossing = cluster_terms(["alpha", "beta"], np.zeros(2, int), n_terms=9)["terms"][0].to_list()
    assert crossing == ["alpha", "beta"]


@pytest.mark.parametrize("texts", [["Wow, thanks!", "I don’t, it's 2023"], ["", "?!"]])
def test_nothing_but_stop_words_gives_no_terms(texts):
    terms = cluster_terms(texts, np.array([0, 1]))
    assert terms["terms"].to_list() == [[], []]
    assert terms["size"].to_list() == [1, 1]


@pytest.mark.parametrize("labels", [[], [NOISE, NOISE]])
def test_no_cluster_gives_no_rows(labels):
    assert cluster_terms(["cat"] * len(labels), np.array(labels, dtype=int)).height == 0


def test_lengths_must_agree():
    with pytest.raises(DataError, match="2 texts but 1 labels"):
        cluster_terms(["a", "b"], np.array([0]))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.text(max_size=30), st.integers(-1, 3)), max_size=12), st.integers(0, 4))
def test_any_text_gives_every_cluster_a_row(rows, n_terms):
    labels = np.array([label for _, label in rows], dtype=int)
    terms = cluster_terms([text for text, _ in rows], labels, n_terms=n_terms)
    assert terms["label"].to_list() == sorted(set(labels[labels >= 0].tolist()))
    assert terms["size"].sum() == (labels >= 0).sum()
    assert all(len(t) <= n_terms for t in terms["terms"].to_list())
