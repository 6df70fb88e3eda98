"""Two-stage retrieval against the same in plain Python, a query at a time; summaries; storage."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab import embed
from memlab.errors import DataError
from memlab.records import LEVELS, Dataset, Run, concat
from memlab.retrieve import Bench, bm25, dense
from memlab.retrieve.arrays import places_within, standardised
from memlab.retrieve.two_stage import KEYS, summary_storage, summary_vectors, two_stage

Ranking = Callable[[Run], dict[str, list[str]]]
SUMMARIES = {
    "ann/s1": "Ann saw the doctor and the dentist",
    "ann/s2": "roses tulips water",
    "ann/s4": "  ",
    "cyd/s1": "a doctor and roses",
    "cyd/s2": "water?",
}


@pytest.fixture(scope="module")
def summed(world: Dataset) -> Dataset:
    """The small world, some of whose sessions have a summary; that of the empty session is a question word by word."""
    return replace(world, name="summed", sessions=with_summaries(world.sessions, SUMMARIES))


@pytest.fixture(scope="module", params=["world", "summed", "talk"])
def bench(request: pytest.FixtureRequest) -> Bench:
    return Bench.of(request.getfixturevalue(request.param), encoder="hashing:32")


def with_summaries(sessions: pl.DataFrame, summaries: dict[str, str]) -> pl.DataFrame:
    return sessions.with_columns(
        summary=pl.col("session_id").replace_strict(summaries, default=None, return_dtype=pl.String)
    )


def standard(values: dict[str, float]) -> dict[str, float]:
    return dict(zip(values, standardised(np.array([list(values.values())]))[0], strict=True))


def total(parts: Iterable[dict[str, float]]) -> dict[str, float]:
    held = list(parts)
    return {key: sum(part[key] for part in held) for key in held[0]}


def session_of(bench: Bench) -> dict[str, str]:
    return dict(bench.turns.select("turn_id", "session_id").iter_rows())


Scored = list[tuple[str, dict[str, float], dict[str, float]]]
SCORED: dict[tuple[str, str], Scored] = {}


def scored(bench: Bench, by: str) -> Scored:
    """Give each query with the scores of its turns and of its sessions, in order of time."""
    if (bench.name, by) not in SCORED:
        SCORED[bench.name, by] = score(bench, by)
    return SCORED[bench.name, by]


def score(bench: Bench, by: str) -> Scored:
    home, vectors = session_of(bench), summary_vectors(bench)
    documents = {level: bench.documents(level) for level in LEVELS}
    scopes = {
        level: {scope: of.ids[slice(*span)].tolist() for scope, span in of.spans.items()}
        for level, of in documents.items()
    }
    values: dict[str, dict[tuple[str, str], float]] = {}
    for name, made in (("cosine", dense), ("words", bm25), ("document", bm25)):
        run = made(bench, level="session" if name == "document" else "turn", k=9999)
        values[name] = {(q, d): s for q, d, s in run.frame.select("query_id", "doc_id", "score").iter_rows()}
    rows: Scored = []
    for row, (query, scope) in enumerate(bench.queries.select("query_id", "scope").iter_rows()):
        turns, sessions = scopes["turn"][scope], scopes["session"][scope]
        of = {name: {t: values[name][query, t] for t in turns} for name in ("cosine", "words")}
        keys: dict[str, dict[str, float]] = {}
        for name, each in of.items():
            keys[name] = dict.fromkeys(sessions, -1.0)
            for turn, value in each.items():
                keys[name][home[turn]] = max(keys[name][home[turn]], value)
        keys["document"] = {s: values["document"][query, s] for s in sessions}
        if vectors is not None and bench.query_vectors is not None:
            at = documents["session"].at(pl.Series(sessions))
            cosine = (vectors[at].astype(float) @ bench.query_vectors[row].astype(float)).astype(np.float32)
            keys["summary"] = dict(zip(sessions, cosine.astype(float), strict=True))
        names = {"turn": ("cosine", "words"), "fused": tuple(keys)}.get(by, (by,))
        rows.append((query, total(map(standard, of.values())), total(standard(keys[name]) for name in names)))
    return rows


def best_first(bench: Bench, ids: Iterable[str], scores: dict[str, float]) -> list[str]:
    """Sort turns or sessions; those that tie by lot."""
    lot = {doc: at for level in LEVELS for doc, at in zip(
        bench.documents(level).ids.tolist(), bench.documents(level).lot.tolist(), strict=True)}  # fmt: skip
    return sorted(ids, key=lambda doc: (-scores[doc], lot[doc]))


def expected(bench: Bench, by: str, n_sessions: int, n_turns: int, rerank: bool) -> dict[str, list[str]]:
    home, ranked = session_of(bench), {}
    for query, turns, sessions in scored(bench, by):
        within: dict[str, list[str]] = defaultdict(list)
        for turn in turns:
            within[home[turn]].append(turn)
        chosen = [
            turn
            for session in best_first(bench, (s for s in sessions if s in within), sessions)[:n_sessions]
            for turn in best_first(bench, within[session], turns)[:n_turns]
        ]
        of_turns, of_sessions = standard(turns), standard(sessions)
        fused = {turn: of_turns[turn] + of_sessions[home[turn]] for turn in turns}
        first = set(chosen)
        if rerank:
            chosen = best_first(bench, first, fused)
        ranked[query] = chosen + best_first(bench, turns.keys() - first, fused)
    return ranked


@pytest.fixture(autouse=True)
def full_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep ties of scores as ties: a run lowers each by a float32 step, which the reference must not see."""
    monkeypatch.setattr("memlab.records.runs.strictly_decreasing", lambda scores, group: scores)


def keys(bench: Bench) -> list[str]:
    return [by for by in KEYS if by != "summary" or bench.name == "summed"]


@pytest.mark.parametrize("rerank", [True, False])
@pytest.mark.parametrize(("sessions", "turns"), [(5, 3), (1, 1), (2, 50), (50, 1)])
def test_both_stages_as_in_plain_python(
    bench: Bench, ranking: Ranking, sessions: int, turns: int, rerank: bool
) -> None:
    for by in keys(bench):
        got = two_stage(bench, k=999, sessions=sessions, turns=turns, by=by, rerank=rerank)
        assert ranking(got) == expected(bench, by, sessions, turns, rerank), by


def test_sessions_come_in_the_order_of_the_first_stage(bench: Bench, ranking: Ranking) -> None:
    for by in keys(bench):
        got = two_stage(bench, level="session", k=999, by=by)
        assert got.level == "session"
        assert ranking(got) == {q: best_first(bench, of, of) for q, _, of in scored(bench, by)}, by
        assert ranking(two_stage(bench, level="session", k=2, by=by)) == {q: d[:2] for q, d in ranking(got).items()}


def test_k_cuts_and_every_turn_follows_once(bench: Bench, ranking: Ranking) -> None:
    full = ranking(two_stage(bench, k=999))
    assert ranking(two_stage(bench)) == {q: d[:10] for q, d in full.items()}
    n_turns = dict(bench.turns.group_by("scope").len().iter_rows())
    for query, scope in bench.queries.select("query_id", "scope").iter_rows():
        assert len(set(full[query])) == len(full[query]) == n_turns[scope]


def test_a_first_stage_that_keeps_all_is_the_sum_alone(bench: Bench, ranking: Ranking) -> None:
    all_of_them = ranking(two_stage(bench, k=999, sessions=10**9, turns=10**9))
    assert all_of_them == expected(bench, "fused", 0, 0, True)


def test_without_reranking_each_session_stays_together(talk: Dataset, ranking: Ranking) -> None:
    bench = Bench.of(talk, encoder="hashing:32")
    home = session_of(bench)
    order = ranking(two_stage(bench, level="session", k=5))
    for query, turns in ranking(two_stage(bench, k=15, rerank=False)).items():
        met = list(dict.fromkeys(home[t] for t in turns))
        assert [home[t] for t in turns] == sorted((home[t] for t in turns), key=met.index)
        assert met[:5] == order[query][: len(met[:5])]


def test_one_query_ranks_as_in_the_batch_and_one_scope_as_among_others(summed: Dataset, ranking: Ranking) -> None:
    bench = Bench.of(summed, encoder="hashing:32")
    whole = ranking(two_stage(bench, k=99))
    for row in bench.queries.iter_slices(1):
        assert ranking(two_stage(bench.with_queries(row), k=99)) == {row["query_id"][0]: whole[row["query_id"][0]]}
    for scope in summed.scopes:
        alone = ranking(two_stage(Bench.of(summed.take([scope]), encoder="hashing:32"), k=99))
        assert alone == {q: d for q, d in whole.items() if d[0].startswith(scope)}


@pytest.mark.parametrize("by", KEYS)
def test_ids_carry_nothing(summed: Dataset, renamed: Any, ranking: Ranking, by: str) -> None:
    for seed in (1, 2, 3):
        other, names = renamed(summed, seed)
        one, two = (
            ranking(two_stage(Bench.of(d, encoder="hashing:32"), k=9, sessions=2, turns=2, by=by))
            for d in (summed, other)
        )
        assert two == {names[q]: [names[d] for d in documents] for q, documents in one.items()}


def test_no_queries(summed: Dataset) -> None:
    bench = Bench.of(summed, encoder="hashing:32")
    assert two_stage(bench.with_queries(bench.queries.clear())).frame.is_empty()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"sessions": 0}, "sessions is 0; expected at least 1"),
        ({"turns": -1}, "turns is -1"),
        ({"k": 0}, "k is 0"),
        ({"by": "title"}, "by is 'title'; choose from summary, document, turn, fused"),
        ({"by": "summary"}, "no session of 'world' has a summary; choose by='fused'"),
    ],
)
def test_values_that_cannot_be_used(world: Dataset, parameters: dict[str, Any], message: str) -> None:
    for level in ("turn", "session"):
        with pytest.raises(DataError, match=message):
            two_stage(Bench.of(world, encoder="hashing:32"), level=level, **parameters)


def test_embeddings_are_needed(world: Dataset, summed: Dataset) -> None:
    for data in (world, summed):
        with pytest.raises(DataError, match="make the bench with an encoder"):
            two_stage(Bench.of(data, encoder=None))
    embedded = Bench.of(summed, encoder="hashing:32")
    with pytest.raises(DataError, match="no encoder to embed texts with"):
        two_stage(replace(embedded, encoder=None))


def test_summaries_are_a_further_key_and_other_sessions_fall_back_to_their_document(summed: Dataset) -> None:
    bench = Bench.of(summed, encoder="hashing:32")
    documents, vectors = bench.documents("session"), summary_vectors(bench)
    assert vectors is not None
    encoder = embed.load("hashing:32")
    for at, session in enumerate(documents.ids):
        text = SUMMARIES.get(session, "").strip()
        wanted = encoder.encode([text])[0] if text else documents.vectors()[at]
        assert np.array_equal(vectors[at], wanted), session
    query = "cyd/q1"  # "water?", which is the summary of cyd/s2
    first = two_stage(bench, level="session", by="summary").frame.filter(pl.col("query_id") == query)
    assert first["doc_id"][0] == "cyd/s2"


def test_blank_summaries_are_none(world: Dataset, ranking: Ranking) -> None:
    blank = replace(world, sessions=with_summaries(world.sessions, {"ann/s1": " ", "bob/s1": ""}))
    one, two = (Bench.of(d, encoder="hashing:32") for d in (world, blank))
    assert summary_vectors(two) is None
    assert ranking(two_stage(one)) == ranking(two_stage(two))


def test_a_session_without_turns_takes_no_place_in_the_first_stage(summed: Dataset, ranking: Ranking) -> None:
    bench = Bench.of(summed, encoder="hashing:32")
    query = "ann/q1"  # "roses tulips water", the summary of ann/s2, which is empty
    order = ranking(two_stage(bench, level="session", by="summary"))[query]
    assert order[0] == "ann/s2"
    home = session_of(bench)
    turns = ranking(two_stage(bench, by="summary", sessions=1, turns=2))[query]
    assert {home[turn] for turn in turns[:2]} == {order[1]}


class Counting:
    """An encoder that remembers the documents it was given."""

    def __init__(self) -> None:
        self.inner = embed.load("hashing:32")
        self.identity, self.dim = self.inner.identity, self.inner.dim
        self.documents: list[str] = []

    def encode(self, texts: Iterable[str], *, kind: Any = "document", progress: bool = True) -> np.ndarray:
        held = list(texts)
        self.documents += held if kind == "document" else []
        return self.inner.encode(held, kind=kind, progress=progress)


@pytest.mark.parametrize("stored", [False, True])
def test_summaries_are_encoded_once_and_only_when_asked_for(summed: Dataset, tmp_path: Path, stored: bool) -> None:
    encoder = Counting()
    store = str(tmp_path / "store") if stored else None
    bench = Bench.of(summed, encoder=encoder, store=store)
    assert bench.turn_vectors is not None  # encoded here
    turns = list(encoder.documents)
    two_stage(bench, by="turn")
    two_stage(bench, by="document")
    assert encoder.documents == turns
    two_stage(bench.with_queries(bench.queries))
    two_stage(bench)
    two_stage(bench, by="summary", level="session")
    assert sorted(encoder.documents[len(turns) :]) == sorted(text for text in SUMMARIES.values() if text.strip())
    if stored:
        again = Counting()
        two_stage(Bench.of(summed, encoder=again, store=store))
        assert again.documents == []


def test_storage_counts_bytes(world: Dataset, summed: Dataset) -> None:
    bench = Bench.of(summed, encoder="hashing:32")
    turns, summaries = summary_storage(bench).rows(named=True)
    texts = [text.strip() for text in SUMMARIES.values() if text.strip()]
    assert turns["n"] == summed.turns.height
    assert turns["text_bytes"] == sum(len(text.encode()) for text in bench.documents("turn").texts)
    assert (turns["vector_bytes"], turns["share"]) == (turns["n"] * 32 * 4, 1.0)
    assert (summaries["n"], summaries["text_bytes"]) == (4, sum(len(text.encode()) for text in texts))
    held = turns["text_bytes"] + turns["vector_bytes"]
    assert summaries["share"] == pytest.approx((summaries["text_bytes"] + 4 * 32 * 4) / held)
    none = summary_storage(Bench.of(world, encoder=None)).rows(named=True)
    assert [row["vector_bytes"] for row in none] == [0, 0]
    assert none[1]["share"] == 0.0


def test_captions_and_letters_of_several_bytes_count(world: Dataset) -> None:
    wide = replace(world, sessions=with_summaries(world.sessions, {"bob/s1": "naïve 日本"}))
    assert summary_storage(Bench.of(wide, encoder=None))["text_bytes"][1] == 13


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=5),
    st.data(),
)
def test_places_within_groups(sizes: list[int], data: st.DataObject) -> None:
    group = np.repeat(np.arange(len(sizes)) * 2, sizes)
    row = st.lists(st.integers(0, 3), min_size=len(group), max_size=len(group))
    scores = np.array(data.draw(st.lists(row, min_size=1, max_size=3)), float)
    for one, places in zip(scores, places_within(scores, group), strict=True):
        for number in set(group):
            columns = np.flatnonzero(group == number)
            assert columns[np.argsort(places[columns])].tolist() == sorted(columns, key=lambda c: (-one[c], c))


def test_scopes_in_another_order(summed: Dataset, ranking: Ranking) -> None:
    backwards = concat(summed.take([scope]) for scope in reversed(summed.scopes))
    one, two = (ranking(two_stage(Bench.of(d, encoder="hashing:32"), k=9)) for d in (summed, backwards))
    assert one == two
