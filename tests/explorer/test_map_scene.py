"""What the map shows of a question, without a widget."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from explored import ASKED, BENCH, DATA, PLACES, SCOPE, scene
from hypothesis import given
from hypothesis import strategies as st

import memlab
from memlab.embed.speaker_centring import SHRINKAGE
from memlab.errors import DataError
from memlab.explorer import answer_payload, build_scene, interpolate_positions, snippet
from memlab.explorer.map_scene import both_maps
from memlab.text.text_analyser import tokenize


def test_a_map_made_before_is_taken_as_it_is() -> None:
    of_scope = PLACES.join(
        DATA.turns.filter(scope=SCOPE), on="turn_id", how="semi", maintain_order="left"
    )
    assert scene().turns["turn_id"].to_list() == of_scope["turn_id"].to_list()
    assert scene().turns["label"].to_list() == of_scope["label"].to_list()
    assert np.corrcoef(scene().turns["x"], of_scope["x"])[0, 1] == pytest.approx(1)
    assert np.abs(scene().turns.select("x", "y").to_numpy()).max() <= 0.9501
    with pytest.raises(
        DataError, match=rf"{scene().turns.height - 1} turns of {SCOPE!r} have no place"
    ):
        build_scene(BENCH, SCOPE, places=of_scope.head(1))
    with pytest.raises(DataError, match="no scope 'nobody'"):
        build_scene(BENCH, "nobody")
    with pytest.raises(DataError, match="no vectors"):
        build_scene(memlab.Bench.of(DATA, encoder=None), SCOPE)


def test_turns_of_equal_vectors_lie_in_one_place_and_both_layouts_share_a_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from memlab.cluster import umap_projection

    searched = []
    search = umap_projection._search_nearest_neighbours

    def counted(rows: np.ndarray, n_neighbors: int, seed: int) -> umap_projection.Neighbours:
        searched.append(len(rows))
        return search(rows, n_neighbors, seed)

    monkeypatch.setattr(umap_projection, "_search_nearest_neighbours", counted)
    monkeypatch.setattr(umap_projection, "_kept_layouts", {})
    monkeypatch.setattr(umap_projection, "_last_neighbours", {})
    words = [f"word{number} thing{number % 7}" for number in range(40)]
    messages = [
        {"scope": "me", "sender": "user", "role": "user", "id": f"m{place}", "text": text}
        for place, text in enumerate([*words, *words[:5]])
    ]
    bench = memlab.Bench.of(memlab.datasets.chatlog.dataset(messages, "log"), encoder="hashing")
    turns = build_scene(bench, "me", service=None).turns
    places = turns.select("x", "y").to_numpy()
    assert np.array_equal(places[:5], places[40:])
    assert searched == [40]


def test_a_turn_asked_for_lands_within_the_map() -> None:
    placed, xy = (
        interpolate_positions(scene(), scene().vectors[:5]),
        scene().turns.select("x", "y").to_numpy(),
    )
    assert placed.shape == (5, 2)
    assert ((xy.min(axis=0) <= placed) & (placed <= xy.max(axis=0))).all()


def test_a_question_lies_at_the_message_that_it_repeats() -> None:
    few = memlab.sample(turns=4)
    bench = memlab.Bench.of(few, encoder="hashing")
    for of_bench, built, messages in (
        (bench, build_scene(bench, few.scopes[0]), 4),
        (BENCH, scene(), 40),
    ):
        turns = built.turns.head(messages)
        for turn in turns.iter_rows(named=True):
            same = built.turns.filter(text=turn["text"]).select("x", "y").rows()
            asked = f" {turn['text'].upper()}\n"
            placed = answer_payload(built, of_bench, asked, ["bm25"])
            assert (placed["x"], placed["y"]) in same


def test_a_new_question_is_no_middle_of_a_memory_of_few_turns() -> None:
    few = memlab.sample(turns=4)
    bench = memlab.Bench.of(few, encoder="hashing")
    built = build_scene(bench, few.scopes[0])
    places = built.turns.select("x", "y").to_numpy()
    middle = places.mean(axis=0)
    placed = interpolate_positions(built, built.vectors)
    nearest = np.linalg.norm(placed[:, None] - places, axis=2).min(axis=1)
    assert (nearest < np.linalg.norm(placed - middle, axis=1)).all()


def test_hits_misses_and_what_came_instead_are_told_apart() -> None:
    run, asked = (
        memlab.pipeline("bm25").run(BENCH),
        {"query_id": ASKED["query_id"], "evidence": ASKED["evidence"]},
    )
    known = answer_payload(scene(), BENCH, ASKED["text"], [run, "dense"], k=5, **asked)
    ids = scene().turns["turn_id"].to_list()
    assert sorted(ids[i] for i in known["evidence"]) == sorted(ASKED["evidence"])
    for system, ranked in zip(
        known["systems"], (run, memlab.pipeline("dense").run(BENCH)), strict=True
    ):
        expected = (
            ranked.frame.filter(pl.col("query_id") == ASKED["query_id"])
            .sort("rank")["doc_id"]
            .to_list()
        )
        assert [(ids[row["i"]], row["hit"]) for row in system["rows"]] == [
            (d, d in ASKED["evidence"]) for d in expected[:5]
        ]
        ranks = {doc: rank for rank, doc in enumerate(expected, 1)}
        missed = {doc: ranks.get(doc) for doc in set(ASKED["evidence"]) - set(expected[:5])}
        assert {ids[row["i"]]: row["rank"] for row in system["missed"]} == missed
        for row in system["rows"]:
            words = tokenize([scene().turns["text"][row["i"]]])[0]
            assert set(tokenize([" ".join(row["words"])])[0]) <= set(words)


def test_a_new_question_is_ranked_as_one_of_the_bench_is_and_among_some_turns_where_asked() -> None:
    known = answer_payload(scene(), BENCH, ASKED["text"], ["dense"], query_id=ASKED["query_id"])
    new = answer_payload(scene(), BENCH, ASKED["text"], ["dense"])
    assert [row["i"] for row in new["systems"][0]["rows"]] == [
        row["i"] for row in known["systems"][0]["rows"]
    ]
    among = np.array([row["i"] for row in known["systems"][0]["rows"]][3:6])
    few = answer_payload(scene(), BENCH, ASKED["text"], ["dense"], among=among)
    assert [row["i"] for row in few["systems"][0]["rows"]] == among.tolist()
    with pytest.raises(DataError, match=r"no question 'q\?'"):
        answer_payload(scene(), BENCH, "x", ["dense"], query_id="q?")


@given(st.text(max_size=600), st.text(max_size=60), st.integers(20, 300))
def test_a_snippet_is_of_the_text_and_short(text: str, question: str, length: int) -> None:
    cut = snippet(text, question, length=length)
    assert len(cut) <= max(length, 0) + 4
    if len(text) <= length:
        assert cut == text


def test_both_maps_have_every_turn_and_the_question_once() -> None:
    points, questions = both_maps(BENCH, SCOPE, query_id=ASKED["query_id"], k=5)
    assert points.height == 2 * scene().turns.height
    encoded, centred = points["panel"].unique(maintain_order=True)
    assert questions["panel"].to_list() == [encoded, centred]
    assert encoded.startswith("as encoded: the most similar turn is the same speaker's for ")
    for head in (encoded, centred):
        of_map = points.filter(panel=head)
        assert sorted(of_map.filter("evidence")["turn_id"]) == sorted(ASKED["evidence"])
        assert sorted(of_map["rank"].drop_nulls()) == [1, 2, 3, 4, 5]
        low, high = of_map.select("x", "y").min().row(0), of_map.select("x", "y").max().row(0)
        at = questions.filter(panel=head).select("x", "y").row(0)
        assert all(a <= b <= c for a, b, c in zip(low, at, high, strict=True))
    unasked, nothing = both_maps(BENCH, SCOPE)
    assert nothing.is_empty()
    assert unasked["rank"].null_count() == unasked.height
    assert not unasked["evidence"].any()


def test_a_question_of_nobody_is_placed_among_centred_turns() -> None:
    built = build_scene(BENCH, SCOPE, places=PLACES)
    documents = BENCH.documents("turn")
    first, last = documents.spans[SCOPE]
    np.testing.assert_array_equal(built.compared, documents.speaker_centred()[first:last])
    encoded = build_scene(BENCH, SCOPE, places=PLACES, centred=False)
    np.testing.assert_array_equal(encoded.compared, encoded.vectors)
    assert not encoded.origin.any()
    mean = built.vectors.sum(axis=0, dtype=np.float64) / (len(built.vectors) + SHRINKAGE)
    np.testing.assert_allclose(built.origin, mean, atol=1e-7)
