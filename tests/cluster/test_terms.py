"""Names of clusters, in English and in other languages."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from memlab.cluster import NOISE, cluster_terms
from memlab.cluster.terms import content_word_filter


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
