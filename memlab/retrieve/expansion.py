"""Query expansion: other words for a question, written by a language model; always, or where first results are weak."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl
from pydantic import BaseModel, Field

from memlab import llm
from memlab.errors import DataError, at_least
from memlab.records import Run
from memlab.registry import stage
from memlab.retrieve.arrays import units
from memlab.retrieve.bench import Bench
from memlab.retrieve.fusion import combsum
from memlab.retrieve.ranking import of_turns
from memlab.retrieve.subqueries import ask, by_vectors, joined, written

KINDS = ("lex", "vec", "hyde")
SEARCHES = {"lex": "bm25", "vec": "dense"}

# Of weakness: the first turns that are looked at, and the signals of combsum: dense and BM25, of turn and session.
FIRST, SIGNALS = 3, 4

INSTRUCTION = (
    "You help to search what somebody said in earlier chats. For the question, write JSON with three fields: "
    "lex: the few keywords that the answer would hold; "
    "vec: the question in other words; "
    "hyde: one sentence that somebody may have said in a chat and that answers the question, written as 'Name: …' "
    "where the question names a person. Make up what you do not know."
)


class Expansion(BaseModel, extra="forbid"):
    """What a language model writes for a question."""

    lex: str = Field(description="keywords")
    vec: str = Field(description="the question in other words")
    hyde: str = Field(description="a sentence of a chat that answers the question")


@stage
def expand(
    run: Run,
    bench: Bench,
    *,
    service: str = llm.RECORDED,
    kinds: Sequence[str] = KINDS,
    weight: float = 0.5,
    k: int = 200,
) -> Run:
    """Search for a language model's expansions of each question and fuse by guarded reciprocal rank fusion.

    Each kind of expansion has the search that it suits: keywords (``lex``) go to BM25; a paraphrase (``vec``) and a
    hypothetical turn that answers the question (``hyde``) to the embeddings, the latter as a document, averaged with
    the question. A question without an answer of the model keeps its ranking, with a warning.

    :param service: what writes them, see :func:`memlab.llm.ask`.
    :param kinds: which of ``lex``, ``vec`` and ``hyde``.
    :param weight: of an expansion's list; the run's own list weighs 1, and its first three places are guarded.
    :raises DataError: for an unknown kind, a negative weight, or ``vec`` or ``hyde`` without an encoder.
    :raises ModelError: when no such service is set.

    Source: typed expansions: the search tool qmd; ``hyde``: Gao et al., Precise Zero-Shot Dense Retrieval without
    Relevance Labels (ACL 2023).

    >>> from memlab import retrieve, sample
    >>> from memlab.retrieve.expansion import expand
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder="hashing")
    >>> expand(retrieve.bm25(bench), bench, kinds=("lex", "syn"))
    Traceback (most recent call last):
        ...
    memlab.errors.DataError: kinds=('lex', 'syn'); choose from lex, vec, hyde, each once
    """
    of_turns(run, "expand")
    at_least(0, weight=weight)
    if not kinds or not set(kinds) <= set(KINDS) or len(set(kinds)) < len(kinds):
        raise DataError(f"kinds={tuple(kinds)}; choose from {', '.join(KINDS)}, each once")
    if {"vec", "hyde"} & set(kinds) and bench.encoder is None:
        raise DataError("expansions of kind vec and hyde are embedded: make the bench with an encoder, or use 'lex'")
    asked = bench.queries.join(run.frame, on="query_id", how="semi")
    questions = asked.select(question="text")
    values = written(questions, service, task="expand", shape=Expansion, system=INSTRUCTION, what="expansions")
    both = zip(asked["query_id"], values, strict=True)
    rows = [{"query_id": query, **value.model_dump()} for query, value in both if value is not None]
    expansions = pl.DataFrame(rows, schema=dict.fromkeys(("query_id", *KINDS), pl.String()))
    lists = [
        _hypothetical(bench, expansions, k)
        if kind == "hyde"
        else ask(bench, expansions.select("query_id", text=kind), retriever=SEARCHES[kind], k=k).drop("part")
        for kind in kinds
    ]
    return joined(run, bench, pl.concat(lists), weight=weight, k=k)


def _hypothetical(bench: Bench, expansions: pl.DataFrame, k: int) -> pl.DataFrame:
    """Search by the mean of a question's vector and that of its hypothetical turn, which is embedded as a document."""
    embedded = bench.embedder().encode(expansions["hyde"].to_list(), kind="document", progress=False)
    vectors = bench.query_vectors.copy()
    vectors[bench.asked(expansions.select("query_id"), "row")["row"].to_numpy()] += embedded
    hits = by_vectors(bench, units(vectors), k=k).frame
    return hits.join(expansions, on="query_id", how="semi", maintain_order="left")


def weakness(run: Run, bench: Bench) -> pl.DataFrame:
    """Say how little the first three results of each question stand out from the rest of the scope.

    A question that the memory can answer has a few turns that score far above all others. The value is minus the mean
    :func:`memlab.retrieve.combsum` score of the run's first turns, over its four signals: −3 says that they lie three
    standard deviations above the scope's average turn, 0 that they are no better than any. So it means the same after
    any stage and in any scope, whatever the run's own scores are; a threshold on the cosine would not.

    :param run: a ranking of turns.
    :returns: ``query_id`` and ``value``, larger for a weaker result, in the run's order of questions.
    :raises DataError: when the run ranks sessions, or the bench has no embeddings.

    Source: weighted information gain, Zhou and Croft, Query Performance Prediction in Web Search Environments (SIGIR
    2007), with standardised scores.

    >>> from memlab import retrieve, sample
    >>> from memlab.retrieve import weakness
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder="hashing")
    >>> weakness(retrieve.bm25(bench), bench).height == bench.queries.height
    True
    """
    of_turns(run, "weakness")
    scored = combsum(bench).frame.select("query_id", "doc_id", signal="score")
    lowest = scored.group_by("query_id").agg(lowest=pl.col("signal").min())
    first = run.top(FIRST).frame.join(scored, on=["query_id", "doc_id"], how="left", maintain_order="left")
    both = first.join(lowest, on="query_id", how="left", maintain_order="left")
    value = -pl.coalesce("signal", "lowest").mean() / SIGNALS
    return both.group_by("query_id", maintain_order=True).agg(value=value)


@stage
def hyde(
    run: Run, bench: Bench, *, service: str = llm.RECORDED, threshold: float = -3.0, weight: float = 0.5, k: int = 200
) -> Run:
    """Search for a hypothetical answer of a language model (HyDE) where the results are weak.

    Where they are strong, a made-up answer can only lead away from them, and asking the model costs time.

    :param service: what writes it, see :func:`memlab.llm.ask`.
    :param threshold: the model is asked for questions whose :func:`weakness` is larger.
    :param weight: as in :func:`expand`, which this is for ``kinds=("hyde",)``.
    :raises DataError: without an encoder, or for a negative weight.
    :raises ModelError: when the model is needed, and no such service is set.

    >>> from memlab import retrieve, sample
    >>> from memlab.retrieve import hyde
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder="hashing")
    >>> plain = retrieve.bm25(bench)
    >>> hyde(plain, bench, threshold=10.0).frame["doc_id"].equals(plain.frame["doc_id"])  # none is so weak
    True
    """
    weak = weakness(run, bench).filter(pl.col("value") > threshold)
    asked = run.frame.join(weak, on="query_id", how="semi", maintain_order="left")
    if not asked.height:
        return run
    better = expand(replace(run, frame=asked), bench, service=service, kinds=("hyde",), weight=weight, k=k)
    strong = run.top(k).frame.join(weak, on="query_id", how="anti", maintain_order="left")
    order = run.frame.select("query_id").unique(maintain_order=True)
    both = order.join(pl.concat([strong, better.frame]), on="query_id", how="left", maintain_order="left_right")
    return bench.show(replace(run, frame=both))
