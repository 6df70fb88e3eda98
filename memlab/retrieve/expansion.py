"""Query expansion: other words for a question, from a language model or from the first results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl
from pydantic import BaseModel, ConfigDict, Field

from memlab import llm
from memlab.errors import DataError
from memlab.records import Run, run_from_scores
from memlab.registry import stage
from memlab.retrieve.bench import Bench
from memlab.retrieve.bm25 import normalisation
from memlab.retrieve.dense import cosines
from memlab.retrieve.ranking import rank
from memlab.retrieve.subqueries import ask, joined

KINDS = ("lex", "vec", "hyde")
FEEDBACK = ("rm3", "rocchio")

INSTRUCTION = (
    "You help to search what somebody said in earlier chats. For the question, write JSON with three fields: "
    "lex: the few keywords that the answer would hold; "
    "vec: the question in other words; "
    "hyde: one sentence that somebody may have said in a chat and that answers the question, written as 'Name: …' "
    "where the question names a person. Make up what you do not know."
)

# Of RM3: what the feedback adds weighs as much as the question; words in more than a tenth of the turns (and more than
# five), such as the speakers' names, tell none of them apart. Of Rocchio: the weight of the feedback beside the
# question's 1.
RM3_MIX, RM3_COMMON, RM3_FEW, ROCCHIO_BETA = 0.5, 0.1, 5, 0.75

# Scores that differ by less than this part of the largest are ties that were put in order.
FLAT = 1e-4
CHUNK = 256


class Expansion(BaseModel):
    """What a language model writes for a question."""

    model_config = ConfigDict(extra="forbid")

    lex: str = Field(description="keywords")
    vec: str = Field(description="the question in other words")
    hyde: str = Field(description="a sentence of a chat that answers the question")


@stage
def expand(
    run: Run,
    bench: Bench,
    *,
    service: str | None = None,
    kinds: Sequence[str] = KINDS,
    weight: float = 0.5,
    guard: bool = True,
    k: int = 200,
) -> Run:
    """Search also for what a language model writes for each question, and fuse by guarded reciprocal rank fusion.

    Each kind of expansion has the search that it suits: keywords (``lex``) go to BM25; a paraphrase (``vec``) and a
    hypothetical turn that answers the question (``hyde``) to the embeddings, the latter as a document, averaged with
    the question. A question that the model gives no usable answer for keeps its ranking, with a warning.

    :param service: name of a service of the settings, ``[llm.services.NAME]``; may be left out where there is one.
    :param kinds: which of ``lex``, ``vec`` and ``hyde``.
    :param weight: of an expansion's list; the run's own list weighs 1.
    :param guard: protect the first three places of the run, see :func:`memlab.retrieve.rrf`.
    :raises DataError: for an unknown kind, a negative weight, or ``vec`` or ``hyde`` without an encoder.
    :raises ModelError: when no such service is set, or it fails.

    Source: typed expansions: the search tool qmd; ``hyde``: Gao et al., Precise Zero-Shot Dense Retrieval without
    Relevance Labels (ACL 2023).

    >>> from memlab import datasets, retrieve
    >>> from memlab.retrieve.expansion import expand
    >>> bench = retrieve.Bench.of(datasets.synthetic.generate(turns=60, seed=0), encoder="hashing")
    >>> expand(retrieve.bm25(bench), bench, kinds=("lex", "syn"))
    Traceback (most recent call last):
        ...
    memlab.errors.DataError: kinds=('lex', 'syn'); choose from lex, vec, hyde, each once
    """
    _check(run, "kinds", kinds, KINDS)
    if {"vec", "hyde"} & set(kinds) and bench.encoder is None:
        raise DataError("expansions of kind vec and hyde are embedded: make the bench with an encoder, or use 'lex'")
    asked = bench.queries.join(run.frame.select("query_id").unique(), on="query_id", how="semi")
    written = _written(asked, llm.configured(service))
    found = [
        _hypothetical(bench, written, k)
        if kind == "hyde"
        else ask(
            bench, written.select("query_id", text=kind), retriever={"lex": "bm25", "vec": "dense"}[kind], k=k
        ).select("query_id", "doc_id", "rank", "score")
        for kind in kinds
    ]
    return joined(run, bench, pl.concat(found), weight=weight, guard=guard, k=k)


@stage
def prf(
    run: Run,
    bench: Bench,
    *,
    n_docs: int = 5,
    n_terms: int = 10,
    weight: float = 0.5,
    kinds: Sequence[str] = FEEDBACK,
    k: int = 200,
) -> Run:
    """Search again with what the first results say: pseudo-relevance feedback, without a language model.

    ``rm3`` is BM25 with the question's words and the words that the first results share; ``rocchio`` is dense search
    with the question's vector moved towards theirs. Their scores are added to the run's, each list standardised over
    what it holds, since ranks forget how much better one turn is than the next. Results that the run lists at a score
    of 0 or less teach nothing; a question without others keeps its ranking.

    :param n_docs: how many of the first results are taken as relevant.
    :param n_terms: how many of their words are added.
    :param weight: of the scores of each kind; those of the run weigh 1.
    :param kinds: ``rm3``, ``rocchio`` or both; a bench without an encoder has ``rm3`` alone.
    :raises DataError: for an unknown kind, a count that is not positive, a negative weight, or ``rocchio`` without
        embeddings.

    Source: Lavrenko and Croft, Relevance-Based Language Models (SIGIR 2001); RM3: Abdul-Jaleel et al., UMass at TREC
    2004; Rocchio, Relevance Feedback in Information Retrieval (1971).

    >>> from memlab import datasets, retrieve
    >>> from memlab.retrieve.expansion import prf
    >>> bench = retrieve.Bench.of(datasets.synthetic.generate(turns=60, seed=0), encoder="hashing")
    >>> plain = retrieve.bm25(bench, k=5)
    >>> prf(plain, bench, weight=0.0, k=5).frame["doc_id"].equals(plain.frame["doc_id"])
    True
    """
    _check(run, "kinds", kinds, FEEDBACK)
    if n_docs < 1 or n_terms < 1 or weight < 0:
        raise DataError(f"n_docs={n_docs}, n_terms={n_terms}, weight={weight}; expected ≥ 1, ≥ 1 and ≥ 0")
    first = run.frame.filter((pl.col("rank") <= n_docs) & (pl.col("score") > 0))
    numbers = pl.DataFrame({"query_id": bench.queries["query_id"], "query": np.arange(bench.queries.height)})
    query = first.join(numbers, on="query_id", how="left", maintain_order="left")["query"].to_numpy()
    at = bench.documents("turn").at(first["doc_id"])
    lists = []
    for kind in kinds:
        if kind == "rm3":
            again = rank(bench, _rm3_scores(bench, query, at, n_terms), level="turn", k=k)
        else:
            again = by_vectors(bench, _rocchio(bench, query, at), k=k)
        lists.append(again.frame.join(first, on="query_id", how="semi", maintain_order="left"))
    return bench.show(_summed([run.frame, *lists], [1.0, *[weight] * len(lists)], k))


def by_vectors(bench: Bench, vectors: np.ndarray, *, k: int = 200) -> Run:
    """Rank turns by their cosine with given vectors.

    :param vectors: (q, d) unit rows, one for each of the bench's queries.
    :raises DataError: without embeddings.
    """
    turns = bench.documents("turn").vectors()
    scored = ((rows, span, cosines(vectors[rows], turns[span])) for rows, span in bench.by_scope("turn"))
    return rank(bench, scored, level="turn", k=k)


def _check(run: Run, name: str, given: Sequence[str], known: Sequence[str]) -> None:
    if run.level != "turn":
        raise DataError("the run ranks sessions; expansion searches turns and takes a ranking of turns")
    if not given or not set(given) <= set(known) or len(set(given)) < len(given):
        raise DataError(f"{name}={tuple(given)}; choose from {', '.join(known)}, each once")


def _written(asked: pl.DataFrame, service: llm.Service) -> pl.DataFrame:
    """Ask the model: ``query_id``, ``lex``, ``vec``, ``hyde`` of the questions that it answers well."""
    answers = llm.chat(service, asked["text"].to_list(), Expansion, system=INSTRUCTION, required=False)
    rows = [
        {"query_id": query, **answer.model_dump()}
        for query, answer in zip(asked["query_id"], answers, strict=True)
        if answer is not None
    ]
    return pl.DataFrame(rows, schema=dict.fromkeys(("query_id", *KINDS), pl.String()))


def _hypothetical(bench: Bench, written: pl.DataFrame, k: int) -> pl.DataFrame:
    """Search by the mean of a question's vector and that of its hypothetical turn, which is embedded as a document."""
    if bench.query_vectors is None or bench.encoder is None:
        raise DataError("the queries are not embedded; make the bench with an encoder")
    embedded = bench.encoder.encode(written["hyde"].to_list(), kind="document", progress=False)
    row = pl.DataFrame({"query_id": bench.queries["query_id"], "row": np.arange(bench.queries.height)})
    rows = written.join(row, on="query_id", how="left", maintain_order="left")["row"].to_numpy()
    vectors = bench.query_vectors.copy()
    vectors[rows] += embedded
    return by_vectors(bench, _units(vectors), k=k).frame.join(written, on="query_id", how="semi", maintain_order="left")


def _rocchio(bench: Bench, query: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Move the queries' vectors towards the mean of their feedback: (q, d) unit rows."""
    if bench.query_vectors is None:
        raise DataError("the queries are not embedded; make the bench with an encoder, or use kinds=('rm3',)")
    relevant = _share(query, at, len(bench.query_vectors), len(bench.documents("turn").ids))
    return _units(bench.query_vectors + ROCCHIO_BETA * (relevant @ bench.documents("turn").vectors()))


def _rm3_scores(
    bench: Bench, query: np.ndarray, at: np.ndarray, n_terms: int
) -> Iterator[tuple[np.ndarray, slice, np.ndarray]]:
    """Give BM25 scores of the weighted words of question and feedback, as :func:`bm25.bm25_scores` does."""
    documents = bench.documents("turn")
    for rows, span in bench.by_scope("turn"):
        words = documents.words_in(span)
        postings = words.weights(*normalisation(words, "turn"))
        scores = np.zeros((len(rows), span.stop - span.start), np.float32)
        common = words.frequency > max(RM3_FEW, RM3_COMMON * len(words.lengths))
        asked = _parts(words.asked([bench.query_words[row] for row in rows]))
        inside = np.isin(query, rows)
        used, column = np.unique(at[inside] - span.start, return_inverse=True)
        told = _parts(words.counts[:, used].T.tocsr())
        relevant = _share(np.searchsorted(rows, query[inside]), column, len(rows), len(used))
        for start in range(0, len(rows) if len(words.number) else 0, CHUNK):
            chunk = slice(start, start + CHUNK)
            shared = (relevant[chunk] @ told).toarray()
            shared[:, common] = 0
            mixed = RM3_MIX * asked[chunk].toarray() + (1 - RM3_MIX) * _largest(shared, n_terms)
            scores[chunk] = (postings.T @ mixed.T).T
        yield rows, span, scores


def _share(row: np.ndarray, column: np.ndarray, n_rows: int, n_columns: int) -> Any:
    """Count pairs, as parts of their row's number: a sparse (n_rows, n_columns)."""
    from scipy.sparse import csr_array

    total = np.bincount(row, minlength=n_rows)
    return csr_array((1.0 / total[row], (row, column)), shape=(n_rows, n_columns))


def _parts(counts: Any) -> Any:
    """Give each row's counts as parts of their sum."""
    total = np.repeat(counts.sum(axis=1), np.diff(counts.indptr))
    counts.data = counts.data / total
    return counts


def _largest(shares: np.ndarray, n: int) -> np.ndarray:
    """Keep each row's ``n`` largest numbers, and what ties with the last of them; scaled to sum to 1."""
    if n < shares.shape[1]:
        threshold = np.partition(shares, -n, axis=1)[:, -n, None]
        shares = np.where(shares >= threshold, shares, 0.0)
    total = shares.sum(axis=1, keepdims=True)
    return np.divide(shares, total, out=np.zeros_like(shares), where=total > 0)


def _units(vectors: np.ndarray) -> np.ndarray:
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0)


def _summed(lists: list[pl.DataFrame], weights: list[float], k: int) -> Run:
    """Add scores, each list's standardised within the query; what a list does not hold has that list's lowest."""
    score, query = pl.col("score"), "query_id"
    spread = score.std().over(query)
    flat = spread.fill_null(0) <= FLAT * score.abs().max().over(query)
    gain = pl.when(flat).then(0.0).otherwise((score - score.min().over(query)) / spread)
    parts = [part.select(query, "doc_id", gain=weight * gain) for part, weight in zip(lists, weights, strict=True)]
    total = pl.concat(parts).group_by(query, "doc_id", maintain_order=True).agg(pl.col("gain").sum())
    columns = (total[name].to_numpy() for name in (query, "doc_id", "gain"))
    return run_from_scores(*columns, level="turn", k=k)
