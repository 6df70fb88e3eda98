"""How much of the evidence a set of summaries still cites, beside how much of all turns."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from memlab.evaluate.confidence_intervals import Unit, clustering_scopes, mean_intervals
from memlab.records import Dataset, qrels
from memlab.records.dataset import describe_sources
from memlab.source_labels import COLUMN


def cited_shares(nodes: pl.DataFrame, dataset: Dataset, *, unit: Unit = "auto") -> pl.DataFrame:
    """Give the share of questions whose every evidence item is cited, and of turns that are, by
    kind.

    A summary that cites every turn keeps all evidence and condenses nothing, so the two stand
    beside each other. The turns are all there are, so their share has no interval.

    :param nodes: summaries with ``kind``, ``scope`` and ``evidence``, the turns that each sentence
        stands on. Of each kind only the scopes count that have such summaries.
    :returns: two rows a kind, ``form`` is ``questions`` and ``turns``: ``kind``, ``n``,
        ``mean`` (null where there is nothing), ``low``, ``high``, ``level``, ``unit`` and
        ``units``.

    >>> import memlab, polars as pl
    >>> from memlab.evaluate.cited_evidence import cited_shares
    >>> data = memlab.sample(turns=200)
    >>> everything = data.turns.group_by("scope").agg(evidence="turn_id")
    >>> kind = pl.lit("all").alias("kind")
    >>> everything = everything.select("scope", kind, pl.concat_list("evidence"))
    >>> cited_shares(everything, data)["mean"].to_list()
    [1.0, 1.0]
    """
    rows = list[dict[str, Any]]()
    for (kind,), own in nodes.group_by("kind", maintain_order=True):
        cited = own.select(pl.col("evidence").explode().explode().drop_nulls().unique())["evidence"]
        summarised = dataset.take(own["scope"].unique(maintain_order=True).to_list())
        span = _share_of_questions(cited, summarised, unit)
        turns = summarised.turns["turn_id"].is_in(cited.implode())
        rows.append({"kind": kind, "form": "questions", **span})
        rows.append({"kind": kind, "form": "turns", "n": len(turns), "mean": turns.mean()})
    return pl.DataFrame(rows)


def _share_of_questions(cited: pl.Series, dataset: Dataset, unit: Unit) -> dict[str, Any]:
    """Give the share of questions whose every evidence item is cited, with its interval."""
    evidence = qrels(dataset.questions, "turn").frame.select("query_id", "doc_id")
    whole = evidence.group_by("query_id", maintain_order=True).agg(
        hit=pl.col("doc_id").is_in(cited.implode()).all()
    )
    asked = whole.join(dataset.questions, on="query_id", maintain_order="left")
    values = asked["hit"].cast(pl.Float64).to_numpy().reshape(-1, 1)
    scopes = clustering_scopes(asked["scope"], unit)
    span = mean_intervals(values, scopes=scopes, shares=np.array([True])).drop("method")
    found = {"n": asked.height, "mean": asked["hit"].mean(), **span.row(0, named=True)}
    described = describe_sources(asked)
    if described:
        found[COLUMN] = described
    return found


def summary_sizes(nodes: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """Count summaries and their words by kind, beside the turns of the memories that they
    summarise.

    :param nodes: summaries with ``kind``, ``scope`` and ``text``.
    :param turns: ``scope`` and ``text``.
    :returns: ``kind`` (``turn`` first), ``n``, ``words``, ``turns`` (of the scopes that have such
        summaries) and ``of_words``, the share of the words of these turns.

    >>> import polars as pl
    >>> from memlab.evaluate.cited_evidence import summary_sizes
    >>> texts = ["six words are said in all", "two more"]
    >>> turns = pl.DataFrame({"scope": ["ann", "bo"], "text": texts})
    >>> nodes = pl.DataFrame({"kind": ["week"], "scope": ["ann"], "text": ["six words"]})
    >>> summary_sizes(nodes, turns).row(1)
    ('week', 1, 2, 1, 0.3333333333333333)
    """
    columns = ["kind", "scope", "text"]
    sources = [turns.with_columns(kind=pl.lit("turn")).select(columns), nodes.select(columns)]
    words = pl.col("text").str.count_matches(r"\w+").sum()
    by_scope = pl.concat(sources).group_by("kind", "scope", maintain_order=True)
    counted = by_scope.agg(n=pl.len(), words=words)
    said = counted.filter(kind="turn").select("scope", turns="n", said="words")
    joined = counted.join(said, on="scope", how="left", maintain_order="left")
    totals = joined.group_by("kind", maintain_order=True).agg(pl.exclude("scope").sum())
    return totals.select("kind", "n", "words", "turns", of_words=pl.col("words") / pl.col("said"))
