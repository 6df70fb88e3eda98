"""What is kept of a large scope finds in all of its turns what BM25 and late interaction find."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from stand_in import StandIn

import memlab
from memlab import Bench, Dataset, MemoryStore
from memlab.embed.tokens import TokenVectors
from memlab.records import Level
from memlab.retrieve import counting, hits, narrow
from memlab.retrieve.bm25 import bm25_scores
from memlab.retrieve.counting import Gathering
from memlab.retrieve.index import Counted, Whole
from memlab.retrieve.late import late_scores, query_tokens
from memlab.retrieve.postings import Lookup, by_words, nearest
from memlab.store.postings import Shared


@pytest.fixture(scope="module")
def data() -> Dataset:
    return memlab.sample(["owen"])


@pytest.fixture(scope="module")
def store(data: Dataset, tmp_path_factory: pytest.TempPathFactory) -> MemoryStore:
    store = MemoryStore.open(tmp_path_factory.mktemp("postings") / "store")
    store.ingest(data)
    store.vectors.backfill(StandIn(), data.name, progress=False)
    store.search.create_indexes(StandIn())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(narrow, "LARGE", 300)
        counting.fill(store, data.name, StandIn(), progress=False)
    return store


@pytest.fixture(scope="module")
def bench(data: Dataset) -> Bench:
    return Bench.of(data, encoder=StandIn(), progress=False)


@pytest.mark.parametrize("level", ["turn", "session"])
def test_bm25_over_the_postings_is_that_over_the_turns(
    store: MemoryStore, data: Dataset, bench: Bench, level: Level
) -> None:
    scope, encoder = data.scopes[0], StandIn()
    shared, whole = (
        store.postings.shared(encoder, data.name, scope),
        narrow._whole(store, data.name, scope, encoder, "en"),
    )
    assert shared is not None
    assert whole is not None
    lengths = shared.turns if level == "turn" else shared.sessions
    assert shared.ids.to_list() == bench.documents("turn").ids.tolist()
    scores = next(iter(bm25_scores(bench, level=level)))[2]
    for words, expected in zip(bench.query_words, scores, strict=True):
        terms = [f"{level}:{word}" for word in words]
        found = store.postings.read(encoder, data.name, scope, terms)
        made = by_words(level, words, found, lengths, whole)
        np.testing.assert_allclose(made, expected, atol=1e-5)


def test_what_late_interaction_finds_first_is_near_the_front(store: MemoryStore, data: Dataset, bench: Bench) -> None:
    scope, encoder = data.scopes[0], StandIn()
    shared, whole = (
        store.postings.shared(encoder, data.name, scope),
        narrow._whole(store, data.name, scope, encoder, "en"),
    )
    assert shared is not None
    late, shares = next(iter(late_scores(bench, level="turn")))[2], []
    for row, expected in enumerate(late):
        near = Lookup(query_tokens(bench).take(np.array([row])), shared, whole)
        scores = near.scores(store.postings.read(encoder, data.name, scope, near.terms()), len(shared.ids))
        first = np.argsort(-scores, kind="stable")[:50]
        shares.append(np.isin(np.argsort(-expected, kind="stable")[:10], first).mean())
    assert np.mean(shares) > 0.7  # of a tenth drawn at random it would be .1


def test_the_nearest_by_their_signs_are_about_the_nearest(store: MemoryStore, data: Dataset, bench: Bench) -> None:
    shared = store.postings.shared(StandIn(), data.name, data.scopes[0])
    assert shared is not None
    vectors, shares = bench.documents("turn").vectors(), []
    for asked in bench.query_vectors[:20]:
        places, scores = nearest(asked[None], shared.codes, 50)
        assert 50 <= len(places) < 150
        exact = vectors @ asked
        shares.append(np.isin(np.argsort(-exact, kind="stable")[:10], places).mean())
        assert np.corrcoef(scores, exact[places])[0, 1] > 0.3
    assert np.mean(shares) > 0.6  # of a tenth drawn at random it would be .1
    assert nearest(bench.query_vectors[:1], shared.codes, 10_000)[0].tolist() == list(range(bench.turns.height))


def test_a_match_no_better_than_usual_counts_nothing_and_each_turn_has_its_best() -> None:
    basis = np.eye(8, dtype=np.float32)
    whole = Whole({"turn": Counted(100, 300, 900, {})}, np.array([2, 3, 90, 0]))
    shared = Shared(pl.Series(["x"]), *np.zeros((2, 1)), np.arange(3), basis[:3], np.zeros((1, 1), np.uint64))
    near = Lookup(TokenVectors(np.array([0], np.int32), basis[:1].astype(np.float16), np.array([0, 1])), shared, whole)
    near.near = [(1.0, np.array([0, 1]), np.array([0.5, 0.2]))]
    found = {"token:0": ("token:0", np.array([4, 7]), np.ones(2)), "token:1": ("token:1", np.array([4, 5]), np.ones(2))}
    np.testing.assert_allclose(near.scores(found, 9), [0, 0, 0, 0, 0.5, 0.2, 0, 0.5, 0])
    common = Lookup(
        TokenVectors(np.array([2], np.int32), basis[2:3].astype(np.float16), np.array([0, 1])), shared, whole
    )
    assert "token:2" not in common.terms()


def test_turns_are_gathered_in_parts_as_in_one() -> None:
    texts = [["a", "b", "a"], [], ["b"], ["c", "a"]]
    one, parts = Gathering(), Gathering()
    one.words("turn", texts)
    parts.words("turn", texts[:2])
    parts.words("turn", texts[2:])
    for made in (one, parts):
        assert made.lengths["turn"].tolist() == [3, 0, 1, 2]
        assert [(t, turns.tolist(), n.tolist()) for t, turns, n in made.terms()] == [
            ("turn:a", [0, 3], [2, 1]), ("turn:b", [0, 2], [1, 1]), ("turn:c", [3], [1]),
        ]  # fmt: skip


def test_sessions_are_those_that_all_turns_speak_for(store: MemoryStore, data: Dataset, monkeypatch) -> None:
    """Neither nearest by meaning nor best by words: only all turns of its session together bring it up."""
    listed = pl.DataFrame({"session_id": ["a", "empty", "b"], "n": [1, 2, 3], "n_turns": [2, 0, 3], "place": [0, 1, 2]})
    near, ids = (np.array([1]), np.array([1.0])), pl.Series(["a1", "a2", "b1", "b2", "b3"])
    looked = np.array([0.0, 0.1, 0.2, 3.0, 0.1]), np.array([0.0, 1.0])
    found = hits.first_sessions(listed, ids, looked, near)
    assert found.sort("rank", "turn_id")["turn_id"].to_list() == ["b2", "a2"]
    assert found["session_id"].n_unique() == 2
    monkeypatch.setattr(hits, "HITS", 1)
    assert hits.first_sessions(listed, ids, looked, near)["turn_id"].to_list() == ["b2"]


def test_what_was_kept_of_another_state_is_not_read(store: MemoryStore, data: Dataset, tmp_path: Path) -> None:
    own, scope, encoder = MemoryStore.open(tmp_path / "store"), data.scopes[0], StandIn()
    own.ingest(data)
    asked = data.questions[0].select("scope", "text")
    own.vectors.backfill(encoder, data.name, progress=False)
    own.search.create_indexes(encoder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(narrow, "LARGE", 300)
        counting.fill(own, data.name, encoder, progress=False)
        assert own.postings.shared(encoder, data.name, scope) is not None
        text = pl.when(pl.col("n") == 1).then(pl.lit("Zanzibar!")).otherwise("text")
        own.ingest(Dataset(data.name, data.format, turns=data.turns.with_columns(text=text), sessions=data.sessions,
                           questions=data.questions))  # fmt: skip
        own.vectors.backfill(encoder, data.name, progress=False)
        assert own.postings.shared(encoder, data.name, scope) is None
        assert narrow.around(own, data.name, asked, encoder=encoder).turns.height
        counting.fill(own, data.name, encoder, progress=False)
    assert own.postings.shared(encoder, data.name, scope) is not None
    found = own.postings.read(encoder, data.name, scope, ["turn:zanzibar"])
    assert len(found["turn:zanzibar"][1]) == data.sessions.height
    rows = own.database.cache("postings", encoder.identity.key)
    assert rows.count_rows() == len(set(rows.to_arrow()["key"].to_pylist()))
    assert len(set(rows.to_arrow()["scope"].to_pylist())) == 1
