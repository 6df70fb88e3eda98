"""The parts of a question, and how well each candidate matches each of them."""

from __future__ import annotations

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.language.analysis import english
from memlab.language.parts import question_parts
from memlab.records import Run
from memlab.retrieve.bench import Bench
from memlab.retrieve.bm25 import normalisation
from memlab.retrieve.subqueries import ask

_MATCH = {"query_id": pl.String(), "text": pl.String(), "kind": pl.String(), "rank": pl.Int32(), "match": pl.Float64()}


def parts_and_matches(run: Run, bench: Bench, n: int, *, retriever: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Find the parts of a run's questions in its first ``n`` candidates: the question's words, and its facets if any.

    A word weighs its idf in the scope; a candidate matches it as BM25 counts it, from 0 (absent) towards 1. A facet,
    such as one of two people, is searched on its own; a candidate matches it by its score there, from 0 (last found or
    not found) to 1 (best). All words together weigh as much as all facets together.

    :returns: the parts: ``query_id``, ``part`` (from 0 within the question), ``text``, ``kind``, ``weight`` (sums to 1
        within the question); and the matches above 0: ``query_id``, ``part``, ``rank``, ``match``.
    :raises DataError: when the run ranks sessions, or for a question that the bench does not hold.
    """
    if run.level != "turn":
        raise DataError("coverage chooses among turns, and the run ranks sessions; give it a run of turns")
    documents = bench.documents("turn")
    first = run.frame.filter(pl.col("rank") <= n)
    first = first.with_columns(at=pl.Series(documents.at(first["doc_id"]), dtype=pl.Int64))
    queries = first.unique("query_id", keep="first", maintain_order=True).join(
        bench.queries, on="query_id", how="left", maintain_order="left"
    )
    unknown = queries.filter(pl.col("text").is_null())["query_id"]
    if len(unknown):
        raise DataError(f"question {unknown[0]!r} is not in this bench")
    found = [_words(queries, first, bench), _facets(queries, first, bench, retriever)]
    both = pl.concat(one for one, _ in found)
    share = pl.col("weight") / pl.col("weight").sum().over("query_id")
    numbered = both.with_columns(weight=share, part=pl.int_range(pl.len()).over("query_id"))
    matches = pl.concat(matched for _, matched in found)
    placed = matches.join(numbered, on=["query_id", "text", "kind"], how="left", maintain_order="left")
    columns = ["query_id", "part", "text", "kind", "weight"]
    return numbered.select(columns), placed.select("query_id", "part", "rank", "match")


def _words(queries: pl.DataFrame, first: pl.DataFrame, bench: Bench) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Give the questions' words that the scope knows, and where the candidates hold them."""
    rows = bench.queries.select("query_id", "scope", text=pl.Series(bench.query_words, dtype=pl.List(pl.String)))
    asked = rows.join(queries.select("query_id"), on="query_id", maintain_order="right").explode("text")
    asked = asked.drop_nulls("text").unique(["query_id", "text"], keep="first", maintain_order=True)
    matches, rare = _scope_words(bench, asked)
    known = asked.join(rare, on=["scope", "text"], maintain_order="left").with_columns(kind=pl.lit("word"))
    matched = (
        first.select("query_id", "rank", "at")
        .join(matches, on="at", maintain_order="left")
        .join(known.select("query_id", "text", "kind"), on=["query_id", "text"], maintain_order="left")
    )
    of_words = pl.col("weight") / pl.col("weight").sum().over("query_id")
    return known.select("query_id", "text", "kind", weight=of_words), matched.select(*_MATCH)


def _scope_words(bench: Bench, asked: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Look the asked words up in their scopes.

    :returns: ``at``, ``text``, ``match`` for every turn and word that it holds; ``scope``, ``text``, ``weight`` (idf).
    """
    documents = bench.documents("turn")
    matches = [pl.DataFrame(schema={"at": pl.Int64, "text": pl.String, "match": pl.Float64})]
    rare = [pl.DataFrame(schema={"scope": pl.String, "text": pl.String, "weight": pl.Float64})]
    for scope, texts in (
        asked.group_by("scope", maintain_order=True).agg(pl.col("text").unique(maintain_order=True)).rows()
    ):
        span = slice(*documents.spans[scope])
        words = documents.words_in(span)
        known = [text for text in texts if text in words.number]
        rows = np.array([words.number[text] for text in known], dtype=np.int64)
        # In order of turns, then of words.
        held = words.matches(*normalisation(words, "turn"))[rows].T.tocsr()
        at = span.start + np.repeat(np.arange(held.shape[0]), np.diff(held.indptr))
        text = pl.Series(known, dtype=pl.String).gather(held.indices)
        matches.append(pl.DataFrame({"at": at, "text": text, "match": held.data}, schema=matches[0].schema))
        weights = {"scope": [scope] * len(known), "text": known, "weight": words.rarity[rows]}
        rare.append(pl.DataFrame(weights, schema=rare[0].schema))
    return pl.concat(matches), pl.concat(rare)


def _facets(
    queries: pl.DataFrame, first: pl.DataFrame, bench: Bench, retriever: str
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Give the questions' facets, and how high each candidate stands in a search for each."""
    readable = queries if english(bench.language, "the splitting of questions") else queries.clear()
    split = question_parts(readable).with_columns(kind=pl.lit("facet"))
    known = split.with_columns(weight=1.0 / pl.len().over("query_id"))
    if not split.height:
        return known, pl.DataFrame(schema=_MATCH)
    found = ask(bench, split, retriever=retriever)
    low, high = pl.col("score").min().over("part"), pl.col("score").max().over("part")
    scaled = pl.when(high > low).then((pl.col("score") - low) / (high - low)).otherwise(1.0)
    asked = split.drop("query_id").with_row_index("part")
    matched = found.select("query_id", "part", "doc_id", match=scaled).join(asked, on="part", maintain_order="left")
    placed = first.select("query_id", "doc_id", "rank").join(matched, on=["query_id", "doc_id"], maintain_order="left")
    return known, placed.select(*_MATCH)
