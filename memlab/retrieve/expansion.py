"""Query expansion: other words for a question, from a language model or from the first results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from pydantic import BaseModel, Field

from memlab import llm
from memlab.errors import DataError, check_at_least
from memlab.records import Run
from memlab.registry import stage
from memlab.retrieve.bench import Bench
from memlab.retrieve.documents import scale_to_unit
from memlab.retrieve.fusion import rank_by_gains
from memlab.retrieve.ranking import Scored, rank, require_turn_run
from memlab.retrieve.subqueries import (
    fuse_hits,
    generate_per_question,
    rank_by_vectors,
    search_subqueries,
)
from memlab.text.bm25_formula import count_words

KINDS = ("lex", "vec", "hyde")
SEARCHES = {"lex": "bm25", "vec": "dense"}

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
    >>> from memlab.retrieve.expansion import expand
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder="hashing")
    >>> expand(retrieve.bm25(bench), bench, kinds=("lex", "syn"))
    Traceback (most recent call last):
        ...
    memlab.errors.DataError: kinds=('lex', 'syn'); choose from lex, vec, hyde, each once
    """
    require_turn_run(run, "expand")
    check_at_least(0, weight=weight)
    if not kinds or not set(kinds) <= set(KINDS) or len(set(kinds)) < len(kinds):
        raise DataError(f"kinds={tuple(kinds)}; choose from {', '.join(KINDS)}, each once")
    if {"vec", "hyde"} & set(kinds):
        bench.embedder()  # before the model is asked
    asked = bench.queries.join(run.frame, on="query_id", how="semi", maintain_order="left")
    questions = asked.select(question="text")
    values = generate_per_question(
        questions, service, task="expand", shape=Expansion, system=INSTRUCTION, what="expansions"
    )
    both = zip(asked["query_id"], values, strict=True)
    rows = [{"query_id": query, **value.model_dump()} for query, value in both if value is not None]
    expansions = pl.DataFrame(rows, schema=dict.fromkeys(("query_id", *KINDS), pl.String()))
    lists = [
        _search_hypothetical(bench, expansions, k)
        if kind == "hyde"
        else search_subqueries(
            bench, expansions.select("query_id", text=kind), retriever=SEARCHES[kind], k=k
        ).drop("part")
        for kind in kinds
    ]
    return fuse_hits(run, bench, pl.concat(lists), weight=weight, k=k)


def _search_hypothetical(bench: Bench, expansions: pl.DataFrame, k: int) -> pl.DataFrame:
    """Search by the mean of a question's vector and that of its hypothetical turn, which is embedded as a document."""
    embedded = bench.embedder().encode(
        expansions["hyde"].to_list(), kind="document", progress=False
    )
    vectors = bench.query_vectors.copy()
    vectors[bench.asked(expansions.select("query_id"), "row")["row"].to_numpy()] += embedded
    hits = rank_by_vectors(bench, scale_to_unit(vectors), k=k).frame
    return hits.join(expansions, on="query_id", how="semi", maintain_order="left")


@stage
def hyde(
    run: Run, bench: Bench, *, service: str = llm.RECORDED, weight: float = 0.5, k: int = 200
) -> Run:
    """Search for a hypothetical answer of a language model (HyDE): :func:`expand` with ``kinds=("hyde",)``.

    >>> from memlab import retrieve, sample
    >>> from memlab.retrieve import hyde
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder=None)
    >>> hyde(retrieve.bm25(bench), bench)
    Traceback (most recent call last):
        ...
    memlab.errors.DataError: this bench has no encoder to embed texts with; make it with one, such as ...
    """
    return expand(run, bench, service=service, kinds=("hyde",), weight=weight, k=k)


FEEDBACK = 5
"""First results that are taken as relevant."""

# Of RM3: words that are added; what they weigh beside the question's; a word in more than a tenth
# of the turns (and more than five), such as a speaker's name, tells none of them apart. Of Rocchio:
# the weight beside the question's 1.
TERMS, MIX, COMMON, FEW, BETA = 10, 0.5, 0.1, 5, 0.75

# Scores that differ by less than this part of the largest are ties that were put in order.
FLAT = 1e-4


@stage
def prf(run: Run, bench: Bench, *, weight: float = 0.5, k: int = 200) -> Run:
    """Search again with terms of the first five results: pseudo-relevance feedback (RM3 and Rocchio).

    RM3 is BM25 with the question's words and the words that the first results share; Rocchio's
    method, where there is an encoder, is dense search with the question's vector moved towards
    theirs. Their scores are added to the run's, each list standardised over what it holds, since
    ranks forget how much better one turn is than the next. Results that the run lists at a score of
    0 or less teach nothing; a question without others keeps its ranking.

    :param weight: of the scores of each search; those of the run weigh 1.
    :raises DataError: for a ranking of sessions, or a negative weight.

    Source: Lavrenko and Croft, Relevance-Based Language Models (SIGIR 2001); RM3: Abdul-Jaleel et
    al., UMass at TREC 2004; Rocchio, Relevance Feedback in Information Retrieval (1971).

    >>> from memlab import retrieve, sample
    >>> from memlab.retrieve import prf
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder="hashing")
    >>> plain = retrieve.bm25(bench, k=5)
    >>> prf(plain, bench, weight=0.0, k=5).frame["doc_id"].equals(plain.frame["doc_id"])
    True
    """
    require_turn_run(run, "prf")
    check_at_least(0, weight=weight)
    first = run.frame.filter((pl.col("rank") <= FEEDBACK) & (pl.col("score") > 0))
    placed = bench.asked(first, "row").with_columns(at=bench.documents("turn").at(first["doc_id"]))
    relevant = {row: np.array(at) for row, at in placed.group_by("row").agg("at").iter_rows()}
    again = [rank(bench, _rm3_scores(bench, relevant), level="turn", k=k)]
    if bench.encoder is not None:
        vectors, moved = bench.documents("turn").vectors(), bench.query_vectors.astype(np.float64)
        for row, at in relevant.items():
            moved[row] += BETA * vectors[at].mean(axis=0, dtype=np.float64)
        again.append(rank_by_vectors(bench, scale_to_unit(moved), k=k))
    score = pl.col("score")
    spread = score.std().over("query_id")
    flat = spread.fill_null(0) <= FLAT * score.abs().max().over("query_id")
    # From 0 for the lowest of a list, which is what it gives to what it does not hold.
    gain = pl.when(flat).then(0.0).otherwise((score - score.min().over("query_id")) / spread)
    lists = [run.frame.with_columns(gain=gain)]
    for each in again:
        taught = each.frame.join(first, on="query_id", how="semi", maintain_order="left")
        lists.append(taught.with_columns(gain=weight * gain))
    return bench.show(rank_by_gains(lists, level="turn", k=k))


def _rm3_scores(bench: Bench, relevant: Mapping[int, np.ndarray]) -> Scored:
    """Give BM25 scores of the weighted words of question and feedback; noughts for a question without feedback.

    :param relevant: row of a question → places of the turns that it learns from.
    """
    for rows, span in bench.by_scope("turn"):
        words = bench.documents("turn").words_in(span)
        by_turn, postings = words.counts.tocsc(), words.weights(*words.normalisation).T.tocsr()
        common = words.frequency > max(FEW, COMMON * words.n)
        scores = np.zeros((len(rows), span.stop - span.start), np.float32)
        for i, row in enumerate(rows.tolist()):
            if row in relevant and len(common):
                shares = by_turn[:, relevant[row] - span.start].toarray()
                shared = np.where(
                    common, 0.0, (shares / np.maximum(shares.sum(axis=0), 1)).mean(axis=1)
                )
                if len(shared) > TERMS:  # the largest, and what ties with the last of them
                    shared = np.where(shared >= np.partition(shared, -TERMS)[-TERMS], shared, 0.0)
                asked = count_words([bench.query_words[row]], words.number).toarray()[0]
                asked, shared = (part / max(part.sum(), 1e-300) for part in (asked, shared))
                scores[i] = postings @ (MIX * asked + (1 - MIX) * shared)
        yield rows, span, scores
