"""Decomposition: a question that takes several pieces is asked part by part."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
from pydantic import BaseModel

from memlab.errors import at_least
from memlab.language.analysis import english
from memlab.language.parts import question_parts
from memlab.language.questions import aggregation
from memlab.records import Run
from memlab.registry import stage
from memlab.retrieve.bench import Bench
from memlab.retrieve.ranking import depth as depth_of
from memlab.retrieve.ranking import of_turns
from memlab.retrieve.subqueries import ask, joined, written

# Of what a language model writes: more parts than these are not parts of one question.
MOST = 8

_TASK = (
    "A question is asked of a long conversation. If its answer needs several things to be looked up, such as each of "
    "two people, each item of a list or both sides of a comparison, write one short question for each of them. If one "
    "look-up is enough, write none."
)


def parts(bench: Bench, *, windows: int, service: str | None = None) -> pl.DataFrame:
    """Say what :func:`decompose` asks on each question's behalf.

    :returns: ``query_id``, ``part``, ``text``, ``kind`` (``facet`` or ``window``), and ``window``, which is null but
        for windows, numbered from 0 in order of time. Questions that are asked as they are have no rows.
    """
    at_least(0, windows=windows)
    readable = bench.queries if english(bench.language, "the splitting of questions") else bench.queries.clear()
    split = _written(bench.queries, service) if service else question_parts(readable)
    lengths = bench.sessions.group_by("scope").agg(n_sessions=pl.len())
    timed = (
        readable.filter(aggregation())
        .join(lengths, on="scope", maintain_order="left")
        .join(pl.DataFrame({"window": pl.int_range(windows, eager=True)}), how="cross")
        .filter(pl.col("window") < pl.col("n_sessions"))
        .select("query_id", "text", pl.lit("window").alias("kind"), "window")
    )
    both = [split.select("query_id", "text", kind=pl.lit("facet"), window=pl.lit(None, pl.Int64)), timed]
    place = pl.int_range(1, pl.len() + 1, dtype=pl.UInt32).over("query_id")
    order = bench.queries.select("query_id").join(pl.concat(both), on="query_id", maintain_order="left_right")
    return order.select("query_id", place.alias("part"), "text", "kind", "window")


@stage
def decompose(
    run: Run,
    bench: Bench,
    *,
    retriever: str = "hybrid",
    weight: float = 0.5,
    windows: int = 8,
    depth: int = 5,
    service: str | None = None,
) -> Run:
    """Ask for the parts of a question, and fuse the union of what they find with the run.

    A question that joins, compares or lists several things is asked once for each (:func:`question_parts`), so that
    one of them cannot fill the first places alone. An aggregation is asked once more within each stretch of the scope's
    time, which brings its best turn of that stretch. A turn that several parts find gains from each. Every other
    question keeps its ranking.

    :param retriever: what answers the parts: ``dense``, ``bm25``, ``hybrid`` or ``combsum``.
    :param weight: of all facets together and of all windows together, against 1 for the run.
    :param windows: stretches of equally many sessions that the time of each scope is cut into, at most one a session;
        0 for none.
    :param depth: turns that a facet may bring.
    :param service: a language model that splits the questions, see :func:`memlab.llm.ask`; ``None`` for the rules.
    :raises DataError: for a ranking of sessions, or counts or a weight that cannot be used.

    Source: Perez, Lewis, Yih, Cho and Kiela, Unsupervised Question Decomposition (EMNLP 2020), for the parts;
    Santos, Macdonald and Ounis, Exploiting Query Reformulations for Web Search Result Diversification (WWW 2010), for
    fusing what they find.

    >>> from memlab import retrieve, sample
    >>> from memlab.retrieve.decompose import decompose
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder="hashing")
    >>> plain = retrieve.hybrid(bench)
    >>> decompose(plain, bench, weight=0.0).frame["doc_id"].equals(plain.frame["doc_id"])
    True
    """
    of_turns(run, "decompose")
    at_least(1, depth=depth)
    hits = contributions(run, bench, retriever=retriever, windows=windows, depth=depth, service=service)
    lists = pl.col("part").n_unique().over("query_id", pl.col("kind") == "window")
    fused = joined(run, bench, hits.with_columns(weight=weight / lists), weight=weight, k=depth_of(run))
    return replace(fused, name=run.name, provenance=run.provenance)


def contributions(
    run: Run, bench: Bench, *, retriever: str, windows: int, depth: int, service: str | None = None
) -> pl.DataFrame:
    """Say which part of a question found which turns.

    :returns: ``query_id``, ``part`` and ``kind`` of :func:`parts`, ``doc_id``, ``rank``, ``score``.
    """
    asked = parts(bench, windows=windows, service=service).join(run.frame, on="query_id", how="semi")
    facets = asked.filter(pl.col("window").is_null())
    columns = ["query_id", "part", "kind", "doc_id", "rank", "score"]
    best = _windowed(run, bench, windows).join(asked, on=["query_id", "window"], maintain_order="right")
    hits = ask(bench, facets, retriever=retriever, k=depth).rename({"part": "row"})
    of_facets = hits.join(facets.with_row_index("row").drop("query_id"), on="row", maintain_order="left")
    return pl.concat([of_facets.select(columns), best.select(columns)])


def _windowed(run: Run, bench: Bench, windows: int) -> pl.DataFrame:
    """Take the run's best turn of each window, as first of a list of its own."""
    sessions, turns = bench.documents("session"), bench.documents("turn")
    spans = pl.DataFrame(
        [(scope, first, end - first) for scope, (first, end) in sessions.spans.items()],
        schema={"scope": pl.String, "first": pl.Int64, "n": pl.Int64},
        orient="row",
    )
    stretch = (pl.col("session") - pl.col("first")) * pl.min_horizontal("n", pl.lit(windows)) // pl.col("n")
    return (
        run.frame.with_columns(session=pl.Series(turns.session[turns.at(run.frame["doc_id"])], dtype=pl.Int64))
        .join(bench.queries.select("query_id", "scope"), on="query_id", how="left", maintain_order="left")
        .join(spans, on="scope", how="left", maintain_order="left")
        .with_columns(window=stretch)
        .unique(["query_id", "window"], keep="first", maintain_order=True)
        .with_columns(rank=pl.lit(1, pl.Int32))
    )


class Split(BaseModel, extra="forbid"):
    """What a language model answers."""

    questions: list[str]


def _written(queries: pl.DataFrame, service: str) -> pl.DataFrame:
    """Let a language model split questions; one that it gives no answer to is asked as it is."""
    questions = queries.select(question="text")
    values = written(questions, service, task="decompose", shape=Split, system=_TASK, what="decompositions")
    split = [[] if value is None else value.questions[:MOST] for value in values]
    texts = pl.Series("text", split, dtype=pl.List(pl.String))
    return queries.select("query_id", texts).explode("text").filter(pl.col("text") != "")
