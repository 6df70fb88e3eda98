"""What every registered stage promises, with its default parameters."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from stand_in import StandIn
from talk import odd_world

import memlab
from memlab.embed import load
from memlab.errors import DataError, MemlabError, PipelineError
from memlab.pipelines import Pipeline, Stage
from memlab.records import Dataset, Run
from memlab.registry import is_retriever
from memlab.retrieve import Bench

# A cross-encoder is a model of the user's, and has tests of its own.
STAGES = sorted(set(memlab.stages) - {"cross_encoder"})
RETRIEVERS = [name for name in STAGES if is_retriever(memlab.stages[name])]
RERANKERS = sorted(set(STAGES) - set(RETRIEVERS))


def bench_of(data: Dataset) -> Bench:
    """Read words alone, in milliseconds, under the name of MiniLM, which the bundled reranker asks for."""
    encoder = StandIn(384)
    encoder.identity = load("minilm").identity
    return Bench.of(data, encoder=encoder)


def renamed(data: Dataset) -> tuple[Dataset, dict[str, str]]:
    """Give every id another one, in another alphabetical order."""
    ids = [
        *data.scopes,
        *data.turns["turn_id"],
        *data.sessions["session_id"],
        *data.questions["query_id"],
    ]
    numbers = np.random.default_rng(0).permutation(len(ids))
    names = {old: f"x{number:03}" for old, number in zip(ids, numbers, strict=True)}
    new = pl.selectors.by_name(
        "scope", "turn_id", "session_id", "query_id", require_all=False
    ).replace_strict(names)
    tables = {
        name: getattr(data, name).with_columns(new) for name in ("turns", "sessions", "questions")
    }
    return replace(data, **tables), names


def built_of(stage: str, **parameters: Any) -> Pipeline:
    """Make a pipeline whose parameters no text was checked for."""
    last = Stage(stage, parameters)
    if stage in RETRIEVERS:
        return Pipeline((last,))
    return Pipeline((Stage("combsum", {}), last))


def text_of(stage: str, *, first: str = "combsum", **parameters: Any) -> str:
    last = (
        f"{stage}({', '.join(f'{name}={value!r}' for name, value in parameters.items())})"
        if parameters
        else stage
    )
    return last if stage in RETRIEVERS else f"{first} | {last}"


def rankings(run: Run) -> dict[str, list[tuple[str, float]]]:
    grouped = run.frame.group_by("query_id", maintain_order=True).agg("doc_id", "score")
    return {
        query: list(zip(ids, scores, strict=True)) for query, ids, scores in grouped.iter_rows()
    }


@pytest.fixture(scope="module")
def bench() -> Bench:
    return bench_of(odd_world())


@pytest.fixture(scope="module")
def other() -> tuple[Bench, dict[str, str]]:
    data, names = renamed(odd_world())
    return bench_of(data), names


@pytest.fixture(scope="module")
def alone() -> dict[str, Bench]:
    return {scope: bench_of(odd_world().take([scope])) for scope in ("bob", "cyd")}


@pytest.mark.parametrize("level", ["turn", "session"])
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.slow
def test_a_ranking_is_strict_finite_and_of_its_scope_whatever_the_ids(
    bench: Bench, other: tuple[Bench, dict[str, str]], stage: str, level: Any
) -> None:
    run, again = (
        memlab.pipeline(text_of(stage)).run(its, level=level) for its in (bench, other[0])
    )
    ranked, documents = rankings(run), bench.documents(level)
    assert list(ranked) == [query for query in bench.queries["query_id"] if query in ranked], (
        "queries in their order"
    )
    for query, hits in ranked.items():
        ids, scores = zip(*hits, strict=True)
        assert len(set(ids)) == len(ids)
        assert np.isfinite(scores).all()
        assert (np.diff(scores) < 0).all()
        start, end = documents.spans[query.split("/")[0]]
        assert set(ids) <= set(documents.ids[start:end])
    assert run.frame["rank"].equals(
        run.frame.select(pl.int_range(1, pl.len() + 1).over("query_id")).to_series()
    )
    name = other[1].__getitem__
    expected = {
        name(query): [(name(doc), score) for doc, score in hits] for query, hits in ranked.items()
    }
    assert rankings(again) == expected


@pytest.mark.parametrize("stage", STAGES)
def test_a_question_and_a_scope_rank_alone_as_beside_others(
    bench: Bench, alone: dict[str, Bench], stage: str
) -> None:
    whole = rankings(memlab.pipeline(text_of(stage)).run(bench))
    some = [bench.with_queries(bench.queries[row]) for row in (slice(0, 0), slice(4, 5))]
    for part in (*some, *alone.values()):
        found = rankings(memlab.pipeline(text_of(stage)).run(part))
        assert list(found) == [query for query in part.queries["query_id"] if query in whole]
        for query, hits in found.items():
            # A product of float32 may round otherwise in a batch of another size.
            assert dict(hits) == pytest.approx(dict(whole[query]), rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("stage", RERANKERS)
def test_a_ranking_of_nothing_stays_nothing_and_one_of_sessions_is_ranked_or_refused(
    bench: Bench, stage: str
) -> None:
    run, sessions = (
        memlab.pipeline("combsum").run(bench, level=level) for level in ("turn", "session")
    )
    assert not memlab.stages[stage](replace(run, frame=run.frame.clear()), bench).frame.height
    try:
        level = str(memlab.stages[stage](sessions, bench).level)
    except DataError as error:
        level = str(error)
    assert level == "session" or "takes a ranking of turns" in level


UNUSABLE: dict[str, dict[str, Any]] = {
    "bm25": {"b": 2.0},
    "combsum": {"session": (1, 1)},
    "expand": {"kinds": ("lex", "rm3")},
    "decompose": {"retriever": "mmr"},
    "second_keys": {"of": "words"},
    "multi_hop": {"hops": 4},
    "rerank_llm": {"least": 4},
    "by_cluster": {"clustering": "k-means"},
}
TEXTS = [
    "bm25(b=2.0)", "combsum(session=(1, 1))", "combsum | expand(kinds=('lex', 'rm3'))",
    "combsum | decompose(retriever='mmr')", "combsum | second_keys(of='words')", "combsum | multi_hop(hops=4)",
    "combsum | rerank_llm(least=4)", "combsum | by_cluster(clustering='k-means')",
]  # fmt: skip


def test_what_cannot_be_used_is_refused_by_name(bench: Bench) -> None:
    for stage in STAGES:
        for name, parameter in inspect.signature(memlab.stages[stage]).parameters.items():
            if type(parameter.default) in (int, float) and name != "seed":
                value = type(parameter.default)(-2)
                with pytest.raises(PipelineError, match=rf"\b{name} is -2"):
                    memlab.pipeline(text_of(stage, **{name: value}))
                # The function itself, called in a script, refuses it too.
                with pytest.raises(DataError, match=rf"\b{name} is -2"):
                    built_of(stage, **{name: value}).run(bench)
            if name == "service":
                with pytest.raises(MemlabError, match=r"llm\.services\.nowhere"):
                    memlab.pipeline(text_of(stage, service="nowhere")).run(bench)
    for text in TEXTS:
        with pytest.raises(PipelineError):
            memlab.pipeline(text)
    for stage, parameters in UNUSABLE.items():
        with pytest.raises(DataError):
            built_of(stage, **parameters).run(bench)


@pytest.mark.parametrize("stage", STAGES)
def test_without_embeddings_a_stage_works_or_says_so(stage: str) -> None:
    try:
        found = (
            memlab.pipeline(text_of(stage, first="bm25"))
            .run(Bench.of(odd_world(), encoder=None))
            .frame.height
        )
    except MemlabError as error:
        found = "encoder" in str(error)
    assert found


@pytest.mark.parametrize("stage", RETRIEVERS)
def test_a_retriever_gives_at_most_k_and_refuses_an_empty_scope(bench: Bench, stage: str) -> None:
    nobody = bench.with_queries(bench.queries.with_columns(scope=pl.lit("nobody")))
    with pytest.raises(DataError, match="nobody"):
        memlab.pipeline(stage).run(nobody)
    assert memlab.pipeline(text_of(stage, k=2)).run(bench).frame["rank"].max() == 2
    with pytest.raises(DataError, match=r"k( is |=)0"):
        built_of(stage, k=0).run(bench)
