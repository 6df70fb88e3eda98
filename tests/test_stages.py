"""What every registered stage promises, with its default parameters."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest
from remembering import minilm

import memlab
from memlab.errors import DataError, MemlabError
from memlab.records import Dataset, Question, Run, Session, Turn, frame
from memlab.registry import is_retriever
from memlab.retrieve import Bench

# These need a model of the user's, and have tests of their own.
STAGES = sorted(set(memlab.stages) - {"cross_encoder", "expand", "hyde"})
SAID = {
    "ann": [
        ["I saw the doctor today", "the dentist pulled a tooth", "I saw the doctor today", "", "which dentist?"],
        ["I saw the doctor today", "rain again", "we planted roses and tulips", "!!!", "the the the"],
        ["roses need water", "my doctor moved to Oslo", "I saw the doctor today", "tulips need water too"],
    ],
    "bob": [["only one turn about a doctor"]],
}
ASKED = {
    "ann": ["How many doctors did I see?", "roses or tulips?", "zyzzyva qwxt", "", "the dentist pulled a tooth"],
    "bob": ["doctor", "unknown words"],
}


def world() -> Dataset:
    """Ties, equal and empty texts, and a scope of one turn."""
    turns, sessions, questions = list[Turn](), list[Session](), list[Question]()
    for scope, talk in SAID.items():
        for s, texts in enumerate(talk, 1):
            session, day = f"{scope}/s{s}", datetime(2024, 1, s, tzinfo=UTC)
            sessions.append(Session(session, scope, s, day, day, len(texts), ["user"]))
            for n, text in enumerate(texts, 1):
                at = day + timedelta(minutes=n)
                turns.append(Turn(f"{session}/{n}", scope, session, n, "user", "user", text, timestamp=at))
    for scope, texts in ASKED.items():
        questions += [Question(f"{scope}/q{i}", scope, t, "", "t", None, [], []) for i, t in enumerate(texts)]
    return Dataset("world", "chatlog", frame(Turn, turns), frame(Session, sessions), frame(Question, questions))


def renamed(data: Dataset) -> tuple[Dataset, dict[str, str]]:
    """Give every id another one, in another alphabetical order."""
    columns = {"turns": "turn_id", "sessions": "session_id", "questions": "query_id"}
    ids = [*ASKED, *(name for table, column in columns.items() for name in getattr(data, table)[column])]
    numbers = np.random.default_rng(0).permutation(len(ids))
    names = {old: f"x{number:03}" for old, number in zip(ids, numbers, strict=True)}
    tables = {
        table: getattr(data, table).with_columns(
            pl.col(column).replace_strict(names)
            for column in getattr(data, table).columns
            if column in ("scope", "turn_id", "session_id", "query_id")
        )
        for table in columns
    }
    return replace(data, **tables), names


def text_of(stage: str, *, first: str = "combsum", **parameters: Any) -> str:
    inside = ", ".join(f"{name}={value!r}" for name, value in parameters.items())
    last = f"{stage}({inside})" if inside else stage
    return last if is_retriever(memlab.stages[stage]) else f"{first} | {last}"


def rankings(run: Run) -> dict[str, list[tuple[str, float]]]:
    grouped = run.frame.group_by("query_id", maintain_order=True).agg("doc_id", "score")
    return {query: list(zip(ids, scores, strict=True)) for query, ids, scores in grouped.iter_rows()}


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench.of(world(), encoder=minilm())


@pytest.fixture(scope="module")
def other() -> tuple[Bench, dict[str, str]]:
    data, names = renamed(world())
    return Bench.of(data, encoder=minilm()), names


@pytest.mark.parametrize("level", ["turn", "session"])
@pytest.mark.parametrize("stage", STAGES)
def test_a_ranking_is_strict_finite_and_within_its_scope(bench: Bench, stage: str, level: Any) -> None:
    run = memlab.pipeline(text_of(stage)).run(bench, level=level)
    assert np.isfinite(run.frame["score"].to_numpy()).all()
    asked, documents = bench.queries["query_id"].to_list(), bench.documents(level)
    ranked = rankings(run)
    assert list(ranked) == [query for query in asked if query in ranked], "queries in their order"
    for query, hits in ranked.items():
        ids, scores = zip(*hits, strict=True)
        assert len(set(ids)) == len(ids)
        assert (np.diff(scores) < 0).all()
        start, end = documents.spans[query.split("/")[0]]
        assert set(ids) <= set(documents.ids[start:end])
    of_query = run.frame.group_by("query_id", maintain_order=True).agg("rank")["rank"].to_list()
    assert all(ranks == list(range(1, len(ranks) + 1)) for ranks in of_query)
    assert len(ranked.get("bob/q0", [])) == 1, "a scope of one turn"


@pytest.mark.parametrize("level", ["turn", "session"])
@pytest.mark.parametrize("stage", STAGES)
def test_other_ids_give_the_same_ranking(
    bench: Bench, other: tuple[Bench, dict[str, str]], stage: str, level: Any
) -> None:
    one, two = (memlab.pipeline(text_of(stage)).run(its, level=level) for its in (bench, other[0]))
    names = other[1]
    assert rankings(two) == {
        names[query]: [(names[document], score) for document, score in hits] for query, hits in rankings(one).items()
    }


@pytest.mark.parametrize("stage", STAGES)
def test_a_question_ranks_alone_as_in_a_batch_and_no_question_is_no_ranking(bench: Bench, stage: str) -> None:
    batch = rankings(memlab.pipeline(text_of(stage)).run(bench))
    for rows in (bench.queries[0:0], bench.queries[1:2], bench.queries[4:5], bench.queries[5:6]):
        alone = rankings(memlab.pipeline(text_of(stage)).run(bench.with_queries(rows)))
        assert list(alone) == [query for query in rows["query_id"] if query in batch]
        for query, hits in alone.items():
            assert [document for document, _ in hits] == [document for document, _ in batch[query]]
            # A product of float32 may round otherwise in a batch of another size.
            assert [score for _, score in hits] == pytest.approx([score for _, score in batch[query]], rel=1e-5)


@pytest.mark.parametrize("stage", STAGES)
def test_without_embeddings_a_stage_works_or_says_so(stage: str) -> None:
    plain = Bench.of(world(), encoder=None)
    try:
        run = memlab.pipeline(text_of(stage, first="bm25")).run(plain)
    except MemlabError as error:
        run, said = None, str(error)
    assert run.frame.height if run else "encoder" in said


@pytest.mark.parametrize("stage", [name for name in STAGES if is_retriever(memlab.stages[name])])
def test_a_retriever_gives_at_most_k_and_refuses_an_empty_scope(bench: Bench, stage: str) -> None:
    nobody = bench.with_queries(bench.queries.with_columns(scope=pl.lit("nobody")))
    with pytest.raises(DataError, match="nobody"):
        memlab.pipeline(stage).run(nobody)
    assert memlab.pipeline(text_of(stage, k=2)).run(bench).frame["rank"].max() == 2
    with pytest.raises(DataError, match=r"k( is |=)0"):
        memlab.pipeline(text_of(stage, k=0)).run(bench)
