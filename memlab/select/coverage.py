"""Coverage: a document is worth what it adds to the parts of the question, not what it differs from its neighbours."""

from __future__ import annotations

import numpy as np
import polars as pl

from memlab.errors import DataError, at_least
from memlab.language.analysis import english
from memlab.language.parts import question_parts
from memlab.records import Run
from memlab.registry import stage
from memlab.retrieve.bench import Bench
from memlab.retrieve.ranking import of_turns
from memlab.retrieve.subqueries import ask
from memlab.select.candidates import chunks, reordered

_MATCH = {"query_id": pl.String(), "text": pl.String(), "kind": pl.String(), "rank": pl.Int32(), "match": pl.Float64()}


@stage
def coverage(
    run: Run,
    bench: Bench,
    *,
    k: int = 20,
    candidates: int = 100,
    lambda_: float = 0.5,
    repeat: float = 0.0,
    retriever: str = "hybrid",
) -> Run:
    """Take, ``k`` times, the candidate of best λ · relevance + (1 − λ) · what it adds to the coverage of the question.

    The parts of a question are its words, weighted by their idf in the scope, and, where it compares or lists, its
    facets, each searched on its own (:func:`parts_and_matches`). A part is covered by the best match among what is
    taken; with ``repeat``, the second match counts that much of its own beside it, the third that much again. Once all
    parts are covered, relevance alone goes on choosing: "how many doctors did I see?" needs every turn that matches
    its only part.

    Relevance is the run's score scaled to [0, 1] within the query; all parts together weigh 1. The objective is
    monotone and submodular, so that the greedy choice reaches at least 1 − 1/e of the best there is.

    :param k: how many to take; what is not taken follows in its old order.
    :param candidates: how many of the run's first documents to choose from.
    :param lambda_: 1 is pure relevance, 0 pure coverage.
    :param repeat: in [0, 1], what a further match of a part is worth beside the one before: 0 is facility location,
        with 1 nothing saturates.
    :param retriever: what searches facets: ``dense``, ``bm25``, ``hybrid`` or ``combsum``.
    :raises DataError: for a parameter out of range, or a run of sessions.

    Source: Lin and Bilmes, A class of submodular functions for document summarization (ACL 2011).

    >>> from memlab import retrieve, sample
    >>> from memlab.select.coverage import coverage
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder=None)
    >>> plain = retrieve.bm25(bench)
    >>> coverage(plain, bench, lambda_=1.0, retriever="bm25").frame["doc_id"].equals(plain.frame["doc_id"])
    True
    """
    if not 0 <= lambda_ <= 1:
        raise DataError(f"lambda_ is {lambda_}; it lies between 0 (pure coverage) and 1 (pure relevance)")
    if not 0 <= repeat <= 1:
        raise DataError(f"repeat is {repeat}; it lies between 0 (one match is enough) and 1 (each counts in full)")
    at_least(1, k=k)
    weights, matches = parts_and_matches(run, bench, candidates, retriever=retriever)
    number = run.frame.select(pl.col("query_id").unique(maintain_order=True)).with_row_index("query")
    weighted = matches.join(weights, on=["query_id", "part"], maintain_order="left").join(
        number, on="query_id", maintain_order="left"
    )
    query, part, rank = (weighted[column].to_numpy() for column in ("query", "part", "rank"))
    worth = (weighted["weight"] * weighted["match"]).to_numpy()
    choices: list[np.ndarray] = []
    for numbers, some in chunks(run, bench, candidates):
        inside = (query >= numbers[0]) & (query <= numbers[-1])
        matched = np.zeros((*some.mask.shape, int(part[inside].max(initial=-1)) + 1))
        matched[query[inside] - numbers[0], rank[inside] - 1, part[inside]] = worth[inside]
        relevance = np.where(some.mask, lambda_ * some.relevance, -np.inf)
        taken = _greedy(relevance, (1 - lambda_) * matched, k, repeat)
        choices.extend(row[:n] for row, n in zip(taken, some.mask.sum(axis=1), strict=True))
    return reordered(run, bench, choices)


def gains(matches: np.ndarray, taken: np.ndarray, repeat: float) -> np.ndarray:
    """Say what each candidate would add to the coverage of all parts by what is taken.

    A part is covered by its best match, plus ``repeat`` times the second, ``repeat``² the third … A new match takes its
    place in order; those below move down by one, and lose 1 − ``repeat`` of what they count.

    :param matches: (q, candidates, parts).
    :param taken: (q, n taken, parts), each part's matches in decreasing order.
    :returns: (q, candidates).
    """
    discount = float(repeat) ** np.arange(taken.shape[1] + 1)
    place = (taken[:, None] >= matches[:, :, None]).sum(axis=2)
    counted = np.pad(taken * discount[:-1, None], ((0, 0), (0, 1), (0, 0)))
    below = counted[:, ::-1].cumsum(axis=1)[:, ::-1]
    return (discount[place] * matches - (1 - repeat) * np.take_along_axis(below, place, axis=1)).sum(axis=2)


def _greedy(relevance: np.ndarray, matches: np.ndarray, k: int, repeat: float) -> np.ndarray:
    """Take the best candidate again and again: (q, c) and (q, c, p) → (q, min(k, c)) columns."""
    relevance, rows = relevance.copy(), np.arange(len(relevance))
    taken = np.zeros((len(rows), 0, matches.shape[2]))
    order = np.zeros((len(rows), min(k, relevance.shape[1])), np.int64)
    for step in range(order.shape[1]):
        # Rounded, so that equal candidates tie whatever was summed before: the better rank goes first.
        best = np.round(relevance + gains(matches, taken, repeat), 9).argmax(axis=1)
        order[:, step] = best
        relevance[rows, best] = -np.inf
        taken = -np.sort(-np.concatenate([taken, matches[rows, best][:, None]], axis=1), axis=1)
    return order


def parts_and_matches(run: Run, bench: Bench, n: int, *, retriever: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Find the parts of a run's questions in its first ``n`` candidates: the question's words, and its facets if any.

    A word weighs its idf in the scope; a candidate matches it as BM25 counts it, from 0 (absent) towards 1. A facet,
    such as one of two people, is searched on its own; a candidate matches it by its score there, from 0 (last found or
    not found) to 1 (best). All words together weigh as much as all facets together.

    :returns: the parts: ``query_id``, ``part`` (from 0 within the question), ``text``, ``kind``, ``weight`` (sums to 1
        within the question); and the matches above 0: ``query_id``, ``part``, ``rank``, ``match``.
    :raises DataError: when the run ranks sessions, or for a question that the bench does not hold.
    """
    of_turns(run, "coverage")
    documents = bench.documents("turn")
    first = run.frame.filter(pl.col("rank") <= n)
    first = first.with_columns(at=pl.Series(documents.at(first["doc_id"]), dtype=pl.Int64))
    queries = bench.asked(first.select(pl.col("query_id").unique(maintain_order=True)), "scope", "text", "timestamp")
    kinds = [_words(queries, first, bench), _facets(queries, first, bench, retriever)]
    both = pl.concat(weights for weights, _ in kinds)
    share = pl.col("weight") / pl.col("weight").sum().over("query_id")
    numbered = both.with_columns(weight=share, part=pl.int_range(pl.len()).over("query_id"))
    matches = pl.concat(matches for _, matches in kinds)
    placed = matches.join(numbered, on=["query_id", "text", "kind"], how="left", maintain_order="left")
    columns = ["query_id", "part", "text", "kind", "weight"]
    return numbered.select(columns), placed.select("query_id", "part", "rank", "match")


def _words(queries: pl.DataFrame, first: pl.DataFrame, bench: Bench) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Give the questions' words that the scope knows, and where the candidates hold them."""
    rows = bench.queries.select("query_id", "scope", text=pl.Series(bench.query_words, dtype=pl.List(pl.String)))
    asked = rows.join(queries.select("query_id"), on="query_id", maintain_order="right").explode("text")
    asked = asked.drop_nulls("text").unique(["query_id", "text"], keep="first", maintain_order=True)
    rare = bench.documents("turn").rarities(asked.select("scope", word="text"))
    words = asked.join(rare.select("scope", text="word", weight="rarity"), on=["scope", "text"], maintain_order="left")
    words = words.with_columns(kind=pl.lit("word"))
    matched = (
        first.select("query_id", "rank", "at")
        .join(_held(bench, asked), on="at", maintain_order="left")
        .join(words.select("query_id", "text", "kind"), on=["query_id", "text"], maintain_order="left")
    )
    of_words = pl.col("weight") / pl.col("weight").sum().over("query_id")
    return words.select("query_id", "text", "kind", weight=of_words), matched.select(*_MATCH)


def _held(bench: Bench, asked: pl.DataFrame) -> pl.DataFrame:
    """Look words up in the turns of their scopes: ``at``, ``text``, ``match``."""
    documents = bench.documents("turn")
    matches = [pl.DataFrame(schema={"at": pl.Int64, "text": pl.String, "match": pl.Float64})]
    by_scope = asked.group_by("scope", maintain_order=True).agg(pl.col("text").unique(maintain_order=True))
    for scope, texts in by_scope.iter_rows():
        span = slice(*documents.spans[scope])
        words = documents.words_in(span)
        inside = [text for text in texts if text in words.number]
        rows = np.array([words.number[text] for text in inside], dtype=np.int64)
        # In order of turns, then of words.
        postings = words.matches(*words.normalisation)[rows].T.tocsr()
        at = span.start + np.repeat(np.arange(postings.shape[0]), np.diff(postings.indptr))
        text = pl.Series(inside, dtype=pl.String).gather(postings.indices)
        matches.append(pl.DataFrame({"at": at, "text": text, "match": postings.data}, schema=matches[0].schema))
    return pl.concat(matches)


def _facets(
    queries: pl.DataFrame, first: pl.DataFrame, bench: Bench, retriever: str
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Give the questions' facets, and how high each candidate stands in a search for each."""
    readable = queries if english(bench.language, "the splitting of questions") else queries.clear()
    split = question_parts(readable).with_columns(kind=pl.lit("facet"))
    weights = split.with_columns(weight=1.0 / pl.len().over("query_id"))
    if not split.height:
        return weights, pl.DataFrame(schema=_MATCH)
    hits = ask(bench, split, retriever=retriever)
    low, high = pl.col("score").min().over("part"), pl.col("score").max().over("part")
    scaled = pl.when(high > low).then((pl.col("score") - low) / (high - low)).otherwise(1.0)
    asked = split.drop("query_id").with_row_index("part")
    matched = hits.select("query_id", "part", "doc_id", match=scaled).join(asked, on="part", maintain_order="left")
    placed = first.select("query_id", "doc_id", "rank").join(matched, on=["query_id", "doc_id"], maintain_order="left")
    return weights, placed.select(*_MATCH)
