"""What a stage may look at, when it is encoded, what a store spares; candidates of large scopes."""

from __future__ import annotations

import logging
from dataclasses import fields, replace

import numpy as np
import polars as pl
import pytest
from remembering import Remembering
from stand_in import StandIn
from store_data import build

from memlab import Bench, Dataset, MemoryStore, embed, pipeline
from memlab.embed.turn_texts import session_texts, turn_texts
from memlab.errors import DataError
from memlab.records import LEVELS, Level, Question, concat, frame
from memlab.retrieve import bm25, dense, hybrid, large_scope_candidates, passages


def counting() -> Remembering:
    """Give an encoder that notes what it is asked."""
    return Remembering(embed.load("hashing:64"), {})


def test_the_evidence_is_out_of_reach(odd: Bench) -> None:
    assert odd.queries.columns == ["query_id", "scope", "text", "timestamp"]
    public = [getattr(odd, f.name) for f in fields(Bench) if not f.name.startswith("_")]
    columns = {
        column for value in public if isinstance(value, pl.DataFrame) for column in value.columns
    }
    assert not columns & {"evidence", "evidence_sessions", "answer", "question_type"}


def test_documents_are_grouped_by_scope_in_order_of_time(world: Dataset) -> None:
    bench = Bench.of(
        replace(world, turns=world.turns.sample(fraction=1.0, shuffle=True, seed=0)),
        encoder="hashing:32",
    )
    turns, sessions = bench.documents("turn"), bench.documents("session")
    assert turns.ids.tolist() == world.turns["turn_id"].to_list()
    assert turns.texts == turn_texts(world.turns)
    assert sessions.texts == session_texts(world.turns, world.sessions)
    assert sessions.ids[turns.session].tolist() == world.turns["session_id"].to_list()
    for documents in (turns, sessions):
        for scope, (first, last) in documents.spans.items():
            assert {d.split("/")[0] for d in documents.ids[first:last]} == {scope}
    np.testing.assert_array_equal(turns.embeddings, embed.load("hashing:32").encode(turns.texts))
    lengths = np.linalg.norm(sessions.embeddings, axis=1)
    np.testing.assert_allclose(lengths, sessions.ids != "ann/s2", atol=1e-6)
    mean = turns.embeddings[turns.session == 0].mean(axis=0)
    np.testing.assert_allclose(sessions.embeddings[0], mean / np.linalg.norm(mean), atol=1e-6)


def test_what_cannot_be_a_bench(world: Dataset) -> None:
    for change, said in (
        ({"turns": world.turns.head(0)}, "'world' holds no turns"),
        (
            {"sessions": world.sessions.filter(pl.col("session_id") != "ann/s3")},
            "'ann/s3/1' belongs to session",
        ),
        (
            {"turns": world.turns.filter(pl.col("scope") != "bob")},
            "scope 'bob' has questions but no turns",
        ),
    ):
        with pytest.raises(DataError, match=said):
            bm25(Bench.of(replace(world, **change), encoder=None))


def test_turns_that_a_store_loses_by_it_are_told(
    world: Dataset, store: MemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    Bench.of(world, encoder=None, store=store)
    assert caplog.messages == []
    Bench.of(replace(world, turns=world.turns.head(-1)), encoder=None, store=store)
    assert "1 turns that their scopes no longer have were removed" in caplog.messages[-1]


def test_nothing_is_encoded_before_a_stage_reads_vectors_and_nothing_twice_with_a_store(
    world: Dataset, odd: Bench, store: MemoryStore
) -> None:
    for memory in (None, store):
        encoder = counting()
        bench = Bench.of(world, encoder=encoder, store=memory, progress=False)
        pipeline("bm25 | light | fill_sessions | decompose(retriever='bm25')").run(
            bench.with_query_rows(np.array([1, 0]))
        )
        assert encoder.asked == []
        versions = bench.provenance.get("versions")
        assert dense(bench).frame.equals(dense(bench.with_queries(bench.queries)).frame)
        assert {text for _, text in encoder.asked} == {
            *bench.documents("turn").texts,
            *bench.queries["text"],
        }
        assert bench.provenance.get("versions") == (memory and memory.versions())
        assert memory is None or versions != memory.versions()
    again = counting()
    two = Bench.of(world, encoder=again, store=store, progress=False)
    for each in (bench, two):
        np.testing.assert_array_equal(each.turn_vectors, odd.turn_vectors)
        np.testing.assert_array_equal(each.query_vectors, odd.query_vectors)
    assert again.asked == []
    headed = embed.load(again, header=("scope",))
    dense(Bench.of(world, encoder=headed, store=store, progress=False))
    assert again.asked, "another header gives other texts"


@pytest.mark.slow
def test_a_part_of_what_the_store_holds(talk: Dataset, store: MemoryStore) -> None:
    dense(Bench.of(talk, encoder="hashing:64", store=store, progress=False))
    encoder, fewer = counting(), replace(talk, turns=talk.turns.filter(pl.col("n") > 1))
    for part in (talk.take(talk.scopes[1:2]), talk.take(talk.scopes[::2]), fewer):
        plain, bench = (
            Bench.of(part, encoder="hashing:64"),
            Bench.of(part, encoder=encoder, store=store),
        )
        np.testing.assert_array_equal(bench.turn_vectors, plain.turn_vectors)
        assert hybrid(bench).frame.equals(hybrid(plain).frame)
    assert encoder.asked == []


def test_other_questions(odd: Bench) -> None:
    asked = pl.DataFrame(
        {"scope": ["cyd", "ann"], "text": ["roses roses doctor", "How many doctors did I see?"]}
    )
    other, whole = odd.with_queries(asked), hybrid(odd).frame
    assert other.queries.schema == odd.queries.schema
    assert other.documents("turn") is odd.documents("turn")
    for new, old in (("query-0", "cyd/q0"), ("query-1", "ann/q0")):
        rows = hybrid(other).frame.filter(query_id=new).drop("query_id")
        assert rows.equals(whole.filter(query_id=old).drop("query_id"))
    assert "✔" in (shown := bm25(odd)._repr_html_())
    assert "I saw the doctor today" in shown
    assert "✔" not in bm25(other)._repr_html_()


LARGE, N = "scope-0", 480


@pytest.fixture(scope="module")
def data() -> Dataset:
    """Give one scope of 480 turns, some of them long, and one of 24, with questions in the words of their evidence."""
    talk = concat([build(1, 24, 20, seed=1), build(2, 3, 8).take(["scope-1"])])
    long = (
        pl.when(pl.col("n") == 20)
        .then(pl.concat_str(["text"] * 10, separator=". "))
        .otherwise("text")
    )
    asked = [
        Question(f"{scope}/q{i}", scope, text, "1", "other", None, [turn], [session])
        for i, (scope, text, turn, session) in enumerate(
            talk.turns.gather_every(34, offset=20)
            .select("scope", "text", "turn_id", "session_id")
            .iter_rows()
        )
    ]
    return Dataset(
        "large",
        "chatlog",
        talk.turns.with_columns(text=long),
        talk.sessions,
        frame(Question, asked),
    )


@pytest.fixture(scope="module")
def filled(data: Dataset, tmp_path_factory: pytest.TempPathFactory) -> MemoryStore:
    filled = MemoryStore.open(tmp_path_factory.mktemp("large") / "store")
    filled.ingest(data)
    filled.vectors.backfill(StandIn(), data.name, progress=False)
    filled.search.create_indexes(StandIn())
    return filled


@pytest.fixture
def large(data: Dataset, filled: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> Bench:
    for name, size in (("LARGE", 200), ("HITS", 40), ("TURNS", 300)):
        monkeypatch.setattr(large_scope_candidates, name, size)
    large_scope_candidates.encode_large_scopes_and_count_turns(
        filled, data.name, StandIn(), progress=False
    )
    return Bench.of(data, encoder=StandIn(), store=filled, ingest=False, progress=False)


@pytest.mark.slow
def test_questions_of_large_scopes_alone_have_candidates_and_a_line_says_so(
    large: Bench,
    data: Dataset,
    filled: MemoryStore,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with caplog.at_level(logging.WARNING):
        small, *around = large_scope_candidates.split_bench_of_large_scopes(large) or ()
    assert "14 of 15 questions" in caplog.text
    assert small.queries["scope"].unique().to_list() == ["scope-1"]
    for part in around:
        assert part.turns.height <= 320
        assert part.documents("turn").n_absent == N - part.turns.height
        whole = part.sessions.join(data.sessions, on=["session_id", "n_turns"], how="semi")
        assert part.turns["session_id"].n_unique() == whole.height == part.sessions.height
        assert part.documents("session").n_absent == 24 - part.sessions.height
        assert large_scope_candidates.split_bench_of_large_scopes(part) is None
        first = part.documents("turn").ids.tolist()
        assert first == [turn for turn in data.turns["turn_id"] if turn in set(first)], (
            "in order of time"
        )
    assert (
        large_scope_candidates.split_bench_of_large_scopes(large.with_changes(store=None)) is None
    )
    caplog.clear()
    with monkeypatch.context() as unindexed:
        unindexed.setattr(filled.search, "can_search_words_and_vectors", lambda *_: False)
        assert large_scope_candidates.split_bench_of_large_scopes(large) is None
    assert "compared whole, which takes long; `memlab ingest` makes the indexes" in caplog.text
    headed = embed.load(StandIn(), header=("time",))
    assert (
        large_scope_candidates.split_bench_of_large_scopes(large.with_changes(encoder=headed))
        is None
    )


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.slow
def test_candidates_have_the_scores_that_bm25_gives_them_among_all(
    large: Bench, level: Level, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = pipeline("bm25(k=480)").run(large, level=level).frame.filter(pl.col("score") > 1e-5)
    monkeypatch.setattr(large_scope_candidates, "LARGE", 10**9)
    every = pipeline("bm25(k=480)").run(large, level=level).frame
    both = some.join(every, on=["query_id", "doc_id"])
    assert both.height == some.height > 100
    np.testing.assert_allclose(both["score"], both["score_right"], atol=2e-5)


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("best", "turn"),
        ("combsum", "session"),
        pytest.param("combsum | resonate(margin=0.0)", "turn", marks=pytest.mark.nightly),
        pytest.param("combsum | feedback", "turn", marks=pytest.mark.nightly),
        pytest.param("combsum | feedback", "session", marks=pytest.mark.nightly),
    ],
)
@pytest.mark.slow
def test_the_first_ten_are_nearly_those_of_exact_search(
    large: Bench, text: str, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = pipeline(text).run(large, level=level)
    assert run.provenance["path"] == "candidates"
    assert (
        run.frame["query_id"].unique(maintain_order=True).to_list()
        == large.queries["query_id"].to_list()
    )
    monkeypatch.setattr(large_scope_candidates, "LARGE", 10**9)
    exact = pipeline(text).run(large, level=level)
    assert "path" not in exact.provenance
    same = exact.top(10).frame.join(run.top(10).frame, on=["query_id", "doc_id"], how="semi").height
    assert same / exact.top(10).frame.height > 0.85


@pytest.mark.parametrize("level", LEVELS)
def test_candidates_are_compared_with_each_other_as_among_all(large: Bench, level: Level) -> None:
    whole = large.documents("turn")
    part = next(iter(list(large_scope_candidates.split_bench_of_large_scopes(large) or ())[1:]))
    some = part.documents("turn")
    centred = whole.speaker_centred()[whole.at(pl.Series(some.ids, dtype=pl.String))]
    np.testing.assert_allclose(some.speaker_centred(), centred, atol=1e-5)
    of_level = part.documents(level)
    lengths = np.linalg.norm(of_level.speaker_centred(), axis=1)
    np.testing.assert_allclose(lengths, 1, atol=1e-5)
    alone = part.with_changes(
        speaker_sums=None, turns=part.turns.head(50), vectors=part.vectors[:50]
    )
    assert not np.allclose(alone.documents("turn").speaker_centred(), centred[:50], atol=1e-3)


def test_a_large_scope_is_centred_by_sessions_evenly_over_it(
    large: Bench, data: Dataset, filled: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    column, scope = filled.vectors.column(StandIn()), LARGE
    every = filled.search.sum_vectors_by_speaker(data.name, scope, vector_column=column)
    of_scope = data.turns.filter(scope=scope)
    counts = dict(of_scope["speaker"].value_counts().iter_rows())
    assert dict(zip(every.speakers, every.turns.tolist(), strict=True)) == counts
    monkeypatch.setattr("memlab.store.vector_and_text_search.SPEAKER_TURNS", of_scope.height // 3)
    monkeypatch.setattr(filled.search, "_seen", (None, {}))
    some = filled.search.sum_vectors_by_speaker(data.name, scope, vector_column=column)
    assert of_scope.height / 6 < some.turns.sum() < of_scope.height / 2
    assert float(every.scope_mean @ some.scope_mean) > 0


def test_questions_are_taken_some_at_a_time_and_rank_as_together(
    large: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large_scope_candidates, "LARGE", 10**9)
    together = pipeline("combsum | mmr").run(large)
    monkeypatch.setattr(large_scope_candidates, "PAIRS", 10 * N)
    assert (
        max(
            part.queries.filter(scope=LARGE).height
            for part in large_scope_candidates.split_bench_of_large_scopes(large) or ()
        )
        == 10
    )
    apart = pipeline("combsum | mmr").run(large)
    assert apart.frame.equals(together.frame)
    assert apart.provenance == together.provenance


@pytest.mark.usefixtures("large")
def test_what_a_question_would_wait_for_is_encoded_beforehand(
    data: Dataset, filled: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passages, "LONG", 50)
    assert (
        large_scope_candidates.encode_large_scopes_and_count_turns(
            filled, data.name, StandIn(), progress=False
        )
        == N
    )
    encoder = Remembering(StandIn(), {})
    part = large_scope_candidates.read_candidate_bench(
        filled, data.name, data.questions[0], encoder=encoder
    )
    assert len(passages.cut_long_turns_into_passages(part).texts) > part.turns.height
    assert pipeline("best").run(part).frame.height
    assert {kind for kind, *_ in encoder.asked} == {"query"}


@pytest.mark.usefixtures("large")
def test_tokens_of_a_large_scope_are_counted_of_the_token_encoder(
    data: Dataset, filled: MemoryStore
) -> None:
    encoder = embed.load("hashing:32", token_encoder=StandIn())
    filled.vectors.backfill(encoder, data.name, progress=False)
    filled.search.create_indexes(encoder)
    assert (
        large_scope_candidates.encode_large_scopes_and_count_turns(
            filled, data.name, encoder, progress=False
        )
        == N
    )
    part = large_scope_candidates.read_candidate_bench(
        filled, data.name, data.questions[0], encoder=encoder
    )
    assert part.statistics is not None
    assert part.statistics.tokens is not None
    assert part.statistics.tokens.n == N
    run = pipeline("best").run(part)
    assert run.frame.height
    assert run.provenance["token_encoder"] == StandIn().identity.describe()
    assert "left_out" not in run.provenance


@pytest.mark.usefixtures("large")
def test_a_question_that_nothing_matches_ranks_at_zero(data: Dataset, filled: MemoryStore) -> None:
    class Deaf(StandIn):
        def __init__(self) -> None:
            super().__init__()
            self.encode = lambda texts, **_: np.zeros((len(texts), self.dim), np.float32)

    asked = pl.DataFrame({"scope": [LARGE], "text": ["zzyzx"]})
    part = large_scope_candidates.read_candidate_bench(filled, data.name, asked, encoder=Deaf())
    for text in ("bm25", "dense"):
        scores = pipeline(text).run(part).frame["score"]
        assert len(scores) > 100
        np.testing.assert_allclose(scores, 0, atol=1e-4)
