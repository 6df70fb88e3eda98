"""Query expansion: other words for a question, from a language model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import polars as pl
from pydantic import AfterValidator, BaseModel, Field

from memlab import llm
from memlab.errors import DataError, check_at_least
from memlab.records import Run
from memlab.registry import Count, Weight, stage
from memlab.retrieve.bench import Bench
from memlab.retrieve.cosine import scale_to_unit
from memlab.retrieve.rankings_from_scores import refuse_session_run
from memlab.retrieve.subquery_search import (
    ask_model_per_question_and_warn,
    fuse_run_with_hits,
    rank_turns_by_vectors,
    search_subqueries,
)

KINDS = ("lex", "vec", "hyde")
SEARCHES = {"lex": "bm25", "vec": "dense"}

INSTRUCTION = (
    "You help to search what somebody said in earlier chats. For the question, write JSON with "
    "three fields: lex: the few keywords that the answer would hold; vec: the question in other "
    "words; hyde: one sentence that somebody may have said in a chat and that answers the "
    "question, written as 'Name: …' where the question names a person. Make up what you do not "
    "know."
)


class Expansion(BaseModel, extra="forbid"):
    """What a language model writes for a question."""

    lex: str = Field(description="keywords")
    vec: str = Field(description="the question in other words")
    hyde: str = Field(description="a sentence of a chat that answers the question")


def _require_known_kinds_once(kinds: Sequence[str]) -> Sequence[str]:
    if not kinds or not set(kinds) <= set(KINDS) or len(set(kinds)) < len(kinds):
        raise ValueError(f"choose from {', '.join(KINDS)}, each once")
    return kinds


Kinds = Annotated[Sequence[str], AfterValidator(_require_known_kinds_once)]
"""Type of a stage's parameter that names kinds of expansion: checked when it is read."""


@stage
def expand(
    run: Run,
    bench: Bench,
    *,
    service: str = llm.RECORDED,
    kinds: Kinds = KINDS,
    weight: Weight = 0.5,
    k: Count = 200,
) -> Run:
    """Search for a language model's expansions of each question and fuse by guarded reciprocal rank
    fusion.

    Each kind of expansion has the search that it suits: keywords (``lex``) go to BM25; a paraphrase
    (``vec``) and a hypothetical turn that answers the question (``hyde``) to the embeddings, the
    latter as a document, averaged with the question. A question without an answer of the model
    keeps its ranking, with a warning.

    :param service: what writes them, see :func:`memlab.llm.ask`.
    :param kinds: which of ``lex``, ``vec`` and ``hyde``.
    :param weight: of an expansion's list; the run's own list weighs 1, and its first three places
        are guarded.
    :raises DataError: for an unknown kind, a negative weight, or ``vec`` or ``hyde`` without an
        encoder.
    :raises ModelError: when no such service is set.

    Source: typed expansions: the search tool qmd; ``hyde``: Gao et al., Precise Zero-Shot Dense
    Retrieval without Relevance Labels (ACL 2023).

    >>> from memlab import retrieve, sample
    >>> from memlab.retrieve.query_expansion import expand
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder="hashing")
    >>> expand(retrieve.bm25(bench), bench, kinds=("lex", "syn"))
    Traceback (most recent call last):
        ...
    memlab.errors.DataError: kinds=('lex', 'syn'); choose from lex, vec, hyde, each once
    """
    refuse_session_run(run, "expand")
    check_at_least(0, weight=weight)
    try:
        _require_known_kinds_once(kinds)
    except ValueError as error:
        raise DataError(f"kinds={tuple(kinds)}; {error}") from None
    if {"vec", "hyde"} & set(kinds):
        bench.embedder()  # before the model is asked
    ranked_questions = bench.queries.join(
        run.frame, on="query_id", how="semi", maintain_order="left"
    )
    model_inputs = ranked_questions.select(question="text")
    model_answers = ask_model_per_question_and_warn(
        model_inputs,
        service,
        task="expand",
        answer_type=Expansion,
        system_prompt=INSTRUCTION,
        answers_name="expansions",
    )
    ids_and_answers = zip(ranked_questions["query_id"], model_answers, strict=True)
    expansion_rows = [
        {"query_id": query_id, **model_answer.model_dump()}
        for query_id, model_answer in ids_and_answers
        if model_answer is not None
    ]
    expansions = pl.DataFrame(
        expansion_rows, schema=dict.fromkeys(("query_id", *KINDS), pl.String())
    )
    hit_lists = [
        _search_hypothetical_turns(bench, expansions, k)
        if expansion_kind == "hyde"
        else search_subqueries(
            bench,
            expansions.select("query_id", text=expansion_kind),
            retriever=SEARCHES[expansion_kind],
            k=k,
        ).drop("part")
        for expansion_kind in kinds
    ]
    return fuse_run_with_hits(run, bench, pl.concat(hit_lists), weight=weight, k=k)


def _search_hypothetical_turns(bench: Bench, expansions: pl.DataFrame, k: int) -> pl.DataFrame:
    """Search by the mean of a question's vector and that of its hypothetical turn, which is
    embedded as a document.
    """
    hypothetical_vectors = bench.embedder().encode(
        expansions["hyde"].to_list(), kind="document", progress=False
    )
    mean_vectors = bench.require_query_vectors().copy()
    mean_vectors[
        bench.join_question_columns(expansions.select("query_id"), "row")["row"].to_numpy()
    ] += hypothetical_vectors
    hits = rank_turns_by_vectors(bench, scale_to_unit(mean_vectors), k=k).frame
    return hits.join(expansions, on="query_id", how="semi", maintain_order="left")


@stage
def hyde(
    run: Run, bench: Bench, *, service: str = llm.RECORDED, weight: Weight = 0.5, k: Count = 200
) -> Run:
    """Search for a hypothetical answer of a language model (HyDE): :func:`expand` with
    ``kinds=("hyde",)``.

    >>> from memlab import retrieve, sample
    >>> from memlab.retrieve import hyde
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder=None)
    >>> hyde(retrieve.bm25(bench), bench)
    Traceback (most recent call last):
        ...
    memlab.errors.DataError: this bench has no encoder to embed texts with; make it with one, such
    as ...
    """
    return expand(run, bench, service=service, kinds=("hyde",), weight=weight, k=k)
