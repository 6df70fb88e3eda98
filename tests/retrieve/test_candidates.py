"""A question of a large scope is compared with candidates, from which stages learn about the scope what they need."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from remembering import Remembering
from stand_in import StandIn
from store_data import build

from memlab import Bench, Dataset, MemoryStore, pipeline
from memlab.errors import DataError
from memlab.records import Question, concat, frame
from memlab.retrieve import candidates, passages

LARGE, N = "scope-0", 480


@pytest.fixture(scope="module")
def data() -> Dataset:
    """Give one scope of 480 turns, some of them long, and one of 24, with questions in the words of their evidence."""
    talk = concat([build(1, 24, 20, seed=1), build(2, 3, 8).take(["scope-1"])])
    long = pl.when(pl.col("n") == 20).then(pl.concat_str(["text"] * 10, separator=". ")).otherwise("text")
    asked = [
        Question(f"{scope}/q{i}", scope, text, "1", "other", None, [turn], [session])
        for i, (scope, text, turn, session) in enumerate(
            talk.turns.gather_every(34, offset=20).select("scope", "text", "turn_id", "session_id").iter_rows()
        )
    ]
    return Dataset("large", "chatlog", talk.turns.with_columns(text=long), talk.sessions, frame(Question, asked))


@pytest.fixture(scope="module")
def store(data: Dataset, tmp_path_factory: pytest.TempPathFactory) -> MemoryStore:
    store = MemoryStore.open(tmp_path_factory.mktemp("large") / "store")
    store.ingest(data)
    store.vectors.backfill(StandIn(), data.name, progress=False)
    store.search.create_indexes(StandIn())
    return store


@pytest.fixture
def bench(data: Dataset, store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> Bench:
    for name, size in (("LARGE", 200), ("HITS", 40), ("TURNS", 200), ("SAMPLE", 100)):
        monkeypatch.setattr(candidates, name, size)
    return Bench.of(data, encoder=StandIn(), store=store, ingest=False, progress=False)


def test_questions_of_large_scopes_alone_have_candidates_and_a_line_says_so(
    bench: Bench, data: Dataset, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        small, *around = candidates.divide_bench(bench) or ()
    assert "14 of 15 questions" in caplog.text
    assert small.queries["scope"].unique().to_list() == ["scope-1"]
    for part in around:
        assert part.turns.height <= 320
        whole = part.sessions.join(data.sessions, on=["session_id", "n_turns"], how="semi")
        assert part.turns["session_id"].n_unique() == whole.height == part.sessions.height
        assert part.sessions["weight"].sum() == pytest.approx(24)
        assert candidates.divide_bench(part) is None
        first = part.documents("turn").ids.tolist()
        assert first == [turn for turn in data.turns["turn_id"] if turn in set(first)], "in order of time"
    assert candidates.divide_bench(bench.but(store=None)) is None
    assert candidates.divide_bench(bench.but(header=("date",))) is None


@pytest.mark.parametrize(("text", "level"), [("best", "turn"), ("combsum", "session")])
def test_the_first_ten_are_nearly_those_of_exact_search(
    bench: Bench, text: str, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = pipeline(text).run(bench, level=level)
    assert run.provenance["path"] == "candidates"
    assert run.frame["query_id"].unique(maintain_order=True).to_list() == bench.queries["query_id"].to_list()
    monkeypatch.setattr(candidates, "LARGE", 10**9)
    exact = pipeline(text).run(bench, level=level)
    assert "path" not in exact.provenance
    same = exact.top(10).frame.join(run.top(10).frame, on=["query_id", "doc_id"], how="semi").height
    assert same / exact.top(10).frame.height > 0.85


def test_questions_are_taken_some_at_a_time_and_rank_as_together(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "LARGE", 10**9)
    together = pipeline("combsum | mmr").run(bench)
    monkeypatch.setattr(candidates, "PAIRS", 10 * N)
    assert max(part.queries.filter(scope=LARGE).height for part in candidates.divide_bench(bench) or ()) == 10
    apart = pipeline("combsum | mmr").run(bench)
    assert apart.frame.equals(together.frame)
    assert apart.provenance == together.provenance


@pytest.mark.usefixtures("bench")
def test_what_a_question_would_wait_for_is_encoded_beforehand(
    data: Dataset, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passages, "LONG", 50)
    assert candidates.encode_large_scopes(store, data.name, StandIn(), progress=False) == N
    encoder = Remembering(StandIn(), {})
    part = candidates.read_candidate_bench(store, data.name, data.questions[0], encoder=encoder)
    assert len(passages.cut_passages(part).texts) > part.turns.height
    assert pipeline("best").run(part).frame.height
    assert {kind for kind, *_ in encoder.asked} == {"query"}


def test_models_of_folds_are_refused_where_their_scope_cannot_be_told(bench: Bench, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cross-validated"):
        pipeline(f"combsum | learned(model={str(tmp_path)!r})").run(bench.with_rows(np.array([0])))
