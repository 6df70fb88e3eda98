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
    assert [t[0] for t in terms["terms"].to_list()] == ["guinea pig food", "piano concert"]
    assert "remark" not in terms["terms"].explode().to_list()


def test_weights_are_class_based_tf_idf():
    """By hand, as tf and df of two clusters: apple (3, 2) in the first is worth .95, pear (2, 1) there 1.34."""
    apple, pear = (2.5 * (np.log(3 / 2.5) + 0.2), 1.5 * (np.log(3 / 1.5) + 0.2))
    assert apple < pear
    texts = ["an apple, an apple, an apple", "a pear or a pear", "an apple", "a grape"]
    terms = cluster_terms(texts, np.array([0, 0, 1, 1]))["terms"].to_list()
    assert terms == [["pear", "apple"], ["grape", "apple"]]


def test_what_several_say_counts_more_and_their_names_do_not():
    texts = ["Ann saw a boat.", "A boat!", "The lamp is a lamp."]
    first = [cluster_terms(texts, np.zeros(3, int), speakers=who)["terms"][0][0] for who in ("AAA", ["Ann", "B", "B"])]
    assert first == ["boat", "boat"]
    assert cluster_terms(["Ann runs a shop."], np.array([0]), speakers=["Annabel"])["terms"].to_list() == [["shop"]]


def test_terms_share_no_word_and_do_not_cross_messages():
    terms = cluster_terms(["green tea"] * 3 + ["tea green"], np.zeros(4, int), n_terms=9)["terms"][0].to_list()
    words = " ".join(terms).split()
    assert len(words) == len(set(words))
    crossing = cluster_terms(["a boat", "house"], np.zeros(2, int), n_terms=9)["terms"][0].to_list()
    assert crossing == ["boat", "house"]


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
    with pytest.raises(DataError, match="1 texts but 1 labels and 2 speakers"):
        cluster_terms(["a"], np.array([0]), speakers=["Ann", "Mel"])


@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(st.text(max_size=30), st.integers(-1, 3)), max_size=12), st.integers(0, 4))
def test_any_text_gives_every_cluster_a_row(rows, n_terms):
    labels = np.array([label for _, label in rows], dtype=int)
    terms = cluster_terms([text for text, _ in rows], labels, n_terms=n_terms)
    assert terms["label"].to_list() == sorted(set(labels[labels >= 0].tolist()))
    assert terms["size"].sum() == (labels >= 0).sum()
    assert all(len(t) <= n_terms for t in terms["terms"].to_list())
