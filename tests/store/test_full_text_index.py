"""Turns are found by their words right after the ingest, with one score for one text; counts of scopes hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest
from store_data import FakeEncoder, build

from memlab.errors import StoreError
from memlab.records import LEVELS, Dataset, Question, Session, Turn, frame
from memlab.retrieve import Bench, bm25
from memlab.store import MemoryStore, full_text_index, scope_statistics
from memlab.text.bm25_formula import WordStatistics
from memlab.text.text_analyser import ANALYSER

SCOPE = "ann"
OTHER = ["the train was late", "we cooked some soup", "rain all day", "he plays the piano"] * 5


def talk(*sessions: Sequence[str], language: str = "en") -> Dataset:
    """Give one scope whose sessions say some texts."""
    when, turns, listed = datetime(2026, 1, 2, tzinfo=UTC), list[Turn](), list[Session]()
    for number, texts in enumerate(sessions):
        session = f"{SCOPE}/{number}"
        listed.append(Session(session, SCOPE, number + 1, when, when, len(texts), ["Ann"]))
        for n, text in enumerate(texts, 1):
            turns.append(
                Turn(f"{session}/{n}", SCOPE, session, n, "user", "user", text, None, when)
            )
    tables = frame(Turn, turns), frame(Session, listed), frame(Question)
    return Dataset("talk", "chatlog", *tables, language=language)


def found(store: MemoryStore, query: str, k: int = 1000) -> dict[str, float]:
    hits = store.search.by_text([query], dataset="talk", scopes=[SCOPE], k=k)
    return dict(hits.select("doc_id", "score").iter_rows())


def exact(data: Dataset, query: str) -> dict[str, float]:
    """Score the turns of a dataset by BM25 over all of them, those with a word of the query."""
    asked = pl.DataFrame({"scope": [SCOPE], "text": [query]})
    run = bm25(Bench.of(data, encoder=None).with_queries(asked), k=data.turns.height).frame
    return dict(run.filter(pl.col("score") > 1e-6).select("doc_id", "score").iter_rows())


def filled(store: MemoryStore, data: Dataset) -> MemoryStore:
    store.ingest(data)
    store.search.create_indexes()
    return store


def test_equal_texts_have_one_score_right_after_the_ingest(store: MemoryStore) -> None:
    old = ["pizza pie", "pizza pie", *OTHER]
    filled(store, talk(old))
    data = talk(old, ["pizza pie"] * 20)
    store.ingest(data)
    got = found(store, "pizza pie")
    assert len(got) == 22
    assert len(set(got.values())) == 1
    assert got == pytest.approx(exact(data, "pizza pie"), abs=1e-4)
    before = store.table(f"words_en_{ANALYSER}").version
    store.search.create_indexes()  # so many came that the index is filled again
    assert store.table(f"words_en_{ANALYSER}").version > before
    assert found(store, "pizza pie") == pytest.approx(got)


def test_what_was_said_last_is_found_among_many_older_turns(store: MemoryStore) -> None:
    old = [f"pizza with {word}" for word in ("salt", "oil", "corn", "ham")] * 300
    filled(store, talk(old))
    data = talk(old, ["pizza pizza pie", *["rain"] * 100])
    store.ingest(data)
    assert list(found(store, "pizza", k=1)) == [f"{SCOPE}/1/1"]
    index = store.table(f"words_en_{ANALYSER}")
    before = index.version
    store.search.create_indexes()  # too few came for that
    assert index.version == before
    assert list(found(store, "pizza", k=1)) == [f"{SCOPE}/1/1"]


def test_changed_and_removed_turns_are_found_as_they_are(store: MemoryStore) -> None:
    old = ["red shoes", "blue hat", *OTHER]
    filled(store, talk(old))
    data = talk(["red shoes", "green hat", *OTHER[:-3]])
    store.ingest(data)
    for query in ("blue", "green hat", "piano", "red shoes and rain"):
        assert found(store, query) == pytest.approx(exact(data, query), abs=1e-4)
    store.ingest(talk(OTHER))
    assert found(store, "shoes hat") == {}


@pytest.mark.parametrize("query", ["resume", "résumé", "cliche", "CLICHÉS", "cafe\u0301"])
def test_both_spellings_find_both(store: MemoryStore, query: str) -> None:
    said = ["my résumé", "a resume", "what a cliché", "such cliches", "the café", "a cafe"]
    data = talk([*said, *OTHER])
    got = found(filled(store, data), query)
    assert len(got) == 2
    assert got == pytest.approx(exact(data, query), abs=1e-5)


def test_long_words_are_found(store: MemoryStore) -> None:
    key = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    data = talk([f"the key is {key}", *OTHER])
    assert found(filled(store, data), f"what is {key}?") == pytest.approx(exact(data, key))


def test_a_scope_scores_by_its_own_words_alone(store: MemoryStore) -> None:
    data = talk(["pizza pie", *OTHER])
    loud = replace(build(1, 2, 50), name="loud")
    said = loud.turns.with_columns(text=pl.lit("pizza pizza pizza"))
    store.ingest([data, replace(loud, turns=said)])
    store.search.create_indexes()
    assert found(store, "pizza") == pytest.approx(exact(data, "pizza"))


def test_a_query_of_zeros_is_refused(store: MemoryStore) -> None:
    store.ingest(build())
    store.vectors.backfill(FakeEncoder(), "small", progress=False)
    queries = np.stack([np.ones(8), np.zeros(8)])
    with pytest.raises(StoreError, match="row 1 holds zeros alone"):
        store.search.by_vector(
            queries, column="vector_fake_8", dataset="small", scopes=["scope-0"] * 2, k=3
        )


SESSIONS = [[f"{word} in spring", "rain", f"a {word}"] for word in ("salt", "oil", "corn", "ham")]


@pytest.fixture
def counted(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    """Give a store that keeps the counts of a scope of 40 turns and more."""
    monkeypatch.setattr(scope_statistics, "KEPT_FROM", 40)
    return filled(store, talk(*SESSIONS, OTHER, OTHER))


def assert_counts(store: MemoryStore, data: Dataset) -> None:
    """Compare the counts of turns and sessions with those of everything that is there."""
    bench = Bench.of(data, encoder=None)
    got = store.search.statistics.read_or_count_scope_statistics("talk", SCOPE, language="en")
    for level in LEVELS:
        whole = WordStatistics.of(bench.documents(level).words)
        own: WordStatistics = getattr(got, level)
        assert (own.n, own.length, own.squares) == (whole.n, whole.length, whole.squares)
        assert +own.frequency == whole.frequency


def test_kept_counts_follow_what_is_ingested(
    counted: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, split = list[str](), full_text_index.tokenize

    def counting(texts: list[str], language: str) -> list[list[str]]:
        read.extend(texts)
        return split(texts, language=language)

    monkeypatch.setattr(full_text_index, "tokenize", counting)
    monkeypatch.setattr(scope_statistics, "tokenize", counting)
    assert_counts(counted, talk(*SESSIONS, OTHER, OTHER))
    assert read == [], "nothing came since the counts were kept"
    more = talk(*SESSIONS, OTHER, [*OTHER, "salt came later"], ["a new salt"])
    counted.ingest(more)
    assert_counts(counted, more)
    assert len(read) == 2 + 2 + 1, "two turns, their two sessions, and what one of these was"
    less = talk(*SESSIONS, ["it rains", *OTHER[1:]])
    counted.ingest(less)
    assert_counts(counted, less)


def test_an_interrupted_filling_leaves_no_wrong_counts(
    counted: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = talk(*SESSIONS, OTHER, OTHER, OTHER)
    counted.ingest(more)
    with monkeypatch.context() as failing:
        failing.setattr(
            scope_statistics.Statistics,
            "count_and_keep_words_of_large_scopes",
            lambda *_: (_ for _ in ()).throw(KeyboardInterrupt),
        )
        with pytest.raises(KeyboardInterrupt):
            counted.search.create_indexes()
    assert_counts(MemoryStore.open(counted.uri), more)


def test_a_view_on_earlier_versions_finds_and_counts_what_it_holds(counted: MemoryStore) -> None:
    before = counted.versions()
    counted.ingest(talk(*SESSIONS, OTHER, OTHER, OTHER))
    counted.search.create_indexes()
    view = counted.at(before)
    assert_counts(view, talk(*SESSIONS, OTHER, OTHER))
    assert found(view, "piano") == pytest.approx(exact(talk(*SESSIONS, OTHER, OTHER), "piano"))


def test_tokens_that_were_counted_before_the_last_ingest_are_named(
    counted: MemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    encoder, counts = FakeEncoder(), [(2, np.array([1, 2, 0])), (3, np.array([0, 3, 1, 0]))]
    assert (
        counted.search.statistics.read_or_count_scope_statistics(
            "talk", SCOPE, language="en", encoder=encoder
        ).tokens
        is None
    )
    counted.search.statistics.sum_and_keep_token_counts("talk", SCOPE, encoder, counts)

    def tokens() -> scope_statistics.TokenStatistics | None:
        read = counted.search.statistics.read_or_count_scope_statistics
        return read("talk", SCOPE, language="en", encoder=encoder).tokens

    kept = tokens()
    assert kept is not None
    assert (kept.n, kept.frequency.tolist()) == (5, [1.0, 5.0, 1.0, 0.0])
    assert "changed since its tokens were counted" not in caplog.text
    counted.ingest(talk(*SESSIONS, OTHER))
    assert tokens() is not None
    assert "scope ann of talk changed since its tokens were counted" in caplog.text
