"""A large memory is cut down to the sessions around a question, and ranked as the whole of it is."""

from __future__ import annotations

import importlib
import logging
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from stand_in import StandIn

import memlab
from memlab import Bench, Dataset, MemoryStore, pipeline
from memlab.records import LEVELS, concat
from memlab.retrieve import counting, hits, narrow, passages
from memlab.retrieve.arrays import standardised
from memlab.retrieve.index import ScopeWords
from memlab.retrieve.late import query_tokens, scope_tokens

late_module = importlib.import_module("memlab.retrieve.late")

PIPELINES = (
    "bm25",
    "dense",
    "best | mmr",
    *(pytest.param(each, marks=pytest.mark.nightly) for each in ("combsum", "best")),
)
LARGE = 300
"""Of the two scopes one is larger, one smaller."""


@pytest.fixture(scope="module")
def data() -> Dataset:
    return concat([memlab.sample(["nadia"]), memlab.sample(["owen"], turns=200)])


@pytest.fixture(scope="module")
def bench(data: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    store = MemoryStore.open(tmp_path_factory.mktemp("narrow") / "store")
    bench = Bench.of(data, encoder=StandIn(), store=store, progress=False)
    assert bench.turn_vectors is not None
    assert bench.encoder is not None
    store.search.create_indexes(bench.encoder)
    return bench


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(narrow, "LARGE", LARGE)


def sizes(data: Dataset) -> dict[str, int]:
    return dict(data.turns.group_by("scope").len().iter_rows())


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_only_questions_of_large_scopes_are_narrowed_and_a_line_says_so(
    bench: Bench, data: Dataset, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        parts = list(narrow.narrowed(bench) or ())
    large = bench.queries.filter(pl.col("scope").replace_strict(sizes(data)) >= LARGE)
    assert 0 < large.height < bench.queries.height
    assert f"{large.height} of {bench.queries.height} questions" in caplog.text
    assert len(parts) == large.height + 1
    assert sorted(q for part in parts for q in part.queries["query_id"]) == sorted(bench.queries["query_id"])


def test_small_scopes_and_stores_without_indexes_are_compared_with_everything(bench: Bench, small: None) -> None:
    assert narrow.narrowed(bench.but(store=None)) is None


def test_a_bench_of_small_scopes_is_left_alone(bench: Bench) -> None:
    assert narrow.narrowed(bench) is None


@pytest.mark.slow
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("text", PIPELINES)
@pytest.mark.parametrize("level", ["turn", "session"])
def test_with_room_for_everything_the_ranking_is_that_of_everything(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, text: str, level: memlab.records.Level
) -> None:
    whole = pipeline(text).run(bench.but(store=None), level=level).top(10).frame
    for room, name in ((hits, "HITS"), (narrow, "TURNS"), (narrow, "SAMPLE"), (narrow, "NEAR")):
        monkeypatch.setattr(room, name, 2_000)
    run = pipeline(text).run(bench, level=level)
    assert run.provenance["path"] == "narrowed"
    assert run.top(10).frame.select("query_id", "doc_id").equals(whole.select("query_id", "doc_id"))


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_the_sample_stands_for_the_rest_of_the_scope(bench: Bench, data: Dataset, monkeypatch) -> None:
    monkeypatch.setattr(hits, "HITS", 5)
    monkeypatch.setattr(narrow, "SAMPLE", 150)
    for part in narrow.narrowed(bench) or ():
        if "weight" not in part.sessions.columns:
            continue
        scope = part.queries["scope"][0]
        n = data.sessions.filter(scope=scope).height
        assert part.sessions.height < n
        assert part.sessions["weight"].sum() == pytest.approx(n)
        assert part.turns.join(data.turns, on="turn_id", how="anti").height == 0


def test_hits_are_kept_with_their_neighbours_in_long_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(narrow, "LONG", 20)
    monkeypatch.setattr(narrow, "NEAR", 2)
    rows = [(f"{s}-{n}", s, n) for s, size in (("long", 40), ("short", 10)) for n in range(1, size + 1)]
    turns = pl.DataFrame(rows, schema=["turn_id", "session_id", "n"], orient="row")
    found = pl.DataFrame({"turn_id": ["short-4", "long-1", "long-30"], "rank": [0, 1, 2]})
    kept = narrow._cut(turns, found)
    assert turns["turn_id"].gather(kept).to_list() == [
        *(f"short-{n}" for n in range(1, 11)),
        *(f"long-{n}" for n in (1, 2, 3, 28, 29, 30, 31, 32)),
    ]


@pytest.mark.usefixtures("small")
def test_cross_validated_models_are_refused(bench: Bench, data: Dataset, tmp_path: Path) -> None:
    large = np.flatnonzero(bench.queries["scope"].replace_strict(sizes(data)).to_numpy() >= LARGE)
    with pytest.raises(memlab.DataError, match="cross-validated"):
        pipeline(f"best | learned(model={str(tmp_path)!r})").run(bench.with_rows(large))


def test_statistics_count_what_a_document_stands_for() -> None:
    rng = np.random.default_rng(0)
    scores, weight = rng.normal(size=(3, 6)), rng.integers(1, 5, 6)
    np.testing.assert_allclose(
        standardised(scores, weight.astype(float)),
        standardised(np.repeat(scores, weight, axis=1))[:, np.r_[0, np.cumsum(weight)[:-1]]],
    )
    texts = [["a", "b"], ["a"], ["c", "c", "a"]]
    some, all_ = ScopeWords.of(texts, np.array([1.0, 3.0, 2.0])), ScopeWords.of([texts[i] for i in (0, 1, 1, 1, 2, 2)])
    assert some.n == all_.n
    assert some.mean_length == all_.mean_length
    np.testing.assert_allclose(some.rarity, all_.rarity)
    np.testing.assert_allclose(some.scores([["a", "c"]], 0.9, 0.4), all_.scores([["a", "c"]], 0.9, 0.4)[:, [0, 1, 4]])


@pytest.mark.usefixtures("small")
def test_tokens_of_large_scopes_are_embedded_beforehand(data: Dataset, tmp_path: Path) -> None:
    store, encoder = MemoryStore.open(tmp_path / "store"), StandIn()
    store.ingest(data)
    store.vectors.backfill(encoder, data.name, progress=False)
    store.search.create_indexes(encoder)
    assert counting.fill(store, data.name, encoder, progress=False) == max(sizes(data).values())
    assert counting.fill(store, data.name, memlab.embed.load("hashing:64"), progress=False) == 0
    read: list[int] = []
    plain = encoder.encode_tokens

    def noted(texts, **how):
        read.append(len(texts))
        return plain(texts, **how)

    encoder.encode_tokens = noted  # type: ignore[method-assign]
    bench = Bench.of(data, encoder=encoder, store=store, ingest=False, progress=False)
    row = int(np.flatnonzero(bench.queries["scope"].replace_strict(sizes(data)).to_numpy() >= LARGE)[0])
    pipeline("best").run(bench.with_rows(np.array([row])))
    assert read == [1]  # the question alone


@pytest.mark.usefixtures("small")
def test_passages_of_large_scopes_are_embedded_beforehand(
    data: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, words in (("LONG", 12), ("SIZE", 8)):
        monkeypatch.setattr(passages, name, words)
    store, encoder = MemoryStore.open(tmp_path / "store"), StandIn()
    store.ingest(data)
    store.vectors.backfill(encoder, data.name, progress=False)
    store.search.create_indexes(encoder)
    counting.fill(store, data.name, encoder, progress=False)
    read: list[str] = []
    plain = encoder.encode
    monkeypatch.setattr(
        encoder, "encode", lambda texts, **how: (read.append(how.get("kind", "document")), plain(texts, **how))[1]
    )
    row = int(np.flatnonzero(data.questions["scope"].replace_strict(sizes(data)).to_numpy() >= LARGE)[0])
    cut = narrow.around(store, data.name, data.questions[row].select("scope", "text"), encoder=encoder)
    assert pipeline("dense").run(cut).frame.height
    assert len(passages.passages(cut).texts) > cut.turns.height
    assert set(read) == {"query"}


@pytest.mark.usefixtures("small")
def test_sessions_are_read_in_their_order_however_the_database_keeps_them(data: Dataset, tmp_path: Path) -> None:
    store, encoder = MemoryStore.open(tmp_path / "store"), StandIn()
    store.ingest(data)
    store.vectors.backfill(encoder, data.name, progress=False)
    for name in ("turns", "sessions"):
        table = store.database.table(name)
        rows = table.to_arrow()
        table.delete("true")
        table.add(rows.take(list(range(len(rows)))[::-1]))
    store.search.create_indexes(encoder)
    row = int(np.flatnonzero(data.questions["scope"].replace_strict(sizes(data)).to_numpy() >= LARGE)[0])
    cut = narrow.around(store, data.name, data.questions[row].select("scope", "text"), encoder=encoder)
    turns, sessions = cut.turns.select("turn_id", "n"), cut.sessions.select("session_id", "n")
    assert turns.height > 100
    assert turns.join(data.turns, on=["turn_id", "n"], how="semi").height == turns.height
    assert sessions.join(data.sessions, on=["session_id", "n"], how="semi").height == sessions.height
    first = cut.documents("turn").ids.tolist()
    in_order = data.turns.join(turns, on="turn_id", how="semi")["turn_id"].to_list()
    assert first == in_order


@pytest.mark.usefixtures("small")
def test_words_and_tokens_are_those_of_the_whole_scope(data: Dataset, tmp_path: Path) -> None:
    store, encoder = MemoryStore.open(tmp_path / "store"), StandIn()
    store.ingest(data)
    store.vectors.backfill(encoder, data.name, progress=False)
    store.search.create_indexes(encoder)
    asked = data.questions.filter(pl.col("scope").replace_strict(sizes(data)) >= LARGE)[0].select("scope", "text")
    assert narrow.around(store, data.name, asked, encoder=encoder).whole is None
    counting.fill(store, data.name, encoder, progress=False)
    cut = narrow.around(store, data.name, asked, encoder=encoder)
    scope = asked["scope"][0]
    all_ = Bench.of(store.dataset(data.name, scopes=[scope]), encoder=encoder, progress=False)
    for level in LEVELS:
        some, every = (bench.documents(level) for bench in (cut, all_))
        whole = every.words_in(slice(0, len(every.ids)))
        part = some.words_in(slice(0, len(some.ids)))
        assert (part.n, part.mean_length) == (whole.n, whole.mean_length)
        assert part.normalisation == pytest.approx(whole.normalisation)
        known = dict(zip(whole.number, whole.rarity, strict=True))
        assert dict(zip(part.number, part.rarity, strict=True)).items() <= known.items()
        asked_for = some.words_for(slice(0, len(some.ids)), cut.query_words)
        assert asked_for is not part  # read off the postings, not counted in texts
        np.testing.assert_array_equal(asked_for.holding(cut.query_words[0]), part.holding(cut.query_words[0]))
        np.testing.assert_array_equal(asked_for.lengths, part.lengths)
        given = (words.scores(cut.query_words, *part.normalisation) for words in (asked_for, part))
        np.testing.assert_allclose(*given, rtol=1e-6)
        assert some.words_for(slice(0, len(some.ids)), [["elsewhere"]]) is part
    nothing = asked.with_columns(text=pl.lit("Qwxyz?"))
    assert narrow.around(store, data.name, nothing, encoder=encoder).turns.height
    tokens = [scope_tokens(bench, slice(0, bench.turns.height)).rarity for bench in (cut, all_)]
    np.testing.assert_array_equal(*tokens)


def test_sessions_rank_by_all_that_was_found_in_them() -> None:
    def found(*rows: tuple[str, float]) -> pl.DataFrame:
        turns = [(f"{session}-{n}", session, score) for n, (session, score) in enumerate(rows)]
        return pl.DataFrame(turns, schema=["doc_id", "session_id", "score"], orient="row")

    by_meaning, by_words = found(("nearest", 0.6), ("both", 0.55), ("far", 0.5)), found(("both", 4.0), ("word", 3.0))
    by_meaning = by_meaning.with_columns(score=(pl.col("score") - 0.2) / 0.1)
    ranked = hits.ranked(by_meaning, by_words, 1_000)
    order = ranked.sort("rank")["session_id"].unique(maintain_order=True)
    assert order.to_list() == ["both", "word", "nearest", "far"]
    alone = hits.ranked(by_meaning, None, 1_000)
    assert alone.sort("rank")["session_id"].to_list() == ["nearest", "both", "far"]


def test_no_more_sessions_are_read_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(narrow, "TURNS", 50)
    monkeypatch.setattr(narrow, "LONG", 20)
    monkeypatch.setattr(narrow, "NEAR", 2)
    found = pl.DataFrame({"place": [1, 2, 3, 0], "n": [2, 3, 4, 1], "n_turns": [300, 20, 45, 40], "rank": [1, 2, 3, 4]})
    assert narrow._room(found).to_list() == [1, 2, 3, 0]  # 5 of the long one, then 20, 5 and 5
    monkeypatch.setattr(narrow, "TURNS", 25)
    assert narrow._room(found).to_list() == [1, 2]


def test_what_one_question_found_is_kept_for_the_stage_after(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    plain = late_module.token_cosines
    monkeypatch.setattr(late_module, "token_cosines", lambda *a: (asked.append(len(a[0])), plain(*a))[1])
    one = bench.with_rows(np.array([0]))
    scope = bench.documents("turn").spans[one.queries["scope"][0]]
    tokens = scope_tokens(one, slice(*scope))
    tokens._matched.clear()
    first, second = (tokens.best(query_tokens(one)) for _ in range(2))
    assert first is second
    assert len(asked) == -(-len(tokens.texts) // late_module.TEXTS)
