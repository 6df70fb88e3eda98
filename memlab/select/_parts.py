"""The parts of a question, and how well each candidate matches each of them."""

from __future__ import annotations

import polars as pl

from memlab.errors import DataError
from memlab.language.parts import question_parts
from memlab.records import Run
from memlab.retrieve.bench import Bench
from memlab.retrieve.bm25 import DEFAULTS, tokenize
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
    asked = _tokens(queries["text"].to_list(), queries.select("query_id", "scope")).unique(
        ["query_id", "text"], keep="first", maintain_order=True
    )
    held = _scope_tokens(bench, asked)
    k1, b = DEFAULTS["turn"]
    df = held.group_by("scope", "text").agg(df=pl.len(), n=pl.col("n").first())
    idf = (1 + (pl.col("n") - pl.col("df") + 0.5) / (pl.col("df") + 0.5)).log()
    known = asked.join(df, on=["scope", "text"], maintain_order="left").with_columns(weight=idf, kind=pl.lit("word"))
    match = pl.col("tf") / (pl.col("tf") + k1 * (1 - b + b * pl.col("length") / pl.col("mean_length")))
    matched = (
        first.select("query_id", "rank", "at")
        .join(held.select("at", "text", match=match), on="at", maintain_order="left")
        .join(known.select("query_id", "text", "kind"), on=["query_id", "text"], maintain_order="left")
    )
    of_words = pl.col("weight") / pl.col("weight").sum().over("query_id")
    return known.select("query_id", "text", "kind", weight=of_words), matched.select(*_MATCH)


def _scope_tokens(bench: Bench, asked: pl.DataFrame) -> pl.DataFrame:
    """Count the asked words in every turn of their scopes: one row a turn and word that it holds."""
    documents = bench.documents("turn")
    spans = [(scope, *documents.spans[scope]) for scope in asked["scope"].unique(maintain_order=True)]
    turns = (
        pl.DataFrame(spans, schema={"scope": pl.String, "start": pl.Int64, "stop": pl.Int64}, orient="row")
        .with_columns(at=pl.int_ranges("start", "stop"), n=pl.col("stop") - pl.col("start"))
        .explode("at")
    )
    counted = (
        _tokens([documents.texts[at] for at in turns["at"]], turns)
        .group_by("scope", "at", "n", "text", maintain_order=True)
        .agg(tf=pl.len())
        .with_columns(length=pl.col("tf").sum().over("at"), mean_length=pl.col("tf").sum().over("scope") / pl.col("n"))
    )
    return counted.join(asked, on=["scope", "text"], how="semi")


def _tokens(texts: list[str], rows: pl.DataFrame) -> pl.DataFrame:
    """Set each text's tokens beside its row, one a row."""
    tokens = pl.Series("text", tokenize(texts) if texts else [], dtype=pl.List(pl.String))
    return rows.with_columns(tokens).explode("text").drop_nulls("text")


def _facets(
    queries: pl.DataFrame, first: pl.DataFrame, bench: Bench, retriever: str
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Give the questions' facets, and how high each candidate stands in a search for each."""
    split = question_parts(queries).with_columns(kind=pl.lit("facet"))
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
