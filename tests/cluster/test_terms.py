"""Names of clusters; how sets of turns lie in clusters by chance, and cosines of pairs, by hand."""

from __future__ import annotations

import logging

import numpy as np
import polars as pl
import pytest

import memlab
from memlab.cluster import NOISE, cluster_terms, observed_and_null_spread, pair_similarity
from memlab.cluster.evidence_spread import PAIR_KINDS
from memlab.cluster.key_terms import content_word_test_of_language
from memlab.errors import DataError
from memlab.text.closed_word_classes import CONTRACTIONS, STOP_WORDS
from memlab.text.tokens_and_sentences import words


def test_weights_are_class_based_tf_idf() -> None:
    """By hand, as tf and df of two clusters: apple (3, 2) in the first weighs .95, pear (2, 1) there 1.34."""
    texts = ["an apple, an apple, an apple", "a pear or a pear", "an apple", "a grape"]
    assert cluster_terms(texts, np.array([0, 0, 1, 1]))["terms"].to_list() == [
        ["pear", "apple"],
        ["grape", "apple"],
    ]


def test_what_several_say_counts_more_and_their_names_do_not() -> None:
    texts = ["Ann saw a boat.", "A boat!", "The lamp is a lamp."]
    for who in ("AAA", ["Ann", "B", "B"]):
        assert cluster_terms(texts, np.zeros(3, int), speakers=who)["terms"][0][0] == "boat"
    assert cluster_terms(["Ann has a shop."], np.array([0]), speakers=["Annabel"])[
        "terms"
    ].to_list() == [["shop"]]


def test_a_phrase_of_several_words_is_a_name_where_the_texts_have_it_twice() -> None:
    """In whichever cluster: "cargo bike" names both, "green door" none."""
    texts = ["A cargo bike by a green door.", "My cargo bike and a lamp."]
    first, second = cluster_terms(texts, np.array([0, 1]), n_terms=5)["terms"].to_list()
    assert first == ["green", "door", "cargo bike"]
    assert second == ["lamp", "cargo bike"]


def test_no_function_word_names_a_cluster_however_it_is_written() -> None:
    texts = [
        "Im sure youre fine, didnt it go well? We show what we have, and theyre away.",
        "I'm sure you're fine, didn't it go well? That's what we'd want. It's me, isn't it?",
        "dont, wont, cant, ill, ive, thats, theres and whats left is actually nearly free",
    ]
    assert cluster_terms(texts, np.array([0, 0, 0]))["terms"].to_list() == [[]]
    sample = memlab.sample()
    scopes = {scope: number for number, scope in enumerate(sample.scopes)}
    labels = sample.turns["scope"].replace_strict(scopes).to_numpy()
    named = cluster_terms(sample.turns["text"].to_list(), labels, n_terms=60)["terms"]
    found = {word for terms in named for term in terms for word in words(term)}
    assert len(found) > 200
    assert not found & STOP_WORDS
    short_forms = {word.replace("'", "") for word in CONTRACTIONS}
    assert not found & (short_forms - {"hell", "id", "shed", "shell", "wed"})


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


def test_a_language_without_stop_words_has_no_names_and_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    content_word_test_of_language.cache_clear()
    with caplog.at_level(logging.WARNING, "memlab"):
        for _ in range(2):
            assert cluster_terms(["नमस्ते संसार"], np.array([0]), language="ne")[
                "terms"
            ].to_list() == [[]]
    assert len(caplog.records) == 1


def labelled(scope: str, labels: list[int], *, draw: int = 0) -> pl.DataFrame:
    ids = [f"{scope}{i}" for i in range(len(labels))]
    return pl.DataFrame(
        {"scope": scope, "turn_id": ids, "label": pl.Series(labels, dtype=pl.Int64), "draw": draw}
    )


def test_sets_lie_in_clusters_as_counted_and_permuted_labels_as_random_sets_do() -> None:
    """Each turn of noise is a group of its own, and scopes do not mix."""
    own = [0] * 5 + [1] * 4 + [NOISE] * 3
    labels = pl.concat([labelled("a", own), labelled("b", [0] * 10)])
    chosen = {"q": ["a0", "a1", "a5", "a10"], "r": ["a9"], "s": ["b2", "b4"]}
    sets = pl.DataFrame({"query_id": chosen.keys(), "turn_id": chosen.values()}).explode("turn_id")
    observed, null = observed_and_null_spread(sets, labels, draws=4000)
    np.testing.assert_allclose(observed, [[3, 0.5, 1 / 6], [1, 1, np.nan], [1, 1, 1]])
    assert null[:, 0, 2].mean() == pytest.approx((10 + 6) / 66, abs=0.01), (
        "pairs of one label among all pairs"
    )
    assert (null[:, 2] == 1).all()
    twice = pl.concat([labels, labelled("a", [0] * 12, draw=1), labelled("b", [0] * 10, draw=1)])
    np.testing.assert_allclose(observed_and_null_spread(sets, twice)[0], (observed + 1) / 2)
    with pytest.raises(DataError, match="'c1' has no label"):
        observed_and_null_spread(sets.with_columns(turn_id=pl.lit("c1")), labels)
    with pytest.raises(DataError, match="more than one label"):
        observed_and_null_spread(sets, pl.concat([labels, labels]))


def test_pair_similarity_by_hand() -> None:
    """The only turn of either scope that is no evidence is the one that is drawn; as they are encoded."""
    vectors = {
        "a1": [1, 0],
        "a2": [0.6, 0.8],
        "b1": [0, 9],
        "a3": [0, 1],
        "b2": [0.8, -0.6],
        "a4": [8, 6],
    }
    sessions = [{"a1": "s", "a2": "s", "a4": "t"}.get(turn, "u") for turn in vectors]
    turns = pl.DataFrame(
        {"turn_id": [*vectors], "scope": [turn[0] for turn in vectors], "session_id": sessions}
    ).with_columns(speaker=pl.col("turn_id").replace({"a1": "Ana", "a3": "Ana"}))
    asked = pl.DataFrame({"query_id": ["p", "q"], "evidence": [["b1"], ["a1", "a2", "a4"]]})
    given = {
        "question_embeddings": np.array([[0, 1], [2, 0]]),
        "turns": turns.reverse(),
        "n_random": 2,
        "centred": False,
    }
    pairs = pair_similarity(np.array([*vectors.values()]), [*vectors], asked, **given)
    same, other, random, of_speaker, evidence, best = PAIR_KINDS
    expected = {
        "p": {random: [-0.6, -0.6], evidence: [1], best: [-0.6]},
        "q": {
            same: [0.6],
            other: [0.8, 0.96],
            random: [0, 0, 0.8, 0.8, 0.6, 0.6],
            of_speaker: [0, 0],
            evidence: [1, 0.6, 0.8],
            best: [0],
        },
    }
    for query_id, kinds in expected.items():
        for kind in PAIR_KINDS:
            found = pairs.filter(kind=kind, query_id=query_id)["similarity"].to_list()
            assert found == pytest.approx(kinds.get(kind, []), abs=1e-6), (query_id, kind)


def test_labels_permuted_within_speakers_keep_what_each_speaker_says_of_a_cluster() -> None:
    """Clusters that are speakers: a set of one speaker is no more together than chance of that speaker is."""
    labels = labelled("a", [0] * 6 + [1] * 4 + [NOISE] * 2)
    speakers = labels.select("turn_id", speaker=pl.Series(["Ana"] * 6 + ["Mika"] * 6))
    sets = pl.DataFrame({"query_id": ["q", "q", "r", "r"], "turn_id": ["a0", "a3", "a6", "a7"]})
    observed, null = observed_and_null_spread(sets, labels, speakers=speakers, draws=4000)
    np.testing.assert_allclose(observed[:, 2], [1, 1])
    assert (null[:, 0] == [1, 1, 1]).all(), "all that Ana says is in one cluster"
    assert null[:, 1, 2].mean() == pytest.approx(6 / 15, abs=0.02), "pairs of Mika's in one cluster"
    plain = observed_and_null_spread(sets, labels, draws=4000)[1]
    assert plain[:, 0, 2].mean() == pytest.approx((15 + 6) / 66, abs=0.02)
    one = speakers.with_columns(speaker=pl.lit("Ana"))
    same = observed_and_null_spread(sets, labels, speakers=one, draws=4000)[1]
    np.testing.assert_array_equal(same, plain)
    with pytest.raises(DataError, match="'a11' is not listed"):
        observed_and_null_spread(sets, labels, speakers=speakers.head(11))


def test_similar_by_speaker_alone_is_not_similar_once_centred() -> None:
    rng = np.random.default_rng(0)
    names, topics = np.eye(24)[:2], np.eye(24)[2:22]
    speaker, topic = np.repeat([0, 1], 60), np.tile(np.arange(20), 6)
    vectors = 2 * names[speaker] + topics[topic] + 0.05 * rng.normal(size=(120, 24))
    ids = [f"t{i}" for i in range(120)]
    turns = pl.DataFrame({"turn_id": ids, "scope": "u", "session_id": ids})
    turns = turns.with_columns(speaker=pl.Series(np.array(["Ana", "Mika"])[speaker]))
    asked = pl.DataFrame(
        {"query_id": ["same topic", "speaker"], "evidence": [["t0", "t20"], ["t1", "t2"]]}
    )
    given = {"question_embeddings": vectors[:2], "turns": turns, "n_random": 50}
    means = {}
    for centred in (False, True):
        pairs = pair_similarity(vectors, ids, asked, **given, centred=centred)
        for row in pairs.group_by("query_id", "kind").agg(pl.col("similarity").mean()).iter_rows():
            means[centred, row[0], row[1]] = row[2]
    of_speaker, evidence = "evidence – random, same speaker", "evidence, other session"
    for topical, lowest in (("same topic", 0.9), ("speaker", -0.2)):
        assert means[False, topical, of_speaker] > 0.75
        assert abs(means[True, topical, of_speaker]) < 0.15
        assert means[True, topical, evidence] > lowest
    assert means[True, "speaker", evidence] < 0.15
    for kind in ("question – evidence", "question – best other"):
        assert means[True, "speaker", kind] == means[False, "speaker", kind]
